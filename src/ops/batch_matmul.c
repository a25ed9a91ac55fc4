/* batch_matmul: matmul for each of G pairs of matrices.  NN: a (G,M,K) b (G,K,N); NT: b (G,N,K);
 * TN: a (G,K,M); -> (G,M,N).  Each thread gets whole pairs.  Derivatives: matmul.h. */
#include "base/parallel.h"
#include "ops/matmul.h"

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    heed_transpose transpose = *(const heed_transpose *)c->attributes;
    if (matmul_check(c, transpose))
        return HEED_ARGUMENT;
    if (a->shape.rank != 3)
        return heed__op_shape_fail(c, "a", a, "(G,M,K)");
    matmul s;
    const int64_t *p = a->shape.dim, *q = b->shape.dim;
    if (b->shape.rank != 3 || q[0] != p[0] || !matmul_sizes(&s, transpose, p[1], p[2], q[1], q[2]))
        return heed__op_shape_fail(
            c, "b", b, transpose == HEED_NT ? "(%lld,N,%lld)" : "(%lld,%lld,N)", (long long)p[0],
            (long long)(transpose == HEED_TN ? p[1] : p[2]));
    heed_status status = heed__save(c, sizeof s);
    if (status || (status = heed__want_panels(c, s.m, s.n, s.k)))
        return status;
    *(matmul *)c->saved = s;
    return heed__out(c, HEED_SHAPE(p[0], s.m, s.n));
}

typedef enum target { OUTPUT, GRAD_A, GRAD_B } target;

typedef struct job {
    const heed_opcall *c;
    target what;
    real *to; /* the result */
    const real *dy;
    real beta;
} job;

/* Matrix g of a tensor (G,rows,cols) whose data, or gradient, starts at `from`. */
static matrix matrix_of(const heed_tensor *x, const real *from, int64_t g)
{
    return (matrix){(real *)from + g * x->shape.dim[1] * x->ld, x->ld};
}

static void range(void *context, int64_t begin, int64_t end, int thread)
{
    const job *j = context;
    const heed_tensor *a = j->c->in[0], *b = j->c->in[1], *y = j->c->out[0];
    for (int64_t g = begin; g < end; g++) {
        heed__product p;
        if (j->what == OUTPUT)
            p = product_forward(j->c->saved, matrix_of(y, j->to, g), matrix_of(a, a->data, g),
                                matrix_of(b, b->data, g));
        else if (j->what == GRAD_A)
            p = product_grad_a(j->c->saved, matrix_of(a, j->to, g), matrix_of(y, j->dy, g),
                               matrix_of(b, b->data, g), j->beta);
        else
            p = product_grad_b(j->c->saved, matrix_of(b, j->to, g), matrix_of(y, j->dy, g),
                               matrix_of(a, a->data, g), j->beta);
        p.panels = heed__thread_panels(j->c, thread);
        heed__gemm(&p, 1, NULL, NULL);
    }
}

static void deal(job *j)
{
    const matmul *s = j->c->saved;
    heed__parallel(heed__threads(j->c), j->c->out[0]->shape.dim[0], 1, s->m * s->n * s->k, range,
                   j);
}

static void forward(heed_opcall *c)
{
    deal(&(job){.c = c, .what = OUTPUT, .to = c->out[0]->data});
}

static void backward(heed_opcall *c)
{
    job j = {.c = c, .dy = heed__out_grad(c, 0)};
    for (int i = 0; i < 2; i++)
        if (heed__wants(c, i)) {
            j.what = i == 0 ? GRAD_A : GRAD_B;
            j.to = heed__grad_beta(c, i, &j.beta);
            deal(&j);
        }
}

/* What a case gives besides tensors. */
struct arguments {
    heed_transpose transpose;
};

static const heed_opcase cases[] = {
    {.what = "nn",
     .in = {HEED_DIMS3(3, 5, 7), HEED_DIMS3(3, 7, 2)},
     HEED_WITH(.transpose = HEED_NN)},
    {.what = "nt",
     .in = {HEED_DIMS3(2, 5, 3), HEED_DIMS3(2, 4, 3)},
     HEED_WITH(.transpose = HEED_NT)},
    {.what = "tn",
     .in = {HEED_DIMS3(2, 3, 5), HEED_DIMS3(2, 3, 4)},
     HEED_WITH(.transpose = HEED_TN)},
    {.what = "squares, also of one tensor",
     .in = {HEED_DIMS3(2, 3, 3), HEED_DIMS3(2, 3, 3)},
     HEED_WITH(.transpose = HEED_NN)},
    {.what = "all of size 1",
     .in = {HEED_DIMS3(1, 1, 1), HEED_DIMS3(1, 1, 1)},
     HEED_WITH(.transpose = HEED_NN)},
    {.what = "one row",
     .in = {HEED_DIMS3(4, 1, 3), HEED_DIMS3(4, 9, 3)},
     HEED_WITH(.transpose = HEED_NT)},
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_batch_matmul(t, in[0], in[1], a->transpose);
}

HEED_OP(batch_matmul, "C_g = A_g B_g, A_g B_g^T or A_g^T B_g", shape, forward, backward, cases,
        run);

heed_tensor *heed_batch_matmul(heed_tape *t, heed_tensor *a, heed_tensor *b,
                               heed_transpose transpose)
{
    heed_tensor *in[] = {a, b};
    return heed__first(
        heed__apply(t, &heed__op_batch_matmul, in, 2, 0, &transpose, sizeof transpose));
}
