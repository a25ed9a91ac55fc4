/* attention_tiles.c: see attention_head.h: attention over the runs of keys that each query sees.
 *
 * Keys are cut into tiles of two registers.  A block of queries has the tiles that any of them
 * reaches, side by side as columns of its scores, shared rows first; what a row does not see in
 * them is -inf before the softmax and 0 behind it.  Of a row's columns only those between its first
 * and its last pair (lo, hi) are computed, up to whole tiles.
 *
 * "Extended" keys: shared row p is key p, key j of the segment is key `base` + j, base being their
 * number up to whole tiles.  Packed keys and values are in this order. */
#include "kernel/attention_head.h"

#include "kernel/dropout_mask.h"
#include "kernel/head_product.h"
#include "kernel/isa.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_HEAD(DECLARE)
HEED_KERNELS_DROPOUT(DECLARE)

#define QUERY_BLOCK 48
#define TILE (2 * VW)

/* Tiles that stand together: `count` extended keys from `from` on are columns from `column` on. */
typedef struct stretch {
    int64_t from, column, count;
} stretch;
/* What a row sees, in columns: of `count`, every step-th and those behind it, `width` in all; key
 * is that of the segment, -1: shared. */
typedef struct piece {
    int64_t column, key, count, step, width;
} piece;

typedef struct layout {
    int64_t base, keys, ld; /* extended keys; columns of a block of scores */
    int64_t columns, rows, values, value_columns, queries, outputs, scores, gradients, mask;
    int64_t stretches, pieces, runs, end; /* the last in bytes */
} layout;

static layout lay_out(int64_t t, int64_t s, int64_t shared, int most, int64_t d_k, int64_t d_v)
{
    const int64_t m = least(t, QUERY_BLOCK), line = 64 / sizeof(real);
    const int64_t k_up = round_up(d_k, VW), v_up = round_up(d_v, VW);
    layout l = {.base = round_up(shared, TILE)};
    l.keys = l.base + round_up(s, TILE);
    l.ld = ((l.keys + line - 1) / line | 1) * line;
    l.rows = l.columns + l.keys * k_up;
    l.values = l.rows + l.keys * k_up;
    l.value_columns = l.values + l.keys * v_up;
    l.queries = l.value_columns + l.keys * v_up;
    l.outputs = l.queries + m * k_up;
    l.scores = l.outputs + m * v_up;
    l.gradients = l.scores + m * l.ld;
    l.mask = l.gradients + m * l.ld;
    const int64_t tiles = l.keys / TILE + 2;
    l.stretches = (l.mask + l.ld) * (int64_t)sizeof(real);
    l.pieces = l.stretches + tiles * (int64_t)sizeof(stretch);
    l.runs = l.pieces + (tiles + most) * (int64_t)sizeof(piece);
    l.end = l.runs + most * (int64_t)sizeof(heed__run);
    return l;
}

size_t K(tiles_scratch)(int64_t t, int64_t s, int64_t shared, int most, int64_t d_k, int64_t d_v)
{
    return (size_t)lay_out(t, s, shared, most, d_k, d_v).end;
}

/* ---- packing, in tiles of one width ---- */

/* B = scale x^T, x (n,k), behind `to` tile by tile. */
static void pack_tiles(real *to, heed__matrix x, int64_t k, int64_t n, real scale)
{
    for (int64_t j = 0; j < n; j += TILE, to += TILE * k) {
        const int64_t w = least(TILE, n - j);
        if (w > VW) {
            pack_columns(to, (heed__matrix){x.at + j * x.ld, x.ld}, k, w, scale);
            continue;
        }
        memset(to, 0, (size_t)(TILE * k) * sizeof(real));
        for (int64_t r = 0; r < w; r++)
            for (int64_t p = 0; p < k; p++)
                to[p * TILE + r] = scale * x.at[(j + r) * x.ld + p];
    }
}

/* B = scale x, x (n,k), as rows first .. first+n of strips `depth` long, zeros up to a whole tile.
 */
