/* vec.h: one SIMD register of reals, by the compiler's vector types, for gcc and clang on any
 * machine.
 *
 * Only what the generic operators + - * / & | < cannot express is written for x86.  The last,
 * partial register of a row is filled with zeros and goes through the same code, so a value never
 * depends on its position. */
#ifndef HEED_KERNEL_VEC_H
#define HEED_KERNEL_VEC_H

#include "base/real.h"
#include <math.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Also with AVX-512: where measured, its longer registers were not faster. */
#if defined(__AVX2__)
#define VBYTES 32
#else
#define VBYTES 16
#endif
#define VW ((int64_t)(VBYTES / sizeof(real)))

#ifdef HEED_DOUBLE
typedef int64_t vint_lane;
typedef uint64_t vuint_lane;
#else
typedef int32_t vint_lane;
typedef uint32_t vuint_lane;
#endif
typedef real vreal __attribute__((vector_size(VBYTES)));
typedef vint_lane vint __attribute__((vector_size(VBYTES)));   /* what comparisons give */
typedef vuint_lane vuint __attribute__((vector_size(VBYTES))); /* for arithmetic that wraps */
typedef real vreal_unaligned __attribute__((vector_size(VBYTES), aligned(sizeof(real)), may_alias));

#define VINLINE static inline __attribute__((always_inline, unused))

VINLINE vreal vload(const real *p)
{
    return *(const vreal_unaligned *)p;
}

VINLINE void vstore(real *p, vreal v)
{
    *(vreal_unaligned *)p = v;
}

/* x - 0 is x, bit for bit, and both compilers make one broadcast of it; a loop over lanes becomes
 * eight inserts. */
VINLINE vreal vset(real x)
{
    return x - (vreal){0}; /* not plus: -0 + 0 is 0 */
}

/* sum + x y, rounded once where the machine can, in the register of the sum: left to itself the
 * compiler sometimes uses another and, with many sums, spills to memory. */
VINLINE vreal vadd_product(vreal sum, vreal x, vreal y)
{
#if defined(__FMA__) && !defined(HEED_DOUBLE) && VBYTES == 32
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y));
    return sum;
#else
    return sum + x * y;
#endif
}

/* sum += x by the instruction `add`, in the register of the sum.  Left to themselves, compilers
 * rearrange many sums and spill some of them to memory. */
#define VIN_PLACE(add, sum, x) __asm__(add : "+x"(sum) : "x"(x))

/* All bits of lane i set for i < n. */
VINLINE vint vfirst(int64_t n)
{
    static const vint_lane lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vint lane;
    memcpy(&lane, lanes, sizeof lane);
    return lane < (vint){0} + (vint_lane)n;
}

/* The first n lanes from p, then zeros; n < VW reads nothing beyond p + n. */
VINLINE vreal vload_first(const real *p, int64_t n)
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    return _mm256_maskload_ps(p, (__m256i)vfirst(n));
#elif defined(__AVX2__) && VBYTES == 32
    return _mm256_maskload_pd(p, (__m256i)vfirst(n));
#else
    vreal v = {0};
    for (int i = 0; i < n; i++)
        v[i] = p[i];
    return v;
#endif
}

VINLINE void vstore_first(real *p, vreal v, int64_t n)
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    _mm256_maskstore_ps(p, (__m256i)vfirst(n), v);
#elif defined(__AVX2__) && VBYTES == 32
    _mm256_maskstore_pd(p, (__m256i)vfirst(n), v);
#else
    for (int i = 0; i < n; i++)
        p[i] = v[i];
#endif
}

/* mask lane all ones: a, all zeros: b */
VINLINE vreal vselect(vint mask, vreal a, vreal b)
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    return _mm256_blendv_ps(b, a, (__m256)mask);
#elif defined(__AVX2__) && VBYTES == 32
    return _mm256_blendv_pd(b, a, (__m256d)mask);
#else
    return (vreal)(((vint)a & mask) | ((vint)b & ~mask));
#endif
}

/* If one is NaN, the second: a NaN in b passes through. */
VINLINE vreal vmax(vreal a, vreal b)
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    return _mm256_max_ps(a, b);
#elif defined(__SSE2__) && !defined(HEED_DOUBLE) && VBYTES == 16
    return _mm_max_ps(a, b);
#else
    return vselect(a > b, a, b);
#endif
}

VINLINE vreal vmin(vreal a, vreal b)
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    return _mm256_min_ps(a, b);
#elif defined(__SSE2__) && !defined(HEED_DOUBLE) && VBYTES == 16
    return _mm_min_ps(a, b);
#else
    return vselect(a < b, a, b);
#endif
}

VINLINE vreal vsqrt(vreal a)
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    return _mm256_sqrt_ps(a);
#elif defined(__SSE2__) && !defined(HEED_DOUBLE) && VBYTES == 16
    return _mm_sqrt_ps(a);
#else
    for (int i = 0; i < VW; i++)
        a[i] = (real)sqrt((double)a[i]);
    return a;
#endif
}

/* Clears the sign bit; -0, inf and NaN need no special case. */
VINLINE vreal vabs(vreal a)
{
    return (vreal)((vint)a & ~(vint)vset((real)-0.0));
}

/* The size of a with the sign of b. */
VINLINE vreal vcopysign(vreal a, vreal b)
{
    vint sign = (vint)vset((real)-0.0);
    return (vreal)(((vint)a & ~sign) | ((vint)b & sign));
}

/* Integers to reals, lane by lane. */
VINLINE vreal vfromint(vint n)
{
    return __builtin_convertvector(n, vreal);
}

/* Lanes added as a tree: halves, quarters, ...: one fixed order. */
VINLINE real vsum(vreal v)
{
    real s[VBYTES / sizeof(real)];
    memcpy(s, &v, sizeof s);
    for (int w = (int)VW / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            s[i] += s[i + w];
    return s[0];
}

VINLINE real vlargest(vreal v)
{
    real m = v[0];
    for (int i = 1; i < VW; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}

/* for (VROW(i, n)) ... with vload_at/vstore_at: a row of n, its tail included.  The compiler makes
 * two bodies of it. */
VINLINE vreal vload_at(const real *p, int64_t i, int64_t n)
{
    return n - i >= VW ? vload(p + i) : vload_first(p + i, n - i);
}

VINLINE void vstore_at(real *p, vreal v, int64_t i, int64_t n)
{
    if (n - i >= VW)
        vstore(p + i, v);
    else
        vstore_first(p + i, v, n - i);
}

#endif
