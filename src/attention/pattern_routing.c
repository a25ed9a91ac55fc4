/* pattern_routing.c: k-means routing (Roy et al. 2021).
 *
 * Queries, keys and centroids are centred and made as long as 1 (layer norm without gain and bias,
 * on the unit sphere), for the choice alone.  Each of C centroids of a head takes the n/C queries
 * and the n/C keys that have the largest product with it, so that clusters are equally large: a
 * token may be in several, or in none.  A query sees the keys of its clusters.
 *
 * Centroids are state without gradient.  While the tape trains, mu <- L mu + (1-L)/2 (sum q + sum
 * k), the sums over what is nearest to mu, on the average of the update's sequences; a centroid
 * that nothing is nearest to stays.  Only its direction matters.  Who is in a cluster depends on
 * the whole sequence, in causal layers, too: what is seen is from the past alone, by place in the
 * sequence. */
#include "attention/attend.h"

#include "base/min_max.h"
#include "kernel/kernels.h"
#include "kernel/unit_row.h"
#include "nn/params.h"
#include "ops/largest.h"
#include "tensor/tape.h"
#include <math.h>
#include <string.h>

#define KEEP 0.999 /* L */
#define EPS ((heed_real)1e-12)

/* How many of n rows a cluster takes: all n where there is one cluster. */
static int64_t share(const heed_term *term, int64_t n)
{
    return (n + term->number[0] - 1) / term->number[0];
}

/* What is chosen: keys of each cluster, the clusters of each query one behind the other, and the
 * nearest centroid of each query and key. */
struct chosen {
    int32_t *key;             /* (C,share of s) */
    int32_t *first, *cluster; /* (t+1), (C * share of t) */
    int32_t *near_q, *near_k; /* (t), (s) */
};

static struct chosen place(const heed_term *term, int64_t t, int64_t s, int32_t *at)
{
    struct chosen c = {.key = at};
    c.first = c.key + term->number[0] * share(term, s);
    c.cluster = c.first + t + 1;
    c.near_q = c.cluster + term->number[0] * share(term, t);
    c.near_k = c.near_q + t;
    return c;
}

static size_t size(const heed_term *term, int64_t t, int64_t s)
{
    const int64_t members = term->number[0] * (share(term, s) + share(term, t));
    return (size_t)(members + 2 * t + s + 1) * sizeof(int32_t);
}

/* Rows, their products with the centroids (C,rows), and the members of all clusters. */
static size_t scratch(const heed_term *term, int64_t t, int64_t s, int64_t d)
{
    const int64_t rows = heed__max(t, s), c = term->number[0];
    return (size_t)(rows * (d + c)) * sizeof(heed_real) +
           (size_t)(c * share(term, t)) * sizeof(int32_t);
}

/* Centred, of length 1. */
static void route(heed_real *to, const heed_real *x, int64_t d)
{
    heed_real mean = 0;
    for (int64_t i = 0; i < d; i++)
        mean += x[i];
    for (int64_t i = 0; i < d; i++)
        to[i] = x[i] - mean / (heed_real)d;
    heed__make_unit(to, to, EPS, d);
}

static void build(heed_attend_layer *l, const heed_term *term, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    const int64_t d = o->query_d / o->heads;
    l->centroids = heed__state_drawn(s, "centroids", HEED_SHAPE(o->heads * term->number[0], d),
                                     (heed_init){HEED_INIT_NORMAL, 1 / sqrt((double)d)});
}

/* Common: the centroids as rows are compared with them. */
static void *prepare(heed_tape *t, const heed_attend_layer *l, const heed_term *term)
{
    const heed_tensor *mu = l->centroids;
    heed_real *to =
        heed_arena_allocate(heed_tape_arena(t), (size_t)(mu->rows * mu->cols) * sizeof(heed_real));
    (void)term;
    for (int64_t r = 0; to && r < mu->rows; r++)
        route(to + r * mu->cols, mu->data + r * mu->ld, mu->cols);
    return to;
}

/* Products of n rows with the centroids, and for each row the nearest. */
static void compare(const heed__content_head *h, const heed_real *x, int64_t ld, int64_t n,
                    heed_real *rows, heed_real *products, int32_t *near)
{
    const int64_t c = h->term->number[0];
    const heed_real *mu = (const heed_real *)h->common + h->head * c * h->d;
    for (int64_t i = 0; i < n; i++)
        route(rows + i * h->d, x + i * ld, h->d);
    for (int64_t m = 0; m < c; m += HEED__FEW_ROWS)
        heed__few_products(products + m * n, n, mu + m * h->d, h->d, rows, h->d,
                           heed__min(HEED__FEW_ROWS, c - m), n, h->d);
    for (int64_t i = 0; i < n; i++) {
        near[i] = 0;
        for (int64_t m = 1; m < c; m++)
            near[i] = products[m * n + i] > products[near[i] * n + i] ? (int32_t)m : near[i];
    }
}

