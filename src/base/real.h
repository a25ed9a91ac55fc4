/* real.h: the short name of heed_real, for kernels and operators. */
#ifndef HEED_BASE_REAL_H
#define HEED_BASE_REAL_H

#include <heed/base.h>

typedef heed_real real;

#endif
