/* elementwise.h: declared below, X(result, name, (arguments)). */
#ifndef HEED_KERNEL_ELEMENTWISE_H
#define HEED_KERNEL_ELEMENTWISE_H

#include <heed/base.h>

#define HEED_KERNELS_ELEMENTWISE(X)

#endif
