/* philox.h: eight Philox blocks at once, as 64 half-words in stream order.
 *
 * Each 64-bit lane holds one word of one counter in its low half; the high half may hold anything,
 * because the 32x32->64 multiplication reads only the low halves.  So a round is two products, two
 * shifts and four exclusive ors for all counters of a register. */
#ifndef HEED_KERNEL_PHILOX_H
#define HEED_KERNEL_PHILOX_H

#include "base/random.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Blocks made at once, and their half-words of 16 bits: the low half of each word first. */
#define PHILOX_AT_ONCE 8
#define PHILOX_HALVES (8 * PHILOX_AT_ONCE)

#if defined(__AVX2__)
#define PHILOX_LANES 4
typedef __m256i philox_reg;
#define PHILOX_OP(name) _mm256_##name
#define PHILOX_SET1(x) _mm256_set1_epi64x((long long)(x))
#define PHILOX_XOR _mm256_xor_si256
#define PHILOX_OR _mm256_or_si256
#define PHILOX_STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
/* Lanes in this order come out of the unpacking below in the order of the stream. */
#define PHILOX_LANE_NUMBERS _mm256_set_epi64x(3, 1, 2, 0)
#elif defined(__SSE2__)
#define PHILOX_LANES 2
typedef __m128i philox_reg;
#define PHILOX_OP(name) _mm_##name
#define PHILOX_SET1(x) _mm_set1_epi64x((long long)(x))
#define PHILOX_XOR _mm_xor_si128
#define PHILOX_OR _mm_or_si128
#define PHILOX_STORE(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define PHILOX_LANE_NUMBERS _mm_set_epi64x(1, 0)
#endif

#ifdef PHILOX_LANES
#define PHILOX_REGS (PHILOX_AT_ONCE / PHILOX_LANES)

/* What all blocks of a stream share, broadcast to registers once. */
typedef struct philox_stream {
    philox_reg key[HEED_PHILOX_ROUNDS][2];
    philox_reg c2, c3;
} philox_stream;

static inline philox_stream philox_prepare(const heed_rng *rng)
{
    philox_stream s = {.c2 = PHILOX_SET1(rng->stream[0]), .c3 = PHILOX_SET1(rng->stream[1])};
    for (uint32_t round = 0; round < HEED_PHILOX_ROUNDS; round++) {
        s.key[round][0] = PHILOX_SET1((uint32_t)(rng->key[0] + round * HEED_PHILOX_W0));
        s.key[round][1] = PHILOX_SET1((uint32_t)(rng->key[1] + round * HEED_PHILOX_W1));
    }
    return s;
}

static inline __attribute__((always_inline)) void
philox_halves(uint16_t half[PHILOX_HALVES], const philox_stream *s, uint64_t block)
{
    philox_reg c0[PHILOX_REGS], c1[PHILOX_REGS], c2[PHILOX_REGS], c3[PHILOX_REGS];
    for (int i = 0; i < PHILOX_REGS; i++) {
        c0[i] = PHILOX_OP(add_epi64)(PHILOX_SET1(block + (uint64_t)i * PHILOX_LANES),
                                     PHILOX_LANE_NUMBERS);
        c1[i] = PHILOX_OP(srli_epi64)(c0[i], 32);
        c2[i] = s->c2;
        c3[i] = s->c3;
    }
    const philox_reg m0 = PHILOX_SET1(HEED_PHILOX_M0), m1 = PHILOX_SET1(HEED_PHILOX_M1);
    for (int round = 0; round < HEED_PHILOX_ROUNDS; round++)
        for (int i = 0; i < PHILOX_REGS; i++) {
            /* The key is combined with the word that does not depend on the product. */
            philox_reg p0 = PHILOX_OP(mul_epu32)(c0[i], m0);
            philox_reg p1 = PHILOX_OP(mul_epu32)(c2[i], m1);
            c0[i] = PHILOX_XOR(PHILOX_OP(srli_epi64)(p1, 32), PHILOX_XOR(c1[i], s->key[round][0]));
            c1[i] = p1;
            c2[i] = PHILOX_XOR(PHILOX_OP(srli_epi64)(p0, 32), PHILOX_XOR(c3[i], s->key[round][1]));
            c3[i] = p0;
        }
    for (int i = 0; i < PHILOX_REGS; i++) {
        /* words 0 and 1 of each counter side by side, then 2 and 3 behind them */
        const philox_reg low = PHILOX_SET1(0xFFFFFFFFu);
        philox_reg w01 = PHILOX_OR(c0[i] & low, PHILOX_OP(slli_epi64)(c1[i], 32));
        philox_reg w23 = PHILOX_OR(c2[i] & low, PHILOX_OP(slli_epi64)(c3[i], 32));
        uint16_t *at = half + 8 * PHILOX_LANES * i;
        PHILOX_STORE(at, PHILOX_OP(unpacklo_epi64)(w01, w23));
        PHILOX_STORE(at + 4 * PHILOX_LANES, PHILOX_OP(unpackhi_epi64)(w01, w23));
    }
}
#else
typedef heed_rng philox_stream;

static inline philox_stream philox_prepare(const heed_rng *rng)
{
    return *rng;
}

static inline void philox_halves(uint16_t half[PHILOX_HALVES], const philox_stream *s,
                                 uint64_t block)
{
    for (int i = 0; i < PHILOX_AT_ONCE; i++) {
        uint32_t word[4];
        heed__philox(word, s, block + (uint64_t)i);
        for (int j = 0; j < 4; j++) {
            *half++ = (uint16_t)word[j];
            *half++ = (uint16_t)(word[j] >> 16);
        }
    }
}
#endif

#endif
