/* corpus.h (internal): what batches need beyond the public interface. */
#ifndef HEED_DATA_CORPUS_H
#define HEED_DATA_CORPUS_H

#include <heed/data.h>

/* From now on pairs are read in random order. */
void heed__corpus_scattered(const heed_corpus *c);
/* From now on c has its pairs `times` times, and those of more `more_times` behind them; it
 * borrows their text. */
heed_status heed__corpus_mix(heed_corpus *c, int64_t times, const heed_corpus *more,
                             int64_t more_times, heed_error *err);

#endif
