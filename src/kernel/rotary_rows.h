/* rotary_rows.h: rotary positions (Su et al. 2021): pairs of elements of a head turned by an angle
 * that its position gives, position * base^(-2i/d) for pair i of d/2. */
#ifndef HEED_KERNEL_ROTARY_ROWS_H
#define HEED_KERNEL_ROTARY_ROWS_H

#include <heed/base.h>

#include <math.h>

/* turn_heads   each of `heads` pieces of d elements of x turned into y, which may be x: with a, b a
 *              pair and c, s its cosine and sine, (c a - s b, c b + s a); backwards by the opposite
 *              angle, added to y.  angles: d/2 cosines, then d/2 sines.  Pairs are (i, i+d/2), or
 *              neighbours (2i, 2i+1) */
#define HEED_KERNELS_ROTARY(X)                                                                     \
    X(void, turn_heads,                                                                            \
      (heed_real * y, const heed_real *x, const heed_real *angles, int64_t heads, int64_t d,       \
       bool neighbours))                                                                           \
    X(void, turn_heads_back,                                                                       \
      (heed_real * y, const heed_real *x, const heed_real *angles, int64_t heads, int64_t d,       \
       bool neighbours))

#define HEED__ROTARY_BASE 10000.0

/* The angles of positions first .. first+count-1, to (count,d). */
static inline void heed__rotary_angles(heed_real *to, int64_t first, int64_t count, int64_t d,
                                       double base)
{
    for (int64_t i = 0; i < d / 2; i++) {
        const double frequency = pow(base, -2.0 * (double)i / (double)d);
        for (int64_t n = 0; n < count; n++) {
            const double angle = (double)(first + n) * frequency;
            to[n * d + i] = (heed_real)cos(angle);
            to[n * d + d / 2 + i] = (heed_real)sin(angle);
        }
    }
}

#endif
