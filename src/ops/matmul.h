/* matmul.h: a matmul and its two gradients, for the plain and the batched operator.
 *
 *         C         dA            dB
 *   NN    A B       dC B^T        A^T dC
 *   NT    A B^T     dC B          dC^T A
 *   TN    A^T B     B dC^T        A dC
 *
 * C is (m,n), the sum runs over k; gradients have their inputs' layout. */
#ifndef HEED_OPS_MATMUL_H
#define HEED_OPS_MATMUL_H

#include "tensor/op.h"

#include <heed/ops.h>

static inline heed_status matmul_check(heed_opcall *c, heed_transpose transpose)
{
    if (transpose == HEED_NN || transpose == HEED_NT || transpose == HEED_TN)
        return HEED_OK;
    return heed__op_fail(c, HEED_ARGUMENT, "transpose is %d, expected HEED_NN, HEED_NT or HEED_TN",
                         (int)transpose);
}

typedef struct matrix {
    real *data;
    int64_t ld;
} matrix;

static inline heed__product matrix_product(matrix c, int64_t m, int64_t n, int64_t k, matrix a,
                                           bool trans_a, matrix b, bool trans_b, real beta)
{
    return (heed__product){.c = c.data,
                           .ldc = c.ld,
                           .a = a.data,
                           .lda = a.ld,
                           .b = b.data,
                           .ldb = b.ld,
                           .m = m,
                           .n = n,
                           .k = k,
                           .trans_a = trans_a,
                           .trans_b = trans_b,
                           .beta = beta};
}

typedef struct matmul {
    heed_transpose transpose;
    int64_t m, n, k;
} matmul;

static inline heed__product product_forward(const matmul *s, matrix c, matrix a, matrix b)
{
    return matrix_product(c, s->m, s->n, s->k, a, s->transpose == HEED_TN, b,
                          s->transpose == HEED_NT, 0);
}

static inline heed__product product_grad_a(const matmul *s, matrix da, matrix dc, matrix b,
                                           real beta)
{
    if (s->transpose == HEED_TN)
        return matrix_product(da, s->k, s->m, s->n, b, false, dc, true, beta);
    return matrix_product(da, s->m, s->k, s->n, dc, false, b, s->transpose == HEED_NN, beta);
}

static inline heed__product product_grad_b(const matmul *s, matrix db, matrix dc, matrix a,
                                           real beta)
{
    if (s->transpose == HEED_NT)
        return matrix_product(db, s->n, s->k, s->m, dc, true, a, false, beta);
    return matrix_product(db, s->k, s->n, s->m, a, s->transpose == HEED_NN, dc, false, beta);
}

/* Sizes for a (rows,cols) and b; false if the inner sizes differ or the transposition is
 * unknown. */
static inline bool matmul_sizes(matmul *s, heed_transpose transpose, int64_t a_rows, int64_t a_cols,
                                int64_t b_rows, int64_t b_cols)
{
    s->transpose = transpose;
    s->m = transpose == HEED_TN ? a_cols : a_rows;
    s->k = transpose == HEED_TN ? a_rows : a_cols;
    s->n = transpose == HEED_NT ? b_rows : b_cols;
    return s->k == (transpose == HEED_NT ? b_cols : b_rows);
}

#endif
