/* binary.c: add, sub, mul, div.  y = a op b elementwise; a (N,D) -> y of a's shape.
 *
 * b has a's shape, or is a row (D) or (1,D) for every row, or a column (N,1) for every column, or a
 * scalar; anything else is refused.  The gradient of b is summed over the rows or columns that b
 * was broadcast over: rows from top to bottom, whatever the threads. */
#include <heed/ops.h>

#include "ops/strips.h"

typedef enum form { FULL, ROW, COLUMN, ONE } form;

struct attributes {
    heed__arith_kind kind;
};

struct job {
    const heed_kernels *k;
    heed__arith_kind kind;
    form form;
    bool fresh; /* assign the gradient, do not add */
    real *out;  /* y, da or db */
    const real *a, *b, *y, *dy;
    int64_t ldo, lda, ldb, cols, rows;
    real slot[HEED_MAX_THREADS];
};

static form form_of(const heed_tensor *a, const heed_tensor *b)
{
    if (heed__shape_equal(a->shape, b->shape))
        return FULL;
    if (b->rows * b->cols == 1)
        return ONE;
    return b->rows == 1 && b->cols == a->cols ? ROW : COLUMN;
}

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    if (form_of(a, b) == COLUMN && (b->rows != a->rows || b->cols != 1)) {
        char text[HEED_SHAPE_TEXT];
        return heed__op_shape_fail(c, "b", b, "%s, a row (%lld), a column (%lld,1) or a scalar",
                                   heed__shape_text(a, text), (long long)a->cols,
                                   (long long)a->rows);
    }
    return heed__out(c, a->shape);
}

/* In a flat strip row is 0 and the columns go over all elements. */
static void compute(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    real *y = j->out + row * j->ldo + begin;
    const real *a = j->a + row * j->lda + begin;
    if (j->form == FULL || j->form == ROW)
        j->k->arith(j->kind, y, a, j->b + row * j->ldb + begin, end - begin);
    else
        j->k->arith_one(j->kind, y, a, j->b[row * j->ldb], end - begin);
}

static struct job job_of(const heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    const struct attributes *at = c->attributes;
    form f = form_of(a, b);
    return (struct job){.k = heed__kernels(),
                        .kind = at->kind,
                        .form = f,
                        .a = a->data,
                        .b = b->data,
                        .y = c->out[0]->data,
                        .lda = a->ld,
                        .ldb = f == FULL || f == COLUMN ? b->ld : 0,
                        .rows = a->rows,
                        .cols = a->cols};
}

static bool flat(const heed_opcall *c, form f)
{
    return heed__contiguous(c->in[0]) && (f == ONE || (f == FULL && heed__contiguous(c->in[1])));
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.out = c->out[0]->data;
    j.ldo = j.cols;
    heed__strips(c, j.rows, j.cols, flat(c, j.form), 1, compute, &j);
}

/* y = a + b and y = a - b: da = dy;  y = a b: da = dy b;  y = a / b: da = dy / b */
static void grad_a(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    real *da = j->out + row * j->lda + begin;
    const real *dy = j->dy + row * j->cols + begin, *b = j->b + row * j->ldb;
    int64_t n = end - begin;
    bool plain = j->kind == HEED__ADD || j->kind == HEED__SUB;
    if (plain || j->form == COLUMN || j->form == ONE) {
        real factor = plain ? 1 : j->kind == HEED__MUL ? *b : 1 / *b;
        if (j->fresh)
            j->k->affine(da, dy, factor, 0, n);
        else
            j->k->accumulate(da, dy, factor, n);
    } else if (j->fresh) {
        j->k->arith(j->kind, da, dy, b + begin, n);
    } else if (j->kind == HEED__MUL) {
        j->k->multiply_add(da, dy, b + begin, n);
    } else {
        j->k->divide_add(da, dy, b + begin, n);
    }
}

/* y = a + b: db = dy;  y = a - b: db = -dy;  y = a b: db = dy a;  y = a / b: db = -dy y / b */
static void grad_b(void *context, int64_t row, int64_t begin, int64_t end)
{
    const struct job *j = context;
    int64_t n = end - begin, at = row * j->cols + begin;
    real *db = j->out + row * j->ldb + begin;
    switch (j->kind) {
    case HEED__ADD:
        j->k->accumulate(db, j->dy + at, 1, n);
        break;
    case HEED__SUB:
        j->k->accumulate(db, j->dy + at, -1, n);
        break;
    case HEED__MUL:
        j->k->multiply_add(db, j->dy + at, j->a + row * j->lda + begin, n);
        break;
    case HEED__DIV:
        j->k->divide_grad(db, j->dy + at, j->y + at, j->b + row * j->ldb + begin, n);
        break;
    }
}

