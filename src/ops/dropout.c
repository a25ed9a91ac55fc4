/* dropout, and the same added to a residual: y = m * x, y = x + m * r with m = 0 with probability
 * `rate`, else 1/(1-rate).  (N,D) -> (N,D).  The mask is a function of the call's random stream and
 * the element's index, so the backward pass recomputes it.  Without training heed_dropout returns x
 * itself. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>

#define WORK 4 /* elementary operations per element */

struct attributes {
    double rate; /* 0 if the tape is not in training */
};

/* to = base + mask * x (base NULL: zero; no_mask: 1), row by row. */
struct pass {
    real *to;
    const real *base, *x;
    int64_t ld_to, ld_base, ld_x, cols;
    double rate;
    heed_rng rng;
};

static void pass_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct pass *p = context;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        heed__kernels()->dropout_add(p->to + i * p->ld_to,
                                     p->base ? p->base + i * p->ld_base : NULL, p->x + i * p->ld_x,
                                     &p->rng, (uint64_t)(i * p->cols), p->cols, p->rate);
}

static void run_pass(const heed_opcall *c, struct pass *p)
{
    p->cols = c->out[0]->cols;
    p->rng = heed__rng(c);
    heed__parallel(heed__threads(c), c->out[0]->rows, 1, p->cols * WORK, pass_rows, p);
}

/* Adds mask times the output's gradient to that of input i. */
static void add_gradient(heed_opcall *c, int i, double rate)
{
    if (!heed__wants(c, i))
        return;
    real beta;
    struct pass p = {.to = heed__grad_beta(c, i, &beta), .x = heed__out_grad(c, 0), .rate = rate};
    p.base = beta == 0 ? NULL : p.to;
    p.ld_to = p.ld_base = c->in[i]->ld;
    p.ld_x = c->out[0]->cols;
    run_pass(c, &p);
}

static heed_status check_rate(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    if (!(a->rate >= 0 && a->rate < 1))
        return heed__op_fail(c, HEED_ARGUMENT, "rate is %g, expected 0 <= rate < 1", a->rate);
    return heed__out(c, c->in[0]->shape);
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct pass p = {.to = c->out[0]->data, .x = c->in[0]->data, .rate = a->rate};
    p.ld_to = c->out[0]->ld;
    p.ld_x = c->in[0]->ld;
    run_pass(c, &p);
}

/* y = m * x, so dx = m * dy */
static void backward(heed_opcall *c)
{
    add_gradient(c, 0, ((const struct attributes *)c->attributes)->rate);
}

static heed_status add_shape(heed_opcall *c)
{
    char text[HEED_SHAPE_TEXT];
    if (!heed__shape_equal(c->in[0]->shape, c->in[1]->shape))
        return heed__op_shape_fail(c, "y", c->in[1], "%s as x is",
                                   heed__shape_text(c->in[0], text));
    return check_rate(c);
}

static void add_forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct pass p = {.to = c->out[0]->data, .base = c->in[0]->data, .x = c->in[1]->data};
    p.ld_to = c->out[0]->ld;
    p.ld_base = c->in[0]->ld;
    p.ld_x = c->in[1]->ld;
    p.rate = a->rate;
    run_pass(c, &p);
}

/* y = x + m * r, so dx = dy, dr = m * dy */
static void add_backward(heed_opcall *c)
{
    add_gradient(c, 0, 0);
    add_gradient(c, 1, ((const struct attributes *)c->attributes)->rate);
}

/* What a case gives besides tensors. */
struct arguments {
    double rate;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_dropout(t, in[0], a->rate);
}

static void add_run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_add_dropout(t, in[0], in[1], a->rate);
}

static const heed_opcase cases[] = {
    {.what = "one row", .in = {HEED_DIMS1(9)}, HEED_WITH(.rate = 0.3)},
    {.what = "one column", .in = {HEED_DIMS2(11, 1)}, HEED_WITH(.rate = 0.5)},
    {.what = "odd", .in = {HEED_DIMS2(3, 67)}, HEED_WITH(.rate = 0.1)},
};
static const heed_opcase add_cases[] = {
    {.what = "one row", .in = {HEED_DIMS1(9), HEED_DIMS1(9)}, HEED_WITH(.rate = 0.3)},
    {.what = "one column", .in = {HEED_DIMS2(11, 1), HEED_DIMS2(11, 1)}, HEED_WITH(.rate = 0.5)},
    {.what = "rate 0", .in = {HEED_DIMS3(2, 2, 5), HEED_DIMS3(2, 2, 5)}, HEED_WITH(.rate = 0)},
    {.what = "odd", .in = {HEED_DIMS2(3, 67), HEED_DIMS2(3, 67)}, HEED_WITH(.rate = 0.1)},
};

HEED_OP(dropout, "y = m x, m = 0 with probability p, else 1/(1-p)", check_rate, forward, backward,
        cases, run);
HEED_OP(add_dropout, "y = x + dropout(r)", add_shape, add_forward, add_backward, add_cases,
        add_run);

heed_tensor *heed_dropout(heed_tape *t, heed_tensor *x, double rate)
{
    if (!heed__usable(t, &heed__op_dropout, x))
        return NULL;
    if (rate == 0 || (rate > 0 && rate < 1 && !heed_tape_training(t)))
        return x;
    return heed__first(heed__apply(t, &heed__op_dropout, &x, 1, 0, &(struct attributes){rate},
                                   sizeof(struct attributes)));
}

heed_tensor *heed_add_dropout(heed_tape *t, heed_tensor *x, heed_tensor *y, double rate)
{
    struct attributes a = {rate};
    if (t && rate > 0 && rate < 1 && !heed_tape_training(t))
        a.rate = 0;
    return heed__first(
        heed__apply(t, &heed__op_add_dropout, (heed_tensor *[]){x, y}, 2, 0, &a, sizeof a));
}
