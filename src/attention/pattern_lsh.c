/* pattern_lsh.c: locality-sensitive hashing, the attention of the Reformer (Kitaev et al. 2020).
 *
 * Keys are the queries, made as long as 1.  In each of ROUNDS rounds a row x goes to the bucket
 * argmax [xR; -xR], R drawn once and for all for each layer, head and round; rows are sorted by
 * (bucket, place), cut into as many chunks as there are buckets, and a row sees its own chunk and
 * the one before, itself only where there is nothing else.  Rounds are put together as one softmax
 * over all keys of any of them, each once: what the paper does with a log of how often a pair has
 * met.
 *
 * Many buckets are a pair of hashes of few, which needs fewer products.  A chunk ends where it is
 * full, so in causal layers, too, who shares one depends on the whole sequence: what is seen is
 * from the past alone. */
#include "attention/attend.h"

#include "base/error.h"
#include "base/min_max.h"
#include "tensor/tape.h"
#include <string.h>

#define SEED 0x6c7368 /* "lsh": the same in every model, so that nothing has to be stored */
#define FEW_BUCKETS 32

/* The hashes that make B buckets together: an even number of buckets each. */
static void factors(int64_t buckets, int64_t of[2])
{
    of[0] = 1;
    of[1] = buckets;
    for (int64_t a = 2; buckets > FEW_BUCKETS && a * a <= buckets; a += 2)
        if (buckets % (2 * a) == 0) {
            of[0] = a;
            of[1] = buckets / a;
        }
}

/* Rows of R in a round, for both hashes. */
static int64_t directions(int64_t buckets)
{
    int64_t of[2];
    factors(buckets, of);
    return of[0] / 2 + of[1] / 2;
}

static int64_t chunk_of(const heed_term *term, int64_t t)
{
    return heed__max(1, (t + term->number[0] - 1) / term->number[0]);
}

void heed__lsh_directions(heed_real *to, int layer, int head, int64_t round, int64_t buckets,
                          int64_t d)
{
    const int64_t rows = directions(buckets);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){
        .seed = SEED, .step = (uint64_t)layer, .node = (uint64_t)head << 32 | (uint64_t)round});
    for (int64_t x = 0; x < rows * d; x++)
        to[x] = (heed_real)heed_rng_normal(&rng, (uint64_t)x);
}

/* argmax [x; -x], the first of equals. */
static int64_t widest(const heed_real *x, int64_t n)
{
    int64_t best = 0;
    heed_real most = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i] > most) {
            most = x[i];
            best = i;
        }
    for (int64_t i = 0; i < n; i++)
        if (-x[i] > most) {
            most = -x[i];
            best = n + i;
        }
    return best;
}

void heed__lsh_buckets(int32_t *bucket, const heed_real *x, int64_t ld, int64_t t,
                       const heed_real *direction, int64_t buckets, int64_t d, heed_real *products)
{
    const int64_t rows = directions(buckets);
    int64_t of[2];
    factors(buckets, of);
    for (int64_t i0 = 0; i0 < t; i0 += HEED__FEW_ROWS) {
        const int64_t n = heed__min(HEED__FEW_ROWS, t - i0);
        heed__few_products(products, rows, x + i0 * ld, ld, direction, d, n, rows, d);
        for (int64_t i = 0; i < n; i++) {
            const heed_real *y = products + i * rows;
            const int64_t first = of[0] > 1 ? widest(y, of[0] / 2) : 0;
            const int64_t second = of[1] > 1 ? widest(y + of[0] / 2, of[1] / 2) : 0;
            bucket[i0 + i] = (int32_t)(first * of[1] + second);
        }
    }
}

/* ---- the row ---- */

