/* rnn_sentences.c: a recurrent translator over whole sentences, as training and pictures want it.
 *
 * Where nothing goes back from attention into the stack, the stack runs over all words and then all
 * words look.  Else step by step: sentences in the time-major order of the target, so that those
 * that go on are always the first, and the source brought into the same order; a step is a few
 * products over all of them. */
#include "model/kept.h"
#include "model/rnn.h"

#include <string.h>

static heed_tensor *at_once(const heed__rnn *m, heed_tape *t, const heed_batch *batch,
                            heed_tensor *h, const heed__rnn_state *start, heed__rnn_output *out)
{
    const heed_segments *target = batch->target.rows;
    heed_tensor *y = heed_embedding_apply(t, &m->target, batch->target.ids, target);
    out->s = heed_rnn_apply(t, &m->decoder, y, target, &start->layers, NULL);
    if (m->attends) {
        heed__rnn_input in = {.memory = heed_attend_memory(t, &m->attend, h, h, batch->source.rows),
                              .queries = target};
        heed_tensor *c = heed__rnn_look(m, t, out->s, &in, out);
        out->attended = heed__rnn_attentional(m, t, c, out->s);
    }
    return m->read(m, t, y, out);
}

struct steps {
    const heed__rnn *m;
    heed_tape *t;
    const heed_segments *source, *target;
    heed__rnn_state state;
    heed_memory memory;    /* of all sentences, in their new order */
    int64_t *lengths;      /* (B) of the sources, in that order */
    heed__rnn_output *out; /* (T) */
};

/* The source's rows as the target's order has them; NULL when memory is short. */
static const int32_t *source_order(struct steps *s)
{
    heed_arena *arena = heed_tape_arena(s->t);
    const heed_segments *source = s->source;
    int32_t *row = heed_arena_allocate(arena, (size_t)source->rows * sizeof *row);
    s->lengths = heed_arena_allocate(arena, (size_t)source->count * sizeof *s->lengths);
    int64_t n = 0;
    for (int64_t p = 0; row && s->lengths && p < source->count; p++) {
        const int32_t b = s->target->order[p];
        for (int64_t i = source->offset[b]; i < source->offset[b + 1]; i++)
            row[n++] = (int32_t)i;
        s->lengths[p] = source->offset[b + 1] - source->offset[b];
    }
    return s->lengths ? row : NULL;
}

static bool steps_begin(struct steps *s, heed_tensor *h, const heed__rnn_state *start)
{
    heed_tape *t = s->t;
    const int32_t *row = source_order(s);
    const size_t bytes = (size_t)s->target->longest * sizeof *s->out;
    s->out = heed_arena_allocate(heed_tape_arena(t), bytes);
    if (!row || !s->out) {
        heed_tape_fail(t, HEED_MEMORY, "no memory for %lld steps", (long long)s->target->longest);
        return false;
    }
    memset(s->out, 0, bytes);
    h = heed_gather_rows(t, h, row, s->source->rows);
    s->memory = heed_attend_memory(t, &s->m->attend, h, h, NULL);
    s->state = *start;
    for (int k = 0; k < s->m->decoder.options.layers; k++) {
        heed_lstm_state *at = &s->state.layers.at[k][0];
        at->h = heed_gather_rows(t, at->h, s->target->order, s->target->count);
        if (at->c)
            at->c = heed_gather_rows(t, at->c, s->target->order, s->target->count);
    }
    return true;
}

/* The first n sentences' sources, a query each, and the step's number for each. */
static void see(const struct steps *s, int64_t n, int64_t step, heed__rnn_input *in)
{
    heed_tape *t = s->t;
    heed_arena *arena = heed_tape_arena(t);
    int32_t *place = heed_arena_allocate(arena, (size_t)n * sizeof *place);
    for (int64_t i = 0; place && i < n; i++)
        place[i] = (int32_t)step;
    in->place = place;
    if (place && in->queries && in->queries->count == n)
        return;
    in->queries = heed__equal_segments(t, n, 1);
    in->memory.segments = heed_segments_new(arena, n, s->lengths);
    if (!place || !in->queries || !in->memory.segments) {
        heed_tape_fail(t, HEED_MEMORY, "no memory for %lld sentences", (long long)n);
        return;
    }
    in->memory.keys = heed_slice_rows(t, s->memory.keys, 0, in->memory.segments->rows);
    in->memory.values = heed_slice_rows(t, s->memory.values, 0, in->memory.segments->rows);
}

/* Member `at` of every step's output below each other, (N,...) in the time-major order. */
static heed_tensor *collect(const struct steps *s, size_t at)
{
    const int64_t n = s->target->longest;
    heed_tensor **x = heed_arena_allocate(heed_tape_arena(s->t), (size_t)n * sizeof *x);
    if (!x)
        return heed_tape_fail(s->t, HEED_MEMORY, "no memory for %lld steps", (long long)n);
    for (int64_t i = 0; i < n; i++)
        memcpy(&x[i], (const char *)&s->out[i] + at, sizeof *x);
    return x[0] ? heed_concat_rows(s->t, x, (int)n) : NULL;
}

