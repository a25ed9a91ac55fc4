/* pairs_mix.c: values weighed by what each query sees of them, y_i = sum_j w_ij v_j, head by head.
 * w flat, v (M,H*Dv) -> (N,H*Dv).  A query that sees no key gives zeros. */
#include "ops/pairs.h"

#include <string.h>

enum { W, V };

struct job {
    const heed_kernels *k;
    const real *w;
    const heed_tensor *v;
    int64_t d, cols; /* Dv, H*Dv */
    real *y, *dw, *dv;
    const real *dy;
};

static heed_status shape(heed_opcall *c)
{
    const heed_pairs *p = c->attributes;
    int64_t count;
    heed_status status = heed__pairs_check(c, p, &count);
    if (status || (status = heed__pairs_check_flat(c, "w", c->in[W], count)) ||
        (status = heed__pairs_check_rows(c, "v", c->in[V], p->keys, p->heads, "Dv")))
        return status;
    return heed__out(c, HEED_SHAPE(p->queries->rows, c->in[V]->cols));
}

static struct job job_of(const heed_opcall *c)
{
    const heed_pairs *p = c->attributes;
    return (struct job){.k = heed__kernels(),
                        .w = c->in[W]->data,
                        .v = c->in[V],
                        .d = c->in[V]->cols / p->heads,
                        .cols = c->in[V]->cols,
                        .y = c->out[0]->data};
}

static void mixtures(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    real *y = j->y + r->query * j->cols + r->head * j->d;
    const real *w = j->w + r->at + r->first;
    (void)thread;
    memset(y, 0, (size_t)j->d * sizeof *y);
    for (int64_t i = 0; i < r->seen; i++)
        j->k->accumulate(y, heed__row(j->v, r->key + i) + r->head * j->d, w[i], j->d);
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__pairs_each(c->attributes, heed__threads(c), j.d, mixtures, &j);
}

/* dw_ij = dy_i . v_j,  dv_j = sum_i w_ij dy_i */
static void grads(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const int64_t column = r->head * j->d, from = r->at + r->first;
    const real *dy = j->dy + r->query * j->cols + column;
    (void)thread;
    for (int64_t i = 0; i < r->seen; i++) {
        if (j->dw)
            j->dw[from + i] += j->k->row_dot(dy, heed__row(j->v, r->key + i) + column, j->d);
        if (j->dv)
            j->k->accumulate(j->dv + (r->key + i) * j->v->ld + column, dy, j->w[from + i], j->d);
    }
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.dy = heed__out_grad(c, 0);
    j.dw = heed__wants(c, W) ? heed__grad(c, W) : NULL;
    j.dv = heed__wants(c, V) ? heed__grad(c, V) : NULL;
    heed__pairs_each(c->attributes, heed__threads(c), 2 * j.d, grads, &j);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    heed_pairs p = heed__case_pairs(t, c);
    out[0] = heed_pairs_mix(t, in[W], in[V], &p);
}

static const heed_opcase cases[] = {
    {"two heads, a query without keys",
     {HEED_DIMS1(14), HEED_DIMS2(5, 6)},
     .i = {2},
     .lengths = {2, 0, 1, 1, -1},
     .more_lengths = {3, 1, 0, 1, -1}},
    {"windows",
     {HEED_DIMS1(36), HEED_DIMS2(7, 18)},
     .i = {2, 1},
     .lengths = {3, 2, -1},
     .more_lengths = {4, 3, -1}},
};
HEED_OP(pairs_mix, "y_i = sum over j of w_ij v_j", shape, forward, backward, cases, run);

heed_tensor *heed_pairs_mix(heed_tape *t, heed_tensor *weights, heed_tensor *values,
                            const heed_pairs *pairs)
{
    return heed__first(heed__apply(t, &heed__op_pairs_mix, (heed_tensor *[]){weights, values}, 2, 0,
                                   pairs, sizeof *pairs));
}
