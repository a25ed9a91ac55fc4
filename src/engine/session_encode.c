/* session_encode.c: hidden states of sequences, and what the head makes of them.
 *
 * ids, types (N) or features (N,width) -> (rows,D) or (rows,V).  Of a packed model the sequences go
 * through the stack some hundred rows at a time (rows_encode.c), and only the wanted rows meet the
 * head; any other model takes the tape.  Refuses ids, types, widths and lengths that the model
 * does not take, and rows that are not ascending. */
#include "base/error.h"
#include "base/memory.h"
#include "base/min_max.h"
#include "engine/engine.h"

#include <string.h>

/* ---- checks ---- */

static heed_status check_wanted(const heed_encode_options *o, int64_t rows, heed_error *err)
{
    if (o->kind > HEED_ENCODE_LOGITS)
        return heed__fail(err, HEED_ARGUMENT, "cannot encode to kind %d, expected 0 to %d",
                          (int)o->kind, (int)HEED_ENCODE_LOGITS);
    for (int64_t i = 0; o->row && i < o->count; i++) {
        const int64_t least = i ? o->row[i - 1] + 1 : 0;
        if (o->row[i] < least || o->row[i] >= rows)
            return heed__fail(err, HEED_ARGUMENT,
                              "wanted row %lld is %ld, expected %lld to %lld: rows ascend",
                              (long long)i, (long)o->row[i], (long long)least, (long long)rows - 1);
    }
    return HEED_OK;
}

static heed_status check_values(const char *what, const int32_t *value, int64_t rows, int64_t most,
                                heed_error *err)
{
    for (int64_t i = 0; i < rows; i++)
        if (value[i] < 0 || value[i] >= most)
            return heed__fail(err, HEED_ARGUMENT, "the %s of row %lld is %ld, expected 0 to %lld",
                              what, (long long)i, (long)value[i], (long long)most - 1);
    return HEED_OK;
}

static heed_status check_input(const heed__packed_input *in, const heed_batch_side *side,
                               heed_error *err)
{
    const int64_t rows = side->rows->rows;
    if (!in->table.n && (!side->features || side->width != in->features.k))
        return heed__fail(err, HEED_ARGUMENT, "a row has %lld features, expected %lld",
                          (long long)(side->features ? side->width : 0), (long long)in->features.k);
    if (in->table.n && !side->ids)
        return heed__fail(err, HEED_ARGUMENT, "this model reads tokens, found features");
    if (side->types && !in->types)
        return heed__fail(err, HEED_ARGUMENT, "this model has no types of tokens");
    heed_status status =
        in->table.n ? check_values("token", side->ids, rows, in->table.n, err) : HEED_OK;
    if (!status && side->types)
        status = check_values("type", side->types, rows, in->type_count, err);
    return status;
}

static heed_status check(const heed__weights *w, const heed__packed_stack *s,
                         const heed_batch_side *side, const heed_encode_options *o, heed_error *err)
{
    const heed_segments *rows = side->rows;
    if (!rows)
        return heed__fail(err, HEED_ARGUMENT, "there are no sequences to encode");
    if (o->kind == HEED_ENCODE_LOGITS && !w->output.n)
        return heed__fail(err, HEED_ARGUMENT, "this model has no output matrix");
    if (o->kind >= HEED_ENCODE_POOLED && w->encoder && w->decoder)
        return heed__fail(err, HEED_ARGUMENT, "the head of this model reads its decoder");
    for (int64_t b = 0; b < rows->count; b++)
        if (rows->offset[b + 1] - rows->offset[b] > w->config.longest)
            return heed__fail(err, HEED_ARGUMENT,
                              "sequence %lld has %lld rows, expected at most %lld, as '--longest' "
                              "says",
                              (long long)b, (long long)(rows->offset[b + 1] - rows->offset[b]),
                              (long long)w->config.longest);
    heed_status status = check_wanted(o, rows->rows, err);
    return status ? status : check_input(&s->input, side, err);
}

/* ---- packed models ---- */

/* What is asked, and how far it is done. */
struct encoding {
    heed__rows *r;
    const heed__packed_stack *stack;
    const heed_batch_side *side;
    const heed_encode_options *o;
    int64_t columns, rows; /* of the result */
    int64_t next;          /* of o->row */
    int64_t done;          /* rows of the result */
};

static int64_t wanted_rows(const struct encoding *e)
{
    if (e->o->kind == HEED_ENCODE_MEAN)
        return e->side->rows->count;
    return e->o->row ? e->o->count : e->side->rows->rows;
}

