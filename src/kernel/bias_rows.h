/* bias_rows.h: bias, ReLU and column sums of a linear layer, row by row.
 *
 *   bias_relu     y = max(y + bias, 0); NaN stays; bias may be NULL
 *   column_sums   sum[j] += sum over rows of dy[i,j]; if y is given, dy is first set to zero where
 *                 y <= 0 (derivative of ReLU).  sum may be NULL. */
#ifndef HEED_KERNEL_BIAS_ROWS_H
#define HEED_KERNEL_BIAS_ROWS_H

#include <heed/base.h>

#define HEED_KERNELS_LINEAR(X)                                                                     \
    X(void, bias_relu, (heed_real * y, const heed_real *bias, int64_t n))                          \
    X(void, column_sums,                                                                           \
      (heed_real * sum, heed_real * dy, int64_t ld, const heed_real *y, int64_t ldy, int64_t rows, \
       int64_t n))

#endif
