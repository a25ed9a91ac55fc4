/* corpus.h (internal): what the batches need to know beyond the public interface. */
#ifndef HEED_TEXT_CORPUS_H
#define HEED_TEXT_CORPUS_H

#include <heed/text.h>

/* From now on pairs will be fetched in no order. */
void heed__corpus_scattered(const heed_corpus *c);

#endif
