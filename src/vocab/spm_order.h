/* spm_order.h: a SentencePiece model with its pieces in another order, and so with other ids. */
#ifndef HEED_VOCAB_SPM_ORDER_H
#define HEED_VOCAB_SPM_ORDER_H

#include "vocab/vocab_pieces.h"

typedef struct heed__spm_entry {
    int32_t from;     /* the piece of the model that stands here; -1: */
    const char *text; /* this one, which the model has not */
    heed__piece_type type;
} heed__spm_entry;

/* The model `spm` with these pieces; *bytes lives in the arena.  Which pieces are special stays a
 * matter of their types; the numbers of `unk` and `eos` in its trainer_spec are set, and there is
 * no BOS. */
heed_status heed__spm_order(const void *spm, size_t size, const char *path,
                            const heed__spm_entry *entry, int32_t count, int32_t unk, int32_t eos,
                            heed_arena *arena, const void **bytes, size_t *made, heed_error *err);

#endif
