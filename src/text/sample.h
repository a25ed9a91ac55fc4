/* sample.h: what the samplers share: the text to cut, and the pieces so far. */
#ifndef HEED_TEXT_SAMPLE_H
#define HEED_TEXT_SAMPLE_H

#include "text/vocab.h"

typedef struct heed__cutting {
    const heed_vocab *v;
    const char *text; /* normalised, if it is SentencePiece's; whole characters */
    size_t length;
    double strength;
    const heed_rng *rng;
    uint64_t drawn; /* numbers taken from rng so far */
    heed_arena *arena;
    int32_t *id; /* (length) at most a piece a byte */
    int64_t count;
    bool after_unknown;
} heed__cutting;

/* The next random number in [0,1). */
double heed__cut_draw(heed__cutting *c);
/* Appends the piece of text[begin..end), or what stands for it if it has none: bytes or the unknown
 * piece, once for each run, as SentencePiece does. */
void heed__cut_add(heed__cutting *c, size_t begin, size_t end);
/* The ordinary or placeholder piece of text[begin..end), or -1. */
int32_t heed__cut_find(const heed__cutting *c, size_t begin, size_t end);
/* Bytes of the character at this place; of the placeholder, which is never cut, if one is there. */
size_t heed__cut_step(const heed__cutting *c, size_t at, bool *frozen);

heed_status heed__sample_unigram(heed__cutting *c, heed_error *err);
heed_status heed__sample_bpe(heed__cutting *c, heed_error *err);
heed_status heed__sample_words(heed__cutting *c, heed_error *err);

#endif
