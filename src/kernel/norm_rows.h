/* norm_rows.h: one pair of kernels for layer norm, RMS norm and the fused residual + dropout +
 * layer norm; batch norm is four loops over columns.
 *
 *   s = x + dropout(r)    (r NULL: s = x)
 *   y = (s - mean) * rstd * gain + bias,  rstd = 1/sqrt(mean((s - mean)^2) + eps)
 * Not centred (RMS norm): mean = 0.  The backward pass recomputes s from x, r and the mask: one
 * more read, where storing s would cost a write and a read.
 *
 * Row ranges: element (i,j) of dropout is number i*d + j of the stream.  scratch holds
 * HEED_NORM_SCRATCH(d) reals: the mask, s, and this range's sums for gain and bias. */
#ifndef HEED_KERNEL_NORM_ROWS_H
#define HEED_KERNEL_NORM_ROWS_H

#include <heed/base.h>

typedef struct heed__norm {
    const heed_real *x, *r;       /* (N,d) with ldx, ldr */
    const heed_real *gain, *bias; /* (d); bias NULL: zero */
    int64_t d, ldx, ldr;
    bool centred;
    double eps, rate; /* rate only with r */
    heed_rng rng;
    heed_real *y;           /* (N,d) */
    heed_real *mean, *rstd; /* (N) written by forward if not NULL, read by backward */
    const heed_real *dy;    /* (N,d); from here on for backward only */
    heed_real *dx, *dr;     /* NULL: not needed */
    int64_t lddx, lddr;
    bool assign_x, assign_r; /* assign instead of add */
} heed__norm;

#define HEED_NORM_SCRATCH(d) (4 * (d))
#define HEED_NORM_DGAIN(scratch, d) ((scratch) + 2 * (d))
#define HEED_NORM_DBIAS(scratch, d) ((scratch) + 3 * (d))

/* Batch norm, columns [begin,end) over all rows.  mean and rstd are of the batch or the running
 * ones; dgain = sum dy xhat and dbias = sum dy are sums of this call. */
typedef struct heed__column_norm {
    const heed_real *x, *gain, *bias; /* gain NULL: one; bias NULL: zero */
    int64_t rows, d, ldx;
    double *mean, *rstd; /* (d) */
    heed_real *y;
    const heed_real *dy;
    double *dgain, *dbias; /* (d) */
    heed_real *dx;
    int64_t lddx;
    bool fixed; /* mean and rstd do not depend on x: the running statistics */
} heed__column_norm;

#define HEED_KERNELS_NORM(X)                                                                       \
    X(void, norm_forward, (const heed__norm *n, int64_t begin, int64_t end, heed_real *scratch))   \
    X(void, norm_backward, (const heed__norm *n, int64_t begin, int64_t end, heed_real *scratch))  \
    X(void, column_moments,                                                                        \
      (double *mean, double *variance, const heed_real *x, int64_t ldx, int64_t rows,              \
       int64_t begin, int64_t end))                                                                \
    X(void, column_norm_forward, (const heed__column_norm *n, int64_t begin, int64_t end))         \
    X(void, column_norm_sums, (const heed__column_norm *n, int64_t begin, int64_t end))            \
    X(void, column_norm_backward, (const heed__column_norm *n, int64_t begin, int64_t end))

#endif
