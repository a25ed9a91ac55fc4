/* Values and gradients at sizes that go through threads, CBLAS and more than one chunk or block,
 * where the gradient cases do not reach: against plain loops in double, with 1 to 4 threads and
 * with more threads than rows. */
#include <heed/heed.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int widths[] = {1, 2, 3, 4, 64};
#define WIDTHS ((int)(sizeof widths / sizeof *widths))
static const double tolerance = sizeof(heed_real) == 8 ? 1e-10 : 1e-4;

/* ---- plain loops ---- */

static uint64_t drawn; /* numbers so far, of the one stream of this program */

static double draw(void)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 7});
    return heed_rng_normal(&rng, drawn++);
}

static double *zeros(int64_t n)
{
    double *x = calloc((size_t)(n ? n : 1), sizeof *x);
    assert_non_null(x);
    return x;
}

/* Numbers that real represents, so that both sides start from the same. */
static double *numbers(int64_t n, double scale)
{
    double *x = zeros(n);
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(heed_real)(scale * draw());
    return x;
}

/* C (m,n) += op(A) op(B) */
static void multiply(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m,
                     int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            const double x = ta ? a[p * m + i] : a[i * k + p];
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += x * (tb ? b[j * k + p] : b[p * n + j]);
        }
}

static heed_real *narrow(const double *x, int64_t n)
{
    heed_real *y = malloc((size_t)(n ? n : 1) * sizeof *y);
    assert_non_null(y);
    for (int64_t i = 0; i < n; i++)
        y[i] = (heed_real)x[i];
    return y;
}

static heed_tensor *variable(heed_tape *t, heed_shape s, const double *x)
{
    heed_real *values = narrow(x, s.dim[0] * (s.rank > 1 ? s.dim[1] : 1));
    heed_tensor *v = heed_variable(t, s, values);
    free(values);
    return v;
}

/* As a slice of the middle columns of something wider, which has nothing to do with it. */
static heed_tensor *slice(heed_tape *t, int64_t rows, int64_t cols, const double *x)
{
    const int64_t wide = cols + 5;
    double *all = numbers(rows * wide, 1);
    for (int64_t r = 0; r < rows; r++)
        memcpy(all + r * wide + 2, x + r * cols, (size_t)cols * sizeof *x);
    heed_tensor *v = variable(t, HEED_SHAPE(rows, wide), all);
    free(all);
    return heed_slice_cols(t, v, 2, 2 + cols);
}

/* The largest difference, as a share of the largest number. */
static void alike(const char *what, int threads, const heed_real *x, int64_t stride,
                  const double *want, int64_t rows, int64_t cols)
{
    double most = 0, off = 0;
    assert_non_null(x);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const double d = fabs((double)x[i * stride + j] - want[i * cols + j]);
            most = fmax(most, fabs(want[i * cols + j]));
            off = d <= off ? off : d; /* a NaN stays */
        }
    if (!(off <= tolerance * most))
        fail_msg("%s with %d threads: off by %g of %g", what, threads, off, most);
}

static void value(const char *what, int threads, const heed_tensor *x, const double *want)
{
    alike(what, threads, heed_tensor_data(x), heed_tensor_stride(x), want, heed_tensor_rows(x),
          heed_tensor_cols(x));
}

static void grad(const char *what, int threads, const heed_tensor *x, const double *want)
{
    alike(what, threads, heed_tensor_grad(x), heed_tensor_stride(x), want, heed_tensor_rows(x),
          heed_tensor_cols(x));
}

static heed_tape *tape(int threads)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads, .seed = 3}, NULL);
    assert_non_null(t);
    return t;
}

/* Backward from sum(y * r): the gradient of y is r. */
static void backward_from(heed_tape *t, heed_tensor *y, const double *r)
{
    heed_real *values = narrow(r, heed_tensor_count(y));
    heed_tensor *weights = heed_input(t, heed_tensor_shape(y), values);
    free(values);
    heed_tensor *loss = heed_sum(t, heed_mul(t, y, weights), HEED_ALL);
    if (heed_backward(t, loss) != HEED_OK)
        fail_msg("%s", heed_tape_error(t)->text);
}

/* ---- products ---- */

