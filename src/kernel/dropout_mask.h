/* dropout_mask.h: dropout masks that are computed, not stored.
 *
 * Element e of a stream is half-word e%8 of block e/8: 16 bits, dropped if they are below
 * round(rate * 65536).  The others are multiplied by 1/(1-p) with p the rounded rate, so the mean
 * is exactly unbiased.  An element has the same mask in every range and on every instruction set.
 *
 *   dropout_mask  mask[i] = 0 or 1/(1-p) for element first+i
 *   masked_add    y[i] = base[i] + scale mask[i] x[i]; base NULL: zero, base may be y; mask NULL: 1
 *   dropout_add   y[i] = base[i] + x[i] times the mask of element first+i */
#ifndef HEED_KERNEL_DROPOUT_MASK_H
#define HEED_KERNEL_DROPOUT_MASK_H

#include <heed/base.h>

#define HEED_KERNELS_DROPOUT(X)                                                                    \
    X(void, dropout_mask,                                                                          \
      (heed_real * mask, const heed_rng *rng, uint64_t first, int64_t n, double rate))             \
    X(void, masked_add,                                                                            \
      (heed_real * y, const heed_real *base, const heed_real *x, const heed_real *mask,            \
       heed_real scale, int64_t n))                                                                \
    X(void, dropout_add,                                                                           \
      (heed_real * y, const heed_real *base, const heed_real *x, const heed_rng *rng,              \
       uint64_t first, int64_t n, double rate))

#endif
