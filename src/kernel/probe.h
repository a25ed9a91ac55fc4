/* probe.h: the peak of this machine with an instruction set: references of the benchmarks.
 *
 *   probe_fma    `rounds` rounds of independent multiply-adds in registers; returns the number of
 *                floating-point operations done; *sink keeps the compiler from dropping them
 *   probe_int8   the same in int8, with the instructions of panel_product; *sink holds a (0..127),
 *                b (-127..127) and receives a b for each multiply-add, all added up (32 bits)
 *   probe_triad  a = b + s c with ordinary stores, as operators store
 *   probe_read   the sum of a, read as four streams: one stream does not reach the memory bandwidth
 */
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
