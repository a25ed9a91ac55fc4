/* recurrent_layer.c: stacks of LSTM or GRU layers over packed segments.  x (N,in) -> (N,D) or
 * (N,2D).
 *
 * The whole stack works on the time-major view: one product computes the inputs' part of the gates
 * for all steps of a layer, then each step uses the rows of the sentences still active, always the
 * first ones.  The backward direction reads the same rows mirrored: each sentence from its own last
 * token to its first, so there is no padding.  Initial values: input weights Xavier, recurrent ones
 * orthogonal, biases zero, the LSTM's forget gate 1. */
#include "nn/params.h"

/* What one application needs besides its layer. */
struct view {
    heed_tape *t;
    const heed_segments *s;
    const int32_t
        *mirror;         /* (N) time-major row -> row of the sentence's token from the other end */
    const int32_t *last; /* (B) sentence -> time-major row of its last step; if empty, N + slot */
};

static int gates(const heed_rnn_options *o)
{
    return o->cell == HEED_CELL_LSTM ? 4 : 3;
}

/* ---- building ---- */

/* Zeros, and ones for f of i f g o: an untrained LSTM does not forget. */
static void fill_lstm_bias(heed_real *values, int64_t rows, int64_t cols)
{
    int64_t d = cols / 4;
    for (int64_t j = 0; j < rows * cols; j++)
        values[j] = j / d == 1;
}

static void build_cell(heed_rnn_cell *cell, heed_scope s, const heed_rnn_options *o, int64_t in)
{
    int64_t width = gates(o) * o->d;
    heed_init orthogonal = {HEED_INIT_ORTHOGONAL, 1}, zero = {HEED_INIT_ZERO, 0};
    heed_scope input = heed_scope_enter(s, "input");
    heed_linear_build(&cell->input, input, in, width, HEED_IDENTITY, false);
    cell->input.bias = o->cell == HEED_CELL_LSTM
                           ? heed__param_filled(input, "bias", HEED_SHAPE(width), fill_lstm_bias)
                           : heed_param(input, "bias", HEED_SHAPE(width), zero);
    cell->recurrent =
        heed_param_with_role(s, "recurrent", HEED_SHAPE(o->d, width), orthogonal, HEED_ROLE_MATRIX);
    if (o->cell == HEED_CELL_GRU && o->gru_kind & HEED_GRU_RESET_AFTER)
        cell->bias = heed_param(s, "bias", HEED_SHAPE(width), zero);
}

void heed_rnn_build(heed_rnn_layer *l, heed_scope s, const heed_rnn_options *options)
{
    if (!l)
        return;
    *l = (heed_rnn_layer){.options = *options};
    if (options->layers < 1 || options->layers > HEED_RNN_MAX_LAYERS) {
        heed__scope_fail(s, HEED_ARGUMENT, "rnn '%s': %d layers, expected 1 to %d", s.path,
                         options->layers, HEED_RNN_MAX_LAYERS);
        l->options.layers = 0;
        return;
    }
    int directions = options->bidirectional ? 2 : 1;
    static const char *const names[2] = {"forward", "backward"};
    for (int k = 0; k < options->layers; k++)
        for (int way = 0; way < directions; way++)
            build_cell(&l->cell[k][way], heed_scope_enter(s, "%d.%s", k, names[way]), options,
                       k == 0 ? options->in : directions * options->d);
}

/* ---- applying ---- */

static bool make_view(struct view *v)
{
    const heed_segments *s = v->s;
    heed_arena *arena = heed_tape_arena(v->t);
    int32_t *mirror = heed_arena_allocate(arena, (size_t)s->rows * sizeof *mirror);
    int32_t *last = heed_arena_allocate(arena, (size_t)s->count * sizeof *last);
    if (!mirror || !last)
        return false;
    for (int64_t b = 0; b < s->count; b++) {
        int64_t begin = s->offset[b], end = s->offset[b + 1];
        for (int64_t n = begin; n < end; n++)
            mirror[s->to_packed[n]] = s->to_packed[begin + end - 1 - n];
        last[b] = end > begin ? s->to_packed[end - 1] : (int32_t)s->rows + s->slot[b];
    }
    v->mirror = mirror;
    v->last = last;
    return true;
}

/* An initial state in the order of the view; zeros if none is given. */
static heed_tensor *start_state(const struct view *v, heed_tensor *x, int64_t d)
{
    if (!x)
        return heed_input(v->t, HEED_SHAPE(v->s->count, d), NULL);
    return heed_gather_rows(v->t, x, v->s->order, v->s->count);
}

/* The state after each sentence's last step, (B,D) in the sentences' order.  steps holds the T
 * states of a layer and, after them, the initial one: the state of an empty sentence. */
static heed_tensor *end_state(const struct view *v, heed_tensor *const *steps)
{
    heed_tensor *all = heed_concat_rows(v->t, steps, (int)v->s->longest + 1);
    return heed_gather_rows(v->t, all, v->last, v->s->count);
}

