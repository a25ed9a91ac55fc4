/* panel_bytes.h: panel_product's part for bytes; of the activations only ReLU is applied. */
#ifndef HEED_KERNEL_PANEL_BYTES_H
#define HEED_KERNEL_PANEL_BYTES_H

#include "kernel/isa.h"
#include "kernel/panels.h"

void K(panel_product_bytes)(heed_real *c, int64_t ldc, const heed__panel_rows *rows, int64_t m,
                            const heed__panel_weights *w, int64_t begin, int64_t end);

#endif
