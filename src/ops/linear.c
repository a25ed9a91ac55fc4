/* linear: y = f(x W + b), f one of the activations.  x (N,K), W (K,F), b (F) or absent -> (N,F).
 *
 * Bias and ReLU are applied by the product, other activations to each finished block.  Backward
 * reads y where f' follows from it (ReLU, tanh, sigmoid); GELU and SiLU save z = x W + b, only
 * while recording.  x may have more axes: its last is K.  2 N K F operations, twice that backward.
 */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>
#include <string.h>

enum { X, WEIGHT, BIAS };
#define GRAIN 64 /* columns: four cache lines of a row */
#define CHUNK 256

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *w = c->in[WEIGHT], *b = c->in[BIAS];
    heed_activation f = *(const heed_activation *)c->attributes;
    if ((int)f < 0 || f > HEED_SIGMOID)
        return heed__op_fail(c, HEED_ARGUMENT, "activation is %d, expected 0 to %d", (int)f,
                             (int)HEED_SIGMOID);
    if (w->shape.rank != 2)
        return heed__op_shape_fail(c, "weight", w, "(K,F)");
    if (x->cols != w->rows)
        return heed__op_shape_fail(c, "x", x, "(N,%lld)", (long long)w->rows);
    if (b && (b->rows != 1 || b->cols != w->cols))
        return heed__op_shape_fail(c, "bias", b, "(%lld)", (long long)w->cols);
    heed_shape out = x->shape;
    out.dim[out.rank - 1] = w->cols;
    heed_status status = heed__out(c, out);
    if (!status)
        status = heed__want_panels(c, x->rows, w->cols, w->rows);
    /* The size of y, which heed__out has checked. */
    if (!status && c->recorded && heed__unary_needs_x(f))
        return heed__save(c, (size_t)(x->rows * w->cols) * sizeof(real));
    return status;
}

/* ---- forward ---- */

/* An activation that the product does not apply itself. */
typedef struct epilogue {
    real *z, *y; /* the product, and f of it: the same memory unless z is saved */
    int64_t ld;
    heed_activation f;
} epilogue;

static void finish(void *context, int64_t begin, int64_t end, int64_t left, int64_t right)
{
    const epilogue *e = context;
    for (int64_t r = begin; r < end; r++)
        heed__kernels()->unary((int)e->f, e->y + r * e->ld + left, e->z + r * e->ld + left,
                               right - left);
}

static void forward(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *w = c->in[WEIGHT], *b = c->in[BIAS], *y = c->out[0];
    epilogue e = {.z = c->saved ? c->saved : y->data,
                  .y = y->data,
                  .ld = y->ld,
                  .f = *(const heed_activation *)c->attributes};
    heed__product p = {.c = e.z,
                       .ldc = e.ld,
                       .a = x->data,
                       .lda = x->ld,
                       .b = w->data,
                       .ldb = w->ld,
                       .m = x->rows,
                       .n = w->cols,
                       .k = w->rows,
                       .bias = b ? b->data : NULL,
                       .relu = e.f == HEED_RELU};
    bool done = e.f == HEED_IDENTITY || e.f == HEED_RELU;
    heed__op_gemm(c, &p, done ? NULL : finish, &e);
}

/* ---- backward ---- */

typedef struct gradient {
    real *dy;          /* becomes dz */
    const real *z, *y; /* z NULL where f' follows from y */
    real *db;          /* NULL: not needed */
    int64_t rows, ld;
    heed_activation f;
} gradient;

/* y = f(z), so dz = dy f'(z), in place of dy, for a part of a row. */
static void to_dz(const gradient *s, int64_t at, int64_t n)
{
    real dz[CHUNK];
    for (int64_t j = 0; j < n; j += CHUNK) {
        int64_t count = n - j < CHUNK ? n - j : CHUNK;
        memset(dz, 0, (size_t)count * sizeof *dz);
        heed__kernels()->unary_grad((int)s->f, dz, s->dy + at + j, s->z ? s->z + at + j : NULL,
                                    s->y + at + j, count);
        memcpy(s->dy + at + j, dz, (size_t)count * sizeof *dz);
    }
}

/* By columns, so that each sum over rows is of one thread and has a fixed order. */
static void columns(void *context, int64_t begin, int64_t end, int thread)
{
    const gradient *s = context;
    (void)thread;
    bool relu = s->f == HEED_RELU;
    int64_t together = 8;
    for (int64_t r = 0; r < s->rows; r += together) {
        int64_t rows = s->rows - r < together ? s->rows - r : together;
        if (!relu && s->f != HEED_IDENTITY)
            for (int64_t i = r; i < r + rows; i++)
                to_dz(s, i * s->ld + begin, end - begin);
        heed__kernels()->column_sums(s->db ? s->db + begin : NULL, s->dy + r * s->ld + begin, s->ld,
                                     relu ? s->y + r * s->ld + begin : NULL, s->ld, rows,
                                     end - begin);
    }
}

