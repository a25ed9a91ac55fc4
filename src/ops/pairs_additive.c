/* pairs_additive.c: the score of Bahdanau et al. (2015), e_ij = v . tanh(q_i + k_j), for each pair
 * of each head; q and k are W s and U h already.  q (N,H*A), k (M,H*A), v (H*A) -> flat.  0 where a
 * query does not see a key.
 *
 * The A numbers of a pair are made again in backward: keeping them would take A times the memory of
 * the scores, and tanh costs no more than reading them. */
#include "ops/pairs.h"

#include "kernel/kernels.h"
#include <string.h>

enum { Q, K, V };
enum { TANH_WORK = 12 }; /* operations a number */

struct job {
    const heed_opcall *c;
    const heed_kernels *k;
    const heed_tensor *q, *keys;
    const real *v;
    int64_t d; /* A */
    real *e, *dq, *dk;
    bool to_v;
    const real *de;
};

static heed_status shape(heed_opcall *c)
{
    const heed_pairs *p = c->attributes;
    const heed_tensor *q = c->in[Q];
    int64_t count;
    heed_status status = heed__pairs_check(c, p, &count);
    if (status || (status = heed__pairs_check_rows(c, "q", q, p->queries, p->heads, "A")))
        return status;
    if (c->in[K]->rows != p->keys->rows || c->in[K]->cols != q->cols)
        return heed__op_shape_fail(c, "k", c->in[K], "(%lld,%lld) as q has",
                                   (long long)p->keys->rows, (long long)q->cols);
    if (c->in[V]->rows != 1 || c->in[V]->cols != q->cols)
        return heed__op_shape_fail(c, "v", c->in[V], "(%lld)", (long long)q->cols);
    if (c->recorded && (status = heed__want_scratch(c, (size_t)q->cols * sizeof(real))))
        return status;
    return heed__out(c, HEED_SHAPE(count));
}

static struct job job_of(const heed_opcall *c)
{
    const heed_pairs *p = c->attributes;
    return (struct job){.c = c,
                        .k = heed__kernels(),
                        .q = c->in[Q],
                        .keys = c->in[K],
                        .v = c->in[V]->data,
                        .d = c->in[Q]->cols / p->heads,
                        .e = c->out[0]->data};
}

static void scores(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const int64_t column = r->head * j->d;
    real *e = j->e + r->at;
    (void)thread;
    if (r->seen < r->keys)
        memset(e, 0, (size_t)r->keys * sizeof *e);
    j->k->additive_scores(e + r->first, heed__row(j->q, r->query) + column,
                          j->keys->data + r->key * j->keys->ld + column, j->keys->ld, j->v + column,
                          r->seen, j->d);
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__pairs_each(c->attributes, heed__threads(c), TANH_WORK * j.d, scores, &j);
}

static void grads(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const int64_t column = r->head * j->d;
    real *dv = j->to_v ? (real *)heed__scratch(j->c, thread) + column : NULL;
    j->k->additive_grads(j->dq ? j->dq + r->query * j->q->ld + column : NULL,
                         j->dk ? j->dk + r->key * j->keys->ld + column : NULL, dv,
                         j->de + r->at + r->first, heed__row(j->q, r->query) + column,
                         j->keys->data + r->key * j->keys->ld + column, j->keys->ld, j->v + column,
                         r->seen, j->d);
}

/* With x_ij = tanh(q_i + k_j):  dv = sum de_ij x_ij,  dq_i and dk_j sum de_ij v (1 - x_ij^2).
 * dv has a slot for each thread. */
static void backward(heed_opcall *c)
{
    const heed_pairs *p = c->attributes;
    const int threads = heed__pairs_threads(c, p, Q, K);
    const int64_t n = c->in[V]->cols;
    struct job j = job_of(c);
    j.de = heed__out_grad(c, 0);
    j.dq = heed__wants(c, Q) ? heed__grad(c, Q) : NULL;
    j.dk = heed__wants(c, K) ? heed__grad(c, K) : NULL;
    j.to_v = heed__wants(c, V);
    for (int i = 0; i < threads; i++)
        memset(heed__scratch(c, i), 0, (size_t)n * sizeof(real));
    heed__pairs_each(p, threads, 2 * TANH_WORK * j.d, grads, &j);
    real *dv = j.to_v ? heed__grad(c, V) : NULL;
    for (int i = 0; dv && i < threads; i++)
        j.k->accumulate(dv, heed__scratch(c, i), 1, n);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    heed_pairs p = heed__case_pairs(t, c);
    out[0] = heed_pairs_additive(t, in[Q], in[K], in[V], &p);
}

static const heed_opcase cases[] = {
    {"two heads, a query without keys",
     {HEED_DIMS2(4, 6), HEED_DIMS2(5, 6), HEED_DIMS1(6)},
     .i = {2},
     .lengths = {2, 0, 1, 1, -1},
     .more_lengths = {3, 1, 0, 1, -1}},
    {"windows",
     {HEED_DIMS2(5, 18), HEED_DIMS2(7, 18), HEED_DIMS1(18)},
     .i = {2, 1},
     .lengths = {3, 2, -1},
     .more_lengths = {4, 3, -1}},
    {"one tensor cut in two ways",
     {HEED_DIMS2(5, 3), HEED_DIMS2(5, 3), HEED_DIMS1(3)},
     .i = {1},
     .lengths = {2, 3, -1},
     .more_lengths = {3, 2, -1}},
};
HEED_OP(pairs_additive, "e_ij = v . tanh(q_i + k_j) for each pair", shape, forward, backward, cases,
        run);

heed_tensor *heed_pairs_additive(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                                 const heed_pairs *pairs)
{
    return heed__first(heed__apply(t, &heed__op_pairs_additive, (heed_tensor *[]){q, k, v}, 3, 0,
                                   pairs, sizeof *pairs));
}
