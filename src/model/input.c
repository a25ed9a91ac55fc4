/* input.c: what a stack begins with: tokens with positions and types, or features with positions.
 *
 * ids, types (N) or features (N,width) -> (N,D).  The paper's dropout(scale * E[x] + P) is one
 * operator; with types, a norm or features it is several. */
#include <heed/stack.h>

#include <math.h>
#include <string.h>

void heed_input_build(heed_input_layer *l, heed_scope s, const heed_input_options *options)
{
    if (!l)
        return;
    const heed_input_options *o = options;
    const bool fused = o->vocabulary && !o->types && !o->normed;
    *l = (heed_input_layer){.dropout = fused ? 0 : o->dropout, .zero_start = o->zero_start};
    heed_embedding_build(&l->embedding, s, o->vocabulary, o->d, o->positions, o->longest, o->scale,
                         fused ? o->dropout : 0);
    if (!o->vocabulary)
        heed_linear_build(&l->features, s, o->width, o->d, HEED_IDENTITY, true);
    if (o->types)
        l->types = heed_param(s, "types", HEED_SHAPE(o->types, o->d),
                              (heed_init){HEED_INIT_NORMAL, 1 / sqrt((double)o->d)});
    if (o->normed)
        heed_norm_build(&l->norm, heed_scope_enter(s, "norm"), o->norm, o->d, o->eps);
}

/* features W + b + P */
static heed_tensor *project_features(heed_tape *t, const heed_input_layer *l,
                                     const heed_batch_side *side)
{
    if (!side->features)
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "input: the batch has no features, expected %lld a "
                              "row",
                              (long long)heed_tensor_rows(l->features.weight));
    heed_tensor *x = heed_input(t, HEED_SHAPE(side->rows->rows, side->width), side->features);
    x = heed_linear_apply(t, &l->features, x);
    if (!l->embedding.positions)
        return x;
    return heed_add(t, x, heed_embedding_apply(t, &l->embedding, NULL, side->rows));
}

static heed_tensor *add_types(heed_tape *t, const heed_input_layer *l, heed_tensor *x,
                              const heed_batch_side *side)
{
    const int64_t n = side->rows->rows;
    const int32_t *types = side->types;
    if (!types) {
        int32_t *zero = heed_arena_allocate(heed_tape_arena(t), (size_t)n * sizeof *zero);
        if (!zero)
            return heed_tape_fail(t, HEED_MEMORY, "input: no memory for %lld types", (long long)n);
        types = memset(zero, 0, (size_t)n * sizeof *zero);
    }
    return heed_add(t, x, heed_embedding(t, l->types, types, n, NULL));
}

/* The first token of each sequence is none, -1, where a decoder begins with zeros. */
static const int32_t *tokens_of(heed_tape *t, const heed_input_layer *l,
                                const heed_batch_side *side)
{
    const heed_segments *s = side->rows;
    if (!l->zero_start)
        return side->ids;
    int32_t *ids = heed_arena_allocate(heed_tape_arena(t), (size_t)s->rows * sizeof *ids);
    if (!ids) {
        heed_tape_fail(t, HEED_MEMORY, "input: no memory for %lld tokens", (long long)s->rows);
        return NULL;
    }
    memcpy(ids, side->ids, (size_t)s->rows * sizeof *ids);
    for (int64_t b = 0; b < s->count; b++)
        if (s->offset[b] < s->offset[b + 1])
            ids[s->offset[b]] = -1;
    return ids;
}

heed_tensor *heed_input_apply(heed_tape *t, const heed_input_layer *l, const heed_batch_side *side)
{
    if (!t)
        return NULL;
    if (!side->rows)
        return heed_tape_fail(t, HEED_ARGUMENT, "input: the batch has not this side");
    if (l->embedding.table && !side->ids)
        return heed_tape_fail(t, HEED_ARGUMENT, "input: the batch has features, expected tokens");
    if (side->types && !l->types)
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "input: the batch has types, the model has no table for them");
    heed_tensor *x = l->embedding.table
                         ? heed_embedding_apply(t, &l->embedding, tokens_of(t, l, side), side->rows)
                         : project_features(t, l, side);
    if (l->types)
        x = add_types(t, l, x, side);
    if (l->norm.gain)
        x = heed_norm_apply(t, &l->norm, x);
    return l->dropout > 0 ? heed_dropout(t, x, l->dropout) : x; /* (N,D) */
}
