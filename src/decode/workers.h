/* workers.h (internal): threads that share a piece of work.
 *
 *     heed__crew_init(&c);
 *     status = heed__crew_run(&c, n, body, context, err);    body(context, 0 .. n-1)
 *     heed__crew_deinit(&c);
 *
 * What the bodies share they touch under c.lock.  The first failure of one stops all. */
#ifndef HEED_DECODE_WORKERS_H
#define HEED_DECODE_WORKERS_H

#include <heed/base.h>
#include <pthread.h>

typedef struct heed__crew {
    pthread_mutex_t lock;
    pthread_cond_t more; /* there is more to do, or nothing will come any more */
    pthread_cond_t done; /* something was done */
    bool stopped;        /* nothing will come any more; under the lock, as is the next */
    heed_error failed;   /* the first failure */
} heed__crew;
heed_status heed__crew_init(heed__crew *c, heed_error *err);
void heed__crew_deinit(heed__crew *c);
/* Body 0 runs in the caller's thread, the others in threads of their own; returns when all have. */
typedef heed_status heed__crew_body(void *context, int worker, heed_error *err);
heed_status heed__crew_run(heed__crew *c, int count, heed__crew_body *body, void *context,
                           heed_error *err);
/* Wakes all who wait; err: what failed, or NULL. */
void heed__crew_stop(heed__crew *c, const heed_error *err);
/* The first failure, in err too; OK if there is none. */
heed_status heed__crew_failed(heed__crew *c, heed_error *err);
/* Waits for `done`, but at most so many milliseconds; 0: without limit.  Under the lock. */
void heed__crew_wait_done(heed__crew *c, int milliseconds);

#endif
