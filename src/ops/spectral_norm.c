/* Spectral norm (Miyato et al. 2018): y = W / sigma, sigma the largest singular value of W (K,F).
 *
 * One power iteration from u (F), state of a set: v = unit(W u), u' = unit(W^T v), sigma = v^T W
 * u' = |W^T v|.  With `moves`, while the tape trains, u becomes u' when the update ends
 * (heed_state_add); all passes of an update start from the same u.  u and v count as constants in
 * the gradient: exact where the iteration has converged.  W = 0 gives zeros. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>
#include <math.h>

enum { WEIGHT, VECTOR };
#define SMALLEST 1e-12 /* lengths are divided by no less */
#define GRAIN 16

struct attributes {
    bool moves;
};

/* What backward reads. */
struct saved {
    real sigma;
    real *u, *v; /* u' (F), v (K) */
};

struct job {
    const heed_kernels *k;
    const heed_tensor *w;
    const real *from; /* u */
    struct saved s;
    real *y, *dw;
    const real *dy;
    real share;
};

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *w = c->in[WEIGHT], *u = c->in[VECTOR];
    if (w->shape.rank != 2)
        return heed__op_shape_fail(c, "weight", w, "(K,F)");
    if (u->rows != 1 || u->cols != w->cols)
        return heed__op_shape_fail(c, "u", u, "(%lld)", (long long)w->cols);
    heed_status status =
        heed__save(c, sizeof(struct saved) + (size_t)(w->rows + w->cols) * sizeof(real));
    return status ? status : heed__out(c, w->shape);
}

static struct job job_of(const heed_opcall *c)
{
    return (struct job){.k = heed__kernels(),
                        .w = c->in[WEIGHT],
                        .from = c->in[VECTOR]->data,
                        .s = *(const struct saved *)c->saved,
                        .y = c->out[0]->data};
}

static void times_u(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        j->s.v[r] = j->k->row_dot(heed__row(j->w, r), j->from, j->w->cols);
}

static void times_v(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        j->s.u[i] = 0;
    for (int64_t r = 0; r < j->w->rows; r++)
        j->k->accumulate(j->s.u + begin, heed__row(j->w, r) + begin, j->s.v[r], end - begin);
}

static void divide(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const int64_t d = j->w->cols;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        j->k->affine(j->y + r * d, heed__row(j->w, r), 1 / j->s.sigma, 0, d);
}

/* x / |x| in place; returns |x|, at least SMALLEST. */
static real to_unit(const heed_kernels *k, real *x, int64_t n)
{
    const double length = sqrt((double)k->row_dot(x, x, n));
    const real divisor = (real)(length > SMALLEST ? length : SMALLEST);
    k->affine(x, x, 1 / divisor, 0, n);
    return divisor;
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *w = c->in[WEIGHT], *u = c->in[VECTOR];
    struct saved *s = c->saved;
    s->u = (real *)(s + 1);
    s->v = s->u + w->cols;
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), w->rows, 1, w->cols, times_u, &j);
    to_unit(j.k, s->v, w->rows);
    heed__parallel(heed__threads(c), w->cols, GRAIN, w->rows, times_v, &j);
    j.s.sigma = s->sigma = to_unit(j.k, s->u, w->cols);
    heed__parallel(heed__threads(c), w->rows, 1, w->cols, divide, &j);
    if (a->moves && u->moving && heed_tape_training(c->tape)) {
        for (int64_t i = 0; i < w->cols; i++)
            u->moving->sum[i] += (double)s->u[i];
        *u->moving->weight += 1;
        *u->moving->keep = 0;
    }
}

/* y = W / sigma, sigma = v^T W u', so dW = (dy - (sum of dy y) v u'^T) / sigma */
static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const int64_t d = j->w->cols;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        real *dw = j->dw + r * j->w->ld;
        j->k->accumulate(dw, j->dy + r * d, 1 / j->s.sigma, d);
        j->k->accumulate(dw, j->s.u, -j->share * j->s.v[r] / j->s.sigma, d);
    }
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    if (!heed__wants(c, WEIGHT))
        return;
    j.dy = heed__out_grad(c, 0);
    j.share = j.k->row_dot(j.dy, j.y, j.w->rows * j.w->cols);
    j.dw = heed__grad(c, WEIGHT);
    heed__parallel(heed__threads(c), j.w->rows, 1, 2 * j.w->cols, grad, &j);
}

/* From a u that has converged, so that sigma's derivative is that of the largest singular value. */
#define ROUNDS 4000
static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const heed_tensor *w = in[0];
    (void)c;
    heed_tensor *u = heed_input(t, HEED_SHAPE(heed_tensor_cols(w)), NULL);
    heed_tensor *v = heed_input(t, HEED_SHAPE(heed_tensor_rows(w)), NULL);
    for (int64_t i = 0; u && v && i < u->cols; i++)
        u->data[i] = 1;
    struct job j = {.k = heed__kernels(), .w = w};
    for (int n = 0; w && u && v && n < ROUNDS; n++) {
        j.from = u->data;
        j.s = (struct saved){.u = u->data, .v = v->data};
        times_u(&j, 0, w->rows, 0);
        to_unit(j.k, v->data, w->rows);
        times_v(&j, 0, w->cols, 0);
        to_unit(j.k, u->data, w->cols);
    }
    out[0] = heed_spectral_norm(t, in[0], u, false);
}

static const heed_opcase cases[] = {
    {.what = "more rows", .in = {HEED_DIMS2(7, 3)}},
    {.what = "more columns", .in = {HEED_DIMS2(2, 9)}},
    {.what = "one row", .in = {HEED_DIMS2(1, 5)}},
    {.what = "one column", .in = {HEED_DIMS2(5, 1)}},
};
HEED_OP(spectral_norm, "y = W / sigma, sigma the largest singular value by one power iteration",
        shape, forward, backward, cases, run);

heed_tensor *heed_spectral_norm(heed_tape *t, heed_tensor *weight, heed_tensor *u, bool moves)
{
    return heed__first(heed__apply(t, &heed__op_spectral_norm, (heed_tensor *[]){weight, u}, 2, 0,
                                   &(struct attributes){moves}, sizeof(struct attributes)));
}
