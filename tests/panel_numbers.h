/* panel_numbers.h: memory and made-up numbers for the tests of packed weights. */
#ifndef HEED_TESTS_PANEL_NUMBERS_H
#define HEED_TESTS_PANEL_NUMBERS_H

#include <heed/base.h>
#include <stdlib.h>

#define GUARD ((heed_real)12345)

static inline unsigned next(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static inline void *room(int64_t bytes)
{
    void *p = malloc((size_t)bytes + 1);
    assert_non_null(p);
    return p;
}

static inline heed_real *numbers(int64_t n, unsigned seed)
{
    heed_real *x = room(n * (int64_t)sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (heed_real)((double)next(&seed) / (1 << 23) - 1);
    return x;
}

#endif
