/* token_embedding.c: dropout(scale * E[x] + P), sections 3.4 and 3.5.  ids (N) -> (N,D).  Without a
 * vocabulary: P alone, for what is no token.
 *
 * Positions count from 0 in each segment.  Refuses a segment longer than the table of positions. */
#include "nn/params.h"

#include <math.h>

static void fill_interleaved(heed_real *values, int64_t rows, int64_t cols)
{
    heed_sinusoid(values, rows, cols, HEED_POSITIONS_SINUSOID);
}

static void fill_halves(heed_real *values, int64_t rows, int64_t cols)
{
    heed_sinusoid(values, rows, cols, HEED_POSITIONS_SINUSOID_HALVES);
}

static void fill_marian(heed_real *values, int64_t rows, int64_t cols)
{
    heed_sinusoid(values, rows, cols, HEED_POSITIONS_SINUSOID_MARIAN);
}

static heed_tensor *declare_positions(heed_scope s, heed_positions kind, int64_t longest, int64_t d,
                                      heed_init init)
{
    heed_shape shape = HEED_SHAPE(longest, d);
    switch (kind) {
    case HEED_POSITIONS_NONE:
    case HEED_POSITIONS_ROTARY:
    case HEED_POSITIONS_ROTARY_NEIGHBOURS:
        break;
    case HEED_POSITIONS_SINUSOID:
        return heed__param_derived(s, shape, fill_interleaved);
    case HEED_POSITIONS_SINUSOID_HALVES:
        return heed__param_derived(s, shape, fill_halves);
    case HEED_POSITIONS_SINUSOID_MARIAN:
        return heed__param_derived(s, shape, fill_marian);
    case HEED_POSITIONS_LEARNED:
        return heed_param(s, "positions", shape, init);
    }
    return NULL;
}

void heed_embedding_build(heed_embedding_layer *l, heed_scope s, int64_t vocabulary, int64_t d,
                          heed_positions positions, int64_t longest, double scale, double dropout)
{
    if (!l)
        return;
    /* N(0, 1/D): the same table as pre-softmax weights then gives logits of unit size. */
    heed_init init = {HEED_INIT_NORMAL, d > 0 ? 1 / sqrt((double)d) : 0};
    l->table = NULL;
    if (vocabulary)
        l->table =
            heed_param_with_role(s, "table", HEED_SHAPE(vocabulary, d), init, HEED_ROLE_TABLE);
    l->positions = declare_positions(s, positions, longest, d, init);
    l->kind = positions;
    l->scale = scale;
    l->dropout = dropout;
}

/* (N): the place of each row in its segment.  NULL when memory is short. */
static int32_t *count_positions(heed_arena *arena, const heed_segments *s)
{
    int32_t *ids = heed_arena_allocate(arena, (size_t)s->rows * sizeof *ids);
    for (int64_t b = 0; ids && b < s->count; b++)
        for (int64_t n = s->offset[b]; n < s->offset[b + 1]; n++)
            ids[n] = (int32_t)(n - s->offset[b]);
    return ids;
}

heed_tensor *heed_embedding_apply(heed_tape *t, const heed_embedding_layer *l, const int32_t *ids,
                                  const heed_segments *s)
{
    if (!s)
        return heed_tape_fail(t, HEED_ARGUMENT, "embedding: no segments");
    heed_embedding_options options = {
        .scale = l->scale, .positions = l->positions, .dropout = l->dropout};
    if (l->positions) {
        int64_t longest = heed_tensor_rows(l->positions);
        if (s->longest > longest)
            return heed_tape_fail(t, HEED_ARGUMENT,
                                  "embedding: a segment of %lld rows, positions for at most %lld",
                                  (long long)s->longest, (long long)longest);
        options.position_ids = count_positions(heed_tape_arena(t), s);
        if (!options.position_ids)
            return heed_tape_fail(t, HEED_MEMORY, "embedding: no memory for %lld positions",
                                  (long long)s->rows);
    }
    if (!l->table && l->positions)
        return heed_embedding(t, l->positions, options.position_ids, s->rows,
                              &(heed_embedding_options){.dropout = l->dropout});
    return heed_embedding(t, l->table, ids, s->rows, &options);
}
