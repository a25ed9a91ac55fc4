/* batches.c: a stream of batches.  A thread makes windows, at most two: while one is consumed the
 * next is made.  The caller's thread packs: a batch is copied out of its window, so a window
 * returns to the maker after its last batch, and an update may take any number of batches over any
 * number of windows.  Only windows are exchanged, in order: the batches do not depend on timing.
 *
 * Ranks that share the work tell each other lengths, in the caller's thread, because only that one
 * is at the same place in all of them: those of the next window in the middle of one, so that the
 * thread has half a window's time to draw it and half to make it. */
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
    /* Windows so far, each at most the one before; under the lock. */
    int64_t drawn, shared, made, returned;

    /* the caller's */
    heed__window *taken; /* the window being consumed; NULL: wait for the next */
    heed_batches_position at;
    bool arrived;      /* at.batch of the first window is known to be there */
    heed_arena *arena; /* of the returned batches */
    heed_batches_report report;
    heed_error failed; /* stays until seek */
};

static bool is_shared(const heed_batches *b)
{
    return b->maker.sharing.size > 1;
}

/* ---- the maker's thread ---- */

/* What to do next: to make a window, to draw one (that first window is better), or to stop. */
enum work { MAKE, DRAW, STOP };

static enum work wait_for_work(heed_batches *b, bool ended)
{
    enum work work = STOP;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        const bool room = !ended && b->drawn - b->returned < WINDOWS;
        if (atomic_load(&b->stop) || b->made < b->shared || room)
            break;
        pthread_cond_wait(&b->changed, &b->lock);
    }
    if (!atomic_load(&b->stop))
        work = b->made < b->shared ? MAKE : DRAW;
    pthread_mutex_unlock(&b->lock);
    return work;
}

static void count(heed_batches *b, int64_t *windows)
{
    pthread_mutex_lock(&b->lock);
    ++*windows;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void *make_windows(void *context)
{
    heed_batches *b = context;
    heed_batches_position p = b->begin;
    bool ended = false;
    for (enum work work; (work = wait_for_work(b, ended)) != STOP;) {
        heed__window *w = &b->window[(work == MAKE ? b->made : b->drawn) % WINDOWS];
        if (work == MAKE) {
            heed__window_make(w, &b->maker);
            ended |= w->err.status != HEED_OK;
            count(b, &b->made);
            continue;
        }
        heed__window_draw(w, &b->maker, p);
        ended |= w->end || w->err.status;
        p = heed__window_after(&b->maker, p);
        count(b, &b->drawn);
        if (!is_shared(b))
            count(b, &b->shared);
    }
    return NULL;
}

static void stop_thread(heed_batches *b)
{
    if (!b->running)
        return;
    pthread_mutex_lock(&b->lock);
    atomic_store(&b->stop, true);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    b->running = false;
}

/* Discards all windows made before. */
static heed_status start_thread(heed_batches *b, heed_batches_position p)
{
    stop_thread(b);
    atomic_store(&b->stop, false);
    b->drawn = b->shared = b->made = b->returned = 0;
    b->taken = NULL;
    b->begin = (heed_batches_position){p.epoch, p.window, 0};
    b->at = p;
    b->arrived = false;
    b->maker.kept = -1;
    b->maker.number = -p.batch;
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

/* Waits until there are more than n windows of a kind. */
static void wait_for(heed_batches *b, const int64_t *windows, int64_t n)
{
    pthread_mutex_lock(&b->lock);
    while (*windows <= n)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* Lengths of window n, of all ranks; once. */
static heed_status share(heed_batches *b, int64_t n)
{
    const heed__sharing *s = &b->maker.sharing;
    heed__window *w = &b->window[n % WINDOWS];
    if (!is_shared(b) || b->shared > n) /* only this thread changes it */
        return HEED_OK;
    wait_for(b, &b->drawn, n);
    const size_t bytes = (size_t)heed__maker_share_size(&b->maker) * sizeof *w->mine;
    if (!w->end && !w->err.status && s->gather(s->self, w->mine, w->all, bytes, &b->failed))
        return b->failed.status;
    count(b, &b->shared);
    return HEED_OK;
}

/* The window to consume; waits for it.  NULL after a failure. */
static heed__window *take(heed_batches *b)
{
    const int64_t n = b->returned; /* only this thread changes it */
    if (b->taken)
        return b->taken;
    if (share(b, n))
        return NULL;
    wait_for(b, &b->made, n);
    b->taken = &b->window[n % WINDOWS];
    b->report.drawn += b->taken->pairs + b->taken->left_out;
    b->report.left_out += b->taken->left_out;
    b->report.cut += b->taken->cut;
    if (b->taken->err.status)
        heed__fail(&b->failed, b->taken->err.status, "%s", b->taken->err.text);
    return b->failed.status ? NULL : b->taken;
}

/* Goes to batch n of the current window; after the last one, to the next window. */
static void go_to(heed_batches *b, int64_t n)
{
    b->at.batch = n;
    if (n < b->taken->batches)
        return;
    b->at = heed__window_after(&b->maker, b->at);
    b->taken = NULL;
    count(b, &b->returned);
}

/* At the batch of the first window where the stream begins. */
static heed_status arrive(heed_batches *b)
{
    const int64_t n = b->at.batch;
    if (b->arrived)
        return HEED_OK;
    const heed__window *w = take(b);
    if (!w)
        return b->failed.status;
    b->arrived = true;
    if (n > w->batches)
        return heed__fail(&b->failed, HEED_ARGUMENT,
                          "cannot go to batch %lld of window %lld: it has %lld; same corpus, same "
                          "options?",
                          (long long)n, (long long)b->at.window, (long long)w->batches);
    if (n)
        go_to(b, n);
    return HEED_OK;
}

static heed_status next(heed_batches *b, heed_batch *batch)
{
    heed__window *w = arrive(b) ? NULL : take(b);
    while (w && !w->end && w->batches == 0) {
        go_to(b, 0);
        w = take(b);
    }
    if (!w)
        return b->failed.status;
    *batch = (heed_batch){.epoch = w->position.epoch};
    if (w->end)
        return HEED_OK;
    const int64_t n = b->at.batch, first = w->first[n];
    if (n >= w->batches / 2 && share(b, b->returned + 1))
        return b->failed.status;
    heed_status status =
        heed__batch_pack(b->arena, &b->ids, w->source + first, w->target + first, w->pair + first,
                         w->count[n], heed__window_owns(w, &b->maker, n), batch, &b->failed);
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
    if (!b->running && !b->failed.status)
        start_thread(b, b->at);
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
    if (!start_thread(b, p) && !is_shared(b))
        arrive(b);
    return b->failed.status ? heed__fail(err, b->failed.status, "%s", b->failed.text) : HEED_OK;
}

heed_status heed__batches_share(heed_batches *b, const heed__sharing *sharing, heed_error *err)
{
    if (sharing->size == 1)
        return HEED_OK;
    stop_thread(b);
    heed_status status = heed__maker_share(&b->maker, sharing, err);
    for (int i = 0; i < WINDOWS && !status; i++)
        status = heed__window_share(&b->window[i], &b->maker, err);
    return status;
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
