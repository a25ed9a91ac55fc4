/* memory.h: the allocator hook and overflow-checked sizes. */
#ifndef HEED_BASE_MEMORY_H
#define HEED_BASE_MEMORY_H

#include <heed/base.h>

#define HEED_ALIGN 64

/* A copy of the allocator, or the C library's for NULL. */
heed_allocator heed__allocator_or_default(const heed_allocator *allocator);

/* count * size bytes, not zeroed; NULL when memory is short or the product overflows. */
void *heed__allocate(const heed_allocator *a, size_t count, size_t size);
void *heed__allocate_zeroed(const heed_allocator *a, size_t count, size_t size);
/* memory may be NULL; count and size as they were allocated. */
void heed__release(const heed_allocator *a, void *memory, size_t count, size_t size);

/* False on overflow, or if a result would not fit int64_t. */
bool heed__multiply(int64_t a, int64_t b, int64_t *product);
bool heed__add_sizes(size_t a, size_t b, size_t *sum);

#endif
