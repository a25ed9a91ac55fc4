/* batches.h (internal): windows, made by the maker thread, and packing.
 *
 * A window is a range of the epoch's order of pairs: tokenised, sorted by length, divided into
 * batches.  It is a function of the corpus, the options, the epoch and its number.
 *
 * Several streams, one in each rank, may share the work.  Of a window, each cuts every size-th pair
 * into tokens, and all tell each other how long theirs are: lengths are all that sorting and
 * dividing need.  Then each cuts what it lacks of its own batches. */
#ifndef HEED_DATA_BATCHES_H
#define HEED_DATA_BATCHES_H

#include <heed/data.h>
#include <stdatomic.h>

/* pair (count), copied: the indices to report, or NULL for 0, 1, 2 ...  Without `whole` the batch
 * has its shape and no ids: of the tokens only their number counts. */
heed_status heed__batch_pack(heed_arena *arena, const heed_pair_ids *ids,
                             const heed_tokens *sources, const heed_tokens *targets,
                             const int64_t *pair, int64_t count, bool whole, heed_batch *batch,
                             heed_error *err);

typedef struct heed__sharing {
    int rank, size; /* size 1: alone */
    /* `bytes` of each rank, in rank order, into all. */
    heed_status (*gather)(void *self, const void *mine, void *all, size_t bytes, heed_error *err);
    void *self;
} heed__sharing;
/* From the next seek on, `size` equal streams share the work.  Counted from a seek, batch k is that
 * of rank k % size; on the others it has no ids.  All of them call next and seek, then, and a
 * position that the stream does not have shows when the next batch is asked for. */
heed_status heed__batches_share(heed_batches *b, const heed__sharing *sharing, heed_error *err);

/* Contiguous storage for ids that live as long as the arena. */
typedef struct heed__id_store {
    heed_arena *arena;
    int32_t *at;
    int64_t left;
} heed__id_store;

/* Of one pair, EOS included; target 0: not known yet. */
typedef struct heed__lengths {
    int32_t source, target;
} heed__lengths;

typedef struct heed__window {
    heed_batches_position position; /* of its first batch */
    bool end;                       /* the stream ended before this window */
    heed_error err;                 /* why it could not be made */
    int64_t drawn;                  /* pairs of the order */
    /* A pair drawn as number i is the (i / size)-th that rank i % size measures. */
    heed__lengths *mine, *all; /* (window / size, rounded up), (size times that); alone, the same */
    int64_t pairs;             /* kept, in order of length */
    heed_tokens *source, *target; /* (window) as drawn, then (pairs); id NULL: only the number */
    int64_t *pair;                /* (window) as drawn, then (pairs): index into the corpus */
    int64_t batches;
    int64_t *first, *count; /* (batches) pairs first[b] .. first[b] + count[b] are batch b */
    int64_t number;         /* of its first batch, counted from where the stream began */
    int64_t left_out;       /* pairs above max_tokens */
    int64_t cut;            /* lines cut into tokens here */
    heed__id_store ids;
} heed__window;

/* A pair of a window: its sort key, and its index among those that are kept. */
typedef struct heed__drawn {
    heed__lengths length;
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
    heed__lengths *known; /* (all pairs) if they stay and are shared; or NULL */
    heed__sharing sharing;
    int64_t number;        /* of the next batch */
    heed_tokens *token[2]; /* (window) kept, as drawn */
    int64_t *pair;         /* (window) kept, as drawn */
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
/* What windows and the maker need to share; of a stream that stands still. */
heed_status heed__maker_share(heed__maker *m, const heed__sharing *sharing, heed_error *err);
heed_status heed__window_share(heed__window *w, const heed__maker *m, heed_error *err);
/* Lengths that each rank has of a window. */
int64_t heed__maker_share_size(const heed__maker *m);
/* Draws the window at p (p.batch is ignored) and measures this rank's pairs: w->mine. */
void heed__window_draw(heed__window *w, heed__maker *m, heed_batches_position p);
/* Makes batches of it, once w->all is known. */
void heed__window_make(heed__window *w, heed__maker *m);
bool heed__window_owns(const heed__window *w, const heed__maker *m, int64_t batch);
/* Tokens of the pair in slot i of a window as drawn, and their number; false after an error, and
 * where the stream stops. */
bool heed__window_cut(heed__window *w, heed__maker *m, int64_t i, heed__lengths *length);
bool heed__too_long(const heed__maker *m, heed__lengths length);
heed_status heed__maker_short(const heed__maker *m, heed_error *err);

/* What a stream of random numbers is for: used as a rank that no process has, so that none equals a
 * dropout's. */
enum {
    HEED__FOR_ORDER = -1,
    HEED__FOR_BATCHES = -2,
    HEED__FOR_SAMPLING = -3,
    HEED__FOR_AUGMENTING = -4,
    HEED__FOR_SHARES = -5
};
heed_rng heed__maker_stream(const heed__maker *m, int purpose, int64_t epoch, int64_t node,
                            int side);
/* Where the window after p's begins. */
heed_batches_position heed__window_after(const heed__maker *m, heed_batches_position p);

#endif
