/* ppm.c: PGM (P5, grey) and PPM (P6, RGB): a header in text, then bytes. */
#include "image/image_decode.h"

#include "base/min_max.h"

#include <string.h>

/* The next number of the header; comments run from # to the end of their line.  -1: there is none.
 */
static int64_t number(const heed__picture_bytes *from, size_t *at)
{
    bool comment = false;
    for (; *at < from->size; (*at)++) {
        const uint8_t c = from->at[*at];
        if (c == '#')
            comment = true;
        else if (comment)
            comment = c != '\n';
        else if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            break;
    }
    int64_t n = -1;
    for (; *at < from->size && from->at[*at] >= '0' && from->at[*at] <= '9'; (*at)++) {
        n = 10 * (n < 0 ? 0 : n) + (from->at[*at] - '0');
        n = heed__min(n, HEED__IMAGE_PIXELS + 1); /* too many in any case */
    }
    return n;
}

heed_status heed__image_ppm(const heed__picture_bytes *from, const heed_allocator *a,
                            heed_image *image, heed_error *err)
{
    const uint8_t kind = from->at[1];
    if (kind != '5' && kind != '6')
        return heed__fail(err, HEED_FORMAT, "%s is of kind P%c, expected P5 (grey) or P6 (RGB)",
                          from->name, kind);
    size_t at = 2;
    const int64_t width = number(from, &at), height = number(from, &at), most = number(from, &at);
    if (width < 0 || height < 0 || most < 1 || at >= from->size)
        return heed__fail(err, HEED_FORMAT, "%s has no whole header: width, height, largest value",
                          from->name);
    if (most != 255)
        return heed__fail(err, HEED_FORMAT, "%s has values to %lld, expected to 255 (8 bits)",
                          from->name, (long long)most);
    heed_status status =
        heed__image_allocate(image, from, height, width, kind == '5' ? 1 : 3, a, err);
    if (status)
        return status;
    const size_t wanted = (size_t)(height * width * image->channels), found = from->size - at - 1;
    if (found < wanted)
        return heed__fail(err, HEED_FORMAT, "%s ends too early: %zu bytes of pixels, expected %zu",
                          from->name, found, wanted);
    memcpy(image->pixels, from->at + at + 1, wanted);
    return HEED_OK;
}
