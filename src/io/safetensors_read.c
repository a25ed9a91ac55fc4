/* safetensors_read.c: opening a file of tensors.
 *
 *     8 bytes, little endian: n | n bytes of JSON | data
 *     {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, ...}
 *
 * The file is not trusted: every value is checked before it is used, and the tensors must cover the
 * data exactly once.  Cost: O(n log n) in the number of tensors; the data itself is not read.  The
 * header is parsed by jansson with the C library's malloc: its allocator is global to the process,
 * and a library must not change it; what lives until close is in one arena. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "io/safetensors.h"

struct pair {
    const char *key, *value;
};

struct heed_safetensors {
    heed_arena *arena; /* holds everything here, this struct included */
    const char *name;  /* of the file, for error texts */
    const void *mapped;
    size_t mapped_size;
    const unsigned char *data;
    size_t data_size;
    heed_stored *tensor; /* in the order of their data */
    const heed_stored **by_name;
    int count;
    struct pair *metadata; /* by key */
    int metadata_count;
};

HEED_PRINTF(3, 4)
static heed_status refuse(const heed_safetensors *f, heed_error *err, const char *format, ...)
{
    char text[384];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return heed__fail(err, HEED_FORMAT, "cannot load '%.255s': %s", f->name, text);
}

static heed_status short_of_memory(const heed_safetensors *f, heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "cannot load '%.255s': out of memory", f->name);
}

static const char *copy(heed_safetensors *f, const char *text)
{
    size_t size = strlen(text) + 1;
    char *memory = heed_arena_allocate(f->arena, size);
    return memory ? memcpy(memory, text, size) : NULL;
}

/* ---- the order of tensors and of names ---- */

static int compare_data(const void *x, const void *y)
{
    const heed_stored *a = x, *b = y;
    if (a->data != b->data)
        return (const char *)a->data < (const char *)b->data ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_name(const void *x, const void *y)
{
    return strcmp((*(const heed_stored *const *)x)->name, (*(const heed_stored *const *)y)->name);
}

static int compare_key(const void *x, const void *y)
{
    return strcmp(((const struct pair *)x)->key, ((const struct pair *)y)->key);
}

static int find_name(const void *name, const void *stored)
{
    return strcmp(name, (*(const heed_stored *const *)stored)->name);
}

/* ---- the header ---- */

/* data_offsets = [begin, end] within the data. */
static heed_status read_offsets(const heed_safetensors *f, const json_t *offsets, heed_stored *s,
                                const char *shown, heed_error *err)
{
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return refuse(f, err, "tensor '%s' has no data_offsets [begin, end]", shown);
    long long begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || begin > end || (uint64_t)end > f->data_size)
        return refuse(
            f, err,
            "tensor '%s' has data_offsets %lld to %lld, not a range of the %zu bytes of data",
            shown, begin, end, f->data_size);
    s->data = f->data + begin;
    s->bytes = (size_t)(end - begin);
    return HEED_OK;
}

static heed_status read_tensor(heed_safetensors *f, const char *name, const json_t *entry,
                               heed_stored *s, heed_error *err)
{
    char shown[HEED_SHOWN], other[HEED_SHOWN];
    heed__shown(name, shown);
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype)
        return refuse(f, err, "tensor '%s' has no dtype", shown);
    if (!heed__dtype_named(dtype, &s->dtype))
        return refuse(f, err, "tensor '%s' has the unknown dtype '%s'", shown,
                      heed__shown(dtype, other));

    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape))
        return refuse(f, err, "tensor '%s' has no shape", shown);
    size_t rank = json_array_size(shape);
    if (rank > HEED_STORED_MAX_RANK)
        return refuse(f, err, "tensor '%s' has %zu axes, expected at most %d", shown, rank,
                      HEED_STORED_MAX_RANK);
    s->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return refuse(f, err, "tensor '%s': axis %zu is not a non-negative integer", shown, i);
        s->dim[i] = json_integer_value(size);
    }

    heed_status status = read_offsets(f, json_object_get(entry, "data_offsets"), s, shown, err);
    if (status != HEED_OK)
        return status;
    size_t bytes;
    if (!heed__stored_bytes(s, &bytes))
        return refuse(f, err, "tensor '%s' has a shape whose size overflows", shown);
    if (bytes != s->bytes)
        return refuse(f, err, "tensor '%s' has %zu bytes of data, expected %zu for its shape",
                      shown, s->bytes, bytes);
    s->name = copy(f, name);
    return s->name ? HEED_OK : short_of_memory(f, err);
}

