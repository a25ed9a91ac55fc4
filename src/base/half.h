/* half.h: numbers of 16 bits as floats. */
#ifndef HEED_BASE_HALF_H
#define HEED_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float heed__float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 1 sign, 8 exponent, 7 mantissa: the upper half of a float. */
static inline float heed__from_bf16(uint16_t h)
{
    return heed__float_of_bits((uint32_t)h << 16);
}

/* 1 sign, 5 exponent (bias 15), 10 mantissa.  Every half is a float exactly. */
static inline float heed__from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3FF;
    if (exponent == 0) { /* zero and subnormal: mantissa * 2^-24 */
        float x = (float)mantissa * 0x1p-24F;
        return sign ? -x : x;
    }
    /* 31 is infinity or NaN, 255 in a float; otherwise the bias changes from 15 to 127. */
    return heed__float_of_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 |
                               mantissa << 13);
}

#endif
