/* delta_head.c: see delta_head.h.
 *
 * Rows go in chunks (Yang et al. 2024).  With W the weights before a chunk, K its phi(k) and A the
 * part of K K^T below the diagonal, the chunk's errors solve
 *   E = V - K W - A (b E),  then  O = Q W + tril(Q K^T) (b E)  and  W += K^T (b E)
 * which costs products and one triangle.  Backward goes from the last chunk to the first and takes
 * K^T (b E) away again: W needs not be kept for each chunk. */
#include "kernel/delta_head.h"

#include "kernel/feature_rows.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_DELTA_HEAD(DECLARE)

/* ---- scratch ---- */

/* W and its gradient (M,Dv); of a chunk phi(q), phi(k) and their gradients; e, b e and its
 * gradient, dO; two triangles; strips; the mapper's. */
typedef struct delta_layout {
    int64_t narrow, wide, side;
    int64_t state, d_state, queries, keys, d_queries, d_keys, errors, steps, d_steps, d_out, inner,
        outer, strips, mapper, end;
} delta_layout;

static delta_layout lay_out(const heed__features *f, int64_t d_v)
{
    const int64_t m = heed__feature_columns(f);
    delta_layout l = {
        .narrow = round_up(m, VW), .wide = round_up(d_v, VW), .side = round_up(CHUNK, VW)};
    l.d_state = l.state + m * l.wide;
    l.queries = l.d_state + m * l.wide;
    l.keys = l.queries + CHUNK * l.narrow;
    l.d_queries = l.keys + CHUNK * l.narrow;
    l.d_keys = l.d_queries + CHUNK * l.narrow;
    l.errors = l.d_keys + CHUNK * l.narrow;
    l.steps = l.errors + CHUNK * l.wide;
    l.d_steps = l.steps + CHUNK * l.wide;
    l.d_out = l.d_steps + CHUNK * l.wide;
    l.inner = l.d_out + CHUNK * l.wide;
    l.outer = l.inner + CHUNK * l.side;
    l.strips = l.outer + CHUNK * l.side;
    l.mapper = l.strips + larger(larger(strips_size(m, d_v), strips_size(d_v, m)),
                                 larger(l.side * larger(m, d_v), CHUNK * larger(l.narrow, l.wide)));
    l.end = l.mapper + mapper_size(f);
    return l;
}

size_t K(delta_scratch)(const heed__features *f, int64_t d_v)
{
    return (size_t)lay_out(f, d_v).end * sizeof(real);
}

/* Rows `at` to at + n. */
typedef struct delta_chunk {
    const heed__delta_head *h;
    delta_layout l;
    mapper mapper;
    real *state, *d_state, *queries, *keys, *d_queries, *d_keys, *errors, *steps, *d_steps, *d_out,
        *inner, *outer, *strips;
    int64_t at, n, columns;                /* columns: of phi */
    real query_sum[CHUNK], key_sum[CHUNK]; /* feature_rows.h: inverse */
    real rate[CHUNK];                      /* b */
} delta_chunk;

static delta_chunk begin(const heed__delta_head *h)
{
    const delta_layout l = lay_out(&h->features, h->d_v);
    real *s = h->scratch;
    delta_chunk c = {.h = h, .l = l, .columns = heed__feature_columns(&h->features)};
    c.state = s + l.state;
    c.d_state = s + l.d_state;
    c.queries = s + l.queries;
    c.keys = s + l.keys;
    c.d_queries = s + l.d_queries;
    c.d_keys = s + l.d_keys;
    c.errors = s + l.errors;
    c.steps = s + l.steps;
    c.d_steps = s + l.d_steps;
    c.d_out = s + l.d_out;
    c.inner = s + l.inner;
    c.outer = s + l.outer;
    c.strips = s + l.strips;
    c.mapper = mapper_new(&h->features, s + l.mapper);
    memset(c.state, 0, (size_t)(2 * c.columns * l.wide) * sizeof(real)); /* and d_state */
    return c;
}

