/* thread_pool.c: threads, one lock and two conditions.  A worker without work sleeps. */
#include "base/thread_pool.h"
#include "base/error.h"
#include "base/parallel.h"

#include <string.h>
#include <time.h>

heed_status heed__thread_pool_init(heed__thread_pool *p, heed_error *err)
{
    pthread_condattr_t clock;
    *p = (heed__thread_pool){.stopped = false};
    int number = pthread_mutex_init(&p->lock, NULL);
    if (!number)
        number = pthread_condattr_init(&clock);
    if (!number) {
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        number = pthread_cond_init(&p->more, NULL);
        if (!number)
            number = pthread_cond_init(&p->done, &clock);
        pthread_condattr_destroy(&clock);
    }
    return number ? heed__fail(err, HEED_MEMORY, "cannot set up workers: %s", strerror(number))
                  : HEED_OK;
}

void heed__thread_pool_deinit(heed__thread_pool *p)
{
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
}

void heed__thread_pool_stop(heed__thread_pool *p, const heed_error *err)
{
    pthread_mutex_lock(&p->lock);
    if (err)
        heed__fail(&p->failed, err->status, "%s", err->text);
    p->stopped = true;
    pthread_cond_broadcast(&p->more);
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

heed_status heed__thread_pool_failed(heed__thread_pool *p, heed_error *err)
{
    pthread_mutex_lock(&p->lock);
    heed_status status = p->failed.status;
    if (status)
        heed__fail(err, status, "%s", p->failed.text);
    pthread_mutex_unlock(&p->lock);
    return status;
}

void heed__thread_pool_wait_done(heed__thread_pool *p, int milliseconds)
{
    struct timespec until;
    if (!milliseconds) {
        pthread_cond_wait(&p->done, &p->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += milliseconds * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&p->done, &p->lock, &until);
}

/* ---- threads ---- */

struct worker {
    heed__thread_pool *pool;
    heed__thread_pool_body *body;
    void *context;
    int number;
    pthread_t thread;
};

static void *run(void *context)
{
    const struct worker *w = context;
    heed_error err = {0};
    if (w->body(w->context, w->number, &err))
        heed__thread_pool_stop(w->pool, &err);
    return NULL;
}

heed_status heed__thread_pool_run(heed__thread_pool *p, int count, heed__thread_pool_body *body,
                                  void *context, heed_error *err)
{
    struct worker worker[HEED_MAX_THREADS + 1];
    int started = 1;
    for (int i = 0; i < count; i++)
        worker[i] = (struct worker){p, body, context, i, pthread_self()};
    for (; started < count; started++) {
        int number = pthread_create(&worker[started].thread, NULL, run, &worker[started]);
        if (number) {
            heed_error failed = {0};
            heed__fail(&failed, HEED_MEMORY, "cannot start a thread: %s", strerror(number));
            heed__thread_pool_stop(p, &failed);
            break;
        }
    }
    if (started == count)
        run(&worker[0]);
    for (int i = 1; i < started; i++)
        pthread_join(worker[i].thread, NULL);
    return heed__thread_pool_failed(p, err);
}
