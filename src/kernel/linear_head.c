/* linear_head.c: see linear_head.h.
 *
 * Rows go in chunks.  Of earlier chunks a query sees S alone; inside its own, causality is a
 * triangle of CHUNK by CHUNK products.  Values have one more column, of ones, so that S has the sum
 * of phi(k) beside it and the denominator is a column of the result; and their gradient, likewise.
 *
 * With gates, what key j has added is at query i worth exp(c_i - c_j) (1 - g_j), c the sum of log g
 * from the chunk's first row on: at most 1 in the triangle, and so are exp(c_i) for what was there
 * before the chunk and exp(c_last - c_j) for what is left behind it. */
#include "kernel/linear_head.h"

#include "kernel/feature_rows.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_LINEAR_HEAD(DECLARE)

/* ---- scratch ---- */

/* A state (M,Dv+1); of a chunk phi(q), phi(k), their gradient, [v 1], its gradient, [g e], and the
 * triangle; strips of whatever is multiplied with; the mapper's.  `wide` is Dv+1, rounded up. */
typedef struct linear_layout {
    int64_t narrow, wide, side;
    int64_t state, queries, keys, inner, values, outer, grads, triangle, strips, mapper, end;
} linear_layout;

static linear_layout lay_out(const heed__features *f, int64_t d_v)
{
    const int64_t m = heed__feature_columns(f);
    linear_layout l = {.narrow = round_up(m, VW), .wide = round_up(d_v + 1, VW)};
    l.side = round_up(CHUNK, VW);
    l.queries = l.state + m * l.wide;
    l.keys = l.queries + CHUNK * l.narrow;
    l.inner = l.keys + CHUNK * l.narrow;
    l.values = l.inner + CHUNK * l.narrow;
    l.outer = l.values + CHUNK * l.wide;
    l.grads = l.outer + CHUNK * l.wide;
    l.triangle = l.grads + CHUNK * l.wide;
    l.strips = l.triangle + CHUNK * l.side;
    /* The largest: a state as it is or transposed, or a chunk of rows either way. */
    l.mapper =
        l.strips + larger(larger(strips_size(m, d_v + 1), strips_size(d_v + 1, m)),
                          larger(l.side * larger(m, d_v + 1), CHUNK * larger(l.narrow, l.wide)));
    l.end = l.mapper + mapper_size(f);
    return l;
}

size_t K(linear_scratch)(const heed__features *f, int64_t d_v)
{
    return (size_t)lay_out(f, d_v).end * sizeof(real);
}

/* A chunk of queries and keys from row `at` on: m and n of them. */
typedef struct chunk {
    const heed__linear_head *h;
    linear_layout l;
    mapper mapper;
    real *state, *queries, *keys, *inner, *values, *outer, *grads, *triangle, *strips;
    int64_t at, m, n, columns, dv1;                /* columns: of phi; dv1: Dv + 1 */
    real query_sum[CHUNK], key_sum[CHUNK];         /* feature_rows.h: inverse */
    real fallen[CHUNK], kept[CHUNK], share[CHUNK]; /* with gates: c_i; g_i; 1 - g_i */
} chunk;

static chunk begin(const heed__linear_head *h)
{
    const linear_layout l = lay_out(&h->features, h->d_v);
    real *s = h->scratch;
    chunk c = {.h = h, .l = l, .dv1 = h->d_v + 1};
    c.columns = heed__feature_columns(&h->features);
    c.state = s + l.state;
    c.queries = s + l.queries;
    c.keys = s + l.keys;
    c.inner = s + l.inner;
    c.values = s + l.values;
    c.outer = s + l.outer;
    c.grads = s + l.grads;
    c.triangle = s + l.triangle;
    c.strips = s + l.strips;
    c.mapper = mapper_new(&h->features, s + l.mapper);
    memset(c.state, 0, (size_t)(c.columns * l.wide) * sizeof(real));
    return c;
}

static void move_to(chunk *c, int64_t at)
{
    c->at = at;
    c->m = left(c->h->t, at);
    c->n = left(c->h->s, at);
}

static void load_queries(chunk *c)
{
    map_rows(&c->mapper, c->queries, c->l.narrow, rows_of(c->h->q, c->at), c->m, true,
             c->query_sum);
}

