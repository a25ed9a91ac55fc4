/* Norms over each row: layer norm, RMS norm, and layer_norm(x + dropout(r)) in one pass over
 * memory:
 *   y = (s - mean) rstd gain + bias,  rstd = 1/sqrt(variance + eps), biased variance,  s = x + m r
 * x, r (N,D), gain, bias (D) -> (N,D).  RMS norm: mean = 0, no bias.  One mechanism, three
 * operators.  Saves mean and rstd of each row; s is recomputed from x, r and the mask, which is one
 * read less than saving it.  Refuses rows without columns. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>

#define WORK 6 /* elementary operations per element */

enum { X, GAIN, BIAS, R }; /* inputs; BIAS and R may be absent */

struct attributes {
    bool centred;
    double rate, eps; /* rate 0 if the tape is not in training */
};

struct job {
    heed_opcall *c;
    heed__norm n;
};

static heed_status check_vector(heed_opcall *c, const char *name, const heed_tensor *v, int64_t d)
{
    if (v && (v->rows != 1 || v->cols != d))
        return heed__op_shape_fail(c, name, v, "(%lld)", (long long)d);
    return HEED_OK;
}

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *r = c->in[R];
    const struct attributes *a = c->attributes;
    char text[HEED_SHAPE_TEXT];
    if (x->cols < 1)
        return heed__op_shape_fail(c, "x", x, "at least one column");
    if (r && !heed__shape_equal(x->shape, r->shape))
        return heed__op_shape_fail(c, "y", r, "%s as x is", heed__shape_text(x, text));
    if (check_vector(c, "gain", c->in[GAIN], x->cols) ||
        check_vector(c, "bias", c->in[BIAS], x->cols))
        return HEED_SHAPE_ERROR;
    if (!(a->rate >= 0 && a->rate < 1))
        return heed__op_fail(c, HEED_ARGUMENT, "rate is %g, expected 0 <= rate < 1", a->rate);
    if (!(a->eps >= 0))
        return heed__op_fail(c, HEED_ARGUMENT, "eps is %g, expected eps >= 0", a->eps);
    heed_status status = heed__out(c, x->shape);
    if (!status && c->recorded)
        status = heed__save(c, 2 * (size_t)x->rows * sizeof(real));
    return status ? status
                  : heed__want_scratch(c, HEED_NORM_SCRATCH((size_t)x->cols) * sizeof(real));
}

static struct job start(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *r = c->in[R], *bias = c->in[BIAS];
    const struct attributes *a = c->attributes;
    struct job w = {.c = c};
    w.n = (heed__norm){.x = x->data,
                       .r = r ? r->data : NULL,
                       .gain = c->in[GAIN]->data,
                       .bias = bias ? bias->data : NULL,
                       .d = x->cols,
                       .ldx = x->ld,
                       .ldr = r ? r->ld : 0,
                       .centred = a->centred,
                       .eps = a->eps,
                       .rate = a->rate,
                       .rng = heed__rng(c),
                       .y = c->out[0]->data,
                       .mean = c->saved,
                       .rstd = c->saved ? (real *)c->saved + x->rows : NULL};
    return w;
}

static void forward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    struct job *w = context;
    heed__kernels()->norm_forward(&w->n, begin, end, heed__scratch(w->c, thread));
}

static void forward(heed_opcall *c)
{
    struct job w = start(c);
    heed__parallel(heed__threads(c), c->in[X]->rows, 1, w.n.d * WORK, forward_rows, &w);
}

static void backward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    struct job *w = context;
    heed__kernels()->norm_backward(&w->n, begin, end, heed__scratch(w->c, thread));
}

static void run_backward(struct job *w)
{
    const heed_opcall *c = w->c;
    heed__parallel(heed__threads(c), c->in[X]->rows, 1, w->n.d * WORK, backward_rows, w);
}

/* The threads' sums are in their scratch; they are added in thread order. */
static void add_slots(const heed_opcall *c, real *grad, int part)
{
    const int64_t d = c->in[X]->cols;
    int width = heed__parallel_width(heed__threads(c), c->in[X]->rows, 1, d * WORK);
    for (int thread = 0; thread < width; thread++) {
        const real *slot = heed__scratch(c, thread);
        slot = part == GAIN ? HEED_NORM_DGAIN(slot, d) : HEED_NORM_DBIAS(slot, d);
        for (int64_t j = 0; j < d; j++)
            grad[j] += slot[j];
    }
}

static const heed_tensor *root_of(const heed_tensor *x)
{
    return x->root ? x->root : x;
}

/* y = h gain + bias, h = (s - mean) rstd, s = x + m r; with g = gain dy and means over the row:
 *   ds = rstd (g - mean(g) - h mean(g h)), dx = ds, dr = m ds, dgain = sum dy h, dbias = sum dy */
