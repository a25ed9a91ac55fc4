/* lstmn.c: Cheng, Dong, Lapata 2016, "Long Short-Term Memory-Networks for Machine Reading" (arXiv
 * 1601.06733), section 3:
 *
 *   a_i = v . tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1}),  s = softmax(a)          (4, 5)
 *   h~_t = sum_i s_i h_i,  c~_t = sum_i s_i c_i,  i = 1 .. t-1                  (6)
 *   [i f o c^] = W [h~_t, x_t],  c_t = f c~_t + i c^,  h_t = o tanh(c_t)        (7 to 9)
 *
 * An LSTM has one memory, which it overwrites; this one keeps a tape of all it has had, h and c of
 * each step, and looks back at it.  The first step looks at a slot of zeros.  The cost grows with
 * the square of the length; `window` bounds it.
 *
 * Section 4, reading another sequence with the tapes gamma and alpha: gamma~_t and alpha~_t are
 * summed with weights p over its steps.  Deep fusion:  r = sigma(W_r [gamma~_t, x_t]),
 * c_t = r alpha~_t + f c~_t + i c^.  Shallow fusion leaves the recurrence alone: tanh(W [h_t,
 * gamma~_t]) is what it gives. */
#include "lstmn.h"

/* ---- declaring ---- */

static void build_look(lstmn_look *l, heed_scope s, int64_t in, int64_t d, bool summary)
{
    heed_linear_build(&l->key, heed_scope_enter(s, "key"), d, d, HEED_IDENTITY, false);
    heed_linear_build(&l->x, heed_scope_enter(s, "x"), in, d, HEED_IDENTITY, true);
    if (summary)
        heed_linear_build(&l->summary, heed_scope_enter(s, "summary"), d, d, HEED_IDENTITY, false);
    l->v = heed_param(s, "v", HEED_SHAPE(d), (heed_init){HEED_INIT_UNIFORM, 0.5});
}

void lstmn_build(lstmn_layer *l, heed_scope s, const lstmn_sizes *sizes)
{
    const int64_t in = sizes->in, d = sizes->d;
    *l = (lstmn_layer){.sizes = *sizes};
    heed_rnn_build(&l->lstm, heed_scope_enter(s, "lstm"),
                   &(heed_rnn_options){.cell = HEED_CELL_LSTM, .layers = 1, .in = in, .d = d});
    if (sizes->attention)
        build_look(&l->intra, heed_scope_enter(s, "intra"), in, d, sizes->summary);
    if (sizes->fusion == LSTMN_ALONE)
        return;
    build_look(&l->inter, heed_scope_enter(s, "inter"), in, d, sizes->summary);
    if (sizes->fusion == LSTMN_DEEP)
        heed_linear_build(&l->gate, heed_scope_enter(s, "gate"), d + in, d, HEED_SIGMOID, true);
    else
        heed_linear_build(&l->joined, heed_scope_enter(s, "joined"), 2 * d, d, HEED_TANH, true);
}

/* ---- computing ---- */

/* What runs through the steps of a layer; arrays have a tensor a step. */
struct run {
    heed_tape *t;
    const lstmn_layer *l;
    const heed_segments *s;
    heed_tensor *x, *gates; /* (N,in), (N,4D), time-major, as all that follows */
    heed_tensor *intra_x, *inter_x;
    heed_tensor **h, **c, **key, **slot, **weights, **read; /* slot: [h c]; read: gamma~ */
    const lstmn_tape *source;                               /* in the order of the steps' rows */
    heed_tensor *source_key, *source_slot;
};

static heed_tensor *rows_of(const struct run *r, heed_tensor *x, int64_t step)
{
    return heed_slice_rows(r->t, x, r->s->step_offset[step], r->s->step_offset[step + 1]);
}

/* The first rows of a state: those of the sequences that continue. */
static heed_tensor *continued(const struct run *r, heed_tensor *x, int64_t rows)
{
    return heed_tensor_rows(x) == rows ? x : heed_slice_rows(r->t, x, 0, rows);
}

/* W_x x_t + W_h~ h~_{t-1} */
static heed_tensor *query(const struct run *r, const lstmn_look *look, heed_tensor *x,
                          heed_tensor *summary)
{
    if (!r->l->sizes.summary || !summary)
        return x;
    summary = continued(r, summary, heed_tensor_rows(x));
    return heed_add(r->t, x, heed_linear_apply(r->t, &look->summary, summary));
}

