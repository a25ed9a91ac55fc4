/* proportions.h: drawing one of n with given proportions, which need not sum to 1. */
#ifndef HEED_OPS_PROPORTIONS_H
#define HEED_OPS_PROPORTIONS_H

#include "tensor/op.h"
#include <math.h>

/* e^log_p into p, shifted so that the largest is 1: log_p may be beyond the range of exp.  All are
 * NaN if one of log_p is. */
static inline void heed__proportions(real *p, const real *log_p, int64_t n)
{
    const heed_kernels *k = heed__kernels();
    int32_t top;
    const real most = k->row_max(log_p, n, &top);
    k->affine(p, log_p, 1, isinf(most) ? 0 : -most, n);
    k->unary(HEED__UNARY_EXP, p, p, n);
}

/* By inverting the cumulative distribution at a uniform number.  A proportion of 0 is never drawn,
 * unless all are 0: then the first. */
static inline int32_t heed__draw(const real *p, int64_t n, double uniform)
{
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        total += (double)p[i];
    int32_t last = 0; /* of those that can be drawn: by rounding the sum may stay below the goal */
    for (int64_t i = 0; i < n; i++) {
        if (!(p[i] > 0))
            continue;
        last = (int32_t)i;
        sum += (double)p[i];
        if (sum > uniform * total)
            break;
    }
    return last;
}

#endif
