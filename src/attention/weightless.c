/* weightless.c: normalisers that form no weights, in layers: what they declare, what does not go
 * with them, and the operators that they are.  A row says its form (attend.h). */
#include "attention/attend.h"

#include "base/error.h"
#include "nn/init.h"
#include "nn/params.h"
#include "tensor/tape.h"

bool heed__linear_form_of(const heed_attend_options *o, heed__linear_form *form)
{
    const heed__slot_row *row = heed__row_of(HEED_SLOT_NORMALISER, heed__slot_kind(&o->normaliser));
    const heed_slot_spec full = heed__slot_complete(HEED_SLOT_NORMALISER, &o->normaliser);
    if (row->linear && form)
        *form = row->linear(&full.term[0]);
    return row->linear;
}

/* In whole sequences: those that do not go from key to key. */
static bool needs_causal(const heed__linear_form *f)
{
    return f->delta || f->gated;
}

heed_status heed__linear_check(const heed_attend_options *o, heed_error *err)
{
    const int kind = heed__slot_kind(&o->normaliser), heads = o->heads ? o->heads : 1;
    heed__linear_form f;
    const char *why = NULL;
    if (!heed__linear_form_of(o, &f))
        return HEED_OK;
    if (o->score != HEED_SCORE_SCALED_DOT && o->score != HEED_SCORE_DOT)
        why = "it replaces the scores scaled-dot and dot";
    else if (!heed__pattern_is_whole(&o->pattern))
        why = "it sums over all keys, as the pattern global has them";
    else if (heed__slot_kind(&o->position_bias) != HEED_BIAS_NONE)
        why = "there is nothing that a position bias could be added to";
    else if (heed__slot_kind(&o->queries) != HEED_QUERIES_ALL)
        why = "its queries are all";
    else if (heed__slot_kind(&o->memory) != HEED_MEMORY_STATES)
        why = "its memory is the states alone";
    else if (o->dropout > 0)
        why = "there are none to drop out";
    else if (o->single || !o->projected)
        why = "it is for layers of stacks, not for recurrent translators";
    else if (needs_causal(&f) && !o->causal)
        why = "it goes from key to key, which needs a causal layer: use elu, performer or rfa "
              "without gates";
    if (why)
        return heed__fail(err, HEED_ARGUMENT, "attention: %s forms no weights: %s",
                          heed__row_of(HEED_SLOT_NORMALISER, kind)->info.name, why);
    if (f.features == HEED_FEATURES_DPFP && f.count > 2 * o->query_d / heads)
        return heed__fail(
            err, HEED_ARGUMENT,
            "attention: NU of delta is %lld, expected at most %lld, twice the columns "
            "of a head",
            (long long)f.count, (long long)(2 * o->query_d / heads));
    return HEED_OK;
}

void heed__linear_build(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    heed__linear_form f;
    if (!heed__linear_form_of(o, &f))
        return;
    if (f.features == HEED_FEATURES_POSITIVE || f.features == HEED_FEATURES_WAVES)
        l->directions =
            heed__state_drawn(s, "directions", HEED_SHAPE(f.count, o->query_d / o->heads),
                              (heed_init){HEED_INIT_DIRECTIONS, 1});
    if (f.unit)
        l->widths =
            heed_param(s, "widths", HEED_SHAPE(o->key_d), (heed_init){HEED_INIT_CONSTANT, 1});
    if (f.gated && f.gate_bias != 0)
        l->gate_bias = heed_param(s, "gate", HEED_SHAPE(o->kv_heads),
                                  (heed_init){HEED_INIT_CONSTANT, f.gate_bias});
}

/* Those of the model, or of every `redraw` updates in training: a function of the seed and the
 * update, so that nothing more has to be saved. */
static heed_tensor *directions(heed_tape *t, const heed_attend_layer *l, int64_t redraw)
{
    heed_tensor *w = l->directions;
    if (!w || !redraw || !heed_tape_training(t) || t->key.step < (uint64_t)redraw)
        return w;
    heed_tensor *drawn = heed_input(t, w->shape, NULL);
    if (!drawn)
        return NULL;
    uint64_t node = 0;
    for (const char *c = w->name; *c; c++)
        node = node * 31 + (unsigned char)*c;
    const heed_rng rng = heed_rng_stream(
        &(heed_rng_key){.seed = t->key.seed, .step = t->key.step / (uint64_t)redraw, .node = node});
    if (heed__init_draw(drawn->data, w->rows, w->cols, (heed_init){HEED_INIT_DIRECTIONS, 1}, &rng,
                        &t->allocator))
        return heed_tape_fail(t, HEED_MEMORY, "attention: no memory for random directions");
    return drawn;
}

/* x (N,heads*Dk), each head of length 1, times the widths of the key head that it meets. */
static heed_tensor *unit_rows(heed_tape *t, const heed_attend_layer *l, heed_tensor *x, int heads)
{
    const heed_attend_options *o = &l->options;
    const int64_t d = o->key_d / o->kv_heads;
    heed_tensor *widths = heed_reshape(t, l->widths, HEED_SHAPE(1, o->key_d));
    heed_tensor *unit = heed_unit(t, x, heads, HEED__COSINE_EPS);
    if (heads == o->kv_heads)
        return heed_mul(t, unit, widths);
    heed_tensor **part = heed_arena_allocate(heed_tape_arena(t), (size_t)heads * sizeof(*part));
    if (!part)
        return heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %d heads", heads);
    for (int h = 0; h < heads; h++) {
        const int64_t kv = h / (heads / o->kv_heads);
        part[h] = heed_slice_cols(t, widths, kv * d, (kv + 1) * d);
    }
    return heed_mul(t, unit, heed_concat_cols(t, part, heads));
}

heed_tensor *heed__attend_linear(heed_tape *t, const heed_attend_layer *l,
                                 const heed__linear_form *form, heed_tensor *q,
                                 const heed_memory *m, const heed_segments *queries, bool causal)
{
    const heed_attend_options *o = &l->options;
    heed_tensor *k = m->keys, *gate = m->gate;
    if (form->gated && (!gate || m->segments != queries))
        return heed_tape_fail(t, HEED_ARGUMENT,
                              gate ? "attention: gates go from key to key: queries and keys are of "
                                     "one sequence"
                                   : "attention: the memory has no gates");
    if (form->unit) {
        q = unit_rows(t, l, q, o->heads);
        k = unit_rows(t, l, k, o->kv_heads);
    }
    if (l->gate_bias)
        gate = heed_add(t, gate, l->gate_bias);
    const heed_features features = {.kind = form->features,
                                    .count = form->count,
                                    .directions = directions(t, l, form->redraw),
                                    .unit_sum = form->unit_sum};
    if (form->delta)
        return heed_delta_attention(t, q, k, m->values, gate, m->segments,
                                    &(heed_delta_attention_options){.heads = o->heads,
                                                                    .kv_heads = o->kv_heads,
                                                                    .features = features});
    return heed_linear_attention(
        t, q, k, m->values, queries, m->segments,
        &(heed_linear_attention_options){.heads = o->heads,
                                         .kv_heads = o->kv_heads,
                                         .causal = causal,
                                         .features = features,
                                         .gate = form->gated ? gate : NULL});
}
