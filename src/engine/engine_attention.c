/* engine_attention.c: where every head of a packed Transformer looks: the pair goes through the
 * engine, and each query's probabilities are recorded as they come.  Other models show their own
 * forward pass. */
#include "base/error.h"
#include "engine/engine.h"

#include <string.h>

/* The attentions of both stacks in the order of heed_model_attention: kind by kind, layer by layer;
 * all heads of one stand together. */
struct recording {
    const heed__rows *rows;
    const heed__packed_attention **attention; /* (count) */
    heed_attention_map **map;                 /* (count) the first of its heads */
    int64_t count;
};

static void record(void *context, const heed__packed_attention *a, int64_t row,
                   const heed_real *probabilities, int64_t n)
{
    const struct recording *x = context;
    const int64_t query = a->kind == HEED_ENCODER_SELF ? row : x->rows->query[row].position;
    int64_t at = 0;
    while (x->attention[at] != a)
        at++;
    for (int64_t h = 0; h < a->form.heads; h++) {
        const heed_attention_map *m = &x->map[at][h];
        memcpy((heed_real *)m->weight + query * m->keys, probabilities + h * n,
               (size_t)n * sizeof *probabilities);
    }
}

/* Appends those of one kind and returns how many heads they have. */
static int64_t list(struct recording *x, const heed__packed_stack *s, heed_attention_kind kind)
{
    const int64_t first = x->count;
    int64_t heads = 0;
    for (int i = 0; s && i < s->count; i++) {
        const heed__packed_attention *a = &s->sublayer[i].as.attention;
        const bool attends =
            s->sublayer[i].kind == HEED__PACKED_SELF || s->sublayer[i].kind == HEED__PACKED_CROSS;
        if (!attends || a->kind != kind || a->linear.features)
            continue;
        int64_t at = x->count++;
        for (; at > first && x->attention[at - 1]->layer > a->layer; at--)
            x->attention[at] = x->attention[at - 1];
        x->attention[at] = a;
        heads += a->form.heads;
    }
    return heads;
}

/* Maps of zeros: what a query does not see stays so. */
static heed_attention_map *new_maps(struct recording *x, const heed__weights *w, int64_t sources,
                                    int64_t targets, heed_arena *arena, int64_t *count)
{
    const int64_t most =
        (w->encoder ? w->encoder->count : 0) + (w->decoder ? w->decoder->count : 0);
    x->attention = heed_arena_allocate(arena, (size_t)most * sizeof *x->attention);
    x->map = heed_arena_allocate(arena, (size_t)most * sizeof *x->map);
    if (!x->attention || !x->map)
        return NULL;
    *count = list(x, w->encoder, HEED_ENCODER_SELF) + list(x, w->decoder, HEED_DECODER_SELF) +
             list(x, w->decoder, HEED_CROSS);
    heed_attention_map *map = heed_arena_allocate(arena, (size_t)*count * sizeof *map), *m = map;
    for (int64_t i = 0; map && i < x->count; i++) {
        const heed__packed_attention *a = x->attention[i];
        x->map[i] = m;
        for (int h = 0; h < a->form.heads; h++, m++) {
            *m = (heed_attention_map){.kind = a->kind, .layer = a->layer, .head = h};
            m->queries = a->kind == HEED_ENCODER_SELF ? sources : targets;
            m->keys = a->kind == HEED_DECODER_SELF ? targets : sources;
            const size_t bytes = (size_t)(m->queries * m->keys) * sizeof *m->weight;
            heed_real *weight = heed_arena_allocate(arena, bytes);
            if (!weight)
                return NULL;
            m->weight = memset(weight, 0, bytes);
        }
    }
    return map;
}

/* With EOS, if sources have one. */
static int64_t source_rows(const heed_engine *e, const heed_tokens *source)
{
    return source->count + (heed_engine_configuration(e)->ids.source.eos >= 0);
}

/* Of a translator both sides have their special tokens here: EOS behind the source, `start` before
 * the target.  A decoder alone reads `start` and the target, an encoder alone the source as it is.
 */
static heed_status record_pair(heed__rows *r, const heed_tokens *source, const heed_tokens *target,
                               heed_arena *arena, heed_error *err)
{
    if (!r->w->decoder) {
        heed_encoding hidden;
        return heed__rows_hidden(
            r,
            &(heed_batch_side){.rows = heed_segments_new(arena, 1, &source->count),
                               .ids = source->id},
            &(heed_encode_options){0}, &hidden, err);
    }
    int32_t *id = heed_arena_allocate(arena, ((size_t)target->count + 1) * sizeof *id);
    if (!id)
        return heed__fail(err, HEED_MEMORY, "out of memory for attention");
    id[0] = r->w->config.ids.target.start;
    memcpy(id + 1, target->id, (size_t)target->count * sizeof *id);
    const heed_extension all = {.tokens = {id, target->count + 1}};
    heed_status status = heed__rows_add(r, source, NULL, 1, err);
    return status ? status : heed__rows_extend(r, &all, 1, NULL, err);
}

static heed_status record_packed(const heed_engine *e, const heed_tokens *source,
                                 const heed_tokens *target, heed_arena *arena,
                                 const heed_attention_map **maps, int64_t *count, heed_error *err)
{
    struct recording x = {0};
    const heed__pass_recorder recorder = {&x, record};
    const heed__weights *w = e->weights;
    if (!source == !!w->encoder || !target == !!w->decoder)
        return heed__fail(err, HEED_ARGUMENT, "this model reads %s",
                          w->encoder && w->decoder ? "a source and a target"
                          : w->encoder             ? "a source alone"
                                                   : "a target alone");
    *maps = new_maps(&x, w, source ? w->decoder ? source_rows(e, source) : source->count : 0,
                     target ? target->count + 1 : 0, arena, count);
    if (!*maps)
        return heed__fail(err, HEED_MEMORY, "out of memory for attention");
    heed__rows *r = heed__rows_new(e->weights, NULL, 1, &e->allocator, err);
    if (!r)
        return HEED_MEMORY;
    x.rows = r;
    r->pass.recorder = &recorder;
    heed_status status = record_pair(r, source, target, arena, err);
    heed__rows_free(r);
    return status;
}

/* Of a model with its own layers: the tape's memory does not last, so the maps are copied. */
static heed_status record_model(const heed_engine *e, const heed_tokens *source,
                                const heed_tokens *target, heed_arena *arena,
                                const heed_attention_map **maps, int64_t *count, heed_error *err)
{
    heed_batch batch;
    const heed_attention_map *seen;
    if (!source || !target)
        return heed__fail(err, HEED_ARGUMENT,
                          "this model cannot be packed: heed_model_attention shows a side alone");
    heed_tape *t =
        heed_tape_new(&(heed_tape_options){.allocator = &e->allocator, .threads = 1}, err);
    heed_status status = t ? heed_batch_pack(arena, &heed_engine_configuration(e)->ids, source,
                                             target, 1, &batch, err)
                           : HEED_MEMORY;
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
    if (!e)
        return heed__missing(err, "engine");
    return (e->weights ? record_packed : record_model)(e, source, target, arena, maps, count, err);
}

heed_status heed__cross_weights(const heed_engine *e, const heed_tokens *source,
                                const heed_tokens *target, int layer, int head, heed_arena *arena,
                                const heed_real **weight, int64_t *ld, heed_error *err)
{
    const heed_attention_map *maps;
    int64_t count, heads = 0, size = source_rows(e, source) * (target->count + 1);
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
    *ld = source_rows(e, source);
    return HEED_OK;
}
