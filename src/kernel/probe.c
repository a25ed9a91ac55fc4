/* probe.c: multiply-add peak, triad and read bandwidth, in the instruction set at hand. */
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

void K(probe_triad)(heed_real *a, const heed_real *b, const heed_real *c, heed_real s, int64_t n)
{
    vreal scale = vset(s);
    for (int64_t i = 0; i < n; i += VW)
        vstore_at(a, vload_at(b, i, n) + scale * vload_at(c, i, n), i, n);
}

heed_real K(probe_read)(const heed_real *a, int64_t n)
{
    vreal sum[8] = {{0}};
    int64_t i = 0;
    for (; i + 8 * VW <= n; i += 8 * VW)
        for (int j = 0; j < 8; j++)
            sum[j] += vload(a + i + j * VW);
    for (; i < n; i += VW)
        sum[0] += vload_at(a, i, n);
    for (int j = 1; j < 8; j++)
        sum[0] += sum[j];
    return vsum(sum[0]);
}
