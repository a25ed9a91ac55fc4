/* session_decoder.c: a session over a heed_decoder, which any model has.  All its sentences start
 * together, and its log-probabilities are normalised. */
#include "base/error.h"
#include "base/memory.h"
#include "decode/engine.h"

struct decoding {
    heed_allocator allocator;
    heed_decoder *decoder;
    heed_arena *arena; /* the batch */
    heed_real *zeros;  /* (room) */
    int64_t rows, room, vocabulary;
};

/* Every token has a score. */
static heed_status add(void *self, const heed_tokens *source, const heed_tokens *wanted,
                       int64_t count, heed_error *err)
{
    struct decoding *d = self;
    heed_batch batch;
    (void)wanted;
    if (d->rows)
        return heed__fail(err, HEED_ARGUMENT,
                          "this model takes new sentences only when it has no rows, found %lld",
                          (long long)d->rows);
    heed_arena_reset(d->arena);
    heed_status status = heed_batch_pack(d->arena, source, NULL, count, &batch, err);
    if (!status)
        status = heed_decoder_start(d->decoder, &batch, err);
    d->rows = status ? 0 : count;
    return status;
}

static heed_status step(void *self, const int32_t *token, heed_scores *out, heed_error *err)
{
    struct decoding *d = self;
    if (d->rows > d->room) {
        heed__release(&d->allocator, d->zeros, (size_t)d->room, sizeof *d->zeros);
        d->room = 0;
        d->zeros = heed__allocate_zeroed(&d->allocator, (size_t)d->rows, sizeof *d->zeros);
        if (!d->zeros)
            return heed__fail(err, HEED_MEMORY, "out of memory for decoding %lld rows",
                              (long long)d->rows);
        d->room = d->rows;
    }
    *out = (heed_scores){.log_z = d->zeros, .columns = d->vocabulary};
    return heed_decoder_step(d->decoder, token, &out->logit, err);
}

static heed_status reorder(void *self, const int32_t *parent, int64_t rows, heed_error *err)
{
    struct decoding *d = self;
    heed_status status = heed_decoder_reorder(d->decoder, parent, rows, err);
    d->rows = status ? d->rows : rows;
    return status;
}

/* The next start forgets what is there. */
static void clear(void *self)
{
    ((struct decoding *)self)->rows = 0;
}

static void end(heed_session *s)
{
    struct decoding *d = s->stepper.self;
    heed_decoder_free(d->decoder);
    heed_arena_free(d->arena);
    heed__release(&s->allocator, d->zeros, (size_t)d->room, sizeof *d->zeros);
    heed__release(&s->allocator, d, 1, sizeof *d);
}

heed_status heed__session_decoder(const heed_engine *e, const heed_session_options *o,
                                  heed_session *s, heed_error *err)
{
    const heed_model_config *c = heed_model_configuration(e->model);
    struct decoding *d = heed__allocate_zeroed(&s->allocator, 1, sizeof *d);
    if (!d)
        return heed__fail(err, HEED_MEMORY, "out of memory for a session");
    *d = (struct decoding){.allocator = s->allocator, .vocabulary = c->target_vocabulary};
    s->stepper = (heed__stepper){.self = d,
                                 .vocabulary = c->target_vocabulary,
                                 .longest = c->longest,
                                 .add = add,
                                 .step = step,
                                 .reorder = reorder,
                                 .clear = clear};
    s->end = end;
    d->arena = heed_arena_new(&s->allocator, err);
    d->decoder = d->arena ? heed_decoder_new(e->model, o->threads, &s->allocator, err) : NULL;
    return d->decoder ? HEED_OK : HEED_MEMORY;
}
