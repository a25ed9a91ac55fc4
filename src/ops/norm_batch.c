/* Batch norm (Ioffe and Szegedy 2015), per column over all rows:
 *   y = (x - mean) / sqrt(variance + eps) * gain + bias.  x (N,D), gain, bias (each may
 * be absent), running (D) -> (N,D)
 * While the tape trains, mean and biased variance are the batch's, and the running ones, if they
 * are state of a set, move by `momentum` towards them (the variance unbiased) when the update ends
 * (heed_state_add); otherwise the running ones are used.  Sums in
 * double, columns split over the threads, so no sum depends on their number.  Refuses to train on
 * fewer than 2 rows. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>
#include <math.h>

#define GRAIN 16 /* columns: no two threads write one cache line */
#define WORK 8   /* elementary operations an element */

enum { X, GAIN, BIAS, MEAN, VARIANCE };

struct attributes {
    bool training;
    double momentum, eps;
};

static heed_status shape(heed_opcall *c)
{
    static const char *const names[] = {"x", "gain", "bias", "running mean", "running variance"};
    const struct attributes *a = c->attributes;
    const heed_tensor *x = c->in[X];
    for (int i = GAIN; i <= VARIANCE; i++)
        if (c->in[i] && (c->in[i]->rows != 1 || c->in[i]->cols != x->cols))
            return heed__op_shape_fail(c, names[i], c->in[i], "(%lld)", (long long)x->cols);
    if (a->training && x->rows < 2)
        return heed__op_shape_fail(c, "x", x, "at least 2 rows to train on");
    if (!(a->eps >= 0))
        return heed__op_fail(c, HEED_ARGUMENT, "eps is %g, expected eps >= 0", a->eps);
    heed_status status = heed__out(c, x->shape);
    return status ? status : heed__save(c, 4 * (size_t)x->cols * sizeof(double));
}

static heed__column_norm start(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *x = c->in[X];
    double *saved = c->saved; /* mean, rstd, and space for the sums of backward */
    return (heed__column_norm){.x = x->data,
                               .gain = c->in[GAIN] ? c->in[GAIN]->data : NULL,
                               .bias = c->in[BIAS] ? c->in[BIAS]->data : NULL,
                               .rows = x->rows,
                               .d = x->cols,
                               .ldx = x->ld,
                               .mean = saved,
                               .rstd = saved + x->cols,
                               .dgain = saved + 2 * x->cols,
                               .dbias = saved + 3 * x->cols,
                               .y = c->out[0]->data,
                               .fixed = !a->training};
}

static void forward_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    const struct attributes *a = c->attributes;
    const heed_kernels *k = heed__kernels();
    const heed_tensor *mean = c->in[MEAN], *variance = c->in[VARIANCE];
    heed__column_norm n = start(c);
    (void)thread;
    if (a->training) {
        double unbiased = (double)n.rows / (double)(n.rows - 1);
        k->column_moments(n.mean, n.rstd, n.x, n.ldx, n.rows, begin, end);
        for (int64_t j = begin; mean->moving && j < end; j++)
            mean->moving->sum[j] += n.mean[j];
        for (int64_t j = begin; variance->moving && j < end; j++)
            variance->moving->sum[j] += unbiased * n.rstd[j];
    } else {
        for (int64_t j = begin; j < end; j++) {
            n.mean[j] = (double)mean->data[j];
            n.rstd[j] = (double)variance->data[j];
        }
    }
    for (int64_t j = begin; j < end; j++)
        n.rstd[j] = 1.0 / sqrt(n.rstd[j] + a->eps);
    k->column_norm_forward(&n, begin, end);
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *x = c->in[X];
    heed__parallel(heed__threads(c), x->cols, GRAIN, x->rows * WORK, forward_columns, c);
    for (int i = MEAN; a->training && i <= VARIANCE; i++)
        if (c->in[i]->moving) {
            *c->in[i]->moving->weight += 1;
            *c->in[i]->moving->keep = 1 - a->momentum;
        }
}

