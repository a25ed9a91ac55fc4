/* session_decoder.c: a session over a heed_decoder, which any model has.  All its sentences start
 * together, and its log-probabilities are normalised. */
#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "model/model_class.h"

#include <string.h>

struct decoding {
    heed_allocator allocator;
    heed_decoder *decoder; /* NULL: an encoder alone */
    bool sources;
    heed_arena *arena; /* the batch */
    heed_real *zeros;  /* (capacity) */
    int32_t *token;    /* (capacity) */
    int64_t rows, capacity, vocabulary;
    heed_pair_ids ids;
};

static heed_status check_writes(const struct decoding *d, heed_error *err)
{
    if (d->decoder)
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT,
                      "an encoder alone writes nothing: expected a model with a decoder");
}

/* Every token has a score. */
static heed_status add(void *self, const heed_tokens *source, const heed_tokens *wanted,
                       int64_t count, heed_error *err)
{
    struct decoding *d = self;
    heed_batch batch;
    (void)wanted;
    heed_status status = check_writes(d, err);
    if (status)
        return status;
    if (!source == d->sources)
        return heed__fail(err, HEED_ARGUMENT,
                          "this model has %s encoder: rows are added with%s sources",
                          d->sources ? "an" : "no", d->sources ? "" : "out");
    if (d->rows)
        return heed__fail(err, HEED_ARGUMENT,
                          "this model takes new sentences only when it has no rows, found %lld",
                          (long long)d->rows);
    heed_arena_reset(d->arena);
    if (source)
        status = heed_batch_pack(d->arena, &d->ids, source, NULL, count, &batch, err);
    else
        batch = (heed_batch){.examples = count};
    if (!status)
        status = heed_decoder_start(d->decoder, &batch, err);
    d->rows = status ? 0 : count;
    return status;
}

static int64_t count_rows(const void *self)
{
    return ((const struct decoding *)self)->rows;
}

static void release(struct decoding *d)
{
    heed__release(&d->allocator, d->zeros, (size_t)d->capacity, sizeof *d->zeros);
    heed__release(&d->allocator, d->token, (size_t)d->capacity, sizeof *d->token);
    d->zeros = NULL;
    d->token = NULL;
    d->capacity = 0;
}

static heed_status reserve(struct decoding *d, heed_error *err)
{
    if (d->rows <= d->capacity)
        return HEED_OK;
    release(d);
    d->capacity = d->rows;
    d->zeros = heed__allocate_zeroed(&d->allocator, (size_t)d->rows, sizeof *d->zeros);
    d->token = heed__allocate(&d->allocator, (size_t)d->rows, sizeof *d->token);
    if (d->zeros && d->token)
        return HEED_OK;
    release(d);
    return heed__fail(err, HEED_MEMORY, "out of memory for decoding %lld rows", (long long)d->rows);
}

static heed_status check(const struct decoding *d, const heed_extension *x, int64_t count,
                         heed_error *err)
{
    if (count != d->rows)
        return heed__fail(err, HEED_ARGUMENT,
                          "this model extends all %lld rows together, found %lld",
                          (long long)d->rows, (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (x[i].row != i || x[i].tokens.count != 1)
            return heed__fail(err, HEED_ARGUMENT,
                              "this model takes one token for row %lld, found %lld for row %lld",
                              (long long)i, (long long)x[i].tokens.count, (long long)x[i].row);
    return HEED_OK;
}

/* Every row's log-probabilities are there; those that are wanted move to the front. */
static heed_status extend(void *self, const heed_extension *x, int64_t count, heed_scores *last,
                          heed_error *err)
{
    struct decoding *d = self;
    const int64_t v = d->vocabulary;
    const heed_real *log_p;
    heed_status status = check_writes(d, err);
    if (!status)
        status = check(d, x, count, err);
    if (!status)
        status = reserve(d, err);
    for (int64_t i = 0; !status && i < count; i++)
        d->token[i] = x[i].tokens.id[0];
    if (!status)
        status = heed_decoder_step(d->decoder, d->token, &log_p, err);
    if (status)
        return status;
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        if (x[i].wanted)
            x[i].log_p[0] = log_p[i * v + x[i].wanted[0]];
        if (!x[i].last)
            continue;
        if (n < i)
            memcpy((heed_real *)log_p + n * v, log_p + i * v, (size_t)v * sizeof *log_p);
        n++;
    }
    if (last)
        *last = (heed_scores){.logit = log_p, .log_z = d->zeros, .columns = v};
    return HEED_OK;
}

static heed_status reorder(void *self, const int32_t *parent, int64_t rows, heed_error *err)
{
    struct decoding *d = self;
    heed_status status = check_writes(d, err);
    if (!status)
        status = heed_decoder_reorder(d->decoder, parent, rows, err);
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
    release(d);
    heed__release(&s->allocator, d, 1, sizeof *d);
}

heed_status heed__session_decoder(const heed_engine *e, const heed_session_options *o,
                                  heed_session *s, heed_error *err)
{
    const heed_model_config *c = heed_model_configuration(e->model);
    const heed_side sides = heed__model_class_of(c->arch)->sides;
    struct decoding *d = heed__allocate_zeroed(&s->allocator, 1, sizeof *d);
    if (!d)
        return heed__fail(err, HEED_MEMORY, "out of memory for a session");
    *d = (struct decoding){.allocator = s->allocator,
                           .sources = sides & HEED_SOURCE,
                           .ids = c->ids,
                           .vocabulary = c->target_vocabulary};
    s->stepper = (heed__stepper){.self = d,
                                 .vocabulary = c->target_vocabulary,
                                 .longest = c->longest,
                                 .sources = d->sources,
                                 .ids = c->ids,
                                 .add = add,
                                 .rows = count_rows,
                                 .extend = extend,
                                 .reorder = reorder,
                                 .clear = clear};
    s->end = end;
    s->encode = heed__session_encode_model;
    s->model = e->model;
    s->threads = o->threads;
    d->arena = heed_arena_new(&s->allocator, err);
    if (d->arena && !(sides & HEED_TARGET))
        return HEED_OK;
    d->decoder = d->arena ? heed_decoder_new(e->model, o->threads, &s->allocator, err) : NULL;
    return d->decoder ? HEED_OK : HEED_MEMORY;
}
