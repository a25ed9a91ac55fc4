/* scores.c: how probable given translations are.  The search is told every token of them, and gives
 * what it would have added up; so scores need nothing of a model that translating does not. */
#include "base/error.h"
#include "base/thread_pool.h"
#include "translate/translator.h"

#include <stdio.h>

struct pairs {
    heed_translator *tr;
    heed_tokens *source, *target;
    const int64_t *order; /* the longest first */
    int64_t count, next;
    int workers;
    heed_arena *arena; /* the caller's */
    heed_hypothesis *out;
    heed__thread_pool pool; /* its lock guards the two above, and next */
};

static heed_status check_length(const struct pairs *p, int64_t i, const char *side,
                                const heed_tokens *tokens, heed_error *err)
{
    int64_t longest = heed_engine_configuration(p->tr->engine)->longest - 1; /* EOS has its place */
    if (tokens->count <= longest)
        return HEED_OK;
    char which[40] = ""; /* of one pair nobody needs to know which */
    if (p->count > 1)
        snprintf(which, sizeof which, " of pair %lld", (long long)i + 1);
    return heed__fail(err, HEED_ARGUMENT,
                      "the %s%s has %lld tokens, expected at most %lld as the model takes: cut "
                      "the pair, or leave it out",
                      side, which, (long long)tokens->count, (long long)longest);
}

static heed_status prepare(struct pairs *p, const char *const *source, const char *const *target,
                           heed_error *err)
{
    heed_translator *tr = p->tr;
    heed_arena_reset(tr->lines);
    p->source = heed__take(tr->lines, p->count, sizeof *p->source, err);
    p->target = heed__take(tr->lines, p->count, sizeof *p->target, err);
    int64_t *length = heed__take(tr->lines, p->count, sizeof *length, err);
    if (!p->source || !p->target || !length)
        return HEED_MEMORY;
    for (int64_t i = 0; i < p->count; i++) {
        heed_encoded_pair pair;
        if (heed_translator_encode(tr, source[i], target[i], tr->lines, &pair, err) ||
            check_length(p, i, "source", &pair.source, err) ||
            check_length(p, i, "target", &pair.target, err))
            return err->status;
        p->source[i] = pair.source;
        p->target[i] = pair.target;
        length[i] = pair.source.count > pair.target.count ? pair.source.count : pair.target.count;
    }
    int64_t most = heed_engine_configuration(tr->engine)->longest;
    p->order = heed__longest_first(length, p->count, most, tr->lines, err);
    return p->order ? HEED_OK : HEED_MEMORY;
}

static heed_status next_pairs(void *self, bool wait, heed__capacity capacity, heed__request *out,
                              int64_t *count, heed_error *err)
{
    struct pairs *p = self;
    (void)err;
    pthread_mutex_lock(&p->pool.lock);
    for (*count = 0; p->next < p->count && !p->pool.stopped; p->next++, ++*count) {
        int64_t i = p->order[p->next];
        if (!heed__capacity_take(&capacity, &p->source[i], wait && *count == 0))
            break;
        out[*count] = (heed__request){
            .source = p->source[i], .prefix = p->target[i], .whole = true, .owner = &p->out[i]};
    }
    pthread_mutex_unlock(&p->pool.lock);
    return HEED_OK;
}

static heed_status keep_score(void *self, const heed__request *r, const heed_hypothesis *h,
                              heed_error *err)
{
    struct pairs *p = self;
    heed_hypothesis *out = r->owner;
    *out = *h;
    pthread_mutex_lock(&p->pool.lock);
    heed_status status = heed__hypothesis_keep(out, p->arena, err);
    pthread_mutex_unlock(&p->pool.lock);
    return status;
}

static heed_status body(void *context, int worker, heed_error *err)
{
    struct pairs *p = context;
    heed__worker_context *own = &p->tr->context[p->workers ? worker + 1 : 0];
    heed__request_source requests = {p, next_pairs, keep_score};
    heed_search_options o = {.beam = 1, .n_best = 1};
    return heed__search_run(own->search, &own->session->stepper, &o, &heed__usual_budget, &requests,
                            err);
}

heed_status heed_score(heed_translator *tr, const char *const *source, const char *const *target,
                       int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err)
{
    if (!tr)
        return heed__missing(err, "translator");
    struct pairs p = {.tr = tr, .count = count, .arena = arena, .out = out};
    heed_error failed = {0};
    heed_status status = prepare(&p, source, target, &failed);
    if (!status)
        status = heed__worker_contexts_open(tr, 0, count, &p.workers, &failed);
    if (!status && !(status = heed__thread_pool_init(&p.pool, &failed))) {
        status = heed__thread_pool_run(&p.pool, p.workers ? p.workers : 1, body, &p, &failed);
        heed__thread_pool_deinit(&p.pool);
    }
    return status ? heed__fail(err, failed.status, "%s", failed.text) : HEED_OK;
}
