/* attention.c: where every head of a packed Transformer looks: the pair goes through the engine,
 * and each query's weights are noted as they come.  Other models show their own forward pass. */
#include "base/error.h"
#include "decode/engine.h"

#include <string.h>

/* Maps of encoder layers, of the decoder's self-attentions, of its cross-attentions: all heads of a
 * layer together, as heed_model_attention orders them. */
struct noting {
    const heed__weights *w;
    heed_attention_map *map;
};

static void note(void *context, heed_attention_kind kind, int layer, int64_t row,
                 const heed_real *weights, int64_t n)
{
    const struct noting *x = context;
    const int64_t heads = x->w->heads;
    const int before[] = {0, x->w->encoder_layers, x->w->encoder_layers + x->w->decoder_layers};
    const heed_attention_map *map = x->map + (before[kind] + layer) * heads;
    for (int64_t h = 0; h < heads; h++)
        memcpy((heed_real *)map[h].weight + row * map[h].keys, weights + h * n,
               (size_t)n * sizeof *weights);
}

/* Maps of zeros: what a query does not see stays so. */
static heed_attention_map *new_maps(const heed__weights *w, int64_t sources, int64_t targets,
                                    heed_arena *arena, int64_t *count)
{
    const int n = w->encoder_layers, k = w->decoder_layers;
    *count = (n + 2 * k) * w->heads;
    heed_attention_map *map = heed_arena_allocate(arena, (size_t)*count * sizeof *map);
    for (int64_t i = 0; map && i < *count; i++) {
        const int layer = (int)(i / w->heads);
        heed_attention_map *m = &map[i];
        *m = (heed_attention_map){.head = (int)(i % w->heads)};
        m->kind = layer < n ? HEED_ENCODER_SELF : layer < n + k ? HEED_DECODER_SELF : HEED_CROSS;
        m->layer = layer < n ? layer : (layer - n) % k;
        m->queries = m->kind == HEED_ENCODER_SELF ? sources : targets;
        m->keys = m->kind == HEED_DECODER_SELF ? targets : sources;
        const size_t bytes = (size_t)(m->queries * m->keys) * sizeof *m->weight;
        heed_real *weight = heed_arena_allocate(arena, bytes);
        if (!weight)
            return NULL;
        m->weight = memset(weight, 0, bytes);
    }
    return map;
}

static heed_status watch_rows(const heed__weights *w, const heed_tokens *source,
                              const heed_tokens *target, struct noting *x,
                              const heed_allocator *allocator, heed_error *err)
{
    heed__rows *r = heed__rows_new(w, NULL, 1, allocator, err);
    if (!r)
        return HEED_MEMORY;
    heed__stepper s = heed__rows_stepper(r);
    r->pass.watch = note;
    r->pass.watching = x;
    heed_status status = s.add(r, source, NULL, 1, err);
    if (!status)
        status = heed__rows_force(r, target, err);
    heed__rows_free(r);
    return status;
}

/* Of a model with its own layers: the tape's memory does not last, so the maps are copied. */
static heed_status watch_model(const heed_engine *e, const heed_tokens *source,
                               const heed_tokens *target, heed_arena *arena,
                               const heed_attention_map **maps, int64_t *count, heed_error *err)
{
    heed_batch batch;
    const heed_attention_map *seen;
    heed_tape *t =
        heed_tape_new(&(heed_tape_options){.allocator = &e->allocator, .threads = 1}, err);
    heed_status status = t ? heed_batch_pack(arena, source, target, 1, &batch, err) : HEED_MEMORY;
    *count = status ? 0 : heed_model_attention(e->model, t, &batch, &seen);
    heed_attention_map *map = heed_arena_allocate(arena, (size_t)*count * sizeof *map);
    for (int64_t i = 0; map && i < *count; i++) {
        const size_t bytes = (size_t)(seen[i].queries * seen[i].keys) * sizeof(heed_real);
        heed_real *weight = heed_arena_allocate(arena, bytes);
        map[i] = seen[i];
        map[i].weight = weight ? memcpy(weight, seen[i].weight, bytes) : NULL;
        if (!weight)
            map = NULL;
    }
    *maps = map;
    if (!status && heed_tape_error(t)->status)
        status = heed__fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
    else if (!status && !map)
        status = heed__fail(err, HEED_MEMORY, "out of memory for attention");
    heed_tape_free(t);
    return status;
}

heed_status heed_engine_attention(const heed_engine *e, const heed_tokens *source,
                                  const heed_tokens *target, heed_arena *arena,
                                  const heed_attention_map **maps, int64_t *count, heed_error *err)
{
    if (!e->weights)
        return watch_model(e, source, target, arena, maps, count, err);
    struct noting x = {.w = e->weights};
    *maps = x.map = new_maps(e->weights, source->count + 1, target->count + 1, arena, count);
    if (!x.map)
        return heed__fail(err, HEED_MEMORY, "out of memory for attention");
    return watch_rows(e->weights, source, target, &x, &e->allocator, err);
}

heed_status heed__cross_weights(const heed_engine *e, const heed_tokens *source,
                                const heed_tokens *target, int layer, int head, heed_arena *arena,
                                const heed_real **weight, int64_t *ld, heed_error *err)
{
    const heed_attention_map *maps;
    int64_t count, heads = 0, size = (source->count + 1) * (target->count + 1);
    heed_status status = heed_engine_attention(e, source, target, arena, &maps, &count, err);
    heed_real *sum = status ? NULL : heed_arena_allocate(arena, (size_t)size * sizeof *sum);
    if (!sum)
        return status ? status : heed__fail(err, HEED_MEMORY, "out of memory for attention");
    memset(sum, 0, (size_t)size * sizeof *sum);
    for (int64_t i = 0; i < count; i++) {
        const heed_attention_map *m = &maps[i];
        if (m->kind != HEED_CROSS || m->layer != layer || (head >= 0 && m->head != head))
            continue;
        for (int64_t k = 0; k < size; k++)
            sum[k] += m->weight[k];
        heads++;
    }
    if (!heads)
        return heed__fail(err, HEED_ARGUMENT,
                          "there is no cross-attention of layer %d, head %d to align by", layer + 1,
                          head + 1);
    *weight = sum;
    *ld = source->count + 1;
    return HEED_OK;
}
