/* read_steps.c: B sequences look back at n earlier steps of theirs, which are read where they are:
 * s_i = softmax over i of v . tanh(q + k_i), y = sum over i of s_i x_i.  q (B,A), v (A), k_i and
 * x_i (B,A) and (B,D) or more rows, of which the first B are used -> y (B,D), s (B,n).
 *
 * A recurrence that looks at all it has been through would otherwise copy its past at every step.
 * The A numbers of a pair are made again in backward, as in pairs_additive.c. */
#include "base/parallel.h"
#include "tensor/op.h"
#include <heed/ops.h>

#include <string.h>

enum { Q, V, KEYS };
enum { TANH_WORK = 12 }; /* operations a number */

static int steps_of(const heed_opcall *c)
{
    return (c->n_in - KEYS) / 2;
}

static int64_t work_of(const heed_opcall *c)
{
    const int n = steps_of(c);
    return n * (TANH_WORK * c->in[Q]->cols + c->in[KEYS + n]->cols);
}

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *q = c->in[Q], *v = c->in[V];
    const int n = steps_of(c);
    heed_status status;
    if (v->rows != 1 || v->cols != q->cols)
        return heed__op_shape_fail(c, "v", v, "(%lld)", (long long)q->cols);
    for (int i = 0; i < 2 * n; i++) {
        const heed_tensor *x = c->in[KEYS + i], *like = i < n ? q : c->in[KEYS + n];
        if (x->rows < q->rows || x->cols != like->cols)
            return heed__op_shape_fail(c, i < n ? "a key" : "a value", x, "(%lld,%lld)",
                                       (long long)q->rows, (long long)like->cols);
    }
    /* A thread's part: the gradient of v, then n numbers of a row. */
    if (c->recorded && (status = heed__want_scratch(c, (size_t)(q->cols + 2 * n) * sizeof(real))))
        return status;
    if ((c->recorded && (status = heed__save(c, (size_t)(2 * n) * sizeof(real *)))) ||
        (status = heed__out(c, HEED_SHAPE(q->rows, c->in[KEYS + n]->cols))))
        return status;
    return heed__out(c, HEED_SHAPE(q->rows, n));
}

static void read_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    const heed_kernels *k = heed__kernels();
    const int n = steps_of(c);
    const int64_t a = c->in[Q]->cols, d = c->out[0]->cols;
    heed_tensor *const *keys = c->in + KEYS, *const *values = keys + n;
    (void)thread;
    for (int64_t b = begin; b < end; b++) {
        real *y = heed__row(c->out[0], b), *s = heed__row(c->out[1], b);
        for (int i = 0; i < n; i++)
            k->additive_scores(s + i, heed__row(c->in[Q], b), heed__row(keys[i], b), a,
                               c->in[V]->data, 1, a);
        k->softmax_rows(s, s, n, 1, n);
        memset(y, 0, (size_t)d * sizeof *y);
        for (int i = 0; i < n; i++)
            k->accumulate(y, heed__row(values[i], b), s[i], d);
    }
}

static void forward(heed_opcall *c)
{
    heed__parallel(heed__threads(c), c->in[Q]->rows, 1, work_of(c), read_rows, c);
}

struct job {
    heed_opcall *c;
    const real *dy, *ds;
    real *dq, **dk, **dx; /* (n); NULL where none is wanted */
    bool to_v;
};

/* ds_i = dy . x_i, then through the softmax: de = s (ds - sum ds s); and from there, with t_i =
 * tanh(q + k_i): dv = sum de_i t_i, dq and dk_i from de_i v (1 - t_i^2). */
static void grad_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const heed_opcall *c = j->c;
    const heed_kernels *k = heed__kernels();
    const int n = steps_of(c);
    const int64_t a = c->in[Q]->cols, d = c->out[0]->cols;
    heed_tensor *const *keys = c->in + KEYS, *const *values = keys + n;
    real *dv = heed__scratch(c, thread), *ds = dv + a, *de = ds + n;
    for (int64_t b = begin; b < end; b++) {
        const real *s = heed__row(c->out[1], b), *dy = j->dy ? j->dy + b * d : NULL;
        for (int i = 0; i < n; i++) {
            ds[i] = j->ds ? j->ds[b * n + i] : 0;
            if (!dy)
                continue;
            ds[i] += k->row_dot(dy, heed__row(values[i], b), d);
            if (j->dx[i])
                k->accumulate(j->dx[i] + b * values[i]->ld, dy, s[i], d);
        }
        k->softmax_backward(de, n, ds, s, 1, n, true);
        for (int i = 0; i < n; i++)
            k->additive_grads(j->dq ? j->dq + b * c->in[Q]->ld : NULL,
                              j->dk[i] ? j->dk[i] + b * keys[i]->ld : NULL, j->to_v ? dv : NULL,
                              de + i, heed__row(c->in[Q], b), heed__row(keys[i], b), a,
                              c->in[V]->data, 1, a);
    }
}

