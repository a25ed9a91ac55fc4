/* sample_subwords.h: what the subword samplers share: the text, and the pieces so far. */
#ifndef HEED_VOCAB_SAMPLE_SUBWORDS_H
#define HEED_VOCAB_SAMPLE_SUBWORDS_H

#include "vocab/vocabulary.h"

typedef struct heed__sampler {
    const heed_vocab *v;
    const char *text; /* normalised if it is for SentencePiece; whole characters */
    size_t length;
    double strength;
    const heed_rng *rng;
    uint64_t drawn; /* numbers drawn from rng so far */
    heed_arena *arena;
    int32_t *id; /* heed__sampler_reserve */
    int64_t count;
    bool after_unknown;
    void *work; /* for texts of work_length, of heed__sample_bpe */
    size_t work_length;
} heed__sampler;

/* Memory for the ids of at most `most` pieces. */
heed_status heed__sampler_reserve(heed__sampler *c, size_t most, heed_error *err);
/* The next random number in [0,1). */
double heed__sampler_draw(heed__sampler *c);
/* Appends the piece of text[begin..end), or byte pieces or the unknown piece if there is none; one
 * unknown piece per run, as in SentencePiece. */
void heed__sampler_add(heed__sampler *c, size_t begin, size_t end);
/* The ordinary or placeholder piece of text[begin..end), or -1. */
int32_t heed__sampler_find(const heed__sampler *c, size_t begin, size_t end);
/* Bytes of the character at this position, or of the placeholder there, which is never split. */
size_t heed__sampler_step(const heed__sampler *c, size_t at, bool *frozen);

/* How a vocabulary of each kind cuts the text of c, at random if its strength is not 0. */
heed_status heed__sample_unigram(heed__sampler *c, heed_error *err);
heed_status heed__sample_bpe(heed__sampler *c, heed_error *err);
heed_status heed__sample_words(heed__sampler *c, heed_error *err);

#endif
