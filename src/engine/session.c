/* session.c: one state of decoding, and the one over a packed model's rows. */
#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"

static void end_rows(heed_session *s)
{
    heed__rows_free(s->stepper.self);
}

heed_status heed__session_rows(const heed_engine *e, const heed_session_options *o, heed_session *s,
                               heed_error *err)
{
    const heed__shortlist *list = o->shortlist && e->shortlist.offset ? &e->shortlist : NULL;
    heed__rows *r = heed__rows_new(e->weights, list, o->threads, &s->allocator, err);
    if (!r)
        return HEED_MEMORY;
    s->stepper = heed__rows_stepper(r);
    s->end = end_rows;
    s->encode = heed__session_encode_packed;
    return HEED_OK;
}

heed_session *heed_session_new(const heed_engine *e, const heed_session_options *options,
                               const heed_allocator *allocator, heed_error *err)
{
    if (!e)
        return heed__missing(err, "engine"), NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_session *s = heed__allocate_zeroed(&a, 1, sizeof *s);
    if (!s) {
        heed__fail(err, HEED_MEMORY, "out of memory for a session");
        return NULL;
    }
    s->allocator = a;
    if (!e->begin(e, options, s, err))
        return s;
    heed_session_free(s);
    return NULL;
}

void heed_session_free(heed_session *s)
{
    if (!s)
        return;
    heed_allocator a = s->allocator;
    if (s->end)
        s->end(s);
    heed_tape_free(s->tape);
    heed__release(&a, s->extension, (size_t)s->extensions, sizeof *s->extension);
    heed__release(&a, s, 1, sizeof *s);
}

heed_status heed_session_add(heed_session *s, const heed_tokens *source, int64_t count,
                             heed_error *err)
{
    if (!s)
        return heed__missing(err, "session");
    return s->stepper.add(s->stepper.self, source, NULL, count, err);
}

heed_status heed_session_extend(heed_session *s, const heed_extension *x, int64_t count,
                                heed_scores *last, heed_error *err)
{
    if (!s)
        return heed__missing(err, "session");
    return s->stepper.extend(s->stepper.self, x, count, last, err);
}

heed_status heed_session_step(heed_session *s, const int32_t *token, heed_scores *out,
                              heed_error *err)
{
    if (!s)
        return heed__missing(err, "session");
    const int64_t rows = s->stepper.rows(s->stepper.self);
    if (rows > s->extensions) {
        heed__release(&s->allocator, s->extension, (size_t)s->extensions, sizeof *s->extension);
        s->extensions = 0;
        s->extension = heed__allocate(&s->allocator, (size_t)rows, sizeof *s->extension);
        if (!s->extension)
            return heed__fail(err, HEED_MEMORY, "out of memory for decoding %lld rows",
                              (long long)rows);
        s->extensions = rows;
    }
    for (int64_t r = 0; r < rows; r++)
        s->extension[r] = (heed_extension){.row = r, .tokens = {&token[r], 1}, .last = true};
    return s->stepper.extend(s->stepper.self, s->extension, rows, out, err);
}

heed_status heed_session_rewind(heed_session *s, int64_t row, int64_t length, heed_error *err)
{
    if (!s)
        return heed__missing(err, "session");
    if (!s->stepper.rewind)
        return heed__fail(err, HEED_ARGUMENT, "this model cannot take tokens back");
    return s->stepper.rewind(s->stepper.self, row, length, err);
}

heed_status heed_session_reorder(heed_session *s, const int32_t *parent, int64_t rows,
                                 heed_error *err)
{
    if (!s)
        return heed__missing(err, "session");
    return s->stepper.reorder(s->stepper.self, parent, rows, err);
}

void heed_session_clear(heed_session *s)
{
    if (!s)
        return;
    s->stepper.clear(s->stepper.self);
}
