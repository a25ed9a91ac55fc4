/* matmul: C = A B, A B^T or A^T B.  NN: a (M,K) b (K,N); NT: a (M,K) b (N,K); TN: a (K,M) b (K,N);
 * -> (M,N).  2 M N K operations, twice that for both gradients.  Derivatives: matmul.h. */
#include "ops/matmul.h"

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    heed_transpose transpose = *(const heed_transpose *)c->attributes;
    if (matmul_check(c, transpose))
        return HEED_ARGUMENT;
    if (a->shape.rank > 2)
        return heed__op_shape_fail(c, "a", a, "a matrix");
    matmul s;
    if (b->shape.rank > 2 || !matmul_sizes(&s, transpose, a->rows, a->cols, b->rows, b->cols))
        return heed__op_shape_fail(c, "b", b, transpose == HEED_NT ? "(N,%lld)" : "(%lld,N)",
                                   (long long)(transpose == HEED_TN ? a->rows : a->cols));
    heed_status status = heed__save(c, sizeof s);
    if (status || (status = heed__want_panels(c, s.m, s.n, s.k)))
        return status;
    *(matmul *)c->saved = s;
    return heed__out(c, HEED_SHAPE(s.m, s.n));
}

static void forward(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1], *y = c->out[0];
    heed__product p = product_forward(c->saved, (matrix){y->data, y->ld}, (matrix){a->data, a->ld},
                                      (matrix){b->data, b->ld});
    heed__op_gemm(c, &p, NULL, NULL);
}

static void backward(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    matrix dy = {heed__out_grad(c, 0), c->out[0]->ld};
    real beta;
    if (heed__wants(c, 0)) {
        matrix da = {heed__grad_beta(c, 0, &beta), a->ld};
        heed__product p = product_grad_a(c->saved, da, dy, (matrix){b->data, b->ld}, beta);
        heed__op_gemm(c, &p, NULL, NULL);
    }
    if (heed__wants(c, 1)) {
        matrix db = {heed__grad_beta(c, 1, &beta), b->ld};
        heed__product p = product_grad_b(c->saved, db, dy, (matrix){a->data, a->ld}, beta);
        heed__op_gemm(c, &p, NULL, NULL);
    }
}

/* What a case gives besides tensors. */
struct arguments {
    heed_transpose transpose;
};

static const heed_opcase cases[] = {
    {.what = "nn", .in = {HEED_DIMS2(5, 7), HEED_DIMS2(7, 3)}, HEED_WITH(.transpose = HEED_NN)},
    {.what = "nt", .in = {HEED_DIMS2(5, 7), HEED_DIMS2(3, 7)}, HEED_WITH(.transpose = HEED_NT)},
    {.what = "tn", .in = {HEED_DIMS2(7, 5), HEED_DIMS2(7, 3)}, HEED_WITH(.transpose = HEED_TN)},
    {.what = "squares, also of one tensor",
     .in = {HEED_DIMS2(4, 4), HEED_DIMS2(4, 4)},
     HEED_WITH(.transpose = HEED_NN)},
    {.what = "a tensor with itself",
     .in = {HEED_DIMS2(3, 5), HEED_DIMS2(3, 5)},
     HEED_WITH(.transpose = HEED_NT)},
    {.what = "one row",
     .in = {HEED_DIMS2(1, 6), HEED_DIMS2(6, 9)},
     HEED_WITH(.transpose = HEED_NN)},
    {.what = "one column",
     .in = {HEED_DIMS2(6, 9), HEED_DIMS2(9, 1)},
     HEED_WITH(.transpose = HEED_NN)},
    {.what = "one column transposed",
     .in = {HEED_DIMS2(9, 6), HEED_DIMS2(9, 1)},
     HEED_WITH(.transpose = HEED_TN)},
    {.what = "a sum of one",
     .in = {HEED_DIMS2(6, 1), HEED_DIMS2(1, 9)},
     HEED_WITH(.transpose = HEED_NN)},
    {.what = "a sum of one, transposed",
     .in = {HEED_DIMS2(6, 1), HEED_DIMS2(9, 1)},
     HEED_WITH(.transpose = HEED_NT)},
    {.what = "several tiles",
     .in = {HEED_DIMS2(18, 20), HEED_DIMS2(20, 19)},
     HEED_WITH(.transpose = HEED_NN)},
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_matmul(t, in[0], in[1], a->transpose);
}

HEED_OP(matmul, "C = A B, A B^T or A^T B", shape, forward, backward, cases, run);

heed_tensor *heed_matmul(heed_tape *t, heed_tensor *a, heed_tensor *b, heed_transpose transpose)
{
    heed_tensor *in[] = {a, b};
    return heed__first(heed__apply(t, &heed__op_matmul, in, 2, 0, &transpose, sizeof transpose));
}