static void backward(heed_opcall *c)
{
    struct job w = start(c);
    real beta;
    w.n.dy = heed__out_grad(c, 0);
    if (c->in[X]->rows == 0)
        return;
    if (heed__wants(c, X)) {
        w.n.dx = heed__grad_beta(c, X, &beta);
        w.n.assign_x = beta == 0;
        w.n.lddx = c->in[X]->ld;
    }
    if (heed__wants(c, R)) {
        if (w.n.dx && root_of(c->in[X]) == root_of(c->in[R])) {
            run_backward(&w); /* overlapping inputs: one gradient complete before the other */
            w.n.dx = NULL;
        }
        w.n.dr = heed__grad_beta(c, R, &beta);
        w.n.assign_r = beta == 0;
        w.n.lddr = c->in[R]->ld;
    }
    run_backward(&w);
    if (heed__wants(c, GAIN))
        add_slots(c, heed__grad(c, GAIN), GAIN);
    if (heed__wants(c, BIAS))
        add_slots(c, heed__grad(c, BIAS), BIAS);
}

/* What a case gives besides tensors. */
struct arguments {
    double eps, rate;
};

static void run_layer(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_layer_norm(t, in[0], in[1], in[2], a->eps);
}

static void run_rms(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_rms_norm(t, in[0], in[1], a->eps);
}

static void run_add(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_add_norm(t, in[0], in[1], in[2], in[3], a->rate, a->eps);
}

/* Not a single column if centred: there y = bias and x has no gradient. */
static const heed_opcase layer_cases[] = {
    {.what = "one row",
     .in = {HEED_DIMS1(6), HEED_DIMS1(6), HEED_DIMS1(6)},
     HEED_WITH(.eps = 1e-5)},
    {.what = "two columns",
     .in = {HEED_DIMS2(3, 2), HEED_DIMS1(2), HEED_DIMS1(2)},
     HEED_WITH(.eps = 0.5)},
    {.what = "no bias", .in = {HEED_DIMS2(4, 7), HEED_DIMS1(7)}, HEED_WITH(.eps = 1e-5)},
    {.what = "odd",
     .in = {HEED_DIMS3(2, 3, 37), HEED_DIMS1(37), HEED_DIMS1(37)},
     HEED_WITH(.eps = 1e-5)},
};
static const heed_opcase rms_cases[] = {
    {.what = "one column", .in = {HEED_DIMS2(3, 1), HEED_DIMS1(1)}, HEED_WITH(.eps = 0.5)},
    {.what = "one row", .in = {HEED_DIMS1(6), HEED_DIMS1(6)}, HEED_WITH(.eps = 1e-5)},
    {.what = "odd", .in = {HEED_DIMS2(5, 19), HEED_DIMS1(19)}, HEED_WITH(.eps = 1e-5)},
};
#define ADD_IN(n, d)                                                                               \
    {                                                                                              \
        HEED_DIMS2(n, d), HEED_DIMS2(n, d), HEED_DIMS1(d), HEED_DIMS1(d)                           \
    }
static const heed_opcase add_cases[] = {
    {.what = "no dropout", .in = ADD_IN(3, 5), HEED_WITH(.eps = 1e-5, .rate = 0)},
    {.what = "one row", .in = ADD_IN(1, 9), HEED_WITH(.eps = 1e-5, .rate = 0.3)},
    {.what = "two columns", .in = ADD_IN(5, 2), HEED_WITH(.eps = 0.5, .rate = 0.2)},
    {.what = "odd", .in = ADD_IN(3, 37), HEED_WITH(.eps = 1e-5, .rate = 0.1)},
};

HEED_OP(layer_norm, "y = (x - mean) / sqrt(variance + eps) * gain + bias", shape, forward, backward,
        layer_cases, run_layer);
HEED_OP(rms_norm, "y = x / sqrt(mean(x^2) + eps) * gain", shape, forward, backward, rms_cases,
        run_rms);
HEED_OP(add_norm, "y = layer_norm(x + dropout(r))", shape, forward, backward, add_cases, run_add);

static heed_tensor *apply(heed_tape *t, const heed_op *op, heed_tensor *x, heed_tensor *r,
                          heed_tensor *gain, heed_tensor *bias, struct attributes a)
{
    heed_tensor *in[] = {[X] = x, [GAIN] = gain, [BIAS] = bias, [R] = r};
    return heed__first(heed__apply(t, op, in, 4, 1u << BIAS | 1u << R, &a, sizeof a));
}

heed_tensor *heed_layer_norm(heed_tape *t, heed_tensor *x, heed_tensor *gain, heed_tensor *bias,
                             double eps)
{
    return apply(t, &heed__op_layer_norm, x, NULL, gain, bias,
                 (struct attributes){.centred = true, .eps = eps});
}

heed_tensor *heed_rms_norm(heed_tape *t, heed_tensor *x, heed_tensor *gain, double eps)
{
    return apply(t, &heed__op_rms_norm, x, NULL, gain, NULL, (struct attributes){.eps = eps});
}

heed_tensor *heed_add_norm(heed_tape *t, heed_tensor *x, heed_tensor *y, heed_tensor *gain,
                           heed_tensor *bias, double rate, double eps)
{
    struct attributes a = {.centred = true, .rate = rate, .eps = eps};
    if (!heed__usable(t, &heed__op_add_norm, y))
        return NULL;
    if (rate > 0 && rate < 1 && !heed_tape_training(t))
        a.rate = 0;
    return apply(t, &heed__op_add_norm, x, y, gain, bias, a);
}
