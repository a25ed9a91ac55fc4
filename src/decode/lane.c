/* lane.c: what each worker of a translator has to itself: a state of the model and a search. */
#include "decode/translator.h"

#include "base/error.h"
#include "base/memory.h"

/* Sentences for each thread that make several workers worth their while. */
#define SENTENCES_EACH 8

/* ---- decoders, of any model ---- */

static void close_decoder(void *self, heed__stepper *model)
{
    const heed_translator *tr = self;
    heed__decoding *d = model->self;
    if (!d)
        return;
    heed_decoder_free(d->decoder);
    heed_arena_free(d->arena);
    heed__release(&tr->allocator, d, 1, sizeof *d);
    model->self = NULL;
}

static heed_status open_decoder(void *self, int threads, heed__stepper *model, heed_error *err)
{
    const heed_translator *tr = self;
    heed__decoding *d = heed__allocate_zeroed(&tr->allocator, 1, sizeof *d);
    *model = (heed__stepper){.self = d};
    if (!d)
        return heed__fail(err, HEED_MEMORY, "out of memory for a decoder");
    d->decoder = heed_decoder_new(tr->model, threads, &tr->allocator, err);
    d->arena = d->decoder ? heed_arena_new(&tr->allocator, err) : NULL;
    if (!d->arena) {
        close_decoder(self, model);
        return HEED_MEMORY;
    }
    *model = heed__decoder_stepper(d);
    return HEED_OK;
}

heed__steppers heed__decoders_of(heed_translator *tr)
{
    return (heed__steppers){tr, open_decoder, close_decoder};
}

/* ---- lanes ---- */

static void close_lane(const heed_translator *tr, heed__lane *l)
{
    if (l->threads)
        tr->steppers.close(tr->steppers.self, &l->model);
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
    close_lane(tr, l);
    l->search = heed__search_new(&tr->allocator, err);
    l->text = l->search ? heed_arena_new(&tr->allocator, err) : NULL;
    if (l->text && !tr->steppers.open(tr->steppers.self, threads, &l->model, err)) {
        l->threads = threads;
        return HEED_OK;
    }
    close_lane(tr, l);
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
        close_lane(tr, &tr->lane[i]);
}
