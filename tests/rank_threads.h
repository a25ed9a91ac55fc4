/* rank_threads.h: ranks that are threads of one process, over a transport made of one lock: what
 * several processes compute, without MPI.  Include cmocka.h first. */
#ifndef HEED_TESTS_RANK_THREADS_H
#define HEED_TESTS_RANK_THREADS_H

#include "dist/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RANKS = 6 };

/* The call of a rank that fails, counted from 1 over all its channels; 0: none does. */
static struct {
    int rank;
    long fail_at;
    _Atomic long calls;
} cable;

struct meeting_point {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int here;
    int64_t round;
    const void *data[MOST_RANKS];
};

struct rank_threads {
    int size;
    bool stopped; /* under the locks: some rank has failed */
    struct meeting_point channel[HEED__CHANNELS];
    /* Beats that have come, of each rank to each; under the lock of their channel. */
    unsigned char beat[MOST_RANKS][MOST_RANKS][64];
    int beats[MOST_RANKS][MOST_RANKS];
    int silent; /* the rank whose beats are lost on the way; -1: none */
};

struct rank_thread {
    struct rank_threads *all;
    int rank;
    heed_ranks *ranks;
    heed_status (*body)(struct rank_thread *self, heed_error *err);
    void *context; /* the body's */
    heed_error err;
    bool told;
    pthread_t thread;
};

/* Waits until all are here with what they have; false if one has failed. */
static bool meet(struct rank_thread *r, heed__channel channel, const void *data)
{
    struct meeting_point *m = &r->all->channel[channel];
    pthread_mutex_lock(&m->lock);
    if (data) /* else the others may still be reading */
        m->data[r->rank] = data;
    const int64_t round = m->round;
    if (++m->here == r->all->size) {
        m->here = 0;
        m->round++;
        pthread_cond_broadcast(&m->changed);
    }
    while (m->round == round && !r->all->stopped)
        pthread_cond_wait(&m->changed, &m->lock);
    const bool all = m->round != round;
    pthread_mutex_unlock(&m->lock);
    return all;
}

static heed_status lost(heed_error *err)
{
    if (err) {
        err->status = HEED_IO;
        snprintf(err->text, sizeof err->text, "another rank has failed");
    }
    return HEED_IO;
}

/* Whether this is the call that fails. */
static bool is_cut(const struct rank_thread *r, heed_error *err)
{
    if (r->rank != cable.rank || ++cable.calls != cable.fail_at)
        return false;
    if (err) {
        err->status = HEED_IO;
        snprintf(err->text, sizeof err->text, "the cable is cut");
    }
    return true;
}

static heed_status thread_broadcast(void *self, void *data, size_t bytes, heed_error *err)
{
    struct rank_thread *r = self;
    if (is_cut(r, err))
        return HEED_IO;
    if (!meet(r, HEED__CHANNEL_MAIN, data))
        return lost(err);
    if (r->rank)
        memcpy(data, r->all->channel[HEED__CHANNEL_MAIN].data[0], bytes);
    return meet(r, HEED__CHANNEL_MAIN, NULL) ? HEED_OK : lost(err);
}

static heed_status thread_scatter(void *self, heed__channel channel, const void *data,
                                  const size_t *part, void *got, heed_error *err)
{
    struct rank_thread *r = self;
    const size_t bytes = part[r->rank + 1] - part[r->rank];
    if (is_cut(r, err))
        return HEED_IO;
    if (!meet(r, channel, data))
        return lost(err);
    for (int i = 0; i < r->all->size; i++)
        memcpy((char *)got + (size_t)i * bytes,
               (const char *)r->all->channel[channel].data[i] + part[r->rank], bytes);
    return meet(r, channel, NULL) ? HEED_OK : lost(err);
}

static heed_status thread_collect(void *self, heed__channel channel, void *data, const size_t *part,
                                  heed_error *err)
{
    struct rank_thread *r = self;
    if (is_cut(r, err))
        return HEED_IO;
    if (!meet(r, channel, data))
        return lost(err);
    for (int i = 0; i < r->all->size; i++)
        if (i != r->rank)
            memcpy((char *)data + part[i], (const char *)r->all->channel[channel].data[i] + part[i],
                   part[i + 1] - part[i]);
    return meet(r, channel, NULL) ? HEED_OK : lost(err);
}