static heed_lstm_state step_cell(heed_tape *t, const heed_rnn_options *o, const heed_rnn_cell *cell,
                                 heed_tensor *gates, heed_lstm_state state)
{
    if (o->cell == HEED_CELL_LSTM)
        return heed_lstm_step(t, gates, state, cell->recurrent);
    state.h = heed_gru_step(t, gates, state.h, cell->recurrent, cell->bias, o->gru_kind);
    return state;
}

/* One layer in one direction over the rows of x in their order, (N,in) -> (N,D). */
static heed_tensor *run_cell(const struct view *v, const heed_rnn_options *o,
                             const heed_rnn_cell *cell, heed_tensor *x, heed_lstm_state start,
                             heed_lstm_state *end)
{
    heed_tape *t = v->t;
    int64_t steps = v->s->longest;
    bool lstm = o->cell == HEED_CELL_LSTM;
    size_t bytes = (size_t)(steps + 1) * sizeof(heed_tensor *);
    heed_tensor **h = heed_arena_allocate(heed_tape_arena(t), bytes);
    heed_tensor **c = heed_arena_allocate(heed_tape_arena(t), bytes);
    if (!h || !c)
        return heed_tape_fail(t, HEED_MEMORY, "rnn: no memory for %lld steps", (long long)steps);

    heed_tensor *inputs = heed_linear_apply(t, &cell->input, x); /* (N,4D) or (N,3D) */
    heed_lstm_state state = {start_state(v, start.h, o->d),
                             lstm ? start_state(v, start.c, o->d) : NULL};
    h[steps] = state.h;
    c[steps] = state.c;
    for (int64_t i = 0; i < steps; i++) {
        heed_tensor *now =
            heed_slice_rows(t, inputs, v->s->step_offset[i], v->s->step_offset[i + 1]);
        state = step_cell(t, o, cell, now, state);
        h[i] = state.h;
        c[i] = state.c;
    }
    if (end)
        *end = (heed_lstm_state){end_state(v, h), lstm ? end_state(v, c) : NULL};
    return heed_concat_rows(t, h, (int)steps);
}

/* Both directions of layer k, side by side. */
static heed_tensor *run_layer(const struct view *v, const heed_rnn_layer *l, int k, heed_tensor *x,
                              const heed_rnn_state *start, heed_rnn_state *end)
{
    static const heed_lstm_state none = {NULL, NULL};
    const heed_rnn_options *o = &l->options;
    heed_tensor *ways[2];
    ways[0] = run_cell(v, o, &l->cell[k][0], x, start ? start->at[k][0] : none,
                       end ? &end->at[k][0] : NULL);
    if (!o->bidirectional)
        return ways[0];
    heed_tensor *mirrored = heed_gather_rows(v->t, x, v->mirror, v->s->rows);
    ways[1] = run_cell(v, o, &l->cell[k][1], mirrored, start ? start->at[k][1] : none,
                       end ? &end->at[k][1] : NULL);
    ways[1] = heed_gather_rows(v->t, ways[1], v->mirror, v->s->rows);
    return heed_concat_cols(v->t, ways, 2);
}

heed_tensor *heed_rnn_apply(heed_tape *t, const heed_rnn_layer *l, heed_tensor *x,
                            const heed_segments *s, const heed_rnn_state *start,
                            heed_rnn_state *end)
{
    const heed_rnn_options *o = &l->options;
    if (end)
        *end = (heed_rnn_state){0};
    if (heed_tape_error(t)->status)
        return NULL;
    if (!s || s->rows < 1)
        return heed_tape_fail(t, HEED_ARGUMENT, "rnn: no segments, or none with a row");
    if (x && heed_tensor_rows(x) != s->rows)
        return heed_tape_fail(t, HEED_SHAPE_ERROR, "rnn: x has %lld rows, the segments %lld",
                              (long long)heed_tensor_rows(x), (long long)s->rows);
    struct view v = {.t = t, .s = s};
    if (!make_view(&v))
        return heed_tape_fail(t, HEED_MEMORY, "rnn: no memory for %lld rows", (long long)s->rows);
    x = heed_gather_rows(t, x, s->to_time, s->rows);
    for (int k = 0; k < o->layers; k++) {
        if (k > 0 && o->dropout > 0)
            x = heed_dropout(t, x, o->dropout);
        x = run_layer(&v, l, k, x, start, end);
    }
    return heed_gather_rows(t, x, s->to_packed, s->rows);
}

heed_tensor *heed_rnn_step(heed_tape *t, const heed_rnn_layer *l, heed_tensor *gates,
                           heed_rnn_state *state)
{
    if (!t)
        return NULL;
    const heed_rnn_options *o = &l->options;
    for (int k = 0; k < o->layers; k++) {
        const heed_rnn_cell *cell = &l->cell[k][0];
        if (k > 0)
            gates = heed_linear_apply(t, &cell->input,
                                      heed_dropout(t, state->at[k - 1][0].h, o->dropout));
        state->at[k][0] = step_cell(t, o, cell, gates, state->at[k][0]);
    }
    return o->layers ? state->at[o->layers - 1][0].h : NULL;
}
