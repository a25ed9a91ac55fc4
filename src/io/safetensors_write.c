/* safetensors_write.c: a file of tensors, whole or not at all.
 *
 * The same calls give the same bytes: metadata first, then the tensors in the order they were
 * added.  The header is padded with spaces so that the data starts at a multiple of 64, and wide
 * elements come before narrow ones, so that every tensor is aligned to its element.  Refused: a
 * name twice, a name or text that is not UTF-8, a size that is not its shape's.  The header goes
 * through jansson, which uses the C library's malloc. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/safetensors.h"

#define DATA_ALIGN 64

/* A tensor to write; a list in the order they were added. */
struct item {
    struct item *next;
    heed_stored stored;
    size_t begin; /* of its data */
};

struct heed_safetensors_writer {
    heed_arena *arena; /* holds everything here, this struct included */
    heed_allocator allocator;
    json_t *metadata;
    struct item *first, **end;
};

heed_safetensors_writer *heed_safetensors_writer_new(const heed_allocator *allocator,
                                                     heed_error *err)
{
    heed_arena *arena = heed_arena_new(allocator, err);
    if (!arena)
        return NULL;
    heed_safetensors_writer *w = heed_arena_allocate(arena, sizeof *w);
    json_t *metadata = w ? json_object() : NULL;
    if (!metadata) {
        heed__fail(err, HEED_MEMORY, "out of memory for a safetensors writer");
        heed_arena_free(arena);
        return NULL;
    }
    *w = (heed_safetensors_writer){
        .arena = arena, .allocator = heed__allocator_or_default(allocator), .metadata = metadata};
    w->end = &w->first;
    return w;
}

void heed_safetensors_writer_free(heed_safetensors_writer *w)
{
    if (!w)
        return;
    json_decref(w->metadata);
    heed_arena_free(w->arena);
}

/* jansson says only that it could not: a text that it takes unchecked and refuses otherwise is not
 * UTF-8. */
static bool is_utf8(const char *text)
{
    json_t *unchecked = json_string_nocheck(text), *checked = json_string(text);
    const bool utf8 = checked || !unchecked;
    json_decref(unchecked);
    json_decref(checked);
    return utf8;
}

heed_status heed_safetensors_writer_metadata(heed_safetensors_writer *w, const char *key,
                                             const char *value, heed_error *err)
{
    if (!key || !value)
        return heed__fail(err, HEED_ARGUMENT, "safetensors metadata: no key or no value");
    /* jansson takes over the string, and checks both to be UTF-8. */
    if (json_object_set_new(w->metadata, key, json_string(value)) == 0)
        return HEED_OK;
    return is_utf8(key) && is_utf8(value)
               ? heed__fail(err, HEED_MEMORY, "safetensors metadata: out of memory")
               : heed__fail(err, HEED_ARGUMENT, "safetensors metadata: not UTF-8 text");
}

heed_status heed_safetensors_writer_add(heed_safetensors_writer *w, const heed_stored *tensor,
                                        heed_error *err)
{
    char shown[HEED_SHOWN];
    if (!tensor || !tensor->name)
        return heed__fail(err, HEED_ARGUMENT, "safetensors add: a tensor without a name");
    heed__shown(tensor->name, shown);
    if (strcmp(tensor->name, HEED_METADATA_KEY) == 0)
        return heed__fail(err, HEED_ARGUMENT, "safetensors add: '%s' cannot name a tensor", shown);
    size_t bytes;
    if (!heed__stored_bytes(tensor, &bytes))
        return heed__fail(err, HEED_ARGUMENT,
                          "safetensors add: tensor '%s' has no valid dtype and shape", shown);
    if (bytes != tensor->bytes || (bytes > 0 && !tensor->data))
        return heed__fail(err, HEED_ARGUMENT,
                          "safetensors add: tensor '%s' has %zu bytes, expected %zu for its shape",
                          shown, tensor->data ? tensor->bytes : 0, bytes);
    size_t length = strlen(tensor->name) + 1;
    struct item *item = heed_arena_allocate(w->arena, sizeof *item);
    char *name = heed_arena_allocate(w->arena, length);
    if (!item || !name)
        return heed__fail(err, HEED_MEMORY, "safetensors add: out of memory for tensor '%s'",
                          shown);
    *item = (struct item){.stored = *tensor};
    item->stored.name = memcpy(name, tensor->name, length);
    *w->end = item;
    w->end = &item->next;
    return HEED_OK;
}

/* Wide elements first, then in the order added.  Since sizes are multiples of their element and
 * elements are powers of two, every tensor is aligned to its element. */
static const size_t widths[] = {8, 4, 2, 1};
#define EACH_IN_DATA_ORDER(w, item)                                                                \
    for (size_t k_ = 0; k_ < sizeof widths / sizeof *widths; k_++)                                 \
        for (struct item *item = (w)->first; item; item = item->next)                              \
            if (heed__dtype_size(item->stored.dtype) == widths[k_])

