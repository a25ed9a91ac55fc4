/* attention_head.c: see head.h.
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

/* How a head's scratch is cut up, in reals: keys and values as strips, a block of queries and of
 * their output's gradient as strips, two blocks of scores and one of dropout's mask. */
typedef struct layout {
    int64_t keys, values, queries, outputs, scores, dropped, mask, end;
} layout;

static layout lay_out(int64_t t, int64_t s, int64_t d_k, int64_t d_v)
{
    int64_t m = least(t, QUERY_BLOCK), ld = block_ld(s);
    int64_t s_up = round_up(s, VW), k_up = round_up(d_k, VW), v_up = round_up(d_v, VW);
    layout l = {0};
    l.values = l.keys + s_up * k_up;
    l.queries = l.values + s_up * v_up;
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

/* x[0..n) = softmax(x + bias), zeros up to `end`; x has whole registers.  All -inf: zeros. */
VINLINE void softmax_row(real *x, const real *bias, int64_t n, int64_t end)
{
    const vreal lowest = vset(-INFINITY);
    vreal top = lowest, sum = {0};
    for (int64_t j = 0; j < n; j += VW) {
        vreal v = vload(x + j);
        if (bias)
            v += vload_at(bias, j, n);
        if (n - j < VW)
            v = vselect(vfirst(n - j), v, lowest);
        top = vmax(top, v);
        vstore(x + j, v);
    }
    real most = vlargest(top);
    const vreal shift = vset(most == -INFINITY ? 0 : most);
    for (int64_t j = 0; j < n; j += VW) {
        vreal v = vexp(vload(x + j) - shift);
        sum += v;
        vstore(x + j, v);
    }
    real total = vsum(sum);
    const vreal inverse = vset(total == 0 ? 0 : 1 / total);
    int64_t j = 0;
    for (; j < n; j += VW)
        vstore(x + j, vload(x + j) * inverse);
    for (; j < end; j += VW)
        vstore(x + j, (vreal){0});
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
        softmax_row(row, h->bias.at ? h->bias.at + query * h->bias.ld : NULL, n, b->n);
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

void K(head_forward)(const heed__head *h)
{
    const layout l = lay_out(h->t, h->s, h->d_k, h->d_v);
    real *keys = h->scratch + l.keys, *values = h->scratch + l.values;
    if (h->s == 0) {
        zero_rows(h->out, 0, h->t, h->d_v);
        return;
    }
    ahead f = {.parts = 0};
    prefetch_next(&f, h, h->k, h->s, h->d_k);
    prefetch_next(&f, h, h->v, h->s, h->d_v);
    prefetch_next(&f, h, h->q, h->t, h->d_k);
    prefetch_next(&f, h, h->out, h->t, h->d_v);
    pack_columns(keys, h->k, h->d_k, h->s, h->scale);
    pack_rows(values, h->v, h->s, h->d_v, 1);
    for (int64_t i0 = 0; i0 < h->t; i0 += QUERY_BLOCK) {
        const block b = block_at(h, &l, i0);
        product(&f, b.scores, h->q.at + i0 * h->q.ld, h->q.ld, 1, keys, h->d_k, b.m,
                round_up(h->s, VW), h->d_k, 0, h->causal ? COLUMNS : WHOLE, i0);
        weights_of(h, &b, h->scratch + l.mask);
        product(&f, rows_from(h->out, i0), b.scores.at, b.scores.ld, 1, values, h->s, b.m, h->d_v,
                b.n, 0, h->causal ? UPTO : WHOLE, i0);
    }
}

/* In the forward pass P = softmax(Z), and D = P * mask met V; so now, with dD in the block and dW
 * what came straight to the weights:
 *   dP = dD * mask + dW,  dZ_ij = P_ij (dP_ij - sum_l dP_il P_il)
 * dZ takes dD's place, D goes into `dropped`. */
static void weights_backward(const heed__head *h, const block *b, real *dropped, real *mask)
{
    if (h->dropout > 0)
        make_mask(mask, h, b);
    for (int64_t i = 0; i < b->m; i++) {
        int64_t query = b->i0 + i, n = seen(h, query), at = query * h->s;
        const real *p = h->weights + at, *d_weights = h->d_weights ? h->d_weights + at : NULL;
        real *row = b->scores.at + i * b->scores.ld, *dropped_row = dropped + i * b->scores.ld;
        vreal sum = {0};
        int64_t j = 0;
        for (; j < n; j += VW) {
            vreal v = h->d_out.at ? vload(row + j) : (vreal){0}, weight = vload_at(p, j, n);
            if (h->dropout > 0) {
                vreal keep = vload_at(mask + i * h->s, j, n);
                vstore(dropped_row + j, weight * keep);
                v *= keep;
            }
            if (d_weights)
                v += vload_at(d_weights, j, n);
            sum += v * weight;
            vstore(row + j, v);
        }
        const vreal total = vset(vsum(sum));
        for (j = 0; j < n; j += VW)
            vstore(row + j, vload_at(p, j, n) * (vload(row + j) - total));
        for (; j < b->n; j += VW) {
            vstore(row + j, (vreal){0});
            if (h->dropout > 0)
                vstore(dropped_row + j, (vreal){0});
        }
        if (h->d_scores) {
            memcpy(h->d_scores + at, row, (size_t)n * sizeof(real));
            memset(h->d_scores + at + n, 0, (size_t)(h->s - n) * sizeof(real));
        }
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
    const bool causal = h->causal, to_scores = h->d_q.at || h->d_k_rows.at || h->d_scores;
    zero_unreached(h);
    if (h->s == 0 || h->t == 0)
        return;
    ahead f = {.parts = 0};
    prefetch_next(&f, h, h->v, h->s, h->d_v);
    prefetch_next(&f, h, h->k, h->s, h->d_k);
    prefetch_next(&f, h, h->d_out, h->t, h->d_v);
    prefetch_next(&f, h, h->q, h->t, h->d_k);
    prefetch_next(&f, h, h->d_q, h->t, h->d_k);
    prefetch_next(&f, h, h->d_k_rows, h->s, h->d_k);
    prefetch_next(&f, h, h->d_v_rows, h->s, h->d_v);
    if (h->d_out.at)
        pack_columns(values, h->v, h->d_v, h->s, 1);
    if (h->d_q.at)
        pack_rows(keys, h->k, h->s, h->d_k, h->scale);
    int64_t last = (h->t - 1) / QUERY_BLOCK * QUERY_BLOCK;
    for (int64_t i0 = last; i0 >= 0; i0 -= QUERY_BLOCK) {
        const block b = block_at(h, &l, i0);
        const heed__matrix d_out = {h->d_out.at ? h->d_out.at + i0 * h->d_out.ld : NULL,
                                    h->d_out.ld};
        if (h->d_out.at && to_scores)
            product(&f, b.scores, d_out.at, d_out.ld, 1, values, h->d_v, b.m, round_up(h->s, VW),
                    h->d_v, 0, causal ? COLUMNS : WHOLE, i0);
        weights_backward(h, &b, dropped, h->scratch + l.mask);
        if (h->d_q.at)
            product(&f, rows_from(h->d_q, i0), b.scores.at, b.scores.ld, 1, keys, h->s, b.m, h->d_k,
                    b.n, h->beta_q, causal ? UPTO : WHOLE, i0);
        if (h->d_k_rows.at) {
            pack_rows(queries, rows_from(h->q, i0), b.m, h->d_k, h->scale);
            product(&f, h->d_k_rows, b.scores.at, 1, b.scores.ld, queries, b.m, b.n, h->d_k, b.m,
                    i0 == last ? h->beta_k : 1, causal ? FROM : WHOLE, i0);
        }
        if (h->d_v_rows.at && h->d_out.at) {
            const bool drops = h->dropout > 0;
            pack_rows(outputs, d_out, b.m, h->d_v, 1);
            product(&f, h->d_v_rows, drops ? dropped : h->weights + i0 * h->s, 1,
                    drops ? b.scores.ld : h->s, outputs, b.m, b.n, h->d_v, b.m,
                    i0 == last ? h->beta_v : 1, causal ? FROM : WHOLE, i0);
        }
    }
}
