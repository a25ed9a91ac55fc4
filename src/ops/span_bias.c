/* span_bias: log m of adaptive span (Sukhbaatar et al. 2019) as a bias by distance:
 *
 *   m_h(x) = clamp((R + S clamp(u_h, 0, 1) - x) / R, 0, 1)      u (H) -> (H,L), x a column's
 * distance
 *
 * -inf where m is 0.  A gradient that would take u further out of 0..1 is left out, so that u stays
 * there but for the last step's momentum. */
#include <heed/ops.h>

#include "base/min_max.h"
#include "kernel/span_mask.h"
#include "tensor/op.h"

#include <math.h>
#include <stdlib.h>

struct attributes {
    heed_span_options o;
};

static heed_status shape(heed_opcall *c)
{
    const heed_span_options *o = &((const struct attributes *)c->attributes)->o;
    if (o->most < 1 || o->ramp < 1)
        return heed__op_fail(c, HEED_ARGUMENT, "a span of %lld and a ramp of %lld, expected more",
                             (long long)o->most, (long long)o->ramp);
    return heed__out(c, HEED_SHAPE(heed_tensor_count(c->in[0]),
                                   heed__span_columns(o->most, o->ramp, o->causal)));
}

/* Number h of u, which may be a column slice. */
static int64_t place(const heed_tensor *u, int64_t h)
{
    return h / u->cols * u->ld + h % u->cols;
}

static void forward(heed_opcall *c)
{
    const heed_span_options *o = &((const struct attributes *)c->attributes)->o;
    const heed_tensor *u = c->in[0], *y = c->out[0];
    for (int64_t h = 0; h < y->rows; h++)
        heed__span_mask(y->data + h * y->cols, (double)u->data[place(u, h)], o->most, o->ramp,
                        o->causal);
}

/* d log m / du = S / (R m) where 0 < m < 1 */
static void backward(heed_opcall *c)
{
    const heed_span_options *o = &((const struct attributes *)c->attributes)->o;
    const heed_tensor *u = c->in[0], *y = c->out[0];
    const real *up = heed__out_grad(c, 0);
    if (!heed__wants(c, 0))
        return;
    real *grad = heed__grad(c, 0);
    for (int64_t h = 0; h < y->rows; h++) {
        const real *log_m = y->data + h * y->cols, share = u->data[place(u, h)];
        double sum = 0;
        for (int64_t x = 0; x < y->cols; x++)
            if (log_m[x] < 0 && log_m[x] > (real)-INFINITY)
                sum += (double)up[h * y->cols + x] * exp(-(double)log_m[x]);
        if ((share <= 0 && sum > 0) || (share >= 1 && sum < 0))
            continue;
        grad[place(u, h)] += (real)(sum * (double)o->most / (double)o->ramp);
    }
}

/* What a case gives besides tensors.  z stays between two distances, because m has a
 * kink at each, and only what is not -inf goes on. */
struct arguments {
    heed_span_options options;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_exp(t, heed_span_bias(t, heed_scale(t, in[0], 0.4, 0), &a->options));
}

static const heed_opcase cases[] = {
    {"causal, four heads",
     {HEED_DIMS1(4)},
     .domain = HEED_POSITIVE,
     HEED_WITH(.options = {.most = 1, .ramp = 5, .causal = true})},
    {"both sides",
     {HEED_DIMS1(3)},
     .domain = HEED_POSITIVE,
     HEED_WITH(.options = {.most = 1, .ramp = 4})},
};
HEED_OP(span_bias, "y = log clamp((R + S u - x) / R, 0, 1), x a distance", shape, forward, backward,
        cases, run);

heed_tensor *heed_span_bias(heed_tape *t, heed_tensor *u, const heed_span_options *options)
{
    if (!t)
        return NULL;
    const struct attributes a = {*options};
    return heed__first(heed__apply(t, &heed__op_span_bias, &u, 1, 0, &a, sizeof a));
}
