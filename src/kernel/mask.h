/* mask.h: dropout masks 64 elements at a time, for kernels that use each group while memory loads
 * the next elements: making the mask of a whole row first would leave the memory idle. */
#ifndef HEED_KERNEL_MASK_H
#define HEED_KERNEL_MASK_H

#include "kernel/philox.h"
#include "kernel/vec.h"

#define MASK_GROUP PHILOX_HALVES

/* What all elements of a stream share. */
typedef struct mask_rule {
    philox_stream stream;
    uint16_t below; /* bits below this: dropped */
    real scale;     /* of the others: 1/(1-p), p the rounded rate */
} mask_rule;

VINLINE mask_rule mask_prepare(const heed_rng *rng, double rate)
{
    const long rounded = lround(rate * 65536.0);
    mask_rule rule = {.stream = philox_prepare(rng)};
    rule.below = (uint16_t)(rounded > 65535 ? 65535 : rounded);
    rule.scale = (real)(65536.0 / (65536.0 - rule.below));
    return rule;
}

VINLINE void mask_some(real *mask, const uint16_t *half, int64_t n, const mask_rule *rule)
{
    for (int64_t i = 0; i < n; i++)
        mask[i] = half[i] < rule->below ? 0 : rule->scale;
}

/* Elements 8*block .. 8*block + MASK_GROUP.  By hand, because compilers widen 16 bits to 32
 * inefficiently. */
VINLINE void mask_group(real *mask, const mask_rule *rule, uint64_t block)
{
    uint16_t half[MASK_GROUP];
    philox_halves(half, &rule->stream, block);
#if defined(__AVX2__) && !defined(HEED_DOUBLE)
    const __m256i limit = _mm256_set1_epi16((short)rule->below);
    const __m256 kept = _mm256_set1_ps(rule->scale);
    for (int i = 0; i < MASK_GROUP; i += 16) {
        __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)(half + i));
        __m256i keep = _mm256_cmpeq_epi16(_mm256_max_epu16(h, limit), h);
        __m256i low = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(keep));
        __m256i high = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(keep, 1));
        _mm256_storeu_ps(mask + i, _mm256_and_ps(_mm256_castsi256_ps(low), kept));
        _mm256_storeu_ps(mask + i + 8, _mm256_and_ps(_mm256_castsi256_ps(high), kept));
    }
#else
    mask_some(mask, half, MASK_GROUP, rule);
#endif
}

/* n elements from any first one. */
VINLINE void mask_range(real *mask, const mask_rule *rule, uint64_t first, int64_t n)
{
    uint16_t half[MASK_GROUP];
    uint64_t block = first / 8;
    const int64_t skip = (int64_t)(first % 8);
    if (skip && n > 0) {
        philox_halves(half, &rule->stream, block++);
        const int64_t part = n < 8 - skip ? n : 8 - skip;
        mask_some(mask, half + skip, part, rule);
        mask += part;
        n -= part;
    }
    for (; n >= MASK_GROUP; n -= MASK_GROUP, mask += MASK_GROUP, block += PHILOX_AT_ONCE)
        mask_group(mask, rule, block);
    if (n > 0) {
        philox_halves(half, &rule->stream, block);
        mask_some(mask, half, n, rule);
    }
}

#endif