static heed_status reserve(struct encoding *e, heed_error *err)
{
    heed__rows *r = e->r;
    int64_t size;
    if (!heed__multiply(e->rows, e->columns, &size))
        size = INT64_MAX / (int64_t)sizeof *r->encoded;
    if (size <= r->encoded_size)
        return HEED_OK;
    heed__release(&r->allocator, r->encoded, (size_t)r->encoded_size, sizeof *r->encoded);
    r->encoded = heed__allocate(&r->allocator, (size_t)size, sizeof *r->encoded);
    r->encoded_size = r->encoded ? size : 0;
    if (r->encoded)
        return HEED_OK;
    return heed__fail(err, HEED_MEMORY, "out of memory for %lld encoded rows", (long long)e->rows);
}

/* The wanted ones of rows [begin,end), which are rows 0 .. of the pass, to its front. */
static int64_t gather(struct encoding *e, int64_t begin, int64_t end)
{
    const int64_t d = e->stack->d;
    heed_real *x = e->r->pass.x;
    if (!e->o->row)
        return end - begin;
    int64_t n = 0;
    for (; e->next < e->o->count && e->o->row[e->next] < end; e->next++, n++)
        memmove(x + n * d, x + (e->o->row[e->next] - begin) * d, (size_t)d * sizeof *x);
    return n;
}

/* Of the wanted rows of one sequence, which stand from `x` on. */
static void average(heed_real *to, const heed_real *x, int64_t rows, int64_t d)
{
    for (int64_t j = 0; j < d; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += (double)x[i * d + j];
        to[j] = rows ? (heed_real)(sum / (double)rows) : 0;
    }
}

/* `at`: the first of o->row that is theirs. */
static void average_sequences(struct encoding *e, int64_t first, int64_t count, int64_t at)
{
    const int64_t *offset = e->side->rows->offset, d = e->stack->d;
    const heed_real *x = e->r->pass.x;
    int64_t from = 0;
    for (int64_t b = first; b < first + count; b++, e->done++) {
        int64_t n = offset[b + 1] - offset[b];
        if (e->o->row) {
            const int64_t before = at;
            while (at < e->o->count && e->o->row[at] < offset[b + 1])
                at++;
            n = at - before;
        }
        average(e->r->encoded + e->done * d, x + from * d, n, d);
        from += n;
    }
}

/* What is wanted of sequences that have gone through the stack. */
static void take(struct encoding *e, int64_t first, int64_t count)
{
    heed__rows *r = e->r;
    const int64_t *offset = e->side->rows->offset, at = e->next;
    const int64_t n = gather(e, offset[first], offset[first + count]);
    heed_real *to = r->encoded + e->done * e->columns;
    if (e->o->kind == HEED_ENCODE_MEAN) {
        average_sequences(e, first, count, at);
        return;
    }
    const heed_real *x = r->pass.x;
    if (n && e->o->kind != HEED_ENCODE_HIDDEN)
        x = heed__rows_head(r, x, n);
    if (n && e->o->kind == HEED_ENCODE_LOGITS)
        heed__pass_linear(&r->pass, &r->w->output, to, x, n);
    else if (n)
        memcpy(to, x, (size_t)(n * e->columns) * sizeof *to);
    e->done += n;
}

static heed__sequence sequence_of(const heed_batch_side *side, int64_t b)
{
    const int64_t at = side->rows->offset[b];
    return (heed__sequence){.id = side->ids ? side->ids + at : NULL,
                            .type = side->types ? side->types + at : NULL,
                            .feature = side->features ? side->features + at * side->width : NULL,
                            .count = side->rows->offset[b + 1] - at};
}

/* Sequences from `first` on that go through the stack together; how many. */
static int64_t portion(const heed_batch_side *side, int64_t first,
                       heed__sequence q[HEED__ENCODED_ROWS])
{
    const int64_t *offset = side->rows->offset;
    int64_t b = first;
    do {
        q[b - first] = sequence_of(side, b);
        b++;
    } while (b < side->rows->count && b - first < HEED__ENCODED_ROWS &&
             offset[b + 1] - offset[first] <= HEED__ENCODED_ROWS);
    return b - first;
}

heed_status heed__rows_hidden(heed__rows *r, const heed_batch_side *side,
                              const heed_encode_options *o, heed_encoding *out, heed_error *err)
{
    const heed__weights *w = r->w;
    struct encoding e = {.r = r, .stack = w->encoder ? w->encoder : w->decoder, .side = side};
    e.o = o;
    e.columns = o->kind == HEED_ENCODE_LOGITS ? w->output.n : e.stack->d;
    heed_status status = check(w, e.stack, side, o, err);
    if (!status) {
        e.rows = wanted_rows(&e);
        status = reserve(&e, err);
    }
    for (int64_t b = 0, count; !status && b < side->rows->count; b += count) {
        heed__sequence q[HEED__ENCODED_ROWS];
        count = portion(side, b, q);
        status = heed__rows_encode(r, e.stack, q, count, err);
        if (!status)
            take(&e, b, count);
    }
    *out = (heed_encoding){r->encoded, e.rows, e.columns};
    return status;
}

