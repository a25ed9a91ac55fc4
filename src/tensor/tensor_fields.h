/* tensor_fields.h (internal): the fields of a tensor.
 *
 * A tensor owns its gradient, or is a view: then data points into the root's data and its gradient
 * is the same part of the root's gradient, so views need no backward. */
#ifndef HEED_TENSOR_TENSOR_FIELDS_H
#define HEED_TENSOR_TENSOR_FIELDS_H

#include "base/real.h"
#include <heed/tensor.h>

/* What the passes of an update bring for state that moves (running statistics, a baseline):
 * forward reads the state as the update found it and adds here; heed_params_fold_state folds it in,
 * once. */
typedef struct heed__moving {
    double *sum;    /* laid out like the data */
    double *weight; /* what the sum is divided by */
    double *keep;   /* state = keep state + (1 - keep) sum / weight */
} heed__moving;

struct heed_tensor {
    heed_shape shape;
    int64_t rows, cols, ld; /* ld: distance between rows */
    real *data;
    real *grad;           /* NULL until needed; for a view always NULL, see heed__grad */
    heed_tensor *root;    /* the tensor this is a view of, or NULL */
    int64_t offset;       /* of a view, in elements of the root */
    const char *name;     /* of a parameter, else NULL */
    heed__moving *moving; /* of state, else NULL */
    bool needs_grad;
    bool keeps_grad; /* parameter or variable: the gradient outlives the backward pass */
    bool fresh_grad; /* the gradient's memory is uninitialised */
};

/* "(84,512)" into text, which is returned.  x may be NULL: "nothing". */
#define HEED_SHAPE_TEXT 96
const char *heed__shape_text(const heed_tensor *x, char text[HEED_SHAPE_TEXT]);
const char *heed__dims_text(heed_shape s, char text[HEED_SHAPE_TEXT]);
/* False if a size is negative, the rank is wrong, or the product of the non-zero sizes
 * overflows. */
bool heed__shape_count(heed_shape s, int64_t *count);
bool heed__shape_equal(heed_shape a, heed_shape b);

/* Row r of x, and whether all rows are contiguous. */
static inline real *heed__row(const heed_tensor *x, int64_t r)
{
    return x->data + r * x->ld;
}

static inline bool heed__contiguous(const heed_tensor *x)
{
    return x->ld == x->cols || x->rows <= 1;
}

/* Fills a tensor struct for contiguous data; no allocation. */
void heed__tensor_init(heed_tensor *x, heed_shape shape, real *data);

#endif
