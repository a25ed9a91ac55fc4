/* panel_bytes.h: the register tile of products of bytes, included by panel_product.c.
 *
 *   sums (panels,rows,16) = A W    A (rows, 4 groups) of 0..127, W panels of signed bytes
 *
 * BYTE_ROWS rows of one panel at most, or one row of BYTE_STREAMS panels, which come from memory
 * faster side by side.  A lane of 32 bits is a column, and four steps of k are one multiply-add of
 * four bytes in it; nothing saturates (panels.h), so all of these give the same integers.  narrow:
 * W is of 7 bits.  While it runs, the tile asks memory for what comes later: at ahead, a line every
 * `stride` bytes for each group; where panels stand side by side, of each of them, and at their end
 * of the next ones. */
#ifndef HEED_KERNEL_PANEL_BYTES_H
#define HEED_KERNEL_PANEL_BYTES_H

#include "kernel/panels.h"
#include "kernel/vec.h"

#define GROUP_BYTES (4 * HEED_PANEL) /* of W */

VINLINE int32_t four_bytes(const uint8_t *a)
{
    int32_t x;
    memcpy(&x, a, sizeof x);
    return x;
}

/* What to ask for in group g, of the first of the panels. */
VINLINE const int8_t *wanted_soon(int panels, const int8_t *w, int64_t groups, const int8_t *ahead,
                                  int64_t stride, int64_t g)
{
    const bool next = panels > 1 && g * GROUP_BYTES + (ahead - w) >= groups * GROUP_BYTES;
    return ahead + g * stride + (next ? (panels - 1) * groups * GROUP_BYTES : 0);
}

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)

#define BYTE_ROWS 8
#define BYTE_STREAMS 4

/* One instruction multiplies and adds four bytes to 32 bits.  It takes four cycles, so a few rows
 * add their even and odd groups apart to have eight sums under way. */
VINLINE void byte_body(int rows, int panels, bool narrow, int32_t *sums, const uint8_t *a,
                       int64_t lda, const int8_t *w, int64_t groups, const int8_t *ahead,
                       int64_t stride)
{
    const int all = rows * panels, parts = all <= BYTE_ROWS / 2 ? 2 : 1;
    __m256i sum[BYTE_ROWS][2][2];
    (void)narrow;
#pragma GCC unroll 8
    for (int i = 0; i < all; i++)
#pragma GCC unroll 4
        for (int h = 0; h < 4; h++)
            sum[i][h / 2][h % 2] = _mm256_setzero_si256();
    for (int64_t g = 0; g < groups; g += 2) {
#pragma GCC unroll 2
        for (int u = 0; u < 2; u++) {
            const int8_t *soon = wanted_soon(panels, w, groups, ahead, stride, g + u);
            const int part = u % parts;
#pragma GCC unroll 4
            for (int p = 0; p < panels; p++) {
                const __m256i *v = (const __m256i *)(w + (p * groups + g + u) * GROUP_BYTES);
                __m256i left = _mm256_loadu_si256(v), right = _mm256_loadu_si256(v + 1);
                __builtin_prefetch(soon + p * groups * GROUP_BYTES);
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

#define BYTE_ROWS 4
#define BYTE_STREAMS 4

/* Pairs of bytes to 16 bits, pairs of those to 32.  Of 7 bits two groups are added in between:
 * three multiplications where 8 bits take four. */
VINLINE __m256i byte_step(bool narrow, __m256i sum, __m256i a0, __m256i w0, __m256i a1, __m256i w1)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i first = _mm256_maddubs_epi16(a0, w0), second = _mm256_maddubs_epi16(a1, w1);
    if (narrow)
        return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_add_epi16(first, second), ones));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(first, ones));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(second, ones));
}

