/* queries_clustered.c: clustered attention (Vyas et al. 2020): the queries of a head fall into C
 * clusters, and one query asks for each.
 *
 *   clustered            y_i = softmax(c K^T) V, c the mean of the queries in i's cluster
 *   improved-clustered   and of the T keys with the largest of these weights, m in all, what query
 *                        i itself makes: y_i + m (softmax_T(q_i) V_T - softmax_T(c) V_T), which are
 *                        the paper's weights: m exp(q_i k_j) / sum_T there, the cluster's elsewhere
 *
 * Clusters: 32 signs of products with random directions, then at most 10 rounds of Lloyd by Hamming
 * distance, from evenly spaced queries on.  They have no gradient.  A sequence of no more than C
 * queries has a cluster for each, which is all of attention.  Which cluster a query is in depends
 * on later ones, so it cannot be causal. */
#include "attention/attend.h"

#include "base/error.h"
#include "base/min_max.h"
#include "base/parallel.h"
#include "tensor/tape.h"
#include <string.h>

#define BITS 32
#define ROUNDS 10
#define SEED 0x636c757374 /* "clust": the same in every model, so that nothing has to be stored */

/* ---- which cluster a query is in ---- */

static int distance(uint32_t a, uint32_t b)
{
    uint32_t x = a ^ b;
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    return (int)(((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24);
}

static uint32_t signs(const heed_real *x, const heed_real *direction, int64_t d)
{
    uint32_t hash = 0;
    for (int bit = 0; bit < BITS; bit++, direction += d) {
        heed_real sum = 0;
        for (int64_t i = 0; i < d; i++)
            sum += x[i] * direction[i];
        hash |= (uint32_t)(sum > 0) << bit;
    }
    return hash;
}

/* The bits that most members have; of two that are as many, the one that it had. */
static void vote(uint32_t *centre, int64_t clusters, const uint32_t *hash, const int32_t *cluster,
                 int64_t n, int32_t *votes)
{
    memset(votes, 0, (size_t)(clusters * BITS) * sizeof *votes);
    for (int64_t i = 0; i < n; i++)
        for (int bit = 0; bit < BITS; bit++)
            votes[cluster[i] * BITS + bit] += hash[i] >> bit & 1 ? 1 : -1;
    for (int64_t c = 0; c < clusters; c++)
        for (int bit = 0; bit < BITS; bit++) {
            const int32_t v = votes[c * BITS + bit];
            const uint32_t one = (uint32_t)1 << bit;
            centre[c] = v > 0 ? centre[c] | one : v < 0 ? centre[c] & ~one : centre[c];
        }
}

/* What one head of one sequence is clustered in. */
struct room {
    heed_real *direction; /* (BITS,d) */
    uint32_t *hash;       /* (n) */
    uint32_t *centre;     /* (clusters) */
    int32_t *votes;       /* (clusters,BITS) */
    int32_t *cluster;     /* (n) */
};

static bool room_new(struct room *r, heed_arena *arena, int64_t n, int64_t d, int64_t clusters)
{
    r->direction = heed_arena_allocate(arena, (size_t)(BITS * d) * sizeof *r->direction);
    r->hash = heed_arena_allocate(arena, (size_t)(n + 1) * sizeof *r->hash);
    r->centre = heed_arena_allocate(arena, (size_t)clusters * sizeof *r->centre);
    r->votes = heed_arena_allocate(arena, (size_t)(clusters * BITS) * sizeof *r->votes);
    r->cluster = heed_arena_allocate(arena, (size_t)(n + 1) * sizeof *r->cluster);
    return r->direction && r->hash && r->centre && r->votes && r->cluster;
}

/* r->cluster of the n rows of x. */
static void cluster_rows(struct room *r, const heed_real *x, int64_t ld, int64_t n, int64_t d,
                         int64_t clusters, int layer, int head)
{
    const heed_rng rng = heed_rng_stream(
        &(heed_rng_key){.seed = SEED, .step = (uint64_t)layer, .node = (uint64_t)head});
    for (int64_t i = 0; n <= clusters && i < n; i++)
        r->cluster[i] = (int32_t)i;
    if (n <= clusters)
        return;
    for (int64_t i = 0; i < BITS * d; i++)
        r->direction[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
    for (int64_t i = 0; i < n; i++)
        r->hash[i] = signs(x + i * ld, r->direction, d);
    for (int64_t c = 0; c < clusters; c++)
        r->centre[c] = r->hash[c * n / clusters];
    memset(r->cluster, 0, (size_t)n * sizeof *r->cluster);
    bool moved = true;
    for (int round = 0; moved && round < ROUNDS; round++) {
        moved = round == 0;
        for (int64_t i = 0; i < n; i++) {
            int32_t best = 0;
            int least = BITS + 1;
            for (int64_t c = 0; c < clusters; c++) {
                const int far = distance(r->hash[i], r->centre[c]);
                best = far < least ? (int32_t)c : best;
                least = far < least ? far : least;
            }
            moved |= best != r->cluster[i];
            r->cluster[i] = best;
        }
        vote(r->centre, clusters, r->hash, r->cluster, n, r->votes);
    }
}

bool heed__cluster_queries(const heed_real *x, int64_t ld, int64_t n, int64_t d, int64_t clusters,
                           int layer, int head, heed_arena *arena, int32_t *cluster)
{
    struct room r;
    if (!room_new(&r, arena, n, d, clusters))
        return false;
    cluster_rows(&r, x, ld, n, d, clusters, layer, head);
    memcpy(cluster, r.cluster, (size_t)n * sizeof *cluster);
    return true;
}

/* ---- those of a batch ---- */

/* Row n H + h is query n in head h, row g H + h centre g there. */
struct clusters {
    int heads;
    const heed_segments *centres; /* of each sequence */
    const heed_segments *members; /* (G*H): queries of each centre */
    int32_t *centre;              /* (N*H): the row of the centre of each query */
    int32_t *order;               /* (N*H): queries, centre by centre */
    int32_t *place;               /* (N*H): where in that order each stands */
};

struct job {
    const heed_tensor *q;
    const heed_segments *queries;
    const struct clusters *c;
    struct room *room; /* of each thread */
    int64_t most;
    int layer;
};

static void cluster_heads(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    struct room *r = &j->room[thread];
    const int heads = j->c->heads;
    const int64_t d = j->q->cols / heads;
    for (int64_t k = begin; k < end; k++) {
        const int64_t b = k / heads, h = k % heads, first = j->queries->offset[b];
        const int64_t n = j->queries->offset[b + 1] - first;
        if (n)
            cluster_rows(r, heed__row(j->q, first) + h * d, j->q->ld, n, d, j->most, j->layer,
                         (int)h);
        for (int64_t i = 0; i < n; i++)
            j->c->centre[(first + i) * heads + h] =
                (int32_t)((j->c->centres->offset[b] + r->cluster[i]) * heads + h);
    }
}

/* Queries centre by centre: counted, then each put behind those before it. */
static bool put_in_order(struct clusters *c, int64_t rows, heed_arena *arena)
{
    const int64_t count = c->centres->rows * c->heads;
    int64_t *length = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *length);
    int64_t *next = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *next);
    if (!length || !next)
        return false;
    memset(length, 0, (size_t)(count + 1) * sizeof *length);
    for (int64_t i = 0; i < rows; i++)
        length[c->centre[i]]++;
    if (!(c->members = heed_segments_new(arena, count, length)))
        return false;
    for (int64_t g = 0; g < count; g++)
        next[g] = c->members->offset[g];
    for (int64_t i = 0; i < rows; i++) {
        c->place[i] = (int32_t)next[c->centre[i]]++;
        c->order[c->place[i]] = (int32_t)i;
    }
    return true;
}

static bool make_clusters(heed_tape *t, const heed_attend_options *o, const heed_tensor *q,
                          const heed_segments *queries, struct clusters *c)
{
    heed_arena *arena = heed_tape_arena(t);
    const int64_t most = o->queries.term[0].number[0], rows = queries->rows * o->heads;
    const int64_t d = q->cols / o->heads, work = queries->longest * (BITS * d + most * ROUNDS);
    const int width = heed__parallel_width(t->threads, queries->count * o->heads, 1, work);
    struct job j = {.q = q, .queries = queries, .c = c, .most = most, .layer = o->layer};
    int64_t *length = heed_arena_allocate(arena, (size_t)(queries->count + 1) * sizeof *length);
    j.room = heed_arena_allocate(arena, (size_t)width * sizeof *j.room);
    *c = (struct clusters){.heads = o->heads};
    int32_t *index = heed_arena_allocate(arena, 3 * (size_t)(rows + 1) * sizeof *index);
    bool there = length && j.room && index;
    for (int i = 0; there && i < width; i++)
        there = room_new(&j.room[i], arena, queries->longest, d, most);
    for (int64_t b = 0; there && b < queries->count; b++)
        length[b] = heed__min(most, queries->offset[b + 1] - queries->offset[b]);
    c->centres = there ? heed_segments_new(arena, queries->count, length) : NULL;
    if (c->centres) {
        c->centre = index;
        c->order = index + rows + 1;
        c->place = c->order + rows + 1;
        heed__parallel(t->threads, queries->count * o->heads, 1, work, cluster_heads, &j);
    }
    if (c->centres && put_in_order(c, rows, arena))
        return true;
    heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld clusters", (long long)most);
    return false;
}

/* ---- what they answer ---- */

/* One after the other: the columns of the `most` largest of x (n), largest first. */
static void largest(const heed_real *x, int64_t n, int64_t most, int32_t *column)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = found < most ? found++ : most;
        if (at == most && !(x[i] > x[column[most - 1]]))
            continue;
        for (at = heed__min(at, most - 1); at > 0 && x[i] > x[column[at - 1]]; at--)
            column[at] = column[at - 1];
        column[at] = (int32_t)i;
    }
}

