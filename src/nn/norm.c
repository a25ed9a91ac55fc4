/* norm.c: layer norm (Ba et al. 2016), RMS norm (Zhang and Sennrich 2019; no bias), batch norm
 * (Ioffe and Szegedy 2015; running statistics are state).  x (N,D) -> (N,D). */
#include <heed/nn.h>

/* How far the running statistics go towards each batch's. */
#define MOMENTUM 0.1

void heed_norm_build(heed_norm_layer *l, heed_scope s, heed_norm_kind kind, int64_t d, double eps)
{
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
    if (l->kind == HEED_NORM_LAYER)
        return heed_add_norm(t, x, y, l->gain, l->bias, dropout, l->eps);
    return heed_norm_apply(t, l, heed_add_dropout(t, x, y, dropout));
}
