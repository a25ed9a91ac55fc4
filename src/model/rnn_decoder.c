/* rnn_decoder.c: a recurrent translator one token at a time.
 *
 * Kept from start to start: the source's keys and values, shared by all rows of a sentence.  Kept
 * from step to step: one row for each hypothesis, its layers' states and h~ side by side.
 * A step copies each row from its parent's, so reordering costs nothing of its own. */
#include "model/kept.h"
#include "model/rnn.h"

#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor_fields.h"
#include <string.h>

/* The state of a hypothesis: this many tensors of D columns. */
#define MOST_PARTS (2 * HEED_RNN_MAX_LAYERS + 1)

struct caches {
    heed__sources sources;
    heed__kept keys, values; /* (M,...); keys are empty where they are the values */
    int64_t key_cols, value_cols;
    heed__kept rows; /* (rows,parts,D) */
};

/* The tensors of a state, in the order in which they are kept; how many there are. */
static int parts_of(const heed__rnn *m, heed__rnn_state *state, heed_tensor **part[MOST_PARTS])
{
    int n = 0;
    for (int k = 0; k < m->decoder.options.layers; k++) {
        part[n++] = &state->layers.at[k][0].h;
        if (m->decoder.options.cell == HEED_CELL_LSTM)
            part[n++] = &state->layers.at[k][0].c;
    }
    if (m->feeds)
        part[n++] = &state->fed;
    return n;
}

static heed_status open(heed_decoder *d, heed_error *err)
{
    d->parts = heed__allocate_zeroed(&d->allocator, 1, sizeof(struct caches));
    return d->parts ? HEED_OK : heed__fail(err, HEED_MEMORY, "no memory for a decoder");
}

static void close(heed_decoder *d)
{
    struct caches *c = d->parts;
    if (!c)
        return;
    heed__kept_free(d, &c->keys);
    heed__kept_free(d, &c->values);
    heed__kept_free(d, &c->rows);
    heed__sources_free(d, &c->sources);
    heed__release(&d->allocator, c, 1, sizeof *c);
}

static bool keep(const heed_decoder *d, heed__kept *k, const heed_tensor *x, int64_t *cols)
{
    const int64_t count = heed_tensor_count(x);
    if (!heed__kept_reserve(d, k, count))
        return false;
    memcpy(k->at, x->data, (size_t)count * sizeof *k->at);
    *cols = x->cols;
    return true;
}

/* Writes the state's rows where the next step finds them. */
static bool keep_state(const heed_decoder *d, heed__rnn_state *state)
{
    const heed__rnn *m = d->model->parts;
    struct caches *c = d->parts;
    heed_tensor **part[MOST_PARTS];
    const int n = parts_of(m, state, part);
    const int64_t width = m->decoder.options.d, rows = heed_tensor_rows(*part[0]);
    if (!heed__kept_reserve(d, &c->rows, rows * n * width))
        return false;
    for (int64_t r = 0; r < rows; r++)
        for (int i = 0; i < n; i++)
            memcpy(c->rows.at + (r * n + i) * width, heed__row(*part[i], r),
                   (size_t)width * sizeof(heed_real));
    return true;
}

static void start(heed_decoder *d, const heed_batch *batch)
{
    const heed__rnn *m = d->model->parts;
    struct caches *c = d->parts;
    heed__rnn_state first;
    heed_tensor *h = heed__rnn_encode(m, d->tape, batch, &first);
    heed_memory memory = {0};
    if (m->attends)
        memory = heed_attend_memory(d->tape, &m->attend, h, h, NULL);
    if (heed_tape_error(d->tape)->status)
        return;
    bool kept = heed__sources_keep(d, &c->sources, batch->source.rows) && keep_state(d, &first);
    if (kept && memory.values)
        kept = keep(d, &c->values, memory.values, &c->value_cols);
    c->key_cols = 0;
    if (kept && memory.keys != memory.values)
        kept = keep(d, &c->keys, memory.keys, &c->key_cols);
    if (!kept)
        heed_tape_fail(d->tape, HEED_MEMORY, "no memory to decode %lld source tokens",
                       (long long)batch->source.rows->rows);
}

/* Each row as its parent left it. */
static void find_state(const heed_decoder *d, heed__rnn_state *state)
{
    const heed__rnn *m = d->model->parts;
    const struct caches *c = d->parts;
    heed_tensor **part[MOST_PARTS];
    const int n = parts_of(m, state, part);
    const int64_t width = m->decoder.options.d;
    for (int i = 0; i < n; i++) {
        heed_tensor *x = *part[i] = heed_input(d->tape, HEED_SHAPE(d->rows, width), NULL);
        for (int64_t r = 0; x && r < d->rows; r++)
            memcpy(heed__row(x, r), c->rows.at + (d->row[r].parent * n + i) * width,
                   (size_t)width * sizeof(heed_real));
    }
}

static void find_memory(const heed_decoder *d, heed__rnn_input *in)
{
    const struct caches *c = d->parts;
    heed_tape *t = d->tape;
    int32_t *place = heed_arena_allocate(heed_tape_arena(t), (size_t)d->rows * sizeof *place);
    for (int64_t r = 0; place && r < d->rows; r++)
        place[r] = (int32_t)d->length;
    in->place = place;
    in->queries = heed__rows_of_sources(d);
    in->memory.segments = heed__sources_segments(d, &c->sources);
    in->memory.values = heed__kept_tensor(t, c->values.at, c->sources.rows, c->value_cols);
    in->memory.keys = c->key_cols ? heed__kept_tensor(t, c->keys.at, c->sources.rows, c->key_cols)
                                  : in->memory.values;
    if (!place || !in->queries || !in->memory.segments)
        heed_tape_fail(t, HEED_MEMORY, "no memory to decode token %lld of %lld rows",
                       (long long)d->length + 1, (long long)d->rows);
}

static heed_tensor *step(heed_decoder *d, const int32_t *token)
{
    const heed__rnn *m = d->model->parts;
    heed_tape *t = d->tape;
    heed__rnn_state state = {.fed = NULL};
    heed__rnn_input in = {.y = heed_embedding(t, m->target.table, token, d->rows,
                                              &(heed_embedding_options){.scale = m->target.scale})};
    heed__rnn_output out = {0};
    in.gates = heed__rnn_gates(m, t, in.y);
    find_state(d, &state);
    if (m->attends)
        find_memory(d, &in);
    if (heed_tape_error(t)->status)
        return NULL;
    m->step(m, t, &in, &state, &out);
    heed_tensor *h = m->read(m, t, in.y, &out);
    if (h && !keep_state(d, &state))
        return heed_tape_fail(t, HEED_MEMORY, "no memory to decode %lld rows", (long long)d->rows);
    return h;
}

const heed__decoder_class heed__rnn_decoder = {open, close, start, step};
