/* sublayer_longformer.c: Longformer's attention (Beltagy et al. 2020, section 3.1): a band of W and
 * G global positions, the first of each sequence, with two sets of projections.
 *
 *   i >= G   softmax(q_i [K_near; K_0..G-1]^T) V, one softmax, with W_q, W_k, W_v
 *   i < G    softmax(q'_i K'^T) V' over all, with W'_q, W'_k, W'_v of their own
 *
 * and one W_o, as in the authors' code.  A causal position sees what is not behind it, a global one
 * too. */
#include "model/sublayers.h"

#include "attention/attend.h"
#include "base/min_max.h"

struct longformer {
    heed_mha_layer near; /* its products; what they are for is here */
    heed_linear_layer q, kv;
    heed_slot_spec seen; /* of positions that are not global */
    int64_t globals;
};

static void build(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                  heed_arena *arena)
{
    struct longformer *l = heed_arena_allocate(arena, sizeof *l);
    heed_mha_options mha = heed__plain_cross(&options->mha);
    const heed_term *term = &options->mha.pattern.term[0];
    s->as.own = l;
    if (!l)
        return;
    const heed_slot_spec seen = {
        2, {{HEED_PATTERN_BAND, {term->number[0]}}, {HEED_PATTERN_GLOBAL, {term->number[1]}}}};
    *l = (struct longformer){.seen = seen, .globals = term->number[1]};
    mha.cross = false;
    mha.causal = options->mha.causal;
    mha.positions = options->mha.positions;
    mha.pattern = seen;
    heed_mha_build(&l->near, scope, &mha);
    const heed_mha_options *o = &l->near.options;
    heed_scope global = heed_scope_enter(scope, "global");
    heed_linear_build(&l->q, heed_scope_enter(global, "q"), o->d, o->heads * o->d_k, HEED_IDENTITY,
                      o->bias);
    heed_linear_build(&l->kv, heed_scope_enter(global, "kv"), o->d, o->kv_heads * (o->d_k + o->d_v),
                      HEED_IDENTITY, o->bias);
}

/* What a position that is not global sees; of the others the other projections have it. */
static int ranges(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                  heed_key_range *out)
{
    const struct longformer *l = context;
    const heed__pattern_query q = {
        .head = head, .i = i, .queries = queries, .keys = keys, .causal = l->near.options.causal};
    return i < l->globals ? 0 : heed__pattern_ranges(&l->seen, &q, out);
}

static heed_tensor *turned(heed_tape *t, const heed_mha_options *o, heed_tensor *x,
                           const heed_segments *rows, int heads)
{
    if (!heed_positions_are_rotary(o->positions))
        return x;
    return heed_rotary(
        t, x, rows,
        &(heed_rotary_options){.heads = heads,
                               .neighbours = o->positions == HEED_POSITIONS_ROTARY_NEIGHBOURS,
                               .base = o->rotary_base});
}

heed_attention_options heed__mha_attention(const heed_mha_options *o)
{
    return (heed_attention_options){.heads = o->heads,
                                    .kv_heads = o->kv_heads,
                                    .causal = o->causal,
                                    .scale = o->score == HEED_SCORE_DOT ? 1 : 0,
                                    .dropout = o->dropout};
}

heed_tensor *heed__mha_of(heed_tape *t, const heed_mha_options *o, heed_tensor *q, heed_tensor *kv,
                          const heed_segments *queries, const heed_segments *keys,
                          const heed_attention_options *one)
{
    const int64_t k = o->kv_heads * o->d_k, v = o->kv_heads * o->d_v;
    return heed_attention(t, turned(t, o, q, queries, o->heads),
                          turned(t, o, heed_slice_cols(t, kv, 0, k), keys, o->kv_heads),
                          heed_slice_cols(t, kv, k, k + v), queries, keys, one);
}

/* The first G rows of each sequence, *first their segments, and where each row's answer stands:
 * those of the global rows before those of all. */
static bool split(heed_tape *t, const heed_segments *rows, int64_t globals,
                  const heed_segments **first, int32_t **chosen, int32_t **source)
{
    heed_arena *arena = heed_tape_arena(t);
    int64_t *length = heed_arena_allocate(arena, (size_t)(rows->count + 1) * sizeof *length), n = 0;
    int32_t *index = heed_arena_allocate(arena, 2 * (size_t)(rows->rows + 1) * sizeof *index);
    *first = NULL;
    if (length && index) {
        for (int64_t b = 0; b < rows->count; b++)
            length[b] = heed__min(globals, rows->offset[b + 1] - rows->offset[b]);
        *first = heed_segments_new(arena, rows->count, length);
    }
    if (!*first) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld rows", (long long)rows->rows);
        return false;
    }
    *chosen = index;
    *source = index + rows->rows + 1;
    for (int64_t b = 0; b < rows->count; b++)
        for (int64_t i = rows->offset[b]; i < rows->offset[b + 1]; i++)
            if (i - rows->offset[b] < globals) {
                (*source)[i] = (int32_t)n;
                (*chosen)[n++] = (int32_t)i;
            } else {
                (*source)[i] = (int32_t)((*first)->rows + i);
            }
    return true;
}

static heed_tensor *apply(heed_tape *t, const heed_sublayer *s, heed_tensor *x, heed_flow *flow)
{
    const struct longformer *l = s->as.own;
    const heed_mha_options *o = &l->near.options;
    const int64_t q_cols = o->heads * o->d_k;
    const heed_segments *first;
    int32_t *chosen, *source;
    if (!x || !split(t, flow->rows, l->globals, &first, &chosen, &source))
        return NULL;
    heed_tensor *qkv = heed_linear_apply(t, &l->near.qkv, x);
    if (!qkv)
        return NULL;
    const heed_attention_options all = heed__mha_attention(o);
    heed_attention_options one = all;
    const heed_key_pattern pattern = {.ranges = ranges,
                                      .context = l,
                                      .most =
                                          (int)heed__pattern_most(&l->seen, flow->rows->longest),
                                      .same_heads = true};
    one.pattern = &pattern;
    heed_tensor *near = heed__mha_of(t, o, heed_slice_cols(t, qkv, 0, q_cols),
                                     heed_slice_cols(t, qkv, q_cols, heed_tensor_cols(qkv)),
                                     flow->rows, flow->rows, &one);
    heed_tensor *global =
        heed__mha_of(t, o, heed_linear_apply(t, &l->q, heed_gather_rows(t, x, chosen, first->rows)),
                     heed_linear_apply(t, &l->kv, x), first, flow->rows, &all);
    heed_tensor *part[] = {global, near};
    return heed_linear_apply(
        t, &l->near.out,
        heed_gather_rows(t, heed_concat_rows(t, part, 2), source, flow->rows->rows));
}

static heed_sublayer_cost cost(const heed_sublayer *s)
{
    const struct longformer *l = s->as.own;
    return (heed_sublayer_cost){heed_tensor_count(l->near.qkv.weight) +
                                    heed_tensor_count(l->near.out.weight) +
                                    heed_tensor_count(l->kv.weight),
                                0};
}

static unsigned can(const heed_sublayer *s)
{
    const struct longformer *l = s->as.own;
    return l->near.options.causal ? HEED_CAN_CAUSAL : 0;
}

const heed_sublayer_class heed__longformer_sublayer = {
    .name = "longformer",
    .formula = "attention to a band and the first G; of these with projections of their own to all",
    .form = HEED_SUBLAYER_OWN,
    .build = build,
    .apply = apply,
    .cost = cost,
    .can = can,
};