/* h~_t and c~_t. */
static heed_lstm_state look_back(struct run *r, int64_t step, int64_t rows, heed_tensor *summary)
{
    const int64_t d = r->l->sizes.d, window = r->l->sizes.window;
    const int64_t first = window && step > window ? step - window : 0;
    if (step == 0 || !r->l->sizes.attention) {
        heed_tensor *none = step ? NULL : heed_input(r->t, HEED_SHAPE(rows, d), NULL);
        return step ? (heed_lstm_state){r->h[step - 1], r->c[step - 1]}
                    : (heed_lstm_state){none, none};
    }
    heed_tensor *q = query(r, &r->l->intra, rows_of(r, r->intra_x, step), summary);
    heed_tensor *both = heed_read_steps(r->t, q, r->l->intra.v, r->key + first, r->slot + first,
                                        (int)(step - first), &r->weights[step]);
    return (heed_lstm_state){heed_slice_cols(r->t, both, 0, d),
                             heed_slice_cols(r->t, both, d, 2 * d)};
}

/* [gamma~_t alpha~_t]: one query for each sequence that is still active. */
static heed_tensor *look_across(struct run *r, int64_t step, int64_t rows, heed_tensor *summary)
{
    heed_arena *arena = heed_tape_arena(r->t);
    const heed_segments *all = r->source->segments;
    int64_t *lengths = heed_arena_allocate(arena, 2 * (size_t)rows * sizeof *lengths);
    if (!lengths)
        return heed_tape_fail(r->t, HEED_MEMORY, "out of memory for a batch");
    for (int64_t b = 0; b < rows; b++) {
        lengths[b] = 1;
        lengths[rows + b] = all->offset[b + 1] - all->offset[b];
    }
    const heed_pairs pairs = {.queries = heed_segments_new(arena, rows, lengths),
                              .keys = heed_segments_new(arena, rows, lengths + rows),
                              .heads = 1};
    if (!pairs.queries || !pairs.keys)
        return heed_tape_fail(r->t, HEED_MEMORY, "out of memory for a batch");
    heed_tensor *q = query(r, &r->l->inter, rows_of(r, r->inter_x, step), summary);
    heed_tensor *key = heed_slice_rows(r->t, r->source_key, 0, pairs.keys->rows),
                *slot = heed_slice_rows(r->t, r->source_slot, 0, pairs.keys->rows);
    heed_tensor *e = heed_pairs_additive(r->t, q, key, r->l->inter.v, &pairs);
    return heed_pairs_mix(r->t, heed_pairs_softmax(r->t, e, &pairs, NULL), slot, &pairs);
}

/* The step by its parts: r alpha~_t comes to c_t before h_t is made of it. */
static heed_lstm_state fuse_deep(struct run *r, heed_tensor *x, heed_tensor *gates,
                                 heed_lstm_state past, heed_tensor *across)
{
    heed_tape *t = r->t;
    const int64_t d = r->l->sizes.d, rows = heed_tensor_rows(x);
    heed_tensor *gamma = heed_slice_cols(t, across, 0, d),
                *alpha = heed_slice_cols(t, across, d, 2 * d);
    heed_tensor *g =
        heed_linear_apply(t, &r->l->gate, heed_concat_cols(t, (heed_tensor *[]){gamma, x}, 2));
    heed_tensor *a = heed_add(
        t, gates,
        heed_matmul(t, continued(r, past.h, rows), r->l->lstm.cell[0][0].recurrent, HEED_NN));
    heed_tensor *i = heed_sigmoid(t, heed_slice_cols(t, a, 0, d)),
                *f = heed_sigmoid(t, heed_slice_cols(t, a, d, 2 * d)),
                *new = heed_tanh(t, heed_slice_cols(t, a, 2 * d, 3 * d)),
                *o = heed_sigmoid(t, heed_slice_cols(t, a, 3 * d, 4 * d));
    heed_tensor *kept = heed_mul(t, f, continued(r, past.c, rows));
    heed_tensor *c = heed_add(t, heed_mul(t, g, alpha), heed_add(t, kept, heed_mul(t, i, new)));
    return (heed_lstm_state){heed_mul(t, o, heed_tanh(t, c)), c};
}

