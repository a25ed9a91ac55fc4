/* png.c: PNG by libpng.  Grey, RGB, palettes and less than 8 bits become 8 bits of grey or RGB;
 * transparent pixels are mixed with white. */
#include "image/image_decode.h"

#include "base/memory.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

typedef struct source {
    const heed__picture_bytes *bytes;
    size_t at;
    const heed_allocator *a;
    heed_image *image;
    png_bytep *lines;  /* (height) */
    uint8_t *mixed;    /* with alpha: the pixels before they are mixed, and their size */
    size_t line_bytes; /* of a line of `mixed`; 0: none */
    char text[128];    /* what libpng said */
    heed_error *err;
} source;

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    source *s = png_get_io_ptr(png);
    if (n > s->bytes->size - s->at)
        png_error(png, "it ends too early");
    memcpy(to, s->bytes->at + s->at, n);
    s->at += n;
}

static void failed(png_structp png, png_const_charp text)
{
    source *s = png_get_error_ptr(png);
    snprintf(s->text, sizeof s->text, "%s", text);
    png_longjmp(png, 1);
}

static void warned(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* Pixels of 2 or 4 channels, the last of which says how much of them is seen. */
static void mix(heed_image *image, const uint8_t *from)
{
    const int64_t n = image->height * image->width, c = image->channels;
    for (int64_t i = 0; i < n; i++, from += c + 1)
        for (int64_t k = 0; k < c; k++)
            image->pixels[i * c + k] =
                (uint8_t)((from[k] * from[c] + 255 * (255 - from[c]) + 127) / 255);
}

/* Everything between setjmp and its return: whatever it allocates hangs on s. */
static heed_status decode(png_structp png, png_infop info, source *s)
{
    png_read_info(png, info);
    if (png_get_bit_depth(png, info) == 16)
        return heed__fail(s->err, HEED_FORMAT, "%s has 16 bits a channel, expected 8",
                          s->bytes->name);
    png_set_expand(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    const int64_t height = png_get_image_height(png, info), width = png_get_image_width(png, info);
    const int channels = png_get_channels(png, info);
    const bool alpha = channels == 2 || channels == 4;
    heed_status status = heed__image_allocate(s->image, s->bytes, height, width,
                                              alpha ? channels - 1 : channels, s->a, s->err);
    if (status)
        return status;
    uint8_t *to = s->image->pixels;
    s->lines = heed__allocate(s->a, (size_t)height, sizeof *s->lines);
    if (alpha) {
        s->line_bytes = (size_t)(width * channels);
        to = s->mixed = heed__allocate(s->a, (size_t)height, s->line_bytes);
    }
    if (!s->lines || !to)
        return heed__fail(s->err, HEED_MEMORY, "out of memory for the pixels of %s",
                          s->bytes->name);
    for (int64_t y = 0; y < height; y++)
        s->lines[y] = to + y * width * channels;
    png_read_image(png, s->lines);
    png_read_end(png, NULL);
    if (alpha)
        mix(s->image, s->mixed);
    return HEED_OK;
}

heed_status heed__image_png(const heed__picture_bytes *from, const heed_allocator *a,
                            heed_image *image, heed_error *err)
{
    source s = {.bytes = from, .a = a, .image = image, .err = err};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, failed, warned);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    volatile heed_status status = HEED_MEMORY;
    if (!info) {
        heed__fail(err, HEED_MEMORY, "out of memory for the header of %s", from->name);
    } else if (setjmp(png_jmpbuf(png))) {
        status = heed__fail(err, HEED_FORMAT, "%s is damaged: %s", from->name, s.text);
    } else {
        png_set_read_fn(png, &s, read_bytes);
        /* The limit of heed__image_allocate says it better. */
        png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
        status = decode(png, info, &s);
    }
    heed__release(a, s.lines, (size_t)image->height, sizeof *s.lines);
    heed__release(a, s.mixed, (size_t)image->height, s.line_bytes);
    png_destroy_read_struct(&png, &info, NULL);
    return status;
}
