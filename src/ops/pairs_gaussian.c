/* pairs_gaussian.c: how near each key is to where its query looks, g_ij = exp(-(j - p_i)^2 / 2 s^2)
 * with j the key's place in its segment (Luong et al. 2015, equation 10).  p (N,H) -> flat.  0
 * where a query does not see a key.  p is a real number: its gradient flows through g alone. */
#include "ops/pairs.h"

#include <string.h>

struct attributes {
    heed_pairs pairs;
    double deviation;
};

struct job {
    const heed_kernels *k;
    const heed_tensor *p;
    double variance;
    real *g, *dp;
    const real *dg;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *p = c->in[0];
    int64_t count;
    heed_status status = heed__pairs_check(c, &a->pairs, &count);
    if (status)
        return status;
    if (!(a->deviation > 0))
        return heed__op_fail(c, HEED_ARGUMENT, "the deviation is %g, expected more than 0",
                             a->deviation);
    if (p->rows != a->pairs.queries->rows || p->cols != a->pairs.heads)
        return heed__op_shape_fail(c, "p", p, "(%lld,%d)", (long long)a->pairs.queries->rows,
                                   a->pairs.heads);
    return heed__out(c, HEED_SHAPE(count));
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    return (struct job){.k = heed__kernels(),
                        .p = c->in[0],
                        .variance = a->deviation * a->deviation,
                        .g = c->out[0]->data};
}

static void gates(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const double p = (double)heed__row(j->p, r->query)[r->head];
    real *g = j->g + r->at;
    (void)thread;
    if (r->seen < r->keys)
        memset(g, 0, (size_t)r->keys * sizeof *g);
    for (int64_t i = r->first; i < r->first + r->seen; i++)
        g[i] = (real)(-((double)i - p) * ((double)i - p) / (2 * j->variance));
    j->k->unary(HEED__UNARY_EXP, g + r->first, g + r->first, r->seen);
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct job j = job_of(c);
    heed__pairs_each(&a->pairs, heed__threads(c), 10, gates, &j);
}

/* dp_i = sum_j dg_ij g_ij (j - p_i) / s^2 */
static void grads(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const double p = (double)heed__row(j->p, r->query)[r->head];
    double sum = 0;
    (void)thread;
    for (int64_t i = r->first; i < r->first + r->seen; i++)
        sum += (double)j->dg[r->at + i] * (double)j->g[r->at + i] * ((double)i - p);
    j->dp[r->query * j->p->ld + r->head] += (real)(sum / j->variance);
}

static void backward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct job j = job_of(c);
    j.dg = heed__out_grad(c, 0);
    j.dp = heed__grad(c, 0);
    heed__pairs_each(&a->pairs, heed__threads(c), 4, grads, &j);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    heed_pairs p = heed__case_pairs(t, c);
    out[0] = heed_pairs_gaussian(t, in[0], c->r[0], &p);
}

static const heed_opcase cases[] = {
    {"two heads, a query without keys",
     {HEED_DIMS2(4, 2)},
     .i = {2},
     .r = {1.5},
     .lengths = {2, 0, 1, 1, -1},
     .more_lengths = {3, 1, 0, 1, -1}},
    {"windows",
     {HEED_DIMS2(5, 2)},
     .i = {2, 1},
     .r = {2},
     .lengths = {3, 2, -1},
     .more_lengths = {4, 3, -1}},
};
HEED_OP(pairs_gaussian, "g_ij = e^(-(j - p_i)^2 / 2 s^2) for each pair", shape, forward, backward,
        cases, run);

heed_tensor *heed_pairs_gaussian(heed_tape *t, heed_tensor *p, double deviation,
                                 const heed_pairs *pairs)
{
    if (!t)
        return NULL;
    return heed__first(heed__apply(t, &heed__op_pairs_gaussian, &p, 1, 0,
                                   &(struct attributes){*pairs, deviation},
                                   sizeof(struct attributes)));
}
