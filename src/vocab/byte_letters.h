/* byte_letters.h: GPT-2's letters for bytes: byte-level pieces are stored as text, so bytes that
 * are no printable characters of Latin-1 have the letters from U+0100 on (a space is U+0120). */
#ifndef HEED_VOCAB_BYTE_LETTERS_H
#define HEED_VOCAB_BYTE_LETTERS_H

#include <heed/base.h>

/* Writes the letter of a byte in UTF-8, one or two bytes; returns how many. */
size_t heed__byte_letter(unsigned char byte, char *out);
/* The byte that a character stands for, or -1. */
int heed__letter_byte(int32_t character);

#endif