static heed_status read_metadata(heed_safetensors *f, json_t *object, heed_error *err)
{
    if (!json_is_object(object))
        return refuse(f, err, "the metadata is not an object");
    f->metadata = heed_arena_allocate(f->arena, json_object_size(object) * sizeof *f->metadata);
    if (!f->metadata)
        return short_of_memory(f, err);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const char *key = json_object_iter_key(i);
        const char *value = json_string_value(json_object_iter_value(i));
        char shown[HEED_SHOWN];
        if (!value)
            return refuse(f, err, "metadata '%s' is not a string", heed__shown(key, shown));
        struct pair *p = &f->metadata[f->metadata_count];
        p->key = copy(f, key);
        p->value = copy(f, value);
        if (!p->key || !p->value)
            return short_of_memory(f, err);
        f->metadata_count++;
    }
    qsort(f->metadata, (size_t)f->metadata_count, sizeof *f->metadata, compare_key);
    return HEED_OK;
}

/* The tensors, one after the other, must be exactly the data: no overlap, no gap. */
static heed_status check_cover(const heed_safetensors *f, heed_error *err)
{
    char shown[HEED_SHOWN], other[HEED_SHOWN];
    const unsigned char *at = f->data;
    for (int i = 0; i < f->count; i++) {
        const heed_stored *s = &f->tensor[i];
        const unsigned char *begin = s->data;
        if (begin < at)
            return refuse(f, err, "tensor '%s' overlaps tensor '%s'", heed__shown(s->name, shown),
                          heed__shown(f->tensor[i - 1].name, other));
        if (begin > at)
            return refuse(f, err, "the %zu bytes before tensor '%s' belong to no tensor",
                          (size_t)(begin - at), heed__shown(s->name, shown));
        at = begin + s->bytes;
    }
    size_t rest = f->data_size - (size_t)(at - f->data);
    if (rest > 0)
        return refuse(f, err, "the last %zu bytes belong to no tensor", rest);
    return HEED_OK;
}

static heed_status read_header(heed_safetensors *f, json_t *header, heed_error *err)
{
    size_t n = json_object_size(header);
    if (n > INT_MAX)
        return refuse(f, err, "too many tensors");
    f->tensor = heed_arena_allocate(f->arena, n * sizeof *f->tensor);
    f->by_name = heed_arena_allocate(f->arena, n * sizeof *f->by_name);
    if (!f->tensor || !f->by_name)
        return short_of_memory(f, err);
    for (void *i = json_object_iter(header); i; i = json_object_iter_next(header, i)) {
        const char *name = json_object_iter_key(i);
        json_t *entry = json_object_iter_value(i);
        heed_status status = HEED_OK;
        if (strcmp(name, HEED_METADATA_KEY) == 0) {
            status = read_metadata(f, entry, err);
        } else {
            heed_stored *s = &f->tensor[f->count++];
            memset(s, 0, sizeof *s);
            status = read_tensor(f, name, entry, s, err);
        }
        if (status != HEED_OK)
            return status;
    }
    qsort(f->tensor, (size_t)f->count, sizeof *f->tensor, compare_data);
    for (int i = 0; i < f->count; i++)
        f->by_name[i] = &f->tensor[i];
    qsort(f->by_name, (size_t)f->count, sizeof *f->by_name, compare_name);
    return check_cover(f, err);
}

