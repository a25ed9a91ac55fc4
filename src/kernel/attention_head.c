/* attention_head.c: see attention_head.h.
 *
 * Queries go in blocks, so that a block of scores is still in the cache for its softmax and the
 * next product.  What causality forbids is skipped by tiles, not by numbers: zeros stand there. */
#include "kernel/attention_head.h"

#include "kernel/dropout_mask.h"
#include "kernel/head_product.h"
#include "kernel/isa.h"
#include "kernel/vecmath.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_HEAD(DECLARE)
HEED_KERNELS_DROPOUT(DECLARE)

#define QUERY_BLOCK 48

/* x holds `heads` such heads side by side, of which this is number `head`. */
static void prefetch_next(ahead *f, heed__matrix x, int64_t rows, int64_t cols, int64_t head,
                          int64_t heads)
{
    if (!x.at || rows == 0)
        return;
    const int64_t size = sizeof(real);
    const real *next = head + 1 < heads ? x.at + cols : x.at + rows * x.ld - head * cols;
    f->part[f->parts].at = (const char *)next;
    f->part[f->parts].rows = rows;
    f->part[f->parts].step = x.ld * size;
    f->part[f->parts++].bytes = cols * size;
}

static void zero_rows(heed__matrix x, int64_t begin, int64_t end, int64_t cols)
{
    for (int64_t i = begin; i < end; i++)
        memset(x.at + i * x.ld, 0, (size_t)cols * sizeof(real));
}

/* ---- the block of scores ---- */

/* Its rows are whole registers, an odd number of cache lines apart. */
VINLINE int64_t block_ld(int64_t s)
{
    const int64_t line = 64 / sizeof(real);
    return ((s + line - 1) / line | 1) * line;
}

/* How a head's scratch is cut up, in reals: keys and values as strips, keys once more as columns, a
 * block of queries and of their output's gradient as strips, two blocks of scores and one of
 * dropout's mask. */
typedef struct layout {
    int64_t keys, values, columns, queries, outputs, scores, dropped, mask, end;
} layout;

static layout lay_out(int64_t t, int64_t s, int64_t d_k, int64_t d_v)
{
    int64_t m = least(t, QUERY_BLOCK), ld = block_ld(s);
    int64_t s_up = round_up(s, VW), k_up = round_up(d_k, VW), v_up = round_up(d_v, VW);
    layout l = {0};
    l.values = l.keys + s_up * k_up;
    l.columns = l.values + s_up * v_up;
    l.queries = l.columns + s_up * k_up;
    l.outputs = l.queries + m * k_up;
    l.scores = l.outputs + m * v_up;
    l.dropped = l.scores + m * ld;
    l.mask = l.dropped + m * ld;
    l.end = l.mask + m * ld;
    return l;
}

size_t K(head_scratch)(int64_t t, int64_t s, int64_t d_k, int64_t d_v)
{
    return (size_t)lay_out(t, s, d_k, d_v).end * sizeof(real);
}

/* One block of queries: rows i0 .. i0+m, which see keys 0..n (the last row, if causal). */
typedef struct block {
    int64_t i0, m, n;
    heed__matrix scores;
} block;

static block block_at(const heed__head *h, const layout *l, int64_t i0)
{
    block b = {i0, least(QUERY_BLOCK, h->t - i0), h->s, {h->scratch + l->scores, block_ld(h->s)}};
    if (h->causal)
        b.n = least(h->s, i0 + b.m);
    return b;
}

VINLINE int64_t seen(const heed__head *h, int64_t i)
{
    return h->causal ? least(h->s, i + 1) : h->s;
}

VINLINE heed__matrix rows_from(heed__matrix x, int64_t i)
{
    return (heed__matrix){x.at + i * x.ld, x.ld};
}

/* x[0..n) += bias, -inf behind them up to a whole register; their maximum. */
VINLINE vreal biased_row(real *x, const real *bias, int64_t n)
{
    const vreal lowest = vset(-INFINITY);
    vreal top = lowest;
    for (int64_t j = 0; j < n; j += VW) {
        vreal v = vload(x + j);
        if (bias)
            v += vload_at(bias, j, n);
        if (n - j < VW)
            v = vselect(vfirst(n - j), v, lowest);
        top = vmax(top, v);
        vstore(x + j, v);
    }
    return top;
}

VINLINE void zero_tail(real *x, int64_t n, int64_t end)
{
    for (int64_t j = round_up(n, VW); j < end; j += VW)
        vstore(x + j, (vreal){0});
}

