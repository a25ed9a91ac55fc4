/* int8_tile.h: the register tile of int8 products, included by panel_int8.c.
 *
 *   sums (panels,rows,16) = A W    A (rows, 4 groups) of 0..127, W panels of int8
 *
 * A tile is at most INT8_ROWS rows of one panel, INT8_TILE rows each if there are more, or one row
 * of INT8_STREAMS panels, which memory delivers faster side by side.  A 32-bit lane is a column,
 * and one multiply-add of four bytes does four steps of k in it; nothing saturates (panels.h), so
 * all of these give the same integers; wide weights have INT8_WIDE where that needs another tile.
 * Panels side by side begin `apart` bytes from each other.  Meanwhile the tile prefetches what
 * comes later: at `ahead`, one cache line per group, `stride` bytes apart, for each panel. */
#ifndef HEED_KERNEL_INT8_TILE_H
#define HEED_KERNEL_INT8_TILE_H

#include "kernel/panels.h"
#include "kernel/vec.h"

#define GROUP_BYTES (4 * HEED_PANEL) /* of W */

VINLINE int32_t four_bytes(const uint8_t *a)
{
    int32_t x;
    memcpy(&x, a, sizeof x);
    return x;
}

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)

#define INT8_ROWS 8
#define INT8_TILE INT8_ROWS
#define INT8_STREAMS 4

/* One instruction multiplies four bytes and adds them to 32 bits.  Its latency is four cycles, so
 * few rows sum even and odd groups apart: eight independent sums. */
VINLINE void int8_body(int rows, int panels, int32_t *sums, const uint8_t *a, int64_t lda,
                       const int8_t *w, int64_t groups, int64_t apart, const int8_t *ahead,
                       int64_t stride)
{
    const int all = rows * panels, parts = all <= INT8_ROWS / 2 ? 2 : 1;
    __m256i sum[INT8_ROWS][2][2];
#pragma GCC unroll 8
    for (int i = 0; i < all; i++)
#pragma GCC unroll 4
        for (int h = 0; h < 4; h++)
            sum[i][h / 2][h % 2] = _mm256_setzero_si256();
    for (int64_t g = 0; g < groups; g += 2) {
#pragma GCC unroll 2
        for (int u = 0; u < 2; u++) {
            const int part = u % parts;
#pragma GCC unroll 4
            for (int p = 0; p < panels; p++) {
                const __m256i *v = (const __m256i *)(w + p * apart + (g + u) * GROUP_BYTES);
                __m256i left = _mm256_loadu_si256(v), right = _mm256_loadu_si256(v + 1);
                __builtin_prefetch(ahead + p * apart + (g + u) * stride);
#pragma GCC unroll 8
                for (int i = 0; i < rows; i++) {
                    __m256i x = _mm256_set1_epi32(four_bytes(a + i * lda + 4 * (g + u)));
                    __m256i(*to)[2] = sum[p * rows + i];
                    to[0][part] = _mm256_dpbusd_epi32(to[0][part], x, left);
                    to[1][part] = _mm256_dpbusd_epi32(to[1][part], x, right);
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < all; i++)
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++)
            _mm256_storeu_si256((__m256i *)(sums + i * HEED_PANEL + 8 * h),
                                _mm256_add_epi32(sum[i][h][0], sum[i][h][1]));
}

#elif defined(__AVX2__)

#define INT8_ROWS 4
#define INT8_TILE 3
#define INT8_STREAMS 4

/* Pairs of products in 16-bit lanes; those of a step of HEED_PANEL_STEP rows are added there, and
 * only their sums are widened to 32 bits.  Six sums of either width, weights and A fill the
 * registers.  With eight (a single tile of four rows) the 32-bit sums stay in memory: cheaper than
 * reading the weights twice. */
VINLINE void int8_body(int rows, int panels, int32_t *sums, const uint8_t *a, int64_t lda,
                       const int8_t *w, int64_t groups, int64_t apart, const int8_t *ahead,
                       int64_t stride)
{
    enum { GROUPS = HEED_PANEL_STEP / 4 };
    const bool wait = rows > INT8_TILE;
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum[2 * INT8_STREAMS], *to = wait ? (__m256i *)sums : sum;
#pragma GCC unroll 8
    for (int i = 0; i < 2 * rows * panels; i++)
        _mm256_storeu_si256(to + i, _mm256_setzero_si256());
    for (int64_t g = 0; g < groups; g += GROUPS)
#pragma GCC unroll 4
        for (int p = 0; p < panels; p++) {
            __m256i narrow[2 * INT8_ROWS];
#pragma GCC unroll 4
            for (int u = 0; u < GROUPS; u++) {
                const __m256i *v = (const __m256i *)(w + p * apart + (g + u) * GROUP_BYTES);
                const __m256i left = _mm256_loadu_si256(v), right = _mm256_loadu_si256(v + 1);
                if (u == 0 || stride > GROUP_BYTES / GROUPS) /* many tiles: little for each */
                    __builtin_prefetch(ahead + p * apart + (g + u) * stride, 0, 2);
#pragma GCC unroll 4
                for (int i = 0; i < rows; i++) {
                    const __m256i x = _mm256_set1_epi32(four_bytes(a + i * lda + 4 * (g + u)));
                    const __m256i l = _mm256_maddubs_epi16(x, left);
                    const __m256i r = _mm256_maddubs_epi16(x, right);
                    if (u == 0) {
                        narrow[2 * i] = l;
                        narrow[2 * i + 1] = r;
                    } else {
                        VIN_PLACE("vpaddw %1, %0, %0", narrow[2 * i], l);
                        VIN_PLACE("vpaddw %1, %0, %0", narrow[2 * i + 1], r);
                    }
                }
            }
#pragma GCC unroll 8
            for (int i = 0; i < 2 * rows; i++) {
                const __m256i more = _mm256_madd_epi16(narrow[i], ones);
                __m256i *at = to + 2 * p * rows + i;
                if (wait)
                    _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), more));
                else
                    VIN_PLACE("vpaddd %1, %0, %0", *at, more);
            }
        }
    if (!wait)
