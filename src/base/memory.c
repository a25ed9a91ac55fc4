/* memory.c: everything heed allocates passes through here. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

/* Blocks this large are aligned to huge pages and request them: a matrix product touches hundreds
 * of 4 kB pages at a time, more than the TLB holds. */
#define LARGE_PAGE ((size_t)1 << 21)
#define LARGE_BLOCK (2 * LARGE_PAGE)

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

static void *system_allocate(void *context, size_t size)
{
    (void)context;
#ifdef MADV_HUGEPAGE
    if (size >= LARGE_BLOCK) {
        void *memory = aligned_alloc(LARGE_PAGE, round_up(size, LARGE_PAGE));
        if (memory) /* only advice: failure is harmless */
            madvise(memory, round_up(size, LARGE_PAGE), MADV_HUGEPAGE);
        return memory;
    }
#endif
    return aligned_alloc(HEED_ALIGN, round_up(size ? size : 1, HEED_ALIGN));
}

static void system_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

heed_allocator heed__allocator_or_default(const heed_allocator *allocator)
{
    if (allocator)
        return *allocator;
    return (heed_allocator){system_allocate, system_release, NULL};
}

bool heed__multiply(int64_t a, int64_t b, int64_t *product)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, product);
}

bool heed__add_sizes(size_t a, size_t b, size_t *sum)
{
    return !__builtin_add_overflow(a, b, sum) && *sum <= INT64_MAX;
}

void *heed__allocate(const heed_allocator *a, size_t count, size_t size)
{
    size_t bytes;
    /* Rounding up to the alignment must not overflow. */
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > (size_t)INT64_MAX - HEED_ALIGN)
        return NULL;
    return a->allocate(a->context, bytes);
}

void *heed__allocate_zeroed(const heed_allocator *a, size_t count, size_t size)
{
    void *memory = heed__allocate(a, count, size);
    if (memory)
        memset(memory, 0, count * size);
    return memory;
}

void heed__release(const heed_allocator *a, void *memory, size_t count, size_t size)
{
    if (memory)
        a->release(a->context, memory, count * size);
}
