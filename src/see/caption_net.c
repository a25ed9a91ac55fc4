/* caption_net.c: Xu et al. 2015, "Show, Attend and Tell: Neural Image Caption Generation with
 * Visual Attention" (arXiv 1502.03044):
 *
 *   a_1 .. a_L                the places of a picture                               (3.1.1)
 *   e_ti = f_att(a_i, h_{t-1}),  alpha_t = softmax(e_t)                             (4, 5)
 *   z_t = phi({a_i}, {alpha_ti})                                                    (6)
 *   h_t = LSTM(E y_{t-1}, h_{t-1}, z_t);  c_0, h_0 from the mean of the places      (1 to 3)
 *   p(y_t) ~ exp(L_o (E y_{t-1} + L_h h_t + L_z z_t))                               (7)
 *
 * Hard attention draws one place, z_t = a_s, and is trained by REINFORCE with a moving baseline and
 * the entropy of alpha; a share of the captions is trained with the mean (4.1).  Soft attention is
 * that mean, z_t = beta_t sum_i alpha_ti a_i, beta_t = sigmoid(f_beta(h_{t-1})), with lambda sum_i
 * (1 - sum_t alpha_ti)^2 so that every place is looked at at some time (4.2).
 *
 * What differs: the convolutions are trained here; tanh around the sum of (7), as in the authors'
 * code; a choice is rewarded by the words from it on, those before it cannot depend on it.
 * Captions go step by step in time-major order, the longest first. */
#include "see/caption_net.h"

/* ---- declaring ---- */

static bool looks(const heed_caption_config *c)
{
    return c->look == HEED_LOOK_SOFT || c->look == HEED_LOOK_HARD;
}

void heed_caption_build(heed_caption_net *m, heed_scope s, const heed_caption_config *config)
{
    if (!m)
        return;
    const int64_t e = config->embedding, d = config->d;
    const heed_init small = {HEED_INIT_NORMAL, 0.1}, zero = {HEED_INIT_ZERO, 0};
    *m = (heed_caption_net){.config = *config};
    m->words =
        heed_param_with_role(s, "words", HEED_SHAPE(config->vocabulary, e), small, HEED_ROLE_TABLE);
    heed_linear_build(&m->input, heed_scope_enter(s, "input"), e, 4 * d, HEED_IDENTITY, true);
    m->recurrent = heed_param_with_role(s, "recurrent", HEED_SHAPE(d, 4 * d),
                                        (heed_init){HEED_INIT_ORTHOGONAL, 1}, HEED_ROLE_MATRIX);
    heed_linear_build(&m->say_word, heed_scope_enter(s, "say.word"), e, e, HEED_IDENTITY, true);
    heed_linear_build(&m->say_state, heed_scope_enter(s, "say.state"), d, e, HEED_IDENTITY, false);
    m->out =
        heed_param_with_role(s, "out", HEED_SHAPE(config->vocabulary, e), small, HEED_ROLE_TABLE);
    m->bias = heed_param(s, "bias", HEED_SHAPE(config->vocabulary), zero);
    if (config->look == HEED_LOOK_BLIND)
        return;
    heed_grid_build(&m->grid, heed_scope_enter(s, "grid"),
                    &(heed_grid_options){.height = config->side,
                                         .width = config->side,
                                         .channels = config->channels,
                                         .stages = config->stages,
                                         .filters = config->filters});
    const int64_t a = m->grid.d;
    heed_linear_build(&m->start_h, heed_scope_enter(s, "start.h"), a, d, HEED_TANH, true);
    heed_linear_build(&m->start_c, heed_scope_enter(s, "start.c"), a, d, HEED_TANH, true);
    heed_linear_build(&m->from_place, heed_scope_enter(s, "place"), a, 4 * d, HEED_IDENTITY, false);
    heed_linear_build(&m->say_place, heed_scope_enter(s, "say.place"), a, e, HEED_IDENTITY, false);
    if (!looks(config))
        return;
    heed_attend_options attend = {
        .score = HEED_SCORE_ADDITIVE, .query_d = d, .key_d = a, .single = true};
    if (config->look == HEED_LOOK_HARD) {
        attend.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_HARD);
        heed_reinforce_build(&m->choice, heed_scope_enter(s, "choice"), 0.9);
    }
    heed_attend_build(&m->attend, heed_scope_enter(s, "attend"), &attend);
    if (config->gate)
        heed_linear_build(&m->gate, heed_scope_enter(s, "gate"), d, 1, HEED_SIGMOID, true);
}

