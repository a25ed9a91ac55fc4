/* corpus.h (internal): what batches need beyond the public interface. */
#ifndef HEED_DATA_CORPUS_H
#define HEED_DATA_CORPUS_H

#include <heed/data.h>

/* From now on pairs are read in random order. */
void heed__corpus_scattered(const heed_corpus *c);

#endif
