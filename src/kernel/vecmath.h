/* vecmath.h: exp, expm1, log, log1p, tanh, erf, sigmoid, sin, cos of a register.
 *
 * float: range reduction and a minimax polynomial (Remez, fitted for these ranges).  Errors in ulp
 * over all floats, with and without fused multiply-add (tests/test_vecmath.c): exp 1.1, expm1 2 for
 * x <= 88, log 1.6, log1p 2, tanh 3, erf 3.5, sigmoid 2.5.  NaN stays NaN; small arguments keep
 * their relative accuracy.  exp is 0 where it would be subnormal: subnormals cost a hundred cycles
 * each and do not matter here.  sin and cos are off by at most 2e-7 for |x| <= 1000 and stay below
 * 1.1 beyond.
 *
 * double, used only to check gradients: the C library's, lane by lane. */
#ifndef HEED_KERNEL_VECMATH_H
#define HEED_KERNEL_VECMATH_H

#include "kernel/vec.h"

#ifdef HEED_DOUBLE

#define VLANES(name, call)                                                                         \
    VINLINE vreal name(vreal x)                                                                    \
    {                                                                                              \
        for (int i = 0; i < VW; i++)                                                               \
            x[i] = call;                                                                           \
        return x;                                                                                  \
    }
VLANES(vexp, exp(x[i]))
VLANES(vexpm1, expm1(x[i]))
VLANES(vlog, log(x[i]))
VLANES(vlog1p, log1p(x[i]))
VLANES(vtanh, tanh(x[i]))
VLANES(verf, erf(x[i]))
VLANES(vsin, sin(x[i]))
VLANES(vcos, cos(x[i]))
#undef VLANES

#else

/* x = n ln 2 + r, |r| <= ln 2 / 2.  Adding 1.5 * 2^23 rounds to an integer and leaves n in the low
 * bits; ln 2 is cut in two so that n times the first part is exact. */
#define VROUNDER 12582912.0f
#define VLN2_HIGH 0.693359375f
#define VLN2_LOW (-2.12194440e-4f)

/* 2^n as the amount to add to a float's bits, and r, for |x| < 2^22.  Out of range it wraps, and a
 * later line replaces the result. */
VINLINE vuint vreduce(vreal x, vreal *r)
{
    vreal shifted = x * 1.44269504f + VROUNDER;
    vreal n = shifted - VROUNDER;
    *r = x - n * VLN2_HIGH - n * VLN2_LOW;
    return (vuint)shifted << 23;
}

/* exp(r) - 1 for |r| <= ln 2 / 2 as r + r^2 q(r); relative error 1.4e-8. */
VINLINE vreal vexpm1_small(vreal r)
{
    vreal q = r * 1.39464508e-3f + 8.36658385e-3f;
    q = q * r + 4.16662805e-2f;
    q = q * r + 1.66665435e-1f;
    q = q * r + 0.5f;
    return q * (r * r) + r;
}

VINLINE vreal vexp(vreal x)
{
    vreal r;
    vuint scale = vreduce(x, &r);
    /* 1 + q r^2 + r in [0.7, 1.5): adding n to its exponent cannot leave the normal range between
     * the two limits, 2^-126 and the largest float. */
    vreal y = (vreal)((vuint)(1.0f + vexpm1_small(r)) + scale);
    y = (vreal)((vint)y & (x >= -87.3365402f)); /* 0 below, and for -inf */
    return vselect(x <= 88.7228317f, y, x * INFINITY);
}

/* For x <= 88; used by vtanh and verf. */
VINLINE vreal vexpm1(vreal x)
{
    vreal r, bounded = vmax(vset(-20.0f), x); /* -1 from -17.4 on; NaN passes */
    vreal power = (vreal)(vreduce(bounded, &r) + (vuint)vset(1.0f));
    return power * vexpm1_small(r) + (power - 1.0f);
}