static void backward(heed_opcall *c)
{
    const int n = steps_of(c), threads = heed__threads(c);
    const int64_t rows = c->in[Q]->rows, a = c->in[Q]->cols, work = 3 * work_of(c);
    const int width = heed__parallel_width(threads, rows, 1, work);
    struct job j = {.c = c,
                    .dy = heed__out_grad(c, 0),
                    .ds = heed__out_grad(c, 1),
                    .dk = c->saved,
                    .to_v = heed__wants(c, V)};
    j.dx = j.dk + n;
    j.dq = heed__wants(c, Q) ? heed__grad(c, Q) : NULL;
    for (int i = 0; i < 2 * n; i++)
        j.dk[i] = heed__wants(c, KEYS + i) ? heed__grad(c, KEYS + i) : NULL;
    for (int i = 0; i < width; i++)
        memset(heed__scratch(c, i), 0, (size_t)a * sizeof(real));
    heed__parallel(threads, rows, 1, work, grad_rows, &j);
    real *dv = j.to_v ? heed__grad(c, V) : NULL;
    for (int i = 0; dv && i < width; i++)
        heed__kernels()->accumulate(dv, heed__scratch(c, i), 1, a);
}

/* What a case gives besides tensors: of how many steps it is, its one or two keys and values taken
 * in turn, and which outputs it uses. */
struct arguments {
    int steps;
    bool y, s;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    heed_tensor *keys[4], *values[4], *s;
    const int kinds = c->in[4].rank ? 2 : 1;
    for (int i = 0; i < a->steps; i++) {
        keys[i] = in[KEYS + i % kinds];
        values[i] = in[KEYS + kinds + i % kinds];
    }
    heed_tensor *y = heed_read_steps(t, in[Q], in[V], keys, values, a->steps, &s);
    out[0] = a->y ? y : s;
    out[1] = a->y && a->s ? s : NULL;
}

static const heed_opcase cases[] = {
    {.what = "two steps of three sequences",
     .in = {HEED_DIMS2(3, 5), HEED_DIMS1(5), HEED_DIMS2(3, 5), HEED_DIMS2(3, 5), HEED_DIMS2(3, 4),
            HEED_DIMS2(3, 4)},
     HEED_WITH(.steps = 2, .y = true, .s = true)},
    {.what = "four steps of two tensors, sequences that have ended",
     .in = {HEED_DIMS2(2, 17), HEED_DIMS1(17), HEED_DIMS2(3, 17), HEED_DIMS2(2, 17),
            HEED_DIMS2(4, 3), HEED_DIMS2(2, 3)},
     HEED_WITH(.steps = 4, .y = true, .s = true)},
};
HEED_OP(read_steps, "y = sum over i of s_i x_i, s = softmax over i of v tanh(q + k_i)", shape,
        forward, backward, cases, run);

heed_tensor *heed_read_steps(heed_tape *t, heed_tensor *q, heed_tensor *v, heed_tensor *const *keys,
                             heed_tensor *const *values, int n, heed_tensor **weights)
{
    if (weights)
        *weights = NULL;
    if (!heed__usable(t, &heed__op_read_steps, n > 0 && keys && values ? q : NULL))
        return NULL;
    heed_tensor **in = heed_arena_allocate(heed_tape_arena(t), (size_t)(KEYS + 2 * n) * sizeof *in);
    if (!in)
        return heed__wrapper_fail(t, &heed__op_read_steps, HEED_MEMORY,
                                  "out of memory for %d steps", n);
    in[Q] = q;
    in[V] = v;
    memcpy(in + KEYS, keys, (size_t)n * sizeof *in);
    memcpy(in + KEYS + n, values, (size_t)n * sizeof *in);
    heed_opcall *c = heed__apply(t, &heed__op_read_steps, in, KEYS + 2 * n, 0, NULL, 0);
    if (c && weights)
        *weights = c->out[1];
    return heed__first(c);
}
