/* ntm.c: the machine of "Neural Turing Machines" (Graves, Wayne, Danihelka 2014, arXiv 1410.5401),
 * section 3: a controller that reads and writes a memory through heads.
 *
 * What the paper leaves open, as public implementations that train reliably have it: the memory
 * starts at a constant 1e-6; the first read vector, the first weights (as a softmax) and the
 * controller's first state are learned; keys and add vectors pass through tanh; what the heads emit
 * is clipped to +-20.  All heads of a step address M_{t-1}.  N locations of M numbers, D units,
 * H = Hr + Hw heads, B sequences at once. */
#include "ntm.h"

#define MEMORY_START 1e-6
#define CLIP 20.0

/* ---- building ---- */

static int64_t heads_of(const ntm_sizes *s)
{
    return s->read_heads + s->write_heads;
}

/* Numbers that say where to move: one an offset, or one alone. */
static int64_t shift_width(const ntm_sizes *s)
{
    return s->shift == NTM_SHIFT_SOFTMAX ? 2 * s->reach + 1 : 1;
}

/* k, beta, g, gamma and s of every head, e and a of every write head. */
static int64_t emitted_width(const ntm_sizes *s)
{
    return heads_of(s) * (s->width + 3 + shift_width(s)) + s->write_heads * 2 * s->width;
}

static bool has_memory(const ntm *m)
{
    return m->sizes.arch != NTM_NO_MEMORY;
}

static void build_memory(ntm *m, heed_scope s)
{
    const ntm_sizes *z = &m->sizes;
    heed_init small = {HEED_INIT_NORMAL, 0.1};
    heed_linear_build(&m->heads, heed_scope_enter(s, "heads"), z->units, emitted_width(z),
                      HEED_IDENTITY, true);
    m->w_0 = heed_param(s, "w_0", HEED_SHAPE(heads_of(z), z->locations), small);
    m->r_0 = heed_param(s, "r_0", HEED_SHAPE(1, z->read_heads * z->width), small);
}

void ntm_build(ntm *m, heed_scope s, const ntm_sizes *sizes)
{
    *m = (ntm){.sizes = *sizes};
    bool recurrent = sizes->arch != NTM_FEED_FORWARD;
    int64_t read = has_memory(m) ? sizes->read_heads * sizes->width : 0;
    heed_init small = {HEED_INIT_NORMAL, 0.1};
    heed_scope controller = heed_scope_enter(s, "controller");
    if (recurrent) {
        heed_rnn_build(&m->lstm, controller,
                       &(heed_rnn_options){.cell = HEED_CELL_LSTM,
                                           .layers = (int)sizes->layers,
                                           .in = sizes->in + read,
                                           .d = sizes->units});
        heed_shape state = HEED_SHAPE(1, sizes->layers * sizes->units);
        m->h_0 = heed_param(s, "h_0", state, small);
        m->c_0 = heed_param(s, "c_0", state, small);
    } else {
        heed_linear_build(&m->feed_forward, controller, sizes->in + read, sizes->units, HEED_TANH,
                          true);
    }
    if (has_memory(m))
        build_memory(m, s);
    heed_linear_build(&m->output, heed_scope_enter(s, "output"), sizes->units + read, sizes->out,
                      HEED_IDENTITY, true);
}

/* ---- section 3.3: addressing ---- */

/* The next `width` columns of what the heads emit. */
static heed_tensor *take(heed_tape *t, heed_tensor *emitted, int64_t *at, int64_t width)
{
    *at += width;
    return heed_slice_cols(t, emitted, *at - width, *at);
}

/* s_t, one row for each sequence and head: a softmax over the offsets; or a real number x spread
 * over its two neighbours, s(floor x) = 1 - (x - floor x), s(floor x + 1) = x - floor x, which is
 * max(0, 1 - |x - offset|). */
static heed_tensor *shift_weights(heed_tape *t, const ntm_sizes *z, heed_tensor *emitted)
{
    int64_t rows = heed_tensor_rows(emitted) * heads_of(z), offsets = 2 * z->reach + 1;
    heed_tensor *x = heed_reshape(t, emitted, HEED_SHAPE(rows, shift_width(z)));
    if (z->shift == NTM_SHIFT_SOFTMAX)
        return heed_softmax(t, x);
    heed_real *offset =
        heed_arena_allocate(heed_tape_arena(t), (size_t)(rows * offsets) * sizeof *offset);
    if (!offset)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for offsets");
    for (int64_t i = 0; i < rows * offsets; i++)
        offset[i] = (heed_real)(i % offsets - z->reach);
    heed_tensor *from = heed_input(t, HEED_SHAPE(rows, offsets), offset);
    x = heed_scale(t, heed_tanh(t, x), (double)z->reach, 0);
    return heed_relu(t, heed_scale(t, heed_abs(t, heed_sub(t, from, x)), -1, 1));
}

