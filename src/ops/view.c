/* view.c: slice_cols, slice_rows, unstack, reshape and stop_gradient: other shapes of the same
 * memory.  Nothing is computed or recorded: a view's gradient is part of x's.
 *
 * Only reshaping a column slice to another number of columns copies; then it is an ordinary
 * operator. */
#include <heed/ops.h>

#include "tensor/op.h"

#include <string.h>

extern const heed_op heed__op_slice_cols, heed__op_slice_rows, heed__op_unstack, heed__op_reshape,
    heed__op_stop_gradient;

/* Whether a range lies inside its axis. */
static bool inside(heed_tape *t, const heed_op *op, const heed_tensor *x, int64_t begin,
                   int64_t end, int64_t size)
{
    char text[HEED_SHAPE_TEXT];
    if (begin >= 0 && begin <= end && end <= size)
        return true;
    heed__wrapper_fail(t, op, HEED_SHAPE_ERROR, "x is %s, expected to contain %lld to %lld",
                       heed__shape_text(x, text), (long long)begin, (long long)end);
    return false;
}

heed_tensor *heed_slice_cols(heed_tape *t, heed_tensor *x, int64_t begin, int64_t end)
{
    if (!heed__usable(t, &heed__op_slice_cols, x) ||
        !inside(t, &heed__op_slice_cols, x, begin, end, x->cols))
        return NULL;
    heed_shape s = x->shape;
    s.dim[s.rank - 1] = end - begin;
    return heed__view(t, x, s, begin, x->ld);
}

/* With rank 3 and 4 the first axis is sliced. */
heed_tensor *heed_slice_rows(heed_tape *t, heed_tensor *x, int64_t begin, int64_t end)
{
    const heed_op *op = &heed__op_slice_rows;
    if (!heed__usable(t, op, x))
        return NULL;
    char text[HEED_SHAPE_TEXT];
    if (x->shape.rank < 2)
        return heed__wrapper_fail(t, op, HEED_SHAPE_ERROR, "x is %s, expected at least two axes",
                                  heed__shape_text(x, text));
    heed_shape s = x->shape;
    if (!inside(t, op, x, begin, end, s.dim[0]))
        return NULL;
    int64_t rows_each = s.dim[0] ? x->rows / s.dim[0] : 0;
    s.dim[0] = end - begin;
    return heed__view(t, x, s, begin * rows_each * x->ld, x->ld);
}

heed_tensor *heed_unstack(heed_tape *t, heed_tensor *x, int64_t i)
{
    const heed_op *op = &heed__op_unstack;
    if (!heed__usable(t, op, x))
        return NULL;
    char text[HEED_SHAPE_TEXT];
    if (x->shape.rank < 2 || i < 0 || i >= x->shape.dim[0])
        return heed__wrapper_fail(t, op, HEED_SHAPE_ERROR,
                                  "x is %s, expected two axes or more and more than %lld steps",
                                  heed__shape_text(x, text), (long long)i);
    heed_shape s = x->shape;
    int64_t rows_each = x->rows / s.dim[0];
    s.rank--;
    memmove(s.dim, s.dim + 1, (size_t)s.rank * sizeof *s.dim);
    s.dim[s.rank] = 1;
    return heed__view(t, x, s, i * rows_each * x->ld, x->ld);
}

heed_tensor *heed_stop_gradient(heed_tape *t, heed_tensor *x)
{
    if (!heed__usable(t, &heed__op_stop_gradient, x))
        return NULL;
    heed_tensor *v = heed__view(t, x, x->shape, 0, x->ld);
    if (v)
        v->needs_grad = false;
    return v;
}

/* ---- reshape ---- */

