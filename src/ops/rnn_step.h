/* rnn_step.h: what the LSTM and GRU steps share.  A previous state may have more rows than the
 * step: the first B are used, and the others have a zero gradient. */
#ifndef HEED_OPS_RNN_STEP_H
#define HEED_OPS_RNN_STEP_H

#include "tensor/op.h"
#include <string.h>

/* y (rows,cols) = beta y + x */
static inline void heed__add_block(real *y, int64_t ldy, real beta, const real *x, int64_t ldx,
                                   int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        real *to = y + r * ldy;
        const real *from = x + r * ldx;
        if (beta == 0)
            memcpy(to, from, (size_t)cols * sizeof *to);
        else
            for (int64_t j = 0; j < cols; j++)
                to[j] += from[j];
    }
}

/* The gradient of a previous state for a step of `rows` sequences: assign (beta 0) or add (1). */
static inline real *heed__state_grad(heed_opcall *c, int i, int64_t rows, real *beta)
{
    real *grad = heed__grad_beta(c, i, beta);
    const heed_tensor *x = c->in[i];
    if (*beta == 0 && x->rows > rows)
        memset(grad + rows * x->ld, 0, (size_t)((x->rows - rows) * x->ld) * sizeof *grad);
    return grad;
}

/* A previous state for u (D,k*D): (B,D) or more rows. */
static inline heed_status heed__check_state(heed_opcall *c, const char *name, const heed_tensor *x,
                                            int64_t rows, int64_t d)
{
    if (x->cols == d && x->rows >= rows)
        return HEED_OK;
    return heed__op_shape_fail(c, name, x, "(%lld,%lld) or more rows", (long long)rows,
                               (long long)d);
}

#endif
