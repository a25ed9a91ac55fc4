/* packed_weights.c: the stacks of a model as decoding reads them, out of memory or a file.
 *
 * The packer walks the list of sublayers that training walks: a sublayer's own parts say which
 * parameter stands where, its `can` whether it decodes token by token.  No architecture is named.
 */
#include "engine/packed_weights.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/min_max.h"
#include "engine/fold_score.h"
#include "engine/weight_source.h"
#include "kernel/delta_head.h"
#include "kernel/linear_head.h"
#include "kernel/rotary_rows.h"
#include "kernel/span_mask.h"
#include "kernel/unit_row.h"
#include "text/special_ids.h"

#include <math.h>
#include <string.h>

/* Assumed L3 share of a core, in bytes.  Virtual machines do not know theirs. */
#define L3_SHARE ((int64_t)32 << 20)

static heed__panel_weights linear(heed__weight_source *s, const heed_linear_layer *l)
{
    return heed__source_matrix(s, l->weight, false, l->bias, l->activation);
}

/* ---- norms ---- */

/* gain (x - mean) rstd + bias = x a + b. */
static void fold_statistics(const heed__weight_source *s, const heed_norm_layer *l, heed_real *gain,
                            heed_real *bias, int64_t d)
{
    const heed_real *mean = heed__source_copy(s, l->running_mean);
    const heed_real *variance = heed__source_copy(s, l->running_variance);
    for (int64_t j = 0; gain && bias && mean && variance && j < d; j++) {
        gain[j] = (heed_real)((double)gain[j] / sqrt((double)variance[j] + l->eps));
        bias[j] -= mean[j] * gain[j];
    }
}

static heed__row_norm norm(const heed__weight_source *s, const heed_norm_layer *l)
{
    if (!l->gain || s->err->status)
        return (heed__row_norm){0};
    const int64_t d = heed_tensor_count(l->gain);
    heed_real *gain = heed__source_copy(s, l->gain), *bias = heed__source_copy(s, l->bias);
    const bool batch = l->kind == HEED_NORM_BATCH;
    if (batch)
        fold_statistics(s, l, gain, bias, d);
    return (heed__row_norm){.d = d,
                            .gain = gain,
                            .bias = bias,
                            .eps = l->eps,
                            .centred = l->kind == HEED_NORM_LAYER,
                            .fixed = batch};
}

/* ---- sublayers ---- */

static bool slots_fit(const heed_mha_layer *l)
{
    const heed_attend_options *o = &l->attend.options;
    /* Queries that are turned before the score's matrix cannot have it folded in. */
    const bool folds =
        o->score == HEED_SCORE_GENERAL && !heed_positions_are_rotary(l->options.positions);
    return (o->score == HEED_SCORE_SCALED_DOT || o->score == HEED_SCORE_DOT ||
            o->score == HEED_SCORE_COSINE || folds) &&
           (heed__attend_can(o) & HEED_CAN_FUSED || heed__linear_form_of(o, NULL)) &&
           !heed__queries_form_of(o) && !heed__content_of(&o->pattern) &&
           !(heed__memory_form_of(o) && heed__memory_form_of(o)->compress);
}

static bool stack_fits(const heed_stack *s, bool decodes)
{
    for (int i = 0; s && i < s->count; i++) {
        const heed_sublayer *one = &s->sublayer[i];
        if (decodes && !(one->kind->can(one) & HEED_CAN_CACHE))
            return false;
        if (one->kind->form == HEED_SUBLAYER_OWN)
            return false;
        if (one->kind->form == HEED_SUBLAYER_MHA && !slots_fit(&one->as.mha))
            return false;
    }
    return true;
}

/* What the products of queries and keys are multiplied with. */
static heed_real score_scale(const heed__weight_source *s, const heed_attend_layer *l, int64_t d_k)
{
    if (l->options.score == HEED_SCORE_SCALED_DOT)
        return (heed_real)(1 / sqrt((double)d_k));
    if (l->options.score == HEED_SCORE_DOT || l->options.score == HEED_SCORE_GENERAL)
        return 1;
    if (!l->beta)
        return (heed_real)l->options.beta;
    const heed_real *beta = heed__source_copy(s, l->beta);
    return beta ? (heed_real)log1p(exp((double)*beta)) : 0;
}

