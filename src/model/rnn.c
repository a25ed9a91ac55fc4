/* rnn.c: translation with recurrent networks, from three papers that build on each other:
 *   never   Sutskever et al. 2014: a stack reads the source backwards, another goes on from there
 *   before  Bahdanau et al. 2015: c_t from s_{t-1}, then s_t = f(s_{t-1}, y_{t-1}, c_t)
 *   after   Luong et al. 2015: h_t, then c_t and h~_t = tanh(W_c [c_t; h_t]), fed back or not
 * Source (M) and target (N) tokens -> states (N,E or D).  What does not depend on the step before
 * is one product for all steps: the words' share of the gates, U h_i, the readout, the loss.
 * Differences: any number of layers, either cell; dropout on embeddings, between layers and before
 * the output; Bahdanau's readout sees s_t (equation 4), where A.2.2 has s_{t-1}; starts of weights
 * as in nn.h; no bias in the output projection. */
#include "model/rnn.h"

#include "attention/attend.h"
#include <math.h>

#define BASELINE_MOMENTUM 0.9 /* of the rewards' moving mean, as in Xu et al. 2015 */

/* ---- the encoder ---- */

/* "we found it extremely valuable to reverse the order of the words of the input sentence"
 * (Sutskever): each sentence's own words, EOS included. */
static const int32_t *reversed(heed_tape *t, const int32_t *ids, const heed_segments *s)
{
    int32_t *back = heed_arena_allocate(heed_tape_arena(t), (size_t)s->rows * sizeof *back);
    for (int64_t b = 0; back && b < s->count; b++)
        for (int64_t n = s->offset[b]; n < s->offset[b + 1]; n++)
            back[n] = ids[s->offset[b] + s->offset[b + 1] - 1 - n];
    if (!back)
        heed_tape_fail(t, HEED_MEMORY, "no memory for %lld words", (long long)s->rows);
    return back;
}

/* The decoder's first state.  Sutskever, Luong: the encoder's last one, layer by layer.  Bahdanau:
 * s_0 = tanh(W_s <h_1), with <h_1 the state of the backward direction at the first word (A.2.2).
 * Where neither fits, tanh(W_s [>h_S; <h_1]) of both directions; an LSTM's c_0 is made alike. */
static void first_state(const heed__rnn *m, heed_tape *t, const heed_rnn_state *end, int64_t count,
                        heed__rnn_state *start)
{
    const heed_rnn_options *e = &m->encoder.options, *o = &m->decoder.options;
    *start = (heed__rnn_state){.layers = *end};
    const heed_lstm_state *last = end->at[e->layers - 1];
    heed_tensor *from = last[e->bidirectional].h;
    if (m->both_ends)
        from = heed_concat_cols(t, (heed_tensor *[]){last[0].h, last[1].h}, 2);
    for (int k = 0; m->bridge && k < o->layers; k++) {
        heed_tensor *s = heed_linear_apply(t, &m->bridge[k], from);
        start->layers.at[k][0] = (heed_lstm_state){s, NULL};
        if (o->cell == HEED_CELL_LSTM)
            start->layers.at[k][0] = (heed_lstm_state){heed_slice_cols(t, s, 0, o->d),
                                                       heed_slice_cols(t, s, o->d, 2 * o->d)};
    }
    if (m->feeds)
        start->fed = heed_input(t, HEED_SHAPE(count, o->d), NULL);
}

heed_tensor *heed__rnn_encode(const heed__rnn *m, heed_tape *t, const heed_batch *batch,
                              heed__rnn_state *start)
{
    const heed_segments *s = batch->source.rows;
    heed_rnn_state end;
    const int32_t *ids = m->reverse ? reversed(t, batch->source.ids, s) : batch->source.ids;
    heed_tensor *x = ids ? heed_embedding_apply(t, &m->source, ids, s) : NULL;
    heed_tensor *h = heed_rnn_apply(t, &m->encoder, x, s, NULL, &end);
    first_state(m, t, &end, s->count, start);
    return m->attends && m->reverse ? heed_segment_reverse(t, h, s) : h;
}

/* ---- one step of the decoder ---- */

heed_tensor *heed__rnn_look(const heed__rnn *m, heed_tape *t, heed_tensor *s,
                            const heed__rnn_input *in, heed__rnn_output *out)
{
    heed_attend_extra extra = {
        .place = in->place, .weights = &out->weights, .chosen_log_p = &out->chosen_log_p};
    return heed_attend(t, &m->attend, s, &in->memory, in->queries, &extra);
}

/* The rows of x that go on. */
static heed_tensor *going_on(heed_tape *t, heed_tensor *x, const heed__rnn_input *in)
{
    return heed_slice_rows(t, x, 0, heed_tensor_rows(in->gates));
}

static void step_never(const heed__rnn *m, heed_tape *t, const heed__rnn_input *in,
                       heed__rnn_state *state, heed__rnn_output *out)
{
    out->s = heed_rnn_step(t, &m->decoder, in->gates, &state->layers);
}