static void step(struct run *r, int64_t k, heed_tensor **summary, heed_tensor **read_before)
{
    heed_tape *t = r->t;
    const int64_t rows = r->s->step_offset[k + 1] - r->s->step_offset[k];
    const lstmn_fusion fusion = r->l->sizes.fusion;
    const heed_lstm_state past = look_back(r, k, rows, *summary);
    heed_tensor *gates = rows_of(r, r->gates, k), *across = NULL;
    *summary = past.h;
    if (fusion != LSTMN_ALONE) {
        across = look_across(r, k, rows, *read_before);
        *read_before = r->read[k] = heed_slice_cols(t, across, 0, r->l->sizes.d);
    }
    const heed_lstm_state now =
        fusion == LSTMN_DEEP ? fuse_deep(r, rows_of(r, r->x, k), gates, past, across)
                             : heed_lstm_step(t, gates, past, r->l->lstm.cell[0][0].recurrent);
    r->h[k] = now.h;
    r->c[k] = now.c;
    if (!r->l->sizes.attention)
        return;
    r->key[k] = heed_linear_apply(t, &r->l->intra.key, now.h);
    r->slot[k] = heed_concat_cols(t, (heed_tensor *[]){now.h, now.c}, 2);
}

/* The source's sequences in the order of the steps' rows: the longest reader's first. */
static bool order_source(struct run *r, const lstmn_tape *source, lstmn_tape *ordered)
{
    const heed_segments *s = source->segments;
    heed_arena *arena = heed_tape_arena(r->t);
    int64_t *lengths = heed_arena_allocate(arena, (size_t)s->count * sizeof *lengths);
    int32_t *row = heed_arena_allocate(arena, (size_t)s->rows * sizeof *row);
    int64_t n = 0;
    for (int64_t b = 0; lengths && row && b < s->count; b++) {
        const int64_t from = r->s->order[b];
        lengths[b] = s->offset[from + 1] - s->offset[from];
        for (int64_t i = s->offset[from]; i < s->offset[from + 1]; i++)
            row[n++] = (int32_t)i;
    }
    ordered->segments = lengths && row ? heed_segments_new(arena, s->count, lengths) : NULL;
    if (!ordered->segments)
        return false;
    ordered->h = heed_gather_rows(r->t, source->h, row, s->rows);
    ordered->c = heed_gather_rows(r->t, source->c, row, s->rows);
    return true;
}

static bool make_arrays(struct run *r)
{
    const size_t steps = (size_t)r->s->longest;
    heed_tensor **all = heed_arena_allocate(heed_tape_arena(r->t), 6 * steps * sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < 6 * steps; i++)
        all[i] = NULL;
    r->h = all;
    r->c = all + steps;
    r->key = all + 2 * steps;
    r->slot = all + 3 * steps;
    r->weights = all + 4 * steps;
    r->read = all + 5 * steps;
    return true;
}

static heed_tensor *in_order(const struct run *r, heed_tensor **steps)
{
    return heed_gather_rows(r->t, heed_concat_rows(r->t, steps, (int)r->s->longest),
                            r->s->to_packed, r->s->rows);
}

heed_tensor *lstmn_apply(heed_tape *t, const lstmn_layer *l, heed_tensor *x,
                         const heed_segments *segments, const lstmn_tape *source, lstmn_tape *made,
                         heed_tensor ***looked)
{
    struct run r = {.t = t, .l = l, .s = segments};
    lstmn_tape ordered = {0};
    heed_tensor *summary = NULL, *read_before = NULL;
    if (!make_arrays(&r) || (source && !order_source(&r, source, &ordered)))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for %lld steps",
                              (long long)segments->longest);
    r.x = heed_gather_rows(t, x, segments->to_time, segments->rows);
    r.gates = heed_linear_apply(t, &l->lstm.cell[0][0].input, r.x);
    if (l->sizes.attention)
        r.intra_x = heed_linear_apply(t, &l->intra.x, r.x);
    if (source) {
        r.source = &ordered;
        r.inter_x = heed_linear_apply(t, &l->inter.x, r.x);
        r.source_key = heed_linear_apply(t, &l->inter.key, ordered.h);
        r.source_slot = heed_concat_cols(t, (heed_tensor *[]){ordered.h, ordered.c}, 2);
    }
    for (int64_t k = 0; k < segments->longest && !heed_tape_error(t)->status; k++)
        step(&r, k, &summary, &read_before);
    if (looked)
        *looked = r.weights;
    heed_tensor *h = in_order(&r, r.h);
    if (made)
        *made = (lstmn_tape){h, in_order(&r, r.c), segments};
    if (l->sizes.fusion != LSTMN_SHALLOW)
        return h;
    return heed_linear_apply(t, &l->joined,
                             heed_concat_cols(t, (heed_tensor *[]){h, in_order(&r, r.read)}, 2));
}
