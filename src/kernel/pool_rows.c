/* pool_rows.c: see pool_rows.h. */
#include "kernel/pool_rows.h"

#include "kernel/isa.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_POOL(DECLARE)

void K(pool_max)(real *y, const real *const *from, int64_t taps, int64_t n)
{
    for (int64_t j = 0; j < n; j += VW) {
        vreal best = vload_at(from[0] + j, 0, n - j);
        for (int64_t t = 1; t < taps; t++) {
            const vreal x = vload_at(from[t] + j, 0, n - j);
            best = vselect((x > best) | (x != x), x, best);
        }
        vstore_at(y + j, best, 0, n - j);
    }
}

void K(pool_max_grad)(real *const *to, const real *const *from, const real *y, const real *dy,
                      int64_t taps, int64_t n)
{
    for (int64_t j = 0; j < n; j += VW) {
        const vreal best = vload_at(y + j, 0, n - j), g = vload_at(dy + j, 0, n - j);
        vint free = ~(vint){0};
        for (int64_t t = 0; t < taps; t++) {
            const vreal x = vload_at(from[t] + j, 0, n - j);
            const vint here = ((x == best) | (x != x)) & free;
            real *at = to[t] + j;
            vstore_at(at, vload_at(at, 0, n - j) + vselect(here, g, vset(0)), 0, n - j);
            free &= ~here;
        }
    }
}
