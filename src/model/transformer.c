/* transformer.c: "Attention Is All You Need" (Vaswani et al. 2017), section by section: two stacks
 * put together.
 *
 * Source (M) and target (N) tokens -> hidden states (N,D).  Shapes and letters as in tensor.h; both
 * sides are packed, so there is no padding to mask: a segment is what may be attended to.
 * Beyond the paper, by choice: pre-norm with final norms, RMS and batch norm, learned positions,
 * dropout on attention probabilities and inside the feed-forward network, attention biases, less
 * tying, shared heads of keys and values.  Any score of src/attention; in self-attention also any
 * pattern, bias by position, memory and normaliser that stacks can have.  Residuals and 1/sqrt(d_k)
 * can be left out to see what they are for.  Batch norm is of that kind in a decoder: in training
 * its statistics see later tokens; decoding uses the running ones.
 */
#include "model/transformer.h"
#include "model/sublayers.h"

#include <math.h>

struct transformer {
    heed_stack encoder, decoder;
};

/* ---- 3.1 Encoder and decoder stacks ---- */

/* "The output of each sub-layer is LayerNorm(x + Sublayer(x))", with dropout on Sublayer(x) (5.4);
 * pre-norm: x + Sublayer(LayerNorm(x)). */
static heed_around_options around(const heed_model_config *c)
{
    const heed_transformer_config *o = &c->transformer;
    return (heed_around_options){.place = o->pre_norm ? HEED_NORM_BEFORE : HEED_NORM_AFTER,
                                 .norm = (heed_norm_kind)o->norm,
                                 .eps = o->norm_eps,
                                 .residual = o->residual,
                                 .dropout = c->dropout};
}

/* 3.2.1: the scale can be left out, and so the products be others. */
static int score_of(const heed_model_config *c)
{
    const bool scaled = c->attention.score == HEED_SCORE_SCALED_DOT;
    return scaled && !c->transformer.scale_scores ? HEED_SCORE_DOT : c->attention.score;
}

heed_slot_spec heed__position_bias(const heed_model_config *c)
{
    const heed_slot_spec span = HEED_ONE(HEED_BIAS_SPAN, {c->attention.adaptive_span});
    return c->attention.adaptive_span ? span : c->attention.position_bias;
}

/* 3.2.2 Multi-head attention, 3.3 Position-wise feed-forward networks: what they are made of. */
static heed_sublayer_options sublayer(const heed_model_config *c, int layer, bool causal)
{
    const heed_transformer_config *o = &c->transformer;
    return (heed_sublayer_options){.layer = layer,
                                   .mha = {.heads = (int)o->heads,
                                           .kv_heads = (int)o->kv_heads,
                                           .d_k = o->d_k,
                                           .d_v = o->d_v,
                                           .causal = causal,
                                           .bias = o->attention_bias,
                                           .score = score_of(c),
                                           .queries = c->attention.queries,
                                           .memory = c->attention.memory,
                                           .pattern = c->attention.pattern,
                                           .position_bias = heed__position_bias(c),
                                           .span_penalty = c->attention.span_penalty,
                                           .normaliser = c->attention.normaliser,
                                           .beta = c->attention.beta,
                                           .longest = c->longest,
                                           .dropout = c->attention.dropout,
                                           .positions = (heed_positions)o->positions,
                                           .rotary_base = o->rope_base},
                                   .ffn = {.f = o->ff,
                                           .activation = (heed_activation)o->activation,
                                           .gated = o->ff_gated,
                                           .bias = o->ff_bias,
                                           .dropout = o->ff_dropout},
                                   .around = around(c)};
}

/* Of a decoder also a recurrent unit in its place (Kim et al. 2019). */
static void add_self(heed_stack *s, heed_scope scope, const heed_model_config *c,
                     const heed_sublayer_options *o)
{
    if (o->mha.causal && c->transformer.decoder_unit == HEED_DECODER_UNIT_SSRU)
        heed_stack_append(s, heed_scope_enter(scope, "ssru"), &heed__ssru_sublayer, o);
    else
        heed_stack_append(s, heed_scope_enter(scope, "self"), heed_sublayer_class_of(&o->mha), o);
}

/* "a multi-head self-attention mechanism, and ... a position-wise fully connected feed-forward
 * network" */
void heed__add_layer(heed_stack *s, heed_scope scope, const heed_model_config *c, int layer,
                     bool causal)
{
    const heed_sublayer_options o = sublayer(c, layer, causal);
    add_self(s, scope, c, &o);
    if (c->transformer.ff)
        heed_stack_append(s, heed_scope_enter(scope, "ffn"), &heed__ffn_sublayer, &o);
}

/* "the decoder inserts a third sub-layer, which performs multi-head attention over the output of
 * the encoder stack" */
static void add_decoder_layer(heed_stack *s, heed_scope scope, const heed_model_config *c,
                              int layer)
{
    const heed_sublayer_options o = sublayer(c, layer, true);
    add_self(s, scope, c, &o);
    heed_stack_append(s, heed_scope_enter(scope, "cross"), &heed__cross_sublayer, &o);
    if (c->transformer.ff)
        heed_stack_append(s, heed_scope_enter(scope, "ffn"), &heed__ffn_sublayer, &o);
}

void heed__add_final_norm(heed_stack *s, heed_scope scope, const heed_model_config *c)
{
    if (c->transformer.pre_norm)
        heed_norm_build(&s->norm, heed_scope_enter(scope, "norm"),
                        (heed_norm_kind)c->transformer.norm, c->d, c->transformer.norm_eps);
}

