/* pairs_location.c: scores that look at positions alone (Luong et al. 2015, location-based), e_ij =
 * x_i[j]: a query gives one score for each position, and a sentence uses the first of them, one a
 * key. x (N,H*L) -> flat.  0 where a query does not see a key.  Refuses a segment of more than L
 * keys.
 */
#include "ops/pairs.h"

#include <string.h>

struct job {
    const heed_kernels *k;
    const heed_tensor *x;
    int64_t places; /* L */
    real *e, *dx;
    const real *de;
};

static heed_status shape(heed_opcall *c)
{
    const heed_pairs *p = c->attributes;
    const heed_tensor *x = c->in[0];
    int64_t count;
    heed_status status = heed__pairs_check(c, p, &count);
    if (status || (status = heed__pairs_check_rows(c, "x", x, p->queries, p->heads, "L")))
        return status;
    if (x->cols / p->heads < p->keys->longest)
        return heed__op_shape_fail(c, "x", x, "(N,H*L) with L at least %lld, the longest segment",
                                   (long long)p->keys->longest);
    return heed__out(c, HEED_SHAPE(count));
}

static struct job job_of(const heed_opcall *c)
{
    const heed_pairs *p = c->attributes;
    return (struct job){.k = heed__kernels(),
                        .x = c->in[0],
                        .places = c->in[0]->cols / p->heads,
                        .e = c->out[0]->data};
}

static void scores(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const real *x = heed__row(j->x, r->query) + r->head * j->places + r->first;
    real *e = j->e + r->at;
    (void)thread;
    if (r->seen < r->keys)
        memset(e, 0, (size_t)r->keys * sizeof *e);
    memcpy(e + r->first, x, (size_t)r->seen * sizeof *e);
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__pairs_each(c->attributes, heed__threads(c), 1, scores, &j);
}

/* dx_i[j] = de_ij */
static void grads(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    (void)thread;
    j->k->accumulate(j->dx + r->query * j->x->ld + r->head * j->places + r->first,
                     j->de + r->at + r->first, 1, r->seen);
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.de = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    heed__pairs_each(c->attributes, heed__threads(c), 1, grads, &j);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    heed_pairs p = heed__case_pairs(t, c);
    out[0] = heed_pairs_location(t, in[0], &p);
}

static const heed_opcase cases[] = {
    {"two heads, more places than keys",
     {HEED_DIMS2(4, 10)},
     .i = {2},
     .lengths = {2, 0, 1, 1, -1},
     .more_lengths = {3, 1, 0, 4, -1}},
    {"windows", {HEED_DIMS2(5, 8)}, .i = {2, 1}, .lengths = {3, 2, -1}, .more_lengths = {4, 3, -1}},
};
HEED_OP(pairs_location, "e_ij = x_i[j] for each pair", shape, forward, backward, cases, run);

heed_tensor *heed_pairs_location(heed_tape *t, heed_tensor *x, const heed_pairs *pairs)
{
    return heed__first(heed__apply(t, &heed__op_pairs_location, &x, 1, 0, pairs, sizeof *pairs));
}
