/* probe.h: declared below, X(result, name, (arguments)). */
#ifndef HEED_KERNEL_PROBE_H
#define HEED_KERNEL_PROBE_H

#include <heed/base.h>

#define HEED_KERNELS_PROBE(X)

#endif
