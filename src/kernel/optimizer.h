/* optimizer.h: declared below, X(result, name, (arguments)). */
#ifndef HEED_KERNEL_OPTIMIZER_H
#define HEED_KERNEL_OPTIMIZER_H

#include <heed/base.h>

#define HEED_KERNELS_OPTIMIZER(X)

#endif