/* ---- 3.4 Embeddings and softmax, 3.5 Positional encoding ---- */

void heed__build_input(heed_input_layer *l, heed_scope s, const heed_model_config *c,
                       int64_t vocabulary, heed_positions positions)
{
    const heed_transformer_config *o = &c->transformer;
    heed_input_build(l, heed_scope_enter(s, "embedding"),
                     &(heed_input_options){.d = c->d,
                                           .vocabulary = vocabulary,
                                           .types = o->types,
                                           .width = c->features,
                                           .positions = positions,
                                           .longest = c->longest,
                                           .scale = o->embedding_scale ? sqrt((double)c->d) : 1,
                                           .normed = o->embedding_norm,
                                           .norm = (heed_norm_kind)o->norm,
                                           .eps = o->norm_eps,
                                           .dropout = c->dropout});
}

/* Sinusoids are the same for both stacks; learned positions are each stack's own. */
static void build_inputs(struct transformer *m, heed_scope s, const heed_model_config *c)
{
    const heed_positions positions = (heed_positions)c->transformer.positions;
    const bool learned = positions == HEED_POSITIONS_LEARNED;
    heed_input_layer *source = &m->encoder.input, *target = &m->decoder.input;
    if (c->tying == HEED_TIE_ALL) {
        heed__build_input(source, s, c, c->source_vocabulary, positions);
        *target = *source;
        target->zero_start = c->transformer.zero_start;
        return;
    }
    heed__build_input(source, heed_scope_enter(s, "encoder"), c, c->source_vocabulary, positions);
    heed__build_input(target, heed_scope_enter(s, "decoder"), c, c->target_vocabulary,
                      learned ? positions : HEED_POSITIONS_NONE);
    target->zero_start = c->transformer.zero_start;
    if (!learned) {
        target->embedding.positions = source->embedding.positions;
        target->embedding.kind = positions;
    }
}

/* "we share the same weight matrix between the two embedding layers and the pre-softmax linear
 * transformation" */
void heed__build_head(heed_head_layer *l, heed_scope s, const heed_model_config *c, int64_t classes,
                      heed_tensor *tied)
{
    const heed_transformer_config *o = &c->transformer;
    heed_head_build(l, heed_scope_enter(s, "output"),
                    &(heed_head_options){.d = c->d,
                                         .classes = classes,
                                         .table = tied,
                                         .bias = o->output_bias,
                                         .transform = o->head_transform,
                                         .activation = (heed_activation)o->activation,
                                         .normed = o->head_transform,
                                         .norm = (heed_norm_kind)o->norm,
                                         .eps = o->norm_eps});
}

/* ---- the whole ---- */

static void build(heed_model *model, heed_scope s)
{
    const heed_model_config *c = &model->config;
    struct transformer *m = heed_arena_allocate(model->arena, sizeof *m);
    if (!m)
        return;
    heed_stack_init(&m->encoder, model->arena, c->d);
    heed_stack_init(&m->decoder, model->arena, c->d);
    build_inputs(m, s, c);
    heed__build_head(&model->head, s, c, c->target_vocabulary,
                     c->tying == HEED_TIE_NONE ? NULL : m->decoder.input.embedding.table);
    heed_scope encoder = heed_scope_enter(s, "encoder"), decoder = heed_scope_enter(s, "decoder");
    for (int i = 0; i < c->encoder_layers; i++)
        heed__add_layer(&m->encoder, heed_scope_enter(encoder, "%d", i), c, i, false);
    for (int i = 0; i < c->decoder_layers; i++)
        add_decoder_layer(&m->decoder, heed_scope_enter(decoder, "%d", i), c, i);
    heed__add_final_norm(&m->encoder, encoder, c);
    heed__add_final_norm(&m->decoder, decoder, c);
    model->parts = m;
}

static heed_tensor *hidden(const heed_model *model, heed_tape *t, const heed_batch *batch,
                           heed__forward *f)
{
    const struct transformer *m = model->parts;
    const heed_batch_side *source = &batch->source, *target = &batch->target;
    heed_flow flow = {.rows = source->rows, .recorder = f->recorder};
    flow.x = heed_input_apply(t, &m->encoder.input, source);
    flow.memory = heed_stack_apply(t, &m->encoder, &flow); /* (M,D) */
    flow.memory_rows = flow.rows;
    flow.rows = target->rows;
    flow.x = heed_input_apply(t, &m->decoder.input, target);
    heed_tensor *h = heed_stack_apply(t, &m->decoder, &flow); /* (N,D) */
    f->penalty = flow.penalty;
    return h;
}

static const heed_stack *stack(const heed_model *model, heed_side side)
{
    const struct transformer *m = model->parts;
    return side == HEED_SOURCE ? &m->encoder : &m->decoder;
}

/* A source token passes through the encoder and is made keys and values for each decoder layer. */
static heed_model_cost cost(const heed_model *model)
{
    const struct transformer *m = model->parts;
    const heed_sublayer_cost encoder = heed_stack_cost(&m->encoder);
    const heed_sublayer_cost decoder = heed_stack_cost(&m->decoder);
    return (heed_model_cost){.source_weights = encoder.row_weights + decoder.memory_weights,
                             .target_weights = decoder.row_weights};
}

const heed__model_class heed__transformer_class = {
    .sides = HEED_BOTH,
    .check = heed__transformer_check,
    .size = heed__transformer_size,
    .summary = heed__transformer_summary,
    .build = build,
    .cost = cost,
    .hidden = hidden,
    .stack = stack,
};
