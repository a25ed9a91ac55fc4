/* marian.c: Marian's .bin, version 1, as marian-dev and the Firefox translators' fork write it.
 *
 *     u64 1 | u64 n | n x {u64 name length, u64 type, u64 shape length, u64 data length}
 *     | names with their NUL | i32 shapes | u64 padding, padding | data
 *
 * intgemm8: the matrix's bytes transposed, then its float multiplier; value = byte / multiplier.
 * The shape stays that of the float matrix.  Embeddings (names with "Wemb") are not transposed. */
#include "files/found.h"

#include <math.h>
#include <stdio.h>

enum {
    FLOAT32 = 0x404,
    FLOAT16 = 0x402,
    INT8 = 0x101,
    INTGEMM8 = 0x10001,     /* marian-dev */
    INTGEMM8_FORK = 0x4101, /* the fork of Bergamot and Firefox */
};

static const char *machine_type(uint64_t type)
{
    switch (type) {
    case 0x1801:
        return "packed8avx2";
    case 0x1802:
        return "packed8avx512";
    case 0x802:
        return "packed16";
    case 0x11001:
        return "intgemm8avx2";
    case 0x12001:
        return "intgemm8avx512";
    case 0x10002:
    case 0x4102:
        return "intgemm16";
    default:
        return NULL;
    }
}

struct item {
    uint64_t name_length, type, shape_length, data_length;
    const char *name;
    int64_t dim[HEED__FOUND_RANK];
};

static heed_status set_type(heed__found *f, const struct item *item, heed__found_tensor *t,
                            heed_error *err)
{
    const char *machine = machine_type(item->type);
    switch (item->type) {
    case FLOAT32:
        t->type = HEED__FOUND_F32;
        return HEED_OK;
    case FLOAT16:
        t->type = HEED__FOUND_F16;
        return HEED_OK;
    case INT8:
    case INTGEMM8:
    case INTGEMM8_FORK:
        t->type = HEED__FOUND_I8;
        return HEED_OK;
    default:
        return machine
                   ? heed__found_fail(f, err,
                                      "'%.100s' is of type %s, which is packed for one machine; "
                                      "heed opens float32, float16 and intgemm8",
                                      item->name, machine)
                   : heed__found_fail(f, err,
                                      "'%.100s' is of type 0x%llx, which heed does not know",
                                      item->name, (unsigned long long)item->type);
    }
}

/* Bytes turned back to the shape that the header says, and their scale. */
static heed_status unpack(heed__found *f, heed__found_tensor *t, heed_error *err)
{
    const size_t n = t->bytes;
    if (t->rank > 2)
        return heed__found_fail(f, err, "'%.100s' is packed and has %d dimensions, expected 2",
                                t->name, t->rank);
    float *scale = heed__found_take(f, 1, sizeof *scale, err);
    if (!scale)
        return HEED_MEMORY;
    memcpy(scale, t->data + n, sizeof *scale);
    if (!(isfinite(*scale) && *scale > 0))
        return heed__found_fail(f, err, "'%.100s' has a multiplier of %g", t->name, (double)*scale);
    t->scale = scale;
    t->scales = 1;
    t->divides = true;
    if (strstr(t->name, "Wemb") || t->rank != 2)
        return HEED_OK;
    unsigned char *back = heed__found_take(f, n, 1, err);
    if (!back)
        return HEED_MEMORY;
    const size_t rows = (size_t)t->dim[0], cols = rows ? (size_t)t->dim[1] : 0;
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            back[i * cols + j] = t->data[j * rows + i];
    t->data = back;
    return HEED_OK;
}

static heed_status add_item(heed__found *f, heed__byte_cursor *c, const struct item *item,
                            heed_error *err)
{
    heed__found_tensor t = {.name = item->name, .rank = (int)item->shape_length};
    int64_t n = 1;
    size_t needed;
    heed_status status = set_type(f, item, &t, err);
    for (int i = 0; !status && i < t.rank; i++) {
        t.dim[i] = item->dim[i];
        if (t.dim[i] < 0 || (t.dim[i] && n > INT32_MAX / t.dim[i]))
            return heed__found_fail(f, err, "'%.100s' has a shape that cannot be", item->name);
        n *= t.dim[i];
    }
    t.data = status ? NULL : heed__read_bytes(c, item->data_length);
    if (status)
        return status;
    const bool packed = item->type == INTGEMM8 || item->type == INTGEMM8_FORK;
    heed__found_bytes(t.type, n, &needed);
    t.bytes = needed;
    needed += packed ? sizeof(float) : 0;
    if (!t.data || item->data_length < needed) /* padding may follow */
        return heed__found_fail(f, err,
                                "'%.100s' has %llu bytes, expected at least %zu in the file",
                                item->name, (unsigned long long)item->data_length, needed);
    if (packed)
        status = unpack(f, &t, err);
    return status ? status : heed__found_add(f, &t, err);
}

static heed_status read_headers(heed__found *f, heed__byte_cursor *c, struct item *item, uint64_t n,
                                heed_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        item[i].name_length = heed__read_u64(c);
        item[i].type = heed__read_u64(c);
        item[i].shape_length = heed__read_u64(c);
        item[i].data_length = heed__read_u64(c);
        if (item[i].shape_length > HEED__FOUND_RANK)
            return heed__found_fail(f, err, "tensor %llu has %llu dimensions",
                                    (unsigned long long)i + 1,
                                    (unsigned long long)item[i].shape_length);
    }
    for (uint64_t i = 0; i < n; i++) {
        const unsigned char *name = heed__read_bytes(c, item[i].name_length);
        if (!name || item[i].name_length < 2 || name[item[i].name_length - 1] != '\0')
            return heed__found_fail(f, err, "the name of tensor %llu is damaged",
                                    (unsigned long long)i + 1);
        item[i].name = (const char *)name;
    }
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < item[i].shape_length; k++)
            item[i].dim[k] = (int32_t)heed__read_u32(c);
    heed__read_bytes(c, heed__read_u64(c));
    return c->broken ? heed__found_fail(f, err, "its headers leave the file") : HEED_OK;
}

heed_status heed__marian_read(heed__found *f, const void *bytes, size_t size, heed_error *err)
{
    heed__byte_cursor c = heed__bytes_over(bytes, size);
    const uint64_t version = heed__read_u64(&c), n = heed__read_u64(&c);
    f->format = "Marian";
    if (!c.broken && version == 2)
        return heed__found_fail(f, err, "it is encrypted (version 2 of Marian's .bin)");
    if (c.broken || version != 1 || n > heed__bytes_left(&c) / 32)
        return heed__found_fail(f, err, "it is no .bin of Marian, or cut short");
    struct item *item = heed__found_take(f, (size_t)n, sizeof *item, err);
    heed_status status = item ? read_headers(f, &c, item, n, err) : HEED_MEMORY;
    for (uint64_t i = 0; !status && i < n; i++)
        status = add_item(f, &c, &item[i], err);
    return status;
}
