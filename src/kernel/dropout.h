/* dropout.h: declared below, X(result, name, (arguments)). */
#ifndef HEED_KERNEL_DROPOUT_H
#define HEED_KERNEL_DROPOUT_H

#include <heed/base.h>

#define HEED_KERNELS_DROPOUT(X)

#endif