static void pack_strips(real *to, heed__matrix x, int64_t n, int64_t k, real scale, int64_t first,
                        int64_t depth)
{
    for (int64_t j = 0, w; j < k; to += w * depth, j += w) {
        w = strip_width(k - j);
        real *at = to + first * w;
        for (int64_t p = 0; p < n; p++)
            for (int64_t i = 0; i < w; i += VW, at += VW)
                vstore(at, scale * vload_at(x.at + p * x.ld + j, i, k - j));
        memset(at, 0, (size_t)((round_up(n, TILE) - n) * w) * sizeof(real));
    }
}

/* What forward needs of keys and values, or backward. */
static void pack(const heed__head *h, const layout *l, bool back)
{
    real *to = h->scratch;
    if (h->packed)
        return;
    pack_tiles(to + l->columns, h->shared_k, h->d_k, h->shared, h->scale);
    pack_tiles(to + l->columns + l->base * h->d_k, h->k, h->d_k, h->s, h->scale);
    if (!back) {
        pack_strips(to + l->values, h->shared_v, h->shared, h->d_v, 1, 0, l->keys);
        pack_strips(to + l->values, h->v, h->s, h->d_v, 1, l->base, l->keys);
        return;
    }
    pack_strips(to + l->rows, h->shared_k, h->shared, h->d_k, h->scale, 0, l->keys);
    pack_strips(to + l->rows, h->k, h->s, h->d_k, h->scale, l->base, l->keys);
    pack_tiles(to + l->value_columns, h->shared_v, h->d_v, h->shared, 1);
    pack_tiles(to + l->value_columns + l->base * h->d_v, h->v, h->d_v, h->s, 1);
}

/* ---- which tiles a block has ---- */

typedef struct block {
    int64_t i0, m, n; /* queries i0 .. i0+m; n columns */
    stretch *stretch;
    int64_t stretches;
    int64_t lo[QUERY_BLOCK], hi[QUERY_BLOCK]; /* columns of a row, whole registers */
    int64_t pairs;
} block;

/* Adds tiles begin .. end of extended keys to stretches in ascending order that do not meet. */
static void add_tiles(block *b, int64_t begin, int64_t end)
{
    stretch *x = b->stretch;
    int64_t i = 0, k;
    for (int64_t high = b->stretches; i < high;) { /* the first that begins behind `begin` */
        const int64_t middle = (i + high) / 2;
        if (x[middle].from > begin)
            high = middle;
        else
            i = middle + 1;
    }
    if (i > 0 && x[i - 1].from + x[i - 1].count >= begin) {
        i--;
        if (x[i].from + x[i].count >= end)
            return;
        x[i].count = end - x[i].from;
    } else {
        memmove(x + i + 1, x + i, (size_t)(b->stretches++ - i) * sizeof *x);
        x[i] = (stretch){begin, 0, end - begin};
    }
    for (k = i + 1; k < b->stretches && x[k].from <= x[i].from + x[i].count; k++)
        if (x[k].from + x[k].count > x[i].from + x[i].count)
            x[i].count = x[k].from + x[k].count - x[i].from;
    memmove(x + i + 1, x + k, (size_t)(b->stretches - k) * sizeof *x);
    b->stretches -= k - i - 1;
}

static int64_t column_of(const block *b, int64_t key)
{
    int64_t low = 0, high = b->stretches;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (b->stretch[middle].from <= key)
            low = middle;
        else
            high = middle;
    }
    return b->stretch[low].column + key - b->stretch[low].from;
}

VINLINE int64_t last_of(heed__run r)
{
    const int64_t last = r.begin + (r.end - 1 - r.begin) / r.step * r.step;
    return least(last + r.width, r.end) - 1;
}

VINLINE int64_t keys_of(heed__run r)
{
    const int64_t steps = (r.end - 1 - r.begin) / r.step;
    return steps * r.width + least(r.width, r.end - r.begin - steps * r.step);
}

