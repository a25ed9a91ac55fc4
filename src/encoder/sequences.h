/* sequences.h (internal): texts and words as an encoder reads them: [CLS] a [SEP], and b [SEP] of
 * the second type behind it.  Where a vocabulary has no [CLS], BOS stands there, and EOS for
 * [SEP]. */
#ifndef HEED_ENCODER_SEQUENCES_H
#define HEED_ENCODER_SEQUENCES_H

#include <heed/encoder.h>

typedef struct heed__surround {
    int32_t cls, sep; /* -1: nothing stands there */
} heed__surround;
heed__surround heed__surround_of(const heed_special_ids *ids);

typedef struct heed__read {
    int32_t *id;
    int64_t count;
    int64_t second; /* where the second text begins; count: there is none */
    int32_t *first; /* (words) where each word begins; only of words */
    int64_t words;  /* that fit: fewer than given where the sentence is too long */
    bool cut;       /* what was too long has lost its end */
} heed__read;
/* At most `longest` tokens; of two texts the longer one loses its end first, as BERT does it. */
heed_status heed__read_texts(const heed_vocab *v, const char *const text[2], int64_t longest,
                             heed_arena *arena, heed__read *out, heed_error *err);
/* Each word is cut into pieces alone, so that spaces and signs in it move nothing. */
heed_status heed__read_words(const heed_vocab *v, const char *const *word, int64_t words,
                             int64_t longest, heed_arena *arena, heed__read *out, heed_error *err);
/* Sequences side by side.  types: of the second texts, or NULL if the model has none. */
heed_status heed__read_join(const heed__read *read, int64_t count, bool types, heed_arena *arena,
                            heed_batch_side *side, heed_error *err);

#endif
