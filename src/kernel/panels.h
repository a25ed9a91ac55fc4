/* panels.h: products of few or many rows with weights that were packed once, for decoding.
 *
 *   C (M,N) = f(A W + bias)      A (M,K) row-major, W (K,N) in panels of HEED_PANEL columns
 *
 * Numbers ("real"): panel p holds columns 16p..16p+15, row after row: element (k,j) of W is
 * panels[(p*K + k)*16 + j%16].  Columns beyond N are zeros.
 *
 * Bytes (int8): four k at a time stand together, so that one 32-bit lane is one column: element
 * (k,j) is panels[((p*G + k/4)*16 + j%16)*4 + k%4], G = heed__panel_groups(K).  Rows beyond K and
 * columns beyond N are zeros.  One layout for every instruction set: 64 bytes are one register of
 * AVX-512, two of AVX2, four of SSE2.
 *   W[k][j] ~ scale[j] * byte[k][j], |byte| <= 127
 *
 * Each element of C is one chain of multiply-adds in the order of k (real), or an exact integer sum
 * (bytes), whatever the number of rows and however columns are shared among threads: a call makes
 * the columns of panels [begin,end).
 *
 * A row of A becomes unsigned 7-bit numbers between its smallest and largest value:
 *   a[i][k] ~ low[i] + step[i] * byte[i][k], 0 <= byte <= 127; rows beyond K are 0
 *   c[i][j] = f(scale[j] * (step[i] * sum_k byte[i][k] w[k][j] + low[i] * sum_k w[k][j]) + bias[j])
 * AVX2 adds eight products of bytes in 16 bits.  For that to be exact whatever A holds, the scale
 * of a column is such that of any eight weights that meet there, those of one sign add up to at
 * most HEED_PANEL_MOST: 127 * 258 < 2^15.  That costs a fraction of a bit: weights have two signs,
 * and few are large. */
#ifndef HEED_KERNEL_PANELS_H
#define HEED_KERNEL_PANELS_H

#include <heed/base.h>

#define HEED_PANEL 16
/* Rows of a step: those whose k is 0 or 1 modulo 4 meet, and those where it is 2 or 3. */
#define HEED_PANEL_STEP 16
#define HEED_PANEL_MOST 258

static inline int64_t heed__panels(int64_t n)
{
    return (n + HEED_PANEL - 1) / HEED_PANEL;
}

/* Groups of four rows, as many as make whole steps. */
static inline int64_t heed__panel_groups(int64_t k)
{
    return (k + HEED_PANEL_STEP - 1) / HEED_PANEL_STEP * (HEED_PANEL_STEP / 4);
}

typedef struct heed__panel_weights {
    int64_t k, n;
    int bits;              /* 0: real, 8: bytes */
    bool from_memory;      /* no cache holds them */
    const heed_real *real; /* bits 0 */
    const int8_t *bytes;   /* bits 8 */
    const float *scale;    /* (N rounded up to panels) for bytes */
    const int32_t *sum;    /* (N rounded up to panels) for bytes: sum_k byte[k][j] */
    const heed_real *bias; /* (N) or NULL */
    int activation;        /* heed_activation, f */
} heed__panel_weights;

/* Rows of A as bytes: what panel_quantise makes. */
typedef struct heed__panel_rows {
    uint8_t *bytes;    /* (M, 4 * heed__panel_groups(K)) */
    float *step, *low; /* (M) */
} heed__panel_rows;

/* panel_product    columns of panels [begin,end) of C; ldc >= N; a is read where bits is 0
 * panel_quantise   rows of A to bytes
 * panel_column     column j of W, as numbers, times `factor`: an embedding's row, looked up in a
 *                  tied output matrix; out (K) */
#define HEED_KERNELS_PANELS(X)                                                                     \
    X(void, panel_product,                                                                         \
      (heed_real * c, int64_t ldc, const heed_real *a, int64_t lda, const heed__panel_rows *rows,  \
       int64_t m, const heed__panel_weights *w, int64_t begin, int64_t end))                       \
    X(void, panel_quantise,                                                                        \
      (const heed__panel_rows *rows, const heed_real *a, int64_t lda, int64_t m, int64_t k))       \
    X(void, panel_column,                                                                          \
      (heed_real * out, const heed__panel_weights *w, int64_t j, heed_real factor))

/* attend_row   one query against n keys and values at any addresses, all heads: softmax of
 *              scale q.k over the n, then the weighted sum of the values.  q (H*Dk), key[i]
 *              (H*Dk) and behind it its value (H*Dv), out (H*Dv); weights (H,n) is written and is
 *              the caller's.  n = 0 gives zeros.  Sums run in the order of i.  Meanwhile memory is
 *              asked for the keys of the next query, next (soon).
 * log_sum_exp  of one row of n numbers, in chunks of fixed size in their order, so that it can ride
 *              along with a product: log_sum_exp_part gives max and sum of exp(x - max) of a
 *              chunk of at most HEED_LSE_CHUNK numbers; where sum is NULL, only max, which is NaN
 *              if one of them is. */
#define HEED_LSE_CHUNK 256
#define HEED_KERNELS_ATTEND(X)                                                                     \
    X(void, attend_row,                                                                            \
      (heed_real * out, heed_real * weights, const heed_real *q, const heed_real *const *key,      \
       int64_t n, const heed_real *const *next, int64_t soon, int64_t heads, int64_t d_k,          \
       int64_t d_v, heed_real scale))                                                              \
    X(void, log_sum_exp_part, (heed_real * max, heed_real * sum, const heed_real *x, int64_t n))

/* panels.c, compiled once: packing.  Any of the two strides may be 1. */
int64_t heed__panel_reals(int64_t k, int64_t n); /* numbers in all panels */
int64_t heed__panel_bytes(int64_t k, int64_t n);
/* Element (k,j) of W is w[k*row + j*col]. */
void heed__panel_pack(heed_real *panels, const heed_real *w, int64_t row, int64_t col, int64_t k,
                      int64_t n);
/* scale[j] is the smallest with which no byte is above 127 and no eight are above HEED_PANEL_MOST,
 * or a little more; all of scale and sum, rounded up, are set. */
void heed__panel_pack_bytes(int8_t *panels, float *scale, int32_t *sum, const heed_real *w,
                            int64_t row, int64_t col, int64_t k, int64_t n);

/* Some columns of packed weights without bias or activation, packed again into memory of as many
 * numbers or bytes, and for bytes a float and an int32_t for each column of their panels behind
 * them. */
void heed__panel_select(heed__panel_weights *selected, void *memory, const heed__panel_weights *w,
                        const int32_t *column, int64_t count);

#endif