/* ---- a step ---- */

static const heed_segments *equal_segments(heed_tape *t, int64_t count, int64_t each)
{
    int64_t *lengths = heed_arena_allocate(heed_tape_arena(t), (size_t)count * sizeof *lengths);
    for (int64_t i = 0; lengths && i < count; i++)
        lengths[i] = each;
    const heed_segments *s = lengths ? heed_segments_new(heed_tape_arena(t), count, lengths) : NULL;
    if (!s)
        heed_tape_fail(t, HEED_MEMORY, "out of memory for %lld captions", (long long)count);
    return s;
}

heed__places heed__caption_see(heed_tape *t, const heed_caption_net *m, const heed_real *pixels,
                               int64_t pictures, const int32_t *picture, int64_t count)
{
    const heed_grid_options *g = &m->grid.options;
    heed__places p = {.count = count, .each = m->grid.size.y * m->grid.size.x};
    if (m->config.look == HEED_LOOK_BLIND)
        return p;
    heed_tensor *x =
        heed_input(t, HEED_SHAPE(pictures * g->height * g->width, g->channels), pixels);
    heed_tensor *a = heed_grid_apply(t, &m->grid, x);
    heed_tensor *mean = heed_segment_mean(t, a, equal_segments(t, pictures, p.each));
    p.mean = heed_gather_rows(t, mean, picture, count);
    if (!looks(&m->config))
        return p;
    int32_t *row = heed_arena_allocate(heed_tape_arena(t), (size_t)(count * p.each) * sizeof *row);
    if (!row) {
        heed_tape_fail(t, HEED_MEMORY, "out of memory for %lld captions", (long long)count);
        return p;
    }
    for (int64_t i = 0; i < count * p.each; i++)
        row[i] = (int32_t)(picture[i / p.each] * p.each + i % p.each);
    const heed_memory all =
        heed_attend_memory(t, &m->attend, a, a, equal_segments(t, pictures, p.each));
    p.keys = heed_gather_rows(t, all.keys, row, count * p.each);
    p.values = heed_gather_rows(t, all.values, row, count * p.each);
    return p;
}

heed_lstm_state heed__caption_begin(heed_tape *t, const heed_caption_net *m, const heed__places *p)
{
    if (p->mean)
        return (heed_lstm_state){heed_linear_apply(t, &m->start_h, p->mean),
                                 heed_linear_apply(t, &m->start_c, p->mean)};
    return (heed_lstm_state){heed_input(t, HEED_SHAPE(p->count, m->config.d), NULL),
                             heed_input(t, HEED_SHAPE(p->count, m->config.d), NULL)};
}

static heed_tensor *first_rows(heed_tape *t, heed_tensor *x, int64_t rows)
{
    return heed_tensor_rows(x) == rows ? x : heed_slice_rows(t, x, 0, rows);
}

/* Where hard attention has drawn, and the captions of `expect` are trained with the mean. */
static heed_tensor *mix_expectation(heed_tape *t, const heed__caption_step *s,
                                    const heed_memory *memory, const heed_segments *queries,
                                    const uint8_t *expect, heed_tensor *drawn)
{
    const heed_pairs pairs = {.queries = queries, .keys = memory->segments, .heads = 1};
    heed_tensor *mean = heed_pairs_mix(t, heed_exp(t, s->logs), memory->values, &pairs);
    return heed_select(t, expect, true, mean, drawn);
}

/* z_t of h = h_{t-1}. */
static void look(heed_tape *t, const heed_caption_net *m, const heed__places *p, heed_tensor *h,
                 const uint8_t *expect, heed__caption_step *s)
{
    const int64_t rows = heed_tensor_rows(h);
    if (m->config.look == HEED_LOOK_MEAN)
        s->z = first_rows(t, p->mean, rows);
    if (!p->keys)
        return;
    const heed_segments *queries = equal_segments(t, rows, 1);
    const heed_memory memory = {.keys = first_rows(t, p->keys, rows * p->each),
                                .values = first_rows(t, p->values, rows * p->each),
                                .segments = equal_segments(t, rows, p->each)};
    s->z = heed_attend(t, &m->attend, h, &memory, queries,
                       &(heed_attend_extra){.weights = &s->weights,
                                            .log_weights = &s->logs,
                                            .chosen_log_p = &s->chosen_log_p});
    if (expect && s->chosen_log_p)
        s->z = mix_expectation(t, s, &memory, queries, expect, s->z);
    if (m->config.gate)
        s->z = heed_mul(t, s->z, heed_linear_apply(t, &m->gate, h));
}

