/* stepper.h (internal): what the search knows of a model: rows of hypotheses that can be added,
 * stepped and reordered. */
#ifndef HEED_DECODE_STEPPER_H
#define HEED_DECODE_STEPPER_H

#include <heed/decode.h>

typedef struct heed__stepper {
    void *self;
    int64_t vocabulary, longest;
    bool joins; /* sentences may be added while others are under way */
    /* One new row each, behind the others; rows stay in the order of their sentences.  wanted[i]:
     * tokens that must have a score there whatever a shortlist says; NULL: none. */
    heed_status (*add)(void *self, const heed_tokens *source, const heed_tokens *wanted,
                       int64_t count, heed_error *err);
    /* Every row takes its token (a new row: BOS). */
    heed_status (*step)(void *self, const int32_t *token, heed_scores *out, heed_error *err);
    /* Row r goes on from row parent[r]; rows not named are dropped. */
    heed_status (*reorder)(void *self, const int32_t *parent, int64_t rows, heed_error *err);
    void (*clear)(void *self); /* drops all rows */
    /* From now on a step may leave out whatever cannot be the best token of its row, these and the
     * special tokens left aside, and log_z may be any number that no logit is above; it leaves out
     * no special token on top of those that a shortlist does.  NULL: all tokens count again.  The
     * tokens live until then.  The call itself is NULL where a model cannot. */
    void (*best_only)(void *self, const heed_tokens *never);
} heed__stepper;

#endif
