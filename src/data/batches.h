/* batches.h (internal): windows, made by the maker thread, and packing.
 *
 * A window is a range of the epoch's order of pairs: tokenised, sorted by length, divided into
 * batches.  It is a function of the corpus, the options, the epoch and its number. */
#ifndef HEED_DATA_BATCHES_H
#define HEED_DATA_BATCHES_H

#include <heed/data.h>
#include <stdatomic.h>

/* pair (count), copied: the indices to report, or NULL for 0, 1, 2 ... */
heed_status heed__batch_pack(heed_arena *arena, const heed_pair_ids *ids,
                             const heed_tokens *sources, const heed_tokens *targets,
                             const int64_t *pair, int64_t count, heed_batch *batch,
                             heed_error *err);

/* Contiguous storage for ids that live as long as the arena. */
typedef struct heed__id_store {
    heed_arena *arena;
    int32_t *at;
    int64_t left;
} heed__id_store;

typedef struct heed__window {
    heed_batches_position position; /* of its first batch */
    bool end;                       /* the stream ended before this window */
    heed_error err;                 /* why it could not be made */
    int64_t pairs;                  /* kept, in order of length */
    heed_tokens *source, *target;   /* (pairs) */
    int64_t *pair;                  /* (pairs) index into the corpus */
    int64_t batches;
    int64_t *first, *count; /* (batches) pairs first[b] .. first[b] + count[b] are batch b */
    int64_t left_out;       /* pairs above max_tokens */
    heed__id_store ids;
} heed__window;

/* A pair drawn into a window: its sort key, and its index among the drawn. */
typedef struct heed__drawn {
    int64_t target, source; /* lengths, EOS included */
    int64_t at;
} heed__drawn;

/* Makes windows one after the other.  Used by one thread at a time. */
typedef struct heed__maker {
    heed_batches_options options; /* defaults filled in */
    const heed_corpus *corpus;
    const heed_vocab *vocab[2]; /* source, target */
    double sampling[2];
    int64_t pairs, windows; /* of an epoch */
    uint32_t *order;        /* (pairs) of epoch `ordered`; NULL in corpus order */
    int64_t ordered;        /* -1: none yet */
    int64_t kept;           /* pairs of this epoch so far; -1 if it was entered in its middle */
    heed_tokens *cached[2]; /* (all pairs) id NULL where not yet tokenised; NULL: not cached */
    heed__id_store cache;
    heed_tokens *token[2]; /* (window) as drawn */
    int64_t *pair;         /* (window) as drawn */
    heed__drawn *drawn, *spare;
    int64_t *need;           /* (window + 1) see count_needed */
    heed_arena *arena;       /* of all these */
    heed_arena *scratch;     /* of one sentence's tokenising */
    heed_arena *changed;     /* of one pair that is augmented */
    const atomic_bool *stop; /* set to stop early: the window will not be used */
} heed__maker;

/* Borrows everything.  Deinit may be called on zeroed memory, and after a failed init. */
heed_status heed__maker_init(heed__maker *m, const heed_corpus *c, const heed_vocab *source,
                             const heed_vocab *target, const heed_batches_options *options,
                             const heed_allocator *allocator, heed_error *err);
void heed__maker_deinit(heed__maker *m);
/* A window's arrays live in the maker's arena. */
heed_status heed__window_init(heed__window *w, const heed__maker *m,
                              const heed_allocator *allocator, heed_error *err);
void heed__window_deinit(heed__window *w);
/* Makes the window at p (p.batch is ignored). */
void heed__window_make(heed__window *w, heed__maker *m, heed_batches_position p);
/* Where the window after p's begins. */
heed_batches_position heed__window_after(const heed__maker *m, heed_batches_position p);

#endif
