/* gemm.h: matrix products.
 *
 * Operators call heed__gemm: it cuts the work over threads and takes CBLAS or, where the libraries
 * are weak (few rows, small sizes), our own kernels, which are serial and need no packing:
 *
 *   gemm_few     C (M,N) = beta C + A B     B (K,N) row-major; A's (i,p) at a[i*a_row + p*a_col]
 *   gemm_few_nt  C (M,N) = beta C + A B^T   A (M,K), B (N,K) row-major
 *
 * beta is 0 (C may hold anything, NaN too) or 1.  In both kernels a row of C comes out the same
 * whatever other rows there are. */
#ifndef HEED_KERNEL_GEMM_H
#define HEED_KERNEL_GEMM_H

#include <heed/base.h>

#define HEED_KERNELS_GEMM(X)                                                                       \
    X(void, gemm_few,                                                                              \
      (heed_real * c, int64_t ldc, const heed_real *a, int64_t a_row, int64_t a_col,               \
       const heed_real *b, int64_t ldb, int64_t m, int64_t n, int64_t k, heed_real beta))          \
    X(void, gemm_few_nt,                                                                           \
      (heed_real * c, int64_t ldc, const heed_real *a, int64_t lda, const heed_real *b,            \
       int64_t ldb, int64_t m, int64_t n, int64_t k, heed_real beta))

/* C = beta C + op(A) op(B), row-major; trans_a: A is stored (K,M); trans_b: B is stored (N,K).
 * Both at once only with sizes below 2^31. */
typedef struct heed__product {
    heed_real *c;
    const heed_real *a, *b;
    int64_t ldc, lda, ldb;
    int64_t m, n, k;
    bool trans_a, trans_b;
    heed_real beta; /* 0 or 1 */
} heed__product;
/* after, if not NULL, is called for each finished block of rows of C while it is still in cache,
 * from the thread that made it: rows [begin,end), columns [left,right). */
typedef void heed__after_block(void *context, int64_t begin, int64_t end, int64_t left,
                               int64_t right);
void heed__gemm(const heed__product *p, int threads, heed__after_block *after, void *context);

#endif
