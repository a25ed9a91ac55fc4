/* conv_rows.h: convolutions as products of rows found by pointers; only weights are copied.
 *
 * A tap is one place of a convolution's kernel and has a matrix (in,out) of weights.
 *
 *   conv_pack   the matrices of `taps` taps, element (t,i,j) at w[t*tap + i*row + j*col], into
 *               strips of columns, HEED_CONV_PANELS elements; strips [begin,end) of conv_strips
 *   conv_rows   to[p] = bias + sum over t of from[t*ld + p] W[tap[t]], p < n; `add`: added to it
 *   conv_pairs  w (in,out) += sum over p of a[p]^T b[p], p < n
 *
 * An element of the result is the same wherever it stands: sums go by taps of at most 512 products
 * together, each one chain. */
#ifndef HEED_KERNEL_CONV_ROWS_H
#define HEED_KERNEL_CONV_ROWS_H

#include <heed/base.h>

/* Enough for every set: the widest strip has 16 columns. */
#define HEED_CONV_PANELS(taps, in, out) ((taps) * (in) * (((out) + 31) / 32 * 32))

typedef struct heed__conv_rows {
    heed_real *const *to;         /* (n) rows of `out` elements */
    const heed_real *const *from; /* (taps, ld) rows of `in` elements */
    const int32_t *tap;           /* (taps) which of the packed matrices */
    const heed_real *panels;      /* from conv_pack */
    const heed_real *bias;        /* (out) or NULL */
    int64_t n, ld, taps;
    int64_t in, out, packed; /* packed: the number of taps in panels */
    bool add;
} heed__conv_rows;

#define HEED_KERNELS_CONV(X)                                                                       \
    X(int64_t, conv_strips, (int64_t out))                                                         \
    X(void, conv_pack,                                                                             \
      (heed_real * panels, const heed_real *w, int64_t tap, int64_t row, int64_t col,              \
       int64_t taps, int64_t in, int64_t out, int64_t begin, int64_t end))                         \
    X(void, conv_rows, (const heed__conv_rows *c))                                                 \
    X(void, conv_pairs,                                                                            \
      (heed_real * w, int64_t ld, const heed_real *const *a, const heed_real *const *b, int64_t n, \
       int64_t in, int64_t out))

#endif
