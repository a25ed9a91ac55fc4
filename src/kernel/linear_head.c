/* linear_head.c: see linear_head.h.
 *
 * Rows go in chunks.  Of earlier chunks a query sees S alone; inside its own, causality is a
 * triangle of CHUNK by CHUNK products.  Values have one more column, of ones, so that S has z
 * beside it and the denominator is a column of the result; and their gradient, likewise. */
#include "kernel/linear_head.h"

#include "kernel/head_product.h"
#include "kernel/isa.h"
#include "kernel/vecmath.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_LINEAR_HEAD(DECLARE)

#define CHUNK 48

/* ---- phi ---- */

VINLINE vreal phi(vreal x)
{
    return vmax((vreal){0}, x) + vexp(vmin((vreal){0}, x));
}

/* Rows of phi(x) without gaps, `ld` apart. */
static void map_rows(real *to, int64_t ld, heed__matrix x, int64_t n, int64_t d)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t j = 0; j < d; j += VW)
            vstore_at(to + r * ld, phi(vload_at(x.at + r * x.ld, j, d)), j, d);
}

/* y += dphi phi'(x), phi'(x) = exp(min(x, 0)). */
static void map_back(heed__matrix y, const real *d_phi, int64_t ld, heed__matrix x, int64_t n,
                     int64_t d)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t j = 0; j < d; j += VW) {
            const vreal slope = vexp(vmin((vreal){0}, vload_at(x.at + r * x.ld, j, d)));
            const vreal up = vload_at(d_phi + r * ld, j, d) * slope;
            vstore_at(y.at + r * y.ld, vload_at(y.at + r * y.ld, j, d) + up, j, d);
        }
}

/* ---- scratch ---- */

/* Two states (Dk,Dv+1); of a chunk phi(q), phi(k), their gradient, [v 1], its gradient, [g e], and
 * the triangle; strips of whatever is multiplied with.  `wide` is Dv+1, rounded up. */
typedef struct linear_layout {
    int64_t narrow, wide, side;
    int64_t state, queries, keys, inner, values, outer, grads, triangle, strips, end;
} linear_layout;

static linear_layout lay_out(int64_t d_k, int64_t d_v)
{
    linear_layout l = {.narrow = round_up(d_k, VW), .wide = round_up(d_v + 1, VW)};
    l.side = round_up(CHUNK, VW);
    l.queries = l.state + d_k * l.wide;
    l.keys = l.queries + CHUNK * l.narrow;
    l.inner = l.keys + CHUNK * l.narrow;
    l.values = l.inner + CHUNK * l.narrow;
    l.outer = l.values + CHUNK * l.wide;
    l.grads = l.outer + CHUNK * l.wide;
    l.triangle = l.grads + CHUNK * l.wide;
    l.strips = l.triangle + CHUNK * l.side;
    /* The largest: a state as it is or transposed, or a chunk of rows either way. */
    const int64_t most = d_k > d_v + 1 ? l.narrow : l.wide, rows = most > CHUNK ? most : CHUNK;
    l.end = l.strips + rows * (most > l.side ? most : l.side);
    return l;
}

size_t K(linear_scratch)(int64_t d_k, int64_t d_v)
{
    return (size_t)lay_out(d_k, d_v).end * sizeof(real);
}

/* A chunk of queries and keys from row `at` on: m and n of them. */
typedef struct chunk {
    const heed__linear_head *h;
    linear_layout l;
    real *state, *queries, *keys, *inner, *values, *outer, *grads, *triangle, *strips;
    int64_t at, m, n, dv1; /* dv1: Dv + 1 */
} chunk;

static chunk begin(const heed__linear_head *h)
{
    const linear_layout l = lay_out(h->d_k, h->d_v);
    real *s = h->scratch;
    chunk c = {.h = h, .l = l, .dv1 = h->d_v + 1};
    c.state = s + l.state;
    c.queries = s + l.queries;
    c.keys = s + l.keys;
    c.inner = s + l.inner;
    c.values = s + l.values;
    c.outer = s + l.outer;
    c.grads = s + l.grads;
    c.triangle = s + l.triangle;
    c.strips = s + l.strips;
    memset(c.state, 0, (size_t)(h->d_k * l.wide) * sizeof(real));
    return c;
}

VINLINE int64_t left(int64_t n, int64_t at)
{
    return n <= at ? 0 : least(n - at, CHUNK);
}

static void move_to(chunk *c, int64_t at)
{
    c->at = at;
    c->m = left(c->h->t, at);
    c->n = left(c->h->s, at);
}

VINLINE heed__matrix rows_of(heed__matrix x, int64_t at)
{
    return (heed__matrix){x.at + at * x.ld, x.ld};
}

static void load_queries(const chunk *c)
{
    map_rows(c->queries, c->l.narrow, rows_of(c->h->q, c->at), c->m, c->h->d_k);
}

/* phi(k) and [v 1]. */
static void load_keys(const chunk *c)
{
    const int64_t d_v = c->h->d_v;
    map_rows(c->keys, c->l.narrow, rows_of(c->h->k, c->at), c->n, c->h->d_k);
    for (int64_t j = 0; j < c->n; j++) {
        real *to = c->values + j * c->l.wide;
        memcpy(to, c->h->v.at + (c->at + j) * c->h->v.ld, (size_t)d_v * sizeof(real));
        to[d_v] = 1;
    }
}

