/* pattern_top_k.c: the K keys with the largest products q.k: maximum inner product search.
 *
 * Exact: every product is made, and nothing but those of the K in backward.  Approximate: keys are
 * filed under landmarks, and a query looks through the files that suit it best.  Keys 0, 1, 4, 9,
 * ... are the landmarks, so there are sqrt(n) of them for n keys, however many come; a key is filed
 * under the landmark up to itself whose direction it has the largest product with; a query opens
 * files in the order of its products with those directions until it has seen OPENED * K keys, and
 * keeps the best K of them.  That is n sqrt(n) products.  Both are causal to the letter: what a
 * query sees follows from keys up to its own. */
#include "attention/attend.h"

#include "base/min_max.h"
#include "kernel/kernels.h"
#include "kernel/unit_row.h"
#include "ops/largest.h"
#include <math.h>
#include <string.h>

enum { EXACT, APPROXIMATE }; /* number[1]: approximate is the first word */
static const char *const words[] = {"approximate", NULL};
#define OPENED 8

/* Chosen: K keys of each query, -1 behind the last. */
static size_t size(const heed_term *term, int64_t t, int64_t s)
{
    return (size_t)(t * heed__min(term->number[0], s)) * sizeof(int32_t);
}

static void keep(const heed__content_head *h, int32_t *chosen, int64_t i, const int32_t *key,
                 int64_t n)
{
    const int64_t k = heed__min(h->term->number[0], h->s);
    for (int64_t x = 0; x < k; x++)
        chosen[i * k + x] = x < n ? key[x] : -1;
}

static int64_t limit_of(const heed__content_head *h, int64_t i)
{
    return h->causal ? heed__min(i + 1, h->s) : h->s;
}

static void choose_exact(const heed__content_head *h, int32_t *chosen, heed_real *products,
                         int32_t *heap)
{
    for (int64_t i0 = 0; i0 < h->t; i0 += HEED__FEW_ROWS) {
        const int64_t n = heed__min(HEED__FEW_ROWS, h->t - i0);
        heed__few_products(products, h->s, h->q + i0 * h->q_ld, h->q_ld, h->k, h->k_ld, n,
                           limit_of(h, i0 + n - 1), h->d);
        for (int64_t i = 0; i < n; i++) {
            const int64_t limit = limit_of(h, i0 + i), k = heed__min(h->term->number[0], limit);
            if (k)
                heed__largest(products + i * h->s, limit, k, heap);
            keep(h, chosen, i0 + i, heap, k);
        }
    }
}

/* ---- approximate ---- */

/* 0, 1, 4, ...: how many landmarks are among the first n keys. */
static int64_t landmarks(int64_t n)
{
    int64_t count = (int64_t)sqrt((double)n);
    while (count * count < n)
        count++;
    while (count > 0 && (count - 1) * (count - 1) >= n)
        count--;
    return count;
}

struct files {
    int64_t count;        /* landmarks */
    heed_real *direction; /* (count,D) */
    int32_t *of, *first;  /* the file of each key, then where each file begins: (count + 1) */
    int32_t *key;         /* file after file, ascending in each */
    heed_real *products;  /* (HEED__FEW_ROWS,count) */
    heed_real *found;     /* products with the keys that a query has looked at */
    int32_t *looked, *heap;
};

static size_t files_size(int64_t s, int64_t d)
{
    const int64_t count = landmarks(s);
    return (size_t)(count * (d + HEED__FEW_ROWS) + s) * sizeof(heed_real) +
           (size_t)(4 * s + count + 1) * sizeof(int32_t);
}

static void place_files(struct files *f, int64_t s, int64_t d, heed_real *at)
{
    f->count = landmarks(s);
    f->direction = at;
    f->products = f->direction + f->count * d;
    f->found = f->products + HEED__FEW_ROWS * f->count;
    f->of = (int32_t *)(void *)(f->found + s);
    f->first = f->of + s;
    f->key = f->first + f->count + 1;
    f->looked = f->key + s;
    f->heap = f->looked + s;
}

static size_t scratch(const heed_term *term, int64_t t, int64_t s, int64_t d)
{
    (void)t;
    if (term->number[1] == APPROXIMATE)
        return files_size(s, d);
    return (size_t)(HEED__FEW_ROWS * s) * sizeof(heed_real) + (size_t)s * sizeof(int32_t);
}

