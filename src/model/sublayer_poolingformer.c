/* sublayer_poolingformer.c: two-level pooling attention (Zhang et al. 2021, "Poolingformer").
 *
 *   Y = attention of X in a band of W
 *   Z = attention of Y W'_q over W neighbours of pool(Y W'_k), pool(Y W'_v), means of POOL rows
 *   (Y + Z) W_o
 *
 * so the second level reaches W POOL positions.  A last block that is not full has the mean of what
 * it has.  Causal: a block is seen once it is complete; before the first one Z is 0.  The authors'
 * code is not public; they also try other ways of pooling. */
#include "model/sublayers.h"

#include "attention/attend.h"

struct poolingformer {
    heed_mha_layer near; /* level 1, and W_o */
    heed_linear_layer qkv;
    int64_t pool;
};

static void build(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                  heed_arena *arena)
{
    struct poolingformer *l = heed_arena_allocate(arena, sizeof *l);
    heed_mha_options mha = heed__plain_cross(&options->mha);
    const heed_term *term = &options->mha.memory.term[0];
    s->as.own = l;
    if (!l)
        return;
    *l = (struct poolingformer){.pool = term->number[1]};
    const heed_slot_spec band = HEED_ONE(HEED_PATTERN_BAND, {term->number[0]});
    mha.cross = false;
    mha.causal = options->mha.causal;
    mha.positions = options->mha.positions;
    mha.pattern = band;
    heed_mha_build(&l->near, scope, &mha);
    const heed_mha_options *o = &l->near.options;
    heed_linear_build(&l->qkv, heed_scope_enter(scope, "pooled"), o->heads * o->d_v,
                      o->heads * o->d_k + o->kv_heads * (o->d_k + o->d_v), HEED_IDENTITY, o->bias);
}

static int near_ranges(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                       heed_key_range *out)
{
    const struct poolingformer *l = context;
    const heed__pattern_query q = {
        .head = head, .i = i, .queries = queries, .keys = keys, .causal = l->near.options.causal};
    return heed__pattern_ranges(&l->near.options.pattern, &q, out);
}

/* The band around the query's own block, or behind the last one that is complete. */
static int pooled_ranges(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                         heed_key_range *out)
{
    const struct poolingformer *l = context;
    const bool causal = l->near.options.causal;
    const heed__pattern_query q = {.head = head,
                                   .i = causal ? (i + 1) / l->pool - 1 : i / l->pool,
                                   .queries = queries / l->pool + 1,
                                   .keys = keys,
                                   .causal = causal};
    return q.i < 0 ? 0 : heed__pattern_ranges(&l->near.options.pattern, &q, out);
}

/* Blocks of `pool` rows of each sequence, *counts how many each has; NULL after an error. */
static const heed_segments *blocks_of(heed_tape *t, const heed_segments *rows, int64_t pool,
                                      const heed_segments **counts)
{
    heed_arena *arena = heed_tape_arena(t);
    int64_t *count = heed_arena_allocate(arena, (size_t)(rows->count + 1) * sizeof *count), n = 0;
    for (int64_t b = 0; count && b < rows->count; b++)
        n += count[b] = (rows->offset[b + 1] - rows->offset[b] + pool - 1) / pool;
    int64_t *length = count ? heed_arena_allocate(arena, (size_t)(n + 1) * sizeof *length) : NULL;
    *counts = length ? heed_segments_new(arena, rows->count, count) : NULL;
    n = 0;
    for (int64_t b = 0; *counts && b < rows->count; b++)
        for (int64_t left = rows->offset[b + 1] - rows->offset[b]; left > 0; left -= pool)
            length[n++] = left < pool ? left : pool;
    const heed_segments *blocks = *counts ? heed_segments_new(arena, n, length) : NULL;
    if (!blocks)
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld blocks", (long long)n);
    return blocks;
}

static heed_tensor *apply(heed_tape *t, const heed_sublayer *s, heed_tensor *x, heed_flow *flow)
{
    const struct poolingformer *l = s->as.own;
    const heed_mha_options *o = &l->near.options;
    const int64_t q_cols = o->heads * o->d_k, all = q_cols + o->kv_heads * (o->d_k + o->d_v);
    const int most = (int)heed__pattern_most(&o->pattern, flow->rows->longest);
    const heed_segments *counts, *blocks = blocks_of(t, flow->rows, l->pool, &counts);
    if (!blocks)
        return NULL;
    heed_attention_options one = heed__mha_attention(o);
    const heed_key_pattern
        near = {.ranges = near_ranges, .context = l, .most = most, .same_heads = true},
        far = {.ranges = pooled_ranges, .context = l, .most = most, .same_heads = true};
    heed_tensor *qkv = heed_linear_apply(t, &l->near.qkv, x);
    one.pattern = &near;
    heed_tensor *y =
        heed__mha_of(t, o, heed_slice_cols(t, qkv, 0, q_cols), heed_slice_cols(t, qkv, q_cols, all),
                     flow->rows, flow->rows, &one);
    heed_mha_options level2 = *o;
    level2.positions = HEED_POSITIONS_NONE; /* Y has them, and a mean of turned rows has none */
    qkv = heed_linear_apply(t, &l->qkv, y);
    one.pattern = &far;
    one.causal = false; /* blocks: `far` has it */
    heed_tensor *z =
        heed__mha_of(t, &level2, heed_slice_cols(t, qkv, 0, q_cols),
                     heed_segment_mean(t, heed_slice_cols(t, qkv, q_cols, all), blocks), flow->rows,
                     counts, &one);
    return heed_linear_apply(t, &l->near.out, heed_add(t, y, z));
}

static heed_sublayer_cost cost(const heed_sublayer *s)
{
    const struct poolingformer *l = s->as.own;
    return (heed_sublayer_cost){heed_tensor_count(l->near.qkv.weight) +
                                    heed_tensor_count(l->near.out.weight) +
                                    heed_tensor_count(l->qkv.weight),
                                0};
}

static unsigned can(const heed_sublayer *s)
{
    const struct poolingformer *l = s->as.own;
    return l->near.options.causal ? HEED_CAN_CAUSAL : 0;
}

const heed_sublayer_class heed__poolingformer_sublayer = {
    .name = "poolingformer",
    .formula = "(Y + attention(Y, pool(Y))) W_o, Y = attention of x in a band",
    .form = HEED_SUBLAYER_OWN,
    .build = build,
    .apply = apply,
    .cost = cost,
    .can = can,
};
