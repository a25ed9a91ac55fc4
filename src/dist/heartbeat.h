/* heartbeat.h (internal): notices a rank that is gone without a word: a machine that loses power or
 * its cable breaks no connection, and whoever waits for it would wait for ever. */
#ifndef HEED_DIST_HEARTBEAT_H
#define HEED_DIST_HEARTBEAT_H

#include "dist/transport.h"

typedef struct heed__heartbeat heed__heartbeat;
/* A rank is lost when nothing has been heard of it for `seconds` seconds.  Then `lost` is called,
 * once and in a thread of its own, with its number; on a rank that has been told of it by rank 0,
 * with -1. */
heed__heartbeat *heed__heartbeat_new(const heed__transport *t, double seconds,
                                     void (*lost)(void *context, int rank), void *context,
                                     const heed_allocator *allocator, heed_error *err);
/* Waits until all ranks do so, or one is lost. */
void heed__heartbeat_end(heed__heartbeat *h);

#endif
