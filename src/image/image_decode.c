/* image_decode.c: one picture from a file or from memory; which decoder, the first bytes tell. */
#include "image/image_decode.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

#include <string.h>
#include <zlib.h>

heed_status heed__image_allocate(heed_image *image, const heed__picture_bytes *from, int64_t height,
                                 int64_t width, int64_t channels, const heed_allocator *a,
                                 heed_error *err)
{
    if (height < 1 || width < 1 || height > HEED__IMAGE_PIXELS / width)
        return heed__fail(err, HEED_FORMAT, "%s is %lld x %lld, expected 1 to %lld pixels",
                          from->name, (long long)width, (long long)height,
                          (long long)HEED__IMAGE_PIXELS);
    *image = (heed_image){height, width, channels, NULL};
    image->pixels = heed__allocate_zeroed(a, (size_t)(height * width), (size_t)channels);
    if (!image->pixels)
        return heed__fail(err, HEED_MEMORY, "out of memory for the %lld x %lld pixels of %s",
                          (long long)width, (long long)height, from->name);
    return HEED_OK;
}

heed_status heed_image_decode(const void *bytes, size_t size, const char *name,
                              const heed_allocator *allocator, heed_image *image, heed_error *err)
{
    if (!bytes)
        return heed__missing(err, "bytes");
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    const heed_allocator a = heed__allocator_or_default(allocator);
    const heed__picture_bytes from = {bytes, size, name};
    heed_status status;
    *image = (heed_image){0};
    if (size >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        status = heed__image_png(&from, &a, image, err);
    else if (size >= 2 && from.at[0] == 0xff && from.at[1] == 0xd8)
        status = heed__image_jpeg(&from, &a, image, err);
    else if (size >= 2 && from.at[0] == 'P' && from.at[1] >= '1' && from.at[1] <= '6')
        status = heed__image_ppm(&from, &a, image, err);
    else
        status = heed__fail(err, HEED_FORMAT, "%s is none of PNG, JPEG, PPM", name);
    if (status)
        heed_image_free(image, &a);
    return status;
}

heed_status heed_image_read(const char *path, const heed_allocator *allocator, heed_image *image,
                            heed_error *err)
{
    if (!path)
        return heed__missing(err, "path");
    const void *bytes;
    size_t size;
    *image = (heed_image){0};
    heed_status status = heed__file_map(path, &bytes, &size, err);
    if (status)
        return status;
    status = heed_image_decode(bytes, size, path, allocator, image, err);
    heed__file_unmap(bytes, size);
    return status;
}

void heed_image_free(heed_image *image, const heed_allocator *allocator)
{
    if (!image)
        return;
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed__release(&a, image->pixels, (size_t)(image->height * image->width),
                  (size_t)image->channels);
    *image = (heed_image){0};
}

/* ---- whole files ---- */

#define FIRST ((size_t)1 << 16)

static heed_status grow(const heed_allocator *a, uint8_t **bytes, size_t *allocated, size_t wanted)
{
    uint8_t *more = heed__allocate(a, wanted, 1);
    if (!more)
        return HEED_MEMORY;
    if (*bytes)
        memcpy(more, *bytes, *allocated);
    heed__release(a, *bytes, *allocated, 1);
    *bytes = more;
    *allocated = wanted;
    return HEED_OK;
}

heed_status heed__file_inflate(const char *path, size_t limit, const heed_allocator *a,
                               uint8_t **bytes, size_t *size, size_t *allocated, heed_error *err)
{
    *bytes = NULL;
    *size = *allocated = 0;
    gzFile file = gzopen(path, "rb");
    if (!file)
        return heed__fail(err, HEED_IO, "cannot open %s", path);
    heed_status status = HEED_OK;
    int got = 0;
    do {
        if (*size == *allocated &&
            grow(a, bytes, allocated, *allocated ? 2 * *allocated : FIRST) != HEED_OK) {
            status = heed__fail(err, HEED_MEMORY, "out of memory for %s", path);
            break;
        }
        const size_t room = *allocated - *size;
        got = gzread(file, *bytes + *size, room < (1u << 30) ? (unsigned)room : 1u << 30);
        *size += got > 0 ? (size_t)got : 0;
        if (*size > limit) {
            status = heed__fail(err, HEED_FORMAT, "%s has more than %zu bytes", path, limit);
            break;
        }
    } while (got > 0);
    int number = Z_OK;
    gzerror(file, &number);
    if (!status && (got < 0 || number == Z_BUF_ERROR))
        status = heed__fail(err, number == Z_ERRNO ? HEED_IO : HEED_FORMAT,
                            "%s cannot be read to its end: damaged, truncated or not a file", path);
    gzclose_r(file);
    if (status) {
        heed__release(a, *bytes, *allocated, 1);
        *bytes = NULL;
    }
    return status;
}
