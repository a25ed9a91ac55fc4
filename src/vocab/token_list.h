/* token_list.h: a list of tokens as other programs keep it beside their models. */
#ifndef HEED_VOCAB_TOKEN_LIST_H
#define HEED_VOCAB_TOKEN_LIST_H

#include <heed/vocab.h>

/* One token a line, or a JSON array of them; for text that is cut at spaces.  Where the model has
 * one piece more than the list, the last is the unknown one (CTranslate2 leaves it out).  Special
 * tokens are known by their names; a source that has </s> does not end in it. */
heed_vocab *heed__token_list_open(const char *path, int64_t expected,
                                  const heed_allocator *allocator, heed_error *err);

/* The tokens of such a file, or of {token: id} or Marian's NAME.yml, into an empty vocabulary. */
heed_status heed__token_list_read(heed_vocab *v, const char *path, int64_t expected,
                                  heed_error *err);

#endif
