/* pool_rows.h: the largest of rows that are found by pointers, column by column.
 *
 *   pool_max       y[j] = max over t of from[t][j]; NaN if one is
 *   pool_max_grad  to[t][j] += dy[j] for the first t whose from[t][j] is y[j] */
#ifndef HEED_KERNEL_POOL_ROWS_H
#define HEED_KERNEL_POOL_ROWS_H

#include <heed/base.h>

#define HEED_KERNELS_POOL(X)                                                                       \
    X(void, pool_max, (heed_real * y, const heed_real *const *from, int64_t taps, int64_t n))      \
    X(void, pool_max_grad,                                                                         \
      (heed_real *const *to, const heed_real *const *from, const heed_real *y,                     \
       const heed_real *dy, int64_t taps, int64_t n))

#endif
