/* softmax.h: declared below, X(result, name, (arguments)). */
#ifndef HEED_KERNEL_SOFTMAX_H
#define HEED_KERNEL_SOFTMAX_H

#include <heed/base.h>

#define HEED_KERNELS_SOFTMAX(X)

#endif
