/* context.c: rows of a session of a language model.  Those of a packed model take many tokens at
 * once and give them back; those of another take one at a time, and begin anew. */
#include "generate/generator.h"

#include "base/min_max.h"

heed_status heed__context_begin(heed__context *c, heed_generator *g, heed_error *err)
{
    *c = (heed__context){.g = g, .rows = 1};
    heed_session_clear(g->session);
    return heed_session_add(g->session, NULL, 1, err);
}

static heed_status feed_at_once(heed__context *c, const heed_tokens *text, const int32_t *wanted,
                                heed_real *log_p, heed_scores *scores, heed_error *err)
{
    const heed_allocator *a = &c->g->allocator;
    heed_extension *x = heed__allocate(a, (size_t)c->rows, sizeof *x);
    if (!x)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld rows", (long long)c->rows);
    for (int64_t r = 0; r < c->rows; r++)
        x[r] = (heed_extension){
            .row = r, .tokens = text[r], .wanted = wanted, .log_p = log_p, .last = scores != NULL};
    heed_status status = heed_session_extend(c->g->session, x, c->rows, scores, err);
    heed__release(a, x, (size_t)c->rows, sizeof *x);
    return status;
}

static heed_status feed_one_by_one(heed__context *c, const heed_tokens *text, const int32_t *wanted,
                                   heed_real *log_p, heed_scores *scores, heed_error *err)
{
    const heed_allocator *a = &c->g->allocator;
    int32_t *token = heed__allocate(a, (size_t)c->rows, sizeof *token);
    heed_status status = HEED_OK;
    if (!token)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld rows", (long long)c->rows);
    for (int64_t i = 0; !status && i < text[0].count; i++) {
        heed_scores s;
        for (int64_t r = 0; r < c->rows; r++)
            token[r] = text[r].id[i];
        status = heed_session_step(c->g->session, token, &s, err);
        if (!status && wanted)
            log_p[i] = s.logit[wanted[i]] - s.log_z[0];
        if (!status && scores)
            *scores = s;
    }
    heed__release(a, token, (size_t)c->rows, sizeof *token);
    return status;
}

heed_status heed__context_feed(heed__context *c, const heed_tokens *text, const int32_t *wanted,
                               heed_real *log_p, heed_scores *scores, heed_error *err)
{
    c->length += text[0].count;
    return (c->g->packed ? feed_at_once : feed_one_by_one)(c, text, wanted, log_p, scores, err);
}

heed_status heed__context_slide(heed__context *c, const heed_tokens *text, heed_error *err)
{
    heed_generator *g = c->g;
    const int64_t n = heed__max(g->longest / 2, 1);
    heed_status status = HEED_OK;
    heed_tokens *end = heed__allocate(&g->allocator, (size_t)c->rows, sizeof *end);
    if (!end)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld rows", (long long)c->rows);
    for (int64_t r = 0; r < c->rows; r++)
        end[r] = (heed_tokens){text[r].id + text[r].count - n, n};
    c->length = 0;
    for (int64_t r = 0; !status && g->packed && r < c->rows; r++)
        status = heed_session_rewind(g->session, r, 0, err);
    if (!g->packed) {
        heed_session_clear(g->session);
        status = heed_session_add(g->session, NULL, c->rows, err);
    }
    if (!status)
        status = heed__context_feed(c, end, NULL, NULL, NULL, err);
    heed__release(&g->allocator, end, (size_t)c->rows, sizeof *end);
    return status;
}

heed_status heed__context_reorder(heed__context *c, const int32_t *parent, int64_t rows,
                                  heed_error *err)
{
    c->rows = rows;
    return heed_session_reorder(c->g->session, parent, rows, err);
}