heed_status heed__session_encode_packed(heed_session *s, const heed_batch_side *side,
                                        const heed_encode_options *o, heed_encoding *out,
                                        heed_error *err)
{
    return heed__rows_hidden(s->stepper.self, side, o, out, err);
}

/* ---- models on the tape ---- */

static heed_tensor *wanted_of(heed_tape *t, heed_tensor *h, const heed_encode_options *o)
{
    return o->row ? heed_gather_rows(t, h, o->row, o->count) : h;
}

/* The mean of each sequence's wanted rows. */
static heed_real *means_of(heed_tape *t, const heed_real *h, const heed_segments *s,
                           const heed_encode_options *o, int64_t d)
{
    heed_real *to = heed_arena_allocate(heed_tape_arena(t), (size_t)(s->count * d) * sizeof *to);
    int64_t at = 0;
    for (int64_t b = 0; to && b < s->count; b++) {
        const int64_t from = o->row ? at : s->offset[b];
        while (o->row && at < o->count && o->row[at] < s->offset[b + 1])
            at++;
        average(to + b * d, h + from * d, (o->row ? at : s->offset[b + 1]) - from, d);
    }
    if (!to)
        heed_tape_fail(t, HEED_MEMORY, "no memory for %lld sequences", (long long)s->count);
    return to;
}

static void encode_on(heed_tape *t, const heed_model *m, const heed_batch_side *side,
                      const heed_encode_options *o, heed_encoding *out)
{
    const bool source = m->class->sides & HEED_SOURCE;
    heed_batch batch = {.examples = side->rows->count};
    *(source ? &batch.source : &batch.target) = *side;
    heed_tensor *h = wanted_of(t, heed_model_hidden(m, t, &batch), o);
    if (h && o->kind == HEED_ENCODE_POOLED)
        h = heed_head_transform(t, &m->head, h);
    else if (h && o->kind == HEED_ENCODE_LOGITS)
        h = heed_head_logits(t, &m->head, h);
    if (!h || heed_tape_error(t)->status)
        return;
    *out = (heed_encoding){heed_tensor_data(h), heed_tensor_rows(h), heed_tensor_cols(h)};
    if (o->kind == HEED_ENCODE_MEAN)
        *out = (heed_encoding){means_of(t, heed_tensor_data(h), side->rows, o, out->columns),
                               side->rows->count, out->columns};
}

heed_status heed__session_encode_model(heed_session *s, const heed_batch_side *side,
                                       const heed_encode_options *o, heed_encoding *out,
                                       heed_error *err)
{
    if (s->model->class->sides == HEED_BOTH)
        return heed__fail(err, HEED_ARGUMENT,
                          "this translator cannot be packed, and its encoder not run alone");
    if (!side->rows)
        return heed__fail(err, HEED_ARGUMENT, "there are no sequences to encode");
    heed_status status = check_wanted(o, side->rows->rows, err);
    if (status)
        return status;
    if (!s->tape) {
        s->tape = heed_tape_new(
            &(heed_tape_options){.allocator = &s->allocator, .threads = s->threads}, err);
        if (!s->tape)
            return HEED_MEMORY;
        heed_tape_set_recording(s->tape, false);
        heed_tape_set_training(s->tape, false);
    }
    heed_tape_reset(s->tape);
    encode_on(s->tape, s->model, side, o, out);
    const heed_error *failed = heed_tape_error(s->tape);
    return failed->status ? heed__fail(err, failed->status, "%s", failed->text) : HEED_OK;
}

/* ---- public ---- */

heed_status heed_session_encode(heed_session *s, const heed_batch_side *side,
                                const heed_encode_options *options, heed_encoding *out,
                                heed_error *err)
{
    if (!s)
        return heed__missing(err, "session");
    *out = (heed_encoding){0};
    return s->encode(s, side, options, out, err);
}

heed_status heed_engine_encode(const heed_engine *e, const heed_batch_side *side,
                               const heed_encode_options *options, heed_arena *arena,
                               heed_encoding *out, heed_error *err)
{
    if (!e)
        return heed__missing(err, "engine");
    heed_session *s =
        heed_session_new(e, &(heed_session_options){.threads = 1}, &e->allocator, err);
    if (!s)
        return HEED_MEMORY;
    heed_status status = heed_session_encode(s, side, options, out, err);
    const size_t bytes = status ? 0 : (size_t)(out->rows * out->columns) * sizeof *out->value;
    heed_real *value = status ? NULL : heed_arena_allocate(arena, bytes);
    if (!status && !value)
        status = heed__fail(err, HEED_MEMORY, "out of memory for %lld encoded rows",
                            (long long)out->rows);
    else if (bytes)
        memcpy(value, out->value, bytes);
    out->value = value;
    heed_session_free(s);
    return status;
}
