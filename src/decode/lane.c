/* lane.c: what each worker of a translator has to itself: a state of the model and a search. */
#include "decode/translator.h"

#include "base/error.h"

/* Sentences for each thread that make several workers worth their while. */
#define SENTENCES_EACH 8

static void close_lane(heed__lane *l)
{
    heed_session_free(l->session);
    heed__search_free(l->search);
    heed_arena_free(l->text);
    *l = (heed__lane){0};
}

/* Opens lane i, unless it is open with so many threads. */
static heed_status open_lane(heed_translator *tr, int i, int threads, heed_error *err)
{
    heed__lane *l = &tr->lane[i];
    if (l->threads == threads)
        return HEED_OK;
    close_lane(l);
    const heed_session_options how = {.threads = threads, .shortlist = tr->shortlist};
    l->search = heed__search_new(&tr->allocator, err);
    l->text = l->search ? heed_arena_new(&tr->allocator, err) : NULL;
    l->session = l->text ? heed_session_new(tr->engine, &how, &tr->allocator, err) : NULL;
    if (l->session) {
        l->threads = threads;
        return HEED_OK;
    }
    close_lane(l);
    return err && err->status ? err->status : HEED_MEMORY;
}

heed_status heed__lanes_open(heed_translator *tr, int asked, int64_t sentences, int *workers,
                             heed_error *err)
{
    int threads = tr->threads > 0 ? tr->threads : heed__processors();
    threads = threads < HEED_MAX_THREADS ? threads : HEED_MAX_THREADS;
    int n = asked ? asked : sentences >= (int64_t)SENTENCES_EACH * threads ? threads : 1;
    n = n < HEED_MAX_THREADS ? n : HEED_MAX_THREADS;
    *workers = n > 1 ? n : 0;
    if (n < 2)
        return open_lane(tr, 0, threads, err);
    heed_status status = HEED_OK;
    for (int i = 1; !status && i <= n; i++)
        status = open_lane(tr, i, n < threads ? threads / n : 1, err);
    return status;
}

void heed__lanes_close(heed_translator *tr)
{
    for (int i = 0; i <= HEED_MAX_THREADS; i++)
        close_lane(&tr->lane[i]);
}