/* x[0..n) = softmax(x + bias), zeros up to `end`; x has whole registers.  All -inf: zeros.  The
 * maximum and 1/sum go to stats, unless that is NULL. */
VINLINE void softmax_row(real *x, const real *bias, int64_t n, int64_t end, real *stats)
{
    const real most = vlargest(biased_row(x, bias, n));
    vreal sum = {0};
    const vreal shift = vset(most == -INFINITY ? 0 : most);
    for (int64_t j = 0; j < n; j += VW) {
        vreal v = vexp(vload(x + j) - shift);
        sum += v;
        vstore(x + j, v);
    }
    real total = vsum(sum);
    const vreal inverse = vset(total == 0 ? 0 : 1 / total);
    for (int64_t j = 0; j < n; j += VW)
        vstore(x + j, vload(x + j) * inverse);
    zero_tail(x, n, end);
    if (stats) {
        stats[0] = shift[0];
        stats[1] = inverse[0];
    }
}

/* The same from the stats of the first time: the same bits. */
VINLINE void softmax_again(real *x, const real *bias, int64_t n, int64_t end, const real *stats)
{
    biased_row(x, bias, n);
    const vreal shift = vset(stats[0]), inverse = vset(stats[1]);
    for (int64_t j = 0; j < n; j += VW)
        vstore(x + j, vexp(vload(x + j) - shift) * inverse);
    zero_tail(x, n, end);
}

/* What is added to the scores of a query: one of the two, or nothing. */
VINLINE const real *bias_of(const heed__head *h, int64_t query)
{
    return h->bias.at    ? h->bias.at + query * h->bias.ld
           : h->distance ? h->distance + (h->t - 1 - query)
                         : NULL;
}

/* Dropout's mask for a block, rows S apart as in the stream: in one piece, unless half of it would
 * be made for nothing. */
static void make_mask(real *mask, const heed__head *h, const block *b)
{
    const uint64_t first = h->first + (uint64_t)(b->i0 * h->s);
    if (!h->causal || h->s <= 64)
        K(dropout_mask)(mask, h->rng, first, b->m * h->s, h->dropout);
    else
        for (int64_t i = 0; i < b->m; i++) {
            int64_t at = i * h->s, n = seen(h, b->i0 + i);
            K(dropout_mask)(mask + at, h->rng, first + (uint64_t)at, n, h->dropout);
        }
}

static void weights_of(const heed__head *h, const block *b, real *mask)
{
    if (h->dropout > 0)
        make_mask(mask, h, b);
    for (int64_t i = 0; i < b->m; i++) {
        int64_t query = b->i0 + i, n = seen(h, query), at = query * h->s;
        real *row = b->scores.at + i * b->scores.ld;
        softmax_row(row, bias_of(h, query), n, b->n,
                    h->stats ? h->stats + query * h->stats_step : NULL);
        if (h->weights) {
            for (int64_t j = 0; j < n; j += VW)
                vstore_at(h->weights + at, vload(row + j), j, n);
            memset(h->weights + at + n, 0, (size_t)(h->s - n) * sizeof(real));
        }
        if (h->dropout > 0)
            for (int64_t j = 0; j < n; j += VW)
                vstore(row + j, vload(row + j) * vload_at(mask + i * h->s, j, n));
    }
}

/* The products that a block of scores took: whole tiles. */
static int64_t products_of(const heed__head *h, const block *b)
{
    int64_t made = 0;
    for (int64_t j = 0, w; j < round_up(h->s, VW); j += w) {
        w = strip_width(round_up(h->s, VW) - j);
        const int64_t rows = w == 3 * VW ? WIDE_ROWS : MICRO_ROWS, tiles = (b->m + rows - 1) / rows;
        int64_t top = 0;
        while (h->causal && top < tiles && j >= b->i0 + micro_edge(b->m, tiles, top + 1))
            top++;
        made += w * (b->m - micro_edge(b->m, tiles, top));
    }
    return made;
}

static void count_block(const heed__head *h, const block *b)
{
    for (int64_t i = 0; h->pairs && i < b->m; i++)
        *h->pairs += seen(h, b->i0 + i);
    if (h->products)
        *h->products += products_of(h, b);
}

