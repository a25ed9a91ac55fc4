/* gather_rows.c: gather_rows, y[n] = x[index[n]], and scatter_rows, y[index[n]] += x[n]: each
 * is the other's derivative.  x (M,D), index (N) -> (N,D); x (N,D), index (N) -> (rows,D).
 *
 * A negative index is a zero row, or a skipped row; one that is too large is refused. */
#include "ops/gather_rows.h"

#include <heed/ops.h>
#include <string.h>

struct move {
    const heed_kernels *k;
    real *y;
    const real *x;
    const int32_t *index;
    int64_t ldy, ldx, n, cols;
    bool add;
};

static void take(void *context, int64_t begin, int64_t end, int thread)
{
    const struct move *m = context;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        real *y = m->y + r * m->ldy;
        int64_t from = m->index[r];
        if (from < 0) {
            if (!m->add)
                memset(y, 0, (size_t)m->cols * sizeof *y);
        } else if (m->add) {
            m->k->accumulate(y, m->x + from * m->ldx, 1, m->cols);
        } else {
            memcpy(y, m->x + from * m->ldx, (size_t)m->cols * sizeof *y);
        }
    }
}

void heed__take_rows(const heed_opcall *c, real *y, int64_t ldy, const real *x, int64_t ldx,
                     const int32_t *index, int64_t n, int64_t cols, bool add)
{
    struct move m = {heed__kernels(), y, x, index, ldy, ldx, n, cols, add};
    heed__parallel(heed__threads(c), n, 1, cols, take, &m);
}

static void put(void *context, int64_t begin, int64_t end, int thread)
{
    const struct move *m = context;
    (void)thread;
    for (int64_t r = 0; r < m->n; r++)
        if (m->index[r] >= 0)
            m->k->accumulate(m->y + m->index[r] * m->ldy + begin, m->x + r * m->ldx + begin, 1,
                             end - begin);
}

void heed__put_rows(const heed_opcall *c, real *y, int64_t ldy, const real *x, int64_t ldx,
                    const int32_t *index, int64_t n, int64_t cols)
{
    struct move m = {heed__kernels(), y, x, index, ldy, ldx, n, cols, true};
    heed__parallel(heed__threads(c), cols, 16, n, put, &m);
}

/* ---- the operators ---- */

struct attributes {
    const int32_t *index;
    int64_t n; /* rows of the output */
};

static heed_status check_index(heed_opcall *c, int64_t n, int64_t limit)
{
    const struct attributes *at = c->attributes;
    if (n > 0 && !at->index)
        return heed__op_fail(c, HEED_ARGUMENT, "index is NULL");
    for (int64_t i = 0; i < n; i++)
        if (at->index[i] >= limit)
            return heed__op_fail(c, HEED_ARGUMENT, "index[%lld] is %d, expected less than %lld",
                                 (long long)i, (int)at->index[i], (long long)limit);
    return HEED_OK;
}

static heed_status gather_shape(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    heed_status status = check_index(c, at->n, c->in[0]->rows);
    return status ? status : heed__out(c, HEED_SHAPE(at->n, c->in[0]->cols));
}

static void gather_forward(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const heed_tensor *x = c->in[0];
    heed__take_rows(c, c->out[0]->data, x->cols, x->data, x->ld, at->index, at->n, x->cols, false);
}

/* y[n] = x[index[n]], so dx[index[n]] += dy[n] */
static void gather_backward(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const heed_tensor *x = c->in[0];
    heed__put_rows(c, heed__grad(c, 0), x->ld, heed__out_grad(c, 0), x->cols, at->index, at->n,
                   x->cols);
}

static heed_status scatter_shape(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    heed_status status = check_index(c, c->in[0]->rows, at->n);
    return status ? status : heed__out(c, HEED_SHAPE(at->n, c->in[0]->cols));
}

static void scatter_forward(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const heed_tensor *x = c->in[0], *y = c->out[0];
    memset(y->data, 0, (size_t)(y->rows * y->cols) * sizeof(real));
    heed__put_rows(c, y->data, y->cols, x->data, x->ld, at->index, x->rows, x->cols);
}

/* y[index[n]] += x[n], so dx[n] += dy[index[n]] */
static void scatter_backward(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const heed_tensor *x = c->in[0];
    heed__take_rows(c, heed__grad(c, 0), x->ld, heed__out_grad(c, 0), x->cols, at->index, x->rows,
                    x->cols, true);
}

static const int32_t case_index[] = {2, 0, -1, 2, 1};

/* What a case gives besides tensors. */
struct arguments {
    int64_t rows;
};

static void run_gather(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_gather_rows(t, in[0], case_index, a->rows);
}

static void run_scatter(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_scatter_rows(t, in[0], case_index, a->rows);
}

static const heed_opcase gather_cases[] = {
    {"a row twice, one never, one absent", {HEED_DIMS2(4, 9)}, HEED_WITH(.rows = 5)},
    {"one column", {HEED_DIMS2(3, 1)}, HEED_WITH(.rows = 5)},
};
static const heed_opcase scatter_cases[] = {
    {"two rows to one, one skipped", {HEED_DIMS2(5, 9)}, HEED_WITH(.rows = 4)},
    {"one column", {HEED_DIMS2(4, 1)}, HEED_WITH(.rows = 3)},
};
HEED_OP(gather_rows, "y[n] = x[index[n]]", gather_shape, gather_forward, gather_backward,
        gather_cases, run_gather);
HEED_OP(scatter_rows, "y[index[n]] += x[n]", scatter_shape, scatter_forward, scatter_backward,
        scatter_cases, run_scatter);

heed_tensor *heed_gather_rows(heed_tape *t, heed_tensor *x, const int32_t *index, int64_t n)
{
    return heed__first(heed__apply(t, &heed__op_gather_rows, &x, 1, 0,
                                   &(struct attributes){index, n}, sizeof(struct attributes)));
}

heed_tensor *heed_scatter_rows(heed_tape *t, heed_tensor *x, const int32_t *index, int64_t rows)
{
    return heed__first(heed__apply(t, &heed__op_scatter_rows, &x, 1, 0,
                                   &(struct attributes){index, rows}, sizeof(struct attributes)));
}
