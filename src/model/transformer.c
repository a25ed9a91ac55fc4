/* transformer.c: "Attention Is All You Need" (Vaswani et al. 2017), section by section.
 *
 * Source (M) and target (N) tokens -> states (N,D).  Shapes and letters as in tensor.h; both sides
 * are packed, so there is no padding to mask: a segment is what may be attended to.
 * Beyond the paper, by choice: pre-norm with final norms, RMS and batch norm, learned positions,
 * dropout on attention weights and inside the feed-forward network, attention biases, less tying.
 * Any score of src/attention.  Residuals and 1/sqrt(d_k) can be left out to see what they are for.
 * Batch norm is of that kind in a decoder: in training its statistics see later tokens; decoding
 * uses the running ones. */
#include "model/transformer.h"

#include <math.h>

#define EPS 1e-6 /* of the norms, as in the paper's own code */

/* ---- 3.1 Encoder and decoder stacks ---- */

/* "The output of each sub-layer is LayerNorm(x + Sublayer(x))", with dropout on Sublayer(x) (5.4).
 */
static heed_tensor *as_it_is(heed_tape *t, const heed__around *a, heed_tensor *x)
{
    (void)t;
    (void)a;
    return x;
}

static heed_tensor *add_and_norm(heed_tape *t, const heed__around *a, heed_tensor *x,
                                 heed_tensor *y)
{
    return heed_norm_residual(t, &a->norm, x, y, a->dropout);
}

/* Pre-norm: x + Sublayer(LayerNorm(x)). */
static heed_tensor *norm_first(heed_tape *t, const heed__around *a, heed_tensor *x)
{
    return heed_norm_apply(t, &a->norm, x);
}

static heed_tensor *add(heed_tape *t, const heed__around *a, heed_tensor *x, heed_tensor *y)
{
    return heed_add_dropout(t, x, y, a->dropout);
}

/* Without the residual x is forgotten. */
static heed_tensor *only_norm(heed_tape *t, const heed__around *a, heed_tensor *x, heed_tensor *y)
{
    (void)x;
    return heed_norm_apply(t, &a->norm, heed_dropout(t, y, a->dropout));
}

static heed_tensor *only_dropout(heed_tape *t, const heed__around *a, heed_tensor *x,
                                 heed_tensor *y)
{
    (void)x;
    return heed_dropout(t, y, a->dropout);
}

static void build_around(heed__around *a, heed_scope s, const heed_model_config *c)
{
    heed_norm_build(&a->norm, heed_scope_enter(s, "norm"), (heed_norm_kind)c->transformer.norm,
                    c->d, EPS);
    a->dropout = c->dropout;
    a->before = c->transformer.pre_norm ? norm_first : as_it_is;
    if (c->transformer.pre_norm)
        a->after = c->transformer.residual ? add : only_dropout;
    else
        a->after = c->transformer.residual ? add_and_norm : only_norm;
}

/* 3.2.1; its scale can be left out, and so the products be others. */
static int score_of(const heed_model_config *c)
{
    const bool scaled = c->attention.score == HEED_SCORE_SCALED_DOT;
    return scaled && !c->transformer.scale_scores ? HEED_SCORE_DOT : c->attention.score;
}

static void build_attention(heed_mha_layer *l, heed_scope s, const heed_model_config *c,
                            heed_attention_kind kind)
{
    heed_mha_build(l, s,
                   &(heed_mha_options){.d = c->d,
                                       .heads = (int)c->transformer.heads,
                                       .d_k = c->transformer.d_k,
                                       .d_v = c->transformer.d_v,
                                       .cross = kind == HEED_CROSS,
                                       .causal = kind == HEED_DECODER_SELF,
                                       .bias = c->transformer.attention_bias,
                                       .score = score_of(c),
                                       .beta = c->attention.beta,
                                       .longest = c->longest,
                                       .dropout = c->attention.dropout});
}

static void build_ffn(heed_ffn_layer *l, heed_scope s, const heed_model_config *c)
{
    heed_ffn_build(l, s, c->d, c->transformer.ff, (heed_activation)c->transformer.activation,
                   c->transformer.ff_dropout);
}

/* "a multi-head self-attention mechanism, and ... a position-wise fully connected feed-forward
 * network" */
static void build_encoder_layer(heed__encoder_layer *l, heed_scope s, const heed_model_config *c)
{
    heed_scope self = heed_scope_enter(s, "self"), ffn = heed_scope_enter(s, "ffn");
    build_attention(&l->self, self, c, HEED_ENCODER_SELF);
    build_around(&l->around_self, self, c);
    build_ffn(&l->ffn, ffn, c);
    build_around(&l->around_ffn, ffn, c);
}

/* 3.2.2: multi-head attention, its weights noted if somebody looks. */
static heed_tensor *attend(heed_tape *t, const heed_mha_layer *l, heed_tensor *x,
                           heed_tensor *memory, const heed_segments *queries,
                           const heed_segments *keys, heed__seen *seen)
{
    if (!seen)
        return heed_mha_apply(t, l, x, memory, queries, keys, NULL);
    seen->heads = l->options.heads;
    seen->queries = queries;
    seen->keys = keys;
    return heed_mha_apply(t, l, x, memory, queries, keys,
                          &(heed_attend_extra){.weights = &seen->weights});
}

