/* utf8.h: decoding UTF-8. */
#ifndef HEED_TEXT_UTF8_H
#define HEED_TEXT_UTF8_H

#include <heed/text.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first character of text and its bytes (1 to 4); 0 at the end, and if it is invalid:
 * truncated, overlong, a surrogate, beyond U+10FFFF. */
size_t heed__utf8_next(const char *text, size_t length, int32_t *character);
/* The same for the last character.  text must be valid. */
size_t heed__utf8_last(const char *text, size_t length, int32_t *character);

#endif
