/* utf8.h: which character stands here. */
#ifndef HEED_TEXT_UTF8_H
#define HEED_TEXT_UTF8_H

#include <heed/text.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that text begins with (1 to 4) and what it is; 0 at the end, and if it is
 * none: cut off, overlong, a surrogate, beyond U+10FFFF. */
size_t heed__utf8_next(const char *text, size_t length, int32_t *character);
/* The character that text ends with, likewise.  text must be valid. */
size_t heed__utf8_last(const char *text, size_t length, int32_t *character);

#endif
