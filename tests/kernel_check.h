/* kernel_check.h: inputs for kernels, and the comparison with what plain loops in double give.
 * CLOSE is the tolerance of the test that includes it. */
#ifndef HEED_TESTS_KERNEL_CHECK_H
#define HEED_TESTS_KERNEL_CHECK_H

#include <heed/base.h>
#include <math.h>

static void fill(heed_real *x, int64_t n, double start)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (heed_real)sin(1.7 * (double)i + start);
}

static void expect(const char *what, int64_t i, double found, double wanted)
{
    if (!(fabs(found - wanted) <= CLOSE * fmax(1, fabs(wanted))))
        fail_msg("%s: number %d is %.12g, expected %.12g", what, (int)i, found, wanted);
}

#endif
