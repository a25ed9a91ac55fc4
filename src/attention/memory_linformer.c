/* memory_linformer.c: low rank (Wang et al. 2020): K learned mixtures of all positions stand for
 * the keys, K others for the values.
 *
 *   K' = E K, V' = F V,  E, F (K,longest), of which a sequence of n uses the first n columns
 *
 * It mixes positions before anything is compared, so it cannot be causal, and it is as long as it
 * was built.  `shared`: F = E. */
#include "attention/attend.h"

#include "nn/params.h"

static void build(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    const int64_t k = o->memory.term[0].number[0];
    const heed_init xavier = {HEED_INIT_XAVIER_UNIFORM, 1};
    s = heed_scope_enter(s, "compressed");
    l->compress_k = l->compress_v = heed_param(s, "k", HEED_SHAPE(k, o->longest), xavier);
    if (!o->memory.term[0].number[1])
        l->compress_v = heed_param(s, "v", HEED_SHAPE(k, o->longest), xavier);
}

/* One below the other: weight[:, :n] x for each segment. */
static heed_tensor *mix(heed_tape *t, heed_tensor *weight, heed_tensor *x, const heed_segments *s)
{
    heed_tensor **part = heed_arena_allocate(heed_tape_arena(t), (size_t)s->count * sizeof(*part));
    int n = 0;
    for (int64_t b = 0; part && b < s->count; b++) {
        const int64_t rows = s->offset[b + 1] - s->offset[b];
        if (rows)
            part[n++] = heed_matmul(t, heed_slice_cols(t, weight, 0, rows),
                                    heed_slice_rows(t, x, s->offset[b], s->offset[b + 1]), HEED_NN);
    }
    return part ? heed_concat_rows(t, part, n)
                : heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld segments",
                                 (long long)s->count);
}

static bool compress(heed_tape *t, const heed_attend_layer *l, heed_memory *m,
                     const heed_segments *queries, bool causal, heed__compressed *out)
{
    const int64_t k = l->options.memory.term[0].number[0];
    const heed_segments *s = m->segments;
    int64_t *length =
        heed_arena_allocate(heed_tape_arena(t), (size_t)(s->count + 1) * sizeof *length);
    (void)queries, (void)causal, (void)out;
    if (s->longest > l->options.longest) {
        heed_tape_fail(t, HEED_ARGUMENT,
                       "attention: a sequence of %lld, linformer was built for at most %lld",
                       (long long)s->longest, (long long)l->options.longest);
        return false;
    }
    for (int64_t b = 0; length && b < s->count; b++)
        length[b] = s->offset[b + 1] > s->offset[b] ? k : 0;
    if (!s->rows)
        return true;
    m->keys = mix(t, l->compress_k, m->keys, s);
    m->values = mix(t, l->compress_v, m->values, s);
    m->segments = length ? heed_segments_new(heed_tape_arena(t), s->count, length) : NULL;
    if (!m->segments)
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld segments",
                       (long long)s->count);
    return m->segments && m->keys && m->values;
}

const heed__slot_row heed__memory_linformer = {
    .info = {.slot = HEED_SLOT_MEMORY,
             .name = "linformer",
             .form = "linformer:K[:shared]",
             .formula = "K = E K, V = F V, E and F (K, longest) learned; shared: F = E",
             .paper = "Wang et al. 2020",
             .cost = "K pairs and K (Dk + Dv) products a query",
             .can = HEED_CAN_HEADS | HEED_CAN_STACKS | HEED_CAN_FUSED,
             .needs = 1,
             .takes = 2,
             .number = {{1, 65536, 0, NULL}, {1, 1, 0, (const char *const[]){"shared", NULL}}}},
    .memory = &(const heed__memory_form){.build = build, .compress = compress},
};