/* The keys with the largest weights of each centre in each head. */
struct top {
    const heed_segments *keys; /* (G*H) */
    int32_t *weight;           /* where their weights are */
    int32_t *key;              /* row j KvHeads + kv */
};

static bool find_top(heed_tape *t, const heed_attend_options *o, const struct clusters *c,
                     const heed_tensor *weights, const heed_segments *keys, struct top *top)
{
    heed_arena *arena = heed_tape_arena(t);
    const int64_t most = o->queries.term[0].number[1], count = c->centres->rows * c->heads;
    const int each = o->heads / o->kv_heads;
    int64_t *length = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *length);
    int32_t *column = heed_arena_allocate(arena, (size_t)most * sizeof *column);
    for (int64_t b = 0; length && b < keys->count; b++)
        for (int64_t g = c->centres->offset[b] * c->heads; g < c->centres->offset[b + 1] * c->heads;
             g++)
            length[g] = heed__min(most, keys->offset[b + 1] - keys->offset[b]);
    top->keys = length && column ? heed_segments_new(arena, count, length) : NULL;
    const int64_t rows = top->keys ? top->keys->rows : 0;
    top->weight = heed_arena_allocate(arena, (size_t)(rows + 1) * sizeof *top->weight);
    top->key = heed_arena_allocate(arena, (size_t)(rows + 1) * sizeof *top->key);
    if (!top->keys || !top->weight || !top->key || heed_tensor_count(weights) > INT32_MAX) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for the weights of %lld clusters",
                       (long long)c->centres->rows);
        return false;
    }
    int64_t at = 0, n = 0; /* of the weights: head by head of a sequence, centre by centre */
    for (int64_t b = 0; b < keys->count; b++) {
        const int64_t s = keys->offset[b + 1] - keys->offset[b];
        const int64_t centres = c->centres->offset[b + 1] - c->centres->offset[b];
        const int64_t kept = heed__min(most, s), first = n;
        for (int h = 0; h < c->heads; h++)
            for (int64_t g = 0; g < centres; g++, at += s) {
                int64_t to = first + (g * c->heads + h) * kept;
                largest(weights->data + at, s, kept, column);
                for (int64_t k = 0; k < kept; k++, to++, n++) {
                    top->weight[to] = (int32_t)(at + column[k]);
                    top->key[to] =
                        (int32_t)((keys->offset[b] + column[k]) * o->kv_heads + h / each);
                }
            }
    }
    return true;
}

