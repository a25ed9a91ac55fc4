/* augment.h (internal): pairs of sentences as users type them, made of the pairs there are.
 *
 *     joined      further pairs of the corpus behind it, so that long lines are no surprise
 *     protected   words that are the same on both sides become placeholders, as spans do when a
 *                 line is translated (spans.h)
 *     invented    such words become other ones that nobody has seen, to be copied
 *     varied      ALL CAPITALS, no full stop, a small letter at the beginning
 *
 * What is made of a pair is a function of the corpus, the options and the random stream. */
#ifndef HEED_TEXT_AUGMENT_H
#define HEED_TEXT_AUGMENT_H

#include <heed/text.h>

bool heed__augments(const heed_augment_options *o);
heed_status heed__augment_check(const heed_augment_options *o, heed_error *err);
/* Pair i of the corpus, changed; what is new lives in the arena. */
heed_status heed__augment(const heed_augment_options *o, const heed_corpus *c, int64_t i,
                          const heed_rng *rng, heed_arena *arena, heed_pair *pair, heed_error *err);

#endif
