/* attend.c: attention put together from its slots.
 *
 *   keys = keys(memory)                          once for any number of queries
 *   pattern -> score(query(q), keys) -> softmax [-> gate, or one key] -> mixture of the values
 *
 * q (N,query_d), keys and values (M,...) -> (N,H*Dv).  Where every query sees every key, the score
 * is a product and all that is wanted are the mixture and the weights, one operator does it all; it
 * packs keys and values first, which is for nothing if a segment has but one query.  Which way is
 * taken depends on the layer alone, so that other sentences change no bit of a sentence's answer.
 * Refuses combinations in build (registry.c). */
#include "attention/attend.h"

#include "base/error.h"
#include "base/min_max.h"
#include "nn/params.h"
#include <math.h>

void heed_attend_build(heed_attend_layer *l, heed_scope s, const heed_attend_options *options)
{
    if (!l)
        return;
    heed_error err = {0};
    *l = (heed_attend_layer){.options = *options};
    if (heed__attend_check(options, &err)) {
        heed__scope_fail(s, err.status, "%s", err.text);
        l->options = (heed_attend_options){.heads = 1, .kv_heads = 1};
        return;
    }
    heed_attend_options *o = &l->options;
    o->heads = o->heads ? o->heads : 1;
    o->kv_heads = o->kv_heads ? o->kv_heads : o->heads;
    o->d = o->d ? o->d : o->key_d;
    o->queries = heed__slot_complete(HEED_SLOT_QUERIES, &o->queries);
    o->memory = heed__slot_complete(HEED_SLOT_MEMORY, &o->memory);
    o->pattern = heed__slot_complete(HEED_SLOT_PATTERN, &o->pattern);
    o->position_bias = heed__slot_complete(HEED_SLOT_BIAS, &o->position_bias);
    o->normaliser = heed__slot_complete(HEED_SLOT_NORMALISER, &o->normaliser);
    o->deviation = o->deviation > 0 ? o->deviation : (double)o->pattern.term[0].number[0] / 2;
    if (heed__score_of(l)->build)
        heed__score_of(l)->build(l, s);
    heed__local_p_build(l, s);
    heed__bias_build(l, s);
    heed__span_build(l, s);
    heed__content_build(l, s);
    const heed__memory_form *form = heed__memory_form_of(o);
    if (heed__sublayer_row(o))
        heed__scope_fail(s, HEED_ARGUMENT,
                         "attention: %s is a sublayer of its own, no part of another",
                         heed__sublayer_row(o)->sublayer);
    else if (form)
        form->build(l, s);
    heed__linear_build(l, s);
}

heed_memory heed_attend_memory(heed_tape *t, const heed_attend_layer *l, heed_tensor *states,
                               heed_tensor *values, const heed_segments *segments)
{
    if (!t)
        return (heed_memory){0};
    const heed__score *score = heed__score_of(l);
    return (heed_memory){.keys = score->keys ? score->keys(t, l, states) : states,
                         .values = values,
                         .segments = segments};
}

/* A pattern over a memory of which each key stands for `by` positions. */
struct blocks {
    heed_attend_options options;
    int64_t by;
};

static int ranges_of_blocks(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                            heed_key_range *out)
{
    const struct blocks *b = context;
    const bool causal = b->options.causal;
    const int64_t block = causal ? heed__max(0, (i + 1) / b->by - 1) : i / b->by;
    const heed__pattern_query q = {.layer = b->options.layer,
                                   .head = head,
                                   .i = block,
                                   .queries = queries / b->by + 1,
                                   .keys = keys,
                                   .causal = causal};
    return heed__pattern_ranges(&b->options.pattern, &q, out);
}

/* The layer's pattern, or that of the spans as they are now, or one of blocks; neither ranges nor
 * list: all keys.  False after an error of the tape. */
static bool pattern_of(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                       const heed_memory *m, const heed_segments *queries, bool causal, int64_t by,
                       heed_key_pattern *p)
{
    const heed_attend_options *o = &l->options;
    *p = (heed_key_pattern){0};
    if (!l->span && heed__pattern_is_whole(&o->pattern))
        return true;
    if (heed__content_of(&o->pattern))
        return heed__content_choose(t, l, q, m, queries, causal, p);
    *p = heed__key_pattern(o, m->segments->longest);
    if (!l->span && by == 1)
        return true;
    struct blocks *b = heed_arena_allocate(heed_tape_arena(t), sizeof *b);
    if (!b) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for a pattern");
        return false;
    }
    *b = (struct blocks){*o, by};
    if (l->span) {
        b->options.pattern = heed__span_pattern(o, heed__span_reach(o, heed_tensor_data(l->span)));
        *p = heed__key_pattern(&b->options, m->segments->longest);
    } else {
        p->ranges = ranges_of_blocks;
        p->context = b;
    }
    return true;
}

/* Score, softmax and mixture at once. */
static heed_tensor *attend_fused(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                 const heed_memory *memory, bool causal, const heed_pairs *p,
                                 const heed_attend_extra *extra)
{
    const heed_attend_options *o = &l->options;
    const heed__score *score = heed__score_of(l);
    const heed__memory_form *form = heed__memory_form_of(o);
    heed_memory m = *memory;
    heed__compressed compressed = {.by = 1};
    const heed__content *content = heed__content_of(&o->pattern);
    heed_key_pattern pattern;
    if (content && content->shares_keys)
        m.keys = heed_unit(t, q, o->heads, HEED__COSINE_EPS);
    if (form && form->compress && !form->compress(t, l, &m, p->queries, causal, &compressed))
        return NULL;
    if (!pattern_of(t, l, q, &m, p->queries, causal, compressed.by, &pattern))
        return NULL;
    return heed_attention(
        t, q, m.keys, m.values, p->queries, m.segments,
        &(heed_attention_options){
            .heads = p->heads,
            .kv_heads = o->kv_heads,
            .causal = causal && !(form && form->compress),
            .scale = score->scaled ? 0 : 1,
            .dropout = o->dropout,
            .pattern = pattern.ranges || pattern.list ? &pattern : NULL,
            .visible = compressed.visible,
            .bias = extra->bias,
            .distance_bias = heed__bias_by_distance(
                t, l, causal, heed__max(p->queries->longest, p->keys->longest)),
            .shared_k = l->shared_k && score->keys ? score->keys(t, l, l->shared_k) : l->shared_k,
            .shared_v = l->shared_v,
            .probabilities = extra->weights,
            .counts = extra->counts});
}

