/* top_k.c: the k largest of each row, largest first, ties by the lower column.  NaN is the largest.
 * x (N,C) -> (N,k) and their columns. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "ops/largest.h"
#include "tensor/op.h"

struct job {
    const heed_tensor *x;
    int64_t k;
    int32_t *index; /* (N,k) */
    real *y, *dx;
    const real *dy;
};

static heed_status shape(heed_opcall *c)
{
    int64_t k = *(const int64_t *)c->attributes;
    const heed_tensor *x = c->in[0];
    if (k < 1 || k > x->cols || x->cols > INT32_MAX)
        return heed__op_shape_fail(c, "x", x, "(N,C) with 1 <= k = %lld <= C < 2^31", (long long)k);
    heed_shape s = x->shape;
    s.dim[s.rank - 1] = k;
    heed_status status = heed__out(c, s);
    return status ? status : heed__save(c, (size_t)(x->rows * k) * sizeof(int32_t));
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        const real *x = heed__row(j->x, r);
        int32_t *heap = j->index + r * j->k;
        heed__largest(x, j->x->cols, j->k, heap);
        /* Heap sort: the root moves to the end of the shrinking heap. */
        for (int64_t i = j->k - 1; i > 0; i--) {
            int32_t last = heap[0];
            heap[0] = heap[i];
            heap[i] = last;
            heed__sink(heap, i, 0, x);
        }
        for (int64_t i = 0; i < j->k; i++)
            j->y[r * j->k + i] = x[heap[i]];
    }
}

static struct job job_of(const heed_opcall *c)
{
    return (struct job){.x = c->in[0],
                        .k = *(const int64_t *)c->attributes,
                        .index = c->saved,
                        .y = c->out[0]->data};
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), j.x->rows, 1, 2 * j.x->cols, compute, &j);
}

static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        for (int64_t i = 0; i < j->k; i++)
            j->dx[r * j->x->ld + j->index[r * j->k + i]] += j->dy[r * j->k + i];
}

/* y[i] = x[index[i]], so dx[index[i]] = dy[i] */
static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.dy = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    heed__parallel(heed__threads(c), j.x->rows, 1, j.k, grad, &j);
}

/* What a case gives besides tensors. */
struct arguments {
    int64_t k;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    const int32_t *indices;
    out[0] = heed_top_k(t, in[0], a->k, &indices);
}

static const heed_opcase cases[] = {
    {"three of nine", {HEED_DIMS2(3, 9)}, .domain = HEED_SPREAD, HEED_WITH(.k = 3)},
    {"all of five", {HEED_DIMS2(2, 5)}, .domain = HEED_SPREAD, HEED_WITH(.k = 5)},
    {"one of one", {HEED_DIMS2(2, 1)}, .domain = HEED_SPREAD, HEED_WITH(.k = 1)},
};
HEED_OP(top_k, "y = the k largest of each row", shape, forward, backward, cases, run);

heed_tensor *heed_top_k(heed_tape *t, heed_tensor *x, int64_t k, const int32_t **indices)
{
    heed_opcall *c = heed__apply(t, &heed__op_top_k, &x, 1, 0, &k, sizeof k);
    if (indices)
        *indices = c ? c->saved : NULL;
    return heed__first(c);
}
