/* layers.c: the small layers: linear, norms, the position-wise network, the SSRU. */
#include <heed/nn.h>

/* ---- linear ---- */

/* Y = activation(x W + b).  x (N,K), W (K,F), b (F) -> (N,F). */

void heed_linear_build(heed_linear_layer *l, heed_scope s, int64_t in, int64_t out,
                       heed_activation activation, bool bias)
{
    if (!l)
        return;
    heed_init xavier = {HEED_INIT_XAVIER_UNIFORM, 1}, zero = {HEED_INIT_ZERO, 0};
    l->weight = heed_param_with_role(s, "weight", HEED_SHAPE(in, out), xavier, HEED_ROLE_MATRIX);
    l->bias = bias ? heed_param(s, "bias", HEED_SHAPE(out), zero) : NULL;
    l->activation = activation;
}

heed_tensor *heed_linear_apply(heed_tape *t, const heed_linear_layer *l, heed_tensor *x)
{
    if (!t)
        return NULL;
    return heed_linear(t, x, l->weight, l->bias, l->activation);
}

/* ---- norms ---- */

/* Layer norm (Ba et al. 2016), RMS norm (Zhang and Sennrich 2019; no bias), batch norm
 * (Ioffe and Szegedy 2015; running statistics are state).  x (N,D) -> (N,D). */

/* How far the running statistics go towards each batch's. */
#define MOMENTUM 0.1

void heed_norm_build(heed_norm_layer *l, heed_scope s, heed_norm_kind kind, int64_t d, double eps)
{
    if (!l)
        return;
    heed_init one = {HEED_INIT_CONSTANT, 1}, zero = {HEED_INIT_ZERO, 0};
    *l = (heed_norm_layer){.kind = kind, .eps = eps};
    l->gain = heed_param(s, "gain", HEED_SHAPE(d), one);
    if (kind != HEED_NORM_RMS)
        l->bias = heed_param(s, "bias", HEED_SHAPE(d), zero);
    if (kind == HEED_NORM_BATCH) {
        l->running_mean = heed_state(s, "running_mean", HEED_SHAPE(d), 0);
        l->running_variance = heed_state(s, "running_variance", HEED_SHAPE(d), 1);
    }
}

heed_tensor *heed_norm_apply(heed_tape *t, const heed_norm_layer *l, heed_tensor *x)
{
    if (!t)
        return NULL;
    switch (l->kind) {
    case HEED_NORM_LAYER:
        return heed_layer_norm(t, x, l->gain, l->bias, l->eps);
    case HEED_NORM_RMS:
        return heed_rms_norm(t, x, l->gain, l->eps);
    case HEED_NORM_BATCH:
        return heed_batch_norm(t, x, l->gain, l->bias, l->running_mean, l->running_variance,
                               MOMENTUM, l->eps);
    }
    return heed_tape_fail(t, HEED_ARGUMENT, "norm: kind %d is none of layer, RMS, batch",
                          (int)l->kind);
}

heed_tensor *heed_norm_residual(heed_tape *t, const heed_norm_layer *l, heed_tensor *x,
                                heed_tensor *y, double dropout)
{
    if (!t)
        return NULL;
    if (l->kind == HEED_NORM_LAYER)
        return heed_add_norm(t, x, y, l->gain, l->bias, dropout, l->eps);
    return heed_norm_apply(t, l, heed_add_dropout(t, x, y, dropout));
}

/* ---- feed-forward ---- */

/* The position-wise network of section 3.3, FFN(x) = max(0, x W1 + b1) W2 + b2, with any
 * activation and dropout on the hidden layer.  x (N,D), hidden (N,F) -> (N,D).  Gated: W1 is
 * [W_gate | W_up], and the hidden layer is activation(x W_gate) * (x W_up). */

void heed_ffn_build(heed_ffn_layer *l, heed_scope s, const heed_ffn_options *options)
{
    if (!l)
        return;
    const heed_ffn_options *o = options;
    *l = (heed_ffn_layer){.options = *o};
    heed_linear_build(&l->in, heed_scope_enter(s, "in"), o->d, o->gated ? 2 * o->f : o->f,
                      o->gated ? HEED_IDENTITY : o->activation, o->bias);
    heed_linear_build(&l->out, heed_scope_enter(s, "out"), o->f, o->d, HEED_IDENTITY, o->bias);
}

heed_tensor *heed_ffn_apply(heed_tape *t, const heed_ffn_layer *l, heed_tensor *x)
{
    if (!t)
        return NULL;
    const heed_ffn_options *o = &l->options;
    heed_tensor *hidden = heed_linear_apply(t, &l->in, x); /* (N,F) or (N,2F) */
    if (o->gated) {
        heed_tensor *gate = heed_slice_cols(t, hidden, 0, o->f);
        heed_tensor *up = heed_slice_cols(t, hidden, o->f, 2 * o->f);
        hidden = heed_mul(t, heed_activate(t, gate, o->activation), up); /* (N,F) */
    }
    if (o->dropout > 0)
        hidden = heed_dropout(t, hidden, o->dropout);
    return heed_linear_apply(t, &l->out, hidden); /* (N,D) */
}

/* ---- SSRU ---- */

void heed_ssru_build(heed_ssru_layer *l, heed_scope s, int64_t d)
{
    if (!l)
        return;
    heed_linear_build(&l->in, heed_scope_enter(s, "in"), d, d, HEED_IDENTITY, false);
    heed_linear_build(&l->forget, heed_scope_enter(s, "forget"), d, d, HEED_IDENTITY, true);
}

heed_tensor *heed_ssru_apply(heed_tape *t, const heed_ssru_layer *l, heed_tensor *x,
                             const heed_segments *segments)
{
    if (!t)
        return NULL;
    return heed_ssru(t, heed_linear_apply(t, &l->in, x), heed_linear_apply(t, &l->forget, x),
                     segments);
}
