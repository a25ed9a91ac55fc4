/* conv_winograd.h: convolutions of 3 x 3 without stride in fewer products: Winograd's F(2x2, 3x3),
 * as Lavin and Gray 2016 (arXiv 1509.09308) have it. */
#ifndef HEED_OPS_CONV_WINOGRAD_H
#define HEED_OPS_CONV_WINOGRAD_H

#include "ops/conv_grid.h"

/* Whether it pays: pictures, 3 x 3, enough channels for the products to outweigh the rest. */
bool heed__winograd_fits(const heed__conv_grid *g, int64_t in, int64_t out);
/* Bytes for each thread. */
size_t heed__winograd_scratch(int threads, int64_t in, int64_t out);
/* heed__conv_run and heed__conv_weight_grad (of a convolution, not of a transposed one). */
void heed__winograd_run(const heed_opcall *c, const heed__conv_grid *g,
                        const heed__conv_gather *job);
void heed__winograd_weight_grad(const heed_opcall *c, const heed__conv_grid *g, real *dw,
                                int64_t ld, heed__conv_side x, heed__conv_side dy);

#endif
