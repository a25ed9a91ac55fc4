/* min_max.h: the smaller and the larger of two sizes. */
#ifndef HEED_BASE_MIN_MAX_H
#define HEED_BASE_MIN_MAX_H

#include <stdint.h>

static inline int64_t heed__min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t heed__max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
