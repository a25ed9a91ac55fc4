/* blas.h: the CBLAS that is linked.
 *
 * Any CBLAS with 32-bit sizes works (BLIS, OpenBLAS, the reference); it is set to one thread, since
 * heed__gemm divides the work itself. */
#ifndef HEED_KERNEL_BLAS_H
#define HEED_KERNEL_BLAS_H

#include "kernel/gemm.h"

/* Whether the sizes fit the 32 bits of CBLAS. */
bool heed__blas_fits(const heed__product *p);
/* The product, serially; m, n and k above 0. */
void heed__blas_gemm(const heed__product *p);
/* "BLIS 0.9.0 zen3 openmp": the library really loaded; lives as long as the process. */
const char *heed__blas_name(void);

#endif
