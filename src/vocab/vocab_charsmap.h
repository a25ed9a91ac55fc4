/* vocab_charsmap.h: whether SentencePiece's character map can be traversed without leaving it. */
#ifndef HEED_VOCAB_VOCAB_CHARSMAP_H
#define HEED_VOCAB_VOCAB_CHARSMAP_H

#include <heed/base.h>

/* OK, FORMAT or MEMORY. */
heed_status heed__charsmap_check(const unsigned char *bytes, size_t size,
                                 const heed_allocator *allocator);

#endif
