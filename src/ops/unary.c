/* unary.c: elementwise functions: exp, relu, gelu, ... and scale and clamp.  x -> y of the same
 * shape.  Formulas and derivatives: kernel/elementwise.c. */
#include <heed/ops.h>

#include "ops/strips.h"

_Static_assert((int)HEED__UNARY_RELU == (int)HEED_RELU && (int)HEED__UNARY_GELU == (int)HEED_GELU &&
                   (int)HEED__UNARY_GELU_TANH == (int)HEED_GELU_TANH &&
                   (int)HEED__UNARY_SILU == (int)HEED_SILU &&
                   (int)HEED__UNARY_TANH == (int)HEED_TANH &&
                   (int)HEED__UNARY_SIGMOID == (int)HEED_SIGMOID,
               "heed_activation is a kind of unary function");

/* Vectorised exp and similar functions cost about this many additions. */
#define FUNCTION_WORK 8

struct attributes {
    heed__unary_kind kind;
    double p, q; /* scale and shift, or low and high */
};

struct job {
    const heed_kernels *k;
    struct attributes at;
    real *y, *dx;
    const real *x, *dy;
    int64_t ldx, cols;
};

static heed_status shape(heed_opcall *c)
{
    return heed__out(c, c->in[0]->shape);
}

static struct job job_of(const heed_opcall *c)
{
    return (struct job){.k = heed__kernels(),
                        .at = *(const struct attributes *)c->attributes,
                        .y = c->out[0]->data,
                        .x = c->in[0]->data,
                        .ldx = c->in[0]->ld,
                        .cols = c->in[0]->cols};
}

static void run_forward(heed_opcall *c, int64_t work, heed__strip *body)
{
    struct job j = job_of(c);
    const heed_tensor *x = c->in[0];
    heed__strips(c, x->rows, x->cols, heed__contiguous(x), work, body, &j);
}

static void run_backward(heed_opcall *c, int64_t work, heed__strip *body)
{
    struct job j = job_of(c);
    const heed_tensor *x = c->in[0];
    j.dy = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    heed__strips(c, x->rows, x->cols, heed__contiguous(x), work, body, &j);
}

static void function_strip(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    j->k->unary(j->at.kind, j->y + row * j->cols + begin, j->x + row * j->ldx + begin, end - begin);
}

static void function_grad_strip(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    int64_t at_x = row * j->ldx + begin, at_y = row * j->cols + begin;
    j->k->unary_grad(j->at.kind, j->dx + at_x, j->dy + at_y, j->x + at_x, j->y + at_y, end - begin);
}

static void forward(heed_opcall *c)
{
    run_forward(c, FUNCTION_WORK, function_strip);
}

static void backward(heed_opcall *c)
{
    run_backward(c, FUNCTION_WORK, function_grad_strip);
}

static heed_tensor *apply(heed_tape *t, const heed_op *op, heed_tensor *x, struct attributes at)
{
    return heed__first(heed__apply(t, op, &x, 1, 0, &at, sizeof at));
}

static const heed_opcase smooth[] = {
    {"rows", {HEED_DIMS2(3, 19)}, .domain = HEED_ANY},
    {"one number", {HEED_DIMS1(1)}, .domain = HEED_POSITIVE},
    {"rank 3", {HEED_DIMS3(2, 1, 5)}, .domain = HEED_ANY},
};
static const heed_opcase positive[] = {
    {"rows", {HEED_DIMS2(3, 19)}, .domain = HEED_POSITIVE},
    {"one number", {HEED_DIMS1(1)}, .domain = HEED_POSITIVE},
};
static const heed_opcase kinked[] = {
    {"rows", {HEED_DIMS2(3, 19)}, .domain = HEED_SPREAD},
    {"one positive number", {HEED_DIMS1(1)}, .domain = HEED_POSITIVE},
};

