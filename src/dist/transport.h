/* transport.h (internal): what moves bytes between the ranks; nothing in it adds anything up.
 * mpi.c has one, and is linked into heed-mpi before the library, whose alone.c has none. */
#ifndef HEED_DIST_TRANSPORT_H
#define HEED_DIST_TRANSPORT_H

#include <heed/dist.h>

/* Calls of one channel come in the same order on all ranks; channels know nothing of each other,
 * and each is used by one thread at a time. */
typedef enum heed__channel {
    HEED__CHANNEL_MAIN,      /* the thread that trains */
    HEED__CHANNEL_GRADIENTS, /* the one that sums gradients meanwhile */
    HEED__CHANNEL_BEATS,     /* the one that notices who is gone: beat and hear, nothing else */
    HEED__CHANNELS
} heed__channel;

typedef struct heed__transport {
    void *self;
    int rank, size;
    int local;        /* ranks on this machine */
    const char *host; /* this machine's name */
    /* From rank 0 to all. */
    heed_status (*broadcast)(void *self, void *data, size_t bytes, heed_error *err);
    /* data is cut at part[0] = 0 ... part[size], in bytes.  scatter: part j of all ranks goes to
     * rank j, and comes in rank order, each as long as that part.  collect: part j of all ranks
     * becomes that of rank j. */
    heed_status (*scatter)(void *self, heed__channel channel, const void *data, const size_t *part,
                           void *got, heed_error *err);
    heed_status (*collect)(void *self, heed__channel channel, void *data, const size_t *part,
                           heed_error *err);
    /* A byte to a rank, if it can go now; the next one that has come, if there is one.  Neither
     * waits. */
    bool (*beat)(void *self, int to, unsigned char byte);
    bool (*hear)(void *self, int *from, unsigned char *byte);
    /* Ends all processes; this one for certain, and soon. */
    void (*stop)(void *self, int code);
    void (*close)(void *self);
} heed__transport;

/* What this program is linked with: its name, or NULL; and the processes that were started, which
 * stay one transport for the whole process.  *size 0: alone. */
const char *heed__transport_library(void);
heed_status heed__transport_open(heed__transport *t, heed_error *err);

#endif
