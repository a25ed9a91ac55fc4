/* segment_affine: y[i] = x[i] * gain[b] + bias[b] for row i of segment b.  x (N,D), gain (B,D),
 * bias (B,D) or absent -> (N,D).  Behind a batch norm without a gain it is conditional batch norm,
 * gain and bias looked up by the segment's class (Dumoulin et al. 2017). */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

enum { X, GAIN, BIAS };

struct job {
    const heed_kernels *k;
    const heed_segments *s;
    const heed_tensor *x, *gain, *bias;
    real *y, *dx, *dgain, *dbias;
    const real *dy;
};

static heed_status shape(heed_opcall *c)
{
    const heed_segments *s = *(const heed_segments *const *)c->attributes;
    const heed_tensor *x = c->in[X];
    static const char *const names[] = {"x", "gain", "bias"};
    if (!s)
        return heed__op_fail(c, HEED_ARGUMENT, "segments are NULL");
    if (x->rows != s->rows)
        return heed__op_shape_fail(c, "x", x, "(%lld,D), the rows of %lld segments",
                                   (long long)s->rows, (long long)s->count);
    for (int i = GAIN; i <= BIAS; i++)
        if (c->in[i] && (c->in[i]->rows != s->count || c->in[i]->cols != x->cols))
            return heed__op_shape_fail(c, names[i], c->in[i], "(%lld,%lld)", (long long)s->count,
                                       (long long)x->cols);
    return heed__out(c, x->shape);
}

static struct job job_of(const heed_opcall *c)
{
    return (struct job){.k = heed__kernels(),
                        .s = *(const heed_segments *const *)c->attributes,
                        .x = c->in[X],
                        .gain = c->in[GAIN],
                        .bias = c->in[BIAS],
                        .y = c->out[0]->data};
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const int64_t d = j->x->cols;
    (void)thread;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = j->s->offset[b]; i < j->s->offset[b + 1]; i++) {
            real *y = j->y + i * d;
            j->k->arith(HEED__MUL, y, heed__row(j->x, i), heed__row(j->gain, b), d);
            if (j->bias)
                j->k->accumulate(y, heed__row(j->bias, b), 1, d);
        }
}

static int64_t work_of(const struct job *j)
{
    return j->s->count ? 2 * j->x->rows * j->x->cols / j->s->count + 1 : 1;
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), j.s->count, 1, work_of(&j), compute, &j);
}

/* y = x gain + bias, so dx += dy gain; over the rows of the segment dgain += dy x, dbias += dy */
static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const int64_t d = j->x->cols;
    (void)thread;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = j->s->offset[b]; i < j->s->offset[b + 1]; i++) {
            const real *dy = j->dy + i * d;
            if (j->dx)
                j->k->multiply_add(j->dx + i * j->x->ld, dy, heed__row(j->gain, b), d);
            if (j->dgain)
                j->k->multiply_add(j->dgain + b * j->gain->ld, dy, heed__row(j->x, i), d);
            if (j->dbias)
                j->k->accumulate(j->dbias + b * j->bias->ld, dy, 1, d);
        }
}

static void backward(heed_opcall *c)
{
    /* One after the other: two of the inputs may be one tensor. */
    for (int i = X; i <= BIAS; i++) {
        if (!heed__wants(c, i))
            continue;
        struct job j = job_of(c);
        j.dy = heed__out_grad(c, 0);
        *(i == X ? &j.dx : i == GAIN ? &j.dgain : &j.dbias) = heed__grad(c, i);
        heed__parallel(heed__threads(c), j.s->count, 1, work_of(&j), grad, &j);
    }
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    out[0] = heed_segment_affine(t, in[X], in[GAIN], c->in[BIAS].rank ? in[BIAS] : NULL,
                                 heed__case_segments(t, c->lengths));
}

static const heed_opcase cases[] = {
    {.what = "with an empty one",
     .in = {HEED_DIMS2(8, 9), HEED_DIMS2(4, 9), HEED_DIMS2(4, 9)},
     .lengths = {3, 0, 4, 1, -1}},
    {.what = "no bias", .in = {HEED_DIMS2(5, 1), HEED_DIMS2(2, 1)}, .lengths = {2, 3, -1}},
    {.what = "a row each",
     .in = {HEED_DIMS2(2, 3), HEED_DIMS2(2, 3), HEED_DIMS2(2, 3)},
     .lengths = {1, 1, -1}},
};
HEED_OP(segment_affine, "y = x gain[b] + bias[b] for the rows of segment b", shape, forward,
        backward, cases, run);

heed_tensor *heed_segment_affine(heed_tape *t, heed_tensor *x, heed_tensor *gain, heed_tensor *bias,
                                 const heed_segments *s)
{
    heed_tensor *in[] = {x, gain, bias};
    return heed__first(heed__apply(t, &heed__op_segment_affine, in, 3, 1u << BIAS, &s, sizeof s));
}