/* log g = -log(1 + exp(-x)) */
static void load_gates(chunk *c)
{
    double fallen = 0;
    for (int64_t j = 0; c->h->gate.at && j < c->n; j++) {
        const double x = (double)c->h->gate.at[(c->at + j) * c->h->gate.ld];
        fallen -= x > 0 ? log1p(exp(-x)) : log1p(exp(x)) - x;
        c->fallen[j] = (real)fallen;
        c->kept[j] = (real)(1 / (1 + exp(-x)));
        c->share[j] = (real)(1 / (1 + exp(x)));
    }
}

/* phi(k), [v 1], gates. */
static void load_keys(chunk *c)
{
    const int64_t d_v = c->h->d_v;
    map_rows(&c->mapper, c->keys, c->l.narrow, rows_of(c->h->k, c->at), c->n, false, c->key_sum);
    for (int64_t j = 0; j < c->n; j++) {
        real *to = c->values + j * c->l.wide;
        memcpy(to, c->h->v.at + (c->at + j) * c->h->v.ld, (size_t)d_v * sizeof(real));
        to[d_v] = 1;
    }
    load_gates(c);
}

/* [g e]: with O = N / D, g = dO / D = dN and e = - dO.O / D = dD. */
static void load_grads(const chunk *c)
{
    const heed__linear_head *h = c->h;
    for (int64_t i = 0; i < c->m; i++) {
        const int64_t row = c->at + i;
        const real *d_out = h->d_out.at + row * h->d_out.ld, *out = h->out.at + row * h->out.ld;
        const real total = h->total.at[row * h->total.ld], inverse = 1 / total;
        real *to = c->grads + i * c->l.wide, sum = 0;
        for (int64_t j = 0; j < h->d_v; j++) {
            to[j] = d_out[j] * inverse;
            sum += d_out[j] * out[j];
        }
        to[h->d_v] = h->floor && total <= h->eps ? 0 : -sum * inverse;
    }
}

/* ---- products ---- */

/* triangle (m,n) = A B^T, row i kept to column i; with gates, each times what is left of it. */
static void triangle_of(const chunk *c, const real *a, const real *b, int64_t ld, int64_t k)
{
    times(c->strips, dense(c->triangle, c->l.side), a, ld, 1, dense((real *)b, ld), true, c->m,
          c->n, k, 0, COLUMNS);
    for (int64_t i = 0; i + 1 < c->n && i < c->m; i++)
        memset(c->triangle + i * c->l.side + i + 1, 0, (size_t)(c->n - i - 1) * sizeof(real));
    for (int64_t i = 0; c->h->gate.at && i < c->m; i++) {
        real *row = c->triangle + i * c->l.side;
        for (int64_t j = 0; j <= i; j += VW) {
            const vreal left = vexp(c->fallen[i] - vload_at(c->fallen, j, i + 1));
            vstore_at(row, vload_at(row, j, i + 1) * left * vload_at(c->share, j, i + 1), j, i + 1);
        }
    }
}

VINLINE real exp_of(real x)
{
    return vexp(vset(x))[0];
}

/* What of the sums before the chunk is left at row i, and behind its last row. */
VINLINE real left_at(const chunk *c, int64_t i)
{
    return c->h->gate.at ? exp_of(c->fallen[i]) : 1;
}

/* What of key j is left behind the chunk. */
VINLINE real left_of(const chunk *c, int64_t j)
{
    return exp_of(c->fallen[c->n - 1] - c->fallen[j]) * c->share[j];
}

/* state = left state + A^T B over the rows of a chunk. */
static void add_state(const chunk *c, const real *a, const real *b, int64_t rows)
{
    if (c->h->gate.at && c->n)
        scale_row(c->state, left_at(c, c->n - 1), c->columns * c->l.wide);
    times(c->strips, dense(c->state, c->l.wide), a, 1, c->l.narrow, dense((real *)b, c->l.wide),
          false, c->columns, c->dv1, rows, 1, WHOLE);
}

/* Keys into the state; their rows are scaled and no longer phi(k). */
static void add_keys(const chunk *c)
{
    for (int64_t j = 0; c->h->gate.at && j < c->n; j++)
        scale_row(c->keys + j * c->l.narrow, left_of(c, j), c->columns);
    add_state(c, c->keys, c->values, c->n);
}

/* ---- forward ---- */

