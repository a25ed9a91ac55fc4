/* reduce.c: sum, mean, max, logsumexp over the columns of each row, the rows of each column, or
 * all.  x (N,D) -> (N,1), (1,D) or (1).
 *
 * HEED_ALL has two levels: blocks first, then the blocks' results; blocks are rows, or equal pieces
 * if rows are contiguous, and never depend on the threads.  The maximum and the mean of nothing are
 * refused; the sum of nothing is 0, its logsumexp -inf.  max: the gradient goes to the first
 * maximum.  logsumexp of -inf alone is -inf, with a zero gradient. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

#define BLOCK 4096

typedef enum kind { SUM, MEAN, MAX, LOGSUMEXP } kind;

struct attributes {
    kind kind;
    heed_axis axis;
};

/* What forward saves for backward; index for max only. */
struct saved {
    int32_t *index; /* index of the maximum in its block or column */
    real *partial;  /* a result for each block, with HEED_ALL */
    int32_t best;   /* the block that has the maximum */
};

struct job {
    const heed_kernels *k;
    kind kind;
    heed_axis axis;
    const heed_tensor *x;
    real *y; /* of each block or column */
    real *dx;
    const real *dy;
    real scale; /* of the mean */
    int32_t *index;
    int64_t blocks;
    bool flat;
};

static bool flat(const struct attributes *at, const heed_tensor *x)
{
    return at->axis == HEED_ALL && heed__contiguous(x);
}

static int64_t count_blocks(const struct attributes *at, const heed_tensor *x)
{
    return flat(at, x) ? (x->rows * x->cols + BLOCK - 1) / BLOCK : x->rows;
}

/* Where block b starts in x and in its gradient, and its length. */
static int64_t block_at(const struct job *j, int64_t b, int64_t *n)
{
    if (!j->flat) {
        *n = j->x->cols;
        return b * j->x->ld;
    }
    int64_t left = j->x->rows * j->x->cols - b * BLOCK;
    *n = left < BLOCK ? left : BLOCK;
    return b * BLOCK;
}

static heed_status shape(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const heed_tensor *x = c->in[0];
    if (at->axis != HEED_ALL && at->axis != HEED_ROWS && at->axis != HEED_COLS)
        return heed__op_fail(c, HEED_ARGUMENT,
                             "axis is %d, expected HEED_ALL, HEED_ROWS or HEED_COLS",
                             (int)at->axis);
    bool nothing = (at->axis != HEED_COLS && x->rows == 0) || (at->axis != HEED_ROWS && !x->cols);
    if ((at->kind == MEAN || at->kind == MAX) && nothing)
        return heed__op_shape_fail(c, "x", x, "at least one element to reduce");
    if (at->kind == MAX && (x->rows > INT32_MAX || x->cols > INT32_MAX))
        return heed__op_shape_fail(c, "x", x, "fewer than 2^31 rows and columns");
    int64_t blocks = count_blocks(at, x);
    int64_t indices = at->kind != MAX ? 0 : at->axis == HEED_ROWS ? x->cols : blocks;
    int64_t partials = at->axis == HEED_ALL ? blocks : 0;
    heed_status status = heed__save(c, sizeof(struct saved) + (size_t)partials * sizeof(real) +
                                           (size_t)indices * sizeof(int32_t));
    if (status)
        return status;
    struct saved *s = c->saved;
    s->partial = (real *)(s + 1);
    s->index = (int32_t *)(s->partial + partials);
    heed_shape y = at->axis == HEED_ALL    ? HEED_SHAPE(1)
                   : at->axis == HEED_ROWS ? HEED_SHAPE(1, x->cols)
                                           : HEED_SHAPE(x->rows, 1);
    return heed__out(c, y);
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const struct saved *s = c->saved;
    const heed_tensor *x = c->in[0];
    int64_t n = (at->axis == HEED_COLS ? 1 : x->rows) * (at->axis == HEED_ROWS ? 1 : x->cols);
    return (struct job){.k = heed__kernels(),
                        .kind = at->kind,
                        .axis = at->axis,
                        .x = x,
                        .y = at->axis == HEED_ALL ? s->partial : c->out[0]->data,
                        .scale = at->kind == MEAN ? (real)(1 / (double)n) : 1,
                        .index = s->index,
                        .blocks = count_blocks(at, x),
                        .flat = flat(at, x)};
}

static real reduce_row(const struct job *j, const real *x, int64_t n, int32_t *index)
{
    switch (j->kind) {
    case SUM:
    case MEAN:
        return j->k->row_sum(x, n);
    case MAX:
        return j->k->row_max(x, n, index);
    case LOGSUMEXP:
        return j->k->row_logsumexp(x, n);
    }
    return 0;
}

static void reduce_blocks(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t b = begin; b < end; b++) {
        int64_t n, at = block_at(j, b, &n);
        real y = reduce_row(j, j->x->data + at, n, j->index + (j->kind == MAX ? b : 0));
        j->y[b] = j->axis == HEED_COLS ? y * j->scale : y;
    }
}

