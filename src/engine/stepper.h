/* stepper.h (internal): what the search knows of a model: rows of hypotheses that can be added,
 * extended and reordered. */
#ifndef HEED_ENGINE_STEPPER_H
#define HEED_ENGINE_STEPPER_H

#include <heed/engine.h>

typedef struct heed__stepper {
    void *self;
    int64_t vocabulary, longest;
    heed_pair_ids ids;
    bool sources; /* rows are added with a source each; false: `add` takes NULL */
    /* Sentences may be added while others are active, and rows extended by different numbers of
     * tokens.  False: a call to extend names every row, with one token each. */
    bool joins;
    /* One new row each, behind the others; rows stay in the order of their sentences.  wanted[i]:
     * tokens that must have a score there whatever a shortlist says; NULL: none. */
    heed_status (*add)(void *self, const heed_tokens *source, const heed_tokens *wanted,
                       int64_t count, heed_error *err);
    int64_t (*rows)(const void *self);
    /* As heed_session_extend. */
    heed_status (*extend)(void *self, const heed_extension *x, int64_t count, heed_scores *last,
                          heed_error *err);
    /* As heed_session_rewind; NULL where a model cannot. */
    heed_status (*rewind)(void *self, int64_t row, int64_t length, heed_error *err);
    /* Row r continues row parent[r]; rows not named are released. */
    heed_status (*reorder)(void *self, const int32_t *parent, int64_t rows, heed_error *err);
    void (*clear)(void *self); /* releases all rows */
    /* From now on the scores of an extension may leave out whatever cannot be the best token of its
     * row, these and the special tokens left aside, and log_z may be any number that no logit is
     * above; no special token is left out on top of those that a shortlist leaves out.  Log P of
     * given tokens is not touched.  NULL: all tokens count again.  The tokens live until then.  The
     * call itself is NULL where a model cannot. */
    void (*best_only)(void *self, const heed_tokens *never);
} heed__stepper;

#endif