/* x = m 2^e with m in [sqrt 1/2, sqrt 2), f = m - 1: log x = e ln 2 + f + f^2 q(f). */
VINLINE vreal vlog(vreal x)
{
    vint subnormal = x < 1.17549435e-38f;
    vuint bits = (vuint)vselect(subnormal, x * 8388608.0f, x) - 0x3f3504f3u;
    vint whole = ((vint)bits >> 23) - (subnormal & 23);
    vreal e = vfromint(whole);
    vreal f = (vreal)((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    vreal q = f * 8.73484462e-2f - 1.43075228e-1f;
    q = q * f + 1.49179742e-1f;
    q = q * f - 1.65705085e-1f;
    q = q * f + 1.99620724e-1f;
    q = q * f - 2.50017554e-1f;
    q = q * f + 3.33339512e-1f;
    q = q * f - 4.99999911e-1f;
    vreal y = e * VLN2_HIGH + f + (q * (f * f) + e * VLN2_LOW);
    y = vselect(x > 0.0f, y, vselect(x == 0.0f, vset(-INFINITY), vset(NAN)));
    return vselect(x == INFINITY, x, y);
}

/* log(1 + x), corrected for the rounding of 1 + x: d log w = dw / w. */
VINLINE vreal vlog1p(vreal x)
{
    vreal w = 1.0f + x;
    vreal lost = (x - (w - 1.0f)) / w;
    return vlog(w) + vselect(lost == lost, lost, vset(0.0f)); /* 0/0, inf-inf at the ends */
}

/* tanh |x| = e / (e + 2), e = exp(2|x|) - 1; 1 from 9.02 on. */
VINLINE vreal vtanh(vreal x)
{
    vreal a = vmin(vset(9.1f), vabs(x));
    vreal e = vexpm1(a + a);
    return vcopysign(e / (e + 2.0f), x);
}

/* erf |x| = 1 - exp(-|x| R(|x|)), R = -log(erfc)/|x| a polynomial on [0, 3.95]; 1 from 3.92 on. */
VINLINE vreal verf(vreal x)
{
    vreal a = vmin(vset(3.95f), vabs(x));
    vreal p = a * -9.25625864e-6f + 1.17641219e-4f;
    p = p * a - 6.32836658e-4f;
    p = p * a + 1.66702713e-3f;
    p = p * a - 1.60395735e-4f;
    p = p * a - 1.91530641e-2f;
    p = p * a + 1.02777831e-1f;
    p = p * a + 6.36619389e-1f;
    p = p * a + 1.12837923f;
    return vcopysign(-vexpm1(-a * p), x);
}

/* x = n pi + r, |r| <= pi / 2, and sin x = sin r, or -sin r for an odd n: pi is cut in three, so
 * that n times the first two parts is exact for small n.  sin r by its series up to r^11. */
VINLINE vreal vsin_shifted(vreal x, float shift)
{
    vreal shifted = x * 0.318309886f + shift + VROUNDER;
    vreal n = shifted - VROUNDER - shift;
    vreal r = x - n * 3.140625f - n * 9.67025756835937500e-4f - n * 6.27711415290832519531e-7f;
    r = vmax(vset(-1.6f), vmin(vset(1.6f), r));
    vreal s = r * r;
    vreal p = s * -2.50521084e-8f + 2.75573192e-6f;
    p = p * s - 1.98412698e-4f;
    p = p * s + 8.33333333e-3f;
    p = p * s - 1.66666667e-1f;
    vreal y = p * (s * r) + r;
    return (vreal)((vuint)y ^ ((vuint)shifted << 31));
}

VINLINE vreal vsin(vreal x)
{
    return vsin_shifted(x, 0);
}

/* sin (x + pi / 2), without rounding the sum. */
VINLINE vreal vcos(vreal x)
{
    return vsin_shifted(x, 0.5f);
}

#endif

VINLINE vreal vsigmoid(vreal x)
{
    return (real)1 / ((real)1 + vexp(-x));
}

#endif
