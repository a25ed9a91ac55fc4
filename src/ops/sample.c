/* sample.c: draws a column from each row of log-probabilities by inverting the cumulative
 * distribution at one uniform number per row.  log_p (N,C) -> log-probabilities of the drawn
 * columns (N,1), and the columns (N).
 *
 * The rows need not sum to 1: they are proportions.  A column of probability 0 is never drawn,
 * unless there is no other: then the first.  Refuses rows without columns. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "ops/proportions.h"

struct job {
    const heed_opcall *c;
    const heed_tensor *x;
    heed_rng rng;
    int32_t *drawn; /* (N) */
    real *y;
};

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    if (x->cols < 1 || x->cols > INT32_MAX)
        return heed__op_shape_fail(c, "log_p", x, "(N,C) with 1 <= C < 2^31");
    heed_status status = heed__want_scratch(c, (size_t)x->cols * sizeof(real));
    if (!status)
        status = heed__save(c, (size_t)x->rows * sizeof(int32_t));
    return status ? status : heed__out(c, HEED_SHAPE(x->rows, 1));
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    real *p = heed__scratch(j->c, thread);
    for (int64_t r = begin; r < end; r++) {
        const real *x = heed__row(j->x, r);
        heed__proportions(p, x, j->x->cols);
        j->drawn[r] = heed__draw(p, j->x->cols, heed_rng_uniform(&j->rng, (uint64_t)r));
        j->y[r] = x[j->drawn[r]];
    }
}

static void forward(heed_opcall *c)
{
    struct job j = {c, c->in[0], heed__rng(c), c->saved, c->out[0]->data};
    heed__parallel(heed__threads(c), j.x->rows, 1, 10 * j.x->cols, compute, &j);
}

/* y[n] = log_p[n, drawn[n]], so dx = dy at the drawn column; the draw itself is a constant. */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    const int32_t *drawn = c->saved;
    const real *dy = heed__out_grad(c, 0);
    real *dx = heed__grad(c, 0);
    for (int64_t r = 0; r < x->rows; r++)
        dx[r * x->ld + drawn[r]] += dy[r];
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    const int32_t *samples;
    out[0] = heed_sample(t, in[0], &samples);
}

static const heed_opcase cases[] = {
    {"rows", {HEED_DIMS2(3, 5)}, .domain = HEED_ANY},
    {"one column", {HEED_DIMS2(2, 1)}, .domain = HEED_ANY},
};
HEED_OP(sample, "y = log_p[n, drawn[n]], drawn[n] with probability e^log_p", shape, forward,
        backward, cases, run);

heed_tensor *heed_sample(heed_tape *t, heed_tensor *log_p, const int32_t **samples)
{
    heed_opcall *c = heed__apply(t, &heed__op_sample, &log_p, 1, 0, NULL, 0);
    if (samples)
        *samples = c ? c->saved : NULL;
    return heed__first(c);
}
