/* random.c: random numbers that can be drawn in any order.  Element i of a stream depends on the
 * stream and i alone; bits, uniform and below use one word per element (four per block), normal two
 * (Box-Muller, one of the pair), so draw only one kind from a stream. */
#include "base/random.h"

#include <math.h>

#define TWO_PI 6.283185307179586477

/* The finaliser of splitmix64: every input bit changes every output bit with probability one half.
 */
static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

heed_rng heed_rng_stream(const heed_rng_key *key)
{
    if (!key)
        return (heed_rng){0};
    uint64_t k = mix(key->seed);
    uint64_t s = mix(key->step);
    s = mix(s ^ ((uint64_t)key->rank << 32 | key->micro_batch));
    if (key->set)
        s = mix(s ^ key->set);
    s = mix(s ^ key->node);
    return (heed_rng){{(uint32_t)k, (uint32_t)(k >> 32)}, {(uint32_t)s, (uint32_t)(s >> 32)}};
}

uint32_t heed_rng_bits(const heed_rng *rng, uint64_t i)
{
    if (!rng)
        return 0;
    uint32_t word[4];
    heed__philox(word, rng, i / 4);
    return word[i % 4];
}

double heed_rng_uniform(const heed_rng *rng, uint64_t i)
{
    if (!rng)
        return 0;
    return heed_rng_bits(rng, i) * 0x1p-32;
}

double heed_rng_normal(const heed_rng *rng, uint64_t i)
{
    if (!rng)
        return 0;
    uint32_t word[4];
    heed__philox(word, rng, i / 2);
    const uint32_t *w = word + 2 * (i % 2);
    double u = (w[0] + 0.5) * 0x1p-32; /* never 0 */
    return sqrt(-2.0 * log(u)) * cos(TWO_PI * 0x1p-32 * w[1]);
}

int64_t heed_rng_below(const heed_rng *rng, uint64_t i, int64_t n)
{
    if (!rng)
        return 0;
    return (int64_t)(((uint64_t)heed_rng_bits(rng, i) * (uint64_t)n) >> 32);
}