/* y = f(z), z = x W + b, so with dz = dy f'(z):
 * dx = dz W^T,  dW = x^T dz,  db = sum of dz over rows */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *w = c->in[WEIGHT], *y = c->out[0];
    real *dz = heed__out_grad(c, 0);
    gradient s = {.dy = dz,
                  .z = c->saved,
                  .y = y->data,
                  .rows = y->rows,
                  .ld = y->ld,
                  .f = *(const heed_activation *)c->attributes};
    if (heed__wants(c, BIAS))
        s.db = heed__grad(c, BIAS);
    if (s.db || s.f != HEED_IDENTITY)
        heed__parallel(heed__threads(c), y->cols, GRAIN, y->rows, columns, &s);
    if (heed__wants(c, X)) {
        heed__product p = {.a = dz,
                           .lda = y->ld,
                           .b = w->data,
                           .ldb = w->ld,
                           .trans_b = true,
                           .ldc = x->ld,
                           .m = x->rows,
                           .n = x->cols,
                           .k = y->cols};
        p.c = heed__grad_beta(c, X, &p.beta);
        heed__op_gemm(c, &p, NULL, NULL);
    }
    if (heed__wants(c, WEIGHT)) {
        heed__product p = {.a = x->data,
                           .lda = x->ld,
                           .trans_a = true,
                           .b = dz,
                           .ldb = y->ld,
                           .ldc = w->ld,
                           .m = w->rows,
                           .n = w->cols,
                           .k = x->rows};
        p.c = heed__grad_beta(c, WEIGHT, &p.beta);
        heed__op_gemm(c, &p, NULL, NULL);
    }
}

/* What a case gives besides tensors. */
struct arguments {
    heed_activation activation;
    double bias_scale;
};

#define ALL(n, k, f)                                                                               \
    {                                                                                              \
        HEED_DIMS2(n, k), HEED_DIMS2(k, f), HEED_DIMS1(f)                                          \
    }
static const heed_opcase cases[] = {
    {.what = "identity", .in = ALL(5, 3, 7), HEED_WITH(.activation = HEED_IDENTITY)},
    {.what = "no bias",
     .in = {HEED_DIMS2(5, 3), HEED_DIMS2(3, 7)},
     HEED_WITH(.activation = HEED_IDENTITY)},
    /* A bias much larger than x W keeps every z away from the kink, on both sides of it. */
    {.what = "relu",
     .in = ALL(5, 2, 5),
     .domain = HEED_SPREAD,
     HEED_WITH(.activation = HEED_RELU, .bias_scale = 60)},
    {.what = "relu, no bias",
     .in = {HEED_DIMS2(9, 3), HEED_DIMS2(3, 5)},
     .domain = HEED_POSITIVE,
     HEED_WITH(.activation = HEED_RELU)},
    {.what = "gelu", .in = ALL(4, 3, 5), HEED_WITH(.activation = HEED_GELU)},
    {.what = "gelu by tanh", .in = ALL(4, 3, 5), HEED_WITH(.activation = HEED_GELU_TANH)},
    {.what = "silu", .in = ALL(11, 3, 5), HEED_WITH(.activation = HEED_SILU)},
    {.what = "tanh", .in = ALL(4, 3, 5), HEED_WITH(.activation = HEED_TANH)},
    {.what = "sigmoid", .in = ALL(4, 3, 5), HEED_WITH(.activation = HEED_SIGMOID)},
    {.what = "tanh, no bias",
     .in = {HEED_DIMS2(4, 3), HEED_DIMS2(3, 5)},
     HEED_WITH(.activation = HEED_TANH)},
    {.what = "all of size 1", .in = ALL(1, 1, 1), HEED_WITH(.activation = HEED_SILU)},
    {.what = "one row", .in = ALL(1, 6, 9), HEED_WITH(.activation = HEED_TANH)},
    {.what = "one column", .in = ALL(6, 9, 1), HEED_WITH(.activation = HEED_IDENTITY)},
    {.what = "three axes",
     .in = {HEED_DIMS3(2, 3, 4), HEED_DIMS2(4, 5), HEED_DIMS1(5)},
     HEED_WITH(.activation = HEED_GELU)},
    {.what = "several tiles", .in = ALL(18, 17, 19), HEED_WITH(.activation = HEED_TANH)},
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    heed_tensor *bias = c->in[BIAS].rank ? in[BIAS] : NULL;
    if (a->bias_scale != 0)
        bias = heed_scale(t, bias, a->bias_scale, 0);
    out[0] = heed_linear(t, in[X], in[WEIGHT], bias, a->activation);
}

HEED_OP(linear, "y = f(x W + b)", shape, forward, backward, cases, run);

heed_tensor *heed_linear(heed_tape *t, heed_tensor *x, heed_tensor *weight, heed_tensor *bias,
                         heed_activation activation)
{
    heed_tensor *in[] = {x, weight, bias};
    return heed__first(
        heed__apply(t, &heed__op_linear, in, 3, 1u << BIAS, &activation, sizeof activation));
}
