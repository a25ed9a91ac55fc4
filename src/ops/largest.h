/* largest.h: the k largest of n numbers, ties by the lower index; NaN is the largest.  A heap of k
 * whose root is the smallest: at worst n log k, and most numbers are only compared with the root.
 */
#ifndef HEED_OPS_LARGEST_H
#define HEED_OPS_LARGEST_H

#include "base/real.h"
#include <stdbool.h>
#include <stdint.h>

static inline bool heed__larger(real a, real b)
{
    return a > b || (a != a && b == b);
}

/* Whether column a comes before column b. */
static inline bool heed__before(const real *x, int32_t a, int32_t b)
{
    return heed__larger(x[a], x[b]) || (a < b && !heed__larger(x[b], x[a]));
}

/* Sinks heap[i] until its children come before it: the root is the last of all. */
static inline void heed__sink(int32_t *heap, int64_t n, int64_t i, const real *x)
{
    int32_t moving = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heed__before(x, heap[child], heap[child + 1]))
            child++;
        if (!heed__before(x, moving, heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

/* The heap of the k largest; k at most n. */
static inline void heed__largest(const real *x, int64_t n, int64_t k, int32_t *heap)
{
    for (int64_t i = 0; i < k; i++)
        heap[i] = (int32_t)i;
    for (int64_t i = k / 2; i-- > 0;)
        heed__sink(heap, k, i, x);
    for (int64_t i = k; i < n; i++)
        if (heed__larger(x[i], x[heap[0]])) {
            heap[0] = (int32_t)i;
            heed__sink(heap, k, 0, x);
        }
}

#endif
