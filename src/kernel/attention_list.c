/* attention_list.c: see attention_head.h: attention over keys that stand anywhere, pair by pair.
 *
 * A query's keys are a list of rows, shared ones first: its scores are products of one row with
 * listed rows, without gaps, and so nothing is computed but the pairs.  Rows are padded up to whole
 * registers with what weighs nothing. */
#include "kernel/attention_head.h"

#include "kernel/dropout_mask.h"
#include "kernel/head_scores.h"
#include "kernel/isa.h"
#include "kernel/listed_rows.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_HEAD(DECLARE)
HEED_KERNELS_DROPOUT(DECLARE)

/* A query with what it sees. */
typedef struct row {
    int64_t query, n, up; /* n rows, shared ones among them, up to whole registers */
    int32_t *key;         /* of those behind the shared ones */
    const real **k, **v;
    real *scores, *gradients, *mask, *sum; /* sum: (Dk) */
} row;

/* In bytes. */
typedef struct layout {
    size_t gradients, mask, sum, k, v, key, end;
} layout;

static layout lay_out(int64_t s, int64_t shared, int64_t d_k)
{
    const size_t rows = (size_t)round_up(s + shared, 64 / (int64_t)sizeof(real));
    layout l = {.gradients = rows * sizeof(real)};
    l.mask = l.gradients + rows * sizeof(real);
    l.sum = l.mask + rows * sizeof(real);
    l.k = l.sum + (size_t)round_up(d_k, 64 / (int64_t)sizeof(real)) * sizeof(real);
    l.v = l.k + rows * sizeof(real *);
    l.key = l.v + rows * sizeof(real *);
    l.end = l.key + rows * sizeof(int32_t);
    return l;
}

size_t K(list_scratch)(int64_t s, int64_t shared, int64_t d_k)
{
    return lay_out(s, shared, d_k).end;
}

static row row_in(const heed__head *h)
{
    const layout l = lay_out(h->s, h->shared, h->d_k);
    char *at = (char *)h->scratch;
    return (row){.key = (int32_t *)(void *)(at + l.key),
                 .k = (const real **)(void *)(at + l.k),
                 .v = (const real **)(void *)(at + l.v),
                 .scores = h->scratch,
                 .gradients = (real *)(void *)(at + l.gradients),
                 .mask = (real *)(void *)(at + l.mask),
                 .sum = (real *)(void *)(at + l.sum)};
}

static void list_rows(const heed__head *h, row *r, int64_t query)
{
    const int64_t keys = h->list(h->context, h->head, query, r->key);
    r->query = query;
    r->n = h->shared + keys;
    r->up = round_up(r->n, VW);
    for (int64_t e = 0; e < h->shared; e++) {
        r->k[e] = h->shared_k.at + e * h->shared_k.ld;
        r->v[e] = h->shared_v.at + e * h->shared_v.ld;
    }
    for (int64_t e = 0; e < keys; e++) {
        r->k[h->shared + e] = h->k.at + r->key[e] * h->k.ld;
        r->v[h->shared + e] = h->v.at + r->key[e] * h->v.ld;
    }
}

/* to[e] = scale x.row[e] */
static void products(real *to, const real *x, const real *const *rows, int64_t n, int64_t d,
                     real scale)
{
    for (int64_t e = 0; e < n; e += VW) {
        const real *some[LANES]; /* behind the last row, the last again */
        for (int64_t u = 0; u < VW; u++)
            some[u] = rows[least(e + u, n - 1)];
        vstore(to + e, scale * dots(x, some, 0, d));
    }
}

/* Scores with their biases; -inf behind the last. */
static void score(const heed__head *h, const row *r)
{
    real *x = r->scores;
    products(x, h->q.at + r->query * h->q.ld, r->k, r->n, h->d_k, h->scale);
    for (int64_t e = h->shared; h->bias.at && e < r->n; e++)
        x[e] += h->bias.at[r->query * h->bias.ld + r->key[e - h->shared]];
    for (int64_t e = h->shared; h->distance && e < r->n; e++)
        x[e] += h->distance[h->t - 1 - r->query + r->key[e - h->shared]];
    for (int64_t e = r->n; e < r->up; e++)
        x[e] = -INFINITY;
}

/* Dropout's mask, run of keys by run. */
static void mask_row(const heed__head *h, const row *r)
{
    const uint64_t first = h->first + (uint64_t)(r->query * h->s);
    const int64_t keys = r->n - h->shared;
    K(dropout_mask)
    (r->mask, h->rng, h->shared_first + (uint64_t)(r->query * h->shared), h->shared, h->dropout);
    for (int64_t e = 0, n; e < keys; e += n) {
        for (n = 1; e + n < keys && r->key[e + n] == r->key[e] + n;)
            n++;
        K(dropout_mask)
        (r->mask + h->shared + e, h->rng, first + (uint64_t)r->key[e], n, h->dropout);
    }
    for (int64_t e = r->n; e < r->up; e++)
        r->mask[e] = 0;
}

