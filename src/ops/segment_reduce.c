/* segment_reduce.c: segment_sum, segment_mean, segment_max (N,D) -> (B,D), and segment_softmax
 * (N,D) -> (N,D): each column over the rows of each segment.
 *
 * An empty segment gives a zero row.  max: the gradient goes to the first maximum.  A column of
 * -inf gives softmax zeros and no gradient. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

#include <string.h>

typedef enum kind { SUM, MEAN, MAX, SOFTMAX } kind;

struct attributes {
    kind kind;
    const heed_segments *segments;
};

struct job {
    const heed_kernels *k;
    kind kind;
    const heed_segments *s;
    const heed_tensor *x;
    real *y, *dx;
    const real *dy;
    int32_t *index; /* (B,D) of max: row inside the segment */
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const heed_segments *s = at->segments;
    const heed_tensor *x = c->in[0];
    if (!s)
        return heed__op_fail(c, HEED_ARGUMENT, "segments are NULL");
    if (x->rows != s->rows)
        return heed__op_shape_fail(c, "x", x, "(%lld,D), the rows of %lld segments",
                                   (long long)s->rows, (long long)s->count);
    if (at->kind == SOFTMAX)
        return heed__out(c, x->shape);
    heed_status status = heed__out(c, HEED_SHAPE(s->count, x->cols));
    if (!status && at->kind == MAX)
        status = heed__save(c, (size_t)(s->count * x->cols) * sizeof(int32_t));
    return status;
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    return (struct job){.k = heed__kernels(),
                        .kind = at->kind,
                        .s = at->segments,
                        .x = c->in[0],
                        .y = c->out[0]->data,
                        .index = c->saved};
}

/* 1, or for the mean one over the segment's length. */
static real scale_of(const struct job *j, int64_t rows)
{
    return j->kind == MEAN && rows > 0 ? (real)(1 / (double)rows) : 1;
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t n = j->x->cols, ld = j->x->ld;
    for (int64_t b = begin; b < end; b++) {
        int64_t first = j->s->offset[b], rows = j->s->offset[b + 1] - first;
        const real *x = j->x->data + first * ld;
        if (j->kind == SOFTMAX) {
            j->k->column_softmax(j->y + first * n, n, x, ld, rows, n);
            continue;
        }
        real *y = j->y + b * n;
        if (rows == 0)
            memset(y, 0, (size_t)n * sizeof *y);
        else if (j->kind == MAX)
            j->k->column_max(y, j->index + b * n, x, ld, rows, n);
        else
            j->k->column_sum(y, x, ld, rows, n);
        if (j->kind == MEAN)
            j->k->affine(y, y, scale_of(j, rows), 0, n);
    }
}

/* Work of an average segment. */
static int64_t work_of(const struct job *j)
{
    int64_t cells = j->x->rows * j->x->cols * (j->kind == SOFTMAX ? 10 : 1);
    return j->s->count ? cells / j->s->count + 1 : 1;
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), j.s->count, 1, work_of(&j), compute, &j);
}

/* y = sum x: dx = dy;  y = sum x / rows: dx = dy / rows;  y = max x: dx = dy at the maximum;
 * y = softmax(x): dx = y (dy - sum dy y) */
static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t n = j->x->cols, ld = j->x->ld;
    for (int64_t b = begin; b < end; b++) {
        int64_t first = j->s->offset[b], rows = j->s->offset[b + 1] - first;
        real *dx = j->dx + first * ld;
        const real *dy = j->dy + b * n;
        if (j->kind == SOFTMAX)
            j->k->column_softmax_grad(dx, ld, j->dy + first * n, j->y + first * n, n, rows, n);
        else if (j->kind == MAX)
            for (int64_t i = 0; i < n && rows > 0; i++)
                dx[j->index[b * n + i] * ld + i] += dy[i];
        else
            for (int64_t r = 0; r < rows; r++)
                j->k->accumulate(dx + r * ld, dy, scale_of(j, rows), n);
    }
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.dy = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    heed__parallel(heed__threads(c), j.s->count, 1, work_of(&j), grad, &j);
}

static const heed_opcase cases[] = {
    {"with an empty one", {HEED_DIMS2(8, 9)}, .domain = HEED_SPREAD, .lengths = {3, 0, 4, 1, -1}},
    {"one segment", {HEED_DIMS2(5, 3)}, .domain = HEED_SPREAD, .lengths = {5, -1}},
    {"one column", {HEED_DIMS2(5, 1)}, .domain = HEED_SPREAD, .lengths = {2, 3, -1}},
};

#define SEGMENT(name_, kind_, formula_)                                                            \
    static void run_##name_(heed_tape *t, const heed_opcase *c, heed_tensor **in,                  \
                            heed_tensor **out)                                                     \
    {                                                                                              \
        out[0] = heed_##name_(t, in[0], heed__case_segments(t, c->lengths));                       \
    }                                                                                              \
    HEED_OP(name_, formula_, shape, forward, backward, cases, run_##name_);                        \
    heed_tensor *heed_##name_(heed_tape *t, heed_tensor *x, const heed_segments *s)                \
    {                                                                                              \
        return heed__first(heed__apply(t, &heed__op_##name_, &x, 1, 0,                             \
                                       &(struct attributes){kind_, s},                             \
                                       sizeof(struct attributes)));                                \
    }
SEGMENT(segment_sum, SUM, "y[b] = sum of x over segment b")
SEGMENT(segment_mean, MEAN, "y[b] = mean of x over segment b")
SEGMENT(segment_max, MAX, "y[b] = max of x over segment b")
SEGMENT(segment_softmax, SOFTMAX, "y = e^x / sum of e^x over the segment, column by column")