static const heed_segments *ones(heed_tape *t, int64_t count)
{
    int64_t *length = heed_arena_allocate(heed_tape_arena(t), (size_t)(count + 1) * sizeof *length);
    for (int64_t i = 0; length && i < count; i++)
        length[i] = 1;
    const heed_segments *s = length ? heed_segments_new(heed_tape_arena(t), count, length) : NULL;
    if (!s)
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld clusters", (long long)count);
    return s;
}

/* What the centres answer, (G*H,Dv), and for their top keys each query itself, in the order of the
 * clusters, (N*H,Dv). */
static heed_tensor *improve(heed_tape *t, const heed_attend_options *o, const struct clusters *c,
                            heed_tensor *rows, heed_tensor *centres, heed_tensor *weights,
                            heed_tensor *answer, const heed_memory *m, heed_attention_options one)
{
    struct top top;
    const heed_segments *each = ones(t, c->centres->rows * c->heads);
    if (!weights || !each || !find_top(t, o, c, weights, m->segments, &top))
        return NULL;
    const int64_t count = heed_tensor_count(weights);
    one.heads = one.kv_heads = 1;
    one.probabilities = NULL;
    one.counts = NULL;
    heed_tensor *k =
        heed_gather_rows(t, heed__head_rows(t, m->keys, o->kv_heads), top.key, top.keys->rows);
    heed_tensor *v =
        heed_gather_rows(t, heed__head_rows(t, m->values, o->kv_heads), top.key, top.keys->rows);
    heed_tensor *mass =
        heed_segment_sum(t,
                         heed_gather_rows(t, heed_reshape(t, weights, HEED_SHAPE(count, 1)),
                                          top.weight, top.keys->rows),
                         top.keys); /* (G*H,1) */
    heed_tensor *less = heed_mul(t, heed_attention(t, centres, k, v, each, top.keys, &one), mass);
    heed_tensor *own = heed_attention(t, rows, k, v, c->members, top.keys, &one);
    int32_t *of =
        heed_arena_allocate(heed_tape_arena(t), (size_t)(c->members->rows + 1) * sizeof *of);
    if (!of)
        return heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld queries",
                              (long long)c->members->rows);
    for (int64_t i = 0; i < c->members->rows; i++)
        of[i] = c->centre[c->order[i]];
    own = heed_mul(t, own, heed_gather_rows(t, mass, of, c->members->rows));
    return heed_add(t, heed_gather_rows(t, heed_sub(t, answer, less), of, c->members->rows), own);
}

