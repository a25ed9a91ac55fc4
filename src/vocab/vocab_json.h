/* vocab_json.h: vocabularies from JSON. */
#ifndef HEED_VOCAB_VOCAB_JSON_H
#define HEED_VOCAB_VOCAB_JSON_H

#include "base/json.h"
#include "vocab/vocabulary.h"

/* The pieces of {piece: id} and of the added tokens of tokenizer.json, in the order of their ids:
 * each from 0 on once.  added may be NULL. */
heed_status heed__json_pieces_add(heed_vocab *v, const char *path, const json_t *vocab,
                                  const json_t *added, heed_error *err);
/* vocab.json, with merges.txt or vocab.bpe in its folder. */
heed_status heed__vocab_and_merges_read(heed_vocab *v, const char *path, const json_t *root,
                                        heed_error *err);

#endif