/* The number of the angles that this attention has, listed once; -1: none. */
static int pack_rotary(heed__weights *w, const heed_mha_options *o)
{
    const heed__packed_rotary wanted = {
        .d = o->d_k,
        .base = o->rotary_base != 0 ? o->rotary_base : HEED__ROTARY_BASE,
        .neighbours = o->positions == HEED_POSITIONS_ROTARY_NEIGHBOURS};
    int i = 0;
    if (!heed_positions_are_rotary(o->positions))
        return -1;
    while (i < w->rotaries && (w->rotary[i].d != wanted.d || w->rotary[i].base != wanted.base ||
                               w->rotary[i].neighbours != wanted.neighbours))
        i++;
    if (i == w->rotaries)
        w->rotary[w->rotaries++] = wanted;
    return i;
}

/* Spans as they have been learned: a table, and a pattern that reaches as far as the longest. */
static void pack_spans(heed__weight_source *s, heed__packed_attention *to,
                       const heed_attend_layer *l)
{
    const heed_attend_options *o = &l->options;
    const heed_span_options span = heed__span_options(o, o->causal);
    const heed_real *share = heed__source_copy(s, l->span);
    const int64_t columns = heed__span_columns(span.most, span.ramp, span.causal);
    heed_real *bias = share ? heed__source_take(s, o->heads * columns, sizeof *bias) : NULL;
    for (int h = 0; bias && h < o->heads; h++)
        heed__span_mask(bias + h * columns, (double)share[h], span.most, span.ramp, span.causal);
    to->form.bias = bias;
    to->form.columns = columns;
    if (bias)
        to->pattern = heed__span_pattern(o, heed__span_reach(o, share));
}

/* ALiBi's slopes, or the table of biases by distance. */
static void pack_bias(heed__weight_source *s, heed__packed_attention *to,
                      const heed_attend_layer *l)
{
    const heed_attend_options *o = &l->options;
    heed__attend_form *form = &to->form;
    if (l->span)
        pack_spans(s, to, l);
    if (l->distance) {
        form->bias = heed__source_copy(s, l->distance);
        form->columns = heed_tensor_cols(l->distance);
    }
    if (heed__slot_kind(&o->position_bias) != HEED_BIAS_ALIBI)
        return;
    heed_real *slope = heed__source_take(s, o->heads, sizeof *slope);
    for (int h = 0; slope && h < o->heads; h++)
        slope[h] = (heed_real)heed__alibi_slope(h, o->heads);
    form->slope = slope;
}

/* Keys and values that every query sees, each key with its value behind it, as in a cell. */
static void pack_shared(heed__weight_source *s, heed__packed_attention *to,
                        const heed_attend_layer *l)
{
    if (!l->shared_k)
        return;
    const int64_t n = heed_tensor_rows(l->shared_k), k = heed_tensor_cols(l->shared_k);
    const int64_t v = heed_tensor_cols(l->shared_v);
    const heed_real *keys = heed__source_copy(s, l->shared_k);
    const heed_real *values = heed__source_copy(s, l->shared_v);
    heed_real *both = heed__source_take(s, n * (k + v), sizeof *both);
    for (int64_t i = 0; keys && values && both && i < n; i++) {
        heed_real *key = both + i * (k + v);
        memcpy(key, keys + i * k, (size_t)k * sizeof *both);
        memcpy(key + k, values + i * v, (size_t)v * sizeof *both);
        for (int64_t h = 0; to->cosine && h < to->form.kv_heads; h++)
            heed__make_unit(key + h * to->form.d_k, key + h * to->form.d_k,
                            (heed_real)HEED__COSINE_EPS, to->form.d_k);
    }
    to->shared = both;
    to->shared_rows = n;
}

