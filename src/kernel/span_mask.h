/* span_mask.h: log m(x) of adaptive span for each column of a bias by distance (ops.h:
 * distance_bias). */
#ifndef HEED_KERNEL_SPAN_MASK_H
#define HEED_KERNEL_SPAN_MASK_H

#include <heed/base.h>
#include <math.h>

/* Distances 0 .. most + ramp, behind which m is 0 whatever has been learned; on both sides. */
static inline int64_t heed__span_columns(int64_t most, int64_t ramp, bool causal)
{
    return causal ? most + ramp + 1 : 2 * (most + ramp) + 1;
}

static inline void heed__span_mask(heed_real *to, double share, int64_t most, int64_t ramp,
                                   bool causal)
{
    const int64_t columns = heed__span_columns(most, ramp, causal), far = most + ramp;
    const double z = (double)most * fmin(1, fmax(0, share));
    for (int64_t c = 0; c < columns; c++) {
        const double x = fabs((double)(causal ? c : c - far));
        const double m = fmin(1, ((double)ramp + z - x) / (double)ramp);
        to[c] = (heed_real)(m > 0 ? log(m) : -INFINITY);
    }
}

#endif
