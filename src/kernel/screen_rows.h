/* screen_rows.h: which of many approximate values may be the largest.
 *
 * x[j] is within a norm[j] + b error[j] of the true value y[j]; norm, error, a and b are not
 * negative.
 *   screen_floor    the largest x[j] - (a norm[j] + b error[j]): no more than the largest y[j]
 *   screen_panels   the panels of HEED_PANEL values in which some y[j] may reach the floor,
 *                   ascending; returns their number; the first `capacity` are written */
#ifndef HEED_KERNEL_SCREEN_ROWS_H
#define HEED_KERNEL_SCREEN_ROWS_H

#include <heed/base.h>

typedef struct heed__screen_bound {
    const heed_real *norm, *error; /* (n) */
    heed_real a, b;
} heed__screen_bound;

#define HEED_KERNELS_SCREEN(X)                                                                     \
    X(heed_real, screen_floor, (const heed_real *x, const heed__screen_bound *bound, int64_t n))   \
    X(int64_t, screen_panels,                                                                      \
      (int32_t * panel, const heed_real *x, const heed__screen_bound *bound, heed_real floor,      \
       int64_t n, int64_t capacity))

#endif