static heed_tensor *answer(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                           const heed_memory *m, const heed_segments *queries, bool causal,
                           const heed_attention_options *one)
{
    const heed_attend_options *o = &l->options;
    const bool improved = heed__slot_kind(&o->queries) == HEED_QUERIES_IMPROVED_CLUSTERED;
    const int64_t rows = queries->rows * o->heads;
    struct clusters c;
    heed_tensor *weights = NULL;
    (void)causal;
    if (rows > INT32_MAX || m->segments->rows * o->heads > INT32_MAX)
        return heed_tape_fail(t, HEED_ARGUMENT, "attention: %lld queries of %d heads are too many",
                              (long long)queries->rows, o->heads);
    if (!make_clusters(t, o, q, queries, &c))
        return NULL;
    heed_attention_options plain = *one;
    plain.probabilities = improved ? &weights : NULL;
    heed_tensor *in_order =
        heed_gather_rows(t, heed__head_rows(t, q, o->heads), c.order, rows); /* (N*H,Dk) */
    heed_tensor *centres = heed_segment_mean(t, in_order, c.members);        /* (G*H,Dk) */
    heed_tensor *y = heed_attention(
        t, heed_reshape(t, centres, HEED_SHAPE(c.centres->rows, heed_tensor_cols(q))), m->keys,
        m->values, c.centres, m->segments, &plain);
    y = heed__head_rows(t, y, o->heads); /* (G*H,Dv) */
    if (improved)
        y = heed_gather_rows(t, improve(t, o, &c, in_order, centres, weights, y, m, plain), c.place,
                             rows);
    else
        y = heed_gather_rows(t, y, c.centre, rows);
    return y ? heed_reshape(t, y, HEED_SHAPE(queries->rows, heed_tensor_cols(y) * o->heads)) : NULL;
}

#define CLUSTERED_CAN (HEED_CAN_CROSS | HEED_CAN_HEADS | HEED_CAN_STACKS | HEED_CAN_FUSED)

const heed__slot_row heed__queries_clustered = {
    .info = {.slot = HEED_SLOT_QUERIES,
             .name = "clustered",
             .form = "clustered:C",
             .formula = "y_i = softmax(c K^T) V, c the mean of the queries in i's cluster",
             .paper = "Vyas et al. 2020",
             .cost = "C S / T pairs a query",
             .can = CLUSTERED_CAN,
             .needs = 1,
             .takes = 1,
             .number = {{1, 65536, 0, NULL}}},
    .queries = &(const heed__queries_form){.answer = answer, .drops = true},
};

#define KEYS 32
const heed__slot_row heed__queries_improved_clustered = {
    .info = {.slot = HEED_SLOT_QUERIES,
             .name = "improved-clustered",
             .form = "improved-clustered:C[:K]",
             .formula = "the same, and the K keys with the largest weights weighed by query i "
                        "itself",
             .paper = "Vyas et al. 2020",
             .cost = "C S / T + K pairs a query",
             .can = CLUSTERED_CAN,
             .needs = 1,
             .takes = 2,
             .number = {{1, 65536, 0, NULL}, {1, 65536, KEYS, NULL}}},
    .queries = &(const heed__queries_form){.answer = answer},
};
