/* failing_allocator.h: an allocator whose n-th call fails, that counts what is still held, and
 * whose memory is not zero by luck.  Threads may share it. */
#ifndef HEED_TESTS_FAILING_ALLOCATOR_H
#define HEED_TESTS_FAILING_ALLOCATOR_H

#include <heed/base.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct failing {
    _Atomic int calls; /* so far */
    int fail_at;       /* this call, from 1, gives NULL; 0: none does */
    _Atomic long held; /* bytes not given back */
    _Atomic long peak; /* the most of them */
};

static void *failing_allocate(void *context, size_t size)
{
    struct failing *f = context;
    if (++f->calls == f->fail_at)
        return NULL;
    const long held = atomic_fetch_add(&f->held, (long)size) + (long)size;
    if (held > f->peak) /* of threads that race, one may be late: a peak is a figure, not a limit */
        f->peak = held;
    void *memory = aligned_alloc(64, (size + 64) / 64 * 64);
    return memory ? memset(memory, 0xA5, size) : NULL;
}

static void failing_release(void *context, void *memory, size_t size)
{
    ((struct failing *)context)->held -= (long)size;
    free(memory);
}

static heed_allocator failing_allocator(struct failing *f)
{
    return (heed_allocator){failing_allocate, failing_release, f};
}

#endif