void K(head_forward)(const heed__head *h)
{
    const layout l = lay_out(h->t, h->s, h->d_k, h->d_v);
    real *keys = h->scratch + l.keys, *values = h->scratch + l.values;
    if (h->s == 0) {
        zero_rows(h->out, 0, h->t, h->d_v);
        return;
    }
    ahead f = {.parts = 0};
    prefetch_next(&f, h->k, h->s, h->d_k, h->kv_head, h->kv_heads);
    prefetch_next(&f, h->v, h->s, h->d_v, h->kv_head, h->kv_heads);
    prefetch_next(&f, h->q, h->t, h->d_k, h->head, h->heads);
    prefetch_next(&f, h->out, h->t, h->d_v, h->head, h->heads);
    pack_columns(keys, h->k, h->d_k, h->s, h->scale);
    pack_rows(values, h->v, h->s, h->d_v, 1);
    for (int64_t i0 = 0; i0 < h->t; i0 += QUERY_BLOCK) {
        const block b = block_at(h, &l, i0);
        product(&f, b.scores, h->q.at + i0 * h->q.ld, h->q.ld, 1, keys, h->d_k, 0, b.m,
                round_up(h->s, VW), h->d_k, 0, h->causal ? COLUMNS : WHOLE, i0);
        count_block(h, &b);
        weights_of(h, &b, h->scratch + l.mask);
        product(&f, rows_from(h->out, i0), b.scores.at, b.scores.ld, 1, values, h->s, 0, b.m,
                h->d_v, b.n, 0, h->causal ? UPTO : WHOLE, i0);
    }
}

/* The probabilities of a block of queries: kept, or made again where D will stand. */
static heed__matrix block_weights(ahead *f, const heed__head *h, const block *b, const real *keys,
                                  real *dropped)
{
    if (h->weights)
        return (heed__matrix){h->weights + b->i0 * h->s, h->s};
    const heed__matrix p = {dropped, b->scores.ld};
    product(f, p, h->q.at + b->i0 * h->q.ld, h->q.ld, 1, keys, h->d_k, 0, b->m, round_up(h->s, VW),
            h->d_k, 0, h->causal ? COLUMNS : WHOLE, b->i0);
    for (int64_t i = 0; i < b->m; i++)
        softmax_again(p.at + i * p.ld, bias_of(h, b->i0 + i), seen(h, b->i0 + i), b->n,
                      h->stats + (b->i0 + i) * h->stats_step);
    return p;
}

/* In the forward pass P = softmax(Z), and D = P * mask met V; so now, with dD in the block and dW
 * what came straight to the weights:
 *   dP = dD * mask + dW,  dZ_ij = P_ij (dP_ij - sum_l dP_il P_il)
 * dZ takes dD's place, D goes into `dropped`, where P may stand. */
static void weights_backward(const heed__head *h, const block *b, heed__matrix weights,
                             real *dropped, real *mask)
{
    if (h->dropout > 0)
        make_mask(mask, h, b);
    for (int64_t i = 0; i < b->m; i++) {
        int64_t query = b->i0 + i, n = seen(h, query), at = query * h->s;
        const real *p = weights.at + i * weights.ld;
        const real *d_weights = h->d_weights ? h->d_weights + at : NULL;
        real *row = b->scores.at + i * b->scores.ld, *dropped_row = dropped + i * b->scores.ld;
        vreal sum = {0};
        int64_t j = 0;
        for (; j < n; j += VW) {
            vreal v = h->d_out.at ? vload(row + j) : (vreal){0}, weight = vload_at(p, j, n);
            if (h->dropout > 0)
                v *= vload_at(mask + i * h->s, j, n);
            if (d_weights)
                v += vload_at(d_weights, j, n);
            sum += v * weight;
            vstore(row + j, v);
        }
        const vreal total = vset(vsum(sum));
        for (j = 0; j < n; j += VW) {
            const vreal weight = vload_at(p, j, n);
            vstore(row + j, weight * (vload(row + j) - total));
            if (h->dropout > 0)
                vstore(dropped_row + j, weight * vload_at(mask + i * h->s, j, n));
        }
        zero_tail(row, n, b->n);
        if (h->dropout > 0)
            zero_tail(dropped_row, n, b->n);
        if (h->d_scores) {
            memcpy(h->d_scores + at, row, (size_t)n * sizeof(real));
            memset(h->d_scores + at + n, 0, (size_t)(h->s - n) * sizeof(real));
        }
        for (int64_t k = 0; h->d_distance && k < n; k++)
            h->d_distance[h->t - 1 - query + k] += row[k];
    }
}

