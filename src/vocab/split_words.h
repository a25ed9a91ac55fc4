/* split_words.h: how byte-level BPE cuts a text into words before it merges bytes.  Published
 * vocabularies name a regular expression; the known ones are written by hand here. */
#ifndef HEED_VOCAB_SPLIT_WORDS_H
#define HEED_VOCAB_SPLIT_WORDS_H

#include <heed/base.h>

typedef enum heed__split {
    HEED__SPLIT_GPT2,   /* gpt-2 */
    HEED__SPLIT_DIGITS, /* the same, and every digit is a word: smollm, starcoder */
    HEED__SPLIT_LLAMA3, /* llama-bpe: at most three digits, newlines end words */
    HEED__SPLIT_QWEN2,  /* the same with single digits */
} heed__split;

/* Bytes of the first word of a text; 0 at its end.  A byte that is not UTF-8 is a symbol. */
size_t heed__split_next(heed__split split, const char *text, size_t length);

#endif
