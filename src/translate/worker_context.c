/* worker_context.c: what each worker of a translator has to itself: a state of the model and a
 * search. */
#include "translate/translator.h"

#include "base/error.h"
#include "engine/engine.h"

/* Several workers pay off from this many sentences a thread on. */
#define SENTENCES_EACH 8

static void close_context(heed__worker_context *l)
{
    heed_session_free(l->session);
    heed__search_free(l->search);
    heed_arena_free(l->text);
    *l = (heed__worker_context){0};
}

/* Opens context i, unless it is open with this number of threads. */
static heed_status open_context(heed_translator *tr, int i, int threads, heed_error *err)
{
    heed__worker_context *l = &tr->context[i];
    if (l->threads == threads)
        return HEED_OK;
    close_context(l);
    const heed_session_options how = {.threads = threads, .shortlist = tr->shortlist};
    l->search = heed__search_new(&tr->allocator, err);
    l->text = l->search ? heed_arena_new(&tr->allocator, err) : NULL;
    l->session = l->text ? heed_session_new(tr->engine, &how, &tr->allocator, err) : NULL;
    if (l->session) {
        l->threads = threads;
        return HEED_OK;
    }
    close_context(l);
    return err && err->status ? err->status : HEED_MEMORY;
}

/* Bytes of weights that a token needs, above which threads inside a step pay off:
 * with fewer it is over before they have met, and on a busy machine they wait for each other. */
#define SHARED_FROM ((int64_t)8 << 20)

static int64_t bytes_of_token(const heed_engine *e)
{
    const heed_model_config *c = heed_engine_configuration(e);
    const int64_t d = c->d, layer = 6 * d * d + 2 * d * c->transformer.ff;
    const int64_t size = e->weights->bits ? 1 : (int64_t)sizeof(heed_real);
    return size * (d * c->target_vocabulary + c->decoder_layers * layer);
}

/* For one worker: the given number, or what pays off. */
static int threads_inside(const heed_translator *tr, int threads)
{
    const heed_engine *e = tr->engine;
    return tr->threads == 0 && e->weights && bytes_of_token(e) < SHARED_FROM ? 1 : threads;
}

heed_status heed__worker_contexts_open(heed_translator *tr, int asked, int64_t sentences,
                                       int *workers, heed_error *err)
{
    int threads = tr->threads > 0 ? tr->threads : heed__processors();
    threads = threads < HEED_MAX_THREADS ? threads : HEED_MAX_THREADS;
    int n = asked ? asked : sentences >= (int64_t)SENTENCES_EACH * threads ? threads : 1;
    n = n < HEED_MAX_THREADS ? n : HEED_MAX_THREADS;
    *workers = n > 1 ? n : 0;
    if (n < 2)
        return open_context(tr, 0, threads_inside(tr, threads), err);
    heed_status status = HEED_OK;
    for (int i = 1; !status && i <= n; i++)
        status = open_context(tr, i, n < threads ? threads / n : 1, err);
    return status;
}

void heed__worker_contexts_close(heed_translator *tr)
{
    for (int i = 0; i <= HEED_MAX_THREADS; i++)
        close_context(&tr->context[i]);
}
