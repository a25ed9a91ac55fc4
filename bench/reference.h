/* reference.h: the raw CBLAS as the yardstick of products. */
#ifndef HEED_BENCH_REFERENCE_H
#define HEED_BENCH_REFERENCE_H

#include "kernel/gemm.h"

/* With the library's own threads. */
void bench_cblas_own(const heed__product *p, int threads);
/* One serial call for each part of the longer side of C. */
void bench_cblas_parts(const heed__product *p, int threads);

#endif