struct walk {
    heed__column_norm n;
    bool sums;
};

static void backward_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const struct walk *w = context;
    const heed_kernels *k = heed__kernels();
    (void)thread;
    (w->sums ? k->column_norm_sums : k->column_norm_backward)(&w->n, begin, end);
}

/* dgain = sum dy h, dbias = sum dy, dx = gain rstd (dy - mean(dy) - h mean(dy h)), means over the
 * rows; with running statistics dx = gain rstd dy. */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[X];
    struct walk w = {.n = start(c), .sums = true};
    w.n.dy = heed__out_grad(c, 0);
    heed__parallel(heed__threads(c), x->cols, GRAIN, x->rows * WORK, backward_columns, &w);
    if (heed__wants(c, X)) {
        w.n.dx = heed__grad(c, X);
        w.n.lddx = x->ld;
        w.sums = false;
        heed__parallel(heed__threads(c), x->cols, GRAIN, x->rows * WORK, backward_columns, &w);
    }
    for (int i = GAIN; i <= BIAS; i++) {
        if (!heed__wants(c, i))
            continue;
        real *grad = heed__grad(c, i);
        const double *sum = i == GAIN ? w.n.dgain : w.n.dbias;
        for (int64_t j = 0; j < x->cols; j++)
            grad[j] += (real)sum[j];
    }
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const int64_t d = heed_tensor_cols(in[X]);
    heed_tensor *mean = heed_input(t, HEED_SHAPE(d), NULL);
    heed_tensor *variance = heed_input(t, HEED_SHAPE(d), NULL);
    for (int64_t j = 0; mean && variance && j < d; j++) {
        mean->data[j] = (real)0.1 * (real)(j + 1);
        variance->data[j] = (real)0.5 * (real)(j + 1);
    }
    heed_tape_set_training(t, c->i[0] != 0);
    out[0] = heed_batch_norm(t, in[X], c->in[GAIN].rank ? in[GAIN] : NULL,
                             c->in[BIAS].rank ? in[BIAS] : NULL, mean, variance, 0.1, c->r[0]);
    heed_tape_set_training(t, true);
}

#define IN(n, d)                                                                                   \
    {                                                                                              \
        HEED_DIMS2(n, d), HEED_DIMS1(d), HEED_DIMS1(d)                                             \
    }
static const heed_opcase cases[] = {
    {.what = "two rows", .in = IN(2, 3), .i = {1}, .r = {0.5}},
    {.what = "one column", .in = IN(7, 1), .i = {1}, .r = {1e-5}},
    {.what = "odd", .in = IN(5, 19), .i = {1}, .r = {1e-5}},
    {.what = "no bias", .in = {HEED_DIMS2(5, 4), HEED_DIMS1(4)}, .i = {1}, .r = {1e-5}},
    {.what = "neither gain nor bias", .in = {HEED_DIMS2(5, 4)}, .i = {1}, .r = {1e-5}},
    {.what = "running statistics", .in = IN(3, 5), .i = {0}, .r = {1e-5}},
    {.what = "running statistics, one row", .in = IN(1, 5), .i = {0}, .r = {1e-5}},
};

HEED_OP(batch_norm, "y = (x - mean) / sqrt(variance + eps) * gain + bias, per column", shape,
        forward, backward, cases, run);

heed_tensor *heed_batch_norm(heed_tape *t, heed_tensor *x, heed_tensor *gain, heed_tensor *bias,
                             heed_tensor *running_mean, heed_tensor *running_variance,
                             double momentum, double eps)
{
    if (!t)
        return NULL;
    heed_tensor *in[] = {x, gain, bias, running_mean, running_variance};
    struct attributes a = {heed_tape_training(t), momentum, eps};
    return heed__first(
        heed__apply(t, &heed__op_batch_norm, in, 5, 1u << GAIN | 1u << BIAS, &a, sizeof a));
}
