/* thread_pool.h (internal): n threads that run one function.
 *
 *     heed__thread_pool_init(&p, err);
 *     status = heed__thread_pool_run(&p, n, body, context, err);    body(context, 0 .. n-1)
 *     heed__thread_pool_deinit(&p);
 *
 * Shared data is used under p.lock.  The first worker that fails stops all. */
#ifndef HEED_BASE_THREAD_POOL_H
#define HEED_BASE_THREAD_POOL_H

#include <heed/base.h>
#include <pthread.h>

typedef struct heed__thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t more; /* there is new work, or the pool was stopped */
    pthread_cond_t done; /* some work was done */
    bool stopped;        /* no more work will come; under the lock, as is the next */
    heed_error failed;   /* the first failure */
} heed__thread_pool;
heed_status heed__thread_pool_init(heed__thread_pool *p, heed_error *err);
void heed__thread_pool_deinit(heed__thread_pool *p);
/* Body 0 runs in the caller's thread, the others in new threads; returns when all have ended. */
typedef heed_status heed__thread_pool_body(void *context, int worker, heed_error *err);
heed_status heed__thread_pool_run(heed__thread_pool *p, int count, heed__thread_pool_body *body,
                                  void *context, heed_error *err);
/* Wakes all that wait; err: what failed, or NULL. */
void heed__thread_pool_stop(heed__thread_pool *p, const heed_error *err);
/* The first failure, also copied to err; OK if there is none. */
heed_status heed__thread_pool_failed(heed__thread_pool *p, heed_error *err);
/* Waits for `done`, at most `milliseconds` (0: without limit).  Call it under the lock. */
void heed__thread_pool_wait_done(heed__thread_pool *p, int milliseconds);

#endif
