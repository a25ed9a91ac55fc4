/* lexicon.h (internal): which target pieces translate which source pieces, learned from pairs of
 * sentences: for shortlists, and to tell which attention aligns. */
#ifndef HEED_DATA_LEXICON_H
#define HEED_DATA_LEXICON_H

#include <heed/data.h>

typedef struct heed__lexicon_pair {
    uint64_t key; /* source << 32 | target, plus 1; 0: a free slot */
    float p, count;
} heed__lexicon_pair;

typedef struct heed__lexicon {
    heed_allocator allocator;
    heed_arena *arena;
    const heed_vocab *source, *target;
    int64_t sources, targets; /* sizes of the vocabularies; piece `sources` is "none" */
    heed_tokens *from, *to;   /* (pairs) the sentences */
    int64_t pairs;
    heed__lexicon_pair *slot; /* (mask + 1) */
    uint64_t mask;
    int64_t used;
    double *total;      /* (sources + 1) sum over t of count(s,t) */
    int64_t *frequency; /* (targets) */
    heed_error *err;    /* while it learns */
} heed__lexicon;

/* Borrows the vocabularies.  Close it, too, when it could not be learned. */
heed_status heed__lexicon_learn(heed__lexicon *x, const heed_corpus *c, const heed_vocab *source,
                                const heed_vocab *target, const heed_allocator *allocator,
                                heed_error *err);
void heed__lexicon_close(heed__lexicon *x);
/* How probable piece t is where s stands; s may be x->sources, for no piece. */
double heed__lexicon_p(const heed__lexicon *x, int32_t s, int32_t t);

#endif
