/* beam.h (internal): the search over anything that can add, step and reorder rows of hypotheses.
 *
 * Sentences come from a request source and go back to it one by one, each as soon as it is done; in
 * between they share the model's steps and nothing else, so that no answer depends on its
 * neighbours. */
#ifndef HEED_SEARCH_BEAM_H
#define HEED_SEARCH_BEAM_H

#include "engine/stepper.h"
#include <heed/search.h>

/* A sentence to be searched for.  What it points to lives until it is done. */
typedef struct heed__request {
    heed_tokens source; /* without EOS */
    heed_tokens prefix; /* how every hypothesis begins */
    bool whole;         /* the prefix, and EOS behind it, is all: nothing is searched for */
    bool protects;   /* every hypothesis has the source's placeholders, each once, and no other */
    uint64_t number; /* names its random numbers */
    void *owner;     /* the request source's */
} heed__request;

/* Sentences, and tokens of their sources with EOS: what can still be admitted. */
typedef struct heed__capacity {
    int64_t sentences, tokens;
} heed__capacity;
/* Takes a sentence's share; false, and nothing is taken, if there is too little of either and it
 * need not be. */
bool heed__capacity_take(heed__capacity *capacity, const heed_tokens *source, bool must);

/* Where sentences come from and go to. */
typedef struct heed__request_source {
    void *self;
    /* The next requests that the capacity allows, at most capacity.sentences; one at least if
     * `wait` says so, however long it is.  *count 0: there are no more, or, without `wait`, not
     * yet. */
    heed_status (*next)(void *self, bool wait, heed__capacity capacity, heed__request *out,
                        int64_t *count, heed_error *err);
    /* out (n_best) is what heed_search returns; it lives until the call returns. */
    heed_status (*done)(void *self, const heed__request *r, const heed_hypothesis *out,
                        heed_error *err);
} heed__request_source;

/* What may be active at once: rows, rows times tokens of their sources, sentences.  One sentence
 * always may. */
typedef struct heed__budget {
    int64_t rows, tokens, sentences;
} heed__budget;
extern const heed__budget heed__usual_budget;

/* Memory and state of one search at a time. */
typedef struct heed__search heed__search;
heed__search *heed__search_new(const heed_allocator *allocator, heed_error *err);
void heed__search_free(heed__search *s);
/* Searches for all that the request source has.  A second run of the same size allocates nothing.
 * */
heed_status heed__search_run(heed__search *s, const heed__stepper *model,
                             const heed_search_options *o, const heed__budget *budget,
                             const heed__request_source *requests, heed_error *err);
/* Whether the options make sense. */
heed_status heed__search_check(const heed_search_options *o, heed_error *err);
/* heed_search over any model. */
heed_status heed__search_all(const heed__stepper *model, const heed_search_options *o,
                             const heed__budget *budget, const heed_tokens *source, int64_t count,
                             const heed_allocator *allocator, heed_arena *arena,
                             heed_hypothesis *out, heed_error *err);

/* Moves what a hypothesis points to into the arena. */
heed_status heed__hypothesis_keep(heed_hypothesis *h, heed_arena *arena, heed_error *err);
/* count * size bytes, not zeroed; NULL after setting err. */
void *heed__take(heed_arena *arena, int64_t count, size_t size, heed_error *err);

#endif
