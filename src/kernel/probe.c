/* probe.c: multiply-add peaks, triad and read bandwidth, in one instruction set. */
#include "kernel/probe.h"
#include "kernel/isa.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_PROBE(DECLARE)

/* Two units times a latency of four or five cycles need ten chains; twelve and the two constants
 * fit sixteen registers. */
#define CHAINS 12

double K(probe_fma)(heed_real *sink, int64_t rounds)
{
    /* x -> m x + c tends to 1: no overflow, no denormals.  Read through sink: not constants. */
    vreal m = vset(sink[0]), c = vset(sink[1]);
    vreal x[CHAINS];
    for (int j = 0; j < CHAINS; j++)
        x[j] = vset((real)(1 + j));
    for (int64_t i = 0; i < rounds; i++)
        for (int j = 0; j < CHAINS; j++)
            x[j] = x[j] * m + c;
    vreal sum = {0};
    for (int j = 0; j < CHAINS; j++)
        sum += x[j];
    sink[2] = vsum(sum);
    return 2.0 * CHAINS * (double)VW * (double)rounds;
}

/* int8: a register, and sum + the products of two registers in 32-bit lanes. */
#if defined(__AVX2__)
typedef __m256i int8s;
#define OPAQUE(x) __asm__("" : "+x"(x))
VINLINE int8s int8_set(int32_t x)
{
    return _mm256_set1_epi8((char)x);
}
VINLINE int8s int8_step(int8s sum, int8s a, int8s b)
{
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return _mm256_dpbusd_epi32(sum, a, b);
#else
    const __m256i fours = _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1));
    VIN_PLACE("vpaddd %1, %0, %0", sum, fours);
    return sum;
#endif
}
#define BYTES_AT_ONCE 32
#elif defined(__SSE2__)
typedef __m128i int8s; /* each in 16 bits */
#define OPAQUE(x) __asm__("" : "+x"(x))
VINLINE int8s int8_set(int32_t x)
{
    return _mm_set1_epi16((short)x);
}
VINLINE int8s int8_step(int8s sum, int8s a, int8s b)
{
    const __m128i pairs = _mm_madd_epi16(a, b);
    VIN_PLACE("paddd %1, %0", sum, pairs);
    return sum;
}
#define BYTES_AT_ONCE 8
#else
typedef int32_t int8s __attribute__((vector_size(16))); /* each in 32 bits */
#define OPAQUE(x) __asm__("" : "+m"(x))
VINLINE int8s int8_set(int32_t x)
{
    return (int8s){x, x, x, x};
}
VINLINE int8s int8_step(int8s sum, int8s a, int8s b)
{
    return sum + a * b;
}
#define BYTES_AT_ONCE 4
#endif

/* int8 products need registers besides the sums. */
#define INT8_CHAINS 10

double K(probe_int8)(int32_t *sink, int64_t rounds)
{
    int8s a = int8_set(sink[0]), b = int8_set(sink[1]), x[INT8_CHAINS];
    uint32_t lane[sizeof(int8s) / sizeof(uint32_t)], sum = 0;
#pragma GCC unroll 10
    for (int j = 0; j < INT8_CHAINS; j++)
        x[j] = (int8s){0};
    for (int64_t i = 0; i < rounds; i++)
#pragma GCC unroll 10
        for (int j = 0; j < INT8_CHAINS; j++) {
            OPAQUE(a); /* else the compiler would reuse one product */
            x[j] = int8_step(x[j], a, b);
        }
#pragma GCC unroll 10
    for (int j = 0; j < INT8_CHAINS; j++) {
        memcpy(lane, &x[j], sizeof lane);
        for (size_t i = 0; i < sizeof lane / sizeof *lane; i++)
            sum += lane[i];
    }
    memcpy(sink + 2, &sum, sizeof sum);
    return 2.0 * INT8_CHAINS * BYTES_AT_ONCE * (double)rounds;
}

void K(probe_triad)(heed_real *a, const heed_real *b, const heed_real *c, heed_real s, int64_t n)
{
    vreal scale = vset(s);
    for (int64_t i = 0; i < n; i += VW)
        vstore_at(a, vload_at(b, i, n) + scale * vload_at(c, i, n), i, n);
}

heed_real K(probe_read)(const heed_real *a, int64_t n)
{
    const int64_t quarter = n / 4 / (2 * VW) * (2 * VW);
    vreal sum[4][2] = {{{0}}};
    for (int64_t i = 0; i < quarter; i += 2 * VW)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            sum[j][0] += vload(a + j * quarter + i);
            sum[j][1] += vload(a + j * quarter + i + VW);
        }
    for (int64_t i = 4 * quarter; i < n; i += VW)
        sum[0][0] += vload_at(a, i, n);
    for (int j = 0; j < 4; j++)
        sum[0][0] += j ? sum[j][0] + sum[j][1] : sum[j][1];
    return vsum(sum[0][0]);
}