heed__caption_step heed__caption_step_on(heed_tape *t, const heed_caption_net *m,
                                         const heed__places *p, heed_tensor *gates,
                                         const uint8_t *expect, heed_lstm_state *state)
{
    heed__caption_step s = {0};
    const int64_t rows = heed_tensor_rows(gates);
    state->h = first_rows(t, state->h, rows);
    state->c = first_rows(t, state->c, rows);
    look(t, m, p, state->h, expect, &s);
    if (s.z)
        gates = heed_add(t, gates, heed_linear_apply(t, &m->from_place, s.z));
    *state = heed_lstm_step(t, gates, *state, m->recurrent);
    s.h = state->h;
    return s;
}

heed_tensor *heed__caption_output(heed_tape *t, const heed_caption_net *m, heed_tensor *word,
                                  heed_tensor *h, heed_tensor *z)
{
    const double dropout = m->config.dropout;
    heed_tensor *y = heed_add(t, heed_linear_apply(t, &m->say_word, word),
                              heed_linear_apply(t, &m->say_state, heed_dropout(t, h, dropout)));
    if (z)
        y = heed_add(t, y, heed_linear_apply(t, &m->say_place, z));
    return heed_dropout(t, heed_tanh(t, y), dropout);
}

/* ---- training ---- */

struct run {
    heed_tape *t;
    const heed_caption_net *m;
    const heed_caption_batch *b;
    heed__places places;
    heed_tensor **h, **z, **logs, **chosen, **weights; /* (T) */
};

static bool make_arrays(struct run *r)
{
    const size_t steps = (size_t)r->b->rows->longest;
    heed_tensor **all = heed_arena_allocate(heed_tape_arena(r->t), 5 * steps * sizeof *all);
    if (!all)
        return false;
    r->h = all;
    r->z = all + steps;
    r->logs = all + 2 * steps;
    r->chosen = all + 3 * steps;
    r->weights = all + 4 * steps;
    return true;
}

/* The rows of all steps, in the captions' order. */
static heed_tensor *packed(const struct run *r, heed_tensor **steps)
{
    const heed_segments *s = r->b->rows;
    if (s->longest < 1 || !steps[0])
        return NULL;
    return heed_gather_rows(r->t, heed_concat_rows(r->t, steps, (int)s->longest), s->to_packed,
                            s->rows);
}

/* A flat tensor of each step as (rows,L). */
static heed_tensor *packed_places(const struct run *r, heed_tensor **steps)
{
    const heed_segments *s = r->b->rows;
    for (int64_t i = 0; i < s->longest && steps[0]; i++)
        steps[i] = heed_reshape(
            r->t, steps[i], HEED_SHAPE(s->step_offset[i + 1] - s->step_offset[i], r->places.each));
    return packed(r, steps);
}

/* lambda sum over captions and places of (1 - sum_t alpha_ti)^2. */
static heed_tensor *doubly_stochastic(const struct run *r, heed_tensor *alpha)
{
    heed_tensor *seen = heed_segment_sum(r->t, alpha, r->b->rows); /* (captions,L) */
    heed_tensor *missed = heed_square(r->t, heed_scale(r->t, seen, -1, 1));
    return heed_scale(r->t, heed_sum(r->t, missed, HEED_ALL), r->m->config.doubly, 0);
}

/* - lambda_e sum of the entropies of alpha. */
static heed_tensor *entropy(const struct run *r, heed_tensor *alpha, heed_tensor *logs)
{
    heed_tensor *sum = heed_sum(r->t, heed_mul(r->t, alpha, logs), HEED_ALL);
    return heed_scale(r->t, sum, r->m->config.entropy, 0);
}

