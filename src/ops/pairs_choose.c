/* pairs_choose.c: hard attention: each query takes one of the keys that it sees, drawn by their
 * log-probabilities, or the likeliest.  flat -> weights that are 1 at the chosen key and 0
 * elsewhere, flat; the chosen keys' log-probabilities (N,H); and the keys' places (N,H).
 *
 * The choice is a constant: a gradient flows to the log-probabilities alone.  A query that sees no
 * key has zeros, and -1 for a place. */
#include "ops/pairs.h"
#include "ops/proportions.h"

#include <string.h>

struct attributes {
    heed_pairs pairs;
    bool draws;
};

struct job {
    const heed_opcall *c;
    const real *log_p;
    heed_rng rng;
    bool draws;
    int heads;
    real *weights, *chosen_log_p, *d_log_p;
    int32_t *chosen; /* (N,H) */
    const real *d_chosen;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    int64_t count;
    heed_status status = heed__pairs_check(c, &a->pairs, &count);
    if (status || (status = heed__pairs_check_flat(c, "log_p", c->in[0], count)))
        return status;
    const int64_t rows = a->pairs.queries->rows, heads = a->pairs.heads;
    if ((status = heed__out(c, HEED_SHAPE(count))) ||
        (status = heed__out(c, HEED_SHAPE(rows, heads))) ||
        (status = heed__save(c, (size_t)(rows * heads) * sizeof(int32_t))))
        return status;
    return heed__want_scratch(c, (size_t)a->pairs.keys->longest * sizeof(real));
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    return (struct job){.c = c,
                        .log_p = c->in[0]->data,
                        .rng = heed__rng(c),
                        .draws = a->draws,
                        .heads = a->pairs.heads,
                        .weights = c->out[0]->data,
                        .chosen_log_p = c->out[1]->data,
                        .chosen = c->saved};
}

static void choose(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const real *log_p = j->log_p + r->at + r->first;
    const int64_t which = r->query * j->heads + r->head;
    int32_t place = 0;
    real sure; /* NaN if any of log_p is */
    memset(j->weights + r->at, 0, (size_t)r->keys * sizeof(real));
    j->chosen[which] = -1;
    j->chosen_log_p[which] = 0;
    if (r->seen == 0)
        return;
    if (j->draws) {
        real *p = heed__scratch(j->c, thread);
        heed__proportions(p, log_p, r->seen);
        place = heed__draw(p, r->seen, heed_rng_uniform(&j->rng, (uint64_t)which));
        sure = p[place];
    } else {
        sure = heed__kernels()->row_max(log_p, r->seen, &place);
    }
    j->chosen[which] = (int32_t)r->first + place;
    j->chosen_log_p[which] = log_p[place];
    j->weights[r->at + r->first + place] = sure == sure ? 1 : sure;
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct job j = job_of(c);
    heed__pairs_each(&a->pairs, heed__threads(c), 12, choose, &j);
}

/* dlog_p = dy at the chosen key */
static void grads(void *context, const heed__pairs_row *r, int thread)
{
    const struct job *j = context;
    const int64_t which = r->query * j->heads + r->head;
    (void)thread;
    if (j->chosen[which] >= 0)
        j->d_log_p[r->at + j->chosen[which]] += j->d_chosen[which];
}

static void backward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    struct job j = job_of(c);
    j.d_chosen = heed__out_grad(c, 1);
    if (!j.d_chosen)
        return;
    j.d_log_p = heed__grad(c, 0);
    heed__pairs_each(&a->pairs, heed__threads(c), 1, grads, &j);
}

/* i[2]: draw. */
static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    heed_pairs p = heed__case_pairs(t, c);
    heed_pairs_choose(t, in[0], c->i[2] != 0, &p, &out[0], NULL);
}

static const heed_opcase cases[] = {
    {"drawn, a query without keys",
     {HEED_DIMS1(14)},
     .i = {2, 0, 1},
     .lengths = {2, 0, 1, 1, -1},
     .more_lengths = {3, 1, 0, 1, -1}},
    {"the likeliest of windows",
     {HEED_DIMS1(36)},
     .domain = HEED_SPREAD,
     .i = {2, 1},
     .lengths = {3, 2, -1},
     .more_lengths = {4, 3, -1}},
};
HEED_OP(pairs_choose, "w_ij = 1 at the key j that query i draws, or the likeliest; else 0", shape,
        forward, backward, cases, run);

heed_tensor *heed_pairs_choose(heed_tape *t, heed_tensor *log_p, bool draw, const heed_pairs *pairs,
                               heed_tensor **chosen_log_p, const int32_t **chosen)
{
    if (!t)
        return NULL;
    heed_opcall *c = heed__apply(t, &heed__op_pairs_choose, &log_p, 1, 0,
                                 &(struct attributes){*pairs, draw}, sizeof(struct attributes));
    if (chosen_log_p)
        *chosen_log_p = c ? c->out[1] : NULL;
    if (chosen)
        *chosen = c ? c->saved : NULL;
    return heed__first(c);
}
