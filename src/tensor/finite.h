/* finite.h: where numbers stopped being numbers. */
#ifndef HEED_TENSOR_FINITE_H
#define HEED_TENSOR_FINITE_H

#include <heed/tensor.h>

/* The operator that made the first number that is not finite since the last reset, among the calls
 * recorded, and its first parameter; NULL: there is none. */
typedef struct heed__origin {
    const char *op, *parameter;
} heed__origin;
heed__origin heed__tape_not_finite(const heed_tape *t);

#endif
