/* One GRU step for B sequences, x (B,3D) and u (D,3D) divided into r z n:
 *   r = sigma(x_r + h_prev U_r), z = sigma(x_z + h_prev U_z)
 *   n = tanh(x_n + (r h_prev) U_n)  or, reset after the product, tanh(x_n + r (h_prev U_n))
 *   h = z h_prev + (1-z) n  (z keeps)  or  (1-z) h_prev + z n  (z takes)
 * bias (3D), if there is one, is added to each product.  h_prev (B,D) or more rows -> h (B,D).
 *
 * A reset before the product splits it in two, so that form is slower. */
#include "base/parallel.h"
#include "ops/rnn_step.h"
#include <heed/ops.h>

enum { X, H_PREV, U, BIAS };
enum { GATES = 4 };      /* blocks of D elements in a row of gates: r z n q */
enum { GRADS = 5 };      /* blocks in a row of gradients: dr dz dq dn dh_prev */
enum { CELL_WORK = 60 }; /* operations per unit: three exponentials and more */

static bool resets_after(const heed_opcall *c)
{
    return *(const int *)c->attributes & HEED_GRU_RESET_AFTER;
}

static bool z_takes(const heed_opcall *c)
{
    return *(const int *)c->attributes & HEED_GRU_Z_TAKES;
}

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *u = c->in[U], *bias = c->in[BIAS];
    int64_t d = u->rows;
    int kind = *(const int *)c->attributes;
    heed_status status;
    if (kind & ~(HEED_GRU_Z_TAKES | HEED_GRU_RESET_AFTER))
        return heed__op_fail(c, HEED_ARGUMENT, "kind is %d, expected 0 to 3", kind);
    if (d < 1 || u->cols != 3 * d)
        return heed__op_shape_fail(c, "u", u, "(D,3*D)");
    if (x->cols != 3 * d)
        return heed__op_shape_fail(c, "x", x, "(B,%lld)", (long long)(3 * d));
    if (bias && (bias->rows != 1 || bias->cols != 3 * d))
        return heed__op_shape_fail(c, "bias", bias, "(%lld)", (long long)(3 * d));
    if ((status = heed__check_state(c, "h_prev", c->in[H_PREV], x->rows, d)) ||
        (status = heed__out(c, HEED_SHAPE(x->rows, d))) ||
        (status = heed__save(c, (size_t)(x->rows * GATES * d) * sizeof(real))) ||
        (status = heed__want_panels(c, x->rows, 3 * d, d)))
        return status;
    return c->recorded ? heed__want_scratch(c, (size_t)(x->rows * GRADS * d) * sizeof(real))
                       : HEED_OK;
}

/* gates[to..] = a U[:, from..to) */
static void multiply(const heed_opcall *c, const real *a, int64_t lda, int64_t from, int64_t to)
{
    const heed_tensor *u = c->in[U];
    int64_t d = u->rows;
    heed__product p = {.c = (real *)c->saved + from,
                       .ldc = GATES * d,
                       .a = a,
                       .lda = lda,
                       .b = u->data + from,
                       .ldb = u->ld,
                       .m = c->in[X]->rows,
                       .n = to - from,
                       .k = d};
    heed__op_gemm(c, &p, NULL, NULL);
}

static void reset_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    int64_t d = c->in[U]->rows;
    const real *bias = c->in[BIAS] ? c->in[BIAS]->data : NULL;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        heed__kernels()->gru_reset((real *)c->saved + r * GATES * d, heed__row(c->in[X], r),
                                   heed__row(c->in[H_PREV], r), bias, resets_after(c), d);
}

static void new_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    int64_t d = c->in[U]->rows;
    const real *bias = c->in[BIAS] ? c->in[BIAS]->data : NULL;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        heed__kernels()->gru_new(heed__row(c->out[0], r), (real *)c->saved + r * GATES * d,
                                 heed__row(c->in[X], r), heed__row(c->in[H_PREV], r), bias,
                                 resets_after(c), z_takes(c), d);
}

