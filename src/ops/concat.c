/* concat.c: concat_cols, columns side by side; concat_rows, rows one below the other; stack_steps,
 * tensors of one shape along a new first axis, which in memory is concat_rows.
 *
 * cols: x_i (N,D_i) -> (N, sum D_i).  rows: x_i (N_i,D) -> (sum N_i, D); for rank 3 and 4 all sizes
 * but the first must agree and stay.  stack_steps: n times (B,D) -> (n,B,D). */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

#include <string.h>

typedef enum kind { COLS, ROWS, STACK } kind;

struct attributes {
    kind kind;
};

static heed_status shape_cols(heed_opcall *c, heed_shape *s)
{
    int64_t cols = 0;
    for (int i = 0; i < c->n_in; i++) {
        const heed_tensor *x = c->in[i];
        if (x->rows != c->in[0]->rows)
            return heed__op_shape_fail(c, "an input", x, "%lld rows like the first",
                                       (long long)c->in[0]->rows);
        cols += x->cols;
    }
    s->dim[s->rank - 1] = cols;
    return HEED_OK;
}

static heed_status shape_rows(heed_opcall *c, heed_shape *s)
{
    int64_t total = 0;
    if (s->rank < 3)
        *s = HEED_SHAPE(0, c->in[0]->cols);
    for (int i = 0; i < c->n_in; i++) {
        const heed_tensor *x = c->in[i];
        bool fits = x->cols == c->in[0]->cols;
        if (s->rank > 2) {
            heed_shape like = x->shape;
            like.dim[0] = s->dim[0];
            fits = heed__shape_equal(like, *s);
        }
        if (!fits) {
            char text[HEED_SHAPE_TEXT];
            return heed__op_shape_fail(c, "an input", x, "the columns of the first, %s",
                                       heed__shape_text(c->in[0], text));
        }
        total += s->rank > 2 ? x->shape.dim[0] : x->rows;
    }
    s->dim[0] = total;
    return HEED_OK;
}

static heed_status shape_stack(heed_opcall *c, heed_shape *s)
{
    if (s->rank == HEED_MAX_RANK)
        return heed__op_shape_fail(c, "x", c->in[0], "fewer than %d axes", HEED_MAX_RANK);
    for (int i = 1; i < c->n_in; i++)
        if (!heed__shape_equal(c->in[i]->shape, *s)) {
            char text[HEED_SHAPE_TEXT];
            return heed__op_shape_fail(c, "an input", c->in[i], "%s like the first",
                                       heed__dims_text(*s, text));
        }
    memmove(s->dim + 1, s->dim, (size_t)s->rank * sizeof *s->dim);
    s->dim[0] = c->n_in;
    s->rank++;
    return HEED_OK;
}

static heed_status shape(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    heed_shape s = c->in[0]->shape;
    heed_status status = at->kind == COLS   ? shape_cols(c, &s)
                         : at->kind == ROWS ? shape_rows(c, &s)
                                            : shape_stack(c, &s);
    return status ? status : heed__out(c, s);
}

struct copy {
    const heed_kernels *k; /* in backward, else NULL */
    real *to;
    const real *from;
    int64_t ld_to, ld_from, cols;
};

static void copy_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct copy *m = context;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        if (m->k)
            m->k->accumulate(m->to + r * m->ld_to, m->from + r * m->ld_from, 1, m->cols);
        else
            memcpy(m->to + r * m->ld_to, m->from + r * m->ld_from, (size_t)m->cols * sizeof(real));
    }
}

/* The distance from input i to the next in the output: its columns, or all its elements. */
static int64_t width_in_output(const heed_opcall *c, int i)
{
    const struct attributes *at = c->attributes;
    return at->kind == COLS ? c->in[i]->cols : c->in[i]->rows * c->in[i]->cols;
}

static void forward(heed_opcall *c)
{
    heed_tensor *y = c->out[0];
    int64_t at = 0;
    for (int i = 0; i < c->n_in; i++) {
        const heed_tensor *x = c->in[i];
        struct copy m = {NULL, y->data + at, x->data, y->cols, x->ld, x->cols};
        heed__parallel(heed__threads(c), x->rows, 1, x->cols, copy_rows, &m);
        at += width_in_output(c, i);
    }
}

/* y = [x1 x2 ...], so dx_i += its part of dy */
static void backward(heed_opcall *c)
{
    const real *dy = heed__out_grad(c, 0);
    int64_t at = 0;
    for (int i = 0; i < c->n_in; i++) {
        const heed_tensor *x = c->in[i];
        if (heed__wants(c, i)) {
            struct copy m = {heed__kernels(), heed__grad(c, i), dy + at,
                             x->ld,           c->out[0]->cols,  x->cols};
            heed__parallel(heed__threads(c), x->rows, 1, x->cols, copy_rows, &m);
        }
        at += width_in_output(c, i);
    }
}

static heed_tensor *apply(heed_tape *t, const heed_op *op, heed_tensor *const *x, int n, kind k)
{
    if (!heed__usable(t, op, n > 0 && x ? x[0] : NULL))
        return NULL;
    return heed__first(
        heed__apply(t, op, x, n, 0, &(struct attributes){k}, sizeof(struct attributes)));
}

static int count_inputs(const heed_opcase *c)
{
    int n = 0;
    while (n < HEED_CASE_IN && c->in[n].rank)
        n++;
    return n;
}

static const heed_opcase concat_cols_cases[] = {
    {"three widths", {HEED_DIMS2(3, 5), HEED_DIMS2(3, 1), HEED_DIMS2(3, 9)}, .domain = HEED_ANY},
    {"one input", {HEED_DIMS2(2, 3)}, .domain = HEED_ANY},
    {"equal inputs of rank 3", {HEED_DIMS3(2, 1, 3), HEED_DIMS3(2, 1, 3)}, .domain = HEED_ANY},
};
static const heed_opcase concat_rows_cases[] = {
    {"three heights", {HEED_DIMS2(2, 9), HEED_DIMS1(9), HEED_DIMS2(3, 9)}, .domain = HEED_ANY},
    {"one input", {HEED_DIMS2(1, 1)}, .domain = HEED_ANY},
    {"rank 3", {HEED_DIMS3(2, 3, 2), HEED_DIMS3(1, 3, 2)}, .domain = HEED_ANY},
};
static const heed_opcase stack_steps_cases[] = {
    {"three steps", {HEED_DIMS2(2, 5), HEED_DIMS2(2, 5), HEED_DIMS2(2, 5)}, .domain = HEED_ANY},
    {"one number", {HEED_DIMS1(1)}, .domain = HEED_ANY},
};

#define CONCAT(name_, kind_, formula_)                                                             \
    static void run_##name_(heed_tape *t, const heed_opcase *c, heed_tensor **in,                  \
                            heed_tensor **out)                                                     \
    {                                                                                              \
        out[0] = heed_##name_(t, in, count_inputs(c));                                             \
    }                                                                                              \
    HEED_OP(name_, formula_, shape, forward, backward, name_##_cases, run_##name_);                \
    heed_tensor *heed_##name_(heed_tape *t, heed_tensor *const *x, int n)                          \
    {                                                                                              \
        return apply(t, &heed__op_##name_, x, n, kind_);                                           \
    }
CONCAT(concat_cols, COLS, "y = [x1 x2 ...], columns side by side")
CONCAT(concat_rows, ROWS, "y = [x1; x2; ...], rows one below the other")
CONCAT(stack_steps, STACK, "y[i] = x_i")
