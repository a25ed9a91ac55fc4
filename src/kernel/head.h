/* head.h: declared below, X(result, name, (arguments)). */
#ifndef HEED_KERNEL_HEAD_H
#define HEED_KERNEL_HEAD_H

#include <heed/base.h>

#define HEED_KERNELS_HEAD(X)

#endif
