/* select.c: y = a where mask is not 0, else b.  a, b of one shape; mask has one byte per element,
 * or per row. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

struct attributes {
    const uint8_t *mask;
    bool rows;
};

struct job {
    const struct attributes *at;
    const heed_tensor *a, *b;
    real *out;      /* y, or the gradient of one input */
    const real *dy; /* NULL in forward */
    bool of_a;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const heed_tensor *a = c->in[0], *b = c->in[1];
    if (!at->mask && a->rows * a->cols > 0)
        return heed__op_fail(c, HEED_ARGUMENT, "mask is NULL");
    if (!heed__shape_equal(a->shape, b->shape)) {
        char text[HEED_SHAPE_TEXT];
        return heed__op_shape_fail(c, "b", b, "%s like a", heed__shape_text(a, text));
    }
    return heed__out(c, a->shape);
}

/* The mask of row r; *step from one element to the next, 0 if the row has one byte. */
static const uint8_t *mask_of(const struct job *j, int64_t r, int64_t *step)
{
    *step = j->at->rows ? 0 : 1;
    return j->at->mask + (j->at->rows ? r : r * j->a->cols);
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t n = j->a->cols, step;
    for (int64_t r = begin; r < end; r++) {
        const uint8_t *mask = mask_of(j, r, &step);
        const real *a = heed__row(j->a, r), *b = heed__row(j->b, r);
        for (int64_t i = 0; i < n; i++)
            j->out[r * n + i] = mask[i * step] ? a[i] : b[i];
    }
}

static void forward(heed_opcall *c)
{
    struct job j = {c->attributes, c->in[0], c->in[1], c->out[0]->data, NULL, false};
    heed__parallel(heed__threads(c), j.a->rows, 1, j.a->cols, compute, &j);
}

static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t n = j->a->cols, ld = j->of_a ? j->a->ld : j->b->ld, step;
    for (int64_t r = begin; r < end; r++) {
        const uint8_t *mask = mask_of(j, r, &step);
        const real *dy = j->dy + r * n;
        for (int64_t i = 0; i < n; i++)
            j->out[r * ld + i] += (mask[i * step] != 0) == j->of_a ? dy[i] : 0;
    }
}

/* y = mask ? a : b, so da = dy where mask, db = dy elsewhere */
static void backward(heed_opcall *c)
{
    struct job j = {c->attributes, c->in[0], c->in[1], NULL, heed__out_grad(c, 0), false};
    for (int i = 0; i < 2; i++)
        if (heed__wants(c, i)) {
            j.out = heed__grad(c, i);
            j.of_a = i == 0;
            heed__parallel(heed__threads(c), j.a->rows, 1, j.a->cols, grad, &j);
        }
}

/* What a case gives besides tensors. */
struct arguments {
    bool rows;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    static const uint8_t mask[] = {1, 0, 0, 1, 2, 0, 1, 1, 0, 0, 1, 0, 1, 0, 255};
    out[0] = heed_select(t, mask, a->rows, in[0], in[1]);
}

static const heed_opcase cases[] = {
    {"elements", {HEED_DIMS2(3, 5), HEED_DIMS2(3, 5)}, HEED_WITH(.rows = false)},
    {"rows", {HEED_DIMS2(4, 3), HEED_DIMS2(4, 3)}, HEED_WITH(.rows = true)},
    {"rows of one element", {HEED_DIMS2(5, 1), HEED_DIMS2(5, 1)}, HEED_WITH(.rows = true)},
};
HEED_OP(select, "y = a where mask, else b", shape, forward, backward, cases, run);

heed_tensor *heed_select(heed_tape *t, const uint8_t *mask, bool rows, heed_tensor *a,
                         heed_tensor *b)
{
    return heed__first(heed__apply(t, &heed__op_select, (heed_tensor *[]){a, b}, 2, 0,
                                   &(struct attributes){mask, rows}, sizeof(struct attributes)));
}