#pragma GCC unroll 8
        for (int i = 0; i < 2 * rows * panels; i++)
            _mm256_storeu_si256((__m256i *)sums + i, sum[i]);
}

/* One row and one panel, products added in 32 bits: for weights whose sums leave 16.  Even and odd
 * bytes are widened separately, so that a column keeps its lane. */
#define INT8_WIDE 1
VINLINE void int8_wide(int32_t *sums, const uint8_t *a, const int8_t *w, int64_t groups)
{
    __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int64_t g = 0; g < groups; g++) {
        const __m256i x = _mm256_set1_epi32(four_bytes(a + 4 * g));
        const __m256i mask = _mm256_set1_epi32(0x00ff00ff);
        const __m256i even = _mm256_and_si256(x, mask);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(x, 8), mask);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            const __m256i both = _mm256_loadu_si256((const __m256i *)(w + g * GROUP_BYTES) + h);
            const __m256i low = _mm256_srai_epi16(_mm256_slli_epi16(both, 8), 8);
            const __m256i high = _mm256_srai_epi16(both, 8);
            sum[h] = _mm256_add_epi32(sum[h], _mm256_add_epi32(_mm256_madd_epi16(low, even),
                                                               _mm256_madd_epi16(high, odd)));
        }
    }
    for (int h = 0; h < 2; h++)
        _mm256_storeu_si256((__m256i *)sums + h, sum[h]);
}

#elif defined(__SSE2__)

#define INT8_ROWS 2
#define INT8_TILE INT8_ROWS
#define INT8_STREAMS 1

/* SSE2 multiplies and adds only pairs of 16 bits.  Even and odd bytes are widened separately, so
 * that a column keeps its lane. */
VINLINE void int8_body(int rows, int panels, int32_t *sums, const uint8_t *a, int64_t lda,
                       const int8_t *w, int64_t groups, int64_t apart, const int8_t *ahead,
                       int64_t stride)
{
    __m128i sum[INT8_ROWS][4];
    (void)panels, (void)apart;
#pragma GCC unroll 8
    for (int i = 0; i < 4 * rows; i++)
        sum[i / 4][i % 4] = _mm_setzero_si128();
    for (int64_t g = 0; g < groups; g++) {
        const __m128i *v = (const __m128i *)(w + g * GROUP_BYTES);
        __m128i even[INT8_ROWS], odd[INT8_ROWS];
        __builtin_prefetch(ahead + g * stride);
#pragma GCC unroll 2
        for (int i = 0; i < rows; i++) {
            int32_t x = four_bytes(a + i * lda + 4 * g);
            even[i] = _mm_set1_epi32(x & 0x00ff00ff);
            odd[i] = _mm_set1_epi32(x >> 8 & 0x00ff00ff);
        }
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) {
            __m128i both = _mm_loadu_si128(v + q);
            __m128i low = _mm_srai_epi16(_mm_slli_epi16(both, 8), 8);
            __m128i high = _mm_srai_epi16(both, 8);
#pragma GCC unroll 2
            for (int i = 0; i < rows; i++)
                sum[i][q] = _mm_add_epi32(sum[i][q], _mm_add_epi32(_mm_madd_epi16(low, even[i]),
                                                                   _mm_madd_epi16(high, odd[i])));
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4 * rows; i++)
        _mm_storeu_si128((__m128i *)(sums + 4 * i), sum[i / 4][i % 4]);
}

#else

#define INT8_ROWS 4
#define INT8_TILE INT8_ROWS
#define INT8_STREAMS 1

VINLINE void int8_body(int rows, int panels, int32_t *sums, const uint8_t *a, int64_t lda,
                       const int8_t *w, int64_t groups, int64_t apart, const int8_t *ahead,
                       int64_t stride)
{
    (void)panels;
    (void)ahead;
    (void)stride;
    memset(sums, 0, (size_t)rows * HEED_PANEL * sizeof *sums);
    for (int64_t g = 0; g < groups; g++, w += GROUP_BYTES)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < HEED_PANEL; j++)
                for (int t = 0; t < 4; t++)
                    sums[i * HEED_PANEL + j] += a[i * lda + 4 * g + t] * w[4 * j + t];
}

#endif

#endif
