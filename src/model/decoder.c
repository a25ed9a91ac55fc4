/* decoder.c: start / step / reorder for any architecture.
 *
 * Here: which row belongs to which sentence, and whom it goes on from.  Reordering only notes the
 * parents; the architecture moves its state in the next step, where it must touch it anyway, so
 * rows that are dropped or reordered twice in between cost nothing. */
#include "model/model_class.h"

#include "base/error.h"
#include "base/memory.h"
#include <string.h>

/* Capacity for n rows; what the arrays hold stays. */
static heed_status reserve(heed_decoder *d, int64_t rows, heed_error *err)
{
    if (rows <= d->capacity)
        return HEED_OK;
    const int64_t capacity = rows > 2 * d->capacity ? rows : 2 * d->capacity;
    heed__hypothesis *grown = heed__allocate(&d->allocator, (size_t)capacity, 2 * sizeof *grown);
    if (!grown)
        return heed__fail(err, HEED_MEMORY, "no memory to decode %lld rows", (long long)rows);
    if (d->rows)
        memcpy(grown, d->row, (size_t)d->rows * sizeof *grown);
    heed__release(&d->allocator, d->memory, (size_t)d->capacity, 2 * sizeof *grown);
    d->memory = d->row = grown;
    d->other = grown + capacity;
    d->capacity = capacity;
    return HEED_OK;
}

heed_decoder *heed_decoder_new(const heed_model *m, int threads, const heed_allocator *allocator,
                               heed_error *err)
{
    if (!m)
        return heed__missing(err, "model"), NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    if (!(m->class->sides & HEED_TARGET)) {
        heed__fail(err, HEED_ARGUMENT,
                   "an encoder alone writes nothing: expected a model with a target side");
        return NULL;
    }
    heed_decoder *d = heed__allocate_zeroed(&a, 1, sizeof *d);
    if (!d) {
        heed__fail(err, HEED_MEMORY, "no memory for a decoder");
        return NULL;
    }
    d->model = m;
    d->class = m->class->decoder ? m->class->decoder : &heed__full_decoder;
    d->allocator = a;
    d->tape = heed_tape_new(&(heed_tape_options){.allocator = &a, .threads = threads}, err);
    if (!d->tape || d->class->open(d, err)) {
        heed_decoder_free(d);
        return NULL;
    }
    heed_tape_set_recording(d->tape, false);
    heed_tape_set_training(d->tape, false);
    return d;
}

void heed_decoder_free(heed_decoder *d)
{
    if (!d)
        return;
    heed_allocator a = d->allocator;
    d->class->close(d);
    heed_tape_free(d->tape);
    heed__release(&a, d->memory, (size_t)d->capacity, 2 * sizeof *d->memory);
    heed__release(&a, d, 1, sizeof *d);
}

static heed_status tape_status(const heed_decoder *d, heed_error *err)
{
    const heed_error *e = heed_tape_error(d->tape);
    return e->status ? heed__fail(err, e->status, "%s", e->text) : HEED_OK;
}

heed_status heed_decoder_start(heed_decoder *d, const heed_batch *batch, heed_error *err)
{
    if (!d)
        return heed__missing(err, "decoder");
    const heed_side source = d->model->class->sides & HEED_SOURCE;
    const int64_t sentences =
        source && batch->source.rows ? batch->source.rows->count : batch->examples;
    d->started = false;
    d->rows = 0;
    heed_tape_reset(d->tape);
    if (heed__model_takes(d->model, d->tape, batch, source))
        d->class->start(d, batch);
    heed_status status = tape_status(d, err);
    if (!status)
        status = reserve(d, sentences, err);
    if (status)
        return status;
    d->sentences = d->rows = d->rows_before = sentences;
    for (int64_t r = 0; r < d->rows; r++)
        d->row[r] = (heed__hypothesis){(int32_t)r, (int32_t)r};
    d->length = 0;
    d->started = true;
    return HEED_OK;
}

heed_status heed_decoder_step(heed_decoder *d, const int32_t *token, const heed_real **log_p,
                              heed_error *err)
{
    if (!d)
        return heed__missing(err, "decoder");
    *log_p = NULL;
    if (!d->started || d->rows < 1)
        return heed__fail(err, HEED_STATE, "cannot decode a token: there %s",
                          d->started ? "are no rows left" : "was no start");
    if (d->length >= d->model->config.longest)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot decode token %lld: expected at most %lld, as '--longest' says",
                          (long long)d->length + 1, (long long)d->model->config.longest);
    heed_tape_reset(d->tape);
    heed_tensor *h = d->class->step(d, token); /* (rows,D) */
    heed_tensor *y = heed_log_softmax(d->tape, heed_head_logits(d->tape, &d->model->head, h));
    heed_status status = tape_status(d, err);
    if (status) {
        d->started = false; /* some caches may have gone on, others not */
        return status;
    }
    for (int64_t r = 0; r < d->rows; r++)
        d->row[r].parent = (int32_t)r;
    d->rows_before = d->rows;
    d->length++;
    *log_p = heed_tensor_data(y);
    return HEED_OK;
}

heed_status heed_decoder_reorder(heed_decoder *d, const int32_t *parent, int64_t rows,
                                 heed_error *err)
{
    if (!d)
        return heed__missing(err, "decoder");
    if (!d->started)
        return heed__fail(err, HEED_STATE, "cannot reorder rows: there was no start");
    if (rows < 0)
        return heed__fail(err, HEED_ARGUMENT, "cannot reorder to %lld rows", (long long)rows);
    int32_t before = 0;
    for (int64_t r = 0; r < rows; r++) {
        if (parent[r] < 0 || parent[r] >= d->rows)
            return heed__fail(err, HEED_ARGUMENT,
                              "row %lld goes on from row %ld, expected 0 to %lld", (long long)r,
                              (long)parent[r], (long long)d->rows - 1);
        if (d->row[parent[r]].sentence < before)
            return heed__fail(err, HEED_ARGUMENT,
                              "row %lld goes on from sentence %ld, expected %ld or later: rows "
                              "stay in the order of their sentences",
                              (long long)r, (long)d->row[parent[r]].sentence, (long)before);
        before = d->row[parent[r]].sentence;
    }
    heed_status status = reserve(d, rows, err);
    if (status)
        return status;
    for (int64_t r = 0; r < rows; r++)
        d->other[r] = d->row[parent[r]];
    heed__hypothesis *row = d->row;
    d->row = d->other;
    d->other = row;
    d->rows = rows;
    return HEED_OK;
}
