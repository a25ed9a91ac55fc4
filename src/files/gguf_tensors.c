/* gguf_tensors.c: the tensors of a GGUF file, and what its key/value pairs say.
 *
 *     info: str name | u32 nd | u64 dims[nd], the fastest first | u32 type | u64 offset
 *
 * Offsets count from the data, which begin at a multiple of general.alignment (32). */
#include "files/found.h"
#include "files/gguf.h"

#include <math.h>
#include <stdio.h>

/* The names of ggml's types, for messages; those with a type here are opened. */
static const struct {
    const char *name;
    int type; /* -1: not opened */
} types[] = {
    {"F32", HEED__FOUND_F32},
    {"F16", HEED__FOUND_F16},
    {"Q4_0", HEED__FOUND_Q4_0},
    {"Q4_1", -1},
    {"type 4", -1},
    {"type 5", -1},
    {"Q5_0", -1},
    {"Q5_1", -1},
    {"Q8_0", HEED__FOUND_Q8_0},
    {"Q8_1", -1},
    {"Q2_K", -1},
    {"Q3_K", -1},
    {"Q4_K", -1},
    {"Q5_K", -1},
    {"Q6_K", -1},
    {"Q8_K", -1},
    {"IQ2_XXS", -1},
    {"IQ2_XS", -1},
    {"IQ3_XXS", -1},
    {"IQ1_S", -1},
    {"IQ4_NL", -1},
    {"IQ3_S", -1},
    {"IQ2_S", -1},
    {"IQ4_XS", -1},
    {"I8", HEED__FOUND_I8},
    {"I16", HEED__FOUND_I16},
    {"I32", HEED__FOUND_I32},
    {"I64", HEED__FOUND_I64},
    {"F64", HEED__FOUND_F64},
    {"IQ1_M", -1},
    {"BF16", HEED__FOUND_BF16},
};
#define TYPES (sizeof types / sizeof *types)

static heed_status read_info(heed__found *f, heed__byte_cursor *c, heed__found_tensor *t,
                             uint64_t *offset, heed_error *err)
{
    size_t length;
    const char *name = heed__gguf_string(c, &length);
    const uint32_t rank = heed__read_u32(c);
    *t = (heed__found_tensor){.rank = (int)rank};
    for (uint32_t i = 0; i < rank && i < HEED__FOUND_RANK; i++) {
        const uint64_t dim = heed__read_u64(c);
        t->dim[rank <= HEED__FOUND_RANK ? rank - 1 - i : 0] = dim > INT64_MAX ? -1 : (int64_t)dim;
    }
    const uint32_t type = heed__read_u32(c);
    *offset = heed__read_u64(c);
    if (c->broken || !name || rank > HEED__FOUND_RANK)
        return heed__found_fail(f, err, "tensor info %lld is damaged or leaves the file",
                                (long long)f->count + 1);
    t->name = heed__found_text(f, name, length, err);
    if (!t->name)
        return HEED_MEMORY;
    if (type >= TYPES || types[type].type < 0)
        return heed__found_fail(f, err,
                                "tensor '%.100s' is of type %s (%u), heed opens F32, F16, BF16, "
                                "Q8_0 and Q4_0",
                                t->name, type < TYPES ? types[type].name : "unknown", type);
    t->type = (heed__found_type)types[type].type;
    return HEED_OK;
}

static heed_status add_tensor(heed__found *f, const heed__byte_cursor *data, heed__found_tensor *t,
                              uint64_t offset, heed_error *err)
{
    int64_t n = 1;
    const size_t left = heed__bytes_left(data);
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] < 0 || (t->dim[i] && n > INT64_MAX / t->dim[i]))
            return heed__found_fail(f, err, "tensor '%.100s' has dimensions that cannot be",
                                    t->name);
        else
            n *= t->dim[i];
    if (!heed__found_bytes(t->type, n, &t->bytes) || offset > left || t->bytes > left - offset)
        return heed__found_fail(f, err,
                                "tensor '%.100s' begins at %llu and has %lld values, the file has "
                                "%zu bytes of data",
                                t->name, (unsigned long long)offset, (long long)n, left);
    t->data = data->at + offset;
    return heed__found_add(f, t, err);
}

/* Numbers and texts that stand alone, and the lengths of arrays: enough to know the model. */
static heed_status say_pairs(heed__found *f, const heed__gguf *g, heed_error *err)
{
    heed_status status = HEED_OK;
    for (uint64_t i = 0; !status && i < g->pairs; i++) {
        const heed__gguf_pair *p = &g->pair[i];
        const char *key = heed__found_text(f, p->key, p->key_length, err);
        if (!key)
            return HEED_MEMORY;
        if (p->array)
            continue;
        if (p->type == HEED__GGUF_STRING) {
            heed__byte_cursor c = p->values;
            size_t length;
            const char *text = heed__gguf_string(&c, &length);
            json_t *value = json_stringn(text, length);
            if (value) /* what is not UTF-8 says nothing */
                status = heed__found_say(f, key, value, err);
        } else {
            const double x = heed__gguf_number(g, key, 0);
            if (isfinite(x))
                status = heed__found_say(f, key, json_real(x), err);
        }
    }
    const heed__gguf_pair *tokens = heed__gguf_find(g, "tokenizer.ggml.tokens");
    if (!status && tokens && tokens->array)
        status = heed__found_say(f, "tokens", json_integer((json_int_t)tokens->n), err);
    return status;
}

static heed_status read_tensors(heed__found *f, const heed__gguf *g, heed_error *err)
{
    heed__byte_cursor c = g->infos;
    const double alignment = heed__gguf_number(g, "general.alignment", 32);
    if (!(alignment >= 1 && alignment <= 1 << 20))
        return heed__found_fail(f, err, "general.alignment is %g, expected 1 to %d", alignment,
                                1 << 20);
    struct info {
        heed__found_tensor tensor;
        uint64_t offset;
    } * info;
    if (g->tensors > heed__bytes_left(&c) / 24)
        return heed__found_fail(f, err, "it announces %llu tensors, more than it can hold",
                                (unsigned long long)g->tensors);
    info = heed__found_take(f, (size_t)g->tensors, sizeof *info, err);
    if (!info)
        return HEED_MEMORY;
    for (uint64_t i = 0; i < g->tensors; i++) {
        heed_status status = read_info(f, &c, &info[i].tensor, &info[i].offset, err);
        if (status)
            return status;
    }
    const size_t align = (size_t)alignment, past = heed__bytes_offset(&c) % align;
    if (g->tensors > 0 && past && !heed__read_bytes(&c, align - past))
        return heed__found_fail(f, err, "it ends before its data");
    heed_status status = HEED_OK;
    for (uint64_t i = 0; !status && i < g->tensors; i++)
        status = add_tensor(f, &c, &info[i].tensor, info[i].offset, err);
    return status;
}

heed_status heed__gguf_read(heed__found *f, const void *bytes, size_t size, heed_error *err)
{
    heed__gguf g;
    f->format = "GGUF";
    heed_status status = heed__gguf_open(&g, f->path, bytes, size, &f->allocator, err);
    if (status)
        return status;
    status = say_pairs(f, &g, err);
    if (!status)
        status = read_tensors(f, &g, err);
    heed__gguf_close(&g);
    return status;
}
