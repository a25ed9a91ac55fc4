/* unit.h: a vector brought to length 1, of two kernels. */
#ifndef HEED_KERNEL_UNIT_H
#define HEED_KERNEL_UNIT_H

#include "kernel/kernels.h"

#include <math.h>

/* y = x / max(|x|, eps), d numbers; y may be x.  Returns |x|. */
static inline heed_real heed__make_unit(heed_real *y, const heed_real *x, heed_real eps, int64_t d)
{
    const heed_kernels *k = heed__kernels();
    const heed_real length = (heed_real)sqrt((double)k->row_dot(x, x, d));
    k->affine(y, x, 1 / (length > eps ? length : eps), 0, d);
    return length;
}

#endif
