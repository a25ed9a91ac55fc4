/* norm.h: declared below, X(result, name, (arguments)). */
#ifndef HEED_KERNEL_NORM_H
#define HEED_KERNEL_NORM_H

#include <heed/base.h>

#define HEED_KERNELS_NORM(X)

#endif
