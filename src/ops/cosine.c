/* cosine.c: the cosine of the angle between rows, y = a.b / max(|a| |b|, eps).
 * a, b (N,D) -> (N,1).  Saves |a|^2 and |b|^2 of each row. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

#include <math.h>

struct job {
    const heed_kernels *k;
    real eps;
    const heed_tensor *a, *b;
    real *y, *squares; /* squares (N,2) */
    const real *dy;
    real *grad; /* of a; or of b, with a and b exchanged */
    int which;
};

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    double eps = *(const double *)c->attributes;
    if (a->rows != b->rows || a->cols != b->cols)
        return heed__op_shape_fail(c, "b", b, "(%lld,%lld) like a", (long long)a->rows,
                                   (long long)a->cols);
    if (!((real)eps > 0))
        return heed__op_fail(c, HEED_ARGUMENT, "eps is %g, expected more than 0", eps);
    heed_status status = heed__save(c, (size_t)a->rows * 2 * sizeof(real));
    return status ? status : heed__out(c, HEED_SHAPE(a->rows, 1));
}

static struct job job_of(const heed_opcall *c)
{
    return (struct job){.k = heed__kernels(),
                        .eps = (real) * (const double *)c->attributes,
                        .a = c->in[0],
                        .b = c->in[1],
                        .y = c->out[0]->data,
                        .squares = c->saved};
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t n = j->a->cols;
    for (int64_t r = begin; r < end; r++) {
        const real *a = heed__row(j->a, r), *b = heed__row(j->b, r);
        real aa = j->k->row_dot(a, a, n), bb = j->k->row_dot(b, b, n);
        real norms = (real)sqrt((double)aa) * (real)sqrt((double)bb);
        j->squares[2 * r] = aa;
        j->squares[2 * r + 1] = bb;
        j->y[r] = j->k->row_dot(a, b, n) / (norms > j->eps ? norms : j->eps);
    }
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), j.a->rows, 1, 3 * j.a->cols, compute, &j);
}

/* y = a.b / (|a| |b|): da = dy (b / (|a| |b|) - y a / |a|^2);  y = a.b / eps: da = dy b / eps;
 * db likewise */
static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t n = j->a->cols;
    for (int64_t r = begin; r < end; r++) {
        real own = j->squares[2 * r + j->which], other = j->squares[2 * r + 1 - j->which];
        real norms = (real)sqrt((double)own) * (real)sqrt((double)other);
        real *g = j->grad + r * j->a->ld, dy = j->dy[r];
        j->k->accumulate(g, heed__row(j->b, r), dy / (norms > j->eps ? norms : j->eps), n);
        if (norms > j->eps)
            j->k->accumulate(g, heed__row(j->a, r), -dy * j->y[r] / own, n);
    }
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.dy = heed__out_grad(c, 0);
    for (int i = 0; i < 2; i++)
        if (heed__wants(c, i)) {
            j.grad = heed__grad(c, i);
            j.which = i;
            j.a = c->in[i];
            j.b = c->in[1 - i];
            heed__parallel(heed__threads(c), j.a->rows, 1, 2 * j.a->cols, grad, &j);
        }
}

/* What a case gives besides tensors. */
struct arguments {
    double eps;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_cosine(t, in[0], in[1], a->eps);
}

/* cos(a,a) is 1 for every a, so the same tensor as both inputs would check nothing: the shapes
 * differ. */
static const heed_opcase cases[] = {
    {"rows", {HEED_DIMS2(3, 9), HEED_DIMS3(3, 1, 9)}, HEED_WITH(.eps = 1e-6)},
    {"eps larger than the norms", {HEED_DIMS2(2, 3), HEED_DIMS2(2, 3)}, HEED_WITH(.eps = 1e3)},
    {"one row", {HEED_DIMS2(1, 5), HEED_DIMS1(5)}, HEED_WITH(.eps = 1e-6)},
    {"rank 3", {HEED_DIMS3(2, 2, 3), HEED_DIMS2(4, 3)}, HEED_WITH(.eps = 1e-6)},
};
HEED_OP(cosine, "y = a.b / max(|a| |b|, eps)", shape, forward, backward, cases, run);

heed_tensor *heed_cosine(heed_tape *t, heed_tensor *a, heed_tensor *b, double eps)
{
    return heed__first(
        heed__apply(t, &heed__op_cosine, (heed_tensor *[]){a, b}, 2, 0, &eps, sizeof eps));
}