static void reduce_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    const real *x = j->x->data + begin;
    int64_t ld = j->x->ld, rows = j->x->rows, n = end - begin;
    real *y = j->y + begin;
    switch (j->kind) {
    case SUM:
    case MEAN:
        j->k->column_sum(y, x, ld, rows, n);
        j->k->affine(y, y, j->scale, 0, n);
        break;
    case MAX:
        j->k->column_max(y, j->index + begin, x, ld, rows, n);
        break;
    case LOGSUMEXP:
        j->k->column_logsumexp(y, x, ld, rows, n);
        break;
    }
}

/* exp costs more than an addition. */
static int64_t work_of(kind k)
{
    return k == LOGSUMEXP ? 8 : 1;
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    int threads = heed__threads(c);
    int64_t work = work_of(j.kind);
    if (j.axis == HEED_ROWS) {
        heed__parallel(threads, j.x->cols, 16, j.x->rows * work, reduce_columns, &j);
        return;
    }
    heed__parallel(threads, j.blocks, 1, (j.flat ? BLOCK : j.x->cols) * work, reduce_blocks, &j);
    if (j.axis == HEED_ALL) {
        struct saved *s = c->saved;
        c->out[0]->data[0] = reduce_row(&j, s->partial, j.blocks, &s->best) * j.scale;
    }
}

/* y = sum x: dx = dy;  y = sum x / n: dx = dy / n;  y = log sum e^x: dx = dy exp(x - y);
 * y = max x: dx = dy at the maximum.  y and dy are of the row, or the only ones. */
static void grad_blocks(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t b = begin; b < end; b++) {
        int64_t n, at = block_at(j, b, &n), of = j->axis == HEED_ALL ? 0 : b;
        real dy = j->dy[of];
        if (j->kind == MAX)
            j->dx[at + j->index[b]] += dy;
        else if (j->kind == LOGSUMEXP)
            j->k->row_exp_grad(j->dx + at, j->x->data + at, j->y[of], dy, n);
        else
            j->k->increase(j->dx + at, dy * j->scale, n);
    }
}

static void grad_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t ld = j->x->ld, rows = j->x->rows, n = end - begin;
    if (j->kind == MAX) {
        for (int64_t i = begin; i < end; i++)
            j->dx[j->index[i] * ld + i] += j->dy[i];
    } else if (j->kind == LOGSUMEXP) {
        j->k->column_exp_grad(j->dx + begin, j->x->data + begin, ld, j->y + begin, j->dy + begin,
                              rows, n);
    } else {
        for (int64_t r = 0; r < rows; r++)
            j->k->accumulate(j->dx + r * ld + begin, j->dy + begin, j->scale, n);
    }
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    int threads = heed__threads(c);
    j.dy = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    j.y = c->out[0]->data;
    int64_t work = work_of(j.kind);
    if (j.axis == HEED_ROWS) {
        heed__parallel(threads, j.x->cols, 16, j.x->rows * work, grad_columns, &j);
    } else if (j.axis == HEED_ALL && j.kind == MAX) {
        int32_t best = ((const struct saved *)c->saved)->best;
        grad_blocks(&j, best, best + 1, 0);
    } else {
        heed__parallel(threads, j.blocks, 1, (j.flat ? BLOCK : j.x->cols) * work, grad_blocks, &j);
    }
}

/* What a case gives besides tensors. */
struct arguments {
    heed_axis axis;
};

static const heed_opcase cases[] = {
    {"all", {HEED_DIMS2(3, 9)}, .domain = HEED_SPREAD, HEED_WITH(.axis = HEED_ALL)},
    {"all of rank 3", {HEED_DIMS3(2, 3, 2)}, .domain = HEED_SPREAD, HEED_WITH(.axis = HEED_ALL)},
    {"one number", {HEED_DIMS1(1)}, .domain = HEED_POSITIVE, HEED_WITH(.axis = HEED_ALL)},
    {"each row", {HEED_DIMS2(5, 17)}, .domain = HEED_SPREAD, HEED_WITH(.axis = HEED_COLS)},
    {"rows of one", {HEED_DIMS2(3, 1)}, .domain = HEED_SPREAD, HEED_WITH(.axis = HEED_COLS)},
    {"each column", {HEED_DIMS2(5, 17)}, .domain = HEED_SPREAD, HEED_WITH(.axis = HEED_ROWS)},
    {"columns of one", {HEED_DIMS2(1, 3)}, .domain = HEED_SPREAD, HEED_WITH(.axis = HEED_ROWS)},
};

#define REDUCE(name_, kind_, formula_)                                                             \
    static void run_##name_(heed_tape *t, const heed_opcase *c, heed_tensor **in,                  \
                            heed_tensor **out)                                                     \
    {                                                                                              \
        out[0] = heed_##name_(t, in[0], ((const struct arguments *)c->arguments)->axis);           \
    }                                                                                              \
    HEED_OP(name_, formula_, shape, forward, backward, cases, run_##name_);                        \
    heed_tensor *heed_##name_(heed_tape *t, heed_tensor *x, heed_axis axis)                        \
    {                                                                                              \
        return heed__first(heed__apply(t, &heed__op_##name_, &x, 1, 0,                             \
                                       &(struct attributes){kind_, axis},                          \
                                       sizeof(struct attributes)));                                \
    }
REDUCE(sum, SUM, "y = sum x")
REDUCE(mean, MEAN, "y = sum x / n")
REDUCE(max, MAX, "y = max x")
REDUCE(logsumexp, LOGSUMEXP, "y = log sum e^x")
