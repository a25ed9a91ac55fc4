/* maxout.c: the largest of each `pieces` neighbouring columns, y[d] = max_p x[d*pieces + p].
 * x (N, pieces*D) -> (N,D).  The gradient goes to the first maximum, found again in backward.
 * A NaN is the largest. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

struct job {
    const heed_tensor *x;
    int64_t pieces, cols; /* cols: D */
    real *y, *dx;
    const real *dy;
};

static heed_status shape(heed_opcall *c)
{
    int64_t pieces = *(const int64_t *)c->attributes;
    const heed_tensor *x = c->in[0];
    if (pieces < 1 || x->cols % pieces)
        return heed__op_shape_fail(c, "x", x, "columns in groups of %lld", (long long)pieces);
    heed_shape s = x->shape;
    s.dim[s.rank - 1] = x->cols / pieces;
    return heed__out(c, s);
}

static int64_t first_largest(const real *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = !(x[i] <= x[best]) && x[best] == x[best] ? i : best;
    return best;
}

static void rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        for (int64_t d = 0; d < j->cols; d++) {
            const real *x = heed__row(j->x, r) + d * j->pieces;
            int64_t best = first_largest(x, j->pieces);
            if (j->dx)
                j->dx[r * j->x->ld + d * j->pieces + best] += j->dy[r * j->cols + d];
            else
                j->y[r * j->cols + d] = x[best];
        }
}

static struct job job_of(const heed_opcall *c)
{
    return (struct job){.x = c->in[0],
                        .pieces = *(const int64_t *)c->attributes,
                        .cols = c->out[0]->cols,
                        .y = c->out[0]->data};
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), j.x->rows, 1, j.x->cols, rows, &j);
}

/* y[d] = max_p x[d*pieces + p], so dx = dy at the largest piece */
static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.dy = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    heed__parallel(heed__threads(c), j.x->rows, 1, j.x->cols, rows, &j);
}

/* What a case gives besides tensors. */
struct arguments {
    int64_t pieces;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_maxout(t, in[0], a->pieces);
}

static const heed_opcase cases[] = {
    {"pairs", {HEED_DIMS2(3, 10)}, .domain = HEED_SPREAD, HEED_WITH(.pieces = 2)},
    {"one group of three", {HEED_DIMS2(2, 3)}, .domain = HEED_SPREAD, HEED_WITH(.pieces = 3)},
    {"groups of one", {HEED_DIMS2(1, 5)}, .domain = HEED_SPREAD, HEED_WITH(.pieces = 1)},
};
HEED_OP(maxout, "y[d] = max of x[d*pieces] .. x[d*pieces + pieces-1]", shape, forward, backward,
        cases, run);

heed_tensor *heed_maxout(heed_tape *t, heed_tensor *x, int64_t pieces)
{
    return heed__first(heed__apply(t, &heed__op_maxout, &x, 1, 0, &pieces, sizeof pieces));
}
