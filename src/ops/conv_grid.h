/* conv_grid.h: which rows of a convolution meet: the geometry of conv1d, conv2d and its transpose.
 *
 * A *fine* side and a *coarse* side: pixel o of the coarse side meets pixel
 *     o * stride - padding + k * dilation
 * of the fine side at tap k, if there is one.  A convolution reads the fine side and writes the
 * coarse one; its transpose, and the gradient of its input, go the other way.  Pictures of one size
 * stand one after the other, or, with segments, sequences of any length (pictures of height 1). */
#ifndef HEED_OPS_CONV_GRID_H
#define HEED_OPS_CONV_GRID_H

#include "tensor/op.h"

#include <heed/ops.h>

typedef struct heed__conv_grid {
    heed_image_size fine, coarse; /* sizes of a picture; unused with segments */
    heed_image_size kernel, stride, padding, dilation; /* padding: before the first pixel */
    const heed_segments *fine_rows, *coarse_rows;      /* NULL: pictures of one size */
    int64_t images;
} heed__conv_grid;

static inline int64_t heed__conv_taps(const heed__conv_grid *g)
{
    return g->kernel.y * g->kernel.x;
}

/* Scratch that the three functions below need, for weights (taps, in, out). */
heed_status heed__conv_want_scratch(heed_opcall *c, const heed__conv_grid *g, int64_t in,
                                    int64_t out);

/* Rows of one side. */
typedef struct heed__conv_side {
    const real *data;
    int64_t ld, cols;
} heed__conv_side;

/* to = beta to + bias + sum over taps of `from` W, to the coarse side from the fine one or, with
 * `up`, the other way.  W of a tap: element (i,j) at w[t*taps' stride + i*row + j*col]. */
typedef struct heed__conv_gather {
    real *to;
    int64_t ld_to, cols_to;
    heed__conv_side from;
    const real *weight;
    int64_t tap, row, col;
    const real *bias; /* or NULL */
    bool add, up;
} heed__conv_gather;
void heed__conv_run(const heed_opcall *c, const heed__conv_grid *g, const heed__conv_gather *job);

/* dW (taps, A, B) += a^T b over all that meet; `up`: a is of the coarse side, b of the fine one. */
void heed__conv_weight_grad(const heed_opcall *c, const heed__conv_grid *g, real *dw, int64_t ld,
                            heed__conv_side a, heed__conv_side b, bool up);

#endif