heed_tensor *heed_reshape(heed_tape *t, heed_tensor *x, heed_shape shape)
{
    const heed_op *op = &heed__op_reshape;
    if (!heed__usable(t, op, x))
        return NULL;
    int64_t count;
    char found[HEED_SHAPE_TEXT], wanted[HEED_SHAPE_TEXT];
    if (!heed__shape_count(shape, &count) || count != x->rows * x->cols)
        return heed__wrapper_fail(t, op, HEED_SHAPE_ERROR, "x is %s, expected the same count as %s",
                                  heed__shape_text(x, found), heed__dims_text(shape, wanted));
    int64_t cols = shape.dim[shape.rank - 1];
    if (heed__contiguous(x))
        return heed__view(t, x, shape, 0, cols);
    if (cols == x->cols)
        return heed__view(t, x, shape, 0, x->ld);
    return heed__first(heed__apply(t, op, &x, 1, 0, &shape, sizeof shape));
}

static heed_status copy_shape(heed_opcall *c)
{
    return heed__out(c, *(const heed_shape *)c->attributes);
}

static void copy_forward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    for (int64_t r = 0; r < x->rows; r++)
        memcpy(c->out[0]->data + r * x->cols, heed__row(x, r), (size_t)x->cols * sizeof(real));
}

/* y = x with another shape, so dx = dy */
static void copy_backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    const real *dy = heed__out_grad(c, 0);
    real *dx = heed__grad(c, 0);
    for (int64_t r = 0; r < x->rows; r++)
        heed__kernels()->accumulate(dx + r * x->ld, dy + r * x->cols, 1, x->cols);
}

/* What a case gives besides tensors. */
struct arguments {
    int64_t begin, end, i;
    heed_shape shape;
};

/* ---- cases ---- */

static void run_slice_cols(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_slice_cols(t, in[0], a->begin, a->end);
}

static void run_slice_rows(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_slice_rows(t, in[0], a->begin, a->end);
}

static void run_unstack(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_unstack(t, in[0], a->i);
}

static void run_reshape(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_reshape(t, in[0], a->shape);
}

static const heed_opcase slice_cols_cases[] = {
    {"the middle", {HEED_DIMS2(3, 9)}, HEED_WITH(.begin = 2, .end = 7)},
    {"the only one", {HEED_DIMS1(1)}, HEED_WITH(.begin = 0, .end = 1)},
};
static const heed_opcase slice_rows_cases[] = {
    {"the middle", {HEED_DIMS2(5, 3)}, HEED_WITH(.begin = 1, .end = 4)},
    {"the first axis", {HEED_DIMS3(3, 2, 2)}, HEED_WITH(.begin = 1, .end = 3)},
    {"the only row", {HEED_DIMS2(1, 3)}, HEED_WITH(.begin = 0, .end = 1)},
};
static const heed_opcase unstack_cases[] = {
    {"the last step", {HEED_DIMS3(3, 2, 5)}, HEED_WITH(.i = 2)},
    {"a row", {HEED_DIMS2(2, 3)}, HEED_WITH(.i = 0)},
};
static const heed_opcase reshape_cases[] = {
    {"other columns", {HEED_DIMS2(3, 4)}, HEED_WITH(.shape = HEED_DIMS2(6, 2))},
    {"the same columns", {HEED_DIMS2(6, 3)}, HEED_WITH(.shape = HEED_DIMS3(2, 3, 3))},
    {"a row to a column", {HEED_DIMS2(1, 5)}, HEED_WITH(.shape = HEED_DIMS2(5, 1))},
};
HEED_OP(slice_cols, "y = x[:, begin:end], a view", NULL, NULL, NULL, slice_cols_cases,
        run_slice_cols);
HEED_OP(slice_rows, "y = x[begin:end], a view", NULL, NULL, NULL, slice_rows_cases, run_slice_rows);
HEED_OP(unstack, "y = x[i], a view", NULL, NULL, NULL, unstack_cases, run_unstack);
HEED_OP(reshape, "y = x with another shape", copy_shape, copy_forward, copy_backward, reshape_cases,
        run_reshape);
HEED_OP_NO_GRADIENT(stop_gradient, "y = x, no gradient", NULL, NULL);
