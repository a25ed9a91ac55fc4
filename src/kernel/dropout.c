/* dropout.c: see dropout.h.  64 elements at a time; a range that begins or ends inside such a group
 * makes the whole group and takes its part. */
#include "kernel/dropout.h"

#include "kernel/isa.h"
#include "kernel/philox.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_DROPOUT(DECLARE)

VINLINE void make_some(real *mask, const uint16_t *half, int64_t n, uint16_t below, real scale)
{
    for (int64_t i = 0; i < n; i++)
        mask[i] = half[i] < below ? 0 : scale;
}

/* A whole group.  The compilers widen 16 bits to 32 by way of memory; these are the four
 * instructions that it takes. */
VINLINE void make_all(real *mask, const uint16_t *half, uint16_t below, real scale)
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE)
    const __m256i limit = _mm256_set1_epi16((short)below);
    const __m256 kept = _mm256_set1_ps(scale);
    for (int i = 0; i < PHILOX_HALVES; i += 16) {
        __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)(half + i));
        __m256i keep = _mm256_cmpeq_epi16(_mm256_max_epu16(h, limit), h);
        __m256i low = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(keep));
        __m256i high = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(keep, 1));
        _mm256_storeu_ps(mask + i, _mm256_and_ps(_mm256_castsi256_ps(low), kept));
        _mm256_storeu_ps(mask + i + 8, _mm256_and_ps(_mm256_castsi256_ps(high), kept));
    }
#else
    make_some(mask, half, PHILOX_HALVES, below, scale);
#endif
}

void K(dropout_mask)(real *mask, const heed_rng *rng, uint64_t first, int64_t n, double rate)
{
    long rounded = lround(rate * 65536.0);
    const uint16_t below = (uint16_t)(rounded > 65535 ? 65535 : rounded);
    const real scale = (real)(65536.0 / (65536.0 - below));
    const philox_stream stream = philox_prepare(rng);
    uint16_t half[PHILOX_HALVES];
    uint64_t block = first / 8;
    int64_t skip = (int64_t)(first % 8);
    if (skip && n > 0) {
        philox_halves(half, &stream, block);
        int64_t part = n < 8 - skip ? n : 8 - skip;
        make_some(mask, half + skip, part, below, scale);
        mask += part;
        n -= part;
        block++;
    }
    for (; n >= PHILOX_HALVES; n -= PHILOX_HALVES, mask += PHILOX_HALVES, block += PHILOX_AT_ONCE) {
        philox_halves(half, &stream, block);
        make_all(mask, half, below, scale);
    }
    if (n > 0) {
        philox_halves(half, &stream, block);
        make_some(mask, half, n, below, scale);
    }
}

void K(masked_add)(real *y, const real *base, const real *x, const real *mask, real scale,
                   int64_t n)
{
    const vreal k = vset(scale);
    for (int64_t i = 0; i < n; i += VW) {
        vreal v = k * vload_at(x, i, n);
        if (mask)
            v *= vload_at(mask, i, n);
        vstore_at(y, base ? v + vload_at(base, i, n) : v, i, n);
    }
}

void K(dropout_add)(real *y, const real *base, const real *x, const heed_rng *rng, uint64_t first,
                    int64_t n, double rate)
{
    enum { CHUNK = 8 * PHILOX_HALVES };
    real mask[CHUNK];
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t part = n - done < CHUNK ? n - done : CHUNK;
        if (rate > 0)
            K(dropout_mask)(mask, rng, first + (uint64_t)done, part, rate);
        K(masked_add)
        (y + done, base ? base + done : NULL, x + done, rate > 0 ? mask : NULL, 1, part);
    }
}
