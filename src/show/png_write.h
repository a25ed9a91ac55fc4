/* png_write.h: pixels as a PNG inside a text, data:image/png;base64,..., to stand in an SVG. */
#ifndef HEED_SHOW_PNG_WRITE_H
#define HEED_SHOW_PNG_WRITE_H

#include "base/string.h"

/* (height, width, channels) bytes; 1 channel is grey, 3 are RGB. */
heed_status heed__png_embed(heed__string *s, const uint8_t *pixels, int64_t height, int64_t width,
                            int64_t channels, heed_arena *arena, heed_error *err);

#endif
