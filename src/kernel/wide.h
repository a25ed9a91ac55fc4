/* wide.h: the widest register of reals, for the few loops that live from multiply-adds alone;
 * vec.h for all others.  With AVX-512 it is twice as long as vec.h's, and 32 of them can hold sums
 * instead of 16. */
#ifndef HEED_KERNEL_WIDE_H
#define HEED_KERNEL_WIDE_H

#include "kernel/vec.h"

#if defined(__AVX512F__) && !defined(HEED_DOUBLE)
#define WIDE 1
#define WREGISTERS 24 /* for sums; the others hold what is multiplied */
typedef __m512 wreal;
#else
#define WIDE 0
#define WREGISTERS 12
typedef vreal wreal;
#endif
#define WW ((int64_t)(sizeof(wreal) / sizeof(real)))

VINLINE wreal wload(const real *p)
{
#if WIDE
    return _mm512_loadu_ps(p);
#else
    return vload(p);
#endif
}

VINLINE void wstore(real *p, wreal v)
{
#if WIDE
    _mm512_storeu_ps(p, v);
#else
    vstore(p, v);
#endif
}

VINLINE wreal wset(real x)
{
    return x - (wreal){0};
}

/* sum + x y, rounded once where the machine can, in the register of the sum (see vec.h). */
VINLINE wreal wadd_product(wreal sum, wreal x, wreal y)
{
#if WIDE
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
#else
    return vadd_product(sum, x, y);
#endif
}

/* The first n elements, n <= WW; nothing beyond p + n is touched. */
VINLINE wreal wload_first(const real *p, int64_t n)
{
#if WIDE
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
    return n == WW ? vload(p) : vload_first(p, n);
#endif
}

VINLINE void wstore_first(real *p, wreal v, int64_t n)
{
#if WIDE
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
#else
    if (n == WW)
        vstore(p, v);
    else
        vstore_first(p, v, n);
#endif
}

#endif