/* [g e]: with O = N / D, g = dO / D = dN and e = - dO.O / D = dD. */
static void load_grads(const chunk *c)
{
    const heed__linear_head *h = c->h;
    for (int64_t i = 0; i < c->m; i++) {
        const int64_t row = c->at + i;
        const real *d_out = h->d_out.at + row * h->d_out.ld, *out = h->out.at + row * h->out.ld;
        const real inverse = 1 / h->total.at[row * h->total.ld];
        real *to = c->grads + i * c->l.wide, sum = 0;
        for (int64_t j = 0; j < h->d_v; j++) {
            to[j] = d_out[j] * inverse;
            sum += d_out[j] * out[j];
        }
        to[h->d_v] = -sum * inverse;
    }
}

/* ---- products ---- */

VINLINE heed__matrix dense(real *x, int64_t ld)
{
    return (heed__matrix){x, ld};
}

/* C (m,n) = beta C + A B, B (k,n) plain or (n,k) transposed. */
static void times(const chunk *c, heed__matrix to, const real *a, int64_t a_row, int64_t a_col,
                  heed__matrix b, bool transposed, int64_t m, int64_t n, int64_t k, real beta,
                  triangle kind)
{
    if (m == 0 || n == 0 || k == 0)
        return;
    if (transposed)
        pack_columns(c->strips, b, k, n, 1);
    else
        pack_rows(c->strips, b, k, n, 1);
    product(NULL, to, a, a_row, a_col, c->strips, k, 0, m, n, k, beta, kind, 0);
}

/* triangle (m,n) = A B^T, row i kept to column i. */
static void triangle_of(const chunk *c, const real *a, const real *b, int64_t ld, int64_t k)
{
    times(c, dense(c->triangle, c->l.side), a, ld, 1, dense((real *)b, ld), true, c->m, c->n, k, 0,
          COLUMNS);
    for (int64_t i = 0; i + 1 < c->n && i < c->m; i++)
        memset(c->triangle + i * c->l.side + i + 1, 0, (size_t)(c->n - i - 1) * sizeof(real));
}

/* state += A^T B over the rows of a chunk. */
static void add_state(const chunk *c, const real *a, const real *b, int64_t rows)
{
    times(c, dense(c->state, c->l.wide), a, 1, c->l.narrow, dense((real *)b, c->l.wide), false,
          c->h->d_k, c->dv1, rows, 1, WHOLE);
}

/* ---- forward ---- */

/* [N D] = phi(q) [S z], and inside the chunk tril(phi(q) phi(k)^T) [v 1]; O = N / (D + eps). */
static void answer(const chunk *c)
{
    const heed__linear_head *h = c->h;
    const heed__matrix sums = dense(c->outer, c->l.wide);
    times(c, sums, c->queries, c->l.narrow, 1, dense(c->state, c->l.wide), false, c->m, c->dv1,
          h->d_k, 0, WHOLE);
    if (h->causal) {
        triangle_of(c, c->queries, c->keys, c->l.narrow, h->d_k);
        times(c, sums, c->triangle, c->l.side, 1, dense(c->values, c->l.wide), false, c->m, c->dv1,
              c->n, 1, UPTO);
    }
    for (int64_t i = 0; i < c->m; i++) {
        const real *from = c->outer + i * c->l.wide;
        const int64_t row = c->at + i;
        const real total = from[h->d_v] + h->eps, inverse = 1 / total;
        h->total.at[row * h->total.ld] = total;
        for (int64_t j = 0; j < h->d_v; j++)
            h->out.at[row * h->out.ld + j] = from[j] * inverse;
    }
}

/* S and z of all keys. */
static void add_all_keys(chunk *c)
{
    for (int64_t at = 0; at < c->h->s; at += CHUNK) {
        move_to(c, at);
        load_keys(c);
        add_state(c, c->keys, c->values, c->n);
    }
}

void K(linear_forward)(const heed__linear_head *h)
{
    chunk c = begin(h);
    if (!h->causal)
        add_all_keys(&c);
    for (int64_t at = 0; at < h->t; at += CHUNK) {
        move_to(&c, at);
        load_queries(&c);
        if (h->causal)
            load_keys(&c);
        answer(&c);
        if (h->causal)
            add_state(&c, c.keys, c.values, c.n);
    }
}

/* ---- backward ---- */

/* [N D]_i = phi(q_i) [S z]_i, so dphi(q_i) = [g e]_i [S z]_i^T: of earlier chunks by their state,
 * inside the chunk tril([g e] [v 1]^T) phi(k). */
