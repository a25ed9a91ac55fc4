/* screen_rows.c: see screen_rows.h.  Two passes, each bound by memory. */
#include "kernel/screen_rows.h"

#include "kernel/isa.h"
#include "kernel/panels.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_SCREEN(DECLARE)

VINLINE vreal bound_at(const heed__screen_bound *b, int64_t i, int64_t n)
{
    return vset(b->a) * vload_at(b->norm, i, n) + vset(b->b) * vload_at(b->error, i, n);
}

/* Lanes beyond the last element are below all others. */
VINLINE vreal alive(vreal v, int64_t i, int64_t n)
{
    return n - i < VW ? vselect(vfirst(n - i), v, vset(-(real)INFINITY)) : v;
}

real K(screen_floor)(const real *x, const heed__screen_bound *b, int64_t n)
{
    vreal most = vset(-(real)INFINITY);
    for (int64_t i = 0; i < n; i += VW)
        most = vmax(most, alive(vload_at(x, i, n) - bound_at(b, i, n), i, n));
    return vlargest(most);
}

int64_t K(screen_panels)(int32_t *panel, const real *x, const heed__screen_bound *b, real floor,
                         int64_t n, int64_t capacity)
{
    int64_t found = 0;
    for (int64_t left = 0; left < n; left += HEED_PANEL) {
        vreal most = vset(-(real)INFINITY);
        for (int64_t i = left; i < left + HEED_PANEL && i < n; i += VW)
            most = vmax(most, alive(vload_at(x, i, n) + bound_at(b, i, n), i, n));
        if (vlargest(most) < floor)
            continue;
        if (found < capacity)
            panel[found] = (int32_t)(left / HEED_PANEL);
        found++;
    }
    return found;
}