VINLINE void byte_body(int rows, int panels, bool narrow, int32_t *sums, const uint8_t *a,
                       int64_t lda, const int8_t *w, int64_t groups, const int8_t *ahead,
                       int64_t stride)
{
    __m256i sum[BYTE_ROWS][2];
#pragma GCC unroll 4
    for (int i = 0; i < rows * panels; i++)
        sum[i][0] = sum[i][1] = _mm256_setzero_si256();
    for (int64_t g = 0; g < groups; g += 2) {
        const int8_t *soon = wanted_soon(panels, w, groups, ahead, stride, g);
#pragma GCC unroll 4
        for (int p = 0; p < panels; p++) {
            const __m256i *v = (const __m256i *)(w + (p * groups + g) * GROUP_BYTES);
            __m256i left0 = _mm256_loadu_si256(v), right0 = _mm256_loadu_si256(v + 1);
            __m256i left1 = _mm256_loadu_si256(v + 2), right1 = _mm256_loadu_si256(v + 3);
            __builtin_prefetch(soon + p * groups * GROUP_BYTES, 0, 2);
            __builtin_prefetch(soon + p * groups * GROUP_BYTES + stride, 0, 2);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                const uint8_t *x = a + i * lda + 4 * g;
                __m256i x0 = _mm256_set1_epi32(four_bytes(x)),
                        x1 = _mm256_set1_epi32(four_bytes(x + 4)), *to = sum[p * rows + i];
                to[0] = byte_step(narrow, to[0], x0, left0, x1, left1);
                to[1] = byte_step(narrow, to[1], x0, right0, x1, right1);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows * panels; i++)
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++)
            _mm256_storeu_si256((__m256i *)(sums + i * HEED_PANEL + 8 * h), sum[i][h]);
}

#elif defined(__SSE2__)

#define BYTE_ROWS 2
#define BYTE_STREAMS 1

/* Only 16 bits can be multiplied and added in pairs.  The even and the odd bytes are widened apart,
 * so that a column keeps its lane. */
VINLINE void byte_body(int rows, int panels, bool narrow, int32_t *sums, const uint8_t *a,
                       int64_t lda, const int8_t *w, int64_t groups, const int8_t *ahead,
                       int64_t stride)
{
    __m128i sum[BYTE_ROWS][4];
    (void)panels;
    (void)narrow;
#pragma GCC unroll 8
    for (int i = 0; i < 4 * rows; i++)
        sum[i / 4][i % 4] = _mm_setzero_si128();
    for (int64_t g = 0; g < groups; g++) {
        const __m128i *v = (const __m128i *)(w + g * GROUP_BYTES);
        __m128i even[BYTE_ROWS], odd[BYTE_ROWS];
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

#define BYTE_ROWS 4
#define BYTE_STREAMS 1

VINLINE void byte_body(int rows, int panels, bool narrow, int32_t *sums, const uint8_t *a,
                       int64_t lda, const int8_t *w, int64_t groups, const int8_t *ahead,
                       int64_t stride)
{
    (void)panels;
    (void)narrow;
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

#define BYTE_CASE(rows)                                                                            \
    case rows:                                                                                     \
        if (narrow)                                                                                \
            byte_body(rows, 1, true, sums, a, lda, w, groups, ahead, stride);                      \
        else                                                                                       \
            byte_body(rows, 1, false, sums, a, lda, w, groups, ahead, stride);                     \
        break;

/* 1 <= rows <= BYTE_ROWS */
static __attribute__((noinline)) void byte_tile(int32_t *sums, const uint8_t *a, int64_t lda,
                                                const int8_t *w, int64_t groups, int64_t rows,
                                                bool narrow, const int8_t *ahead, int64_t stride)
{
    switch (rows) {
        BYTE_CASE(1)
        BYTE_CASE(2)
#if BYTE_ROWS > 2
        BYTE_CASE(3)
        BYTE_CASE(4)
#endif
#if BYTE_ROWS > 4
        BYTE_CASE(5)
        BYTE_CASE(6)
        BYTE_CASE(7)
        BYTE_CASE(8)
#endif
    }
}

/* One row, BYTE_STREAMS panels. */
static __attribute__((noinline)) void byte_row(int32_t *sums, const uint8_t *a, const int8_t *w,
                                               int64_t groups, bool narrow, const int8_t *ahead)
{
    if (narrow)
        byte_body(1, BYTE_STREAMS, true, sums, a, 0, w, groups, ahead, GROUP_BYTES);
    else
        byte_body(1, BYTE_STREAMS, false, sums, a, 0, w, groups, ahead, GROUP_BYTES);
}

#endif
