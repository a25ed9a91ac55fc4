/* augment.h (internal): data augmentation: pairs like what users type, made of the corpus.
 *
 *     joined      followed by further pairs of the corpus, for long lines
 *     protected   words that are the same on both sides become placeholders, as spans do when a
 *                 line is translated (spans.h)
 *     invented    such words become unseen ones, to learn copying
 *     varied      ALL CAPITALS, no full stop, a small letter at the beginning
 *
 * The result is a function of the corpus, the options and the random stream. */
#ifndef HEED_DATA_AUGMENT_H
#define HEED_DATA_AUGMENT_H

#include <heed/data.h>

bool heed__augments(const heed_augment_options *o);
heed_status heed__augment_check(const heed_augment_options *o, heed_error *err);
/* Pair i of the corpus, augmented; new text lives in the arena. */
heed_status heed__augment(const heed_augment_options *o, const heed_corpus *c, int64_t i,
                          const heed_rng *rng, heed_arena *arena, heed_pair *pair, heed_error *err);

#endif