/* phi of each key head; the widths of its elements are multiplied into its directions. */
static heed__features *pack_features(heed__weight_source *s, const heed_attend_layer *l,
                                     const heed__linear_form *form)
{
    const heed_attend_options *o = &l->options;
    const int64_t d = o->query_d / o->heads;
    heed__features *f = heed__source_take(s, o->kv_heads, sizeof *f);
    const heed_real *w = heed__source_copy(s, l->directions);
    const heed_real *widths = heed__source_copy(s, l->widths);
    for (int h = 0; f && h < o->kv_heads; h++) {
        f[h] = (heed__features){.kind = (int)form->features,
                                .d = d,
                                .count = form->count,
                                .direction = w,
                                .unit_sum = form->unit_sum};
        heed_real *own = widths ? heed__source_take(s, form->count * d, sizeof *own) : NULL;
        for (int64_t i = 0; w && own && i < form->count * d; i++)
            own[i] = w[i] * widths[h * d + i % d];
        f[h].direction = widths ? own : w;
    }
    return f;
}

static void pack_linear(heed__weight_source *s, heed__packed_attention *to,
                        const heed_attend_layer *l)
{
    const heed__attend_form *f = &to->form;
    heed__linear_form form;
    if (!heed__linear_form_of(&l->options, &form))
        return;
    const heed__features *features = pack_features(s, l, &form);
    if (!features)
        return;
    to->linear = (heed__packed_linear){.features = features,
                                       .eps = (heed_real)heed__linear_eps((int)form.features),
                                       .floor = form.features == HEED_FEATURES_WAVES,
                                       .delta = form.delta,
                                       .unit = form.unit,
                                       .gate_bias = heed__source_copy(s, l->gate_bias)};
    if (form.gated)
        to->linear.gate = f->heads * f->d_k + f->kv_heads * (f->d_k + f->d_v);
    to->linear.state =
        form.delta ? heed__delta_state(features, f->d_v) : heed__linear_state(features, f->d_v);
}

/* Where a token's keys and values lie, or a row's state, and how long they are needed. */
static void place_cell(heed__packed_stack *stack, heed__packed_attention *to, bool cross)
{
    const heed__attend_form *f = &to->form;
    int64_t *cell = cross                 ? &stack->memory_cell
                    : to->linear.features ? &stack->state_cell
                                          : &stack->own_cell;
    to->cached = f->kv_heads * (to->linear.features ? to->linear.state : f->d_k + f->d_v);
    to->at = *cell;
    *cell += to->cached;
    if (cross || to->linear.features)
        return;
    int64_t pinned = 0;
    stack->reach = heed__max(stack->reach, heed__pattern_reach(&to->pattern, &pinned));
    stack->pinned = heed__max(stack->pinned, pinned);
}

static void pack_attention(heed__weight_source *s, heed__weights *w, heed__packed_stack *stack,
                           heed__packed_attention *to, const heed_mha_layer *l)
{
    const heed_mha_options *o = &l->options;
    to->kind = o->cross ? HEED_CROSS : o->causal ? HEED_DECODER_SELF : HEED_ENCODER_SELF;
    to->causal = o->causal;
    to->cosine = o->score == HEED_SCORE_COSINE;
    to->rotary = pack_rotary(w, o);
    to->form = (heed__attend_form){.heads = o->heads,
                                   .kv_heads = o->kv_heads,
                                   .d_k = o->d_k,
                                   .d_v = o->d_v,
                                   .value = o->kv_heads * o->d_k,
                                   .scale = score_scale(s, &l->attend, o->d_k)};
    to->in = heed__pack_queries(s, l);
    if (o->cross)
        to->kv = linear(s, &l->kv);
    to->out = linear(s, &l->out);
    to->pattern = l->attend.options.pattern;
    to->by_head = heed__pattern_by_head(&to->pattern);
    pack_linear(s, to, &l->attend);
    pack_bias(s, to, &l->attend);
    place_cell(stack, to, o->cross);
    pack_shared(s, to, &l->attend);
    to->plain =
        heed__pattern_is_whole(&to->pattern) && !to->form.slope && !to->form.bias && !to->shared;
}