/* The tiles of a run, and how many columns they are. */
static int64_t add_run(block *b, int64_t base, heed__run r)
{
    const bool whole = r.step <= TILE;
    int64_t columns = 0;
    for (int64_t key = r.begin; key < r.end; key += whole ? r.end - r.begin : r.step) {
        const int64_t last = whole ? last_of(r) : least(key + r.width, r.end) - 1;
        const int64_t begin = key / TILE * TILE, end = (last / TILE + 1) * TILE;
        add_tiles(b, base + begin, base + end);
        columns += end - begin;
    }
    return columns;
}

/* m queries from i0 on; *apart: the columns of all of them if each were a block of its own. */
static block block_of(const heed__head *h, const layout *l, int64_t i0, int64_t m, int64_t *apart)
{
    block b = {.i0 = i0, .m = m};
    heed__run *r = (heed__run *)(void *)((char *)h->scratch + l->runs);
    b.stretch = (stretch *)(void *)((char *)h->scratch + l->stretches);
    *apart = m * l->base;
    if (h->shared)
        add_tiles(&b, 0, l->base);
    for (int64_t i = 0; i < b.m; i++) {
        const int n = h->runs(h->context, h->head, i0 + i, r);
        b.pairs += h->shared;
        for (int k = 0; k < n; k++) {
            b.pairs += keys_of(r[k]);
            *apart += add_run(&b, l->base, r[k]);
        }
        /* Kept as keys until the columns are known; no keys: lo above hi. */
        b.lo[i] = h->shared ? 0 : n ? l->base + r[0].begin : 1;
        b.hi[i] = n ? l->base + last_of(r[n - 1]) : h->shared - 1;
    }
    for (int64_t k = 0; k < b.stretches; b.n += b.stretch[k++].count)
        b.stretch[k].column = b.n;
    for (int64_t i = 0; i < b.m; i++) {
        const bool none = b.lo[i] > b.hi[i];
        b.lo[i] = none ? 0 : column_of(&b, b.lo[i]) / VW * VW;
        b.hi[i] = none ? 0 : column_of(&b, b.hi[i]) / VW * VW + VW;
    }
    return b;
}

/* The block that begins at i0.  Where queries have hardly a tile in common, each is a block of its
 * own, up to *single: the products of a row alone cost about APART times those of many. */
#define APART 3
static block block_at(const heed__head *h, const layout *l, int64_t i0, int64_t *single)
{
    const int64_t m = i0 < *single ? 1 : least(QUERY_BLOCK, h->t - i0);
    int64_t apart;
    const block b = block_of(h, l, i0, m, &apart);
    if (m == 1 || b.n * m <= APART * apart)
        return b;
    *single = i0 + m;
    return block_of(h, l, i0, 1, &apart);
}

/* What row i sees, in ascending order. */
static int pieces_of(const heed__head *h, const layout *l, const block *b, int64_t i, piece *out)
{
    heed__run *r = (heed__run *)(void *)((char *)h->scratch + l->runs);
    const int runs = h->runs(h->context, h->head, b->i0 + i, r);
    int n = 0;
    if (h->shared)
        out[n++] = (piece){0, -1, h->shared, 1, 1};
    for (int k = 0; k < runs; k++)
        if (r[k].step <= TILE)
            out[n++] = (piece){column_of(b, l->base + r[k].begin), r[k].begin,
                               last_of(r[k]) + 1 - r[k].begin, r[k].step, r[k].width};
        else
            for (int64_t key = r[k].begin; key < r[k].end; key += r[k].step)
                out[n++] = (piece){column_of(b, l->base + key), key,
                                   least(r[k].width, r[k].end - key), 1, 1};
    return n;
}

/* ---- products over tiles ---- */

/* The rows whose columns reach into begin .. end, from the first to behind the last. */
VINLINE bool rows_at(const block *b, int64_t begin, int64_t end, int64_t *top, int64_t *bottom)
{
    *top = b->m;
    *bottom = 0;
    for (int64_t i = 0; i < b->m; i++)
        if (b->lo[i] < end && b->hi[i] > begin) {
            *top = least(*top, i);
            *bottom = i + 1;
        }
    return *top < *bottom;
}

