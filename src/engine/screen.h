/* screen.h (internal): an int8 screening matrix: the output matrix, quantised, which says which
 * tokens may be the best.
 *
 * Greedy search that nobody asks for scores needs the largest logit x.w_j and no other.  With x and
 * w_j quantised to int8, x' and w'_j,
 *   |x.w_j - x'.w'_j| = |(x - x').w_j + x'.(w_j - w'_j)| <= |x - x'| |w_j| + |x'| |w_j - w'_j|,
 * so the int8 product, which reads a quarter of the weights, leaves a few tokens that may be the
 * best; only those get their logits.  What is chosen is what all logits would have chosen. */
#ifndef HEED_ENGINE_SCREEN_H
#define HEED_ENGINE_SCREEN_H

#include "kernel/kernels.h"

typedef struct heed__screening {
    heed__panel_weights w;         /* int8 */
    const heed_real *norm, *error; /* (N) |w_j| and |w_j - w'_j|, never too small */
} heed__screening;

/* Shared by an engine's sessions: the matrix is made when they have asked for enough rows to
 * pay for it. */
typedef struct heed__screen heed__screen;
/* Whether a screening matrix pays off: not of an int8 matrix, nor of one so large that memory for
 * another counts. */
bool heed__screen_pays(const heed__panel_weights *output);
/* Of an output matrix that outlives it.  Lives in the arena; the screening matrix comes from the
 * allocator.
 * NULL when memory is short. */
heed__screen *heed__screen_new(const heed__panel_weights *output, heed_arena *arena,
                               const heed_allocator *allocator);
/* Frees the screening matrix. */
void heed__screen_free(heed__screen *s);
/* For this many rows.  NULL if it does not pay yet, if there is no memory for it, or if a weight is
 * not finite, or absurdly large. */
const heed__screening *heed__screen_matrix(heed__screen *s, int64_t rows);

/* How far the logits of x (K) may be from those of its int8 values; false if x is not finite,
 * or absurdly large. */
bool heed__screening_bound(const heed__screening *r, const heed_real *x, const uint8_t *bytes,
                           float low, float step, heed__screen_bound *bound);

#endif
