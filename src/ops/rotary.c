/* rotary: rotary positions (Su et al. 2021): in each of `heads` equal pieces of a row, pair i of
 * elements (a, b) becomes (c a - s b, s a + c b), c and s the cosine and sine of
 * position * base^(-2i/d), d the columns of a piece.  Positions count from 0 in each segment, so
 * that the product of two turned rows depends on their distance alone.
 *
 * x (N,heads*d) -> the same.  Pairs are (i, i+d/2), or neighbours (2i, 2i+1).  Saves the angles of
 * the longest segment.  Refuses an odd d. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "kernel/rotary_rows.h"
#include "tensor/op.h"

struct attributes {
    const heed_segments *segments;
    int heads;
    bool neighbours;
    double base;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *x = c->in[0];
    if (!a->segments)
        return heed__op_fail(c, HEED_ARGUMENT, "no segments");
    if (a->heads < 1 || x->cols % (2 * (int64_t)a->heads))
        return heed__op_shape_fail(c, "x", x, "%d heads of even width", a->heads);
    if (a->segments->rows != x->rows)
        return heed__op_shape_fail(c, "x", x, "%lld rows, as the segments have",
                                   (long long)a->segments->rows);
    if (!(a->base > 1))
        return heed__op_fail(c, HEED_ARGUMENT, "base is %g, expected more than 1", a->base);
    const int64_t d = x->cols / a->heads;
    heed_status status = heed__save(c, (size_t)(a->segments->longest * d) * sizeof(real));
    return status ? status : heed__out(c, x->shape);
}

struct job {
    const struct attributes *a;
    void (*turn)(real *y, const real *x, const real *angles, int64_t heads, int64_t d,
                 bool neighbours);
    real *angles; /* (longest,d) */
    int64_t d;
    real *to;
    const real *from;
    int64_t ld_to, ld_from;
};

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    return (struct job){.a = a, .angles = c->saved, .d = c->in[0]->cols / a->heads};
}

static void make_angles(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    heed__rotary_angles(j->angles + begin * j->d, begin, end - begin, j->d, j->a->base);
}

static void turn_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const int64_t *offset = j->a->segments->offset;
    int64_t b = 0;
    (void)thread;
    for (int64_t n = begin; n < end; n++) {
        while (n >= offset[b + 1])
            b++;
        j->turn(j->to + n * j->ld_to, j->from + n * j->ld_from, j->angles + (n - offset[b]) * j->d,
                j->a->heads, j->d, j->a->neighbours);
    }
}

static void forward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0], *y = c->out[0];
    struct job j = job_of(c);
    /* A cosine and a sine take as long as some twenty multiplications each. */
    heed__parallel(heed__threads(c), j.a->segments->longest, 1, 20 * j.d, make_angles, &j);
    j.turn = heed__kernels()->turn_heads;
    j.from = x->data;
    j.ld_from = x->ld;
    j.to = y->data;
    j.ld_to = y->ld;
    heed__parallel(heed__threads(c), x->rows, 1, 3 * x->cols, turn_rows, &j);
}

/* y = R x, R a rotation: dx = R^T dy, the opposite angle */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    struct job j = job_of(c);
    j.turn = heed__kernels()->turn_heads_back;
    j.from = heed__out_grad(c, 0);
    j.ld_from = c->out[0]->ld;
    j.to = heed__grad(c, 0);
    j.ld_to = x->ld;
    heed__parallel(heed__threads(c), x->rows, 1, 4 * x->cols, turn_rows, &j);
}

/* What a case gives besides tensors. */
struct arguments {
    heed_rotary_options options;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_rotary(t, in[0], heed__case_segments(t, c->lengths), &a->options);
}

static const heed_opcase cases[] = {
    {"one head, an empty segment",
     {HEED_DIMS2(7, 6)},
     HEED_WITH({.heads = 1}),
     .lengths = {4, 0, 3, -1}},
    {"three heads wider than a register",
     {HEED_DIMS2(5, 3 * 22)},
     HEED_WITH({.heads = 3, .base = 100}),
     .lengths = {5, -1}},
    {"neighbours",
     {HEED_DIMS2(6, 20)},
     HEED_WITH({.heads = 2, .neighbours = true, .base = 500}),
     .lengths = {1, 5, -1}},
};
HEED_OP(rotary, "pairs turned by position * base^(-2i/d), head by head", shape, forward, backward,
        cases, run);

heed_tensor *heed_rotary(heed_tape *t, heed_tensor *x, const heed_segments *segments,
                         const heed_rotary_options *options)
{
    if (!t)
        return NULL;
    const struct attributes a = {.segments = segments,
                                 .heads = options->heads,
                                 .neighbours = options->neighbours,
                                 .base = options->base != 0 ? options->base : HEED__ROTARY_BASE};
    return heed__first(heed__apply(t, &heed__op_rotary, &x, 1, 0, &a, sizeof a));
}