static void load_queries(delta_chunk *c)
{
    map_rows(&c->mapper, c->queries, c->l.narrow, rows_of(c->h->q, c->at), c->n, true,
             c->query_sum);
}

/* phi(k) and b. */
static void load_keys(delta_chunk *c)
{
    map_rows(&c->mapper, c->keys, c->l.narrow, rows_of(c->h->k, c->at), c->n, false, c->key_sum);
    for (int64_t j = 0; j < c->n; j++)
        c->rate[j] = (real)(1 / (1 + exp(-(double)c->h->gate.at[(c->at + j) * c->h->gate.ld])));
}

static void load_rows(const delta_chunk *c, real *to, heed__matrix x)
{
    for (int64_t j = 0; j < c->n; j++)
        memcpy(to + j * c->l.wide, x.at + (c->at + j) * x.ld, (size_t)c->h->d_v * sizeof(real));
}

/* b e */
static void make_steps(const delta_chunk *c)
{
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t x = 0; x < c->h->d_v; x++)
            c->steps[j * c->l.wide + x] = c->rate[j] * c->errors[j * c->l.wide + x];
}

/* ---- products ---- */

VINLINE heed__matrix wide(const delta_chunk *c, real *x)
{
    return dense(x, c->l.wide);
}

/* to (n,n) = A B^T; what is behind column i + most of row i is left to the caller. */
static void pairs_of(const delta_chunk *c, real *to, const real *a, const real *b, int64_t ld,
                     int64_t k)
{
    times(c->strips, dense(to, c->l.side), a, ld, 1, dense((real *)b, ld), true, c->n, c->n, k, 0,
          COLUMNS);
}

/* Zeros from column i + first of row i on. */
static void cut(const delta_chunk *c, real *x, int64_t first)
{
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t j = i + first; j < c->n; j++)
            x[i * c->l.side + j] = 0;
}

/* state += A^T B over the rows of the chunk. */
static void add_rows(const delta_chunk *c, real *state, const real *a, const real *b)
{
    times(c->strips, wide(c, state), a, 1, c->l.narrow, dense((real *)b, c->l.wide), false,
          c->columns, c->h->d_v, c->n, 1, WHOLE);
}

/* y -= x over rows of Dv */
static void subtract(const delta_chunk *c, real *y, const real *x)
{
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t i = 0; i < c->h->d_v; i++)
            y[j * c->l.wide + i] -= x[j * c->l.wide + i];
}

static void add_scaled(real *y, const real *x, real by, int64_t n)
{
    for (int64_t j = 0; j < n; j += VW)
        vstore_at(y, vload_at(y, j, n) + by * vload_at(x, j, n), j, n);
}

/* ---- forward ---- */

/* E = V - K W - A (b E), row by row, and b E. */
static void solve(delta_chunk *c)
{
    const int64_t d = c->h->d_v;
    load_rows(c, c->errors, c->h->v);
    times(c->strips, wide(c, c->d_steps), c->keys, c->l.narrow, 1, wide(c, c->state), false, c->n,
          d, c->columns, 0, WHOLE);
    subtract(c, c->errors, c->d_steps);
    pairs_of(c, c->inner, c->keys, c->keys, c->l.narrow, c->columns);
    for (int64_t i = 0; i < c->n; i++) {
        real *e = c->errors + i * c->l.wide, *step = c->steps + i * c->l.wide;
        for (int64_t j = 0; j < i; j++)
            add_scaled(e, c->steps + j * c->l.wide, -c->inner[i * c->l.side + j], d);
        for (int64_t x = 0; x < d; x++)
            step[x] = c->rate[i] * e[x];
        memcpy(c->h->error.at + (c->at + i) * c->h->error.ld, e, (size_t)d * sizeof *e);
    }
}

