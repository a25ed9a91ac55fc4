/* shortlist.h (internal): which target pieces a sentence may need.
 *
 * For each piece of the source a few translations, learned from the training text
 * (train/lexicon.c), and some pieces that every sentence may need.  The output projection then
 * makes a thousand logits instead of all V.  A file beside the model, shortlist.safetensors:
 *   offset  I32 (V_source + 1)   the translations of piece s are token[offset[s]] .. offset[s+1]
 *   token   I32                  ids of target pieces
 *   always  I32                  those of every sentence, EOS among them */
#ifndef HEED_ENGINE_SHORTLIST_H
#define HEED_ENGINE_SHORTLIST_H

#include "kernel/panels.h"

#include <heed/data.h>
#include <heed/io.h>

#define HEED_SHORTLIST_FILE "shortlist.safetensors"

typedef struct heed__shortlist {
    heed_safetensors *file;                 /* what the three point into, */
    heed_arena *arena;                      /* or, of another program's file, this */
    const int32_t *offset, *token, *always; /* offset NULL: it is not open */
    int64_t always_count, sources, targets;
    /* As Bergamot uses its own: EOS of the source has a list, too; pieces of a shared vocabulary
     * are on their own; and the list is filled to a multiple of 8 from `always_count` on. */
    bool bergamot, shared;
} heed__shortlist;

/* sources, targets: sizes of the vocabularies. */
heed_status heed__shortlist_open(heed__shortlist *s, const char *path, int64_t sources,
                                 int64_t targets, const heed_allocator *allocator, heed_error *err);
/* The same of a lex.50.50.*.bin of Bergamot's (files/lex.h). */
heed_status heed__shortlist_open_lex(heed__shortlist *s, const char *path, int64_t sources,
                                     int64_t targets, bool shared, const heed_allocator *allocator,
                                     heed_error *err);
void heed__shortlist_close(heed__shortlist *s);

/* What one sentence may need: ids, ascending, and the columns of the output matrix that make them,
 * packed. */
typedef struct heed__choice {
    int32_t *id;
    int64_t count, room; /* room: ids that there is memory for */
    heed__panel_weights columns;
    void *packed;    /* what columns points to */
    heed_real *bias; /* and of an output with a bias, theirs */
} heed__choice;
/* Fills c, whose memory grows as it must; marks has (targets) bits, all 0, and leaves them so.
 * wanted are ids that it must have; NULL: none. */
heed_status heed__shortlist_choose(const heed__shortlist *s, const heed_pair_ids *ids,
                                   const heed_tokens *source, const heed_tokens *wanted,
                                   const heed__panel_weights *output, uint64_t *marks,
                                   heed__choice *c, const heed_allocator *allocator,
                                   heed_error *err);
void heed__choice_free(heed__choice *c, const heed__panel_weights *output,
                       const heed_allocator *allocator);

#endif
