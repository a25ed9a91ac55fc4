/* heartbeat.c: see the header.  Rank 0 and each other rank send each other a byte every now and
 * then, from a thread of their own, so that a rank beats whatever it computes, reads or waits for.
 * Silence is counted in time in which this thread runs: a process that was stopped for a while does
 * not take all others for lost. */
#include "dist/heartbeat.h"
#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Of the seconds after which a rank is lost: between two beats, and between two looks. */
#define BEATS 6
#define LOOKS 60
/* Rank 0's silence is told by rank 1; the others leave it a third more time to do so. */
#define PATIENCE (4.0 / 3)

enum { BEAT = 'b', BYE = 'e', LOST = 'l' };

struct peer {
    double silence; /* seconds */
    bool told;      /* this rank's last word has gone to it */
    bool gone;      /* its last word has come */
};

struct heed__heartbeat {
    heed_allocator allocator;
    heed__transport transport;
    double seconds;
    void (*lost)(void *context, int rank);
    void *context;
    struct peer *peer; /* (size) */
    int first, end;    /* the peers: rank 0, or all but rank 0 */
    double beaten;     /* seconds since the last beat */
    pthread_t thread;
    bool running;
    atomic_bool ending;
};

/* False when rank 0 has lost a rank. */
static bool listen(heed__heartbeat *h)
{
    const heed__transport *t = &h->transport;
    unsigned char word;
    for (int from; t->hear(t->self, &from, &word);) {
        h->peer[from].silence = 0;
        h->peer[from].gone |= word == BYE;
        if (word == LOST)
            return false;
    }
    return true;
}

static void speak(heed__heartbeat *h, unsigned char word)
{
    const heed__transport *t = &h->transport;
    for (int i = h->first; i < h->end; i++)
        if (!h->peer[i].told && t->beat(t->self, i, word))
            h->peer[i].told = word == BYE;
    h->beaten = 0;
}

/* The first peer that has been silent for too long; -1: none. */
static int find_lost(heed__heartbeat *h, double elapsed)
{
    const double limit = h->transport.rank > 1 ? PATIENCE * h->seconds : h->seconds;
    for (int i = h->first; i < h->end; i++)
        if (!h->peer[i].gone && (h->peer[i].silence += elapsed) >= limit)
            return i;
    return -1;
}

static bool all_have_gone(const heed__heartbeat *h)
{
    for (int i = h->first; i < h->end; i++)
        if (!h->peer[i].gone || !h->peer[i].told)
            return false;
    return true;
}

static void *watch(void *context)
{
    heed__heartbeat *h = context;
    const double look = h->seconds / LOOKS;
    const struct timespec rest = {(time_t)look, (long)((look - floor(look)) * 1e9)};
    double before = heed_clock_seconds();
    int lost = -1;
    bool good = true;
    while (good && lost < 0 && !all_have_gone(h)) {
        nanosleep(&rest, NULL);
        const double now = heed_clock_seconds();
        /* More than two looks have not been looked at. */
        const double elapsed = now - before < 2 * look ? now - before : 2 * look;
        before = now;
        h->beaten += elapsed;
        if (atomic_load(&h->ending))
            speak(h, BYE);
        else if (h->beaten >= h->seconds / BEATS)
            speak(h, BEAT);
        good = listen(h);
        lost = find_lost(h, elapsed);
    }
    if (lost > 0)
        speak(h, LOST);
    if (lost >= 0 || !good)
        h->lost(h->context, good ? lost : -1);
    return NULL;
}

heed__heartbeat *heed__heartbeat_new(const heed__transport *t, double seconds,
                                     void (*lost)(void *context, int rank), void *context,
                                     const heed_allocator *allocator, heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed__heartbeat *h = heed__allocate_zeroed(&a, 1, sizeof *h);
    if (!h) {
        heed__fail(err, HEED_MEMORY, "out of memory for watching the ranks");
        return NULL;
    }
    *h = (heed__heartbeat){.allocator = a,
                           .transport = *t,
                           .seconds = seconds,
                           .lost = lost,
                           .context = context,
                           .first = t->rank == 0,
                           .end = t->rank == 0 ? t->size : 1};
    atomic_init(&h->ending, false);
    h->peer = heed__allocate_zeroed(&a, (size_t)t->size, sizeof *h->peer);
    const int number = h->peer ? pthread_create(&h->thread, NULL, watch, h) : 0;
    h->running = h->peer && !number;
    if (h->running)
        return h;
    heed__fail(err, HEED_MEMORY, "cannot start the thread that watches the ranks: %s",
               number ? strerror(number) : "out of memory");
    heed__heartbeat_end(h);
    return NULL;
}

void heed__heartbeat_end(heed__heartbeat *h)
{
    if (!h)
        return;
    atomic_store(&h->ending, true);
    if (h->running)
        pthread_join(h->thread, NULL);
    const heed_allocator a = h->allocator;
    heed__release(&a, h->peer, (size_t)h->transport.size, sizeof *h->peer);
    heed__release(&a, h, 1, sizeof *h);
}
