/* image_decode.h: what the readers of single pictures share. */
#ifndef HEED_IMAGE_IMAGE_DECODE_H
#define HEED_IMAGE_IMAGE_DECODE_H

#include "base/error.h"

#include <heed/image.h>

/* More is taken for a mistake, or an attack: 64 million pixels. */
#define HEED__IMAGE_PIXELS ((int64_t)1 << 26)

/* Bytes in memory and the name they go by in messages. */
typedef struct heed__picture_bytes {
    const uint8_t *at;
    size_t size;
    const char *name;
} heed__picture_bytes;

/* Checks a header's sizes and allocates the pixels, which are zero. */
heed_status heed__image_allocate(heed_image *image, const heed__picture_bytes *from, int64_t height,
                                 int64_t width, int64_t channels, const heed_allocator *a,
                                 heed_error *err);

/* Each fills image, or fails; then whatever it has allocated is released by the caller. */
heed_status heed__image_png(const heed__picture_bytes *from, const heed_allocator *a,
                            heed_image *image, heed_error *err);
heed_status heed__image_jpeg(const heed__picture_bytes *from, const heed_allocator *a,
                             heed_image *image, heed_error *err);
heed_status heed__image_ppm(const heed__picture_bytes *from, const heed_allocator *a,
                            heed_image *image, heed_error *err);

/* A whole file, decompressed if it is gzip, at most `limit` bytes. */
heed_status heed__file_inflate(const char *path, size_t limit, const heed_allocator *a,
                               uint8_t **bytes, size_t *size, size_t *allocated, heed_error *err);

#endif
