/* sublayer_isab.c: the induced set attention block ("Set Transformer", Lee et al. 2019, section
 * 3.1): a set X looks at M points that have looked at it.
 *
 *   MAB(X, Y) = norm(H + ffn(H)), H = norm(X + attention(X, Y));  ISAB(X) = MAB(X, MAB(I, X))
 *
 * The outer norms, sum and feed-forward network are the stack's.  No row depends on where it
 * stands.
 */
#include "model/sublayers.h"

#include "nn/params.h"

struct isab {
    heed_tensor *points; /* I (M,D) */
    heed_mha_layer in, out;
    heed_norm_layer attended, mixed;
    heed_ffn_layer ffn;
};

heed_mha_options heed__plain_cross(const heed_mha_options *mha)
{
    heed_mha_options o = *mha;
    o.cross = true;
    o.causal = false;
    o.queries = o.memory = o.pattern = o.position_bias = o.normaliser = (heed_slot_spec){0};
    o.positions = HEED_POSITIONS_NONE;
    return o;
}

heed_tensor *heed__repeat_rows(heed_tape *t, heed_tensor *x, const heed_segments *rows,
                               const heed_segments **each)
{
    heed_arena *arena = heed_tape_arena(t);
    const int64_t n = heed_tensor_rows(x), b = rows->count;
    int64_t *length = heed_arena_allocate(arena, (size_t)(b + 1) * sizeof *length);
    int32_t *index = heed_arena_allocate(arena, (size_t)(b * n + 1) * sizeof *index);
    for (int64_t i = 0; length && i < b; i++)
        length[i] = n;
    for (int64_t i = 0; index && i < b * n; i++)
        index[i] = (int32_t)(i % n);
    *each = length ? heed_segments_new(arena, b, length) : NULL;
    if (!*each || !index)
        return heed_tape_fail(t, HEED_MEMORY, "no memory for %lld rows of each of %lld sequences",
                              (long long)n, (long long)b);
    return heed_gather_rows(t, x, index, b * n);
}

static void build(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                  heed_arena *arena)
{
    const int64_t d = options->mha.d;
    const heed_mha_options mha = heed__plain_cross(&options->mha);
    const heed_norm_kind norm = options->around.norm;
    struct isab *l = heed_arena_allocate(arena, sizeof *l);
    s->as.own = l;
    if (!l)
        return;
    l->points = heed_param(scope, "points", HEED_SHAPE(options->mha.memory.term[0].number[0], d),
                           (heed_init){HEED_INIT_XAVIER_UNIFORM, 1});
    heed_mha_build(&l->in, heed_scope_enter(scope, "in"), &mha);
    heed_norm_build(&l->attended, heed_scope_enter(scope, "attended"), norm, d,
                    options->around.eps);
    heed_ffn_options ffn = options->ffn;
    ffn.f = ffn.f ? ffn.f : d;
    heed_ffn_build(&l->ffn, heed_scope_enter(scope, "ffn"), &ffn);
    heed_norm_build(&l->mixed, heed_scope_enter(scope, "mixed"), norm, d, options->around.eps);
    heed_mha_build(&l->out, heed_scope_enter(scope, "out"), &mha);
}

static heed_tensor *apply(heed_tape *t, const heed_sublayer *s, heed_tensor *x, heed_flow *flow)
{
    const struct isab *l = s->as.own;
    const heed_segments *each;
    heed_tensor *points = heed__repeat_rows(t, l->points, flow->rows, &each);
    heed_tensor *h = heed_norm_residual(
        t, &l->attended, points, heed_mha_apply(t, &l->in, points, x, each, flow->rows, NULL), 0);
    h = heed_norm_residual(t, &l->mixed, h, heed_ffn_apply(t, &l->ffn, h), 0);
    return heed_mha_apply(t, &l->out, x, h, flow->rows, each, NULL);
}

static heed_sublayer_cost cost(const heed_sublayer *s)
{
    const struct isab *l = s->as.own;
    return (heed_sublayer_cost){heed_tensor_count(l->in.kv.weight) +
                                    heed_tensor_count(l->out.q.weight) +
                                    heed_tensor_count(l->out.out.weight),
                                0};
}

static unsigned can(const heed_sublayer *s)
{
    (void)s;
    return 0;
}

const heed_sublayer_class heed__isab_sublayer = {
    .name = "isab",
    .formula = "attention(x, MAB(I, x)), I learned points",
    .form = HEED_SUBLAYER_OWN,
    .build = build,
    .apply = apply,
    .cost = cost,
    .can = can,
};