static void pack_ssru(heed__weight_source *s, heed__packed_stack *stack, heed__packed_ssru *to,
                      const heed_ssru_layer *l)
{
    const heed_linear_layer forget = {.weight = l->forget.weight};
    to->in = linear(s, &l->in);
    to->forget = linear(s, &forget);
    to->bias = heed__source_copy(s, l->forget.bias);
    to->at = stack->state_cell;
    stack->state_cell += stack->d;
}

static void pack_sublayer(heed__weight_source *s, heed__weights *w, heed__packed_stack *stack,
                          heed__packed_sublayer *to, const heed_sublayer *from)
{
    *to = (heed__packed_sublayer){.place = from->around.options.place,
                                  .residual = from->around.options.residual,
                                  .norm = norm(s, &from->around.norm)};
    if (from->kind->form == HEED_SUBLAYER_FFN) {
        const heed_ffn_layer *l = &from->as.ffn;
        to->kind = HEED__PACKED_FFN;
        to->as.ffn = (heed__packed_ffn){.in = linear(s, &l->in),
                                        .out = linear(s, &l->out),
                                        .gated = l->options.gated,
                                        .activation = (int)l->options.activation};
    } else if (from->kind->form == HEED_SUBLAYER_SSRU) {
        to->kind = HEED__PACKED_SSRU;
        pack_ssru(s, stack, &to->as.ssru, &from->as.ssru);
    } else {
        to->kind = from->as.mha.options.cross ? HEED__PACKED_CROSS : HEED__PACKED_SELF;
        to->as.attention.layer = from->layer;
        pack_attention(s, w, stack, &to->as.attention, &from->as.mha);
    }
}

/* ---- stacks ---- */

/* What two layers share is packed once. */
struct tables {
    const heed_tensor *tensor[3];
    heed__panel_weights packed[3];
    int count;
    const heed_tensor *positions; /* of the first stack */
    const heed_real *learned;
};

static heed__panel_weights table(heed__weight_source *s, struct tables *t, const heed_tensor *x)
{
    for (int i = 0; i < t->count; i++)
        if (t->tensor[i] == x)
            return t->packed[i];
    t->tensor[t->count] = x;
    return t->packed[t->count++] = heed__source_matrix(s, x, true, NULL, HEED_IDENTITY);
}

static heed__packed_input pack_input(heed__weight_source *s, struct tables *t,
                                     const heed_input_layer *l)
{
    const heed_embedding_layer *e = &l->embedding;
    heed__packed_input to = {.positions = e->kind,
                             .scale = (heed_real)(e->scale != 0 ? e->scale : 1)};
    if (e->table)
        to.table = table(s, t, e->table);
    else
        to.features = linear(s, &l->features);
    if (e->kind == HEED_POSITIONS_LEARNED && e->positions != t->positions) {
        t->positions = e->positions;
        t->learned = heed__source_copy(s, e->positions);
    }
    to.learned = e->kind == HEED_POSITIONS_LEARNED ? t->learned : NULL;
    if (l->types) {
        to.types = heed__source_copy(s, l->types);
        to.type_count = heed_tensor_rows(l->types);
    }
    to.norm = norm(s, &l->norm);
    to.zero_start = l->zero_start;
    return to;
}

static heed__packed_stack *pack_stack(heed__weight_source *s, heed__weights *w, struct tables *t,
                                      const heed_stack *from)
{
    if (!from || s->err->status)
        return NULL;
    heed__packed_stack *to = heed__source_take(s, 1, sizeof *to);
    heed__packed_sublayer *sublayer = heed__source_take(s, from->count, sizeof *sublayer);
    if (!to || !sublayer)
        return NULL;
    *to = (heed__packed_stack){.d = from->d, .sublayer = sublayer, .count = from->count};
    to->input = pack_input(s, t, &from->input);
    for (int i = 0; i < from->count && !s->err->status; i++)
        pack_sublayer(s, w, to, &sublayer[i], &from->sublayer[i]);
    to->norm = norm(s, &from->norm);
    return to;
}

