/* bert_text.h: how BERT prepares a text for WordPiece. */
#ifndef HEED_VOCAB_BERT_TEXT_H
#define HEED_VOCAB_BERT_TEXT_H

#include <heed/base.h>

typedef struct heed__bert_options {
    bool lowercase, strips_accents, separates_chinese;
    bool cleans; /* control characters go, spaces of every kind are one kind */
} heed__bert_options;

/* Most characters that one becomes: a canonical decomposition has at most four. */
#define HEED__BERT_PARTS 4

/* The words of the text with one space between them: cut at spaces, and at punctuation and Chinese
 * characters, which are words themselves.  text is UTF-8.  *size bytes in the arena; NULL when
 * memory is short. */
const char *heed__bert_words(const heed__bert_options *options, const char *text, size_t length,
                             heed_arena *arena, size_t *size);

#endif
