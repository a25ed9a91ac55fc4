/* translate.c: lines of text through the search, by one thread or several.
 *
 * One: the search requests sentences, which reads lines, and returns them, which writes them.
 * Several: each worker has a search of its own; the caller's thread reads and writes, and the
 * windows of lines between them are under the pool's lock. */
#include "base/error.h"
#include "base/thread_pool.h"
#include "text/capitals.h"
#include "translate/line_queue.h"

#include <string.h>

/* How long the caller's thread sleeps before it looks again whether lines have come. */
#define LOOK_AGAIN 5 /* milliseconds */

const int64_t *heed__longest_first(const int64_t *lengths, int64_t count, int64_t most,
                                   heed_arena *arena, heed_error *err)
{
    int64_t *order = heed__take(arena, count, sizeof *order, err);
    int64_t *place = heed__take(arena, most + 2, sizeof *place, err);
    if (!order || !place)
        return NULL;
    /* Counting sort: place[most - l] is where the next one of length l goes. */
    memset(place, 0, (size_t)(most + 2) * sizeof *place);
    for (int64_t i = 0; i < count; i++)
        place[most + 1 - lengths[i]]++;
    for (int64_t l = 1; l < most + 2; l++)
        place[l] += place[l - 1];
    for (int64_t i = 0; i < count; i++)
        order[place[most - lengths[i]]++] = i;
    return order;
}

struct job {
    heed__line_queue queue;
    heed__thread_pool pool;
    heed__budget budget;
    int workers; /* 0: the caller's thread does it all */
};

/* A worker and what it has to itself. */
struct worker {
    struct job *job;
    heed__worker_context *context;
};

/* ---- out: the caller's thread ---- */

static heed_status write_ready(struct job *j, heed_error *err)
{
    const heed_line_stream *stream = j->queue.stream;
    for (;;) {
        pthread_mutex_lock(&j->pool.lock);
        const heed__queued_line *e = heed__line_queue_ready(&j->queue);
        pthread_mutex_unlock(&j->pool.lock);
        heed_status status = e ? stream->done(stream->context, &e->given, e->out, err) : HEED_OK;
        if (!e || status)
            return status;
        heed__line_queue_left(&j->queue);
    }
}

/* ---- through: the worker's ---- */

static heed_status set_translation(const struct worker *worker, const heed__part *part,
                                   const heed_hypothesis *h, heed_translation *out, heed_error *err)
{
    heed_arena *arena = worker->context->text;
    *out = (heed_translation){.text = "",
                              .score = h->score,
                              .log_p = h->log_p,
                              .tokens = h->count,
                              .id = h->id,
                              .token_log_p = h->token_log_p,
                              .loop = h->loop};
    heed_status status = HEED_OK;
    if (h->count)
        status = heed_vocab_decode(worker->job->queue.tr->target, h->id, h->count, arena,
                                   &out->text, err);
    if (status)
        return status;
    if (part->spans)
        out->text = heed__restore(out->text, part->span, part->spans, arena);
    if (out->text && part->entry->line.all_caps)
        out->text = heed__to_upper(out->text, arena);
    return out->text ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for a translation");
}

/* Where the best hypothesis looked. */
static heed_status align(const struct worker *worker, const heed__request *r,
                         const heed_hypothesis *h, heed__alignment *out, heed_error *err)
{
    const heed_translator *tr = worker->job->queue.tr;
    const bool ended = h->count && h->id[h->count - 1] == heed_vocab_special(tr->target).eos;
    const heed__part *part = r->owner;
    const heed__side source = {tr->source, r->source, part->span, part->spans, false},
                     target = {
                         tr->target, {h->id, h->count - ended}, part->span, part->spans, true};
    const heed_real *weight;
    int64_t ld;
    heed_status status =
        heed__cross_weights(tr->engine, &source.tokens, &target.tokens, tr->align_layer - 1,
                            tr->align_head - 1, worker->context->text, &weight, &ld, err);
    return status ? status
                  : heed__align(&source, &target, weight, ld, worker->context->text, out, err);
}

