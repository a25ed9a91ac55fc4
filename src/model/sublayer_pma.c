/* sublayer_pma.c: pooling by multihead attention ("Set Transformer", Lee et al. 2019, section 3.2):
 * k learned seeds S look at a set, and stand for it from there on.
 *
 *   PMA(Z) = MAB(S, ffn(Z)),  MAB(X, Y) = norm(H + ffn'(H)), H = norm(X + attention(X, Y))
 *
 * Each sequence of the flow has k rows behind it, so nothing may stand around it: no residual. */
#include "model/sublayers.h"

#include "base/error.h"
#include "nn/params.h"

struct pma {
    heed_tensor *seeds; /* S (k,D) */
    heed_ffn_layer before, ffn;
    heed_mha_layer mha;
    heed_norm_layer attended, mixed;
};

static void build(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                  heed_arena *arena)
{
    const int64_t d = options->mha.d;
    const heed_norm_kind norm = options->around.norm;
    const heed_mha_options mha = heed__plain_cross(&options->mha);
    struct pma *l = heed_arena_allocate(arena, sizeof *l);
    s->as.own = l;
    if (!l)
        return;
    if (options->around.residual)
        heed__scope_fail(scope, HEED_ARGUMENT,
                         "pma: a sequence becomes %lld rows, to which its own cannot be added: "
                         "expected residual = false",
                         (long long)(options->seeds ? options->seeds : 1));
    l->seeds = heed_param(scope, "seeds", HEED_SHAPE(options->seeds ? options->seeds : 1, d),
                          (heed_init){HEED_INIT_XAVIER_UNIFORM, 1});
    heed_ffn_options ffn = options->ffn;
    ffn.f = ffn.f ? ffn.f : d;
    heed_ffn_build(&l->before, heed_scope_enter(scope, "before"), &ffn);
    heed_mha_build(&l->mha, heed_scope_enter(scope, "mha"), &mha);
    heed_norm_build(&l->attended, heed_scope_enter(scope, "attended"), norm, d,
                    options->around.eps);
    heed_ffn_build(&l->ffn, heed_scope_enter(scope, "ffn"), &ffn);
    heed_norm_build(&l->mixed, heed_scope_enter(scope, "mixed"), norm, d, options->around.eps);
}

static heed_tensor *apply(heed_tape *t, const heed_sublayer *s, heed_tensor *x, heed_flow *flow)
{
    const struct pma *l = s->as.own;
    const heed_segments *each;
    heed_tensor *seeds = heed__repeat_rows(t, l->seeds, flow->rows, &each);
    if (!seeds)
        return NULL;
    heed_tensor *z = heed_ffn_apply(t, &l->before, x);
    heed_tensor *h = heed_norm_residual(
        t, &l->attended, seeds, heed_mha_apply(t, &l->mha, seeds, z, each, flow->rows, NULL), 0);
    flow->rows = each;
    return heed_norm_residual(t, &l->mixed, h, heed_ffn_apply(t, &l->ffn, h), 0);
}

static heed_sublayer_cost cost(const heed_sublayer *s)
{
    const struct pma *l = s->as.own;
    return (heed_sublayer_cost){heed_tensor_count(l->mha.kv.weight) +
                                    heed_tensor_count(l->before.in.weight) +
                                    heed_tensor_count(l->before.out.weight),
                                0};
}

static unsigned can(const heed_sublayer *s)
{
    (void)s;
    return 0;
}

const heed_sublayer_class heed__pma_sublayer = {
    .name = "pma",
    .formula = "MAB(S, ffn(x)), S learned seeds that stand for a sequence from there on",
    .form = HEED_SUBLAYER_OWN,
    .build = build,
    .apply = apply,
    .cost = cost,
    .can = can,
};