static heed_tensor *packed(const struct steps *s, heed_tensor *x)
{
    return x ? heed_gather_rows(s->t, x, s->target->to_packed, s->target->rows) : NULL;
}

/* Weights of single steps as the whole sentences' (T,S) blocks. */
static heed_tensor *weights_of(const struct steps *s)
{
    int64_t count = 0;
    for (int64_t p = 0; p < s->target->count; p++) {
        const int32_t b = s->target->order[p];
        count += (s->target->offset[b + 1] - s->target->offset[b]) * s->lengths[p];
    }
    heed_tensor *all = heed_input(s->t, HEED_SHAPE(count), NULL);
    heed_real *to = heed_tensor_data(all);
    for (int64_t b = 0; to && b < s->target->count; b++) {
        const int64_t p = s->target->slot[b], keys = s->lengths[p];
        int64_t before = 0;
        for (int64_t i = 0; i < p; i++)
            before += s->lengths[i];
        for (int64_t i = 0; i < s->target->offset[b + 1] - s->target->offset[b]; i++, to += keys)
            memcpy(to, heed_tensor_data(s->out[i].weights) + before, (size_t)keys * sizeof *to);
    }
    return all;
}

static heed_tensor *step_by_step(const heed__rnn *m, heed_tape *t, const heed_batch *batch,
                                 heed_tensor *h, const heed__rnn_state *start, bool seen,
                                 heed__rnn_output *out)
{
    struct steps s = {.m = m, .t = t, .source = batch->source.rows, .target = batch->target.rows};
    if (heed_tape_error(t)->status || !steps_begin(&s, h, start))
        return NULL;
    heed_tensor *y = heed_embedding_apply(t, &m->target, batch->target.ids, s.target);
    y = heed_gather_rows(t, y, s.target->to_time, s.target->rows);
    heed_tensor *gates = heed__rnn_gates(m, t, y);
    heed__rnn_input in = {.queries = NULL};
    for (int64_t i = 0; i < s.target->longest && !heed_tape_error(t)->status; i++) {
        const int64_t begin = s.target->step_offset[i], end = s.target->step_offset[i + 1];
        in.gates = heed_slice_rows(t, gates, begin, end);
        see(&s, end - begin, i, &in);
        m->step(m, t, &in, &s.state, &s.out[i]);
    }
    if (heed_tape_error(t)->status)
        return NULL;
    out->s = collect(&s, offsetof(heed__rnn_output, s));
    out->c = collect(&s, offsetof(heed__rnn_output, c));
    out->attended = collect(&s, offsetof(heed__rnn_output, attended));
    out->chosen_log_p = packed(&s, collect(&s, offsetof(heed__rnn_output, chosen_log_p)));
    out->weights = seen ? weights_of(&s) : NULL;
    return packed(&s, m->read(m, t, y, out));
}

/* choices receives the log-probabilities of what hard attention drew, (N,1), or NULL. */
static heed_tensor *hidden(const heed_model *model, heed_tape *t, const heed_batch *batch,
                           heed_attention_recorder *recorder, heed_tensor **choices)
{
    const heed__rnn *m = model->parts;
    heed__rnn_output out = {0};
    heed__rnn_state start;
    heed_tensor *h = heed__rnn_encode(m, t, batch, &start);
    h = m->by_steps ? step_by_step(m, t, batch, h, &start, recorder != NULL, &out)
                    : at_once(m, t, batch, h, &start, &out);
    if (m->attends)
        heed_attention_recorder_add(recorder, t,
                                    (heed_attention_record){.kind = HEED_CROSS,
                                                            .heads = 1,
                                                            .queries = batch->target.rows,
                                                            .keys = batch->source.rows,
                                                            .probabilities = out.weights});
    *choices = out.chosen_log_p;
    return h;
}

heed_tensor *heed__rnn_hidden(const heed_model *model, heed_tape *t, const heed_batch *batch,
                              heed__forward *f)
{
    heed_tensor *choices;
    return hidden(model, t, batch, f->recorder, &choices);
}

/* What hard attention drew is rewarded with the log-probability of each word from there on. */
heed_tensor *heed__rnn_loss(const heed_model *model, heed_tape *t, const heed_batch *batch,
                            double weight, double *nll)
{
    const heed__rnn *m = model->parts;
    heed_tensor *choices, *h = hidden(model, t, batch, NULL, &choices); /* (N,D) */
    heed_tensor *loss = heed__model_answer_loss(model, t, h, batch, weight, nll);
    if (!choices || !heed_tape_training(t))
        return loss;
    if (batch->wanted_row)
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "hard attention needs an answer at every row to reward its choices");
    heed_tensor *rewards = heed__model_answer_log_p(model, t, h, batch);
    return heed_add(t, loss,
                    heed_reinforce(t, &m->choice, choices, heed_tensor_data(rewards),
                                   batch->target.rows, weight));
}
