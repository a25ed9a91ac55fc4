/* ssru: the simpler simple recurrent unit (Kim et al. 2019) along each segment, all steps at once:
 *
 *   c_i = s(f_i) c_{i-1} + (1 - s(f_i)) x_i,  h_i = relu(c_i),  s = sigmoid, c = 0 before a segment
 *
 * x (N,D), f (N,D) -> h (N,D).  What depends on other rows is elementwise: the products that make x
 * and f are those of any linear layer.  A segment is one thread's; c (N,D) is saved. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "ops/overlap.h"
#include "tensor/op.h"

#include <string.h>

#define WORK 20 /* elementary operations per element */

enum { X, F };

struct attributes {
    const heed_segments *segments;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *x = c->in[X], *f = c->in[F];
    if (!a->segments)
        return heed__op_fail(c, HEED_ARGUMENT, "no segments");
    if (x->rows != a->segments->rows)
        return heed__op_shape_fail(c, "x", x, "(%lld,D), the rows of %lld segments",
                                   (long long)a->segments->rows, (long long)a->segments->count);
    if (f->rows != x->rows || f->cols != x->cols)
        return heed__op_shape_fail(c, "f", f, "(%lld,%lld)", (long long)x->rows,
                                   (long long)x->cols);
    heed_status status = heed__save(c, (size_t)(x->rows * x->cols) * sizeof(real));
    if (!status)
        status = heed__want_scratch(c, (size_t)x->cols * sizeof(real));
    return status ? status : heed__out(c, HEED_SHAPE(x->rows, x->cols));
}

static void forward_segments(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    const heed_segments *s = ((const struct attributes *)c->attributes)->segments;
    const int64_t d = c->in[X]->cols;
    real *cells = c->saved;
    (void)thread;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = s->offset[b]; i < s->offset[b + 1]; i++)
            heed__kernels()->ssru_cell(heed__row(c->out[0], i), cells + i * d,
                                       heed__row(c->in[X], i), heed__row(c->in[F], i), NULL,
                                       i > s->offset[b] ? cells + (i - 1) * d : NULL, d);
}

static void run_segments(heed_opcall *c, int threads, heed__range *range, void *context)
{
    const heed_segments *s = ((const struct attributes *)c->attributes)->segments;
    if (s->count)
        heed__parallel(threads, s->count, 1, (s->rows / s->count + 1) * c->in[X]->cols * WORK,
                       range, context);
}

static void forward(heed_opcall *c)
{
    run_segments(c, heed__threads(c), forward_segments, c);
}

struct gradients {
    const heed_opcall *c;
    const real *dh;
    real *dx, *df;
};

/* From the last row of a segment to its first. */
static void backward_segments(void *context, int64_t begin, int64_t end, int thread)
{
    const struct gradients *g = context;
    const heed_opcall *c = g->c;
    const heed_segments *s = ((const struct attributes *)c->attributes)->segments;
    const heed_tensor *x = c->in[X], *f = c->in[F];
    const int64_t d = x->cols;
    const real *cells = c->saved;
    real *carry = heed__scratch(c, thread);
    for (int64_t b = begin; b < end; b++) {
        memset(carry, 0, (size_t)d * sizeof *carry);
        for (int64_t i = s->offset[b + 1] - 1; i >= s->offset[b]; i--)
            heed__kernels()->ssru_cell_grad(g->dx ? g->dx + i * x->ld : NULL,
                                            g->df ? g->df + i * f->ld : NULL, carry, g->dh + i * d,
                                            heed__row(x, i), heed__row(f, i), cells + i * d,
                                            i > s->offset[b] ? cells + (i - 1) * d : NULL, d);
    }
}

/* kernel/rnn_gates.c: ssru_cell_grad */
static void backward(heed_opcall *c)
{
    const bool apart = heed__meet(c->in[X], c->in[F]); /* then one after the other */
    struct gradients g = {.c = c, .dh = heed__out_grad(c, 0)};
    g.dx = heed__wants(c, X) ? heed__grad(c, X) : NULL;
    if (apart && g.dx)
        run_segments(c, heed__threads(c), backward_segments, &g);
    if (apart)
        g.dx = NULL;
    g.df = heed__wants(c, F) ? heed__grad(c, F) : NULL;
    if (g.dx || g.df)
        run_segments(c, heed__threads(c), backward_segments, &g);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    out[0] = heed_ssru(t, in[X], in[F], heed__case_segments(t, c->lengths));
}

/* Positive, for a cell near zero would be at the kink of its ReLU. */
static const heed_opcase cases[] = {
    {"segments of several lengths, an empty one",
     {HEED_DIMS2(9, 5), HEED_DIMS2(9, 5)},
     .domain = HEED_POSITIVE,
     .lengths = {4, 0, 1, 4, -1}},
    {"one column, one segment",
     {HEED_DIMS2(6, 1), HEED_DIMS2(6, 1)},
     .domain = HEED_POSITIVE,
     .lengths = {6, -1}},
    {"more columns than a register",
     {HEED_DIMS2(3, 37), HEED_DIMS2(3, 37)},
     .domain = HEED_POSITIVE,
     .lengths = {2, 1, -1}},
};
HEED_OP(ssru, "h = relu(c), c_i = s(f_i) c_{i-1} + (1 - s(f_i)) x_i inside each segment", shape,
        forward, backward, cases, run);

heed_tensor *heed_ssru(heed_tape *t, heed_tensor *x, heed_tensor *f, const heed_segments *segments)
{
    return heed__first(heed__apply(t, &heed__op_ssru, (heed_tensor *[]){x, f}, 2, 0,
                                   &(struct attributes){segments}, sizeof(struct attributes)));
}