/* b is a row: columns [begin,end) summed over all rows. */
static void grad_b_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t r = 0; r < j->rows; r++)
        grad_b(context, r, begin, end);
}

/* b is a column: the sum over one row. */
static real grad_b_row(const struct job *j, int64_t row)
{
    const real *dy = j->dy + row * j->cols;
    switch (j->kind) {
    case HEED__ADD:
        return j->k->row_sum(dy, j->cols);
    case HEED__SUB:
        return -j->k->row_sum(dy, j->cols);
    case HEED__MUL:
        return j->k->row_dot(dy, j->a + row * j->lda, j->cols);
    case HEED__DIV:
        return -j->k->row_dot(dy, j->y + row * j->cols, j->cols) / j->b[row * j->ldb];
    }
    return 0;
}

static void grad_b_rows(void *context, int64_t begin, int64_t end, int thread)
{
    struct job *j = context;
    real sum = 0;
    for (int64_t r = begin; r < end; r++) {
        real s = grad_b_row(j, r);
        if (j->form == COLUMN)
            j->out[r * j->ldb] += s;
        sum += s;
    }
    j->slot[thread] = sum;
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.dy = heed__out_grad(c, 0);
    if (heed__wants(c, 0)) {
        real beta;
        j.out = heed__grad_beta(c, 0, &beta);
        j.fresh = beta == 0;
        heed__strips(c, j.rows, j.cols, flat(c, j.form), 1, grad_a, &j);
    }
    if (!heed__wants(c, 1))
        return;
    j.out = heed__grad(c, 1);
    int threads = heed__threads(c);
    if (j.form == FULL) {
        heed__strips(c, j.rows, j.cols, flat(c, FULL), 1, grad_b, &j);
    } else if (j.form == ROW) {
        heed__parallel(threads, j.cols, 16, j.rows, grad_b_columns, &j);
    } else {
        heed__parallel(threads, j.rows, 1, j.cols, grad_b_rows, &j);
        int width = j.rows ? heed__parallel_width(threads, j.rows, 1, j.cols) : 0;
        for (int i = 0; i < width && j.form == ONE; i++)
            j.out[0] += j.slot[i];
    }
}

static const heed_opcase cases[] = {
    {"equal shapes", {HEED_DIMS2(3, 17), HEED_DIMS2(3, 17)}, .domain = HEED_POSITIVE},
    {"one number each", {HEED_DIMS1(1), HEED_DIMS1(1)}, .domain = HEED_POSITIVE},
    {"rank 3", {HEED_DIMS3(2, 3, 5), HEED_DIMS3(2, 3, 5)}, .domain = HEED_POSITIVE},
    {"a row", {HEED_DIMS2(5, 9), HEED_DIMS1(9)}, .domain = HEED_POSITIVE},
    {"a (1,cols) row", {HEED_DIMS2(3, 2), HEED_DIMS2(1, 2)}, .domain = HEED_POSITIVE},
    {"a column", {HEED_DIMS2(4, 11), HEED_DIMS2(4, 1)}, .domain = HEED_POSITIVE},
    {"a single number", {HEED_DIMS2(3, 7), HEED_DIMS1(1)}, .domain = HEED_POSITIVE},
};

#define BINARY(name_, kind_, formula_)                                                             \
    static void run_##name_(heed_tape *t, const heed_opcase *c, heed_tensor **in,                  \
                            heed_tensor **out)                                                     \
    {                                                                                              \
        (void)c;                                                                                   \
        out[0] = heed_##name_(t, in[0], in[1]);                                                    \
    }                                                                                              \
    HEED_OP(name_, formula_, shape, forward, backward, cases, run_##name_);                        \
    heed_tensor *heed_##name_(heed_tape *t, heed_tensor *a, heed_tensor *b)                        \
    {                                                                                              \
        return heed__first(heed__apply(t, &heed__op_##name_, (heed_tensor *[]){a, b}, 2, 0,        \
                                       &(struct attributes){kind_}, sizeof(struct attributes)));   \
    }
BINARY(add, HEED__ADD, "y = a + b")
BINARY(sub, HEED__SUB, "y = a - b")
BINARY(mul, HEED__MUL, "y = a b, elementwise")
BINARY(div, HEED__DIV, "y = a / b")
