/* jpeg.c: JPEG by libjpeg, grey or RGB.  A file whose data end early or are damaged is refused, not
 * filled up with grey. */
#include <stddef.h>
#include <stdio.h>

#include "image/image_decode.h"

#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>

typedef struct reader {
    struct jpeg_error_mgr manager; /* first: libjpeg hands it back */
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
} reader;

static void failed(j_common_ptr c)
{
    reader *r = (reader *)c->err;
    c->err->format_message(c, r->text);
    longjmp(r->back, 1);
}

/* Warnings about what does not touch the pixels are passed over. */
static void noted(j_common_ptr c, int level)
{
    const int code = c->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM &&
        code != JWRN_JFIF_MAJOR)
        failed(c);
}

static void quiet(j_common_ptr c)
{
    (void)c;
}

static heed_status decode(struct jpeg_decompress_struct *d, const heed__picture_bytes *from,
                          const heed_allocator *a, heed_image *image, heed_error *err)
{
    jpeg_mem_src(d, from->at, (unsigned long)from->size);
    jpeg_read_header(d, TRUE);
    if (d->num_components != 1 && d->num_components != 3)
        return heed__fail(err, HEED_FORMAT, "%s has %d channels (CMYK), expected grey or RGB",
                          from->name, d->num_components);
    d->out_color_space = d->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    heed_status status = heed__image_allocate(image, from, d->image_height, d->image_width,
                                              d->num_components, a, err);
    if (status)
        return status;
    jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        JSAMPROW line =
            image->pixels + (int64_t)d->output_scanline * image->width * image->channels;
        jpeg_read_scanlines(d, &line, 1);
    }
    jpeg_finish_decompress(d);
    return HEED_OK;
}

heed_status heed__image_jpeg(const heed__picture_bytes *from, const heed_allocator *a,
                             heed_image *image, heed_error *err)
{
    reader r;
    struct jpeg_decompress_struct d = {.err = jpeg_std_error(&r.manager)};
    volatile heed_status status;
    r.manager.error_exit = failed;
    r.manager.emit_message = noted;
    r.manager.output_message = quiet;
    if (setjmp(r.back)) {
        status = heed__fail(err, HEED_FORMAT, "%s is damaged: %s", from->name, r.text);
    } else {
        jpeg_create_decompress(&d);
        status = decode(&d, from, a, image, err);
    }
    jpeg_destroy_decompress(&d);
    return status;
}