static void forward(heed_opcall *c)
{
    const heed_tensor *h = c->in[H_PREV];
    int64_t rows = c->in[X]->rows, d = c->in[U]->rows;
    int threads = heed__threads(c);
    multiply(c, h->data, h->ld, 0, resets_after(c) ? 3 * d : 2 * d);
    heed__parallel(threads, rows, 1, CELL_WORK * d, reset_rows, c);
    if (!resets_after(c))
        multiply(c, (const real *)c->saved + 3 * d, GATES * d, 2 * d, 3 * d);
    heed__parallel(threads, rows, 1, CELL_WORK * d, new_rows, c);
}

static void new_grads(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    int64_t d = c->in[U]->rows;
    const real *dh = heed__out_grad(c, 0);
    real *grad = heed__scratch(c, 0);
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        heed__kernels()->gru_new_grad(grad + r * GRADS * d, dh + r * d,
                                      (const real *)c->saved + r * GATES * d,
                                      heed__row(c->in[H_PREV], r), resets_after(c), z_takes(c), d);
}

static void reset_grads(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    int64_t d = c->in[U]->rows;
    real *grad = heed__scratch(c, 0);
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        heed__kernels()->gru_reset_grad(grad + r * GRADS * d,
                                        (const real *)c->saved + r * GATES * d,
                                        heed__row(c->in[H_PREV], r), d);
}

/* Computes the gradients of the gates.  With the reset before the product, n = tanh(x_n + q U_n)
 * with q = r h_prev, so dq = dn U_n^T. */
static void make_grads(heed_opcall *c)
{
    const heed_tensor *u = c->in[U];
    int64_t rows = c->in[X]->rows, d = u->rows, ld = GRADS * d;
    int threads = heed__threads(c);
    real *grad = heed__scratch(c, 0);
    heed__parallel(threads, rows, 1, CELL_WORK * d, new_grads, c);
    if (resets_after(c))
        return;
    heed__product p = {.c = grad + 2 * d,
                       .ldc = ld,
                       .a = grad + 3 * d,
                       .lda = ld,
                       .b = u->data + 2 * d,
                       .ldb = u->ld,
                       .m = rows,
                       .n = d,
                       .k = d,
                       .trans_b = true};
    heed__op_gemm(c, &p, NULL, NULL);
    heed__parallel(threads, rows, 1, CELL_WORK * d, reset_grads, c);
}

/* dU[:, from..to) = beta dU + a^T grads; `grad` points at the block of gate `from` */
static void weight_grad(const heed_opcall *c, real *du, real beta, const real *a, int64_t lda,
                        const real *grad, int64_t from, int64_t to)
{
    const heed_tensor *u = c->in[U];
    int64_t d = u->rows;
    heed__product p = {.c = du + from,
                       .ldc = u->ld,
                       .a = a,
                       .lda = lda,
                       .b = grad,
                       .ldb = GRADS * d,
                       .m = d,
                       .n = to - from,
                       .k = c->in[X]->rows,
                       .trans_a = true,
                       .beta = beta};
    heed__op_gemm(c, &p, NULL, NULL);
}