static void to_queries(const chunk *c)
{
    const heed__linear_head *h = c->h;
    const heed__matrix inner = dense(c->inner, c->l.narrow);
    times(c, inner, c->grads, c->l.wide, 1, dense(c->state, c->l.wide), true, c->m, h->d_k, c->dv1,
          0, WHOLE);
    if (h->causal) {
        triangle_of(c, c->grads, c->values, c->l.wide, c->dv1);
        times(c, inner, c->triangle, c->l.side, 1, dense(c->keys, c->l.narrow), false, c->m, h->d_k,
              c->n, 1, UPTO);
    }
    map_back(rows_of(h->d_q, c->at), c->inner, c->l.narrow, rows_of(h->q, c->at), c->m, h->d_k);
}

/* [S z]_i = sum_j phi(k_j) [v 1]_j, so with R = sum_i phi(q_i)^T [g e]_i over the queries that see
 * key j: dphi(k_j) = R [v 1]_j, d[v 1]_j = phi(k_j) R.  R of later chunks is the state now. */
static void to_keys(const chunk *c)
{
    const heed__linear_head *h = c->h;
    const heed__matrix inner = dense(c->inner, c->l.narrow), outer = dense(c->outer, c->l.wide);
    times(c, inner, c->values, c->l.wide, 1, dense(c->state, c->l.wide), true, c->n, h->d_k, c->dv1,
          0, WHOLE);
    times(c, outer, c->keys, c->l.narrow, 1, dense(c->state, c->l.wide), false, c->n, c->dv1,
          h->d_k, 0, WHOLE);
    if (h->causal) {
        triangle_of(c, c->grads, c->values, c->l.wide, c->dv1);
        times(c, inner, c->triangle, 1, c->l.side, dense(c->queries, c->l.narrow), false, c->n,
              h->d_k, c->m, 1, FROM);
        triangle_of(c, c->queries, c->keys, c->l.narrow, h->d_k);
        times(c, outer, c->triangle, 1, c->l.side, dense(c->grads, c->l.wide), false, c->n, c->dv1,
              c->m, 1, FROM);
    }
    if (h->d_k_rows.at)
        map_back(rows_of(h->d_k_rows, c->at), c->inner, c->l.narrow, rows_of(h->k, c->at), c->n,
                 h->d_k);
    for (int64_t j = 0; h->d_v_rows.at && j < c->n; j++)
        for (int64_t x = 0; x < h->d_v; x++)
            h->d_v_rows.at[(c->at + j) * h->d_v_rows.ld + x] += c->outer[j * c->l.wide + x];
}

/* From the first chunk to the last, with the state of the keys before. */
static void backward_queries(const heed__linear_head *h)
{
    chunk c = begin(h);
    if (!h->causal)
        add_all_keys(&c);
    for (int64_t at = 0; at < h->t; at += CHUNK) {
        move_to(&c, at);
        load_grads(&c);
        if (h->causal)
            load_keys(&c);
        to_queries(&c);
        if (h->causal)
            add_state(&c, c.keys, c.values, c.n);
    }
}

static void add_queries(chunk *c)
{
    load_queries(c);
    load_grads(c);
    add_state(c, c->queries, c->grads, c->m);
}

/* From the last chunk to the first, with R of the queries behind. */
static void backward_keys(const heed__linear_head *h)
{
    const int64_t rows = h->t > h->s ? h->t : h->s;
    chunk c = begin(h);
    for (int64_t at = 0; !h->causal && at < h->t; at += CHUNK) {
        move_to(&c, at);
        add_queries(&c);
    }
    for (int64_t at = (rows + CHUNK - 1) / CHUNK * CHUNK; (at -= CHUNK) >= 0;) {
        move_to(&c, at);
        load_keys(&c);
        if (h->causal) {
            load_queries(&c);
            load_grads(&c);
        }
        to_keys(&c);
        if (h->causal)
            add_state(&c, c.queries, c.grads, c.m);
    }
}

void K(linear_backward)(const heed__linear_head *h)
{
    if (h->d_q.at)
        backward_queries(h);
    if (h->d_k_rows.at || h->d_v_rows.at)
        backward_keys(h);
}

/* ---- one by one ---- */

void K(linear_learn)(real *state, const real *k, const real *v, int64_t d_k, int64_t d_v,
                     real *room)
{
    real *z = state + d_k * d_v;
    map_rows(room, d_k, dense((real *)k, d_k), 1, d_k);
    for (int64_t i = 0; i < d_k; i++, state += d_v) {
        const vreal x = vset(room[i]);
        for (int64_t j = 0; j < d_v; j += VW)
            vstore_at(state, vload_at(state, j, d_v) + x * vload_at(v, j, d_v), j, d_v);
        z[i] += room[i];
    }
}

void K(linear_ask)(real *out, const real *state, const real *q, int64_t d_k, int64_t d_v, real eps,
                   real *room)
{
    const real *z = state + d_k * d_v;
    map_rows(room, d_k, dense((real *)q, d_k), 1, d_k);
    real total = eps;
    for (int64_t i = 0; i < d_k; i++)
        total += room[i] * z[i];
    const vreal inverse = vset(1 / total);
    for (int64_t j = 0; j < d_v; j += VW) {
        vreal sum = {0};
        for (int64_t i = 0; i < d_k; i++)
            sum += vset(room[i]) * vload_at(state + i * d_v, j, d_v);
        vstore_at(out, sum * inverse, j, d_v);
    }
}