/* A gradient that no query or no key reaches is zero, and has to be written where beta is 0. */
static void zero_unreached(const heed__head *h)
{
    int64_t reached = h->causal ? least(h->t, h->s) : h->t > 0 ? h->s : 0;
    if (h->d_q.at && h->beta_q == 0 && h->s == 0)
        zero_rows(h->d_q, 0, h->t, h->d_k);
    if (h->d_k_rows.at && h->beta_k == 0)
        zero_rows(h->d_k_rows, reached, h->s, h->d_k);
    if (h->d_v_rows.at && h->beta_v == 0)
        zero_rows(h->d_v_rows, h->d_out.at ? reached : 0, h->s, h->d_v);
}

/* dD = dO V^T;  dQ = scale dZ K;  dK = scale dZ^T Q;  dV = D^T dO.  Blocks go from the last to the
 * first because, if causal, the last reaches all the keys that are reached. */
void K(head_backward)(const heed__head *h)
{
    const layout l = lay_out(h->t, h->s, h->d_k, h->d_v);
    real *keys = h->scratch + l.keys, *values = h->scratch + l.values;
    real *queries = h->scratch + l.queries, *outputs = h->scratch + l.outputs;
    real *dropped = h->scratch + l.dropped;
    const bool causal = h->causal;
    const bool to_scores = h->d_q.at || h->d_k_rows.at || h->d_scores || h->d_distance;
    zero_unreached(h);
    if (h->s == 0 || h->t == 0)
        return;
    ahead f = {.parts = 0};
    prefetch_next(&f, h->v, h->s, h->d_v, h->kv_head, h->kv_heads);
    prefetch_next(&f, h->k, h->s, h->d_k, h->kv_head, h->kv_heads);
    prefetch_next(&f, h->d_out, h->t, h->d_v, h->head, h->heads);
    prefetch_next(&f, h->q, h->t, h->d_k, h->head, h->heads);
    prefetch_next(&f, h->d_q, h->t, h->d_k, h->head, h->heads);
    prefetch_next(&f, h->d_k_rows, h->s, h->d_k, h->kv_head, h->kv_heads);
    prefetch_next(&f, h->d_v_rows, h->s, h->d_v, h->kv_head, h->kv_heads);
    if (h->d_out.at)
        pack_columns(values, h->v, h->d_v, h->s, 1);
    if (h->d_q.at)
        pack_rows(keys, h->k, h->s, h->d_k, h->scale);
    if (!h->weights)
        pack_columns(h->scratch + l.columns, h->k, h->d_k, h->s, h->scale);
    int64_t last = (h->t - 1) / QUERY_BLOCK * QUERY_BLOCK;
    for (int64_t i0 = last; i0 >= 0; i0 -= QUERY_BLOCK) {
        const block b = block_at(h, &l, i0);
        const heed__matrix d_out = {h->d_out.at ? h->d_out.at + i0 * h->d_out.ld : NULL,
                                    h->d_out.ld};
        if (h->d_out.at && to_scores)
            product(&f, b.scores, d_out.at, d_out.ld, 1, values, h->d_v, 0, b.m, round_up(h->s, VW),
                    h->d_v, 0, causal ? COLUMNS : WHOLE, i0);
        const heed__matrix p = block_weights(&f, h, &b, h->scratch + l.columns, dropped);
        weights_backward(h, &b, p, dropped, h->scratch + l.mask);
        if (h->d_q.at)
            product(&f, rows_from(h->d_q, i0), b.scores.at, b.scores.ld, 1, keys, h->s, 0, b.m,
                    h->d_k, b.n, h->beta_q, causal ? UPTO : WHOLE, i0);
        if (h->d_k_rows.at) {
            pack_rows(queries, rows_from(h->q, i0), b.m, h->d_k, h->scale);
            product(&f, h->d_k_rows, b.scores.at, 1, b.scores.ld, queries, b.m, 0, b.n, h->d_k, b.m,
                    i0 == last ? h->beta_k : 1, causal ? FROM : WHOLE, i0);
        }
        if (h->d_v_rows.at && h->d_out.at) {
            const bool drops = h->dropout > 0;
            pack_rows(outputs, d_out, b.m, h->d_v, 1);
            product(&f, h->d_v_rows, drops ? dropped : p.at, 1, drops ? b.scores.ld : p.ld, outputs,
                    b.m, 0, b.n, h->d_v, b.m, i0 == last ? h->beta_v : 1, causal ? FROM : WHOLE,
                    i0);
        }
    }
}