static int64_t best_of(const heed_real *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static void file_keys(const heed__content_head *h, struct files *f)
{
    for (int64_t x = 0; x < f->count; x++)
        heed__make_unit(f->direction + x * h->d, h->k + x * x * h->k_ld, (heed_real)1e-12, h->d);
    memset(f->first, 0, (size_t)(f->count + 1) * sizeof *f->first);
    for (int64_t j0 = 0; j0 < h->s; j0 += HEED__FEW_ROWS) {
        const int64_t n = heed__min(HEED__FEW_ROWS, h->s - j0);
        heed__few_products(f->products, f->count, h->k + j0 * h->k_ld, h->k_ld, f->direction, h->d,
                           n, landmarks(j0 + n), h->d);
        for (int64_t j = j0; j < j0 + n; j++) {
            f->of[j] = (int32_t)best_of(f->products + (j - j0) * f->count, landmarks(j + 1));
            f->first[f->of[j] + 1]++;
        }
    }
    for (int64_t x = 0; x < f->count; x++)
        f->first[x + 1] += f->first[x];
    for (int64_t j = 0; j < h->s; j++) /* moves the beginnings up by one file, ... */
        f->key[f->first[f->of[j]]++] = (int32_t)j;
    for (int64_t x = f->count; x > 0; x--) /* ... and back */
        f->first[x] = f->first[x - 1];
    f->first[0] = 0;
}

/* Query i, whose products with the directions of the landmarks before `limit` are used up: how many
 * keys it has looked at. */
static int64_t look(const heed__content_head *h, struct files *f, int64_t i, int64_t limit,
                    heed_real *products)
{
    const int64_t known = landmarks(limit), wanted = OPENED * h->term->number[0];
    int64_t n = 0;
    for (int64_t opened = 0; opened < known && n < wanted; opened++) {
        const int64_t x = best_of(products, known);
        if (!(products[x] > (heed_real)-INFINITY)) /* it was open already: NaN */
            break;
        for (int64_t e = f->first[x]; e < f->first[x + 1] && f->key[e] < limit; e++) {
            f->looked[n] = f->key[e];
            f->found[n++] =
                heed__kernels()->row_dot(h->q + i * h->q_ld, h->k + f->key[e] * h->k_ld, h->d);
        }
        products[x] = (heed_real)-INFINITY;
    }
    return n;
}

static void choose_approximate(const heed__content_head *h, int32_t *chosen, struct files *f)
{
    file_keys(h, f);
    for (int64_t i0 = 0; i0 < h->t; i0 += HEED__FEW_ROWS) {
        const int64_t n = heed__min(HEED__FEW_ROWS, h->t - i0);
        heed__few_products(f->products, f->count, h->q + i0 * h->q_ld, h->q_ld, f->direction, h->d,
                           n, f->count, h->d);
        for (int64_t i = 0; i < n; i++) {
            const int64_t seen =
                look(h, f, i0 + i, limit_of(h, i0 + i), f->products + i * f->count);
            const int64_t k = heed__min(h->term->number[0], seen);
            if (k)
                heed__largest(f->found, seen, k, f->heap);
            for (int64_t x = 0; x < k; x++)
                f->heap[x] = f->looked[f->heap[x]];
            keep(h, chosen, i0 + i, f->heap, k);
        }
    }
}

static void choose(const heed__content_head *h, void *chosen, void *scratch_of)
{
    struct files f;
    heed_real *products = scratch_of;
    if (h->s == 0)
        return;
    if (h->term->number[1] != APPROXIMATE) {
        choose_exact(h, chosen, products, (int32_t *)(void *)(products + HEED__FEW_ROWS * h->s));
        return;
    }
    place_files(&f, h->s, h->d, products);
    choose_approximate(h, chosen, &f);
}

static void mark(const heed__content_head *h, const void *chosen, int64_t i, uint64_t *bits)
{
    const int64_t k = heed__min(h->term->number[0], h->s);
    const int32_t *key = (const int32_t *)chosen + i * k;
    for (int64_t x = 0; x < k && key[x] >= 0; x++)
        heed__mark(bits, key[x]);
}

const heed__slot_row heed__pattern_top_k = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "top-k",
             .form = "top-k:K[:approximate]",
             .formula = "query i sees the K keys with the largest q.k, or most of them, from the "
                        "best of sqrt(n) files",
             .paper = "Gupta et al. 2021",
             .cost = "n products and K pairs a query; approximate sqrt(n) + 8 K products",
             .can = HEED_CAN_CAUSAL | HEED_CAN_CROSS | HEED_CAN_WEIGHTS | HEED_CAN_HEADS |
                    HEED_CAN_FUSED | HEED_CAN_STACKS | HEED_CAN_UNION,
             .needs = 1,
             .takes = 2,
             .number = {{1, INT32_MAX, 0, NULL}, {1, 1, 0, words}}},
    .content =
        &(const heed__content){.size = size, .scratch = scratch, .choose = choose, .mark = mark},
};
