/* learn_merges.h: learning BPE (Sennrich et al., "Neural Machine Translation of Rare Words with
 * Subword Units", ACL 2016): the most frequent pair of neighbours becomes a piece, again and again.
 *
 *     heed__learner l;
 *     heed__learner_init(&l, NULL, err);
 *     heed__pieces_add(&l.pieces, ...);                 special pieces and the alphabet
 *     heed__learner_add(&l, symbols, n, count);         every word, once
 *     heed__learner_run(&l, size, "", err);
 *     heed__learner_deinit(&l); */
#ifndef HEED_VOCAB_LEARN_MERGES_H
#define HEED_VOCAB_LEARN_MERGES_H

#include "vocab/vocabulary.h"

typedef struct heed__learner {
    heed_allocator allocator;
    heed_arena *arena;
    heed__pieces pieces;
    int32_t *symbol; /* (symbols) of all words, one word behind the other; -1: merged away */
    int64_t symbols, symbol_capacity;
    struct heed__learner_word {
        int64_t begin, count;
        int32_t length;
    } * word;
    int64_t words, word_capacity;
    int32_t (*merge)[2]; /* (merges) in the order learned */
    int32_t merges, merge_capacity;
} heed__learner;

heed_status heed__learner_init(heed__learner *l, const heed_allocator *allocator, heed_error *err);
/* l may be zeroed memory. */
void heed__learner_deinit(heed__learner *l);
/* A word of n pieces that was seen so often. */
heed_status heed__learner_add(heed__learner *l, const int32_t *symbols, int32_t n, int64_t count,
                              heed_error *err);
/* Until there are `size` pieces, or no pair is seen twice.  inside begins the right piece of a pair
 * and is left out where they are joined: "##", or "". */
heed_status heed__learner_run(heed__learner *l, int32_t size, const char *inside, heed_error *err);
/* Writes a tokenizer.json with the pieces and the merges; cased is for WordPiece. */
heed_status heed__tokenizer_write(const heed__learner *l, heed_vocab_kind kind, bool cased,
                                  const char *path, heed_error *err);

#endif
