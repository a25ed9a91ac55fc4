/* session.c: one state of decoding, over a packed model's rows or over a heed_decoder. */
#include "base/error.h"
#include "base/memory.h"
#include "decode/engine.h"

#include <string.h>

/* ---- over a heed_decoder: all sentences start together ---- */

static heed_status decoder_add(void *self, const heed_tokens *source, int64_t count,
                               heed_error *err)
{
    heed_session *s = self;
    heed_batch batch;
    heed_arena_reset(s->arena);
    heed_status status = heed_batch_pack(s->arena, source, NULL, count, &batch, err);
    if (!status)
        status = heed_decoder_start(s->decoder, &batch, err);
    s->decoder_rows = status ? 0 : count;
    return status;
}

static heed_status decoder_step(void *self, const int32_t *token, heed_scores *out, heed_error *err)
{
    heed_session *s = self;
    if (s->decoder_rows > s->zeros_room) {
        heed__release(&s->allocator, s->zeros, (size_t)s->zeros_room, sizeof *s->zeros);
        s->zeros_room = 0;
        s->zeros = heed__allocate_zeroed(&s->allocator, (size_t)s->decoder_rows, sizeof *s->zeros);
        if (!s->zeros)
            return heed__fail(err, HEED_MEMORY, "out of memory for decoding %lld rows",
                              (long long)s->decoder_rows);
        s->zeros_room = s->decoder_rows;
    }
    *out = (heed_scores){.log_z = s->zeros, .columns = s->stepper.vocabulary};
    return heed_decoder_step(s->decoder, token, &out->logit, err);
}

static heed_status decoder_reorder(void *self, const int32_t *parent, int64_t rows, heed_error *err)
{
    heed_session *s = self;
    heed_status status = heed_decoder_reorder(s->decoder, parent, rows, err);
    s->decoder_rows = status ? s->decoder_rows : rows;
    return status;
}

static void decoder_clear(void *self)
{
    ((heed_session *)self)->decoder_rows = 0;
}

static void begin_decoder(heed_session *s, const heed_model *m, int threads, heed_error *err)
{
    const heed_model_config *c = heed_model_configuration(m);
    s->arena = heed_arena_new(&s->allocator, err);
    s->decoder = s->arena ? heed_decoder_new(m, threads, &s->allocator, err) : NULL;
    s->stepper = (heed__stepper){.self = s,
                                 .vocabulary = c->target_vocabulary,
                                 .longest = c->longest,
                                 .add = decoder_add,
                                 .step = decoder_step,
                                 .reorder = decoder_reorder,
                                 .clear = decoder_clear};
}

/* ---- what others see ---- */

heed_session *heed_session_new(const heed_engine *e, const heed_session_options *options,
                               const heed_allocator *allocator, heed_error *err)
{
    const heed__shortlist *list = options->shortlist && e->shortlist.file ? &e->shortlist : NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_session *s = heed__allocate_zeroed(&a, 1, sizeof *s);
    if (!s) {
        heed__fail(err, HEED_MEMORY, "out of memory for a session");
        return NULL;
    }
    s->allocator = a;
    if (!e->weights)
        begin_decoder(s, e->model, options->threads, err);
    else if ((s->rows = heed__rows_new(e->weights, list, options->threads, &s->allocator, err)))
        s->stepper = heed__rows_stepper(s->rows);
    if (s->rows || s->decoder)
        return s;
    heed_session_free(s);
    return NULL;
}

void heed_session_free(heed_session *s)
{
    if (!s)
        return;
    heed_allocator a = s->allocator;
    heed__rows_free(s->rows);
    heed_decoder_free(s->decoder);
    heed_arena_free(s->arena);
    heed__release(&a, s->zeros, (size_t)s->zeros_room, sizeof *s->zeros);
    heed__release(&a, s, 1, sizeof *s);
}

heed_status heed_session_add(heed_session *s, const heed_tokens *source, int64_t count,
                             heed_error *err)
{
    return s->stepper.add(s->stepper.self, source, count, err);
}

heed_status heed_session_step(heed_session *s, const int32_t *token, heed_scores *out,
                              heed_error *err)
{
    return s->stepper.step(s->stepper.self, token, out, err);
}

heed_status heed_session_reorder(heed_session *s, const int32_t *parent, int64_t rows,
                                 heed_error *err)
{
    return s->stepper.reorder(s->stepper.self, parent, rows, err);
}

void heed_session_clear(heed_session *s)
{
    s->stepper.clear(s->stepper.self);
}
