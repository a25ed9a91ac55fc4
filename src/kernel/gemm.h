/* gemm.h: matrix products.
 *
 * Operators call heed__gemm: it divides the work among threads and calls one of our serial kernels,
 * or CBLAS where the instruction set has no good one:
 *
 *   gemm_few     C (M,N) = beta C + A B     B (K,N) row-major; A's (i,p) at a[i*a_row + p*a_col]
 *   gemm_few_nt  C (M,N) = beta C + A B^T   A (M,K), B (N,K) row-major
 *   gemm_packed  any product with k > 0, copied into panels first; whether it pays, compared with
 *                a CBLAS, depends on the instruction set
 *
 * beta is 0 (C may hold anything, NaN too) or 1.  In each kernel a row of C comes out the same
 * whatever other rows there are. */
#ifndef HEED_KERNEL_GEMM_H
#define HEED_KERNEL_GEMM_H

#include <heed/base.h>

/* C = f(beta C + op(A) op(B) + bias), row-major; trans_a: A is stored (K,M); trans_b: B is stored
 * (N,K).  Both at once only with sizes below 2^31. */
typedef struct heed__product {
    heed_real *c;
    const heed_real *a, *b;
    int64_t ldc, lda, ldb;
    int64_t m, n, k;
    bool trans_a, trans_b;
    heed_real beta;        /* 0 or 1 */
    bool relu;             /* f */
    const heed_real *bias; /* (N), or NULL */
    heed_real *panels;     /* heed__gemm_panels for each thread, or NULL */
} heed__product;

/* Panels of gemm_packed, in elements: a block of A, one of B, the gaps between B's strips. */
#define HEED_PANEL_A (72 * 512 + 16)
#define HEED_PANEL_B (1024 * 512)
#define HEED_PANEL_COUNT (HEED_PANEL_A + HEED_PANEL_B + 16384)
#define HEED_KERNELS_PACKED(X)                                                                     \
    X(void, gemm_packed, (const heed__product *p))                                                 \
    X(bool, gemm_packed_pays, (void))

#define HEED_KERNELS_GEMM(X)                                                                       \
    X(void, gemm_few,                                                                              \
      (heed_real * c, int64_t ldc, const heed_real *a, int64_t a_row, int64_t a_col,               \
       const heed_real *b, int64_t ldb, int64_t m, int64_t n, int64_t k, heed_real beta))          \
    X(void, gemm_few_nt,                                                                           \
      (heed_real * c, int64_t ldc, const heed_real *a, int64_t lda, const heed_real *b,            \
       int64_t ldb, int64_t m, int64_t n, int64_t k, heed_real beta))

/* Elements that each thread needs for packing in this product and its gradients, or 0: a product is
 * packed only if it has them. */
int64_t heed__gemm_panels(int64_t m, int64_t n, int64_t k);
/* after, if not NULL, is called for each finished block of rows of C while it is still in cache, by
 * the thread that computed it: rows [begin,end), columns [left,right). */
typedef void heed__after_block(void *context, int64_t begin, int64_t end, int64_t left,
                               int64_t right);
void heed__gemm(const heed__product *p, int threads, heed__after_block *after, void *context);

#endif
