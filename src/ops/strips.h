/* strips.h: dividing elementwise work.  `body` gets a row and a range of its columns; contiguous
 * tensors are one long row (flat), so that narrow tensors have no cost per row. */
#ifndef HEED_OPS_STRIPS_H
#define HEED_OPS_STRIPS_H

#include "base/parallel.h"
#include "tensor/op.h"

typedef void heed__strip(void *context, int64_t row, int64_t begin, int64_t end);

/* `work` is per element, as heed__parallel counts. */
void heed__strips(const heed_opcall *c, int64_t rows, int64_t cols, bool flat, int64_t work,
                  heed__strip *body, void *context);

#endif