static heed_status lay_out(heed_safetensors_writer *w, const char *path, heed_error *err)
{
    size_t at = 0;
    EACH_IN_DATA_ORDER(w, item)
    {
        item->begin = at;
        if (!heed__add_sizes(at, item->stored.bytes, &at))
            return heed__fail(err, HEED_ARGUMENT, "cannot write '%s': the sizes overflow", path);
    }
    return HEED_OK;
}

/* Adds "name": {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}. */
static bool describe(json_t *header, const struct item *item)
{
    const heed_stored *s = &item->stored;
    json_t *shape = json_array();
    for (int i = 0; i < s->rank; i++)
        if (json_array_append_new(shape, json_integer(s->dim[i])) != 0) {
            json_decref(shape);
            return false;
        }
    json_t *entry =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", heed__dtype_name(s->dtype), "shape", shape,
                  "data_offsets", (json_int_t)item->begin, (json_int_t)(item->begin + s->bytes));
    return json_object_set_new(header, s->name, entry) == 0;
}

/* The header as a JSON object, or NULL. */
static json_t *make_header(const heed_safetensors_writer *w, const char *path, heed_error *err)
{
    char shown[HEED_SHOWN];
    json_t *header = json_object();
    if (!header || (json_object_size(w->metadata) > 0 &&
                    json_object_set(header, HEED_METADATA_KEY, w->metadata) != 0)) {
        heed__fail(err, HEED_MEMORY, "cannot write '%s': out of memory", path);
        goto failed;
    }
    for (const struct item *item = w->first; item; item = item->next) {
        if (json_object_get(header, item->stored.name)) {
            heed__fail(err, HEED_ARGUMENT, "cannot write '%s': tensor '%s' was added twice", path,
                       heed__shown(item->stored.name, shown));
            goto failed;
        }
        if (!describe(header, item)) {
            if (is_utf8(item->stored.name))
                heed__fail(err, HEED_MEMORY, "cannot write '%s': out of memory", path);
            else
                heed__fail(err, HEED_ARGUMENT,
                           "cannot write '%s': the name of tensor '%s' is not UTF-8", path,
                           heed__shown(item->stored.name, shown));
            goto failed;
        }
    }
    return header;
failed:
    json_decref(header);
    return NULL;
}

static heed_status write_file(heed_safetensors_writer *w, const char *path, const char *header,
                              size_t size, heed_error *err)
{
    heed__atomic_file *f = heed__atomic_open(path, &w->allocator, err);
    if (!f)
        return err && err->status != HEED_OK ? err->status : HEED_IO;
    heed_status status = heed__atomic_write(f, header, size, err);
    EACH_IN_DATA_ORDER(w, item)
    if (status == HEED_OK)
        status = heed__atomic_write(f, item->stored.data, item->stored.bytes, err);
    if (status == HEED_OK)
        return heed__atomic_commit(f, err);
    heed__atomic_abandon(f);
    return status;
}

heed_status heed_safetensors_writer_write(heed_safetensors_writer *w, const char *path,
                                          heed_error *err)
{
    if (!w)
        return heed__missing(err, "safetensors writer");
    heed_status status = lay_out(w, path, err);
    if (status != HEED_OK)
        return status;
    heed_error own = {0}; /* the status is needed even if err is NULL */
    json_t *header = make_header(w, path, &own);
    if (!header)
        return heed__fail(err, own.status, "%s", own.text);

    size_t length = json_dumpb(header, NULL, 0, JSON_COMPACT);
    size_t total = (8 + length + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
    char *bytes = length ? heed__allocate(&w->allocator, total, 1) : NULL;
    if (!bytes) { /* jansson, too, needs memory to write */
        status = heed__fail(err, HEED_MEMORY, "cannot write '%s': out of memory", path);
    } else if (total - 8 > HEED_MAX_HEADER) {
        status = heed__fail(err, HEED_ARGUMENT,
                            "cannot write '%s': %zu bytes of header, more than "
                            "the %llu allowed",
                            path, total - 8, (unsigned long long)HEED_MAX_HEADER);
    } else {
        for (int i = 0; i < 8; i++)
            bytes[i] = (char)((total - 8) >> 8 * i & 0xFF);
        const bool whole = json_dumpb(header, bytes + 8, length, JSON_COMPACT) == length;
        memset(bytes + 8 + length, ' ', total - 8 - length);
        status = whole ? write_file(w, path, bytes, total, err)
                       : heed__fail(err, HEED_MEMORY, "cannot write '%s': out of memory", path);
    }
    heed__release(&w->allocator, bytes, total, 1);
    json_decref(header);
    return status;
}
