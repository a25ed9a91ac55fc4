/* sublayer_luna.c: linear unified nested attention (Ma et al. 2021): L rows P, of each sequence, go
 * through the stack beside X.
 *
 *   Y_P = attention(P, X),  Y_X = attention(X, Y_P);  P' = norm(Y_P + P) is the next layer's P
 *
 * The first layer has the P that all sequences begin with.  Y_X is what the sublayer gives: sum,
 * norm and feed-forward network of X are the stack's, P has none of its own. */
#include "model/sublayers.h"

#include "nn/params.h"

struct luna {
    heed_tensor *start; /* P (L,D) of the first layer, else NULL */
    heed_mha_layer pack, unpack;
    heed_norm_layer norm;
};

static void build(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                  heed_arena *arena)
{
    const int64_t d = options->mha.d;
    const heed_mha_options mha = heed__plain_cross(&options->mha);
    struct luna *l = heed_arena_allocate(arena, sizeof *l);
    s->as.own = l;
    if (!l)
        return;
    *l = (struct luna){0};
    if (options->layer == 0)
        l->start = heed_param(scope, "start", HEED_SHAPE(options->mha.memory.term[0].number[0], d),
                              (heed_init){HEED_INIT_NORMAL, 1});
    heed_mha_build(&l->pack, heed_scope_enter(scope, "pack"), &mha);
    heed_mha_build(&l->unpack, heed_scope_enter(scope, "unpack"), &mha);
    heed_norm_build(&l->norm, heed_scope_enter(scope, "packed"), options->around.norm, d,
                    options->around.eps);
}

static heed_tensor *apply(heed_tape *t, const heed_sublayer *s, heed_tensor *x, heed_flow *flow)
{
    const struct luna *l = s->as.own;
    if (l->start)
        flow->carried = heed__repeat_rows(t, l->start, flow->rows, &flow->carried_rows);
    if (!flow->carried_rows)
        return heed_tape_fail(t, HEED_ARGUMENT, "luna of layer %d: layer 0 carries nothing",
                              s->layer);
    heed_tensor *packed =
        heed_mha_apply(t, &l->pack, flow->carried, x, flow->carried_rows, flow->rows, NULL);
    flow->carried = heed_norm_residual(t, &l->norm, flow->carried, packed, 0);
    return heed_mha_apply(t, &l->unpack, x, packed, flow->rows, flow->carried_rows, NULL);
}

static heed_sublayer_cost cost(const heed_sublayer *s)
{
    const struct luna *l = s->as.own;
    return (heed_sublayer_cost){heed_tensor_count(l->pack.kv.weight) +
                                    heed_tensor_count(l->unpack.q.weight) +
                                    heed_tensor_count(l->unpack.out.weight),
                                0};
}

static unsigned can(const heed_sublayer *s)
{
    (void)s;
    return 0;
}

const heed_sublayer_class heed__luna_sublayer = {
    .name = "luna",
    .formula = "attention(x, attention(P, x)), P carried from layer to layer",
    .form = HEED_SUBLAYER_OWN,
    .build = build,
    .apply = apply,
    .cost = cost,
    .can = can,
};