static heed_tensor *encoder_layer(heed_tape *t, const heed__encoder_layer *l, heed_tensor *x,
                                  const heed_segments *source, heed__seen *seen)
{
    heed_tensor *y = l->around_self.before(t, &l->around_self, x);
    y = attend(t, &l->self, y, y, source, source, seen);
    x = l->around_self.after(t, &l->around_self, x, y);
    y = l->around_ffn.before(t, &l->around_ffn, x);
    return l->around_ffn.after(t, &l->around_ffn, x, heed_ffn_apply(t, &l->ffn, y));
}

/* "the decoder inserts a third sub-layer, which performs multi-head attention over the output of
 * the encoder stack" */
static void build_decoder_layer(heed__decoder_layer *l, heed_scope s, const heed_model_config *c)
{
    heed_scope self = heed_scope_enter(s, "self"), cross = heed_scope_enter(s, "cross"),
               ffn = heed_scope_enter(s, "ffn");
    build_attention(&l->self, self, c, HEED_DECODER_SELF);
    build_around(&l->around_self, self, c);
    build_attention(&l->cross, cross, c, HEED_CROSS);
    build_around(&l->around_cross, cross, c);
    build_ffn(&l->ffn, ffn, c);
    build_around(&l->around_ffn, ffn, c);
}

static heed_tensor *decoder_layer(heed_tape *t, const heed__decoder_layer *l, int i, heed_tensor *x,
                                  const heed__attend *a)
{
    heed_tensor *y = l->around_self.before(t, &l->around_self, x);
    x = l->around_self.after(t, &l->around_self, x, a->self(a->context, t, i, y));
    y = l->around_cross.before(t, &l->around_cross, x);
    x = l->around_cross.after(t, &l->around_cross, x, a->cross(a->context, t, i, y));
    y = l->around_ffn.before(t, &l->around_ffn, x);
    return l->around_ffn.after(t, &l->around_ffn, x, heed_ffn_apply(t, &l->ffn, y));
}

heed_tensor *heed__transformer_encode(const heed__transformer *m, heed_tape *t,
                                      const heed_batch *batch, heed__seen *seen)
{
    heed_tensor *x = heed_embedding_apply(t, &m->source, batch->source_ids, batch->source);
    for (int i = 0; i < m->encoder_layers; i++)
        x = encoder_layer(t, &m->encoder[i], x, batch->source, seen ? &seen[i] : NULL);
    return m->final_norms ? heed_norm_apply(t, &m->encoder_norm, x) : x; /* (M,D) */
}

heed_tensor *heed__transformer_decode(const heed__transformer *m, heed_tape *t, heed_tensor *x,
                                      const heed__attend *attend)
{
    for (int i = 0; i < m->decoder_layers; i++)
        x = decoder_layer(t, &m->decoder[i], i, x, attend);
    return m->final_norms ? heed_norm_apply(t, &m->decoder_norm, x) : x; /* (N,D) */
}

/* ---- 3.2.3 Applications of attention, over whole sentences ---- */

struct sentences {
    const heed__transformer *m;
    const heed_segments *source, *target;
    heed_tensor *memory;      /* (M,D) */
    heed__seen *self, *cross; /* of each layer, or NULL */
};

/* "masking out ... all values in the input of the softmax which correspond to illegal connections":
 * the layer is causal. */
static heed_tensor *self_attention(void *context, heed_tape *t, int i, heed_tensor *x)
{
    const struct sentences *s = context;
    return attend(t, &s->m->decoder[i].self, x, x, s->target, s->target,
                  s->self ? &s->self[i] : NULL);
}

static heed_tensor *cross_attention(void *context, heed_tape *t, int i, heed_tensor *x)
{
    const struct sentences *s = context;
    return attend(t, &s->m->decoder[i].cross, x, s->memory, s->target, s->source,
                  s->cross ? &s->cross[i] : NULL);
}

/* seen: the encoder's layers, the decoder's self-attentions, its cross-attentions. */
static heed_tensor *states(const heed_model *model, heed_tape *t, const heed_batch *batch,
                           heed__seen *seen)
{
    const heed__transformer *m = model->parts;
    const int n = m->encoder_layers, k = m->decoder_layers;
    for (int i = 0; seen && i < n + 2 * k; i++) {
        seen[i].kind = i < n ? HEED_ENCODER_SELF : i < n + k ? HEED_DECODER_SELF : HEED_CROSS;
        seen[i].layer = i < n ? i : (i - n) % k;
    }
    struct sentences s = {.m = m,
                          .source = batch->source,
                          .target = batch->target,
                          .memory = heed__transformer_encode(m, t, batch, seen),
                          .self = seen ? seen + n : NULL,
                          .cross = seen ? seen + n + k : NULL};
    heed_tensor *x = heed_embedding_apply(t, &m->target, batch->target_in, batch->target);
    return heed__transformer_decode(m, t, x, &(heed__attend){self_attention, cross_attention, &s});
}

