/* softmax_row.h: the maximum and the sum of exponentials of a row. */
#ifndef HEED_KERNEL_SOFTMAX_ROW_H
#define HEED_KERNEL_SOFTMAX_ROW_H

#include "kernel/vecmath.h"

/* The lanes from i that belong to a row of n. */
VINLINE vint live(int64_t i, int64_t n)
{
    return vfirst(n - i < VW ? n - i : VW);
}

static real row_max(const real *x, int64_t n)
{
    const vreal low = vset(-INFINITY);
    vreal m[4] = {low, low, low, low};
    int64_t i = 0;
    for (; i + 4 * VW <= n; i += 4 * VW)
        for (int u = 0; u < 4; u++)
            m[u] = vmax(m[u], vload(x + i + u * VW));
    for (; i < n; i += VW)
        m[0] = vmax(m[0], vselect(live(i, n), vload_at(x, i, n), low));
    return vlargest(vmax(vmax(m[0], m[1]), vmax(m[2], m[3])));
}

/* sum exp(x - max); y, if not NULL, receives the terms. */
VINLINE real exp_sum(real *y, const real *x, real max, int64_t n)
{
    const vreal m = vset(max);
    vreal sum[2] = {{0}, {0}};
    int64_t i = 0;
    for (; i + 2 * VW <= n; i += 2 * VW)
        for (int u = 0; u < 2; u++) {
            vreal e = vexp(vload(x + i + u * VW) - m);
            if (y)
                vstore(y + i + u * VW, e);
            sum[u] += e;
        }
    for (; i < n; i += VW) {
        vreal e = vselect(live(i, n), vexp(vload_at(x, i, n) - m), vset(0));
        if (y)
            vstore_at(y, e, i, n);
        sum[0] += e;
    }
    return vsum(sum[0] + sum[1]);
}

#endif
