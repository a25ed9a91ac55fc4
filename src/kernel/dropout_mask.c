/* dropout_mask.c: see dropout_mask.h; mask.h makes the masks. */
#include "kernel/dropout_mask.h"

#include "kernel/isa.h"
#include "kernel/mask.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_DROPOUT(DECLARE)

void K(dropout_mask)(real *mask, const heed_rng *rng, uint64_t first, int64_t n, double rate)
{
    const mask_rule rule = mask_prepare(rng, rate);
    mask_range(mask, &rule, first, n);
}

void K(masked_add)(real *y, const real *base, const real *x, const real *mask, real scale,
                   int64_t n)
{
    const vreal k = vset(scale);
    for (int64_t i = 0; i < n; i += VW) {
        vreal v = k * vload_at(x, i, n);
        if (mask)
            v *= vload_at(mask, i, n);
        vstore_at(y, base ? v + vload_at(base, i, n) : v, i, n);
    }
}

void K(dropout_add)(real *y, const real *base, const real *x, const heed_rng *rng, uint64_t first,
                    int64_t n, double rate)
{
    enum { CHUNK = 8 * MASK_GROUP };
    real mask[CHUNK];
    const mask_rule rule = mask_prepare(rng, rate);
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t part = n - done < CHUNK ? n - done : CHUNK;
        if (rate > 0)
            mask_range(mask, &rule, first + (uint64_t)done, part);
        K(masked_add)
        (y + done, base ? base + done : NULL, x + done, rate > 0 ? mask : NULL, 1, part);
    }
}
