/* softmax and log-softmax over the last axis: y_i = exp(x_i - max) / sum, and its logarithm.
 * x (N,S) -> y (N,S).  A fully masked row (all -inf) gives zeros, or -inf from the logarithm, and a
 * zero gradient, never NaN. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>

#define WORK 8 /* elementary operations per element */

struct attributes {
    bool logarithm;
};

struct job {
    heed_opcall *c;
    real *dx;
    bool assign;
};

static heed_status shape(heed_opcall *c)
{
    return heed__out(c, c->in[0]->shape);
}

static void forward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    const heed_tensor *x = c->in[0];
    const struct attributes *a = c->attributes;
    const heed_kernels *k = heed__kernels();
    (void)thread;
    (a->logarithm ? k->log_softmax_rows : k->softmax_rows)(
        heed__row(c->out[0], begin), heed__row(x, begin), x->ld, end - begin, x->cols);
}

static void forward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    heed__parallel(heed__threads(c), x->rows, 1, x->cols * WORK, forward_rows, c);
}

static void backward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *w = context;
    const heed_tensor *x = w->c->in[0], *y = w->c->out[0];
    const struct attributes *a = w->c->attributes;
    const heed_kernels *k = heed__kernels();
    (void)thread;
    (a->logarithm ? k->log_softmax_backward : k->softmax_backward)(
        w->dx + begin * x->ld, x->ld, heed__out_grad(w->c, 0) + begin * y->cols,
        heed__row(y, begin), end - begin, y->cols, w->assign);
}

/* y_i = exp(x_i) / sum_j exp(x_j):     dx_i = y_i (dy_i - sum_j dy_j y_j)
 * y_i = x_i - log sum_j exp(x_j):      dx_i = dy_i - exp(y_i) sum_j dy_j */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    real beta;
    struct job w = {.c = c, .dx = heed__grad_beta(c, 0, &beta)};
    w.assign = beta == 0;
    heed__parallel(heed__threads(c), x->rows, 1, x->cols * WORK, backward_rows, &w);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed_softmax(t, in[0]);
}

static void run_log(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed_log_softmax(t, in[0]);
}

/* Not a single column: its softmax is always 1. */
static const heed_opcase cases[] = {
    {.what = "one row", .in = {HEED_DIMS1(5)}},
    {.what = "two columns", .in = {HEED_DIMS2(4, 2)}},
    {.what = "odd", .in = {HEED_DIMS2(3, 19)}},
    {.what = "rank 3", .in = {HEED_DIMS3(2, 3, 7)}},
};

HEED_OP(softmax, "y_i = exp(x_i) / sum_j exp(x_j)", shape, forward, backward, cases, run);
HEED_OP(log_softmax, "y_i = x_i - log sum_j exp(x_j)", shape, forward, backward, cases, run_log);

heed_tensor *heed_softmax(heed_tape *t, heed_tensor *x)
{
    return heed__first(heed__apply(t, &heed__op_softmax, &x, 1, 0, &(struct attributes){false},
                                   sizeof(struct attributes)));
}

heed_tensor *heed_log_softmax(heed_tape *t, heed_tensor *x)
{
    return heed__first(heed__apply(t, &heed__op_log_softmax, &x, 1, 0, &(struct attributes){true},
                                   sizeof(struct attributes)));
}
