/* recurrent.h: declared below, X(result, name, (arguments)). */
#ifndef HEED_KERNEL_RECURRENT_H
#define HEED_KERNEL_RECURRENT_H

#include <heed/base.h>

#define HEED_KERNELS_RECURRENT(X)

#endif
