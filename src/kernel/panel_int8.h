/* panel_int8.h: panel_product for int8 panels; of the activations only ReLU is applied. */
#ifndef HEED_KERNEL_PANEL_INT8_H
#define HEED_KERNEL_PANEL_INT8_H

#include "kernel/isa.h"
#include "kernel/panels.h"

void K(panel_product_int8)(heed_real *c, int64_t ldc, const heed__panel_rows *rows, int64_t m,
                           const heed__panel_weights *w, int64_t begin, int64_t end);

#endif
