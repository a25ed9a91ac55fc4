/* One LSTM step for B sequences: a = x + h_prev U, divided into i f g o; c = sigma(f) c_prev +
 * sigma(i) tanh(g);  h = sigma(o) tanh(c).  x (B,4D), h_prev and c_prev (B,D) or more rows, u
 * (D,4D) -> h, c (B,D).
 *
 * One product forward and two backward; the activated gates and tanh(c) are saved. */
#include "base/parallel.h"
#include "ops/rnn_step.h"
#include <heed/ops.h>

enum { X, H_PREV, C_PREV, U };
enum { BLOCKS = 5 };     /* of D elements in a row of gates or gradients */
enum { CELL_WORK = 75 }; /* operations per unit: five exponentials */

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *u = c->in[U];
    int64_t d = u->rows;
    heed_status status;
    if (d < 1 || u->cols != 4 * d)
        return heed__op_shape_fail(c, "u", u, "(D,4*D)");
    if (x->cols != 4 * d)
        return heed__op_shape_fail(c, "x", x, "(B,%lld)", (long long)(4 * d));
    if ((status = heed__check_state(c, "h_prev", c->in[H_PREV], x->rows, d)) ||
        (status = heed__check_state(c, "c_prev", c->in[C_PREV], x->rows, d)))
        return status;
    size_t bytes = (size_t)(x->rows * BLOCKS * d) * sizeof(real);
    if ((status = heed__out(c, HEED_SHAPE(x->rows, d))) ||
        (status = heed__out(c, HEED_SHAPE(x->rows, d))) || (status = heed__save(c, bytes)) ||
        (status = heed__want_panels(c, x->rows, 4 * d, d)))
        return status;
    return c->recorded ? heed__want_scratch(c, bytes) : HEED_OK;
}

static void cell_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    int64_t d = c->in[U]->rows;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        heed__kernels()->lstm_cell(heed__row(c->out[0], r), heed__row(c->out[1], r),
                                   (real *)c->saved + r * BLOCKS * d, heed__row(c->in[X], r),
                                   heed__row(c->in[C_PREV], r), d);
}

static void forward(heed_opcall *c)
{
    const heed_tensor *h = c->in[H_PREV], *u = c->in[U];
    int64_t rows = c->in[X]->rows, d = u->rows;
    heed__product p = {.c = c->saved,
                       .ldc = BLOCKS * d,
                       .a = h->data,
                       .lda = h->ld,
                       .b = u->data,
                       .ldb = u->ld,
                       .m = rows,
                       .n = 4 * d,
                       .k = d};
    heed__op_gemm(c, &p, NULL, NULL);
    heed__parallel(heed__threads(c), rows, 1, CELL_WORK * d, cell_rows, c);
}

static void grad_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    int64_t d = c->in[U]->rows;
    const real *dh = heed__out_grad(c, 0), *dc = heed__out_grad(c, 1);
    real *grad = heed__scratch(c, 0);
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        heed__kernels()->lstm_cell_grad(
            grad + r * BLOCKS * d, dh ? dh + r * d : NULL, dc ? dc + r * d : NULL,
            (const real *)c->saved + r * BLOCKS * d, heed__row(c->in[C_PREV], r), d);
}

/* a = x + h_prev U, so with da the gradient of a (kernel/rnn_gates.c):
 * dx = da;  dh_prev = da U^T;  dU = h_prev^T da */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *h = c->in[H_PREV], *u = c->in[U];
    int64_t rows = x->rows, d = u->rows, ld = BLOCKS * d;
    int threads = heed__threads(c);
    const real *grad = heed__scratch(c, 0);
    real beta;
    heed__parallel(threads, rows, 1, CELL_WORK * d, grad_rows, c);
    if (heed__wants(c, X)) {
        real *dx = heed__grad_beta(c, X, &beta);
        heed__add_block(dx, x->ld, beta, grad, ld, rows, 4 * d);
    }
    if (heed__wants(c, C_PREV)) {
        real *dc = heed__state_grad(c, C_PREV, rows, &beta);
        heed__add_block(dc, c->in[C_PREV]->ld, beta, grad + 4 * d, ld, rows, d);
    }
    if (heed__wants(c, H_PREV)) {
        real *dh = heed__state_grad(c, H_PREV, rows, &beta);
        heed__product p = {.c = dh,
                           .ldc = h->ld,
                           .a = grad,
                           .lda = ld,
                           .b = u->data,
                           .ldb = u->ld,
                           .m = rows,
                           .n = d,
                           .k = 4 * d,
                           .trans_b = true,
                           .beta = beta};
        heed__op_gemm(c, &p, NULL, NULL);
    }
    if (heed__wants(c, U)) {
        real *du = heed__grad_beta(c, U, &beta);
        heed__product p = {.c = du,
                           .ldc = u->ld,
                           .a = h->data,
                           .lda = h->ld,
                           .b = grad,
                           .ldb = ld,
                           .m = d,
                           .n = 4 * d,
                           .k = rows,
                           .trans_a = true,
                           .beta = beta};
        heed__op_gemm(c, &p, NULL, NULL);
    }
}

/* What a case gives besides tensors: which outputs it uses. */
struct arguments {
    enum { BOTH, ONLY_H, ONLY_C } use;
};

static const heed_opcase cases[] = {
    {.what = "one sequence, one unit",
     .in = {HEED_DIMS2(1, 4), HEED_DIMS2(1, 1), HEED_DIMS2(1, 1), HEED_DIMS2(1, 4)},
     HEED_WITH(.use = BOTH)},
    {.what = "3 sequences, 5 units",
     .in = {HEED_DIMS2(3, 20), HEED_DIMS2(3, 5), HEED_DIMS2(3, 5), HEED_DIMS2(5, 20)},
     HEED_WITH(.use = BOTH)},
    {.what = "2 of 4 sequences continue",
     .in = {HEED_DIMS2(2, 12), HEED_DIMS2(4, 3), HEED_DIMS2(3, 3), HEED_DIMS2(3, 12)},
     HEED_WITH(.use = BOTH)},
    {.what = "only h is used",
     .in = {HEED_DIMS2(2, 12), HEED_DIMS2(2, 3), HEED_DIMS2(2, 3), HEED_DIMS2(3, 12)},
     HEED_WITH(.use = ONLY_H)},
    {.what = "only c is used",
     .in = {HEED_DIMS2(2, 12), HEED_DIMS2(2, 3), HEED_DIMS2(2, 3), HEED_DIMS2(3, 12)},
     HEED_WITH(.use = ONLY_C)},
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    heed_lstm_state s = heed_lstm_step(t, in[0], (heed_lstm_state){in[1], in[2]}, in[3]);
    out[0] = a->use == ONLY_C ? s.c : s.h;
    out[1] = a->use == BOTH ? s.c : NULL;
}

HEED_OP(lstm_step, "c = f*c_prev + i*g, h = o*tanh(c), [i f g o] = x + h_prev U", shape, forward,
        backward, cases, run);

heed_lstm_state heed_lstm_step(heed_tape *t, heed_tensor *x, heed_lstm_state previous,
                               heed_tensor *u)
{
    heed_tensor *in[] = {x, previous.h, previous.c, u};
    heed_opcall *c = heed__apply(t, &heed__op_lstm_step, in, 4, 0, NULL, 0);
    return c ? (heed_lstm_state){c->out[0], c->out[1]} : (heed_lstm_state){NULL, NULL};
}
