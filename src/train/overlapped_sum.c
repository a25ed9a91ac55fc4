/* overlapped_sum.c: gradients of several processes are added up while the backward pass goes on.
 *
 * Which node of the tape is the last to add to a bucket is known before the pass begins: of the
 * nodes that use its parameters, the first that was recorded.  When that node is over, the bucket
 * goes to a thread of its own, which sums it over the ranks.  Buckets go from the last one down, on
 * all ranks, whatever the tape of each looks like: layers that are declared last are usually done
 * first. */
#include "nn/params.h"
#include "tensor/tape.h"
#include "tensor/tensor_fields.h"
#include "train/trainer.h"

#include <pthread.h>
#include <string.h>

struct heed__overlap {
    heed_allocator allocator;
    heed__exact_sum *sum;
    uint64_t *last; /* (most) the number of the node that is the last to add to a bucket */
    int64_t most;   /* buckets of the largest set */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Of the pass at hand; under the lock. */
    heed_real *grads;
    int64_t size, round;
    bool share;
    int64_t ready, over; /* buckets, from the last one down: complete; summed */
    int64_t buckets;
    bool stop;
    heed_error err;
};

/* ---- the thread ---- */

static void *sum_buckets(void *context)
{
    heed__overlap *o = context;
    pthread_mutex_lock(&o->lock);
    for (;;) {
        while (!o->stop && o->over == o->ready)
            pthread_cond_wait(&o->changed, &o->lock);
        if (o->stop)
            break;
        const int64_t bucket = o->buckets - 1 - o->over;
        if (!o->err.status) {
            pthread_mutex_unlock(&o->lock);
            heed_error err = {0};
            heed__exact_sum_add(o->sum, o->grads, o->size, bucket, o->round, o->share, &err);
            pthread_mutex_lock(&o->lock);
            if (err.status)
                o->err = err;
        }
        o->over++;
        pthread_cond_broadcast(&o->changed);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* ---- new, free ---- */

heed__overlap *heed__overlap_new(heed__exact_sum *sum, int64_t most,
                                 const heed_allocator *allocator, heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed__overlap *o = heed__allocate_zeroed(&a, 1, sizeof *o);
    if (!o) {
        heed__fail(err, HEED_MEMORY, "out of memory for sums of gradients");
        return NULL;
    }
    *o = (heed__overlap){.allocator = a,
                         .sum = sum,
                         .most = heed__exact_sum_buckets(sum, most),
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER};
    o->last = heed__allocate(&a, (size_t)o->most, sizeof *o->last);
    const int number = o->last ? pthread_create(&o->thread, NULL, sum_buckets, o) : 0;
    o->running = o->last && !number;
    if (o->running)
        return o;
    heed__fail(err, HEED_MEMORY, "cannot start the thread that adds up gradients: %s",
               number ? strerror(number) : "out of memory");
    heed__overlap_free(o);
    return NULL;
}

void heed__overlap_free(heed__overlap *o)
{
    if (!o)
        return;
    if (o->running) {
        pthread_mutex_lock(&o->lock);
        o->stop = true;
        pthread_cond_broadcast(&o->changed);
        pthread_mutex_unlock(&o->lock);
        pthread_join(o->thread, NULL);
    }
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->changed);
    const heed_allocator a = o->allocator;
    heed__release(&a, o->last, (size_t)o->most, sizeof *o->last);
    heed__release(&a, o, 1, sizeof *o);
}

/* ---- a pass ---- */

/* Marks the buckets that a node adds to. */
static void mark(heed__overlap *o, const heed_opcall *c)
{
    for (int i = 0; i < c->n_in; i++) {
        const heed_tensor *x = c->in[i];
        if (!x || !c->wanted[i])
            continue;
        x = x->root ? x->root : x;
        if (!x->grad || x->grad < o->grads || x->grad >= o->grads + o->size)
            continue;
        const int64_t first = x->grad - o->grads, last = first + x->rows * x->cols - 1;
        int64_t b = heed__exact_sum_bucket_of(o->sum, first);
        for (; b <= heed__exact_sum_bucket_of(o->sum, last); b++)
            o->last[b] = c->node;
    }
}

static void release_until(heed__overlap *o, int64_t ready)
{
    pthread_mutex_lock(&o->lock);
    o->ready = ready;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static void node_is_over(void *context, const heed_opcall *node)
{
    heed__overlap *o = context;
    int64_t ready = o->ready;
    while (ready < o->buckets && o->last[o->buckets - 1 - ready] >= node->node)
        ready++;
    if (ready > o->ready)
        release_until(o, ready);
}

void heed__overlap_begin(heed__overlap *o, heed_tape *tape, heed_params *p, int64_t round,
                         bool share)
{
    pthread_mutex_lock(&o->lock);
    o->grads = heed_params_grads(p);
    o->size = heed_params_size(p);
    o->buckets = heed__exact_sum_buckets(o->sum, o->size);
    o->round = round;
    o->share = share;
    o->ready = o->over = 0;
    pthread_mutex_unlock(&o->lock);
    for (int64_t b = 0; b < o->buckets; b++)
        o->last[b] = UINT64_MAX; /* nothing adds to it */
    for (const heed_opcall *c = tape->last; c; c = c->previous)
        mark(o, c);
    heed__tape_watch(tape, node_is_over, o);
}

heed_status heed__overlap_end(heed__overlap *o, heed_tape *tape, double *waited, heed_error *err)
{
    const double begin = heed_clock_seconds();
    heed__tape_watch(tape, NULL, NULL);
    release_until(o, o->buckets);
    pthread_mutex_lock(&o->lock);
    while (o->over < o->buckets)
        pthread_cond_wait(&o->changed, &o->lock);
    const heed_error failed = o->err;
    pthread_mutex_unlock(&o->lock);
    *waited += heed_clock_seconds() - begin;
    return failed.status ? heed__fail(err, failed.status, "%s", failed.text) : HEED_OK;
}