/* How wide the rows of a pass may be. */
static void measure(heed__weights *w, const heed__packed_stack *stack)
{
    if (!stack)
        return;
    w->d = heed__max(w->d, stack->d);
    w->reads = heed__max(heed__max(w->reads, stack->d), stack->input.features.k);
    for (int i = 0; i < stack->count; i++) {
        const heed__packed_sublayer *one = &stack->sublayer[i];
        if (one->kind == HEED__PACKED_FFN) {
            w->widest = heed__max(w->widest, one->as.ffn.in.n);
            w->reads = heed__max(w->reads, one->as.ffn.out.k);
            if (one->as.ffn.gated)
                w->mixed = heed__max(w->mixed, one->as.ffn.out.k);
            continue;
        }
        if (one->kind == HEED__PACKED_SSRU) {
            w->widest = heed__max(w->widest, 2 * stack->d);
            w->state = heed__max(w->state, stack->d);
            continue;
        }
        const heed__packed_attention *a = &one->as.attention;
        w->widest = heed__max(heed__max(w->widest, a->in.n), a->kv.n);
        w->mixed = heed__max(w->mixed, a->out.k);
        w->reads = heed__max(heed__max(w->reads, a->out.k), a->kv.k);
        w->heads = heed__max(w->heads, a->form.heads);
        w->shared = heed__max(w->shared, a->shared_rows);
        if (!a->linear.features)
            continue;
        w->state = heed__max(w->state, a->cached);
        w->room = heed__max(w->room, heed__feature_room(a->linear.features) + a->form.d_v);
    }
}

static void pack_head(heed__weight_source *s, struct tables *t, heed__weights *w,
                      const heed_head_layer *l)
{
    if (l->table) {
        w->output = table(s, t, l->table);
        w->output.bias = heed__source_copy(s, l->bias);
    }
    if (!l->transform.weight || s->err->status)
        return;
    w->transform = linear(s, &l->transform);
    w->head_norm = norm(s, &l->norm);
}

/* ---- the whole ---- */

bool heed__weights_fit(const heed_model *m)
{
    const heed_stack *encoder = heed__model_stack(m, HEED_SOURCE),
                     *decoder = heed__model_stack(m, HEED_TARGET);
    return (encoder || decoder) && stack_fits(encoder, false) && stack_fits(decoder, true);
}

static void pack(heed__weight_source *s, heed__weights *w, const heed_model *m)
{
    struct tables tables = {.count = 0};
    w->config = m->config;
    const heed_stack *encoder = heed__model_stack(m, HEED_SOURCE),
                     *decoder = heed__model_stack(m, HEED_TARGET);
    const int64_t most = (encoder ? encoder->count : 0) + (decoder ? decoder->count : 0);
    w->rotary = heed__source_take(s, most, sizeof *w->rotary);
    w->encoder = pack_stack(s, w, &tables, encoder);
    w->decoder = pack_stack(s, w, &tables, decoder);
    if (!s->err->status)
        pack_head(s, &tables, w, &m->head);
    if (s->err->status)
        return;
    measure(w, w->encoder);
    measure(w, w->decoder);
}

bool heed__weights_set_always(heed__weights *w, const int32_t *token, int64_t count)
{
    int32_t *panel = heed_arena_allocate(w->arena, (size_t)count * sizeof *panel);
    int64_t n = 0;
    for (int64_t i = 0; panel && i < count; i++) { /* by insertion: there are few */
        const int32_t added = token[i] / HEED_PANEL;
        int64_t at = n;
        while (at > 0 && panel[at - 1] > added)
            at--;
        if (token[i] < 0 || token[i] >= w->output.n || (at > 0 && panel[at - 1] == added))
            continue;
        memmove(panel + at + 1, panel + at, (size_t)(n++ - at) * sizeof *panel);
        panel[at] = added;
    }
    w->always = panel;
    w->always_count = n;
    return panel;
}

/* The tokens that are not text. */
static bool set_special(heed__weights *w)
{
    const heed_special_ids *ids = &w->config.ids.target;
    int32_t token[HEED__SPECIAL_IDS + HEED_PLACEHOLDERS];
    int64_t n = heed__ids_list(ids, token);
    for (int32_t i = 0; i < ids->placeholders && i < HEED_PLACEHOLDERS; i++)
        token[n++] = ids->placeholder + i;
    return heed__weights_set_always(w, token, n);
}

