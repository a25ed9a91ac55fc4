/* batches.c: a stream of batches.  A thread makes windows, at most two: while one is consumed the
 * next is made.  The caller's thread packs: a batch is copied out of its window, so a window
 * returns to the maker after its last batch, and an update may take any number of batches over any
 * number of windows.  Only windows are exchanged, in order: the batches do not depend on timing. */
#include "data/batches.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/corpus.h"

#include <pthread.h>
#include <string.h>

#define WINDOWS 2

struct heed_batches {
    heed_allocator allocator;
    heed__maker maker;
    heed_pair_ids ids;
    heed__window window[WINDOWS];
    pthread_t thread;
    bool running;                /* there is a thread to join */
    heed_batches_position begin; /* first position */
    atomic_bool stop;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t made, returned; /* windows so far; under the lock */

    /* the caller's */
    heed__window *taken; /* the window being consumed; NULL: wait for the next */
    heed_batches_position at;
    heed_arena *arena; /* of the returned batches */
    heed_batches_report report;
    heed_error failed; /* stays until seek */
};

/* ---- the maker's thread ---- */

static bool wait_for_slot(heed_batches *b)
{
    pthread_mutex_lock(&b->lock);
    while (!atomic_load(&b->stop) && b->made - b->returned == WINDOWS)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
    return !atomic_load(&b->stop);
}

static void *make_windows(void *context)
{
    heed_batches *b = context;
    heed_batches_position p = b->begin;
    heed__window *w = NULL;
    for (int64_t n = 0; !(w && (w->end || w->err.status)) && wait_for_slot(b); n++) {
        w = &b->window[n % WINDOWS];
        heed__window_make(w, &b->maker, p);
        p = heed__window_after(&b->maker, p);
        pthread_mutex_lock(&b->lock);
        b->made++;
        pthread_cond_signal(&b->changed);
        pthread_mutex_unlock(&b->lock);
    }
    return NULL;
}

static void stop_thread(heed_batches *b)
{
    if (!b->running)
        return;
    pthread_mutex_lock(&b->lock);
    atomic_store(&b->stop, true);
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    b->running = false;
}

/* Discards all windows made before. */
static heed_status start_thread(heed_batches *b, heed_batches_position p)
{
    stop_thread(b);
    atomic_store(&b->stop, false);
    b->made = b->returned = 0;
    b->taken = NULL;
    b->begin = b->at = (heed_batches_position){p.epoch, p.window, 0};
    b->maker.kept = -1;
    b->report = (heed_batches_report){0};
    b->failed.status = HEED_OK;
    int number = pthread_create(&b->thread, NULL, make_windows, b);
    if (number)
        return heed__fail(&b->failed, HEED_MEMORY, "cannot start the thread that makes batches: %s",
                          strerror(number));
    b->running = true;
    return HEED_OK;
}

/* ---- the caller's thread ---- */

/* The window to consume; waits for it. */
static heed__window *take(heed_batches *b)
{
    if (b->taken)
        return b->taken;
    pthread_mutex_lock(&b->lock);
    while (b->made == b->returned)
        pthread_cond_wait(&b->changed, &b->lock);
    b->taken = &b->window[b->returned % WINDOWS];
    pthread_mutex_unlock(&b->lock);
    b->report.drawn += b->taken->pairs + b->taken->left_out;
    b->report.left_out += b->taken->left_out;
    return b->taken;
}

