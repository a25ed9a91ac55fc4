/* idx.c: IDX, the format of MNIST and its relatives: two zero bytes, the type of the numbers, how
 * many sizes, each of the sizes as a big-endian 32-bit number, then the numbers. */
#include "image/image_decode.h"
#include "image/picture_set.h"

#include "base/memory.h"

#include <zlib.h>

#define LIMIT ((size_t)1 << 32) /* bytes of a file, decompressed */
enum { BYTES = 8, SHORTS = 0x0b };

typedef struct idx {
    uint8_t *bytes;
    size_t size, allocated;
    int type, rank;
    int64_t dim[4];
    size_t first; /* where the numbers begin */
} idx;

static int64_t big_endian(const uint8_t *p, int n)
{
    int64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* Everything the header says is checked against the file's length. */
static heed_status check(idx *x, const char *path, heed_error *err)
{
    if (x->size < 4 || x->bytes[0] || x->bytes[1])
        return heed__fail(err, HEED_FORMAT,
                          "%s is no IDX file: it begins with %02x %02x %02x %02x, expected 00 00",
                          path, x->size > 0 ? x->bytes[0] : 0, x->size > 1 ? x->bytes[1] : 0,
                          x->size > 2 ? x->bytes[2] : 0, x->size > 3 ? x->bytes[3] : 0);
    x->type = x->bytes[2];
    x->rank = x->bytes[3];
    if ((x->type != BYTES && x->type != SHORTS) || x->rank < 1 || x->rank > 4)
        return heed__fail(err, HEED_FORMAT,
                          "%s is IDX of type 0x%02x with %d sizes, expected 0x08 (bytes) or 0x0b "
                          "(16 bits) with 1 to 4",
                          path, (unsigned)x->type, x->rank);
    x->first = 4 + 4 * (size_t)x->rank;
    int64_t count = x->type == BYTES ? 1 : 2;
    for (int i = 0; i < x->rank; i++) {
        x->dim[i] = x->size >= x->first ? big_endian(x->bytes + 4 + 4 * i, 4) : -1;
        if (x->dim[i] < 0 || !heed__multiply(count, x->dim[i], &count))
            return heed__fail(err, HEED_FORMAT, "%s: the header of an IDX file is not whole", path);
    }
    if ((uint64_t)count != x->size - x->first)
        return heed__fail(err, HEED_FORMAT,
                          "%s has %zu bytes behind its header, which promises %lld", path,
                          x->size - x->first, (long long)count);
    return HEED_OK;
}

static heed_status read_idx(idx *x, const char *path, const heed_allocator *a, heed_error *err)
{
    *x = (idx){0};
    heed_status status =
        heed__file_inflate(path, LIMIT, a, &x->bytes, &x->size, &x->allocated, err);
    return status ? status : check(x, path, err);
}

static heed_status take_labels(heed_pictures *p, const idx *x, const char *path, heed_error *err)
{
    heed_pictures_report *r = &p->report;
    if (x->rank != 1)
        return heed__fail(err, HEED_FORMAT, "%s has %d sizes, expected 1: labels", path, x->rank);
    if (x->dim[0] != r->count)
        return heed__fail(err, HEED_FORMAT, "%s has %lld labels for %lld pictures", path,
                          (long long)x->dim[0], (long long)r->count);
    p->label = heed_arena_allocate(p->arena, (size_t)r->count * sizeof *p->label);
    if (!p->label)
        return heed__fail(err, HEED_MEMORY, "out of memory for the labels of %s", path);
    const int bytes = x->type == BYTES ? 1 : 2;
    for (int64_t i = 0; i < r->count; i++) {
        p->label[i] = (int32_t)big_endian(x->bytes + x->first + (size_t)(i * bytes), bytes);
        r->classes = p->label[i] >= r->classes ? p->label[i] + 1 : r->classes;
    }
    r->checksum = (uint32_t)crc32_z(r->checksum, x->bytes, x->size);
    return HEED_OK;
}

static heed_status take_images(heed_pictures *p, const idx *x, const char *path, heed_error *err)
{
    heed_pictures_report *r = &p->report;
    const int64_t channels = x->rank == 4 ? x->dim[3] : 1;
    if (x->type != BYTES || x->rank < 3 || (channels != 1 && channels != 3))
        return heed__fail(err, HEED_FORMAT,
                          "%s has %d sizes of type 0x%02x, expected pictures: (N,Y,X) or (N,Y,X,3) "
                          "bytes",
                          path, x->rank, (unsigned)x->type);
    if (x->dim[0] < 1 || x->dim[1] < 1 || x->dim[2] < 1)
        return heed__fail(err, HEED_FORMAT, "%s has no pictures: %lld of %lld x %lld pixels", path,
                          (long long)x->dim[0], (long long)x->dim[2], (long long)x->dim[1]);
    r->count = x->dim[0];
    r->checksum = (uint32_t)crc32_z(0, x->bytes, x->size);
    const heed_image first = {x->dim[1], x->dim[2], channels, x->bytes + x->first};
    heed__pictures_like(p, &first);
    if (r->height == first.height && r->width == first.width && r->channels == channels)
        return HEED_OK;
    /* Other sizes were asked for: all are scaled now. */
    int64_t each = r->height * r->width * r->channels, all;
    if (!heed__multiply(each, r->count, &all) || (uint64_t)all > LIMIT)
        return heed__fail(err, HEED_ARGUMENT, "%lld pictures of %lld x %lld are too many bytes",
                          (long long)r->count, (long long)r->width, (long long)r->height);
    p->bytes = heed__allocate(&p->allocator, (size_t)all, 1);
    p->allocated = (size_t)all;
    if (!p->bytes)
        return heed__fail(err, HEED_MEMORY, "out of memory for the pictures of %s", path);
    for (int64_t i = 0; i < r->count; i++) {
        heed_image from = first, to = {r->height, r->width, r->channels, p->bytes + i * each};
        from.pixels += i * first.height * first.width * channels;
        heed_image_scale(&from, &to);
    }
    return HEED_OK;
}

heed_pictures *heed_pictures_idx(const char *images, const char *labels,
                                 const heed_pictures_options *options,
                                 const heed_allocator *allocator, heed_error *err)
{
    heed_pictures *p = heed__pictures_new(options, allocator, err);
    if (!p)
        return NULL;
    idx x, y = {0};
    heed_status status = read_idx(&x, images, &p->allocator, err);
    if (!status)
        status = take_images(p, &x, images, err);
    if (!status && !p->bytes) {
        p->bytes = x.bytes;
        p->allocated = x.allocated;
        p->skip = x.first;
        x.bytes = NULL;
    }
    if (!status && labels && !(status = read_idx(&y, labels, &p->allocator, err)))
        status = take_labels(p, &y, labels, err);
    heed__release(&p->allocator, x.bytes, x.allocated, 1);
    heed__release(&p->allocator, y.bytes, y.allocated, 1);
    if (status) {
        heed_pictures_free(p);
        return NULL;
    }
    return p;
}
