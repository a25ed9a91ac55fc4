/* utf8.c: decoding is utf8proc's; plain ASCII is checked eight bytes at a time. */
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

size_t heed__utf8_next(const char *text, size_t length, int32_t *character)
{
    *character = -1;
    if (length == 0)
        return 0;
    /* At most four bytes are read, and utf8proc takes a signed length. */
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text,
                                          length < 4 ? (utf8proc_ssize_t)length : 4, character);
    return n > 0 ? (size_t)n : 0;
}

size_t heed__utf8_last(const char *text, size_t length, int32_t *character)
{
    size_t begin = length;
    while (begin > 0 && ((unsigned char)text[begin - 1] & 0xC0) == 0x80)
        begin--;
    begin -= begin > 0;
    return heed__utf8_next(text + begin, length - begin, character);
}

bool heed_utf8_valid(const char *text, size_t length, size_t *bad)
{
    size_t i = 0;
    while (i < length) {
        uint64_t eight;
        if (length - i >= sizeof eight) {
            memcpy(&eight, text + i, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                i += sizeof eight;
                continue;
            }
        }
        int32_t character;
        size_t n = heed__utf8_next(text + i, length - i, &character);
        if (n == 0) {
            if (bad)
                *bad = i;
            return false;
        }
        i += n;
    }
    return true;
}
