/* search_array.c: the search over sentences that are all there, and over a decoder. */
#include "base/error.h"
#include "engine/engine.h"
#include "search/beam.h"

#include <string.h>

heed_status heed__hypothesis_keep(heed_hypothesis *h, heed_arena *arena, heed_error *err)
{
    int32_t *id = heed__take(arena, h->count, sizeof *id, err);
    heed_real *log_p = heed__take(arena, h->count, sizeof *log_p, err);
    if (!id || !log_p)
        return HEED_MEMORY;
    if (h->count) {
        memcpy(id, h->id, (size_t)h->count * sizeof *id);
        memcpy(log_p, h->token_log_p, (size_t)h->count * sizeof *log_p);
    }
    h->id = id;
    h->token_log_p = log_p;
    return HEED_OK;
}

struct array {
    const heed_tokens *source;
    int64_t count, next, n_best;
    heed_arena *arena;
    heed_hypothesis *out;
    bool prompts; /* the model has no sources: these are beginnings */
};

static heed_status next_of(void *self, bool wait, heed__capacity capacity, heed__request *out,
                           int64_t *count, heed_error *err)
{
    struct array *a = self;
    (void)err;
    for (*count = 0; a->next < a->count; ++*count, a->next++) {
        const heed_tokens *source = &a->source[a->next];
        if (!heed__capacity_take(&capacity, source, wait && *count == 0))
            break;
        out[*count] =
            (heed__request){.number = (uint64_t)a->next, .owner = a->out + a->next * a->n_best};
        *(a->prompts ? &out[*count].prefix : &out[*count].source) = *source;
    }
    return HEED_OK;
}

static heed_status keep(void *self, const heed__request *r, const heed_hypothesis *found,
                        heed_error *err)
{
    struct array *a = self;
    heed_hypothesis *out = r->owner;
    for (int64_t i = 0; i < a->n_best; i++) {
        out[i] = found[i];
        if (out[i].count && heed__hypothesis_keep(&out[i], a->arena, err))
            return HEED_MEMORY;
    }
    return HEED_OK;
}

heed_status heed__search_all(const heed__stepper *model, const heed_search_options *o,
                             const heed__budget *budget, const heed_tokens *source, int64_t count,
                             const heed_allocator *allocator, heed_arena *arena,
                             heed_hypothesis *out, heed_error *err)
{
    struct array a = {source, count, 0, o->n_best, arena, out, !model->sources};
    heed__request_source requests = {&a, next_of, keep};
    heed__search *s = heed__search_new(allocator, err);
    heed_status status = s ? heed__search_run(s, model, o, budget, &requests, err) : HEED_MEMORY;
    heed__search_free(s);
    return status;
}

heed_status heed_search(heed_session *session, const heed_search_options *o,
                        const heed_tokens *source, int64_t count, heed_arena *arena,
                        heed_hypothesis *out, heed_error *err)
{
    if (!session)
        return heed__missing(err, "session");
    return heed__search_all(&session->stepper, o, &heed__usual_budget, source, count,
                            &session->allocator, arena, out, err);
}