static void apply_mask(const row *r, real *x)
{
    for (int64_t e = 0; e < r->up; e += VW)
        vstore(x + e, vload(x + e) * vload(r->mask + e));
}

/* x goes to the row of the (T,S) matrix `to`, 0 where the query sees nothing. */
static void store_row(const heed__head *h, const row *r, const real *x, real *to)
{
    to += r->query * h->s;
    memset(to, 0, (size_t)h->s * sizeof(real));
    for (int64_t e = h->shared; e < r->n; e++)
        to[r->key[e - h->shared]] = x[e];
}

void K(list_forward)(const heed__head *h)
{
    row r = row_in(h);
    for (int64_t i = 0; i < h->t; i++) {
        real *out = h->out.at + i * h->out.ld;
        list_rows(h, &r, i);
        score(h, &r);
        softmax_part(r.scores, 0, r.up, h->stats ? h->stats + i * h->stats_step : NULL);
        if (h->pairs)
            *h->pairs += r.n;
        if (h->products)
            *h->products += r.n;
        if (h->weights)
            store_row(h, &r, r.scores, h->weights);
        if (h->dropout > 0) {
            mask_row(h, &r);
            apply_mask(&r, r.scores);
        }
        mix_head(out, r.scores, r.v, 0, r.n, h->d_v);
    }
}

/* ---- backward ---- */

/* In the forward pass P = softmax(Z), and D = P * mask met V; so now
 *   dP = dO V^T * mask + dW,  dZ_e = P_e (dP_e - sum_l dP_l P_l)
 * dZ is in `gradients`, D in `scores`. */
static void row_backward(const heed__head *h, const row *r)
{
    real *x = r->scores, *y = r->gradients;
    vreal sum = {0};
    memset(y, 0, (size_t)r->up * sizeof(real));
    if (h->d_out.at)
        products(y, h->d_out.at + r->query * h->d_out.ld, r->v, r->n, h->d_v, 1);
    if (h->dropout > 0) {
        mask_row(h, r);
        apply_mask(r, y);
    }
    for (int64_t e = h->shared; h->d_weights && e < r->n; e++)
        y[e] += h->d_weights[r->query * h->s + r->key[e - h->shared]];
    for (int64_t e = 0; e < r->up; e += VW)
        sum += vload(x + e) * vload(y + e);
    const vreal total = vset(vsum(sum));
    for (int64_t e = 0; e < r->up; e += VW)
        vstore(y + e, vload(x + e) * (vload(y + e) - total));
    if (h->dropout > 0)
        apply_mask(r, x);
    if (h->d_scores)
        store_row(h, r, y, h->d_scores);
    for (int64_t e = h->shared; h->d_distance && e < r->n; e++)
        h->d_distance[h->t - 1 - r->query + r->key[e - h->shared]] += y[e];
}

/* to += a x, n long */
VINLINE void add_row(real *to, const real *x, real a, int64_t n)
{
    const vreal by = vset(a);
    for (int64_t i = 0; i < n; i += VW)
        vstore_at(to + i, vload_at(to, i, n) + by * vload_at(x, i, n), 0, n - i);
}

/* Row e of the gradients += a[e] x, e below `shared` in those of shared rows. */
static void add_rows(const heed__head *h, const row *r, heed__matrix shared, heed__matrix keys,
                     const real *a, const real *x, int64_t d, real scale)
{
    for (int64_t e = 0; shared.at && e < h->shared; e++)
        add_row(shared.at + e * shared.ld, x, scale * a[e], d);
    for (int64_t e = h->shared; keys.at && e < r->n; e++)
        add_row(keys.at + r->key[e - h->shared] * keys.ld, x, scale * a[e], d);
}

/* dQ = scale dZ K;  dK = scale dZ^T Q;  dV = D^T dO. */
void K(list_backward)(const heed__head *h)
{
    row r = row_in(h);
    clear_rows(h->d_k_rows, h->s, h->d_k, h->beta_k);
    clear_rows(h->d_v_rows, h->s, h->d_v, h->beta_v);
    clear_rows(h->d_q, h->t, h->d_k, h->beta_q);
    for (int64_t i = 0; i < h->t; i++) {
        list_rows(h, &r, i);
        score(h, &r);
        softmax_part_again(r.scores, 0, r.up, h->stats + i * h->stats_step);
        row_backward(h, &r);
        if (h->d_q.at) {
            mix_head(r.sum, r.gradients, r.k, 0, r.n, h->d_k);
            add_row(h->d_q.at + i * h->d_q.ld, r.sum, h->scale, h->d_k);
        }
        add_rows(h, &r, h->d_shared_k, h->d_k_rows, r.gradients, h->q.at + i * h->q.ld, h->d_k,
                 h->scale);
        if (h->d_out.at)
            add_rows(h, &r, h->d_shared_v, h->d_v_rows, r.scores, h->d_out.at + i * h->d_out.ld,
                     h->d_v, 1);
    }
}