/* Figure 2: content, interpolate, shift, sharpen, for all heads; then a write head's e and a. */
static void address(heed_tape *t, const ntm *m, ntm_state *state, heed_tensor *h,
                    heed_tensor **erase)
{
    const ntm_sizes *z = &m->sizes;
    int64_t heads = heads_of(z), at = 0, batch = heed_tensor_rows(h);
    heed_tensor *o = heed_clamp(t, heed_linear_apply(t, &m->heads, h), -CLIP, CLIP);
    heed_tensor *k = heed_tanh(t, take(t, o, &at, heads * z->width));
    heed_tensor *beta = heed_softplus(t, take(t, o, &at, heads));
    heed_tensor *g = heed_sigmoid(t, take(t, o, &at, heads));
    heed_tensor *gamma = heed_scale(t, heed_softplus(t, take(t, o, &at, heads)), 1, 1);
    heed_tensor *s = shift_weights(t, z, take(t, o, &at, heads * shift_width(z)));
    s = heed_reshape(t, s, HEED_SHAPE(batch, heads * (2 * z->reach + 1)));
    *erase = heed_sigmoid(t, take(t, o, &at, z->write_heads * z->width));
    state->add = heed_tanh(t, take(t, o, &at, z->write_heads * z->width));
    heed_tensor *content = heed_ntm_content(t, state->memory, k, beta);
    state->w = heed_ntm_location(t, content, state->w, g, s, gamma);
}

/* ---- sections 3.1 and 3.2: reading and writing ---- */

static void read_and_write(heed_tape *t, const ntm *m, ntm_state *state, heed_tensor *erase)
{
    const ntm_sizes *z = &m->sizes;
    int64_t read = z->read_heads * z->locations, all = heads_of(z) * z->locations;
    heed_tensor *before = state->memory;
    state->memory =
        heed_ntm_write(t, before, heed_slice_cols(t, state->w, read, all), erase, state->add);
    state->r = heed_ntm_read(t, heed_slice_cols(t, state->w, 0, read),
                             z->read_first ? before : state->memory);
}

/* ---- figure 1: a step ---- */

static heed_tensor *join(heed_tape *t, heed_tensor *a, heed_tensor *b)
{
    return heed_concat_cols(t, (heed_tensor *[]){a, b}, 2);
}

static heed_tensor *control(heed_tape *t, const ntm *m, ntm_state *state, heed_tensor *x)
{
    if (m->sizes.arch == NTM_FEED_FORWARD)
        return heed_linear_apply(t, &m->feed_forward, x);
    for (int64_t l = 0; l < m->sizes.layers; l++) {
        const heed_rnn_cell *cell = &m->lstm.cell[l][0];
        heed_tensor *gates = heed_linear_apply(t, &cell->input, x);
        state->lstm[l] = heed_lstm_step(t, gates, state->lstm[l], cell->recurrent);
        x = state->lstm[l].h;
    }
    return x;
}

heed_tensor *ntm_step(heed_tape *t, const ntm *m, ntm_state *state, heed_tensor *x)
{
    if (!has_memory(m))
        return control(t, m, state, x);
    heed_tensor *erase, *h = control(t, m, state, join(t, x, state->r));
    address(t, m, state, h, &erase);
    read_and_write(t, m, state, erase);
    return join(t, h, state->r);
}

/* Row 0 of x, B times. */
static heed_tensor *for_all(heed_tape *t, heed_tensor *x, int64_t batch)
{
    int32_t *first = heed_arena_allocate(heed_tape_arena(t), (size_t)batch * sizeof *first);
    if (!first)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for the start of a sequence");
    for (int64_t b = 0; b < batch; b++)
        first[b] = 0;
    return heed_gather_rows(t, x, first, batch);
}

void ntm_start(heed_tape *t, const ntm *m, int64_t batch, ntm_state *state)
{
    const ntm_sizes *z = &m->sizes;
    *state = (ntm_state){0};
    for (int64_t l = 0; l < z->layers && m->h_0; l++) {
        int64_t from = l * z->units, to = from + z->units;
        state->lstm[l].h = for_all(t, heed_slice_cols(t, m->h_0, from, to), batch);
        state->lstm[l].c = for_all(t, heed_slice_cols(t, m->c_0, from, to), batch);
    }
    if (!has_memory(m))
        return;
    heed_shape all = HEED_SHAPE(1, heads_of(z) * z->locations);
    heed_tensor *empty = heed_input(t, HEED_SHAPE(batch, z->width, z->locations), NULL);
    state->memory = heed_scale(t, empty, 1, MEMORY_START);
    state->w = for_all(t, heed_reshape(t, heed_softmax(t, m->w_0), all), batch);
    state->r = for_all(t, m->r_0, batch);
}

heed_tensor *ntm_answer(heed_tape *t, const ntm *m, const ntm_batch *b, ntm_state *watch)
{
    int64_t scored = b->steps - b->first;
    heed_tensor **said = heed_arena_allocate(heed_tape_arena(t), (size_t)scored * sizeof *said);
    if (!said)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for a sequence");
    heed_tensor *x = heed_input(t, HEED_SHAPE(b->steps * b->batch, b->in), b->x);
    ntm_state state;
    ntm_start(t, m, b->batch, &state);
    for (int64_t i = 0; i < b->steps; i++) {
        heed_tensor *now = heed_slice_rows(t, x, i * b->batch, (i + 1) * b->batch);
        heed_tensor *y = ntm_step(t, m, &state, now);
        if (i >= b->first)
            said[i - b->first] = y;
        if (watch)
            watch[i] = state;
    }
    return heed_linear_apply(t, &m->output, heed_concat_rows(t, said, (int)scored));
}