static int attentions(const heed_model *model)
{
    const heed__transformer *m = model->parts;
    return m->encoder_layers + 2 * m->decoder_layers;
}

/* ---- 3.4 Embeddings and softmax, 3.5 Positional encoding ---- */

static void build_embedding(heed_embedding_layer *l, heed_scope s, const heed_model_config *c,
                            int64_t vocabulary, heed_positions positions)
{
    heed_embedding_build(l, heed_scope_enter(s, "embedding"), vocabulary, c->d, positions,
                         c->longest, sqrt((double)c->d), c->dropout);
}

/* "we share the same weight matrix between the two embedding layers and the pre-softmax linear
 * transformation" */
static heed_tensor *build_embeddings(heed__transformer *m, heed_scope s, const heed_model_config *c)
{
    const heed_positions positions = (heed_positions)c->transformer.positions;
    if (c->tying == HEED_TIE_ALL) {
        build_embedding(&m->source, s, c, c->source_vocabulary, positions);
        m->target = m->source;
        return m->source.table;
    }
    /* Sinusoids are the same for both stacks; learned positions are each stack's own. */
    const bool learned = positions == HEED_POSITIONS_LEARNED;
    build_embedding(&m->source, heed_scope_enter(s, "encoder"), c, c->source_vocabulary, positions);
    build_embedding(&m->target, heed_scope_enter(s, "decoder"), c, c->target_vocabulary,
                    learned ? positions : HEED_POSITIONS_NONE);
    if (!learned)
        m->target.positions = m->source.positions;
    if (c->tying == HEED_TIE_TARGET)
        return m->target.table;
    return heed_param(heed_scope_enter(s, "output"), "weight",
                      HEED_SHAPE(c->target_vocabulary, c->d),
                      (heed_init){HEED_INIT_NORMAL, 1 / sqrt((double)c->d)});
}

/* ---- the whole ---- */

static void build(heed_model *model, heed_scope s)
{
    const heed_model_config *c = &model->config;
    heed__transformer *m = heed_arena_allocate(model->arena, sizeof *m);
    if (!m)
        return;
    *m = (heed__transformer){.encoder_layers = (int)c->encoder_layers,
                             .decoder_layers = (int)c->decoder_layers,
                             .final_norms = c->transformer.pre_norm};
    m->encoder = heed_arena_allocate(model->arena, (size_t)c->encoder_layers * sizeof *m->encoder);
    m->decoder = heed_arena_allocate(model->arena, (size_t)c->decoder_layers * sizeof *m->decoder);
    if (!m->encoder || !m->decoder)
        return;
    model->output = build_embeddings(m, s, c);
    heed_scope encoder = heed_scope_enter(s, "encoder"), decoder = heed_scope_enter(s, "decoder");
    for (int i = 0; i < m->encoder_layers; i++)
        build_encoder_layer(&m->encoder[i], heed_scope_enter(encoder, "%d", i), c);
    for (int i = 0; i < m->decoder_layers; i++)
        build_decoder_layer(&m->decoder[i], heed_scope_enter(decoder, "%d", i), c);
    if (m->final_norms) {
        const heed_norm_kind kind = (heed_norm_kind)c->transformer.norm;
        heed_norm_build(&m->encoder_norm, heed_scope_enter(encoder, "norm"), kind, c->d, EPS);
        heed_norm_build(&m->decoder_norm, heed_scope_enter(decoder, "norm"), kind, c->d, EPS);
    }
    model->parts = m;
}

static int64_t ffn_weights(const heed_ffn_layer *l)
{
    return heed_tensor_count(l->in.weight) + heed_tensor_count(l->out.weight);
}

/* A source token passes through the encoder and is made keys and values for each decoder layer. */
static heed_model_cost cost(const heed_model *model)
{
    const heed__transformer *m = model->parts;
    heed_model_cost c = {0, 0};
    for (int i = 0; i < m->encoder_layers; i++) {
        const heed__encoder_layer *l = &m->encoder[i];
        c.source_weights += heed_tensor_count(l->self.qkv.weight) +
                            heed_tensor_count(l->self.out.weight) + ffn_weights(&l->ffn);
    }
    for (int i = 0; i < m->decoder_layers; i++) {
        const heed__decoder_layer *l = &m->decoder[i];
        c.source_weights += heed_tensor_count(l->cross.kv.weight);
        c.target_weights += heed_tensor_count(l->self.qkv.weight) +
                            heed_tensor_count(l->self.out.weight) +
                            heed_tensor_count(l->cross.q.weight) +
                            heed_tensor_count(l->cross.out.weight) + ffn_weights(&l->ffn);
    }
    return c;
}

const heed__model_class heed__transformer_class = {
    .check = heed__transformer_check,
    .config_at = offsetof(heed_model_config, transformer),
    .config_size = sizeof(heed_transformer_config),
    .size = heed__transformer_size,
    .summary = heed__transformer_summary,
    .build = build,
    .cost = cost,
    .states = states,
    .attentions = attentions,
    .open = heed__transformer_open,
    .close = heed__transformer_close,
    .start = heed__transformer_start,
    .step = heed__transformer_step,
};
