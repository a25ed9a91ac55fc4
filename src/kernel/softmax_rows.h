/* softmax_rows.h: softmax, log-softmax and cross-entropy over rows.
 *   softmax_rows          y = exp(x - max) / sum             a row of -inf alone: zeros
 *   softmax_backward      dx (+)= y (dy - sum dy y)
 *   log_softmax_rows      y = x - max - log sum              a row of -inf alone: -inf
 *   log_softmax_backward  dx (+)= dy - exp(y) sum dy         a row of -inf alone: zeros
 * For the target distribution q, 1-e on `target` and e uniform over all v:
 *   cross_entropy_row     the row's loss - sum q log p, its nll - log p[target], and what the
 *                         gradient needs of the row
 *   cross_entropy_grad    dx (+)= scale (p - q)
 *   cross_entropy_both    both, in place of x, with half of the exponentials
 * assign: write instead of add.  y and dy have no gaps between rows. */
#ifndef HEED_KERNEL_SOFTMAX_ROWS_H
#define HEED_KERNEL_SOFTMAX_ROWS_H

#include <heed/base.h>

/* One row of cross-entropy.  log p[i] = x[i] - max - log_sum. */
typedef struct heed__entropy {
    double loss, nll;
    heed_real max, log_sum;
} heed__entropy;

#define HEED_KERNELS_SOFTMAX(X)                                                                    \
    X(void, softmax_rows,                                                                          \
      (heed_real * y, const heed_real *x, int64_t ldx, int64_t rows, int64_t cols))                \
    X(void, softmax_backward,                                                                      \
      (heed_real * dx, int64_t lddx, const heed_real *dy, const heed_real *y, int64_t rows,        \
       int64_t cols, bool assign))                                                                 \
    X(void, log_softmax_rows,                                                                      \
      (heed_real * y, const heed_real *x, int64_t ldx, int64_t rows, int64_t cols))                \
    X(void, log_softmax_backward,                                                                  \
      (heed_real * dx, int64_t lddx, const heed_real *dy, const heed_real *y, int64_t rows,        \
       int64_t cols, bool assign))                                                                 \
    X(heed__entropy, cross_entropy_row,                                                            \
      (const heed_real *x, int64_t v, int32_t target, double smoothing))                           \
    X(heed__entropy, cross_entropy_both,                                                           \
      (heed_real * x, int64_t v, int32_t target, double smoothing, double scale))                  \
    X(void, cross_entropy_grad,                                                                    \
      (heed_real * dx, const heed_real *x, const heed__entropy *row, int64_t v, int32_t target,    \
       double smoothing, double scale, bool assign))

#endif