static void linear_of(int64_t n, int64_t k, int64_t f, heed_activation act)
{
    double *x = numbers(n * k, 1), *w = numbers(k * f, 1 / sqrt((double)k)), *b = numbers(f, 1);
    double *r = numbers(n * f, 1), *y = zeros(n * f), *dx = zeros(n * k), *dw = zeros(k * f);
    double *db = zeros(f), *dz = zeros(n * f);
    for (int64_t i = 0; i < n * f; i++)
        y[i] = b[i % f];
    multiply(y, x, false, w, false, n, f, k);
    for (int64_t i = 0; i < n * f; i++) {
        const double z = y[i], s = 1 / (1 + exp(-z));
        if (act == HEED_SILU)
            y[i] = z * s;
        dz[i] = act == HEED_SILU ? r[i] * s * (1 + z * (1 - s)) : r[i];
        if (act == HEED_RELU && z < 1e-4) { /* near the kink both sides may be right: no gradient */
            y[i] = z > 0 ? z : 0;
            r[i] = dz[i] = 0;
        }
        db[i % f] += dz[i];
    }
    multiply(dx, dz, false, w, true, n, k, f);
    multiply(dw, x, true, dz, false, k, f, n);
    for (int i = 0; i < WIDTHS; i++) {
        heed_tape *t = tape(widths[i]);
        heed_tensor *tx = i % 2 ? slice(t, n, k, x) : variable(t, HEED_SHAPE(n, k), x);
        heed_tensor *tw = variable(t, HEED_SHAPE(k, f), w), *tb = variable(t, HEED_SHAPE(f), b);
        heed_tensor *ty = heed_linear(t, tx, tw, tb, act);
        backward_from(t, ty, r);
        value("linear", widths[i], ty, y);
        grad("linear dx", widths[i], tx, dx);
        grad("linear dw", widths[i], tw, dw);
        grad("linear db", widths[i], tb, db);
        heed_tape_free(t);
    }
    double *all[] = {x, w, b, r, y, dx, dw, db, dz};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Catches: a block of a product that a thread leaves out or makes twice, a bias or slope applied to
 * the wrong block, a leading dimension taken for the width. */
static void linear(void **state)
{
    (void)state;
    linear_of(1103, 67, 121, HEED_SILU);
    linear_of(517, 130, 150, HEED_RELU);
    linear_of(33, 300, 517, HEED_IDENTITY);
    linear_of(2100, 40, 1, HEED_IDENTITY);
    linear_of(2, 700, 900, HEED_SILU);
}

static void matmul_of(heed_transpose how, int64_t m, int64_t n, int64_t k)
{
    const bool ta = how == HEED_TN, tb = how == HEED_NT;
    double *a = numbers(m * k, 1), *b = numbers(k * n, 1), *r = numbers(m * n, 1);
    double *c = zeros(m * n), *da = zeros(m * k), *db = zeros(k * n);
    multiply(c, a, ta, b, tb, m, n, k);
    if (ta)
        multiply(da, b, false, r, true, k, m, n);
    else
        multiply(da, r, false, b, !tb, m, k, n);
    if (tb)
        multiply(db, r, true, a, false, n, k, m);
    else
        multiply(db, a, !ta, r, false, k, n, m);
    for (int i = 0; i < WIDTHS; i++) {
        heed_tape *t = tape(widths[i]);
        heed_tensor *x = i % 2 ? slice(t, ta ? k : m, ta ? m : k, a)
                               : variable(t, HEED_SHAPE(ta ? k : m, ta ? m : k), a);
        heed_tensor *y = i == 1 ? slice(t, tb ? n : k, tb ? k : n, b)
                                : variable(t, HEED_SHAPE(tb ? n : k, tb ? k : n), b);
        heed_tensor *z = heed_matmul(t, x, y, how);
        backward_from(t, z, r);
        value("matmul", widths[i], z, c);
        grad("matmul da", widths[i], x, da);
        grad("matmul db", widths[i], y, db);
        heed_tape_free(t);
    }
    double *all[] = {a, b, r, c, da, db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Catches: the wrong one of the nine products of a matmul, or a form of it (few rows, one column, a
 * short sum, CBLAS) that only large sizes choose. */
static void matmul(void **state)
{
    (void)state;
    for (int how = HEED_NN; how <= HEED_TN; how++) {
        matmul_of((heed_transpose)how, 523, 131, 97);
        matmul_of((heed_transpose)how, 13, 301, 270);
        matmul_of((heed_transpose)how, 197, 1, 601);
        matmul_of((heed_transpose)how, 1, 600, 300);
        matmul_of((heed_transpose)how, 700, 300, 3);
    }
}

/* ---- attention ---- */

enum { SENTENCES = 5, HEADS = 3, DK = 20, DV = 23 };
static const int64_t asked[SENTENCES] = {100, 0, 57, 1, 133},
                     known[SENTENCES] = {61, 4, 130, 0, 99};

struct heads { /* packed rows, gradients behind them */
    double *q, *k, *v, *r, *out, *dq, *dk, *dv;
    int64_t n, m;
};

static void one_head(struct heads *a, int head, int64_t q0, int64_t t, int64_t k0, int64_t s,
                     bool causal)
{
    double *p = zeros(s), *dp = zeros(s);
    const double scale = 1 / sqrt((double)DK);
    for (int64_t i = 0; i < t; i++) {
        const int64_t row = q0 + i, seen = causal && i + 1 < s ? i + 1 : s;
        const double *q = a->q + row * HEADS * DK + head * DK;
        const double *r = a->r + row * HEADS * DV + head * DV;
        double *out = a->out + row * HEADS * DV + head * DV;
        double top = -INFINITY, sum = 0, along = 0;
        for (int64_t j = 0; j < seen; j++) {
            p[j] = 0;
            for (int d = 0; d < DK; d++)
                p[j] += scale * q[d] * a->k[(k0 + j) * HEADS * DK + head * DK + d];
            top = fmax(top, p[j]);
        }
        for (int64_t j = 0; j < seen; j++)
            sum += p[j] = exp(p[j] - top);
        for (int64_t j = 0; j < seen; j++) {
            const int64_t at = (k0 + j) * HEADS * DV + head * DV;
            p[j] /= sum;
            dp[j] = 0;
            for (int d = 0; d < DV; d++) {
                out[d] += p[j] * a->v[at + d];
                dp[j] += r[d] * a->v[at + d];
                a->dv[at + d] += p[j] * r[d];
            }
            along += p[j] * dp[j];
        }
        for (int64_t j = 0; j < seen; j++) {
            const int64_t at = (k0 + j) * HEADS * DK + head * DK;
            const double dz = scale * p[j] * (dp[j] - along);
            for (int d = 0; d < DK; d++) {
                a->dq[row * HEADS * DK + head * DK + d] += dz * a->k[at + d];
                a->dk[at + d] += dz * q[d];
            }
        }
    }
    free(p);
    free(dp);
}

static void attention_of(bool self, bool causal)
{
    const int64_t *keys = self ? asked : known;
    struct heads a = {0};
    for (int b = 0; b < SENTENCES; b++) {
        a.n += asked[b];
        a.m += keys[b];
    }
    a.q = numbers(a.n * HEADS * DK, 1);
    a.k = numbers(a.m * HEADS * DK, 1);
    a.v = numbers(a.m * HEADS * DV, 1);
    a.r = numbers(a.n * HEADS * DV, 1);
    a.out = zeros(a.n * HEADS * DV);
    a.dq = zeros(a.n * HEADS * DK);
    a.dk = zeros(a.m * HEADS * DK);
    a.dv = zeros(a.m * HEADS * DV);
    for (int64_t b = 0, q0 = 0, k0 = 0; b < SENTENCES; q0 += asked[b], k0 += keys[b], b++)
        for (int head = 0; head < HEADS; head++)
            one_head(&a, head, q0, asked[b], k0, keys[b], causal);
    for (int i = 0; i < WIDTHS; i++) {
        heed_tape *t = tape(widths[i]);
        heed_arena *arena = heed_tape_arena(t);
        const heed_segments *sq = heed_segments_new(arena, SENTENCES, asked);
        const heed_segments *sk = heed_segments_new(arena, SENTENCES, keys);
        heed_tensor *q = variable(t, HEED_SHAPE(a.n, HEADS * DK), a.q);
        heed_tensor *k = variable(t, HEED_SHAPE(a.m, HEADS * DK), a.k);
        heed_tensor *v = variable(t, HEED_SHAPE(a.m, HEADS * DV), a.v);
        /* Through another operator, so that the gradient's memory is fresh; or side by side. */
        heed_tensor *x = heed_scale(t, q, 1, 0), *y = heed_scale(t, k, 1, 0);
        heed_tensor *z = heed_scale(t, v, 1, 0);
        if (self && i % 2) {
            heed_tensor *all = heed_concat_cols(t, (heed_tensor *[]){q, k, v}, 3);
            x = heed_slice_cols(t, all, 0, HEADS * DK);
            y = heed_slice_cols(t, all, HEADS * DK, 2 * HEADS * DK);
            z = heed_slice_cols(t, all, 2 * HEADS * DK, HEADS * (2 * DK + DV));
        }
        heed_attention_options o = {.heads = HEADS, .causal = causal};
        heed_tensor *out = heed_attention(t, x, y, z, sq, sk, &o);
        backward_from(t, out, a.r);
        value("attention", widths[i], out, a.out);
        grad("attention dq", widths[i], q, a.dq);
        grad("attention dk", widths[i], k, a.dk);
        grad("attention dv", widths[i], v, a.dv);
        heed_tape_free(t);
    }
    double *all[] = {a.q, a.k, a.v, a.r, a.out, a.dq, a.dk, a.dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Catches: a head or segment that falls between two threads' shares, blocks of queries that start
 * their keys' gradients anew, a gradient that no query reaches and nobody clears. */
static void attention(void **state)
{
    (void)state;
    attention_of(false, false);
    attention_of(false, true);
    attention_of(true, true);
}

/* ---- the others ---- */

/* Catches: threads' sums for gain and bias lost or added twice, and that for x = y too. */
static void add_norm(void **state)
{
    (void)state;
    enum { N = 601, D = 203 };
    double *x = numbers(N * D, 1), *y = numbers(N * D, 1), *g = numbers(D, 1), *b = numbers(D, 1);
    double *r = numbers(N * D, 1), *out = zeros(N * D), *ds = zeros(N * D), *dg = zeros(D);
    double *db = zeros(D);
    for (int twice = 0; twice < 2; twice++) {
        memset(dg, 0, D * sizeof *dg);
        memset(db, 0, D * sizeof *db);
        for (int i = 0; i < N; i++) {
            double s[D], mean = 0, variance = 0, gd = 0, gh = 0;
            for (int j = 0; j < D; j++)
                mean += (s[j] = x[i * D + j] + (twice ? x : y)[i * D + j]) / D;
            for (int j = 0; j < D; j++)
                variance += (s[j] - mean) * (s[j] - mean) / D;
            const double rstd = 1 / sqrt(variance + 1e-5);
            for (int j = 0; j < D; j++) {
                const double h = (s[j] - mean) * rstd, up = r[i * D + j];
                out[i * D + j] = h * g[j] + b[j];
                dg[j] += up * h;
                db[j] += up;
                gd += up * g[j] / D;
                gh += up * g[j] * h / D;
            }
            for (int j = 0; j < D; j++)
                ds[i * D + j] =
                    (1 + twice) * rstd * (r[i * D + j] * g[j] - gd - (s[j] - mean) * rstd * gh);
        }
        for (int i = 0; i < WIDTHS; i++) {
            heed_tape *t = tape(widths[i]);
            heed_tensor *tx = variable(t, HEED_SHAPE(N, D), x);
            heed_tensor *ty = variable(t, HEED_SHAPE(N, D), y);
            heed_tensor *tg = variable(t, HEED_SHAPE(D), g), *tb = variable(t, HEED_SHAPE(D), b);
            heed_tensor *fresh = heed_scale(t, tx, 1, 0);
            heed_tensor *z = heed_add_norm(t, fresh, twice ? fresh : ty, tg, tb, 0, 1e-5);
            backward_from(t, z, r);
            value("add_norm", widths[i], z, out);
            grad("add_norm dx", widths[i], tx, ds);
            if (!twice)
                grad("add_norm dy", widths[i], ty, ds);
            grad("add_norm dgain", widths[i], tg, dg);
            grad("add_norm dbias", widths[i], tb, db);
            heed_tape_free(t);
        }
    }
    double *all[] = {x, y, g, b, r, out, ds, dg, db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Catches: two threads that meet in a row of the table, a negative id that takes a gradient of the
 * table or loses its position. */
static void embedding(void **state)
{
    (void)state;
    enum { V = 53, P = 31, N = 3001, D = 70 };
    static int32_t ids[N], places[N];
    double *table = numbers(V * D, 1), *positions = numbers(P * D, 1), *r = numbers(N * D, 1);
    double *y = zeros(N * D), *dt = zeros(V * D), *dp = zeros(P * D);
    for (int i = 0; i < N; i++) {
        ids[i] = i % 7 == 3 ? -1 : i * 29 % V;
        places[i] = i % P;
        for (int j = 0; j < D; j++) {
            y[i * D + j] = positions[places[i] * D + j];
            dp[places[i] * D + j] += r[i * D + j];
            if (ids[i] < 0)
                continue;
            y[i * D + j] += 3 * table[ids[i] * D + j];
            dt[ids[i] * D + j] += 3 * r[i * D + j];
        }
    }
    for (int i = 0; i < WIDTHS; i++) {
        heed_tape *t = tape(widths[i]);
        heed_tensor *tt = variable(t, HEED_SHAPE(V, D), table);
        heed_tensor *tp =
            i % 2 ? slice(t, P, D, positions) : variable(t, HEED_SHAPE(P, D), positions);
        heed_embedding_options o = {.scale = 3, .positions = tp, .position_ids = places};
        heed_tensor *z = heed_embedding(t, tt, ids, N, &o);
        backward_from(t, z, r);
        value("embedding", widths[i], z, y);
        grad("embedding table", widths[i], tt, dt);
        grad("embedding positions", widths[i], tp, dp);
        heed_tape_free(t);
    }
    double *all[] = {table, positions, r, y, dt, dp};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void loss_of(int64_t n, int64_t d, int64_t v, double upstream)
{
    const double e = 0.1, weight = 1 / (double)n;
    double *h = numbers(n * d, 1), *w = numbers(v * d, 1 / sqrt((double)d)), *b = numbers(v, 1);
    double *z = zeros(n * v), *dh = zeros(n * d), *dw = zeros(v * d), *db = zeros(v), loss = 0;
    int32_t *targets = malloc((size_t)n * sizeof *targets);
    assert_non_null(targets);
    multiply(z, h, false, w, true, n, v, d);
    for (int64_t i = 0; i < n; i++) {
        double *x = z + i * v, top = -INFINITY, sum = 0;
        targets[i] = i % 11 == 5 ? -1 : (int32_t)(i * 37 % v);
        for (int64_t j = 0; j < v; j++)
            top = fmax(top, x[j] += b[j]);
        for (int64_t j = 0; j < v; j++)
            sum += exp(x[j] - top);
        for (int64_t j = 0; j < v; j++) {
            const double log_p = x[j] - top - log(sum);
            const double q = e / (double)v + (j == targets[i] ? 1 - e : 0);
            const double live = targets[i] < 0 ? 0 : upstream * weight;
            loss -= live / upstream * q * log_p;
            x[j] = live * (exp(log_p) - q);
            db[j] += x[j];
        }
    }
    multiply(dh, z, false, w, false, n, d, v);
    multiply(dw, z, true, h, false, v, d, n);
    for (int i = 0; i < WIDTHS; i++) {
        heed_tape *t = tape(widths[i]);
        heed_tensor *th = i % 2 ? slice(t, n, d, h) : variable(t, HEED_SHAPE(n, d), h);
        heed_tensor *tw = variable(t, HEED_SHAPE(v, d), w), *tb = variable(t, HEED_SHAPE(v), b);
        heed_tensor *y = heed_project_cross_entropy(t, th, tw, tb, targets, e, weight, NULL);
        backward_from(t, y, &upstream);
        value("loss", widths[i], y, &loss);
        grad("loss dh", widths[i], th, dh);
        grad("loss dw", widths[i], tw, dw);
        grad("loss dbias", widths[i], tb, db);
        heed_tape_free(t);
    }
    double *all[] = {h, w, b, z, dh, dw, db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(targets);
}

/* Catches: a chunk left out or of the wrong size, the transposed product of a large D, an upstream
 * gradient other than 1 that does not reach what forward had written. */
static void project_cross_entropy(void **state)
{
    (void)state;
    loss_of(603, 33, 201, 1);
    loss_of(90, 515, 130, -2);
    loss_of(517, 3, 25013, 1); /* two chunks */
    loss_of(31, 64, 3001, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear),    cmocka_unit_test(matmul),
        cmocka_unit_test(attention), cmocka_unit_test(add_norm),
        cmocka_unit_test(embedding), cmocka_unit_test(project_cross_entropy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
