/* counting_allocator.h: an allocator that counts in every thread. */
#ifndef HEED_TESTS_COUNTING_ALLOCATOR_H
#define HEED_TESTS_COUNTING_ALLOCATOR_H

#include <stdatomic.h>
#include <stdlib.h>

/* Counts from any thread; the call number fail_at, from 1, gives NULL. */
struct counting {
    atomic_int calls;
    int fail_at;
    atomic_long held;
};

static void *counting_allocate(void *context, size_t size)
{
    struct counting *c = context;
    if (atomic_fetch_add(&c->calls, 1) + 1 == c->fail_at)
        return NULL;
    atomic_fetch_add(&c->held, (long)size);
    return aligned_alloc(64, (size + 64) / 64 * 64);
}

static void counting_release(void *context, void *memory, size_t size)
{
    atomic_fetch_sub(&((struct counting *)context)->held, (long)size);
    free(memory);
}

#endif
