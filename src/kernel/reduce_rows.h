/* reduce_rows.h: reductions along a row or down the columns of a block of rows. */
#ifndef HEED_KERNEL_REDUCE_ROWS_H
#define HEED_KERNEL_REDUCE_ROWS_H

#include <heed/base.h>

/* Rows: n contiguous elements; the order of a sum does not depend on the threads.
 *
 *   row_sum, row_dot  sum x; sum a b
 *   row_max           the largest (-inf for n = 0); *index its first position
 *   row_logsumexp     log sum exp x; -inf if all are
 *   row_exp_grad      dx += dy exp(x - y), the derivative of y = row_logsumexp
 *
 * Columns: x is `rows` rows of n elements, ld apart; each column is reduced on its own, top to
 * bottom.
 *
 *   column_sum, column_max (first row that has it), column_logsumexp, column_exp_grad: as above
 *   column_softmax       y = exp(x - max) / sum; a column of -inf gives zeros
 *   column_softmax_grad  dx += y (dy - sum dy y); dy and y have the same ld */
#define HEED_KERNELS_REDUCE(X)                                                                     \
    X(heed_real, row_sum, (const heed_real *x, int64_t n))                                         \
    X(heed_real, row_dot, (const heed_real *a, const heed_real *b, int64_t n))                     \
    X(heed_real, row_max, (const heed_real *x, int64_t n, int32_t *index))                         \
    X(heed_real, row_logsumexp, (const heed_real *x, int64_t n))                                   \
    X(void, row_exp_grad,                                                                          \
      (heed_real * dx, const heed_real *x, heed_real y, heed_real dy, int64_t n))                  \
    X(void, column_sum, (heed_real * y, const heed_real *x, int64_t ld, int64_t rows, int64_t n))  \
    X(void, column_max,                                                                            \
      (heed_real * y, int32_t * index, const heed_real *x, int64_t ld, int64_t rows, int64_t n))   \
    X(void, column_logsumexp,                                                                      \
      (heed_real * y, const heed_real *x, int64_t ld, int64_t rows, int64_t n))                    \
    X(void, column_exp_grad,                                                                       \
      (heed_real * dx, const heed_real *x, int64_t ld, const heed_real *y, const heed_real *dy,    \
       int64_t rows, int64_t n))                                                                   \
    X(void, column_softmax,                                                                        \
      (heed_real * y, int64_t ldy, const heed_real *x, int64_t ldx, int64_t rows, int64_t n))      \
    X(void, column_softmax_grad,                                                                   \
      (heed_real * dx, int64_t ldx, const heed_real *dy, const heed_real *y, int64_t ldy,          \
       int64_t rows, int64_t n))

#endif