/* Common: R of all heads, round after round. */
static void *prepare(heed_tape *t, const heed_attend_layer *l, const heed_term *term)
{
    const heed_attend_options *o = &l->options;
    const int64_t d = o->query_d / o->heads, all = directions(term->number[0]) * d;
    heed_real *to = heed_arena_allocate(heed_tape_arena(t),
                                        (size_t)(heed__max(all, 1) * o->heads * term->number[1]) *
                                            sizeof(heed_real));
    for (int64_t x = 0; to && x < o->heads * term->number[1]; x++)
        heed__lsh_directions(to + x * all, o->layer, (int)(x / term->number[1]),
                             x % term->number[1], term->number[0], d);
    return to;
}

/* Chosen: the rows in the order of each round, and where each stands in it. */
static size_t size(const heed_term *term, int64_t t, int64_t s)
{
    (void)s;
    return (size_t)(2 * t * term->number[1]) * sizeof(int32_t);
}

static size_t scratch(const heed_term *term, int64_t t, int64_t s, int64_t d)
{
    (void)s, (void)d;
    return (size_t)(HEED__FEW_ROWS * directions(term->number[0])) * sizeof(heed_real) +
           (size_t)(t + term->number[0] + 1) * sizeof(int32_t);
}

static void choose(const heed__content_head *h, void *chosen, void *scratch_of)
{
    const int64_t buckets = h->term->number[0], rounds = h->term->number[1];
    const int64_t rows = directions(buckets);
    heed_real *products = scratch_of;
    int32_t *bucket = (int32_t *)(void *)(products + HEED__FEW_ROWS * rows), *next = bucket + h->t;
    for (int64_t r = 0; r < rounds; r++) {
        int32_t *order = (int32_t *)chosen + 2 * r * h->t, *place = order + h->t;
        heed__lsh_buckets(bucket, h->q, h->q_ld, h->t,
                          (const heed_real *)h->common + (h->head * rounds + r) * rows * h->d,
                          buckets, h->d, products);
        memset(next, 0, (size_t)(buckets + 1) * sizeof *next);
        for (int64_t i = 0; i < h->t; i++)
            next[bucket[i] + 1]++;
        for (int64_t x = 0; x < buckets; x++)
            next[x + 1] += next[x];
        for (int64_t i = 0; i < h->t; i++) {
            place[i] = next[bucket[i]]++;
            order[place[i]] = (int32_t)i;
        }
    }
}

static void mark(const heed__content_head *h, const void *chosen, int64_t i, uint64_t *bits)
{
    const int64_t chunk = chunk_of(h->term, h->t);
    for (int64_t r = 0; r < h->term->number[1]; r++) {
        const int32_t *order = (const int32_t *)chosen + 2 * r * h->t, *place = order + h->t;
        const int64_t own = place[i] / chunk;
        const int64_t end = heed__min(h->t, (own + 1) * chunk);
        for (int64_t x = heed__max(0, own - 1) * chunk; x < end; x++)
            heed__mark(bits, order[x]);
    }
}

static heed_status check(const heed_term *term, heed_error *err)
{
    if (term->number[0] == 1 || term->number[0] % 2 == 0)
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT,
                      "lsh has %lld buckets, expected 1 or an even number: a hash takes each "
                      "direction and its opposite",
                      (long long)term->number[0]);
}

const heed__slot_row heed__pattern_lsh = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "lsh",
             .form = "lsh:BUCKETS[:ROUNDS]",
             .formula = "k = q/|q|; in each round rows are sorted by argmax [xR; -xR] and cut into "
                        "BUCKETS chunks; query i sees its chunk and the one before, not itself",
             .paper = "Kitaev et al. 2020",
             .cost = "2 ROUNDS n/BUCKETS pairs a query",
             .can = HEED_CAN_CAUSAL | HEED_CAN_WEIGHTS | HEED_CAN_HEADS | HEED_CAN_FUSED |
                    HEED_CAN_STACKS | HEED_CAN_UNION,
             .needs = 1,
             .takes = 2,
             .number = {{1, 1 << 20, 0, NULL}, {1, 64, 4, NULL}}},
    .check = check,
    .content = &(const heed__content){.shares_keys = true,
                                      .prepare = prepare,
                                      .size = size,
                                      .scratch = scratch,
                                      .choose = choose,
                                      .mark = mark},
};
