/* sublayer_ssru.c: the simpler simple recurrent unit in place of a decoder's self-attention ("From
 * Research to Production and Back: Ludicrously Fast Neural Machine Translation", Kim et al. 2019):
 * what Marian's and Firefox's students have.  A row keeps one state of D numbers, whatever its
 * length. */
#include "model/sublayers.h"

static void build(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                  heed_arena *arena)
{
    (void)arena;
    heed_ssru_build(&s->as.ssru, scope, options->ffn.d);
}

static heed_tensor *apply(heed_tape *t, const heed_sublayer *s, heed_tensor *x, heed_flow *flow)
{
    return heed_ssru_apply(t, &s->as.ssru, x, flow->rows);
}

static heed_sublayer_cost cost(const heed_sublayer *s)
{
    const heed_ssru_layer *l = &s->as.ssru;
    return (heed_sublayer_cost){
        heed_tensor_count(l->in.weight) + heed_tensor_count(l->forget.weight), 0};
}

static unsigned can(const heed_sublayer *s)
{
    (void)s;
    return HEED_CAN_CAUSAL | HEED_CAN_CACHE;
}

const heed_sublayer_class heed__ssru_sublayer = {
    .name = "ssru",
    .formula = "relu(c), c_i = s(f_i) c_{i-1} + (1 - s(f_i)) x_i W, f_i = x_i W_f + b_f",
    .form = HEED_SUBLAYER_SSRU,
    .build = build,
    .apply = apply,
    .cost = cost,
    .can = can,
};