static void add_screen(heed__weights *w, const heed_allocator *allocator, heed_error *err)
{
    if (!w->decoder || !heed__screen_pays(&w->output))
        return;
    w->screen = heed__screen_new(&w->output, w->arena, allocator);
    if (!w->screen || !set_special(w))
        heed__fail(err, HEED_MEMORY, "out of memory for a model's weights");
}

/* Whether the values, gone through for every token, have left the last cache by then. */
static bool exceeds_cache(const heed_model *m)
{
    return heed_params_trainable(heed_model_params(m)) > L3_SHARE / (int64_t)sizeof(heed_real);
}

/* path NULL: of a model in memory. */
static heed__weights *make(const heed_model *m, const char *path, int bits,
                           const heed__given_int8 *given, const heed_allocator *allocator,
                           heed_error *err)
{
    heed_error own = {0}; /* the status must be known even when the caller wants no text */
    heed_arena *arena = heed_arena_new(allocator, &own);
    heed__weights *w = arena ? heed_arena_allocate(arena, sizeof *w) : NULL;
    if (!w) {
        heed_arena_free(arena);
        heed__fail(err, HEED_MEMORY, "out of memory for a model's weights");
        return NULL;
    }
    *w = (heed__weights){.arena = arena};
    heed__weight_source s = {.path = path,
                             .bits = bits,
                             .arena = arena,
                             .from_memory = exceeds_cache(m),
                             .given = given,
                             .err = &own};
    s.passing = heed_arena_new(allocator, &own);
    if (path && s.passing)
        w->file = s.file = heed_safetensors_open(path, allocator, &own);
    if (!own.status && (!path || !heed__source_bits(&s)))
        pack(&s, w, m);
    w->bits = s.mixed ? 8 : s.bits;
    heed_arena_free(s.passing);
    if (!own.status)
        add_screen(w, allocator, &own);
    if (!own.status)
        return w;
    heed__weights_free(w);
    heed__fail(err, own.status, "%s", own.text);
    return NULL;
}

heed__weights *heed__weights_of(const heed_model *m, int bits, const heed_allocator *allocator,
                                heed_error *err)
{
    return make(m, NULL, bits, NULL, allocator, err);
}

heed__weights *heed__weights_given(const heed_model *m, const heed__given_int8 *given,
                                   const heed_allocator *allocator, heed_error *err)
{
    return make(m, NULL, 0, given, allocator, err);
}

heed__weights *heed__weights_open(const heed_model *m, const char *path,
                                  const heed_allocator *allocator, heed_error *err)
{
    heed__weights *w = make(m, path, 0, NULL, allocator, err);
    if (w && !w->bits) { /* all of it was packed */
        heed_safetensors_close(w->file);
        w->file = NULL;
    }
    return w;
}

heed_status heed__weights_read(heed_model *m, const char *path, heed_error *err)
{
    heed_error own = {0};
    heed_params *params = heed_model_params(m);
    heed__weight_source s = {.path = path, .err = &own};
    s.passing = heed_arena_new(NULL, &own);
    s.file = s.passing ? heed_safetensors_open(path, NULL, &own) : NULL;
    if (s.file && !heed__source_bits(&s) && !s.bits)
        heed_params_load(params, path, &own);
    for (int i = 0; s.bits && !own.status && i < heed_params_count(params); i++) {
        const heed_param_info info = heed_params_entry(params, i);
        if (info.role == HEED_ROLE_PLAIN)
            heed__source_read(&s, info.tensor);
        else
            heed__source_unpack(&s, info.tensor, info.role == HEED_ROLE_TABLE);
    }
    heed_safetensors_close(s.file);
    heed_arena_free(s.passing);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

void heed__weights_free(heed__weights *w)
{
    if (!w)
        return;
    heed__screen_free(w->screen);
    heed_safetensors_close(w->file);
    heed_arena_free(w->arena);
}
