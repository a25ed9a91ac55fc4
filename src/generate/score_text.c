/* score_text.c: -log P of texts of any size: the tokens are in a mapped file, and go through a row
 * of the session whose context slides. */
#include "base/min_max.h"
#include "data/token_stream.h"
#include "generate/generator.h"

#define AT_ONCE 256 /* tokens of a call */

struct scoring {
    heed__context context;
    const heed__token_stream *s;
    bool (*progress)(void *context, int64_t done, int64_t all);
    void *hears;
    heed_text_score *out;
};

/* The tokens from `at` on go in, which says how likely those behind them are.  at -1: the token
 * that stands before a text. */
static heed_status feed(struct scoring *x, int64_t at, int64_t n, heed_error *err)
{
    heed_real log_p[AT_ONCE];
    const int32_t *id = x->s->id;
    const heed_tokens text = {at < 0 ? &x->context.g->ids.start : id + at, n};
    heed_status status = heed__context_feed(&x->context, &text, id + at + 1, log_p, NULL, err);
    for (int64_t i = 0; !status && i < n; i++)
        x->out->nll -= (double)log_p[i];
    x->out->tokens += status ? 0 : n;
    return status;
}

static heed_status read_all(struct scoring *x, heed_error *err)
{
    heed_generator *g = x->context.g;
    const int64_t count = x->s->count;
    int64_t at = g->ids.start >= 0 ? -1 : 0;
    heed_status status = HEED_OK;
    while (!status && at + 1 < count) {
        if (x->context.length == g->longest) {
            const heed_tokens before = {x->s->id, at};
            status = heed__context_slide(&x->context, &before, err);
        }
        const int64_t left = heed__min(g->longest - x->context.length, count - 1 - at);
        const int64_t n = at < 0 ? 1 : heed__min(left, AT_ONCE);
        if (!status)
            status = feed(x, at, n, err);
        at += n;
        if (!status && x->progress && !x->progress(x->hears, at + 1, count))
            break;
    }
    return status;
}

/* What was read, where somebody stopped. */
static void count_bytes(struct scoring *x)
{
    const double share = x->s->count ? (double)x->out->tokens / (double)x->s->count : 0;
    const bool all = x->out->tokens + (x->context.g->ids.start < 0) >= x->s->count;
    x->out->bytes = all ? x->s->bytes : (int64_t)(share * (double)x->s->bytes);
    x->out->unknown = x->s->unknown;
}

heed_status heed_generator_score(heed_generator *g, const char *const *paths, int count,
                                 bool (*progress)(void *context, int64_t done, int64_t all),
                                 void *context, const heed_log_sink *log, heed_text_score *out,
                                 heed_error *err)
{
    if (!g || !out || !paths)
        return heed__missing(err, !g ? "generator" : !out ? "out" : "paths");
    heed_error own = {0};
    heed__text_files files = {.count = 0};
    heed__token_stream s = {.count = 0};
    struct scoring x = {.s = &s, .progress = progress, .hears = context, .out = out};
    *out = (heed_text_score){.nll = 0};
    heed_status status = heed__text_files_open(&files, paths, count, &g->allocator, &own);
    if (!status)
        status = heed__token_stream_read(&s, g->vocab, &files, HEED__ALL_LINES, log, &own);
    if (!status)
        status = heed__context_begin(&x.context, g, &own);
    if (!status)
        status = read_all(&x, &own);
    if (!status)
        count_bytes(&x);
    heed__token_stream_close(&s);
    heed__text_files_close(&files);
    return status ? heed__fail(err, status, "%s", own.text) : HEED_OK;
}