/* Bahdanau, A.1.2 and A.2.2: e_ti = v . tanh(W s_{t-1} + U h_i), c_t = sum_i a_ti h_i, then the
 * gates of s_t from s_{t-1}, y_{t-1} and c_t. */
static void step_before(const heed__rnn *m, heed_tape *t, const heed__rnn_input *in,
                        heed__rnn_state *state, heed__rnn_output *out)
{
    heed_tensor *before = state->layers.at[m->decoder.options.layers - 1][0].h;
    out->c = heed__rnn_look(m, t, going_on(t, before, in), in, out);
    heed_tensor *gates = heed_add(t, in->gates, heed_linear_apply(t, &m->more, out->c));
    out->s = heed_rnn_step(t, &m->decoder, gates, &state->layers);
}

/* Luong, equation 5: h~ = tanh(W_c [c; h]). */
heed_tensor *heed__rnn_attentional(const heed__rnn *m, heed_tape *t, heed_tensor *c, heed_tensor *h)
{
    return heed_linear_apply(t, &m->readout, heed_concat_cols(t, (heed_tensor *[]){c, h}, 2));
}

/* Luong, 3 and 3.3: h_t from y_{t-1} and, with input feeding, h~_{t-1}; then c_t and h~_t. */
static void step_after(const heed__rnn *m, heed_tape *t, const heed__rnn_input *in,
                       heed__rnn_state *state, heed__rnn_output *out)
{
    heed_tensor *gates = in->gates;
    if (m->feeds)
        gates = heed_add(t, gates, heed_linear_apply(t, &m->more, going_on(t, state->fed, in)));
    heed_tensor *h = heed_rnn_step(t, &m->decoder, gates, &state->layers);
    out->attended = heed__rnn_attentional(m, t, heed__rnn_look(m, t, h, in, out), h);
    state->fed = m->feeds ? out->attended : NULL;
}

/* ---- what the output projection sees ---- */

static heed_tensor *read_state(const heed__rnn *m, heed_tape *t, heed_tensor *y,
                               const heed__rnn_output *out)
{
    (void)y;
    return heed_dropout(t, out->s, m->dropout);
}

static heed_tensor *read_attended(const heed__rnn *m, heed_tape *t, heed_tensor *y,
                                  const heed__rnn_output *out)
{
    (void)y;
    return heed_dropout(t, out->attended, m->dropout);
}

/* Bahdanau, A.2.2: t = max over pairs of U s + V y + C c. */
static heed_tensor *read_maxout(const heed__rnn *m, heed_tape *t, heed_tensor *y,
                                const heed__rnn_output *out)
{
    heed_tensor *all = heed_concat_cols(t, (heed_tensor *[]){out->s, y, out->c}, 3);
    return heed_dropout(t, heed_maxout(t, heed_linear_apply(t, &m->readout, all), 2), m->dropout);
}

heed_tensor *heed__rnn_gates(const heed__rnn *m, heed_tape *t, heed_tensor *y)
{
    return heed_linear_apply(t, &m->decoder.cell[0][0].input, y);
}

/* ---- building ---- */

static heed_rnn_options stack(const heed_model_config *c, int64_t layers, int64_t in)
{
    const bool lstm = c->rnn.cell == HEED_RNN_LSTM;
    return (heed_rnn_options){.cell = lstm ? HEED_CELL_LSTM : HEED_CELL_GRU,
                              .gru_kind =
                                  HEED_GRU_Z_TAKES |
                                  (c->rnn.cell == HEED_RNN_GRU_AFTER ? HEED_GRU_RESET_AFTER : 0),
                              .layers = (int)layers,
                              .in = in,
                              .d = c->d,
                              .dropout = c->dropout};
}

static void build_embedding(heed_embedding_layer *l, heed_scope s, const heed_model_config *c,
                            int64_t vocabulary)
{
    const int64_t d = heed__rnn_embedding_d(c);
    heed_embedding_build(l, heed_scope_enter(s, "embedding"), vocabulary, d, HEED_POSITIONS_NONE, 0,
                         sqrt((double)d), c->dropout);
}

/* The table that the output is tied to, or NULL. */
static heed_tensor *build_embeddings(heed__rnn *m, heed_scope s, const heed_model_config *c)
{
    if (c->tying == HEED_TIE_ALL) {
        build_embedding(&m->source, s, c, c->source_vocabulary);
        m->target = m->source;
        return m->source.table;
    }
    build_embedding(&m->source, heed_scope_enter(s, "encoder"), c, c->source_vocabulary);
    build_embedding(&m->target, heed_scope_enter(s, "decoder"), c, c->target_vocabulary);
    return c->tying == HEED_TIE_TARGET ? m->target.table : NULL;
}