/* lambda_r times the gradient of what was drawn; captions of `expect` have drawn nothing. */
static heed_tensor *rewarded(const struct run *r, heed_tensor *hidden, heed_tensor *chosen)
{
    heed_tape *t = r->t;
    const heed_segments *s = r->b->rows;
    heed_tensor *log_p =
        heed_project_log_p(t, hidden, r->m->out, r->m->bias, r->b->wanted); /* (N,1) */
    if (r->b->expect) {
        heed_tensor *drawn = heed_input(t, HEED_SHAPE(s->rows, 1), NULL);
        for (int64_t c = 0; drawn && c < s->count; c++)
            for (int64_t i = s->offset[c]; i < s->offset[c + 1]; i++)
                heed_tensor_data(drawn)[i] = !r->b->expect[c];
        chosen = heed_mul(t, chosen, drawn);
    }
    return heed_reinforce(t, &r->m->choice, chosen, heed_tensor_data(log_p), s,
                          r->m->config.reward);
}

/* What training adds to - log p. */
static heed_tensor *penalties(const struct run *r, heed_tensor *hidden)
{
    const heed_caption_config *c = &r->m->config;
    const bool hard = c->look == HEED_LOOK_HARD;
    heed_tensor *sum = NULL;
    if (!looks(c) || !(c->doubly > 0 || hard))
        return NULL;
    heed_tensor *logs = packed_places(r, r->logs), *alpha = heed_exp(r->t, logs);
    if (c->doubly > 0)
        sum = doubly_stochastic(r, alpha);
    if (hard && c->entropy > 0) {
        heed_tensor *e = entropy(r, alpha, logs);
        sum = sum ? heed_add(r->t, sum, e) : e;
    }
    if (hard && c->reward > 0) {
        heed_tensor *e = rewarded(r, hidden, packed(r, r->chosen));
        sum = sum ? heed_add(r->t, sum, e) : e;
    }
    return sum;
}

/* Of the captions in the order of the steps' rows: whose picture, and which expect. */
static bool in_time(struct run *r, const int32_t **picture, uint8_t **expect)
{
    const heed_segments *s = r->b->rows;
    heed_arena *arena = heed_tape_arena(r->t);
    int32_t *of = heed_arena_allocate(arena, (size_t)s->count * sizeof *of);
    *expect = r->b->expect ? heed_arena_allocate(arena, (size_t)s->count) : NULL;
    if (!of || (r->b->expect && !*expect))
        return false;
    for (int64_t i = 0; i < s->count; i++) {
        of[i] = r->b->picture[s->order[i]];
        if (*expect)
            (*expect)[i] = r->b->expect[s->order[i]];
    }
    *picture = of;
    return true;
}

heed_tensor *heed_caption_loss(heed_tape *t, const heed_caption_net *m, const heed_caption_batch *b,
                               double weight, double *nll, heed_tensor **where)
{
    if (!t || heed_tape_error(t)->status)
        return NULL;
    struct run r = {.t = t, .m = m, .b = b};
    const heed_segments *s = b->rows;
    const int32_t *picture;
    uint8_t *expect;
    if (!make_arrays(&r) || !in_time(&r, &picture, &expect))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for %lld captions",
                              (long long)s->count);
    heed_tensor *words = heed_embedding(t, m->words, b->read, s->rows,
                                        &(heed_embedding_options){.dropout = m->config.dropout});
    heed_tensor *gates =
        heed_linear_apply(t, &m->input, heed_gather_rows(t, words, s->to_time, s->rows));
    r.places = heed__caption_see(t, m, b->pixels, b->pictures, picture, s->count);
    heed_lstm_state state = heed__caption_begin(t, m, &r.places);
    for (int64_t i = 0; i < s->longest && !heed_tape_error(t)->status; i++) {
        const heed__caption_step now = heed__caption_step_on(
            t, m, &r.places, heed_slice_rows(t, gates, s->step_offset[i], s->step_offset[i + 1]),
            expect, &state);
        r.h[i] = now.h;
        r.z[i] = now.z;
        r.logs[i] = now.logs;
        r.chosen[i] = now.chosen_log_p;
        r.weights[i] = now.weights;
    }
    if (heed_tape_error(t)->status)
        return NULL;
    heed_tensor *hidden = heed__caption_output(t, m, words, packed(&r, r.h), packed(&r, r.z));
    heed_tensor *loss =
        heed_project_cross_entropy(t, hidden, m->out, m->bias, b->wanted, 0, weight, nll);
    if (where)
        *where = packed_places(&r, r.weights);
    heed_tensor *more = heed_tape_training(t) ? penalties(&r, hidden) : NULL;
    return more ? heed_add(t, loss, heed_scale(t, more, weight, 0)) : loss;
}
