/* listed_rows.h: a row against rows that stand anywhere, given by pointers: products, a register's
 * worth of rows at a time, and sums with weights. */
#ifndef HEED_KERNEL_LISTED_ROWS_H
#define HEED_KERNEL_LISTED_ROWS_H

#include "kernel/vec.h"

#define LANES (VBYTES / sizeof(real))

/* Lane i is the sum of v[i]. */
VINLINE vreal sums_of(const vreal v[LANES])
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    return _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
#else
    vreal sums = {0};
    for (int i = 0; i < VW; i++)
        sums[i] = vsum(v[i]);
    return sums;
#endif
}

/* The dot products of q (d) with VW rows, from column `at` of them on. */
VINLINE vreal dots(const real *q, const real *const *row, int64_t at, int64_t d)
{
    vreal sum[LANES];
#pragma GCC unroll 16
    for (int u = 0; u < VW; u++)
        sum[u] = (vreal){0};
    for (int64_t p = 0; p < d; p += VW) {
        vreal x = vload_at(q, p, d);
#pragma GCC unroll 16
        for (int u = 0; u < VW; u++)
            sum[u] += x * vload_at(row[u] + at, p, d);
    }
    return sums_of(sum);
}

/* out = sum_i w[i] (key[i] + at): `registers` of it, a constant where it is inlined; `last` numbers
 * are alive in the last one. */
VINLINE void mix(int registers, real *out, const real *w, const real *const *key, int64_t at,
                 int64_t n, int64_t last)
{
    const int end = registers - 1;
    vreal sum[8];
#pragma GCC unroll 8
    for (int r = 0; r < registers; r++)
        sum[r] = (vreal){0};
    for (int64_t i = 0; i < n; i++) {
        const vreal x = vset(w[i]);
        const real *from = key[i] + at;
#pragma GCC unroll 8
        for (int r = 0; r < end; r++)
            sum[r] += x * vload(from + r * VW);
        sum[end] += x * vload_at(from + end * VW, 0, last);
    }
#pragma GCC unroll 8
    for (int r = 0; r < end; r++)
        vstore(out + r * VW, sum[r]);
    vstore_at(out + end * VW, sum[end], 0, last);
}

VINLINE void mix_head(real *out, const real *w, const real *const *key, int64_t at, int64_t n,
                      int64_t d)
{
    int64_t j = 0;
    for (; d - j >= 8 * VW; j += 8 * VW)
        mix(8, out + j, w, key, at + j, n, VW);
    if (d - j >= 4 * VW) {
        mix(4, out + j, w, key, at + j, n, VW);
        j += 4 * VW;
    }
    for (; j < d; j += VW)
        mix(1, out + j, w, key, at + j, n, d - j);
}

#endif