/* [N D] = phi(q) [S z], and inside the chunk tril(phi(q) phi(k)^T) [v 1]; O = N / (D + eps). */
static void answer(const chunk *c)
{
    const heed__linear_head *h = c->h;
    const heed__matrix sums = dense(c->outer, c->l.wide);
    times(c->strips, sums, c->queries, c->l.narrow, 1, dense(c->state, c->l.wide), false, c->m,
          c->dv1, c->columns, 0, WHOLE);
    for (int64_t i = 0; h->gate.at && i < c->m; i++)
        scale_row(c->outer + i * c->l.wide, left_at(c, i), c->dv1);
    if (h->causal) {
        triangle_of(c, c->queries, c->keys, c->l.narrow, c->columns);
        times(c->strips, sums, c->triangle, c->l.side, 1, dense(c->values, c->l.wide), false, c->m,
              c->dv1, c->n, 1, UPTO);
    }
    for (int64_t i = 0; i < c->m; i++) {
        const real *from = c->outer + i * c->l.wide;
        const int64_t row = c->at + i;
        const real sum = from[h->d_v];
        const real total = !h->floor ? sum + h->eps : sum > h->eps ? sum : h->eps;
        const real inverse = 1 / total;
        h->total.at[row * h->total.ld] = total;
        for (int64_t j = 0; j < h->d_v; j++)
            h->out.at[row * h->out.ld + j] = from[j] * inverse;
    }
}

/* The sums over all keys. */
static void add_all_keys(chunk *c)
{
    for (int64_t at = 0; at < c->h->s; at += CHUNK) {
        move_to(c, at);
        load_keys(c);
        add_keys(c);
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
            add_keys(&c);
    }
}

/* ---- backward ---- */

/* [N D]_i = phi(q_i) [S z]_i, so dphi(q_i) = [g e]_i [S z]_i^T: of earlier chunks by their state,
 * inside the chunk tril([g e] [v 1]^T) phi(k). */
static void to_queries(chunk *c)
{
    const heed__linear_head *h = c->h;
    const heed__matrix inner = dense(c->inner, c->l.narrow);
    times(c->strips, inner, c->grads, c->l.wide, 1, dense(c->state, c->l.wide), true, c->m,
          c->columns, c->dv1, 0, WHOLE);
    for (int64_t i = 0; h->gate.at && i < c->m; i++)
        scale_row(c->inner + i * c->l.narrow, left_at(c, i), c->columns);
    if (h->causal) {
        triangle_of(c, c->grads, c->values, c->l.wide, c->dv1);
        times(c->strips, inner, c->triangle, c->l.side, 1, dense(c->keys, c->l.narrow), false, c->m,
              c->columns, c->n, 1, UPTO);
    }
    for (int64_t i = 0; h->gate.at && i < c->m; i++)
        h->along.at[(c->at + i) * h->along.ld] =
            dot_row(c->queries + i * c->l.narrow, c->inner + i * c->l.narrow, c->columns);
    if (h->d_q.at)
        map_back(&c->mapper, rows_of(h->d_q, c->at), c->inner, c->queries, c->l.narrow,
                 rows_of(h->q, c->at), c->m, c->query_sum);
}

/* With P_ij = phi(q_i).phi(k_j) exp(c_i - c_j) (1 - g_j) and what its gradient is, c_i gets row i
 * of P dP less column i: phi(q_i).dphi(q_i) - phi(k_i).dphi(k_i).  log g_t is in every c_i from t
 * on; d log g = (1 - g) dx and d log(1 - g) = -g dx. */
static void to_gates(const chunk *c, real *later)
{
    const heed__linear_head *h = c->h;
    for (int64_t j = c->n - 1; j >= 0; j--) {
        const int64_t row = c->at + j;
        const real own = dot_row(c->keys + j * c->l.narrow, c->inner + j * c->l.narrow, c->columns);
        *later += h->along.at[row * h->along.ld] - own;
        if (h->d_gate.at)
            h->d_gate.at[row * h->d_gate.ld] += c->share[j] * *later - c->kept[j] * own;
    }
}

/* [S z]_i = sum_j phi(k_j) [v 1]_j, so with R = sum_i phi(q_i)^T [g e]_i over the queries that see
 * key j: dphi(k_j) = R [v 1]_j, d[v 1]_j = phi(k_j) R.  R of later chunks is the state now. */
