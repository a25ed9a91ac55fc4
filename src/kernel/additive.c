/* additive.c: see additive.h.  Keys are read row by row, in the order of memory; the sums of a
 * query stay in the L1 cache. */
#include "kernel/additive.h"

#include "kernel/isa.h"
#include "kernel/vecmath.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_ADDITIVE(DECLARE)

void K(additive_scores)(real *e, const real *q, const real *k, int64_t ldk, const real *v,
                        int64_t n, int64_t d)
{
    for (int64_t j = 0; j < n; j++, k += ldk) {
        vreal sum = {0};
        for (int64_t i = 0; i < d; i += VW)
            sum += vload_at(v, i, d) * vtanh(vload_at(q, i, d) + vload_at(k, i, d));
        e[j] = vsum(sum);
    }
}

VINLINE void add_at(real *y, vreal x, int64_t i, int64_t n)
{
    if (y)
        vstore_at(y, vload_at(y, i, n) + x, i, n);
}

void K(additive_grads)(real *dq, real *dk, real *dv, const real *de, const real *q, const real *k,
                       int64_t ldk, const real *v, int64_t n, int64_t d)
{
    for (int64_t j = 0; j < n; j++, k += ldk) {
        const vreal up = vset(de[j]);
        for (int64_t i = 0; i < d; i += VW) {
            vreal x = vtanh(vload_at(q, i, d) + vload_at(k, i, d));
            vreal grad = up * vload_at(v, i, d) * (1 - x * x);
            add_at(dv, up * x, i, d);
            add_at(dq, grad, i, d);
            add_at(dk, grad, i, d);
        }
        if (dk)
            dk += ldk;
    }
}
