/* marian_write.c: see marian_write.h; formats: marian.c, npz.c, lex.h.  Data begins at a multiple
 * of 256 bytes, and so does each tensor's, as Marian's allocator has it. */
#include "files/marian_write.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "files/lex.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define ALIGNED 256
enum { FLOAT32 = 0x404, INT8 = 0x101, INTGEMM8 = 0x4101 };

/* A file being written; the first error stays. */
struct out {
    heed__atomic_file *file;
    size_t size;
    heed_error *err;
};

static void put(struct out *o, const void *bytes, size_t size)
{
    if (!o->err->status)
        heed__atomic_write(o->file, bytes, size, o->err);
    o->size += size;
}

static void put_number(struct out *o, uint64_t value, int bytes)
{
    unsigned char text[8];
    for (int i = 0; i < bytes; i++)
        text[i] = (unsigned char)(value >> 8 * i);
    put(o, text, (size_t)bytes);
}

static void put_zeros(struct out *o, size_t count)
{
    static const unsigned char zeros[ALIGNED];
    for (; count; count -= count < ALIGNED ? count : ALIGNED)
        put(o, zeros, count < ALIGNED ? count : ALIGNED);
}

static bool begin(struct out *o, const char *path, heed_error *own)
{
    *o = (struct out){.err = own};
    o->file = heed__atomic_open(path, NULL, own);
    return o->file;
}

static heed_status end(struct out *o, heed_error *err)
{
    if (o->file && !o->err->status)
        heed__atomic_commit(o->file, o->err);
    else
        heed__atomic_abandon(o->file);
    return o->err->status ? heed__fail(err, o->err->status, "%s", o->err->text) : HEED_OK;
}

static int64_t count_of(const heed__marian_item *i)
{
    return i->rank == 2 ? i->rows * i->cols : i->cols;
}

/* ---- .bin ---- */

static size_t bytes_of(const heed__marian_item *i)
{
    const size_t n = (size_t)count_of(i);
    const size_t bytes = i->kind == HEED__MARIAN_FP32   ? n * sizeof(float)
                         : i->kind == HEED__MARIAN_INT8 ? n + sizeof(float)
                                                        : n;
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Bytes of rows are 0 to 254 there, and pairs of products are added in 16 bits, which saturate
 * where there is no VNNI: two weights that meet may sum to 129, rounded. */
#define MOST_PAIR 128

float heed__marian_multiplier(const heed__marian_item *item)
{
    const int64_t n = item->rows * item->cols, next = item->table ? 1 : item->cols;
    float largest = 0, pair = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = item->table ? i % item->cols : i / item->cols;
        largest = fmaxf(largest, fabsf(item->value[i]));
        if (k % 2 == 0 && i + next < n)
            pair = fmaxf(pair, fabsf(item->value[i] + item->value[i + next]));
    }
    if (!(largest > 0))
        return 1;
    return pair > 0 ? fminf(127 / largest, MOST_PAIR / pair) : 127 / largest;
}

static void put_int8(struct out *o, const heed__marian_item *i)
{
    const float multiplier = heed__marian_multiplier(i);
    const int64_t across = i->table ? i->cols : i->rows, n = i->rows * i->cols;
    const heed_allocator a = heed__allocator_or_default(NULL);
    int8_t *line = heed__allocate(&a, (size_t)across, 1);
    if (!line) {
        heed__fail(o->err, HEED_MEMORY, "out of memory for '%s'", i->name);
        return;
    }
    for (int64_t at = 0; at < n; at += across) {
        for (int64_t k = 0; k < across; k++) {
            const float x = i->table ? i->value[at + k] : i->value[k * i->cols + at / across];
            line[k] = (int8_t)lrintf(fmaxf(-127, fminf(127, x * multiplier)));
        }
        put(o, line, (size_t)across);
    }
    heed__release(&a, line, (size_t)across, 1);
    put(o, &multiplier, sizeof multiplier);
}

heed_status heed__marian_write_bin(const char *path, const heed__marian_item *item, int64_t count,
                                   heed_error *err)
{
    static const uint64_t types[] = {FLOAT32, INTGEMM8, INT8};
    heed_error own = {0};
    struct out o;
    if (!begin(&o, path, &own))
        return end(&o, err);
    put_number(&o, 1, 8);
    put_number(&o, (uint64_t)count, 8);
    for (int64_t i = 0; i < count; i++) {
        put_number(&o, strlen(item[i].name) + 1, 8);
        put_number(&o, types[item[i].kind], 8);
        put_number(&o, (uint64_t)item[i].rank, 8);
        put_number(&o, bytes_of(&item[i]), 8);
    }
    for (int64_t i = 0; i < count; i++)
        put(&o, item[i].name, strlen(item[i].name) + 1);
    for (int64_t i = 0; i < count; i++) {
        if (item[i].rank == 2)
            put_number(&o, (uint64_t)item[i].rows, 4);
        put_number(&o, (uint64_t)item[i].cols, 4);
    }
    const size_t pad = ((o.size + 8) / ALIGNED + 1) * ALIGNED - o.size - 8;
    put_number(&o, pad, 8);
    put_zeros(&o, pad);
    for (int64_t i = 0; i < count; i++) {
        const size_t before = o.size;
        if (item[i].kind == HEED__MARIAN_INT8)
            put_int8(&o, &item[i]);
        else if (item[i].kind == HEED__MARIAN_FP32)
            put(&o, item[i].value, (size_t)count_of(&item[i]) * sizeof(float));
        else
            put(&o, item[i].text, (size_t)item[i].cols);
        put_zeros(&o, bytes_of(&item[i]) - (o.size - before));
    }
    return end(&o, err);
}

