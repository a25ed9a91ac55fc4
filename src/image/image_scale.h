/* image_scale.h: a picture moved: turned (radians, about its middle), enlarged, mirrored, then
 * moved by pixels. */
#ifndef HEED_IMAGE_IMAGE_SCALE_H
#define HEED_IMAGE_IMAGE_SCALE_H

#include <heed/image.h>

typedef struct heed__movement {
    double turn, zoom, down, right;
    bool mirror;
} heed__movement;
/* (height,width,channels) bytes to numbers 0 to 255. */
void heed__image_move(const uint8_t *from, heed_real *to, int64_t height, int64_t width,
                      int64_t channels, const heed__movement *m);

#endif