void K(delta_forward)(const heed__delta_head *h)
{
    delta_chunk c = begin(h);
    for (c.at = 0; c.at < h->t; c.at += CHUNK) {
        const heed__matrix out = rows_of(h->out, c.at);
        c.n = left(h->t, c.at);
        load_queries(&c);
        load_keys(&c);
        solve(&c);
        times(c.strips, out, c.queries, c.l.narrow, 1, wide(&c, c.state), false, c.n, h->d_v,
              c.columns, 0, WHOLE);
        pairs_of(&c, c.outer, c.queries, c.keys, c.l.narrow, c.columns);
        cut(&c, c.outer, 1);
        times(c.strips, out, c.outer, c.l.side, 1, wide(&c, c.steps), false, c.n, h->d_v, c.n, 1,
              UPTO);
        add_rows(&c, c.state, c.keys, c.steps);
    }
}

/* ---- backward ---- */

/* What forward left behind the last row. */
static void make_state(delta_chunk *c)
{
    for (c->at = 0; c->at < c->h->t; c->at += CHUNK) {
        c->n = left(c->h->t, c->at);
        load_keys(c);
        load_rows(c, c->errors, c->h->error);
        make_steps(c);
        add_rows(c, c->state, c->keys, c->steps);
    }
}

/* O = Q W + tril(Q K^T) U and W' = W + K^T U, U = b E, dW' in d_state:
 *   dU = tril(Q K^T)^T dO + K dW',  dQ = dO W^T + tril(dO U^T) K,
 *   dK = U dW'^T + tril(dO U^T)^T Q */
static void read_back(const delta_chunk *c)
{
    const int64_t d = c->h->d_v, m = c->columns;
    const heed__matrix d_keys = dense(c->d_keys, c->l.narrow);
    times(c->strips, wide(c, c->d_steps), c->keys, c->l.narrow, 1, wide(c, c->d_state), false, c->n,
          d, m, 0, WHOLE);
    pairs_of(c, c->outer, c->queries, c->keys, c->l.narrow, m);
    cut(c, c->outer, 1);
    times(c->strips, wide(c, c->d_steps), c->outer, 1, c->l.side, wide(c, c->d_out), false, c->n, d,
          c->n, 1, FROM);
    times(c->strips, d_keys, c->steps, c->l.wide, 1, wide(c, c->d_state), true, c->n, m, d, 0,
          WHOLE);
    pairs_of(c, c->outer, c->d_out, c->steps, c->l.wide, d);
    cut(c, c->outer, 1);
    times(c->strips, d_keys, c->outer, 1, c->l.side, dense(c->queries, c->l.narrow), false, c->n, m,
          c->n, 1, FROM);
    times(c->strips, dense(c->d_queries, c->l.narrow), c->d_out, c->l.wide, 1, wide(c, c->state),
          true, c->n, m, d, 0, WHOLE);
    times(c->strips, dense(c->d_queries, c->l.narrow), c->outer, c->l.side, 1,
          dense(c->keys, c->l.narrow), false, c->n, m, c->n, 1, UPTO);
}

/* E = R - A U: from the last row on dE_i = b_i dU_i and dU_j -= A_ij dE_i; db_i = dU_i.E_i.  dE
 * takes dU's place, and is dV. */
static void solve_back(const delta_chunk *c)
{
    const heed__delta_head *h = c->h;
    const int64_t d = h->d_v;
    pairs_of(c, c->inner, c->keys, c->keys, c->l.narrow, c->columns);
    for (int64_t i = c->n - 1; i >= 0; i--) {
        real *up = c->d_steps + i * c->l.wide;
        const real rate = c->rate[i];
        if (h->d_gate.at)
            h->d_gate.at[(c->at + i) * h->d_gate.ld] +=
                rate * (1 - rate) * dot_row(up, c->errors + i * c->l.wide, d);
        scale_row(up, rate, d);
        for (int64_t j = 0; j < i; j++)
            add_scaled(c->d_steps + j * c->l.wide, up, -c->inner[i * c->l.side + j], d);
        if (h->d_v_rows.at)
            add_scaled(h->d_v_rows.at + (c->at + i) * h->d_v_rows.ld, up, 1, d);
    }
}

