/* pairs_softmax.c: each query's scores become weights over the keys that it sees, w_ij = exp(e_ij)
 * / sum over j; and, optionally, log w_ij.  flat -> flat (and flat).
 *
 * Elsewhere the weights are 0 and their logarithms -inf.  A query that sees nothing, or nothing but
 * -inf, has zeros and no gradient. */
#include "ops/pairs.h"

#include <math.h>
#include <string.h>

struct attributes {
    heed_pairs pairs;
    bool logs;
};

struct job {
    const heed_kernels *k;
    const real *e;
    real *w, *logs, *de;
    const real *dw, *dlogs;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    int64_t count;
    heed_status status = heed__pairs_check(c, &a->pairs, &count);
    if (status || (status = heed__pairs_check_flat(c, "e", c->in[0], count)) ||
        (status = heed__out(c, HEED_SHAPE(count))))
        return status;
    return a->logs ? heed__out(c, HEED_SHAPE(count)) : HEED_OK;
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    return (struct job){.k = heed__kernels(),
                        .e = c->in[0]->data,
                        .w = c->out[0]->data,
                        .logs = a->logs ? c->out[1]->data : NULL};
}

static void weights(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const int64_t from = r->at + r->first;
    (void)thread;
    if (r->seen < r->keys)
        memset(j->w + r->at, 0, (size_t)r->keys * sizeof(real));
    j->k->softmax_rows(j->w + from, j->e + from, r->keys, 1, r->seen);
    if (!j->logs)
        return;
    for (int64_t i = 0; i < r->keys; i++)
        j->logs[r->at + i] = -INFINITY;
    j->k->log_softmax_rows(j->logs + from, j->e + from, r->keys, 1, r->seen);
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct job j = job_of(c);
    heed__pairs_each(&a->pairs, heed__threads(c), a->logs ? 20 : 10, weights, &j);
}

/* de_i = w (dw - sum dw w) + dlog w - w sum dlog w */
static void grads(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const int64_t from = r->at + r->first;
    (void)thread;
    if (j->dw)
        j->k->softmax_backward(j->de + from, r->keys, j->dw + from, j->w + from, 1, r->seen, false);
    if (j->dlogs)
        j->k->log_softmax_backward(j->de + from, r->keys, j->dlogs + from, j->logs + from, 1,
                                   r->seen, false);
}

static void backward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct job j = job_of(c);
    j.dw = heed__out_grad(c, 0);
    j.dlogs = a->logs ? heed__out_grad(c, 1) : NULL;
    j.de = heed__grad(c, 0);
    heed__pairs_each(&a->pairs, heed__threads(c), 10, grads, &j);
}

/* i[2]: 0 the weights, 1 the logarithms, 2 both.  Where there are windows, only logarithms inside
 * of the second query's are looked at: the others are infinite. */
static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    heed_pairs p = heed__case_pairs(t, c);
    heed_tensor *logs = NULL, *w = heed_pairs_softmax(t, in[0], &p, c->i[2] ? &logs : NULL);
    if (c->i[1] && logs)
        logs =
            heed_slice_cols(t, logs, p.keys->offset[1] + p.begin[1], p.keys->offset[1] + p.end[1]);
    out[0] = c->i[2] == 1 ? logs : w;
    out[1] = c->i[2] == 2 ? logs : NULL;
}

static const heed_opcase cases[] = {
    {"two heads, a query without keys",
     {HEED_DIMS1(14)},
     .i = {2},
     .lengths = {2, 0, 1, 1, -1},
     .more_lengths = {3, 1, 0, 1, -1}},
    {"windows", {HEED_DIMS1(36)}, .i = {2, 1}, .lengths = {3, 2, -1}, .more_lengths = {4, 3, -1}},
    {"logarithms",
     {HEED_DIMS1(9)},
     .i = {1, 0, 1},
     .lengths = {2, 1, -1},
     .more_lengths = {3, 3, -1}},
    {"logarithms of a window",
     {HEED_DIMS1(9)},
     .i = {1, 1, 1},
     .lengths = {1, 1, -1},
     .more_lengths = {4, 5, -1}},
    {"both", {HEED_DIMS1(9)}, .i = {1, 0, 2}, .lengths = {2, 1, -1}, .more_lengths = {3, 3, -1}},
};
HEED_OP(pairs_softmax, "w_ij = e^e_ij / sum of e^e_ij over the keys that query i sees", shape,
        forward, backward, cases, run);

heed_tensor *heed_pairs_softmax(heed_tape *t, heed_tensor *scores, const heed_pairs *pairs,
                                heed_tensor **logs)
{
    if (!t)
        return NULL;
    heed_opcall *c =
        heed__apply(t, &heed__op_pairs_softmax, &scores, 1, 0,
                    &(struct attributes){*pairs, logs != NULL}, sizeof(struct attributes));
    if (logs)
        *logs = c ? c->out[1] : NULL;
    return heed__first(c);
}
