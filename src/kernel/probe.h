/* probe.h: what this machine can do at best with an instruction set: the yardsticks of the
 * benchmarks.
 *
 *   probe_fma    `rounds` rounds of independent multiply-adds in registers; returns the number of
 *                floating-point operations done; *sink keeps the compiler from dropping them
 *   probe_int8   the same with bytes, by the instructions of panel_product with 8-bit weights;
 *                *sink holds a (0..127), b (-127..127) and receives a b for each multiply-add, all
 *                added up (32 bits)
 *   probe_triad  a = b + s c with ordinary stores, as operators store
 *   probe_read   the sum of a, read in four places at once: one stream does not get all that the
 *                memory has */
#ifndef HEED_KERNEL_PROBE_H
#define HEED_KERNEL_PROBE_H

#include <heed/base.h>

#define HEED_KERNELS_PROBE(X)                                                                      \
    X(double, probe_fma, (heed_real * sink, int64_t rounds))                                       \
    X(double, probe_int8, (int32_t * sink, int64_t rounds))                                        \
    X(void, probe_triad,                                                                           \
      (heed_real * a, const heed_real *b, const heed_real *c, heed_real s, int64_t n))             \
    X(heed_real, probe_read, (const heed_real *a, int64_t n))

#endif