/* A decoder starts where the encoder ended, if the two are alike. */
static bool build_bridge(heed__rnn *m, heed_scope s, const heed_model_config *c, heed_arena *arena)
{
    const int64_t layers = c->decoder_layers, parts = c->rnn.cell == HEED_RNN_LSTM ? 2 : 1;
    if (c->rnn.attend != HEED_ATTEND_BEFORE && !c->rnn.bidirectional && c->encoder_layers == layers)
        return true;
    m->both_ends = c->rnn.attend != HEED_ATTEND_BEFORE && c->rnn.bidirectional;
    m->bridge = heed_arena_allocate(arena, (size_t)layers * sizeof *m->bridge);
    for (int k = 0; m->bridge && k < layers; k++)
        heed_linear_build(&m->bridge[k], heed_scope_enter(s, "%d.start", k),
                          m->both_ends ? 2 * c->d : c->d, parts * c->d, HEED_TANH, false);
    return m->bridge;
}

/* Which of the three papers. */
static void build_attention(heed__rnn *m, heed_scope s, const heed_model_config *c)
{
    const heed_attend_options attend = heed__rnn_attention(c);
    const int64_t gates = (m->decoder.options.cell == HEED_CELL_LSTM ? 4 : 3) * c->d;
    const int64_t e = heed__rnn_embedding_d(c), seen = attend.key_d;
    const bool before = c->rnn.attend == HEED_ATTEND_BEFORE;
    m->attends = c->rnn.attend != HEED_ATTEND_NEVER;
    m->feeds = c->rnn.input_feeding;
    m->by_steps = before || m->feeds;
    m->step = before ? step_before : m->attends ? step_after : step_never;
    m->read = before ? read_maxout : m->attends ? read_attended : read_state;
    if (!m->attends)
        return;
    heed_attend_build(&m->attend, heed_scope_enter(s, "attention"), &attend);
    if (m->by_steps)
        heed_linear_build(&m->more, heed_scope_enter(s, before ? "context" : "feed"),
                          before ? seen : c->d, gates, HEED_IDENTITY, false);
    if (before)
        heed_linear_build(&m->readout, heed_scope_enter(s, "readout"), c->d + e + seen, 2 * e,
                          HEED_IDENTITY, true);
    else
        heed_linear_build(&m->readout, heed_scope_enter(s, "readout"), seen + c->d, c->d, HEED_TANH,
                          false);
}

static void build(heed_model *model, heed_scope s)
{
    const heed_model_config *c = &model->config;
    heed__rnn *m = heed_arena_allocate(model->arena, sizeof *m);
    if (!m)
        return;
    *m = (heed__rnn){.reverse = c->rnn.reverse, .dropout = c->dropout};
    heed_tensor *tied = build_embeddings(m, s, c);
    heed_head_build(&model->head, heed_scope_enter(s, "output"),
                    &(heed_head_options){.d = heed__rnn_output_d(c),
                                         .classes = c->target_vocabulary,
                                         .table = tied});
    heed_scope encoder = heed_scope_enter(s, "encoder"), decoder = heed_scope_enter(s, "decoder");
    heed_rnn_options reader = stack(c, c->encoder_layers, heed__rnn_embedding_d(c));
    heed_rnn_options writer = stack(c, c->decoder_layers, heed__rnn_embedding_d(c));
    reader.bidirectional = c->rnn.bidirectional;
    heed_rnn_build(&m->encoder, encoder, &reader);
    heed_rnn_build(&m->decoder, decoder, &writer);
    build_attention(m, decoder, c);
    const bool built = build_bridge(m, decoder, c, model->arena);
    if (heed__slot_kind(&c->attention.normaliser) == HEED_NORMALISE_HARD)
        heed_reinforce_build(&m->choice, heed_scope_enter(s, "choice"), BASELINE_MOMENTUM);
    model->parts = built ? m : NULL;
}

/* ---- cost ---- */

static int64_t stack_weights(const heed_rnn_layer *l)
{
    int64_t n = 0;
    for (int k = 0; k < l->options.layers; k++)
        for (int way = 0; way <= l->options.bidirectional; way++)
            n += heed_tensor_count(l->cell[k][way].input.weight) +
                 heed_tensor_count(l->cell[k][way].recurrent);
    return n;
}

/* A source token passes through the encoder and is made a key.  The bridge, once a sentence, is
 * left out. */
static heed_model_cost cost(const heed_model *model)
{
    const heed__rnn *m = model->parts;
    const bool additive = m->attend.options.score == HEED_SCORE_ADDITIVE;
    heed_model_cost c = {stack_weights(&m->encoder), stack_weights(&m->decoder)};
    if (!m->attends)
        return c;
    c.source_weights += heed_tensor_count(m->attend.k.weight);
    c.target_weights += heed_tensor_count(m->attend.q.weight) +
                        (additive ? 0 : heed_tensor_count(m->attend.weight)) +
                        heed_tensor_count(m->attend.place.weight) +
                        heed_tensor_count(m->more.weight) + heed_tensor_count(m->readout.weight);
    return c;
}

const heed__model_class heed__rnn_class = {
    .sides = HEED_BOTH,
    .check = heed__rnn_check,
    .size = heed__rnn_size,
    .summary = heed__rnn_summary,
    .build = build,
    .cost = cost,
    .hidden = heed__rnn_hidden,
    .loss = heed__rnn_loss,
    .decoder = &heed__rnn_decoder,
};
