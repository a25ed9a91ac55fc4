/* Cross-entropy between softmax(logits) and the smoothed target, summed over the rows:
 *   loss = - sum_n sum_i q_i log p_i,  q = 1-e on targets[n] plus e/V everywhere
 * (Szegedy et al. 2016).  logits (N,V) -> (1).  A row with a negative target is skipped; a target
 * of V or more is refused.  The rows' losses are added in double and in order, whatever the number
 * of threads. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>
#include <string.h>

#define WORK 12 /* elementary operations per element */

struct attributes {
    const int32_t *targets;
    double smoothing;
};

struct job {
    const heed_opcall *c;
    real *dx;
    double scale;
    bool assign;
};

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    const struct attributes *a = c->attributes;
    if (x->cols < 1)
        return heed__op_shape_fail(c, "logits", x, "at least one column");
    if (!a->targets && x->rows > 0)
        return heed__op_fail(c, HEED_ARGUMENT, "targets is NULL");
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return heed__op_fail(c, HEED_ARGUMENT, "smoothing is %g, expected 0 to 1", a->smoothing);
    for (int64_t i = 0; i < x->rows; i++)
        if (a->targets[i] >= x->cols)
            return heed__op_fail(c, HEED_ARGUMENT, "target %lld is %ld, expected less than %lld",
                                 (long long)i, (long)a->targets[i], (long long)x->cols);
    heed_status status = heed__out(c, HEED_SHAPE(1));
    return status ? status : heed__save(c, (size_t)x->rows * sizeof(heed__entropy));
}

static void forward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    const struct attributes *a = c->attributes;
    heed__entropy *row = c->saved;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        if (a->targets[i] >= 0)
            row[i] = heed__kernels()->cross_entropy_row(heed__row(c->in[0], i), c->in[0]->cols,
                                                        a->targets[i], a->smoothing);
}

static void forward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    const struct attributes *a = c->attributes;
    const heed__entropy *row = c->saved;
    heed__parallel(heed__threads(c), x->rows, 1, x->cols * WORK, forward_rows, c);
    double sum = 0;
    for (int64_t i = 0; i < x->rows; i++)
        if (a->targets[i] >= 0)
            sum += row[i].loss;
    c->out[0]->data[0] = (real)sum;
}

static void backward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *w = context;
    const heed_tensor *x = w->c->in[0];
    const struct attributes *a = w->c->attributes;
    const heed__entropy *row = w->c->saved;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        real *dx = w->dx + i * x->ld;
        if (a->targets[i] >= 0)
            heed__kernels()->cross_entropy_grad(dx, heed__row(x, i), &row[i], x->cols,
                                                a->targets[i], a->smoothing, w->scale, w->assign);
        else if (w->assign)
            memset(dx, 0, (size_t)x->cols * sizeof(real));
    }
}

/* loss = - sum_i q_i log p_i, p = softmax(logits), so dlogits = dloss (p - q) */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    real beta;
    struct job w = {.c = c, .dx = heed__grad_beta(c, 0, &beta)};
    w.scale = (double)*heed__out_grad(c, 0);
    w.assign = beta == 0;
    heed__parallel(heed__threads(c), x->rows, 1, x->cols * WORK, backward_rows, &w);
}

/* What a case gives besides tensors. */
struct arguments {
    double smoothing;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    static const int32_t targets[] = {1, 0, -1, 2, 1};
    out[0] = heed_cross_entropy(t, in[0], targets, a->smoothing);
}

/* Not a single column: its loss is always 0. */
static const heed_opcase cases[] = {
    {.what = "one row", .in = {HEED_DIMS1(2)}, HEED_WITH(.smoothing = 0)},
    {.what = "odd, a skipped row", .in = {HEED_DIMS2(5, 19)}, HEED_WITH(.smoothing = 0)},
    {.what = "smoothed", .in = {HEED_DIMS2(5, 3)}, HEED_WITH(.smoothing = 0.1)},
    {.what = "rank 3", .in = {HEED_DIMS3(2, 2, 7)}, HEED_WITH(.smoothing = 0.3)},
};

HEED_OP(cross_entropy, "y = - sum_n sum_i q_i log softmax(x_n)_i", shape, forward, backward, cases,
        run);

heed_tensor *heed_cross_entropy(heed_tape *t, heed_tensor *logits, const int32_t *targets,
                                double smoothing)
{
    struct attributes a = {targets, smoothing};
    return heed__first(heed__apply(t, &heed__op_cross_entropy, &logits, 1, 0, &a, sizeof a));
}