static heed_status deliver(struct worker *worker, const heed__request *r, const heed_hypothesis *h,
                           heed_error *err)
{
    heed__part *part = r->owner;
    heed__alignment alignment = {0};
    heed_arena_reset(worker->context->text);
    heed_translation *t = heed__take(worker->context->text, part->outs, sizeof *t, err);
    heed_status status = t ? HEED_OK : HEED_MEMORY;
    for (int64_t k = 0; !status && k < part->outs; k++) {
        t[k] = (heed_translation){0};
        if (k == 0 || h[k].count)
            status = set_translation(worker, part, &h[k], &t[k], err);
    }
    if (!status && worker->job->queue.tr->aligns)
        status = align(worker, r, h, &alignment, err);
    if (status)
        return status;
    pthread_mutex_lock(&worker->job->pool.lock);
    status = heed__line_queue_deliver(&worker->job->queue, part, t, &alignment, err);
    pthread_cond_signal(&worker->job->pool.done);
    pthread_mutex_unlock(&worker->job->pool.lock);
    return status;
}

static heed_status next_alone(void *self, bool wait, heed__capacity capacity, heed__request *out,
                              int64_t *count, heed_error *err)
{
    struct job *j = ((struct worker *)self)->job;
    heed__line_queue *b = &j->queue;
    for (;;) {
        int64_t lines = 0;
        *count = heed__line_queue_take(b, wait, capacity, out);
        if (*count || b->opened - b->written == HEED__WINDOWS)
            return HEED_OK;
        heed_status status = heed__line_queue_read(b, wait, &lines, err);
        if (status || !lines)
            return status;
        b->opened++;
        status = write_ready(j, err); /* empty lines need no search */
        if (status)
            return status;
    }
}

static heed_status done_alone(void *self, const heed__request *r, const heed_hypothesis *h,
                              heed_error *err)
{
    struct worker *worker = self;
    heed_status status = deliver(worker, r, h, err);
    return status ? status : write_ready(worker->job, err);
}

static heed_status next_of_many(void *self, bool wait, heed__capacity capacity, heed__request *out,
                                int64_t *count, heed_error *err)
{
    struct job *j = ((struct worker *)self)->job;
    (void)err;
    pthread_mutex_lock(&j->pool.lock);
    for (*count = 0; !j->pool.failed.status;) {
        *count = heed__line_queue_take(&j->queue, wait, capacity, out);
        if (*count || !wait || j->pool.stopped)
            break;
        pthread_cond_wait(&j->pool.more, &j->pool.lock);
    }
    pthread_mutex_unlock(&j->pool.lock);
    return HEED_OK;
}

static heed_status done_by_many(void *self, const heed__request *r, const heed_hypothesis *h,
                                heed_error *err)
{
    struct worker *worker = self;
    heed_status status = heed__thread_pool_failed(&worker->job->pool, err);
    return status ? status : deliver(worker, r, h, err);
}

static heed_status search(struct job *j, int number, heed_error *err)
{
    struct worker worker = {j, &j->queue.tr->context[number]};
    heed__request_source requests = {&worker, j->workers ? next_of_many : next_alone,
                                     j->workers ? done_by_many : done_alone};
    return heed__search_run(worker.context->search, &worker.context->session->stepper, &j->queue.o,
                            &j->budget, &requests, err);
}

/* ---- in: the caller's thread ---- */

/* Waits until something is done, or for a moment where lines may come. */
static heed_status wait_for_workers(struct job *j, bool may_come, heed_error *err)
{
    pthread_mutex_lock(&j->pool.lock);
    if (!j->pool.failed.status && !heed__line_queue_ready(&j->queue))
        heed__thread_pool_wait_done(&j->pool, may_come ? LOOK_AGAIN : 0);
    pthread_mutex_unlock(&j->pool.lock);
    return heed__thread_pool_failed(&j->pool, err);
}

