/* init.h: drawing the initial values of one parameter. */
#ifndef HEED_NN_INIT_H
#define HEED_NN_INIT_H

#include <heed/nn.h>

/* Whether init works for this shape: Xavier, Kaiming and orthogonal need two axes. */
bool heed__init_fits(heed_init init, heed_shape shape);
/* Fills values (rows,cols) with element i drawn from element i of the stream.  Only orthogonal
 * allocates memory (and releases it), so only that can fail. */
heed_status heed__init_draw(heed_real *values, int64_t rows, int64_t cols, heed_init init,
                            const heed_rng *rng, const heed_allocator *allocator);

#endif