static heed_status parse(heed_safetensors *f, const unsigned char *bytes, size_t size,
                         heed_error *err)
{
    if (size < 8)
        return refuse(f, err, "%zu bytes are too few for a safetensors file", size);
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > HEED_MAX_HEADER)
        return refuse(f, err, "the header claims %llu bytes, more than the %llu allowed",
                      (unsigned long long)length, (unsigned long long)HEED_MAX_HEADER);
    if (length > size - 8)
        return refuse(f, err, "the header claims %llu bytes, the file has %zu after its length",
                      (unsigned long long)length, size - 8);
    if (length == 0 || bytes[8] != '{')
        return refuse(f, err, "the header is not a JSON object");
    f->data = bytes + 8 + length;
    f->data_size = size - 8 - (size_t)length;

    json_error_t why;
    json_t *header =
        json_loadb((const char *)bytes + 8, (size_t)length, JSON_REJECT_DUPLICATES, &why);
    if (!header) {
        char shown[HEED_SHOWN];
        if (heed__json_short_of_memory(&why))
            return short_of_memory(f, err);
        return refuse(f, err, "the header is not valid JSON: %s", heed__shown(why.text, shown));
    }
    heed_status status = read_header(f, header, err);
    json_decref(header);
    return status;
}

/* ---- opening ---- */

static heed_safetensors *open_bytes(const void *bytes, size_t size, const char *name,
                                    const heed_allocator *allocator, heed_error *err)
{
    heed_arena *arena = heed_arena_new(allocator, err);
    if (!arena)
        return NULL;
    heed_safetensors *f = heed_arena_allocate(arena, sizeof *f);
    if (f) {
        *f = (heed_safetensors){.arena = arena, .name = name};
        if (parse(f, bytes, size, err) == HEED_OK)
            return f;
    } else {
        heed__fail(err, HEED_MEMORY, "cannot load '%.255s': out of memory", name);
    }
    heed_arena_free(arena);
    return NULL;
}

heed_safetensors *heed_safetensors_open_memory(const void *bytes, size_t size, const char *name,
                                               const heed_allocator *allocator, heed_error *err)
{
    name = name ? name : "memory";
    if (!bytes && size > 0) {
        heed__fail(err, HEED_ARGUMENT, "cannot load '%.255s': no bytes", name);
        return NULL;
    }
    return open_bytes(bytes, size, name, allocator, err);
}

heed_safetensors *heed_safetensors_open(const char *path, const heed_allocator *allocator,
                                        heed_error *err)
{
    const void *bytes = NULL;
    size_t size = 0;
    if (heed__file_map(path, &bytes, &size, err) != HEED_OK)
        return NULL;
    heed_safetensors *f = open_bytes(bytes, size, path, allocator, err);
    if (!f) {
        heed__file_unmap(bytes, size);
        return NULL;
    }
    f->mapped = bytes;
    f->mapped_size = size;
    return f;
}

void heed_safetensors_close(heed_safetensors *f)
{
    if (!f)
        return;
    if (f->mapped)
        heed__file_unmap(f->mapped, f->mapped_size);
    heed_arena_free(f->arena);
}

/* ---- accessors ---- */

int heed_safetensors_count(const heed_safetensors *f)
{
    if (!f)
        return 0;
    return f->count;
}

const heed_stored *heed_safetensors_at(const heed_safetensors *f, int i)
{
    if (!f)
        return NULL;
    return i >= 0 && i < f->count ? &f->tensor[i] : NULL;
}

const heed_stored *heed_safetensors_find(const heed_safetensors *f, const char *name)
{
    if (!f)
        return NULL;
    const heed_stored **found =
        bsearch(name, f->by_name, (size_t)f->count, sizeof *f->by_name, find_name);
    return found ? *found : NULL;
}

const char *heed_safetensors_metadata(const heed_safetensors *f, const char *key)
{
    if (!f)
        return NULL;
    struct pair wanted = {key, NULL};
    const struct pair *found = NULL;
    if (f->metadata_count > 0) /* else there is no array */
        found =
            bsearch(&wanted, f->metadata, (size_t)f->metadata_count, sizeof wanted, compare_key);
    return found ? found->value : NULL;
}
