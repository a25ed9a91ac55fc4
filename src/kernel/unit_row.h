/* unit_row.h: normalising a vector to length 1. */
#ifndef HEED_KERNEL_UNIT_ROW_H
#define HEED_KERNEL_UNIT_ROW_H

#include "kernel/kernels.h"

#include <math.h>

/* y = x / max(|x|, eps), d elements; y may be x.  Returns |x|. */
static inline heed_real heed__make_unit(heed_real *y, const heed_real *x, heed_real eps, int64_t d)
{
    const heed_kernels *k = heed__kernels();
    const heed_real length = (heed_real)sqrt((double)k->row_dot(x, x, d));
    k->affine(y, x, 1 / (length > eps ? length : eps), 0, d);
    return length;
}

#endif
