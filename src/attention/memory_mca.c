/* memory_mca.c: memory-compressed attention (Liu et al. 2018): a strided convolution makes one key
 * and one value of C, in each head.
 *
 *   K'_b = sum_c K_{bC+c} W_c,  V' likewise;  query i of a causal layer sees the blocks that are
 *   complete at i, and a learned row besides, without which the first queries would see nothing
 *
 * A segment's last block is filled up with zeros.  A pattern is one of blocks: band:W is W of them.
 */
#include "attention/attend.h"

#include "base/min_max.h"
#include "nn/params.h"

static void build(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    const int64_t c = o->memory.term[0].number[0], g = o->kv_heads;
    const heed_init xavier = {HEED_INIT_XAVIER_UNIFORM, 1}, normal = {HEED_INIT_NORMAL, 1};
    s = heed_scope_enter(s, "compressed");
    l->compress_k = heed_param(s, "k", HEED_SHAPE(c * o->key_d, o->key_d / g), xavier);
    l->compress_v = heed_param(s, "v", HEED_SHAPE(c * o->value_d, o->value_d / g), xavier);
    if (!o->causal)
        return;
    l->shared_k = heed_param(s, "null-k", HEED_SHAPE(1, o->key_d), normal);
    l->shared_v = heed_param(s, "null-v", HEED_SHAPE(1, o->value_d), normal);
}

/* Rows of each segment filled up with zeros to a multiple of c: which rows; *padded: the segments.
 * */
static int32_t *pad(heed_tape *t, const heed_segments *s, int64_t c, const heed_segments **padded)
{
    heed_arena *arena = heed_tape_arena(t);
    int64_t *length = heed_arena_allocate(arena, (size_t)(s->count + 1) * sizeof *length), rows = 0;
    for (int64_t b = 0; length && b < s->count; b++)
        rows += length[b] = (s->offset[b + 1] - s->offset[b] + c - 1) / c * c;
    int32_t *index = length ? heed_arena_allocate(arena, (size_t)(rows + 1) * sizeof *index) : NULL;
    *padded = index ? heed_segments_new(arena, s->count, length) : NULL;
    if (!*padded) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld blocks", (long long)rows / c);
        return NULL;
    }
    for (int64_t b = 0, n = 0; b < s->count; b++)
        for (int64_t i = 0; i < length[b]; i++)
            index[n++] = s->offset[b] + i < s->offset[b + 1] ? (int32_t)(s->offset[b] + i) : -1;
    return index;
}

/* x (N,heads*d) -> (blocks,heads*d) */
static heed_tensor *convolve(heed_tape *t, heed_tensor *x, heed_tensor *weight, int64_t c,
                             int heads, const heed_segments *padded, const heed_segments **blocks)
{
    const int64_t d = heed_tensor_cols(weight);
    heed_tensor **part = heed_arena_allocate(heed_tape_arena(t), (size_t)heads * sizeof(*part));
    for (int h = 0; part && h < heads; h++)
        part[h] = heed_conv1d(t, heed_slice_cols(t, x, h * d, (h + 1) * d),
                              heed_slice_rows(t, weight, h * c * d, (h + 1) * c * d), NULL, padded,
                              &(heed_conv1d_options){.kernel = c, .stride = c}, blocks);
    return part ? heed_concat_cols(t, part, heads)
                : heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %d heads", heads);
}

static bool compress(heed_tape *t, const heed_attend_layer *l, heed_memory *m,
                     const heed_segments *queries, bool causal, heed__compressed *out)
{
    const heed_attend_options *o = &l->options;
    const int64_t c = o->memory.term[0].number[0];
    const heed_segments *padded, *blocks = NULL;
    int32_t *index = pad(t, m->segments, c, &padded);
    if (!index)
        return false;
    m->keys = convolve(t, heed_gather_rows(t, m->keys, index, padded->rows), l->compress_k, c,
                       o->kv_heads, padded, &blocks);
    m->values = convolve(t, heed_gather_rows(t, m->values, index, padded->rows), l->compress_v, c,
                         o->kv_heads, padded, &blocks);
    m->segments = blocks;
    out->by = c;
    if (!causal)
        return m->values;
    int32_t *visible =
        heed_arena_allocate(heed_tape_arena(t), (size_t)(queries->rows + 1) * sizeof *visible);
    for (int64_t b = 0; visible && b < queries->count; b++)
        for (int64_t n = queries->offset[b]; n < queries->offset[b + 1]; n++)
            visible[n] = (int32_t)((n - queries->offset[b] + 1) / c);
    if (!visible)
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld queries",
                       (long long)queries->rows);
    out->visible = visible;
    return visible && m->values;
}

const heed__slot_row heed__memory_mca = {
    .info = {.slot = HEED_SLOT_MEMORY,
             .name = "mca",
             .form = "mca:C",
             .formula = "K = conv(K), V = conv(V), kernel and stride C; causal: whole blocks alone",
             .paper = "Liu et al. 2018",
             .cost = "S / C pairs a query",
             .can = HEED_CAN_CAUSAL | HEED_CAN_HEADS | HEED_CAN_STACKS | HEED_CAN_FUSED,
             .needs = 1,
             .takes = 1,
             .number = {{2, 65536, 0, NULL}}},
    .memory = &(const heed__memory_form){.build = build, .compress = compress},
};