/* Where not all queries look for themselves. */
static heed_tensor *attend_for_some(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                    const heed_memory *memory, const heed_segments *queries,
                                    bool causal, const heed_attend_extra *extra)
{
    const heed_attend_options *o = &l->options;
    if (!memory->values || extra->log_weights || extra->bias || extra->place)
        return heed_tape_fail(
            t, HEED_ARGUMENT,
            "attention: %s gives the mixture of values alone, without weights, "
            "biases or places",
            heed__row_of(HEED_SLOT_QUERIES, heed__slot_kind(&o->queries))->info.name);
    return heed__queries_form_of(o)->answer(
        t, l, q, memory, queries, causal,
        &(heed_attention_options){.heads = o->heads,
                                  .kv_heads = o->kv_heads,
                                  .scale = heed__score_of(l)->scaled ? 0 : 1,
                                  .dropout = o->dropout,
                                  .counts = extra->counts});
}

/* Weights (flat) from scores. */
static heed_tensor *weigh(heed_tape *t, const heed_attend_layer *l, heed_tensor *scores,
                          heed_tensor *gate, const heed_pairs *p, const heed_attend_extra *extra)
{
    heed_tensor *logs, *weights;
    const bool hard = heed__slot_kind(&l->options.normaliser) == HEED_NORMALISE_HARD;
    weights = heed_pairs_softmax(t, scores, p, hard || extra->log_weights ? &logs : NULL);
    if (extra->log_weights)
        *extra->log_weights = logs;
    if (hard)
        weights = heed_pairs_choose(t, logs, heed_tape_training(t), p, extra->chosen_log_p,
                                    extra->chosen);
    if (gate)
        weights = heed_mul(t, weights, gate);
    if (extra->weights)
        *extra->weights = weights;
    return weights;
}

/* gate, what weights are multiplied with; mask, what is added to scores: both or either NULL. */
static heed_tensor *attend_by_parts(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                    const heed_memory *m, heed_tensor *gate, heed_tensor *mask,
                                    const heed_pairs *p, const heed_attend_extra *extra)
{
    const heed__score *score = heed__score_of(l);
    if (extra->bias)
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "attention: a bias needs a score that is a product, over all keys");
    if (extra->log_weights && !heed__pattern_is_fixed(&l->options.pattern))
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "attention: the weights of local-p do not sum to 1 and have no "
                              "log-weights");
    const double root = heed_tensor_cols(q) / (double)p->heads;
    heed_tensor *scores =
        score->scores ? score->scores(t, l, q, m->keys, p)
                      : heed_pairs_dot(t, q, m->keys, score->scaled ? 1 / sqrt(root) : 1, p);
    scores = mask ? heed_add(t, scores, mask) : scores;
    heed_tensor *weights = weigh(t, l, scores, gate, p, extra);
    if (!m->values)
        return weights;
    return heed_pairs_mix(t, heed_dropout(t, weights, l->options.dropout), m->values, p);
}

heed_tensor *heed_attend(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                         const heed_memory *memory, const heed_segments *queries,
                         const heed_attend_extra *extra)
{
    if (!t)
        return NULL;
    static const heed_attend_extra none = {0};
    const heed_attend_options *o = &l->options;
    const heed__score *score = heed__score_of(l);
    extra = extra ? extra : &none;
    if (extra->weights)
        *extra->weights = NULL;
    if (extra->log_weights)
        *extra->log_weights = NULL;
    if (extra->chosen_log_p)
        *extra->chosen_log_p = NULL;
    if (!q || !memory->keys || heed_tape_error(t)->status)
        return NULL;
    if (!queries || !memory->segments)
        return heed_tape_fail(t, HEED_ARGUMENT, "attention: segments of the %s are NULL",
                              queries ? "keys" : "queries");
    heed_pairs p = {.queries = queries, .keys = memory->segments, .heads = o->heads};
    const bool causal = o->causal && !extra->all_past;
    heed__linear_form linear;
    if (heed__linear_form_of(o, &linear))
        return heed__attend_linear(t, l, &linear, q, memory, queries, causal);
    heed_tensor *gate, *mask, *asked = score->query ? score->query(t, l, q, &p) : q;
    if (heed__queries_form_of(o))
        return asked ? attend_for_some(t, l, asked, memory, queries, causal, extra) : NULL;
    if (!o->single && heed__attend_can(o) & HEED_CAN_FUSED && memory->values &&
        !extra->log_weights && (!extra->place || heed__pattern_is_whole(&o->pattern)))
        return attend_fused(t, l, asked, memory, causal, &p, extra);
    if (heed__content_of(&o->pattern))
        return heed_tape_fail(
            t, HEED_ARGUMENT,
            "attention: what a pattern by content sees is mixed at once: it needs "
            "values, and has no log-weights");
    if (!heed__pattern_windows(t, l, q, extra->place, &p, &gate, &mask))
        return NULL;
    return attend_by_parts(t, l, asked, memory, gate, mask, &p, extra);
}