/* C = A B, A's rows from i0 on and B the packed tiles, d deep: scores, or their gradients. */
static int64_t pair_products(const block *b, heed__matrix c, heed__matrix a, const real *packed,
                             int64_t d)
{
    int64_t made = 0;
    for (int64_t k = 0; k < b->stretches; k++) {
        const stretch *x = &b->stretch[k];
        for (int64_t j = 0, top, bottom; j < x->count; j += TILE) {
            if (!rows_at(b, x->column + j, x->column + j + TILE, &top, &bottom))
                continue;
            product(NULL, (heed__matrix){c.at + top * c.ld + x->column + j, c.ld},
                    a.at + (b->i0 + top) * a.ld, a.ld, 1, packed + (x->from + j) * d, d, 0,
                    bottom - top, TILE, d, 0, WHOLE, 0);
            made += (bottom - top) * TILE;
        }
    }
    return made;
}

/* C's rows from i0 on = beta C + A B, A weights of pairs and B packed strips, n wide. */
static void mix(const block *b, const layout *l, heed__matrix c, const real *a, const real *packed,
                int64_t n, real beta)
{
    const int64_t tiles = (b->m + MICRO_ROWS - 1) / MICRO_ROWS;
    for (int64_t tile = 0; tile < tiles; tile++) {
        const int64_t top = micro_edge(b->m, tiles, tile),
                      m = micro_edge(b->m, tiles, tile + 1) - top;
        int64_t lo = b->n, hi = 0;
        for (int64_t i = top; i < top + m; i++)
            if (b->hi[i] > 0) {
                lo = least(lo, b->lo[i]);
                hi = b->hi[i] > hi ? b->hi[i] : hi;
            }
        const heed__matrix to = {c.at + (b->i0 + top) * c.ld, c.ld};
        real now = beta;
        for (int64_t k = 0; k < b->stretches; k++) {
            const stretch *x = &b->stretch[k];
            const int64_t begin = x->column > lo ? x->column : lo;
            const int64_t end = least(x->column + x->count, hi);
            if (begin >= end)
                continue;
            product(NULL, to, a + top * l->ld + begin, l->ld, 1, packed, l->keys,
                    x->from + begin - x->column, m, n, end - begin, now, WHOLE, 0);
            now = 1;
        }
        for (int64_t i = 0; now == 0 && i < m; i++)
            memset(to.at + i * to.ld, 0, (size_t)n * sizeof(real));
    }
}

/* C += A^T B for the rows of keys and shared rows, A weights of pairs and B the block's packed
 * rows, n wide. */
static void gather(const heed__head *h, const block *b, const layout *l, heed__matrix keys,
                   heed__matrix shared, const real *a, const real *packed, int64_t n)
{
    for (int64_t k = 0; k < b->stretches; k++) {
        const stretch *x = &b->stretch[k];
        for (int64_t j = 0, top, bottom; j < x->count; j += TILE) {
            const int64_t key = x->from + j - l->base;
            const heed__matrix to = key < 0 ? shared : keys;
            const int64_t row = key < 0 ? x->from + j : key, rows = key < 0 ? h->shared : h->s;
            if (to.at && rows_at(b, x->column + j, x->column + j + TILE, &top, &bottom))
                product(NULL, (heed__matrix){to.at + row * to.ld, to.ld},
                        a + top * l->ld + x->column + j, 1, l->ld, packed, b->m, top,
                        least(TILE, rows - row), n, bottom - top, 1, WHOLE, 0);
        }
    }
}

/* ---- rows of scores ---- */

/* Biases, and -inf for what the row does not see; 0 outside of lo .. hi. */
static void prepare_row(const heed__head *h, const block *b, int64_t i, const piece *pieces, int n,
                        real *x)
{
    const int64_t query = b->i0 + i, lo = b->lo[i], hi = b->hi[i];
    int64_t at = lo;
    memset(x, 0, (size_t)lo * sizeof(real));
    memset(x + hi, 0, (size_t)(b->n - hi) * sizeof(real));
    for (int k = 0; k < n; k++) {
        const piece *p = &pieces[k];
        real *y = x + p->column;
        for (; at < p->column; at++)
            x[at] = -INFINITY;
        at += p->count;
        for (int64_t j = 0; p->step > 1 && j < p->count; j++)
            y[j] = j % p->step >= p->width ? -INFINITY : y[j];
        if (p->key >= 0 && h->bias.at) {
            const real *bias = h->bias.at + query * h->bias.ld + p->key;
            for (int64_t j = 0; j < p->count; j++)
                y[j] += bias[j];
        }
        if (p->key >= 0 && h->distance) {
            const real *bias = h->distance + (h->t - 1 - query) + p->key;
            for (int64_t j = 0; j < p->count; j++)
                y[j] += bias[j];
        }
    }
    for (; at < hi; at++)
        x[at] = -INFINITY;
}