/* gates = f(x + h_prev U + bias), so
 *   dx = [dr dz dn],  dh_prev = direct part + grads U^T,  dU = h_prev^T grads,
 *   dbias = sum of grads over rows,
 * with grads = [dr dz dq] if the reset is after the product; if it is before, grads = [dr dz] and
 * dU_n = q^T dn. */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *h = c->in[H_PREV], *u = c->in[U];
    int64_t rows = x->rows, d = u->rows, ld = GRADS * d;
    int64_t wide = resets_after(c) ? 3 * d : 2 * d; /* columns of the product with h_prev */
    const real *grad = heed__scratch(c, 0);
    real beta;
    make_grads(c);
    if (heed__wants(c, X)) {
        real *dx = heed__grad_beta(c, X, &beta);
        heed__add_block(dx, x->ld, beta, grad, ld, rows, 2 * d);
        heed__add_block(dx + 2 * d, x->ld, beta, grad + 3 * d, ld, rows, d);
    }
    if (heed__wants(c, H_PREV)) {
        real *dh = heed__state_grad(c, H_PREV, rows, &beta);
        heed__add_block(dh, h->ld, beta, grad + 4 * d, ld, rows, d);
        heed__product p = {.c = dh,
                           .ldc = h->ld,
                           .a = grad,
                           .lda = ld,
                           .b = u->data,
                           .ldb = u->ld,
                           .m = rows,
                           .n = d,
                           .k = wide,
                           .trans_b = true,
                           .beta = 1};
        heed__op_gemm(c, &p, NULL, NULL);
    }
    if (heed__wants(c, U)) {
        real *du = heed__grad_beta(c, U, &beta);
        weight_grad(c, du, beta, h->data, h->ld, grad, 0, wide);
        if (!resets_after(c))
            weight_grad(c, du, beta, (const real *)c->saved + 3 * d, GATES * d, grad + 3 * d, 2 * d,
                        3 * d);
    }
    if (heed__wants(c, BIAS)) {
        real *db = heed__grad(c, BIAS);
        for (int64_t r = 0; r < rows; r++) {
            const real *s = grad + r * ld;
            heed__add_block(db, 0, 1, s, 0, 1, 2 * d);
            heed__add_block(db + 2 * d, 0, 1, s + (resets_after(c) ? 2 : 3) * d, 0, 1, d);
        }
    }
}

/* What a case gives besides tensors. */
struct arguments {
    int kind;
};

#define SMALL                                                                                      \
    {                                                                                              \
        HEED_DIMS2(3, 15), HEED_DIMS2(3, 5), HEED_DIMS2(5, 15), HEED_DIMS1(15)                     \
    }
static const heed_opcase cases[] = {
    {.what = "z keeps, reset before", .in = SMALL, HEED_WITH(.kind = HEED_GRU_Z_KEEPS)},
    {.what = "z takes, reset before", .in = SMALL, HEED_WITH(.kind = HEED_GRU_Z_TAKES)},
    {.what = "z keeps, reset after", .in = SMALL, HEED_WITH(.kind = HEED_GRU_RESET_AFTER)},
    {.what = "z takes, reset after",
     .in = SMALL,
     HEED_WITH(.kind = HEED_GRU_Z_TAKES | HEED_GRU_RESET_AFTER)},
    {.what = "one sequence, one unit, no bias",
     .in = {HEED_DIMS2(1, 3), HEED_DIMS2(1, 1), HEED_DIMS2(1, 3)},
     HEED_WITH(.kind = HEED_GRU_Z_KEEPS)},
    {.what = "one unit, reset after, no bias",
     .in = {HEED_DIMS2(1, 3), HEED_DIMS2(1, 1), HEED_DIMS2(1, 3)},
     HEED_WITH(.kind = HEED_GRU_RESET_AFTER)},
    {.what = "2 of 4 sequences continue",
     .in = {HEED_DIMS2(2, 9), HEED_DIMS2(4, 3), HEED_DIMS2(3, 9), HEED_DIMS1(9)},
     HEED_WITH(.kind = HEED_GRU_Z_KEEPS)},
    {.what = "2 of 4 sequences continue, reset after",
     .in = {HEED_DIMS2(2, 9), HEED_DIMS2(4, 3), HEED_DIMS2(3, 9), HEED_DIMS1(9)},
     HEED_WITH(.kind = HEED_GRU_RESET_AFTER)},
};
#undef SMALL

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    heed_tensor *bias = c->in[3].rank ? in[3] : NULL;
    out[0] = heed_gru_step(t, in[0], in[1], in[2], bias, a->kind);
}

HEED_OP(gru_step, "h = z*h_prev + (1-z)*tanh(x_n + (r*h_prev) U_n), and the other three forms",
        shape, forward, backward, cases, run);

heed_tensor *heed_gru_step(heed_tape *t, heed_tensor *x, heed_tensor *h_prev, heed_tensor *u,
                           heed_tensor *bias, int kind)
{
    heed_tensor *in[] = {x, h_prev, u, bias};
    return heed__first(heed__apply(t, &heed__op_gru_step, in, 4, 1u << BIAS, &kind, sizeof kind));
}
