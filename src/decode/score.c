/* score.c: how probable given translations are.  The search is told every token of them, and gives
 * what it would have added up; so scores need nothing of a model that translating does not. */
#include "base/error.h"
#include "decode/translator.h"
#include "decode/workers.h"

struct pairs {
    heed_translator *tr;
    heed_tokens *source, *target;
    const int64_t *order; /* the longest first */
    int64_t count, next;
    int workers;
    heed_arena *arena; /* the caller's */
    heed_hypothesis *out;
    heed__crew crew; /* its lock guards the two above, and next */
};

static heed_status encode_side(const heed_translator *tr, const heed_vocab *v, const char *side,
                               const char *const *lines, int64_t count, heed_tokens **tokens,
                               heed_error *err)
{
    int64_t longest = heed_engine_configuration(tr->engine)->longest - 1; /* EOS has its place */
    heed_tokens *t = *tokens = heed__take(tr->lines, count, sizeof *t, err);
    heed_status status = t ? HEED_OK : HEED_MEMORY;
    for (int64_t i = 0; !status && i < count; i++) {
        bool repaired;
        status = heed__encode_line(v, lines[i], tr->lines, &t[i], &repaired, err);
        if (!status && t[i].count > longest)
            status = heed__fail(err, HEED_ARGUMENT,
                                "the %s of pair %lld has %lld tokens, expected at most %lld as the "
                                "model takes",
                                side, (long long)i + 1, (long long)t[i].count, (long long)longest);
    }
    return status;
}

static heed_status prepare(struct pairs *p, const char *const *source, const char *const *target,
                           heed_error *err)
{
    heed_translator *tr = p->tr;
    heed_arena_reset(tr->lines);
    heed_status status = encode_side(tr, tr->source, "source", source, p->count, &p->source, err);
    if (!status)
        status = encode_side(tr, tr->target, "target", target, p->count, &p->target, err);
    if (status)
        return status;
    int64_t *length = heed__take(tr->lines, p->count, sizeof *length, err);
    for (int64_t i = 0; length && i < p->count; i++) {
        int64_t m = p->source[i].count, n = p->target[i].count;
        length[i] = m > n ? m : n;
    }
    int64_t most = heed_engine_configuration(tr->engine)->longest;
    p->order = length ? heed__longest_first(length, p->count, most, tr->lines, err) : NULL;
    return p->order ? HEED_OK : HEED_MEMORY;
}

static heed_status next_pairs(void *self, bool wait, heed__room room, heed__request *out,
                              int64_t *count, heed_error *err)
{
    struct pairs *p = self;
    (void)err;
    pthread_mutex_lock(&p->crew.lock);
    for (*count = 0; p->next < p->count && !p->crew.stopped; p->next++, ++*count) {
        int64_t i = p->order[p->next];
        if (!heed__room_take(&room, &p->source[i], wait && *count == 0))
            break;
        out[*count] = (heed__request){
            .source = p->source[i], .prefix = p->target[i], .whole = true, .owner = &p->out[i]};
    }
    pthread_mutex_unlock(&p->crew.lock);
    return HEED_OK;
}

static heed_status keep_score(void *self, const heed__request *r, const heed_hypothesis *h,
                              heed_error *err)
{
    struct pairs *p = self;
    heed_hypothesis *out = r->owner;
    *out = *h;
    pthread_mutex_lock(&p->crew.lock);
    heed_status status = heed__hypothesis_keep(out, p->arena, err);
    pthread_mutex_unlock(&p->crew.lock);
    return status;
}

static heed_status body(void *context, int worker, heed_error *err)
{
    struct pairs *p = context;
    heed__lane *lane = &p->tr->lane[p->workers ? worker + 1 : 0];
    heed__feed feed = {p, next_pairs, keep_score};
    heed_search_options o = {.beam = 1, .n_best = 1};
    return heed__search_run(lane->search, &lane->session->stepper, &o, &heed__usual_budget, &feed,
                            err);
}

heed_status heed_score(heed_translator *tr, const char *const *source, const char *const *target,
                       int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err)
{
    struct pairs p = {.tr = tr, .count = count, .arena = arena, .out = out};
    heed_error failed = {0};
    heed_status status = prepare(&p, source, target, &failed);
    if (!status)
        status = heed__lanes_open(tr, 0, count, &p.workers, &failed);
    if (!status && !(status = heed__crew_init(&p.crew, &failed))) {
        status = heed__crew_run(&p.crew, p.workers ? p.workers : 1, body, &p, &failed);
        heed__crew_deinit(&p.crew);
    }
    return status ? heed__fail(err, failed.status, "%s", failed.text) : HEED_OK;
}