static bool thread_beat(void *self, int to, unsigned char byte)
{
    const struct rank_thread *r = self;
    struct rank_threads *all = r->all;
    pthread_mutex_t *lock = &all->channel[HEED__CHANNEL_BEATS].lock;
    pthread_mutex_lock(lock);
    int *n = &all->beats[to][r->rank];
    const bool room = *n < (int)sizeof all->beat[to][r->rank];
    if (room && all->silent != r->rank)
        all->beat[to][r->rank][(*n)++] = byte;
    pthread_mutex_unlock(lock);
    return room;
}

static bool thread_hear(void *self, int *from, unsigned char *byte)
{
    const struct rank_thread *r = self;
    struct rank_threads *all = r->all;
    pthread_mutex_t *lock = &all->channel[HEED__CHANNEL_BEATS].lock;
    bool there = false;
    pthread_mutex_lock(lock);
    for (int i = 0; i < all->size && !there; i++) {
        unsigned char *beats = all->beat[r->rank][i];
        if (!(there = all->beats[r->rank][i] > 0))
            continue;
        *from = i;
        *byte = beats[0];
        memmove(beats, beats + 1, (size_t)--all->beats[r->rank][i]);
    }
    pthread_mutex_unlock(lock);
    return there;
}

static void thread_stop(void *self, int code)
{
    struct rank_thread *r = self;
    (void)code;
    for (int i = 0; i < HEED__CHANNELS; i++) {
        pthread_mutex_lock(&r->all->channel[i].lock);
        r->all->stopped = true;
        pthread_cond_broadcast(&r->all->channel[i].changed);
        pthread_mutex_unlock(&r->all->channel[i].lock);
    }
}

static void *run_rank(void *context)
{
    struct rank_thread *r = context;
    if (r->body(r, &r->err) && !heed_ranks_told(r->ranks))
        heed_ranks_stop(r->ranks, 1);
    r->told = heed_ranks_told(r->ranks);
    heed_ranks_close(r->ranks);
    return NULL;
}

/* Runs body as rank 0 .. size - 1; context[i] is rank i's.  Nothing is heard of rank `silent` (-1:
 * none).  Returns the failure of the first rank that failed by itself. */
static heed_error run_ranks_but(int silent, int size,
                                heed_status (*body)(struct rank_thread *self, heed_error *err),
                                void *const *context)
{
    struct rank_threads all = {.size = size, .silent = silent};
    struct rank_thread r[MOST_RANKS];
    heed_error first = {0};
    for (int i = 0; i < HEED__CHANNELS; i++) {
        pthread_mutex_init(&all.channel[i].lock, NULL);
        pthread_cond_init(&all.channel[i].changed, NULL);
    }
    for (int i = 0; i < size; i++) {
        const heed__transport t = {.self = &r[i],
                                   .rank = i,
                                   .size = size,
                                   .local = 1,
                                   .host = "here",
                                   .broadcast = thread_broadcast,
                                   .scatter = thread_scatter,
                                   .collect = thread_collect,
                                   .beat = thread_beat,
                                   .hear = thread_hear,
                                   .stop = thread_stop};
        r[i] = (struct rank_thread){
            .all = &all, .rank = i, .body = body, .context = context ? context[i] : NULL};
        r[i].ranks = heed__ranks_of(&t, NULL, &r[i].err);
        assert_non_null(r[i].ranks);
    }
    for (int i = 0; i < size; i++)
        assert_int_equal(pthread_create(&r[i].thread, NULL, run_rank, &r[i]), 0);
    for (int i = 0; i < size; i++)
        assert_int_equal(pthread_join(r[i].thread, NULL), 0);
    for (int i = 0; i < size; i++)
        if (r[i].err.status && !first.status && (i == 0 || !r[i].told) &&
            strcmp(r[i].err.text, "another rank has failed") != 0)
            first = r[i].err;
    for (int i = 0; i < HEED__CHANNELS; i++) {
        pthread_mutex_destroy(&all.channel[i].lock);
        pthread_cond_destroy(&all.channel[i].changed);
    }
    return first;
}

static heed_error run_ranks(int size,
                            heed_status (*body)(struct rank_thread *self, heed_error *err),
                            void *const *context)
{
    return run_ranks_but(-1, size, body, context);
}

#endif
