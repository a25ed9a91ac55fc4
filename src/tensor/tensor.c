/* tensor.c: shapes, and the accessors of a tensor. */
#include "tensor/tensor_fields.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>

heed_shape heed_shape_of(int rank, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    return (heed_shape){rank, {d0, d1, d2, d3}};
}

bool heed__shape_count(heed_shape s, int64_t *count)
{
    if (s.rank < 1 || s.rank > HEED_MAX_RANK)
        return false;
    /* A size of 0 must not hide an overflow of the others: operators multiply them too. */
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < s.rank; i++) {
        empty |= s.dim[i] == 0;
        if (s.dim[i] < 0 || !heed__multiply(product, s.dim[i] ? s.dim[i] : 1, &product))
            return false;
    }
    *count = empty ? 0 : product;
    return product <= INT64_MAX / (int64_t)(2 * sizeof(real));
}

bool heed__shape_equal(heed_shape a, heed_shape b)
{
    if (a.rank != b.rank)
        return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] != b.dim[i])
            return false;
    return true;
}

const char *heed__dims_text(heed_shape s, char text[HEED_SHAPE_TEXT])
{
    int at = snprintf(text, HEED_SHAPE_TEXT, "(");
    for (int i = 0; i < s.rank && i < HEED_MAX_RANK; i++)
        at += snprintf(text + at, (size_t)(HEED_SHAPE_TEXT - at), "%s%" PRId64, i ? "," : "",
                       s.dim[i]);
    snprintf(text + at, (size_t)(HEED_SHAPE_TEXT - at), ")");
    return text;
}

const char *heed__shape_text(const heed_tensor *x, char text[HEED_SHAPE_TEXT])
{
    if (!x) {
        snprintf(text, HEED_SHAPE_TEXT, "nothing");
        return text;
    }
    return heed__dims_text(x->shape, text);
}

void heed__tensor_init(heed_tensor *x, heed_shape shape, real *data)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < shape.rank; i++)
        rows *= shape.dim[i];
    int64_t cols = shape.dim[shape.rank - 1];
    *x = (heed_tensor){.shape = shape, .rows = rows, .cols = cols, .ld = cols, .data = data};
}

heed_shape heed_tensor_shape(const heed_tensor *x)
{
    return x ? x->shape : (heed_shape){0};
}

int64_t heed_tensor_rows(const heed_tensor *x)
{
    return x ? x->rows : 0;
}

int64_t heed_tensor_cols(const heed_tensor *x)
{
    return x ? x->cols : 0;
}

int64_t heed_tensor_stride(const heed_tensor *x)
{
    return x ? x->ld : 0;
}

int64_t heed_tensor_count(const heed_tensor *x)
{
    return x ? x->rows * x->cols : 0;
}

heed_real *heed_tensor_data(const heed_tensor *x)
{
    return x ? x->data : NULL;
}

heed_real *heed_tensor_grad(const heed_tensor *x)
{
    if (!x)
        return NULL;
    const heed_tensor *root = x->root ? x->root : x;
    return root->keeps_grad && root->grad ? root->grad + x->offset : NULL;
}
