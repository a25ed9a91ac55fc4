/* corpus.h (internal): what batches need beyond the public interface. */
#ifndef HEED_DATA_CORPUS_H
#define HEED_DATA_CORPUS_H

#include "data/corpus_parts.h"
#include <heed/data.h>

/* From now on pairs are read in random order. */
void heed__corpus_scattered(const heed_corpus *c);
/* What its files brought, in order; a corpus of which an epoch has all is one part. */
const heed__corpus_part *heed__corpus_parts(const heed_corpus *c, int64_t *parts);
/* The part that has pair i. */
const heed__corpus_part *heed__corpus_part_of(const heed_corpus *c, int64_t i);
/* The k-th of the pairs of an epoch, were they not drawn but spread evenly; k < epoch_pairs. */
int64_t heed__corpus_spread(const heed_corpus *c, int64_t k);
/* From now on c has its pairs `times` times, and those of more `more_times` behind them; it
 * borrows their text. */
heed_status heed__corpus_mix(heed_corpus *c, int64_t times, const heed_corpus *more,
                             int64_t more_times, heed_error *err);

#endif