/* ---- .npz: a zip of .npy, stored ---- */

struct entry {
    char name[160], header[192];
    size_t header_size, bytes, at;
    uint32_t sum;
    const void *data;
};

static void describe(struct entry *e, const heed__marian_item *i)
{
    char shape[64];
    if (i->rank == 2)
        snprintf(shape, sizeof shape, "(%lld, %lld)", (long long)i->rows, (long long)i->cols);
    else
        snprintf(shape, sizeof shape, "(%lld,)", (long long)i->cols);
    char text[128];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                     i->kind == HEED__MARIAN_TEXT ? "|i1" : "<f4", shape);
    const int padded = (10 + n + 1 + 63) / 64 * 64 - 10; /* as NumPy has it */
    memcpy(e->header, "\x93NUMPY\x01\x00", 8);
    e->header[8] = (char)(padded & 255);
    e->header[9] = (char)(padded >> 8);
    memset(e->header + 10, ' ', (size_t)padded);
    memcpy(e->header + 10, text, (size_t)n);
    e->header[10 + padded - 1] = '\n';
    e->header_size = (size_t)padded + 10;
    e->data = i->kind == HEED__MARIAN_TEXT ? (const void *)i->text : i->value;
    e->bytes = (size_t)count_of(i) * (i->kind == HEED__MARIAN_TEXT ? 1 : sizeof(float));
    snprintf(e->name, sizeof e->name, "%.150s.npy", i->name);
    e->sum =
        (uint32_t)crc32_z(crc32_z(0, (const Bytef *)e->header, e->header_size), e->data, e->bytes);
}

/* A header before an entry's bytes, or its line of the list at the end. */
static void put_entry(struct out *o, const struct entry *e, bool list)
{
    const size_t size = e->header_size + e->bytes;
    put_number(o, list ? 0x02014b50 : 0x04034b50, 4);
    put_number(o, 20, 2);
    if (list)
        put_number(o, 20, 2);
    put_number(o, 0, 4);          /* flags, stored */
    put_number(o, 0x00210000, 4); /* 1 January 1980 */
    put_number(o, e->sum, 4);
    put_number(o, size, 4);
    put_number(o, size, 4);
    put_number(o, strlen(e->name), 2);
    put_number(o, 0, 2);
    if (list) {
        put_number(o, 0, 8);
        put_number(o, 0, 2);
        put_number(o, e->at, 4);
    }
    put(o, e->name, strlen(e->name));
}

heed_status heed__marian_write_npz(const char *path, const heed__marian_item *item, int64_t count,
                                   heed_error *err)
{
    heed_error own = {0};
    struct out o;
    const heed_allocator a = heed__allocator_or_default(NULL);
    struct entry *all = heed__allocate_zeroed(&a, (size_t)count, sizeof *all);
    if (!all)
        return heed__fail(err, HEED_MEMORY, "out of memory for '%.255s'", path);
    if (begin(&o, path, &own)) {
        for (int64_t i = 0; i < count; i++) {
            describe(&all[i], &item[i]);
            all[i].at = o.size;
            put_entry(&o, &all[i], false);
            put(&o, all[i].header, all[i].header_size);
            put(&o, all[i].data, all[i].bytes);
        }
        const size_t list = o.size;
        for (int64_t i = 0; i < count; i++)
            put_entry(&o, &all[i], true);
        const size_t listed = o.size - list;
        put_number(&o, 0x06054b50, 4);
        put_number(&o, 0, 4);
        put_number(&o, (uint64_t)count, 2);
        put_number(&o, (uint64_t)count, 2);
        put_number(&o, listed, 4);
        put_number(&o, list, 4);
        put_number(&o, 0, 2);
        if (!own.status && (list > UINT32_MAX || count > UINT16_MAX))
            heed__fail(&own, HEED_ARGUMENT, "'%.255s' would be larger than a plain zip may be",
                       path);
    }
    heed__release(&a, all, (size_t)count, sizeof *all);
    return end(&o, err);
}

/* ---- the shortlist ---- */

heed_status heed__lex_write(const char *path, int64_t first, int64_t best, int64_t sources,
                            const int64_t *offset, const int32_t *id, heed_error *err)
{
    const int64_t entries = offset[sources];
    const uint64_t head[] = {(uint64_t)first, (uint64_t)best, (uint64_t)sources + 1,
                             (uint64_t)entries};
    uint64_t h = 0;
#define CHECK(v) h ^= (v) + 0x9e3779b9u + (h << 6) + (h >> 2)
    for (int i = 0; i < 4; i++)
        CHECK(head[i]);
    for (int64_t i = 0; i <= sources; i++)
        CHECK((uint64_t)offset[i]);
    for (int64_t k = 0; k + 1 < entries; k += 2)
        CHECK((uint64_t)(uint32_t)id[k] | (uint64_t)(uint32_t)id[k + 1] << 32);
#undef CHECK
    heed_error own = {0};
    struct out o;
    if (begin(&o, path, &own)) {
        put_number(&o, HEED__LEX_MAGIC, 8);
        put_number(&o, h, 8);
        for (int i = 0; i < 4; i++)
            put_number(&o, head[i], 8);
        for (int64_t i = 0; i <= sources; i++)
            put_number(&o, (uint64_t)offset[i], 8);
        for (int64_t k = 0; k < entries; k++)
            put_number(&o, (uint64_t)id[k], 4);
    }
    return end(&o, err);
}
