/* unit.c: each of `parts` equal pieces of a row divided by its length: y = x / max(|x|, eps).  x
 * (N,D) -> (N,D).  Saves the lengths.  The cosine of two rows is the dot product of their units. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "kernel/unit_row.h"
#include "tensor/op.h"

struct attributes {
    int64_t parts;
    double eps;
};

struct job {
    const heed_kernels *k;
    const heed_tensor *x;
    int64_t parts, d; /* d: columns of a piece */
    real eps;
    real *y, *lengths, *dx; /* lengths (N,parts) */
    const real *dy;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *x = c->in[0];
    if (a->parts < 1 || x->cols % a->parts)
        return heed__op_shape_fail(c, "x", x, "columns in %lld equal parts", (long long)a->parts);
    if (!((real)a->eps > 0))
        return heed__op_fail(c, HEED_ARGUMENT, "eps is %g, expected more than 0", a->eps);
    heed_status status = heed__save(c, (size_t)(x->rows * a->parts) * sizeof(real));
    return status ? status : heed__out(c, x->shape);
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    return (struct job){.k = heed__kernels(),
                        .x = c->in[0],
                        .parts = a->parts,
                        .d = c->in[0]->cols / a->parts,
                        .eps = (real)a->eps,
                        .y = c->out[0]->data,
                        .lengths = c->saved};
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t n = begin; n < end; n++) {
        const real *x = heed__row(j->x, n / j->parts) + n % j->parts * j->d;
        j->lengths[n] = heed__make_unit(j->y + n * j->d, x, j->eps, j->d);
    }
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), j.x->rows * j.parts, 1, 2 * j.d, compute, &j);
}

/* y = x / |x|: dx = (dy - y (dy .  y)) / |x|; y = x / eps: dx = dy / eps */
static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t n = begin; n < end; n++) {
        real *dx = j->dx + n / j->parts * j->x->ld + n % j->parts * j->d;
        const real *y = j->y + n * j->d, *dy = j->dy + n * j->d, length = j->lengths[n];
        j->k->accumulate(dx, dy, 1 / (length > j->eps ? length : j->eps), j->d);
        if (length > j->eps)
            j->k->accumulate(dx, y, -j->k->row_dot(dy, y, j->d) / length, j->d);
    }
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.dy = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    heed__parallel(heed__threads(c), j.x->rows * j.parts, 1, 3 * j.d, grad, &j);
}

/* What a case gives besides tensors. */
struct arguments {
    int64_t parts;
    double eps;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_unit(t, in[0], a->parts, a->eps);
}

static const heed_opcase cases[] = {
    {"rows", {HEED_DIMS2(3, 9)}, HEED_WITH(.parts = 1, .eps = 1e-6)},
    {"two parts", {HEED_DIMS2(3, 10)}, HEED_WITH(.parts = 2, .eps = 1e-6)},
    {"eps larger than the lengths", {HEED_DIMS2(2, 6)}, HEED_WITH(.parts = 2, .eps = 1e3)},
};
HEED_OP(unit, "y = x / max(|x|, eps), part by part", shape, forward, backward, cases, run);

heed_tensor *heed_unit(heed_tape *t, heed_tensor *x, int64_t parts, double eps)
{
    return heed__first(heed__apply(t, &heed__op_unit, &x, 1, 0, &(struct attributes){parts, eps},
                                   sizeof(struct attributes)));
}