static void to_keys(chunk *c, real *later)
{
    const heed__linear_head *h = c->h;
    const heed__matrix inner = dense(c->inner, c->l.narrow), outer = dense(c->outer, c->l.wide);
    times(c->strips, inner, c->values, c->l.wide, 1, dense(c->state, c->l.wide), true, c->n,
          c->columns, c->dv1, 0, WHOLE);
    times(c->strips, outer, c->keys, c->l.narrow, 1, dense(c->state, c->l.wide), false, c->n,
          c->dv1, c->columns, 0, WHOLE);
    for (int64_t j = 0; h->gate.at && j < c->n; j++) {
        scale_row(c->inner + j * c->l.narrow, left_of(c, j), c->columns);
        scale_row(c->outer + j * c->l.wide, left_of(c, j), c->dv1);
    }
    if (h->causal) {
        triangle_of(c, c->grads, c->values, c->l.wide, c->dv1);
        times(c->strips, inner, c->triangle, 1, c->l.side, dense(c->queries, c->l.narrow), false,
              c->n, c->columns, c->m, 1, FROM);
        triangle_of(c, c->queries, c->keys, c->l.narrow, c->columns);
        times(c->strips, outer, c->triangle, 1, c->l.side, dense(c->grads, c->l.wide), false, c->n,
              c->dv1, c->m, 1, FROM);
    }
    if (h->gate.at)
        to_gates(c, later);
    if (h->d_k_rows.at)
        map_back(&c->mapper, rows_of(h->d_k_rows, c->at), c->inner, c->keys, c->l.narrow,
                 rows_of(h->k, c->at), c->n, c->key_sum);
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
        load_queries(&c);
        if (h->causal)
            load_keys(&c);
        to_queries(&c);
        if (h->causal)
            add_keys(&c);
    }
}

/* Queries into R; their rows are scaled and no longer phi(q). */
static void add_queries(chunk *c)
{
    for (int64_t i = 0; c->h->gate.at && i < c->m; i++)
        scale_row(c->queries + i * c->l.narrow, left_at(c, i), c->columns);
    add_state(c, c->queries, c->grads, c->m);
}

/* From the last chunk to the first, with R of the queries behind. */
static void backward_keys(const heed__linear_head *h)
{
    const int64_t rows = h->t > h->s ? h->t : h->s;
    chunk c = begin(h);
    real later = 0;
    for (int64_t at = 0; !h->causal && at < h->t; at += CHUNK) {
        move_to(&c, at);
        load_queries(&c);
        load_grads(&c);
        add_queries(&c);
    }
    for (int64_t at = (rows + CHUNK - 1) / CHUNK * CHUNK; (at -= CHUNK) >= 0;) {
        move_to(&c, at);
        load_keys(&c);
        if (h->causal) {
            load_queries(&c);
            load_grads(&c);
        }
        to_keys(&c, &later);
        if (h->causal)
            add_queries(&c);
    }
}

void K(linear_backward)(const heed__linear_head *h)
{
    if (h->d_q.at || h->d_gate.at)
        backward_queries(h);
    if (h->d_k_rows.at || h->d_v_rows.at || h->d_gate.at)
        backward_keys(h);
}

/* ---- one by one ---- */

void K(linear_learn)(const heed__features *f, real *state, const real *k, const real *v,
                     int64_t d_v, const real *gate, real *room)
{
    const int64_t m = heed__feature_columns(f);
    const real kept = gate ? vsigmoid(vset(*gate))[0] : 1;
    const real share = gate ? vsigmoid(vset(-*gate))[0] : 1;
    real *sum = state + m * d_v;
    map_one(f, room, k, false, room + m);
    for (int64_t i = 0; i < m; i++, state += d_v) {
        const vreal x = vset(room[i] * share);
        for (int64_t j = 0; j < d_v; j += VW)
            vstore_at(state, vload_at(state, j, d_v) * kept + x * vload_at(v, j, d_v), j, d_v);
        sum[i] = sum[i] * kept + room[i] * share;
    }
}

void K(linear_ask)(const heed__features *f, real *out, const real *state, const real *q,
                   int64_t d_v, real eps, bool floor, real *room)
{
    const int64_t m = heed__feature_columns(f);
    map_one(f, room, q, true, room + m);
    const real sum = dot_row(room, state + m * d_v, m);
    const real total = !floor ? sum + eps : sum > eps ? sum : eps;
    const vreal inverse = vset(1 / total);
    for (int64_t j = 0; j < d_v; j += VW) {
        vreal mixed = {0};
        for (int64_t i = 0; i < m; i++)
            mixed += vset(room[i]) * vload_at(state + i * d_v, j, d_v);
        vstore_at(out, mixed * inverse, j, d_v);
    }
}