/* Dropout's mask of a row, in its columns; 0 where it sees nothing. */
static void mask_row(const heed__head *h, const block *b, int64_t i, const piece *pieces, int n,
                     real *mask)
{
    const int64_t query = b->i0 + i;
    memset(mask + b->lo[i], 0, (size_t)(b->hi[i] - b->lo[i]) * sizeof(real));
    for (int k = 0; k < n; k++) {
        const piece *p = &pieces[k];
        const uint64_t first = p->key < 0 ? h->shared_first + (uint64_t)(query * h->shared)
                                          : h->first + (uint64_t)(query * h->s + p->key);
        K(dropout_mask)(mask + p->column, h->rng, first, p->count, h->dropout);
    }
}

/* Row i of x goes to the (T,S) matrix `to`, 0 where it sees nothing. */
static void store_row(const heed__head *h, const block *b, int64_t i, const piece *pieces, int n,
                      const real *x, real *to)
{
    real *row = to + (b->i0 + i) * h->s;
    memset(row, 0, (size_t)h->s * sizeof(real));
    for (int k = 0; k < n; k++)
        if (pieces[k].key >= 0)
            memcpy(row + pieces[k].key, x + pieces[k].column,
                   (size_t)pieces[k].count * sizeof(real));
}

/* ---- forward ---- */

void K(tiles_forward)(const heed__head *h)
{
    const layout l = lay_out(h->t, h->s, h->shared, h->most, h->d_k, h->d_v);
    real *scores = h->scratch + l.scores, *mask = h->scratch + l.mask;
    piece *pieces = (piece *)(void *)((char *)h->scratch + l.pieces);
    pack(h, &l, false);
    for (int64_t i0 = 0, m, single = 0; i0 < h->t; i0 += m) {
        const block b = block_at(h, &l, i0, &single);
        m = b.m;
        const int64_t made =
            pair_products(&b, (heed__matrix){scores, l.ld}, h->q, h->scratch + l.columns, h->d_k);
        if (h->pairs)
            *h->pairs += b.pairs;
        if (h->products)
            *h->products += made;
        for (int64_t i = 0; i < b.m; i++) {
            real *x = scores + i * l.ld;
            const int n = pieces_of(h, &l, &b, i, pieces);
            prepare_row(h, &b, i, pieces, n, x);
            softmax_part(x, b.lo[i], b.hi[i],
                         h->stats ? h->stats + (i0 + i) * h->stats_step : NULL);
            if (h->weights)
                store_row(h, &b, i, pieces, n, x, h->weights);
            if (h->dropout > 0) {
                mask_row(h, &b, i, pieces, n, mask);
                for (int64_t j = b.lo[i]; j < b.hi[i]; j += VW)
                    vstore(x + j, vload(x + j) * vload(mask + j));
            }
        }
        mix(&b, &l, h->out, scores, h->scratch + l.values, h->d_v, 0);
    }
}

/* ---- backward ---- */

/* In the forward pass P = softmax(Z), and D = P * mask met V; so now, with P in x and dD in y:
 *   dP = dD * mask + dW,  dZ_j = P_j (dP_j - sum_l dP_l P_l)
 * dZ takes dD's place, D that of P. */
