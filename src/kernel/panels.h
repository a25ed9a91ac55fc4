/* panels.h: products of few or many rows with packed weights, for decoding.
 *
 *   C (M,N) = f(A W + bias)      A (M,K) row-major, W (K,N) in panels of HEED_PANEL columns
 *
 * fp32 ("real"): panel p holds columns 16p..16p+15, row after row: element (k,j) of W is
 * panels[(p*K + k)*16 + j%16].  Columns beyond N are zeros.
 *
 * int8: four k are stored together, so that one 32-bit lane is one column: element (k,j) is
 * panels[((p*G + k/4)*16 + j%16)*4 + k%4], G = heed__panel_groups(K).  Rows beyond K and columns
 * beyond N are zeros.  One layout for every instruction set: 64 bytes are one register of AVX-512,
 * two of AVX2, four of SSE2.
 *   W[k][j] ~ scale[j] * byte[k][j], |byte| <= 127
 *
 * Each element of C is one chain of multiply-adds in the order of k (fp32), or an exact integer sum
 * (int8), whatever the number of rows and however columns are divided among threads: a call
 * computes the columns of panels [begin,end).
 *
 * A row of A is quantised to 7 bits, unsigned, between its smallest and largest value:
 *   a[i][k] ~ low[i] + step[i] * byte[i][k], 0 <= byte <= 127; rows beyond K are 0
 *   c[i][j] = f(scale[j] * (step[i] * sum_k byte[i][k] w[k][j] + low[i] * sum_k w[k][j]) + bias[j])
 * AVX2 adds eight int8 products in 16 bits.  For that to be exact whatever A holds, the scale of a
 * column is chosen so that of any eight weights added there, those of one sign sum to at most
 * HEED_PANEL_MOST: 127 * 258 < 2^15.  That costs a fraction of a bit: weights have two signs, and
 * few are large.
 *
 * Weights that another program has quantised keep their own scales, and may have a multiplier for
 * what they are multiplied with: then a[i][k] ~ (byte - 127) / multiplier, byte - 127 the nearest
 * of -127..127, whatever else is in the row.  Where 16 bits are too few for such weights (wide),
 * the products are added in 32. */
#ifndef HEED_KERNEL_PANELS_H
#define HEED_KERNEL_PANELS_H

#include <heed/base.h>

#define HEED_PANEL 16
/* Rows of a step: those with k mod 4 of 0 or 1 are added in one 16-bit lane, those with 2 or 3 in
 * another. */
#define HEED_PANEL_STEP 16
#define HEED_PANEL_MOST 258
#define HEED_PANEL_MOST_FIXED 129 /* of rows with a multiplier, whose bytes are 0..254 */

static inline int64_t heed__panels(int64_t n)
{
    return (n + HEED_PANEL - 1) / HEED_PANEL;
}

/* Number of groups of four rows, rounded up to whole steps. */
static inline int64_t heed__panel_groups(int64_t k)
{
    return (k + HEED_PANEL_STEP - 1) / HEED_PANEL_STEP * (HEED_PANEL_STEP / 4);
}

typedef struct heed__panel_weights {
    int64_t k, n;
    int bits;              /* 0: fp32, 8: int8 */
    bool from_memory;      /* too large for the caches */
    const heed_real *real; /* bits 0 */
    const int8_t *bytes;   /* bits 8 */
    const float *scale;    /* (N rounded up to panels) for int8 */
    const int32_t *sum;    /* (N rounded up to panels) for int8: sum_k byte[k][j] */
    float multiplier;      /* for int8: of the rows of A; 0: each row has its own step */
    bool wide;             /* for int8: sums of eight may leave 16 bits */
    const heed_real *bias; /* (N) or NULL */
    int activation;        /* heed_activation, f */
} heed__panel_weights;

/* What eight weights of one sign may sum to without `wide`. */
static inline int32_t heed__panel_most(const heed__panel_weights *w)
{
    return w->multiplier > 0 ? HEED_PANEL_MOST_FIXED : HEED_PANEL_MOST;
}

/* Quantised rows of A, made by panel_quantise or panel_quantise_fixed. */
typedef struct heed__panel_rows {
    uint8_t *bytes;    /* (M, 4 * heed__panel_groups(K)) */
    float *step, *low; /* (M) */
} heed__panel_rows;

/* panel_product    columns of panels [begin,end) of C; ldc >= N; a is read if bits is 0
 * panel_quantise   quantises rows of A
 * panel_quantise_fixed  the same with a multiplier
 * panel_column     column j of W in fp32, times `factor`: an embedding's row, looked up in a
 *                  tied output matrix; out (K) */
