/* pairs_dot.c: scaled products of queries and keys, e_ij = scale q_i . k_j, for each pair of each
 * head.  q (N,H*Dk), k (M,H*Dk) -> flat.  0 where a query does not see a key.
 *
 * For the scores themselves, or windows: attention over all keys is one operator,
 * heed_attention, and faster. */
#include "ops/pairs.h"

#include <math.h>
#include <string.h>

enum { Q, K };

struct attributes {
    heed_pairs pairs;
    double scale;
};

struct job {
    const heed_kernels *k;
    const heed_tensor *q, *keys;
    int64_t d; /* Dk */
    real scale;
    real *e, *dq, *dk;
    const real *de;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_pairs *p = &a->pairs;
    int64_t count;
    heed_status status = heed__pairs_check(c, p, &count);
    if (status || (status = heed__pairs_check_rows(c, "q", c->in[Q], p->queries, p->heads, "Dk")))
        return status;
    if (!isfinite(a->scale))
        return heed__op_fail(c, HEED_ARGUMENT, "scale is %g, expected a finite number", a->scale);
    if (c->in[K]->rows != p->keys->rows || c->in[K]->cols != c->in[Q]->cols)
        return heed__op_shape_fail(c, "k", c->in[K], "(%lld,%lld) as q has",
                                   (long long)p->keys->rows, (long long)c->in[Q]->cols);
    return heed__out(c, HEED_SHAPE(count));
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    return (struct job){.k = heed__kernels(),
                        .q = c->in[Q],
                        .keys = c->in[K],
                        .d = c->in[Q]->cols / a->pairs.heads,
                        .scale = (real)a->scale,
                        .e = c->out[0]->data};
}

static void scores(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const real *q = heed__row(j->q, r->query) + r->head * j->d;
    real *e = j->e + r->at;
    (void)thread;
    if (r->seen < r->keys)
        memset(e, 0, (size_t)r->keys * sizeof *e);
    for (int64_t i = 0; i < r->seen; i++)
        e[r->first + i] =
            j->scale * j->k->row_dot(q, heed__row(j->keys, r->key + i) + r->head * j->d, j->d);
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct job j = job_of(c);
    heed__pairs_each(&a->pairs, heed__threads(c), j.d, scores, &j);
}

/* dq_i = scale sum_j de_ij k_j,  dk_j = scale sum_i de_ij q_i */
static void grads(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const int64_t column = r->head * j->d;
    const real *de = j->de + r->at + r->first;
    (void)thread;
    for (int64_t i = 0; i < r->seen; i++) {
        const int64_t key = r->key + i;
        if (j->dq)
            j->k->accumulate(j->dq + r->query * j->q->ld + column, heed__row(j->keys, key) + column,
                             j->scale * de[i], j->d);
        if (j->dk)
            j->k->accumulate(j->dk + key * j->keys->ld + column, heed__row(j->q, r->query) + column,
                             j->scale * de[i], j->d);
    }
}

static void backward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct job j = job_of(c);
    j.de = heed__out_grad(c, 0);
    j.dq = heed__wants(c, Q) ? heed__grad(c, Q) : NULL;
    j.dk = heed__wants(c, K) ? heed__grad(c, K) : NULL;
    heed__pairs_each(&a->pairs, heed__pairs_threads(c, &a->pairs, Q, K), 2 * j.d, grads, &j);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    heed_pairs p = heed__case_pairs(t, c);
    out[0] = heed_pairs_dot(t, in[Q], in[K], c->r[0], &p);
}

static const heed_opcase cases[] = {
    {"two heads, a query without keys",
     {HEED_DIMS2(4, 6), HEED_DIMS2(5, 6)},
     .i = {2},
     .r = {0.5},
     .lengths = {2, 0, 1, 1, -1},
     .more_lengths = {3, 1, 0, 1, -1}},
    {"windows",
     {HEED_DIMS2(5, 4), HEED_DIMS2(7, 4)},
     .i = {2, 1},
     .r = {1},
     .lengths = {3, 2, -1},
     .more_lengths = {4, 3, -1}},
    {"one tensor cut in two ways",
     {HEED_DIMS2(5, 3), HEED_DIMS2(5, 3)},
     .i = {1},
     .r = {1},
     .lengths = {2, 3, -1},
     .more_lengths = {3, 2, -1}},
};
HEED_OP(pairs_dot, "e_ij = scale q_i . k_j for each pair", shape, forward, backward, cases, run);

heed_tensor *heed_pairs_dot(heed_tape *t, heed_tensor *q, heed_tensor *k, double scale,
                            const heed_pairs *pairs)
{
    if (!t)
        return NULL;
    return heed__first(heed__apply(t, &heed__op_pairs_dot, (heed_tensor *[]){q, k}, 2, 0,
                                   &(struct attributes){*pairs, scale}, sizeof(struct attributes)));
}