static void choose(const heed__content_head *h, void *chosen, void *scratch_of)
{
    const int64_t c = h->term->number[0], rows = heed__max(h->t, h->s);
    const int64_t queries = share(h->term, h->t), keys = share(h->term, h->s);
    struct chosen out = place(h->term, h->t, h->s, chosen);
    heed_real *row = scratch_of, *products = row + rows * h->d;
    int32_t *member = (int32_t *)(void *)(products + rows * c);
    compare(h, h->k, h->k_ld, h->s, row, products, out.near_k);
    for (int64_t m = 0; keys && m < c; m++)
        heed__largest(products + m * h->s, h->s, keys, out.key + m * keys);
    compare(h, h->q, h->q_ld, h->t, row, products, out.near_q);
    memset(out.first, 0, (size_t)(h->t + 1) * sizeof *out.first);
    for (int64_t m = 0; queries && m < c; m++) {
        heed__largest(products + m * h->t, h->t, queries, member + m * queries);
        for (int64_t x = 0; x < queries; x++)
            out.first[member[m * queries + x] + 1]++;
    }
    for (int64_t i = 0; i < h->t; i++)
        out.first[i + 1] += out.first[i];
    for (int64_t x = 0; x < c * queries; x++) /* moves the beginnings up by one query, ... */
        out.cluster[out.first[member[x]]++] = (int32_t)(x / queries);
    for (int64_t i = h->t; i > 0; i--) /* ... and back */
        out.first[i] = out.first[i - 1];
    out.first[0] = 0;
}

static void mark(const heed__content_head *h, const void *chosen, int64_t i, uint64_t *bits)
{
    const struct chosen c = place(h->term, h->t, h->s, (int32_t *)chosen);
    const int64_t keys = share(h->term, h->s);
    for (int32_t x = c.first[i]; x < c.first[i + 1]; x++)
        for (int64_t e = 0; e < keys; e++)
            heed__mark(bits, c.key[c.cluster[x] * keys + e]);
}

/* ---- centroids move ---- */

/* What is nearest to each centroid is added to its sum, and counted. */
static void add_rows(const heed__content_head *h, const heed_real *x, int64_t ld, int64_t n,
                     const int32_t *near, heed_real *row, double *sum, int64_t *count)
{
    for (int64_t i = 0; i < n; i++) {
        route(row, x + i * ld, h->d);
        count[near[i]]++;
        for (int64_t k = 0; k < h->d; k++)
            sum[near[i] * h->d + k] += (double)row[k] / 2;
    }
}

static void learn(heed_tape *t, const heed__content_head *heads, int count, void *const *chosen)
{
    const int64_t d = heads->d, c = heads->term->number[0];
    heed_tensor *mu = heads->layer->centroids;
    heed_arena *arena = heed_tape_arena(t);
    double *sum = heed_arena_allocate(arena, (size_t)(count * c * d) * sizeof *sum);
    int64_t *members = heed_arena_allocate(arena, (size_t)(count * c) * sizeof *members);
    heed_real *row = heed_arena_allocate(arena, (size_t)d * sizeof *row);
    if (!sum || !members || !row) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for the sums of %lld centroids",
                       (long long)(count * c));
        return;
    }
    memset(sum, 0, (size_t)(count * c * d) * sizeof *sum);
    memset(members, 0, (size_t)(count * c) * sizeof *members);
    for (int n = 0; n < count; n++) {
        const heed__content_head *h = &heads[n];
        const struct chosen x = place(h->term, h->t, h->s, chosen[n]);
        double *to = sum + n * c * d;
        add_rows(h, h->q, h->q_ld, h->t, x.near_q, row, to, members + n * c);
        add_rows(h, h->k, h->k_ld, h->s, x.near_k, row, to, members + n * c);
    }
    for (int64_t r = 0; r < count * c; r++)
        for (int64_t k = 0; members[r] == 0 && k < d; k++)
            sum[r * d + k] = (double)mu->data[r * mu->ld + k];
    heed_state_add(t, mu, sum, 1, KEEP);
}

const heed__slot_row heed__pattern_routing = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "routing",
             .form = "routing:C",
             .formula = "each of C moving centroids takes n/C queries and n/C keys; query i sees "
                        "the keys of its clusters, or itself",
             .paper = "Roy et al. 2021",
             .cost = "C products and n/C pairs a query",
             .can = HEED_CAN_CAUSAL | HEED_CAN_WEIGHTS | HEED_CAN_HEADS | HEED_CAN_FUSED |
                    HEED_CAN_STACKS | HEED_CAN_UNION,
             .needs = 1,
             .takes = 1,
             .number = {{1, 65536, 0, NULL}}},
    .content = &(const heed__content){.build = build,
                                      .prepare = prepare,
                                      .size = size,
                                      .scratch = scratch,
                                      .choose = choose,
                                      .mark = mark,
                                      .learn = learn},
};
