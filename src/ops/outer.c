/* outer.c: the outer product of each pair of rows, y[i*J + j] = a[i] b[j].
 * a (N,I), b (N,J) -> (N, I*J). */
#include <heed/ops.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "tensor/op.h"

struct job {
    const heed_kernels *k;
    const heed_tensor *a, *b;
    real *y, *da, *db;
    const real *dy;
};

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    if (a->rows != b->rows)
        return heed__op_shape_fail(c, "b", b, "(%lld,J), the rows of a", (long long)a->rows);
    heed_shape s = a->shape;
    if (!heed__multiply(a->cols, b->cols, &s.dim[s.rank - 1]))
        return heed__op_shape_fail(c, "b", b, "fewer columns");
    return heed__out(c, s);
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t rows = j->a->cols, cols = j->b->cols; /* of one product */
    for (int64_t r = begin; r < end; r++) {
        const real *a = heed__row(j->a, r), *b = heed__row(j->b, r);
        for (int64_t i = 0; i < rows; i++)
            j->k->affine(j->y + (r * rows + i) * cols, b, a[i], 0, cols);
    }
}

static void forward(heed_opcall *c)
{
    struct job j = {.k = heed__kernels(), .a = c->in[0], .b = c->in[1], .y = c->out[0]->data};
    heed__parallel(heed__threads(c), j.a->rows, 1, j.a->cols * j.b->cols, compute, &j);
}

/* y[i,j] = a[i] b[j], so da[i] = sum_j dy[i,j] b[j] and db[j] = sum_i dy[i,j] a[i]; only the one
 * that is needed */
static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t rows = j->a->cols, cols = j->b->cols;
    for (int64_t r = begin; r < end; r++) {
        const real *a = heed__row(j->a, r), *b = heed__row(j->b, r);
        for (int64_t i = 0; i < rows; i++) {
            const real *dy = j->dy + (r * rows + i) * cols;
            if (j->da)
                j->da[r * j->a->ld + i] += j->k->row_dot(dy, b, cols);
            else
                j->k->accumulate(j->db + r * j->b->ld, dy, a[i], cols);
        }
    }
}

static void backward(heed_opcall *c)
{
    for (int i = 0; i < 2; i++) {
        if (!heed__wants(c, i))
            continue;
        struct job j = {.k = heed__kernels(),
                        .a = c->in[0],
                        .b = c->in[1],
                        .dy = heed__out_grad(c, 0),
                        .da = i == 0 ? heed__grad(c, 0) : NULL,
                        .db = i == 1 ? heed__grad(c, 1) : NULL};
        heed__parallel(heed__threads(c), j.a->rows, 1, j.a->cols * j.b->cols, grad, &j);
    }
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed_outer(t, in[0], in[1]);
}

static const heed_opcase cases[] = {
    {"rows", {HEED_DIMS2(3, 2), HEED_DIMS2(3, 9)}, .domain = HEED_ANY},
    {"equal widths", {HEED_DIMS2(2, 3), HEED_DIMS2(2, 3)}, .domain = HEED_ANY},
    {"a scalar by a row", {HEED_DIMS2(1, 1), HEED_DIMS2(1, 5)}, .domain = HEED_ANY},
};
HEED_OP(outer, "y[i*J+j] = a[i] b[j]", shape, forward, backward, cases, run);

heed_tensor *heed_outer(heed_tape *t, heed_tensor *a, heed_tensor *b)
{
    return heed__first(heed__apply(t, &heed__op_outer, (heed_tensor *[]){a, b}, 2, 0, NULL, 0));
}