#define HEED_KERNELS_PANELS(X)                                                                     \
    X(void, panel_product,                                                                         \
      (heed_real * c, int64_t ldc, const heed_real *a, int64_t lda, const heed__panel_rows *rows,  \
       int64_t m, const heed__panel_weights *w, int64_t begin, int64_t end))                       \
    X(void, panel_quantise,                                                                        \
      (const heed__panel_rows *rows, const heed_real *a, int64_t lda, int64_t m, int64_t k))       \
    X(void, panel_quantise_fixed,                                                                  \
      (const heed__panel_rows *rows, const heed_real *a, int64_t lda, int64_t m, int64_t k,        \
       float multiplier))                                                                          \
    X(void, panel_column,                                                                          \
      (heed_real * out, const heed__panel_weights *w, int64_t j, heed_real factor))

/* What one attention does with any query and its keys. */
typedef struct heed__attend_form {
    int64_t heads, kv_heads; /* H, and a divisor of it: head h meets key head h / (H/KvHeads) */
    int64_t d_k, d_v;
    int64_t value;          /* from a key to its value */
    heed_real scale;        /* of q.k */
    const heed_real *slope; /* (H): a score loses slope times distance; NULL: none */
    const heed_real *bias;  /* (H,columns): added at a key's column; NULL: none */
    int64_t columns;
} heed__attend_form;
/* The keys of one query, in the order in which sums run. */
typedef struct heed__attend_keys {
    const heed_real *const *key; /* (n) all key heads, at any addresses */
    int64_t n;
    const heed_real *distance;    /* (n) of a form with slopes: how far each is, 0 or more */
    const int32_t *column;        /* (n) of a form with a bias; -1: none is added */
    const heed_real *const *next; /* (next_n) prefetched: keys of the next query */
    int64_t next_n;
} heed__attend_keys;

/* attend_row   one query against n keys and values, all heads: softmax of scale q.k - slope
 *              distance + bias over the n, then the sum of the values, weighed.  q (H*Dk), key[i]
 *              (KvHeads*Dk) and at key[i] + value its value (KvHeads*Dv), out (H*Dv);
 *              probabilities (H,n) is written and is the caller's.  n = 0 gives zeros.  Sums run
 *              in the order of i.  Which keys a query sees is decided by who lists them; heads
 *              that see different keys take a call each.
 * log_sum_exp  of one row of n numbers, in chunks of fixed size in their order, so that it can ride
 *              along with a product: log_sum_exp_part gives max and sum of exp(x - max) of a
 *              chunk of at most HEED_LSE_CHUNK numbers; where sum is NULL, only max, which is NaN
 *              if one of them is. */
#define HEED_LSE_CHUNK 256
#define HEED_KERNELS_ATTEND(X)                                                                     \
    X(void, attend_row,                                                                            \
      (heed_real * out, heed_real * probabilities, const heed_real *q,                             \
       const heed__attend_form *form, const heed__attend_keys *keys))                              \
    X(void, log_sum_exp_part, (heed_real * max, heed_real * sum, const heed_real *x, int64_t n))

/* panels.c, compiled once: packing.  Any of the two strides may be 1. */
int64_t heed__panel_reals(int64_t k, int64_t n); /* elements in all panels */
int64_t heed__panel_bytes(int64_t k, int64_t n);
/* Element (k,j) of W is w[k*row + j*col]. */
void heed__panel_pack(heed_real *panels, const heed_real *w, int64_t row, int64_t col, int64_t k,
                      int64_t n);
/* scale[j] is the smallest, or a little more, with which no |byte| exceeds 127 and no eight sum to
 * more than HEED_PANEL_MOST; all of scale and sum, rounded up to panels, are set. */
void heed__panel_pack_int8(int8_t *panels, float *scale, int32_t *sum, const heed_real *w,
                           int64_t row, int64_t col, int64_t k, int64_t n);
/* The same of weights that are int8 already, w[k*row + j*col], each column with this scale; how
 * many columns have eight weights of one sign that sum to more than `most`. */
int64_t heed__panel_keep_int8(int8_t *panels, float *scale, int32_t *sum, const int8_t *w,
                              int64_t row, int64_t col, int64_t k, int64_t n, float of_all,
                              int32_t most);
/* How many columns of int8 panels have eight weights that sum to more than `most`. */
int64_t heed__panel_exceeding(const int8_t *panels, int64_t k, int64_t n, int32_t most);

/* Some columns of packed weights without bias or activation, packed again into memory that holds as
 * many elements, followed, for int8, by a float and an int32_t for each column of their panels. */
void heed__panel_select(heed__panel_weights *selected, void *memory, const heed__panel_weights *w,
                        const int32_t *column, int64_t count);

#endif