#define UNARY(name_, kind_, cases_, formula_)                                                      \
    static void run_##name_(heed_tape *t, const heed_opcase *c, heed_tensor **in,                  \
                            heed_tensor **out)                                                     \
    {                                                                                              \
        (void)c;                                                                                   \
        out[0] = heed_##name_(t, in[0]);                                                           \
    }                                                                                              \
    HEED_OP(name_, formula_, shape, forward, backward, cases_, run_##name_);                       \
    heed_tensor *heed_##name_(heed_tape *t, heed_tensor *x)                                        \
    {                                                                                              \
        return apply(t, &heed__op_##name_, x, (struct attributes){.kind = kind_});                 \
    }
UNARY(abs, HEED__UNARY_ABS, kinked, "y = |x|")
UNARY(exp, HEED__UNARY_EXP, smooth, "y = e^x")
UNARY(log, HEED__UNARY_LOG, positive, "y = log x")
UNARY(sqrt, HEED__UNARY_SQRT, positive, "y = sqrt x")
UNARY(square, HEED__UNARY_SQUARE, smooth, "y = x^2")
UNARY(relu, HEED__UNARY_RELU, kinked, "y = max(x, 0)")
UNARY(gelu, HEED__UNARY_GELU, smooth, "y = x Phi(x) = x/2 (1 + erf(x / sqrt 2))")
UNARY(gelu_tanh, HEED__UNARY_GELU_TANH, smooth, "y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))")
UNARY(silu, HEED__UNARY_SILU, smooth, "y = x / (1 + e^-x)")
UNARY(tanh, HEED__UNARY_TANH, smooth, "y = tanh x")
UNARY(sigmoid, HEED__UNARY_SIGMOID, smooth, "y = 1 / (1 + e^-x)")
UNARY(softplus, HEED__UNARY_SOFTPLUS, smooth, "y = log(1 + e^x)")

heed_tensor *heed_activate(heed_tape *t, heed_tensor *x, heed_activation f)
{
    static heed_tensor *(*const function[])(heed_tape *, heed_tensor *) = {
        [HEED_RELU] = heed_relu, [HEED_GELU] = heed_gelu, [HEED_GELU_TANH] = heed_gelu_tanh,
        [HEED_SILU] = heed_silu, [HEED_TANH] = heed_tanh, [HEED_SIGMOID] = heed_sigmoid,
    };
    const int last = (int)(sizeof function / sizeof *function) - 1;
    if ((int)f < 0 || (int)f > last)
        return heed_tape_fail(t, HEED_ARGUMENT, "activation is %d, expected 0 to %d", (int)f, last);
    return f == HEED_IDENTITY ? x : function[f](t, x);
}

/* ---- with two parameters ---- */

static void scale_strip(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    j->k->affine(j->y + row * j->cols + begin, j->x + row * j->ldx + begin, (real)j->at.p,
                 (real)j->at.q, end - begin);
}

static void scale_forward(heed_opcall *c)
{
    run_forward(c, 1, scale_strip);
}

/* y = scale x + shift, so dx = scale dy */
static void scale_grad_strip(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    j->k->accumulate(j->dx + row * j->ldx + begin, j->dy + row * j->cols + begin, (real)j->at.p,
                     end - begin);
}

static void scale_backward(heed_opcall *c)
{
    run_backward(c, 1, scale_grad_strip);
}

/* What a case gives besides tensors. */
struct arguments {
    double scale, shift, low, high;
};

static void run_scale(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_scale(t, in[0], a->scale, a->shift);
}

static const heed_opcase scale_cases[] = {
    {"scale and shift",
     {HEED_DIMS2(3, 9)},
     .domain = HEED_ANY,
     HEED_WITH(.scale = -1.7, .shift = 0.3)},
    {"one number", {HEED_DIMS1(1)}, .domain = HEED_ANY, HEED_WITH(.scale = 0.5)},
};
HEED_OP(scale, "y = scale x + shift", shape, scale_forward, scale_backward, scale_cases, run_scale);
heed_tensor *heed_scale(heed_tape *t, heed_tensor *x, double scale, double shift)
{
    return apply(t, &heed__op_scale, x, (struct attributes){.p = scale, .q = shift});
}

static void clamp_strip(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    j->k->clamp(j->y + row * j->cols + begin, j->x + row * j->ldx + begin, (real)j->at.p,
                (real)j->at.q, end - begin);
}

static void clamp_forward(heed_opcall *c)
{
    run_forward(c, 1, clamp_strip);
}

/* y = min(max(x, low), high), so dx = dy where low <= x <= high, else 0 */
static void clamp_grad_strip(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    int64_t at_x = row * j->ldx + begin;
    j->k->clamp_grad(j->dx + at_x, j->dy + row * j->cols + begin, j->x + at_x, (real)j->at.p,
                     (real)j->at.q, end - begin);
}

static void clamp_backward(heed_opcall *c)
{
    run_backward(c, 1, clamp_grad_strip);
}

static heed_status clamp_shape(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    if (!(at->p <= at->q))
        return heed__op_fail(c, HEED_ARGUMENT, "low is %g, expected at most high, %g", at->p,
                             at->q);
    return shape(c);
}

static void run_clamp(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_clamp(t, in[0], a->low, a->high);
}

/* Spread values are 0.05 to 0.08 above multiples of 0.1; the limits are in the middle between
 * them. */
static const heed_opcase clamp_cases[] = {
    {"both limits",
     {HEED_DIMS2(3, 9)},
     .domain = HEED_SPREAD,
     HEED_WITH(.low = -0.585, .high = 0.815)},
    {"one number inside", {HEED_DIMS1(1)}, .domain = HEED_POSITIVE, HEED_WITH(.low = 0, .high = 3)},
};
HEED_OP(clamp, "y = min(max(x, low), high)", clamp_shape, clamp_forward, clamp_backward,
        clamp_cases, run_clamp);
heed_tensor *heed_clamp(heed_tape *t, heed_tensor *x, double low, double high)
{
    return apply(t, &heed__op_clamp, x, (struct attributes){.p = low, .q = high});
}