static void row_backward(const heed__head *h, const block *b, int64_t i, const piece *pieces, int n,
                         real *x, real *y, real *mask)
{
    const int64_t query = b->i0 + i, lo = b->lo[i], hi = b->hi[i];
    vreal sum = {0};
    if (!h->d_out.at)
        memset(y + lo, 0, (size_t)(hi - lo) * sizeof(real));
    memset(y, 0, (size_t)lo * sizeof(real));
    memset(y + hi, 0, (size_t)(b->n - hi) * sizeof(real));
    if (h->dropout > 0) {
        mask_row(h, b, i, pieces, n, mask);
        for (int64_t j = lo; j < hi; j += VW)
            vstore(y + j, vload(y + j) * vload(mask + j));
    }
    for (int k = 0; h->d_weights && k < n; k++)
        for (int64_t j = 0; pieces[k].key >= 0 && j < pieces[k].count; j++)
            y[pieces[k].column + j] += h->d_weights[query * h->s + pieces[k].key + j];
    for (int64_t j = lo; j < hi; j += VW)
        sum += vload(y + j) * vload(x + j);
    const vreal total = vset(vsum(sum));
    for (int64_t j = lo; j < hi; j += VW) {
        const vreal p = vload(x + j);
        vstore(y + j, p * (vload(y + j) - total));
        if (h->dropout > 0)
            vstore(x + j, p * vload(mask + j));
    }
    if (h->d_scores)
        store_row(h, b, i, pieces, n, y, h->d_scores);
    for (int k = 0; h->d_distance && k < n; k++)
        for (int64_t j = 0; pieces[k].key >= 0 && j < pieces[k].count; j++)
            h->d_distance[h->t - 1 - query + pieces[k].key + j] += y[pieces[k].column + j];
}

static heed__matrix rows_from(heed__matrix x, int64_t i)
{
    return x.at ? (heed__matrix){x.at + i * x.ld, x.ld} : x;
}

/* dD = dO V^T;  dQ = scale dZ K;  dK = scale dZ^T Q;  dV = D^T dO. */
void K(tiles_backward)(const heed__head *h)
{
    const layout l = lay_out(h->t, h->s, h->shared, h->most, h->d_k, h->d_v);
    real *x = h->scratch + l.scores, *y = h->scratch + l.gradients;
    real *queries = h->scratch + l.queries, *outputs = h->scratch + l.outputs;
    piece *pieces = (piece *)(void *)((char *)h->scratch + l.pieces);
    clear_rows(h->d_k_rows, h->s, h->d_k, h->beta_k);
    clear_rows(h->d_v_rows, h->s, h->d_v, h->beta_v);
    pack(h, &l, true);
    for (int64_t i0 = 0, m, single = 0; i0 < h->t; i0 += m) {
        const block b = block_at(h, &l, i0, &single);
        m = b.m;
        pair_products(&b, (heed__matrix){x, l.ld}, h->q, h->scratch + l.columns, h->d_k);
        if (h->d_out.at)
            pair_products(&b, (heed__matrix){y, l.ld}, h->d_out, h->scratch + l.value_columns,
                          h->d_v);
        for (int64_t i = 0; i < b.m; i++) {
            const int n = pieces_of(h, &l, &b, i, pieces);
            prepare_row(h, &b, i, pieces, n, x + i * l.ld);
            softmax_part_again(x + i * l.ld, b.lo[i], b.hi[i], h->stats + (i0 + i) * h->stats_step);
            row_backward(h, &b, i, pieces, n, x + i * l.ld, y + i * l.ld, h->scratch + l.mask);
        }
        if (h->d_q.at)
            mix(&b, &l, h->d_q, y, h->scratch + l.rows, h->d_k, h->beta_q);
        if (h->d_k_rows.at || h->d_shared_k.at) {
            pack_rows(queries, rows_from(h->q, i0), b.m, h->d_k, h->scale);
            gather(h, &b, &l, h->d_k_rows, h->d_shared_k, y, queries, h->d_k);
        }
        if (h->d_out.at && (h->d_v_rows.at || h->d_shared_v.at)) {
            pack_rows(outputs, rows_from(h->d_out, i0), b.m, h->d_v, 1);
            gather(h, &b, &l, h->d_v_rows, h->d_shared_v, x, outputs, h->d_v);
        }
    }
}
