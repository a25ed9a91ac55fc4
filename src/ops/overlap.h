/* overlap.h: whether two inputs' gradients are the same memory.  Views of one tensor share it, and
 * may or may not have elements in common. */
#ifndef HEED_OPS_OVERLAP_H
#define HEED_OPS_OVERLAP_H

#include "tensor/tensor_fields.h"
#include <string.h>

static inline bool heed__share(const heed_tensor *x, const heed_tensor *y)
{
    return (x->root ? x->root : x) == (y->root ? y->root : y);
}

/* Whether the two have an element in common: slices of one product, side by side, do not. */
static inline bool heed__meet(const heed_tensor *x, const heed_tensor *y)
{
    if (!heed__share(x, y))
        return false;
    int64_t left = x->offset % x->ld, other = y->offset % y->ld;
    /* Rows of a reshaped slice may cross the edge of the other. */
    const bool wraps = left + x->cols > x->ld || other + y->cols > y->ld;
    return x->ld != y->ld || wraps || (left < other + y->cols && other < left + x->cols);
}

/* The same rows and columns, divided the same way: then one head of one segment overlaps only
 * itself. */
static inline bool heed__cut_alike(const heed_tensor *x, const heed_tensor *y,
                                   const heed_segments *a, const heed_segments *b)
{
    return x->offset == y->offset && x->ld == y->ld && x->cols == y->cols &&
           memcmp(a->offset, b->offset, (size_t)(a->count + 1) * sizeof *a->offset) == 0;
}

#endif
