/* workers.c: threads, one lock and two conditions.  Who has nothing to do sleeps. */
#include "decode/workers.h"
#include "base/error.h"
#include "base/parallel.h"

#include <string.h>
#include <time.h>

heed_status heed__crew_init(heed__crew *c, heed_error *err)
{
    pthread_condattr_t clock;
    *c = (heed__crew){.stopped = false};
    int number = pthread_mutex_init(&c->lock, NULL);
    if (!number)
        number = pthread_condattr_init(&clock);
    if (!number) {
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        number = pthread_cond_init(&c->more, NULL);
        if (!number)
            number = pthread_cond_init(&c->done, &clock);
        pthread_condattr_destroy(&clock);
    }
    return number ? heed__fail(err, HEED_MEMORY, "cannot set up workers: %s", strerror(number))
                  : HEED_OK;
}

void heed__crew_deinit(heed__crew *c)
{
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->lock);
}

void heed__crew_stop(heed__crew *c, const heed_error *err)
{
    pthread_mutex_lock(&c->lock);
    if (err)
        heed__fail(&c->failed, err->status, "%s", err->text);
    c->stopped = true;
    pthread_cond_broadcast(&c->more);
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
}

heed_status heed__crew_failed(heed__crew *c, heed_error *err)
{
    pthread_mutex_lock(&c->lock);
    heed_status status = c->failed.status;
    if (status)
        heed__fail(err, status, "%s", c->failed.text);
    pthread_mutex_unlock(&c->lock);
    return status;
}

void heed__crew_wait_done(heed__crew *c, int milliseconds)
{
    struct timespec until;
    if (!milliseconds) {
        pthread_cond_wait(&c->done, &c->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += milliseconds * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&c->done, &c->lock, &until);
}

/* ---- threads ---- */

struct worker {
    heed__crew *crew;
    heed__crew_body *body;
    void *context;
    int number;
    pthread_t thread;
};

static void *run(void *context)
{
    const struct worker *w = context;
    heed_error err = {0};
    if (w->body(w->context, w->number, &err))
        heed__crew_stop(w->crew, &err);
    return NULL;
}

heed_status heed__crew_run(heed__crew *c, int count, heed__crew_body *body, void *context,
                           heed_error *err)
{
    struct worker worker[HEED_MAX_THREADS + 1];
    int started = 1;
    for (int i = 0; i < count; i++)
        worker[i] = (struct worker){c, body, context, i, pthread_self()};
    for (; started < count; started++) {
        int number = pthread_create(&worker[started].thread, NULL, run, &worker[started]);
        if (number) {
            heed_error failed = {0};
            heed__fail(&failed, HEED_MEMORY, "cannot start a thread: %s", strerror(number));
            heed__crew_stop(c, &failed);
            break;
        }
    }
    if (started == count)
        run(&worker[0]);
    for (int i = 1; i < started; i++)
        pthread_join(worker[i].thread, NULL);
    return heed__crew_failed(c, err);
}
