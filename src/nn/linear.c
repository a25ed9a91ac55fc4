/* linear.c: y = activation(x W + b).  x (N,K), W (K,F), b (F) -> (N,F). */
#include <heed/nn.h>

void heed_linear_build(heed_linear_layer *l, heed_scope s, int64_t in, int64_t out,
                       heed_activation activation, bool bias)
{
    heed_init xavier = {HEED_INIT_XAVIER_UNIFORM, 1}, zero = {HEED_INIT_ZERO, 0};
    l->weight = heed_param(s, "weight", HEED_SHAPE(in, out), xavier);
    l->bias = bias ? heed_param(s, "bias", HEED_SHAPE(out), zero) : NULL;
    l->activation = activation;
}

heed_tensor *heed_linear_apply(heed_tape *t, const heed_linear_layer *l, heed_tensor *x)
{
    return heed_linear(t, x, l->weight, l->bias, l->activation);
}