/* Goes to batch n of the current window; after the last one, to the next window. */
static void go_to(heed_batches *b, int64_t n)
{
    b->at.batch = n;
    if (n < b->taken->batches)
        return;
    b->at = heed__window_after(&b->maker, b->at);
    b->taken = NULL;
    pthread_mutex_lock(&b->lock);
    b->returned++;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static heed_status next(heed_batches *b, heed_batch *batch)
{
    heed__window *w = take(b);
    while (!w->end && !w->err.status && w->batches == 0) {
        go_to(b, 0);
        w = take(b);
    }
    *batch = (heed_batch){.epoch = w->position.epoch};
    if (w->err.status)
        return heed__fail(&b->failed, w->err.status, "%s", w->err.text);
    if (w->end)
        return HEED_OK;
    int64_t n = b->at.batch, first = w->first[n];
    heed_status status = heed__batch_pack(b->arena, &b->ids, w->source + first, w->target + first,
                                          w->pair + first, w->count[n], batch, &b->failed);
    if (status)
        return status;
    batch->epoch = w->position.epoch;
    b->report.source_tokens += batch->source.rows->rows;
    b->report.target_tokens += batch->target.rows->rows;
    go_to(b, n + 1);
    return HEED_OK;
}

heed_status heed_batches_next(heed_batches *b, heed_batch *batch, int count, heed_error *err)
{
    if (!b)
        return heed__missing(err, "batches");
    heed_arena_reset(b->arena);
    for (int i = 0; i < count && !b->failed.status; i++)
        next(b, &batch[i]);
    if (!b->failed.status)
        return HEED_OK;
    for (int i = 0; i < count; i++)
        batch[i] = (heed_batch){0};
    return heed__fail(err, b->failed.status, "%s", b->failed.text);
}

heed_batches_position heed_batches_tell(const heed_batches *b)
{
    if (!b)
        return (heed_batches_position){0};
    return b->at;
}

heed_status heed_batches_seek(heed_batches *b, heed_batches_position p, heed_error *err)
{
    if (!b)
        return heed__missing(err, "batches");
    const heed__maker *m = &b->maker;
    int64_t epochs = m->options.epochs;
    bool at_end = epochs && p.epoch == epochs && p.window == 0 && p.batch == 0;
    if (p.epoch < 0 || p.window < 0 || p.batch < 0 || p.window >= m->windows ||
        (epochs && p.epoch >= epochs && !at_end))
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot go to epoch %lld, window %lld, batch %lld: the stream has %lld "
                          "epochs (0: no end) of %lld windows; same corpus, same options?",
                          (long long)p.epoch, (long long)p.window, (long long)p.batch,
                          (long long)epochs, (long long)m->windows);
    if (!start_thread(b, p) && !at_end) {
        const heed__window *w = take(b);
        if (w->err.status)
            heed__fail(&b->failed, w->err.status, "%s", w->err.text);
        else if (p.batch > w->batches)
            heed__fail(&b->failed, HEED_ARGUMENT,
                       "cannot go to batch %lld of window %lld: it has %lld; same corpus, same "
                       "options?",
                       (long long)p.batch, (long long)p.window, (long long)w->batches);
        else
            go_to(b, p.batch);
    }
    return b->failed.status ? heed__fail(err, b->failed.status, "%s", b->failed.text) : HEED_OK;
}

heed_batches_report heed_batches_describe(const heed_batches *b)
{
    if (!b)
        return (heed_batches_report){0};
    return b->report;
}

heed_batches *heed_batches_new(const heed_corpus *c, const heed_vocab *source,
                               const heed_vocab *target, const heed_batches_options *options,
                               const heed_allocator *allocator, heed_error *err)
{
    if (!c)
        return heed__missing(err, "corpus"), NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_batches *b = heed__allocate_zeroed(&a, 1, sizeof *b);
    if (!b) {
        heed__fail(err, HEED_MEMORY, "out of memory for a stream of batches");
        return NULL;
    }
    b->allocator = a;
    b->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    b->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    atomic_init(&b->stop, false);
    heed_error local = {0};
    heed_status status = heed__maker_init(&b->maker, c, source, target, options, &a, &local);
    b->maker.stop = &b->stop;
    b->ids = (heed_pair_ids){heed_vocab_special(source), heed_vocab_special(target)};
    for (int i = 0; i < WINDOWS && !status; i++)
        status = heed__window_init(&b->window[i], &b->maker, &a, &local);
    if (!status && !(b->arena = heed_arena_new(&a, &local)))
        status = HEED_MEMORY;
    if (!status && !options->in_order)
        heed__corpus_scattered(c);
    if (!status && start_thread(b, (heed_batches_position){0}))
        local = b->failed;
    if (!local.status)
        return b;
    heed_batches_free(b);
    heed__fail(err, local.status, "%s", local.text);
    return NULL;
}

void heed_batches_free(heed_batches *b)
{
    if (!b)
        return;
    stop_thread(b);
    for (int i = 0; i < WINDOWS; i++)
        heed__window_deinit(&b->window[i]);
    heed__maker_deinit(&b->maker);
    heed_arena_free(b->arena);
    heed_allocator a = b->allocator;
    heed__release(&a, b, 1, sizeof *b);
}
