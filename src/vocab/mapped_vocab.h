/* mapped_vocab.h: SentencePiece models whose pieces have other ids: MarianMT's source.spm and
 * target.spm with vocab.json, Argos's sentencepiece.model with CTranslate2's lists. */
#ifndef HEED_VOCAB_MAPPED_VOCAB_H
#define HEED_VOCAB_MAPPED_VOCAB_H

#include <heed/vocab.h>

/* spm cuts a text into pieces, `ids`, which heed__token_list_read reads, says their ids; what it
 * does not have is unknown.  A language's token, >>xx<<, at the beginning of a text is found as it
 * stands. */
heed_vocab *heed__mapped_vocab_open(const char *spm, const char *ids, int64_t expected,
                                    const heed_allocator *allocator, heed_error *err);

#endif