static heed_status read_and_write(struct job *j, heed_error *err)
{
    heed__line_queue *b = &j->queue;
    for (;;) {
        int64_t lines = 0;
        heed_status status = write_ready(j, err);
        bool busy = b->written < b->opened, free_window = b->opened - b->written < HEED__WINDOWS;
        if (!status && free_window) {
            /* Windows of empty lines are written without a worker having looked at them; none may
             * do so while their place is filled anew. */
            pthread_mutex_lock(&j->pool.lock);
            if (b->emptied < b->written)
                b->emptied = b->written;
            pthread_mutex_unlock(&j->pool.lock);
            status = heed__line_queue_read(b, !busy, &lines, err);
        }
        if (status || (!busy && !lines))
            return status;
        if (lines) {
            pthread_mutex_lock(&j->pool.lock);
            b->opened++;
            pthread_cond_broadcast(&j->pool.more);
            pthread_mutex_unlock(&j->pool.lock);
        } else if ((status = wait_for_workers(j, free_window, err))) {
            return status;
        }
    }
}

static heed_status body(void *context, int worker, heed_error *err)
{
    struct job *j = context;
    if (worker)
        return search(j, worker, err);
    heed_status status = read_and_write(j, err);
    heed__thread_pool_stop(&j->pool, status ? err : NULL);
    return status;
}

/* ---- both ---- */

static heed_status run(struct job *j, const heed_stream_options *so, heed_error *err)
{
    int64_t lines = 0;
    heed_status status = heed__line_queue_read(&j->queue, true, &lines, err);
    if (status || !lines)
        return status;
    j->queue.opened++;
    /* The first lines decide how the work is done. */
    status = heed__worker_contexts_open(j->queue.tr, so->workers, j->queue.window[0].parts,
                                        &j->workers, err);
    if (status)
        return status;
    /* Twice as many portions as workers, so that none is left with the longest alone. */
    j->queue.portions = j->workers ? 2 * j->workers : 1;
    if (j->workers)
        return heed__thread_pool_run(&j->pool, j->workers + 1, body, j, err);
    status = write_ready(j, err);
    return status ? status : search(j, 0, err);
}

heed_status heed_translate_stream(heed_translator *tr, const heed_search_options *o,
                                  const heed_stream_options *so, const heed_line_stream *stream,
                                  heed_error *err)
{
    if (!tr)
        return heed__missing(err, "translator");
    struct job j = {.budget = heed__usual_budget};
    heed_error failed = {0};
    if (so->batch > 0)
        j.budget.sentences = so->batch;
    heed_status status = heed__line_queue_init(&j.queue, tr, o, stream, &failed);
    if (!status && !(status = heed__thread_pool_init(&j.pool, &failed))) {
        status = run(&j, so, &failed);
        heed__thread_pool_deinit(&j.pool);
    }
    if (!status && (status = j.queue.ended.status))
        failed = j.queue.ended;
    return status ? heed__fail(err, failed.status, "%s", failed.text) : HEED_OK;
}

/* ---- lines that are all there ---- */

struct array {
    const char *const *line;
    int64_t count, next, n_best;
    heed_arena *arena;
    heed_translation *out;
};

static heed_status next_line(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    struct array *a = context;
    (void)wait, (void)err;
    if (a->next < a->count)
        *line = (heed_source_line){.text = a->line[a->next],
                                   .number = (uint64_t)a->next,
                                   .tag = a->out + a->next * a->n_best};
    a->next++;
    return HEED_OK;
}

static heed_status keep_line(void *context, const heed_source_line *line,
                             const heed_translation *found, heed_error *err)
{
    const struct array *a = context;
    heed_translation *out = line->tag;
    for (int64_t k = 0; k < a->n_best; k++) {
        out[k] = found[k];
        if (out[k].text && heed__translation_keep(&out[k], a->arena, err))
            return HEED_MEMORY;
    }
    return HEED_OK;
}

heed_status heed_translate(heed_translator *tr, const heed_search_options *o,
                           const char *const *lines, int64_t count, heed_arena *arena,
                           heed_translation *out, heed_error *err)
{
    if (!tr)
        return heed__missing(err, "translator");
    struct array a = {lines, count, 0, o->n_best, arena, out};
    heed_line_stream stream = {&a, next_line, keep_line};
    return heed_translate_stream(tr, o, &(heed_stream_options){0}, &stream, err);
}
