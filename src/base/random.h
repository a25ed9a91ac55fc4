/* random.h: Philox4x32 with 7 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011), one block at a time.  A block is four words, a function of its counter {block low,
 * block high, stream} and the key alone.  kernel/philox.h makes many blocks at once, bit for bit
 * the same. */
#ifndef HEED_BASE_RANDOM_H
#define HEED_BASE_RANDOM_H

#include <heed/base.h>

#define HEED_PHILOX_ROUNDS 7
#define HEED_PHILOX_M0 0xD2511F53u
#define HEED_PHILOX_M1 0xCD9E8D57u
#define HEED_PHILOX_W0 0x9E3779B9u
#define HEED_PHILOX_W1 0xBB67AE85u

static inline void heed__philox(uint32_t word[4], const heed_rng *rng, uint64_t block)
{
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
    uint32_t c2 = rng->stream[0], c3 = rng->stream[1];
    uint32_t k0 = rng->key[0], k1 = rng->key[1];
    for (int round = 0; round < HEED_PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)HEED_PHILOX_M0 * c0, p1 = (uint64_t)HEED_PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += HEED_PHILOX_W0;
        k1 += HEED_PHILOX_W1;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}

#endif
