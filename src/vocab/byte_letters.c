/* byte_letters.c: the letters of bytes.  Printable bytes are their own letters: ! to ~, U+00A1 to
 * U+00AC, U+00AE to U+00FF; the other 68 follow each other from U+0100 on. */
#include "vocab/byte_letters.h"

#define HIDDEN 68

static bool is_printable(int32_t c)
{
    return (c >= '!' && c <= '~') || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

/* 0 to 32 come first, then 127 to 160, then 173. */
static int32_t nth_hidden(int32_t n)
{
    return n <= 32 ? n : n < HIDDEN - 1 ? n - 33 + 127 : 173;
}

size_t heed__byte_letter(unsigned char byte, char *out)
{
    int32_t c = byte;
    if (!is_printable(c))
        c = 0x100 + (byte <= 32 ? byte : byte == 173 ? HIDDEN - 1 : byte - 127 + 33);
    if (c < 0x80) {
        *out = (char)c;
        return 1;
    }
    out[0] = (char)(0xC0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3F));
    return 2;
}

int heed__letter_byte(int32_t c)
{
    if (c >= 0x100 && c < 0x100 + HIDDEN)
        return nth_hidden(c - 0x100);
    return is_printable(c) ? c : -1;
}
