/* screen.h (internal): a rough copy of the output matrix that says which tokens may be the best.
 *
 * Greedy search that nobody asks for scores needs the largest logit x.w_j and no other.  With x and
 * w_j rounded to bytes, x' and w'_j,
 *   |x.w_j - x'.w'_j| = |(x - x').w_j + x'.(w_j - w'_j)| <= |x - x'| |w_j| + |x'| |w_j - w'_j|,
 * so the product of bytes, which reads a quarter of the weights, leaves a few tokens that may be
 * the best; only those get their logits.  What is chosen is what all logits would have chosen. */
#ifndef HEED_DECODE_SCREEN_H
#define HEED_DECODE_SCREEN_H

#include "kernel/kernels.h"

/* The rough copy. */
typedef struct heed__rough {
    heed__panel_weights w;         /* bytes */
    const heed_real *norm, *error; /* (N) |w_j| and |w_j - w'_j|, never too small */
} heed__rough;

/* Shared by an engine's sessions: the copy is made when they have asked for as many rows as pay for
 * it. */
typedef struct heed__screen heed__screen;
/* Whether a copy of an output matrix would pay: not of bytes, nor of so many numbers that its
 * memory counts. */
bool heed__screen_pays(const heed__panel_weights *output);
/* Of an output matrix that outlives it.  Lives in the arena; the copy comes from the allocator.
 * NULL when memory is short. */
heed__screen *heed__screen_new(const heed__panel_weights *output, heed_arena *arena,
                               const heed_allocator *allocator);
/* Frees the copy. */
void heed__screen_free(heed__screen *s);
/* For so many rows.  NULL if it does not pay yet, if there is no memory for it, or if a weight is
 * not finite, or absurdly large. */
const heed__rough *heed__screen_rough(heed__screen *s, int64_t rows);

/* How far the logits of x (K) may be from those of its bytes; false if x is not finite, or absurdly
 * large. */
bool heed__rough_bound(const heed__rough *r, const heed_real *x, const uint8_t *bytes, float low,
                       float step, heed__screen_bound *bound);

#endif