/* R = V - K W and A = K K^T: dK -= dE W^T + (dE U^T) K + (dE U^T)^T K, below the diagonal alone;
 * dW = dW' + Q^T dO - K^T dE. */
static void keys_back(const delta_chunk *c)
{
    const int64_t d = c->h->d_v, m = c->columns;
    const heed__matrix d_keys = dense(c->d_keys, c->l.narrow);
    pairs_of(c, c->outer, c->d_steps, c->steps, c->l.wide, d);
    cut(c, c->outer, 0);
    for (int64_t i = 0; i < c->n; i++) {
        scale_row(c->outer + i * c->l.side, -1, c->n);
        scale_row(c->d_steps + i * c->l.wide, -1, d);
    }
    times(c->strips, d_keys, c->outer, c->l.side, 1, dense(c->keys, c->l.narrow), false, c->n, m,
          c->n, 1, UPTO);
    times(c->strips, d_keys, c->outer, 1, c->l.side, dense(c->keys, c->l.narrow), false, c->n, m,
          c->n, 1, FROM);
    times(c->strips, d_keys, c->d_steps, c->l.wide, 1, wide(c, c->state), true, c->n, m, d, 1,
          WHOLE);
    add_rows(c, c->d_state, c->queries, c->d_out);
    add_rows(c, c->d_state, c->keys, c->d_steps);
}

void K(delta_backward)(const heed__delta_head *h)
{
    delta_chunk c = begin(h);
    make_state(&c);
    for (int64_t at = (h->t + CHUNK - 1) / CHUNK * CHUNK; (at -= CHUNK) >= 0;) {
        c.at = at;
        c.n = left(h->t, at);
        load_queries(&c);
        load_keys(&c);
        load_rows(&c, c.d_out, h->d_out);
        load_rows(&c, c.errors, h->error);
        make_steps(&c);
        for (int64_t j = 0; j < c.n; j++) /* W before the chunk */
            scale_row(c.steps + j * c.l.wide, -1, h->d_v);
        add_rows(&c, c.state, c.keys, c.steps);
        make_steps(&c);
        read_back(&c);
        solve_back(&c);
        keys_back(&c);
        if (h->d_q.at)
            map_back(&c.mapper, rows_of(h->d_q, at), c.d_queries, c.queries, c.l.narrow,
                     rows_of(h->q, at), c.n, c.query_sum);
        if (h->d_k_rows.at)
            map_back(&c.mapper, rows_of(h->d_k_rows, at), c.d_keys, c.keys, c.l.narrow,
                     rows_of(h->k, at), c.n, c.key_sum);
    }
}

/* ---- one by one ---- */

void K(delta_ask)(const heed__features *f, real *out, const real *state, const real *q, int64_t d_v,
                  real *room)
{
    const int64_t m = heed__feature_columns(f);
    map_one(f, room, q, true, room + m);
    for (int64_t j = 0; j < d_v; j += VW) {
        vreal mixed = {0};
        for (int64_t i = 0; i < m; i++)
            mixed += vset(room[i]) * vload_at(state + i * d_v, j, d_v);
        vstore_at(out, mixed, j, d_v);
    }
}

void K(delta_learn)(const heed__features *f, real *state, const real *k, const real *v, int64_t d_v,
                    const real *gate, real *room)
{
    const int64_t m = heed__feature_columns(f);
    real *step = room + heed__feature_room(f);
    const real rate = vsigmoid(vset(*gate))[0];
    map_one(f, room, k, false, room + m);
    for (int64_t j = 0; j < d_v; j += VW) {
        vreal read = {0};
        for (int64_t i = 0; i < m; i++)
            read += vset(room[i]) * vload_at(state + i * d_v, j, d_v);
        vstore_at(step, rate * (vload_at(v, j, d_v) - read), j, d_v);
    }
    for (int64_t i = 0; i < m; i++)
        add_scaled(state + i * d_v, step, room[i], d_v);
}
