/* pointer.c: the network of "Pointer Networks" (Vinyals, Fortunato, Jaitly 2015, arXiv 1506.03134).
 *
 * Section 2.3, equation 3:  u^i_j = v^T tanh(W1 e_j + W2 d_i),  p(C_i | C_1 .. C_{i-1}, P) =
 * softmax(u^i), over the positions of the input, however many there are: a network trained on five
 * points answers about fifty.  What the decoder is shown next is the input at the place pointed to,
 * not a mixture of the encoder's states.
 *
 * The answer's end is one more input, a row of its own behind the points, marked in a column of its
 * own. */
#include "pointer.h"

void pointer_build(pointer_net *net, heed_scope s, pointer_task task, int64_t units)
{
    *net = (pointer_net){.in = pointer_channels(task) + 1};
    heed_rnn_options lstm = {.cell = HEED_CELL_LSTM, .layers = 1, .in = net->in, .d = units};
    heed_rnn_build(&net->encoder, heed_scope_enter(s, "encoder"), &lstm);
    heed_rnn_build(&net->decoder, heed_scope_enter(s, "decoder"), &lstm);
    net->go = heed_param(s, "go", HEED_SHAPE(1, net->in), (heed_init){HEED_INIT_NORMAL, 0.1});
    heed_attend_build(
        &net->attend, heed_scope_enter(s, "attend"),
        &(heed_attend_options){.score = HEED_SCORE_ADDITIVE, .query_d = units, .key_d = units});
}

bool pointer_pack(heed_tape *t, pointer_task task, const pointer_example *examples, int64_t count,
                  pointer_batch *b)
{
    heed_arena *arena = heed_tape_arena(t);
    int64_t channels = pointer_channels(task), in = channels + 1;
    int64_t *lengths = heed_arena_allocate(arena, (size_t)(2 * count) * sizeof *lengths);
    if (!lengths)
        return false;
    for (int64_t i = 0; i < count; i++) {
        lengths[i] = examples[i].n + pointer_ends(task);
        lengths[count + i] = examples[i].answers;
    }
    *b = (pointer_batch){.examples = examples,
                         .count = count,
                         .shown = heed_segments_new(arena, count, lengths),
                         .answered = heed_segments_new(arena, count, lengths + count)};
    if (!b->shown || !b->answered)
        return false;
    b->x = heed_input(t, HEED_SHAPE(b->shown->rows, in), NULL);
    heed_real *to = heed_tensor_data(b->x);
    for (int64_t i = 0; to && i < count; i++) {
        for (int64_t j = 0; j < examples[i].n; j++, to += in)
            for (int64_t c = 0; c < channels; c++)
                to[c] = examples[i].points[j * channels + c];
        if (pointer_ends(task)) {
            to[channels] = 1;
            to += in;
        }
    }
    return b->x;
}

/* e_1 .. e_n, made into W1 e_j once for all steps; the last state goes to the decoder. */
heed_memory pointer_encode(heed_tape *t, const pointer_net *net, const pointer_batch *b,
                           heed_rnn_state *end)
{
    heed_tensor *e = heed_rnn_apply(t, &net->encoder, b->x, b->shown, NULL, end);
    return heed_attend_memory(t, &net->attend, e, NULL, b->shown);
}

heed_tensor *pointer_decode(heed_tape *t, const pointer_net *net, const pointer_batch *b,
                            const heed_memory *memory, const int32_t *shown,
                            const heed_segments *steps, const heed_segments *queries,
                            const heed_rnn_state *start, heed_rnn_state *end)
{
    int32_t *rows = heed_arena_allocate(heed_tape_arena(t), (size_t)steps->rows * sizeof *rows);
    if (!rows)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for a batch");
    for (int64_t i = 0; i < steps->rows; i++)
        rows[i] = shown[i] < 0 ? (int32_t)b->shown->rows : shown[i];
    heed_tensor *inputs = heed_concat_rows(t, (heed_tensor *[]){b->x, net->go}, 2);
    heed_tensor *d = heed_rnn_apply(
        t, &net->decoder, heed_gather_rows(t, inputs, rows, steps->rows), steps, start, end);
    heed_tensor *log_p;
    heed_attend(t, &net->attend, d, memory, queries, &(heed_attend_extra){.log_weights = &log_p});
    return log_p;
}

/* For each answer the row of x that the decoder is shown, which is the answer before it, and where
 * among all pairs of an answer and a row its own log-probability stands. */
static bool places(heed_tape *t, const pointer_batch *b, int32_t **shown, int32_t **pairs)
{
    size_t bytes = (size_t)b->answered->rows * sizeof **shown;
    *shown = heed_arena_allocate(heed_tape_arena(t), bytes);
    *pairs = heed_arena_allocate(heed_tape_arena(t), bytes);
    if (!*shown || !*pairs)
        return false;
    int64_t block = 0, at = 0;
    for (int64_t k = 0; k < b->count; k++) {
        const pointer_example *e = &b->examples[k];
        int64_t first = b->shown->offset[k], rows = b->shown->offset[k + 1] - first;
        for (int64_t i = 0; i < e->answers; i++, at++) {
            (*shown)[at] = i == 0 ? -1 : (int32_t)(first + e->answer[i - 1]);
            (*pairs)[at] = (int32_t)(block + i * rows + e->answer[i]);
        }
        block += e->answers * rows;
    }
    return true;
}

heed_tensor *pointer_loss(heed_tape *t, const pointer_net *net, const pointer_batch *b)
{
    int32_t *shown, *pairs;
    heed_rnn_state state;
    if (!places(t, b, &shown, &pairs))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for a batch");
    heed_memory memory = pointer_encode(t, net, b, &state);
    heed_tensor *log_p =
        pointer_decode(t, net, b, &memory, shown, b->answered, b->answered, &state, NULL);
    heed_tensor *column = heed_reshape(t, log_p, HEED_SHAPE(heed_tensor_count(log_p), 1));
    heed_tensor *chosen = heed_gather_rows(t, column, pairs, b->answered->rows);
    return heed_scale(t, heed_sum(t, chosen, HEED_ALL), -1, 0);
}
