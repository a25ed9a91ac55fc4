/* Attention without weights in all its forms (features, gates, the delta rule): every instruction
 * set against plain loops in double and their differences, one by one and at once; and what each
 * paper says of its own. */
#include "base/memory.h"
#include "kernel/kernels.h"
#include "nn/init.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <heed/nn.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-6 /* of the differences */
#else
#define CLOSE 3e-4
#endif
#include "kernel_check.h"

enum { MOST_M = 64 };

typedef struct form {
    const char *name;
    int kind;
    int64_t count; /* directions, or nu */
    bool unit_sum, gated, delta;
} form;
static const form forms[] = {
    {"elu", HEED__FEATURES_ELU, 0, false, false, false},
    {"elu gated", HEED__FEATURES_ELU, 0, false, true, false},
    {"positive", HEED__FEATURES_POSITIVE, 11, false, false, false},
    {"waves", HEED__FEATURES_WAVES, 20, false, false, false},
    {"waves gated", HEED__FEATURES_WAVES, 20, false, true, false},
    {"dpfp", HEED__FEATURES_DPFP, 2, true, false, false},
    {"delta elu", HEED__FEATURES_ELU, 0, true, true, true},
    {"delta dpfp", HEED__FEATURES_DPFP, 1, true, true, true},
    {"delta positive", HEED__FEATURES_POSITIVE, 6, true, true, true},
    {"delta dpfp:3", HEED__FEATURES_DPFP, 3, true, true, true},
};

/* One head of T rows in double, as its formulas have it. */
typedef struct head {
    heed__features f;
    const form *form;
    int64_t t, d_v;
    bool causal;
    double eps;
    double *x[4]; /* q, k (T,Dk), v (T,Dv), gate (T) */
    double *d_out;
} head;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void phi(const heed__features *f, const double *x, double *to)
{
    const int64_t d = f->d, m = heed__feature_columns(f);
    const double s = f->kind == HEED__FEATURES_POSITIVE ? pow((double)d, -0.25) : 1;
    double square = 0, sum = 1e-6;
    for (int64_t i = 0; i < d; i++)
        square += s * s * x[i] * x[i];
    for (int64_t i = 0; i < f->count && f->direction; i++) {
        double h = 0;
        for (int64_t j = 0; j < d; j++)
            h += s * (double)f->direction[i * d + j] * x[j];
        if (f->kind == HEED__FEATURES_POSITIVE) {
            to[i] = exp(h - square / 2) / sqrt((double)f->count);
        } else {
            to[i] = sin(h) / sqrt((double)f->count);
            to[f->count + i] = cos(h) / sqrt((double)f->count);
        }
    }
    for (int64_t i = 0; f->kind == HEED__FEATURES_ELU && i < d; i++)
        to[i] = x[i] > 0 ? x[i] + 1 : exp(x[i]);
    for (int64_t n = 1; f->kind == HEED__FEATURES_DPFP && n <= f->count; n++)
        for (int64_t i = 0; i < 2 * d; i++) {
            const int64_t j = (i - n + 2 * d) % (2 * d);
            const double a = fmax(0, i < d ? x[i] : -x[i - d]);
            to[(n - 1) * 2 * d + i] = a * fmax(0, j < d ? x[j] : -x[j - d]);
        }
    for (int64_t i = 0; f->unit_sum && i < m; i++)
        sum += to[i];
    for (int64_t i = 0; f->unit_sum && i < m; i++)
        to[i] /= sum;
}

static double inner(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Sums: the weight of every pair, from the last key back, and what is left of it. */
static void mix_pairs(const head *h, double *out)
{
    const int64_t m = heed__feature_columns(&h->f);
    double *k = malloc((size_t)(h->t * m) * sizeof *k), q[MOST_M];
    for (int64_t j = 0; j < h->t; j++)
        phi(&h->f, h->x[1] + j * h->f.d, k + j * m);
    for (int64_t i = 0; i < h->t; i++) {
        double total = 0, left = 1, *o = out + i * h->d_v;
        memset(o, 0, (size_t)h->d_v * sizeof *o);
        phi(&h->f, h->x[0] + i * h->f.d, q);
        for (int64_t j = h->causal ? i : h->t - 1; j >= 0; j--) {
            double w = inner(q, k + j * m, m);
            if (h->form->gated) {
                w *= left * (1 - sigmoid(h->x[3][j]));
                left *= sigmoid(h->x[3][j]);
            }
            total += w;
            for (int64_t x = 0; x < h->d_v; x++)
                o[x] += w * h->x[2][j * h->d_v + x];
        }
        total = h->f.kind == HEED__FEATURES_WAVES ? fmax(total, h->eps) : total + h->eps;
        for (int64_t x = 0; x < h->d_v; x++)
            o[x] /= total;
    }
    free(k);
}

/* The delta rule, one row after the other. */
static void mix_delta(const head *h, double *out)
{
    const int64_t m = heed__feature_columns(&h->f);
    double *w = calloc((size_t)(m * h->d_v), sizeof *w), q[MOST_M], k[MOST_M];
    for (int64_t i = 0; i < h->t; i++) {
        phi(&h->f, h->x[0] + i * h->f.d, q);
        phi(&h->f, h->x[1] + i * h->f.d, k);
        for (int64_t x = 0; x < h->d_v; x++) {
            double stored = 0, sum = 0;
            for (int64_t r = 0; r < m; r++)
                stored += k[r] * w[r * h->d_v + x];
            for (int64_t r = 0; r < m; r++) {
                w[r * h->d_v + x] +=
                    k[r] * sigmoid(h->x[3][i]) * (h->x[2][i * h->d_v + x] - stored);
                sum += q[r] * w[r * h->d_v + x];
            }
            out[i * h->d_v + x] = sum;
        }
    }
    free(w);
}

static double loss(const head *h, double *out)
{
    (h->form->delta ? mix_delta : mix_pairs)(h, out);
    return inner(out, h->d_out, h->t * h->d_v);
}

static int64_t columns_of(const head *h, int which)
{
    return which < 2 ? h->f.d : which == 2 ? h->d_v : 1;
}

/* By differences of the loss. */
static double *gradient(head *h, int which, double *out)
{
    const int64_t n = h->t * columns_of(h, which);
    double *g = malloc((size_t)n * sizeof *g);
    for (int64_t i = 0; i < n; i++) {
        const double x = h->x[which][i], step = 1e-6;
        h->x[which][i] = x + step;
        const double up = loss(h, out);
        h->x[which][i] = x - step;
        g[i] = (up - loss(h, out)) / (2 * step);
        h->x[which][i] = x;
    }
    return g;
}

/* ---- a head and its answers ---- */

enum { GAP = 3 }; /* columns of another head behind each row */

static heed__matrix rows_from(const double *x, int64_t rows, int64_t cols)
{
    heed__matrix m = {malloc((size_t)(rows * (cols + GAP)) * sizeof(heed_real)), cols + GAP};
    for (int64_t i = 0; i < rows * m.ld; i++)
        m.at[i] = x && i % m.ld < cols ? (heed_real)x[i / m.ld * cols + i % m.ld] : (heed_real)0.5;
    return m;
}

static void expect_rows(const char *what, heed__matrix x, const double *wanted, int64_t rows,
                        int64_t cols, double before)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < x.ld; j++)
            expect(what, i * x.ld + j, (double)x.at[i * x.ld + j],
                   j < cols ? wanted[i * cols + j] + before : 0.5);
}

static void *scratch_of(size_t bytes)
{
    void *s = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memset(s, 0xff, bytes); /* NaN: it holds nothing yet */
    return s;
}

struct answers {
    heed__matrix in[4], out, d_out, d_in[4];
    double *wanted, *wanted_d[4];
};

static struct answers answers_of(head *h)
{
    struct answers a = {.wanted = malloc((size_t)(h->t * h->d_v) * sizeof(double))};
    double *other = malloc((size_t)(h->t * h->d_v) * sizeof(double));
    loss(h, a.wanted);
    for (int i = 0; i < 4; i++) {
        a.in[i] = rows_from(h->x[i], h->t, columns_of(h, i));
        a.d_in[i] = rows_from(NULL, h->t, columns_of(h, i));
        a.wanted_d[i] = i < 3 || h->form->gated ? gradient(h, i, other) : NULL;
    }
    a.out = rows_from(NULL, h->t, h->d_v);
    a.d_out = rows_from(h->d_out, h->t, h->d_v);
    free(other);
    return a;
}

static void answers_free(struct answers *a)
{
    for (int i = 0; i < 4; i++) {
        free(a->in[i].at);
        free(a->d_in[i].at);
        free(a->wanted_d[i]);
    }
    free(a->out.at);
    free(a->d_out.at);
    free(a->wanted);
}

static void fresh(const head *h, struct answers *a)
{
    for (int i = 0; i < 4; i++)
        for (int64_t x = 0; x < h->t * a->d_in[i].ld; x++)
            a->d_in[i].at[x] = (heed_real)0.5;
}

static void run_sums(const heed_kernels *k, const head *h, struct answers *a)
{
    heed__linear_head l = {.features = h->f,
                           .t = h->t,
                           .s = h->t,
                           .d_v = h->d_v,
                           .causal = h->causal,
                           .floor = h->f.kind == HEED__FEATURES_WAVES,
                           .eps = (heed_real)h->eps,
                           .q = a->in[0],
                           .k = a->in[1],
                           .v = a->in[2],
                           .gate = h->form->gated ? a->in[3] : (heed__matrix){NULL, 0},
                           .out = a->out,
                           .d_out = a->d_out,
                           .d_q = a->d_in[0],
                           .d_k_rows = a->d_in[1],
                           .d_v_rows = a->d_in[2],
                           .d_gate = h->form->gated ? a->d_in[3] : (heed__matrix){NULL, 0}};
    l.total = rows_from(NULL, h->t, 1);
    l.along = rows_from(NULL, h->t, 1);
    l.scratch = scratch_of(k->linear_scratch(&h->f, h->d_v));
    k->linear_forward(&l);
    k->linear_backward(&l);
    free(l.scratch);
    free(l.total.at);
    free(l.along.at);
}

static void run_delta(const heed_kernels *k, const head *h, struct answers *a)
{
    heed__delta_head l = {.features = h->f,
                          .t = h->t,
                          .d_v = h->d_v,
                          .q = a->in[0],
                          .k = a->in[1],
                          .v = a->in[2],
                          .gate = a->in[3],
                          .out = a->out,
                          .d_out = a->d_out,
                          .d_q = a->d_in[0],
                          .d_k_rows = a->d_in[1],
                          .d_v_rows = a->d_in[2],
                          .d_gate = a->d_in[3]};
    l.error = rows_from(NULL, h->t, h->d_v);
    l.scratch = scratch_of(k->delta_scratch(&h->f, h->d_v));
    k->delta_forward(&l);
    k->delta_backward(&l);
    free(l.scratch);
    free(l.error.at);
}

/* The same one by one. */
static void run_steps(const heed_kernels *k, const head *h, const struct answers *a)
{
    const int64_t m = heed__feature_columns(&h->f);
    heed_real *state = calloc((size_t)(m * (h->d_v + 1)), sizeof *state);
    heed_real *out = malloc((size_t)h->d_v * sizeof *out);
    heed_real *room = malloc((size_t)(heed__feature_room(&h->f) + h->d_v) * sizeof *room);
    for (int64_t i = 0; i < h->t; i++) {
        const heed_real *q = a->in[0].at + i * a->in[0].ld, *key = a->in[1].at + i * a->in[1].ld;
        const heed_real *v = a->in[2].at + i * a->in[2].ld, *gate = a->in[3].at + i * a->in[3].ld;
        if (h->form->delta) {
            k->delta_learn(&h->f, state, key, v, h->d_v, gate, room);
            k->delta_ask(&h->f, out, state, q, h->d_v, room);
        } else {
            k->linear_learn(&h->f, state, key, v, h->d_v, h->form->gated ? gate : NULL, room);
            k->linear_ask(&h->f, out, state, q, h->d_v, (heed_real)h->eps,
                          h->f.kind == HEED__FEATURES_WAVES, room);
        }
        for (int64_t x = 0; x < h->d_v; x++)
            expect("a step", i * h->d_v + x, (double)out[x], a->wanted[i * h->d_v + x]);
    }
    free(state);
    free(out);
    free(room);
}

/* Numbers that a real has, too. */
static double *waves_of(int64_t n, double start, double size)
{
    double *x = malloc((size_t)n * sizeof *x);
    heed_real *r = malloc((size_t)n * sizeof *r);
    fill(r, n, start);
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(heed_real)(size * (double)r[i]);
    free(r);
    return x;
}

static heed_real *directions(int64_t count, int64_t d, uint64_t seed)
{
    heed_real *w = malloc((size_t)(count * d) * sizeof *w);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    const heed_allocator a = heed__allocator_or_default(NULL);
    assert_int_equal(heed__init_draw(w, count, d, (heed_init){HEED_INIT_DIRECTIONS, 1}, &rng, &a),
                     HEED_OK);
    return w;
}

static void check_form(const form *f, int64_t t, int64_t d_k, int64_t d_v, bool causal)
{
    head h = {.form = f, .t = t, .d_v = d_v, .causal = causal};
    const bool drawn = f->kind == HEED__FEATURES_POSITIVE || f->kind == HEED__FEATURES_WAVES;
    heed_real *w = drawn ? directions(f->count, d_k, 3) : NULL;
    h.f = (heed__features){f->kind, d_k, f->count, w, f->unit_sum};
    h.eps = f->kind == HEED__FEATURES_WAVES ? 0.05 : heed__linear_eps(f->kind);
    for (int i = 0; i < 4; i++)
        h.x[i] = waves_of(t * columns_of(&h, i), i + 1, i == 3 ? 2 : 1);
    h.d_out = waves_of(t * d_v, 9, 1);
    struct answers a = answers_of(&h);
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++) {
        fresh(&h, &a);
        (f->delta ? run_delta : run_sums)(k, &h, &a);
        expect_rows(f->name, a.out, a.wanted, t, d_v, 0);
        for (int i = 0; i < 4; i++)
            if (a.wanted_d[i])
                expect_rows(f->name, a.d_in[i], a.wanted_d[i], t, columns_of(&h, i), 0.5);
        if (causal)
            run_steps(k, &h, &a);
    }
    answers_free(&a);
    for (int i = 0; i < 4; i++)
        free(h.x[i]);
    free(h.d_out);
    free(w);
}

/* Catches: a feature by another formula, sums that do not fade as the gates say, a chunk's edge, a
 * wrong tail of a register, a gradient that misses a term. */
static void every_form_is_its_formula(void **state)
{
    static const int64_t sizes[][3] = {{1, 2, 1}, {5, 3, 4}, {48, 2, 3}, {49, 4, 9}, {97, 2, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
            for (int causal = forms[i].gated; causal < 2; causal++)
                if (forms[i].kind != HEED__FEATURES_DPFP || forms[i].count <= 2 * sizes[n][1])
                    check_form(&forms[i], sizes[n][0], sizes[n][1], sizes[n][2], causal);
}

/* ---- what the papers say ---- */

/* Estimates of exp(q.k / sqrt(d)) from draws of m directions: mean, its standard error, and the
 * mean square of the error. */
struct estimate {
    double mean, error, square;
};

static struct estimate estimate_of(const double *q, const double *k, int64_t d, int64_t m,
                                   bool orthogonal, bool waves, int draws)
{
    const double exact = exp(inner(q, k, d) / sqrt((double)d));
    double sum = 0, squares = 0, off = 0;
    heed_real *w = malloc((size_t)(m * d) * sizeof *w);
    double *a = malloc((size_t)(4 * m) * sizeof *a), scaled[2][16];
    for (int64_t i = 0; i < d; i++) {
        scaled[0][i] = q[i] * pow((double)d, -0.25);
        scaled[1][i] = k[i] * pow((double)d, -0.25);
    }
    for (int n = 0; n < draws; n++) {
        const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 21, .step = (uint64_t)n});
        const heed_allocator allocator = heed__allocator_or_default(NULL);
        heed__init_draw(w, m, d,
                        (heed_init){orthogonal ? HEED_INIT_DIRECTIONS : HEED_INIT_NORMAL, 1}, &rng,
                        &allocator);
        const heed__features f = {waves ? HEED__FEATURES_WAVES : HEED__FEATURES_POSITIVE, d, m, w,
                                  false};
        phi(&f, waves ? scaled[0] : q, a);
        phi(&f, waves ? scaled[1] : k, a + 2 * m);
        double x = inner(a, a + 2 * m, heed__feature_columns(&f));
        if (waves) /* a Gaussian of q - k is that much smaller */
            x *= exp((inner(scaled[0], scaled[0], d) + inner(scaled[1], scaled[1], d)) / 2);
        sum += x;
        squares += x * x;
        off += (x - exact) * (x - exact);
    }
    free(w);
    free(a);
    const double mean = sum / draws;
    return (struct estimate){mean, sqrt((squares / draws - mean * mean) / draws), off / draws};
}

/* Catches: Dk^-1/4 or |x|^2 / 2 forgotten, rows that are too long or not orthogonal, few directions
 * that stay few. */
static void positive_features_estimate_softmax(void **state)
{
    enum { D = 8, DRAWS = 3000 };
    (void)state;
    for (int i = 0; i < 3; i++) {
        double *q = waves_of(D, i, 0.45), *k = waves_of(D, 2 * i + 1, 0.45), exact;
        exact = exp(inner(q, k, D) / sqrt(D));
        const struct estimate ours = estimate_of(q, k, D, 16, true, false, DRAWS);
        if (!(fabs(ours.mean - exact) <= 4 * ours.error))
            fail_msg("mean %g +- %g, expected %g", ours.mean, ours.error, exact);
        const struct estimate apart = estimate_of(q, k, D, 16, false, false, DRAWS);
        if (!(ours.square < apart.square))
            fail_msg("orthogonal %g, independent %g", ours.square, apart.square);
        const struct estimate many = estimate_of(q, k, D, 1024, true, false, 40);
        assert_true(many.square < ours.square / 20);
        free(q);
        free(k);
    }
    /* Where softmax is near 0, the paper's reason for positive features. */
    double *q = waves_of(D, 1, 2.2), k[D];
    for (int i = 0; i < D; i++)
        k[i] = -q[i];
    const double positive = estimate_of(q, k, D, 16, true, false, DRAWS).square;
    const double waves = estimate_of(q, k, D, 16, true, true, DRAWS).square;
    if (!(positive < waves / 1000))
        fail_msg("positive %g, waves %g", positive, waves);
    free(q);
}

static heed_tensor *input(heed_tape *t, int64_t rows, int64_t cols, const heed_real *x)
{
    return heed_input(t, HEED_SHAPE(rows, cols), x);
}

/* Catches: a gate that forgets the newest pair instead of the older ones. */
static void a_closed_gate_keeps_the_newest(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    const int64_t length = 3;
    const heed_real x[] = {1, 2, -1, 3, 0, 2}, v[] = {5, 7, -2}, gate[] = {-60, -60, -60};
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &length);
    heed_tensor *q = input(t, 3, 2, x);
    heed_tensor *y = heed_linear_attention(
        t, q, q, input(t, 3, 1, v), s, s,
        &(heed_linear_attention_options){.heads = 1, .causal = true, .gate = input(t, 3, 1, gate)});
    assert_non_null(y);
    for (int i = 0; i < 3; i++)
        expect("the newest value", i, (double)heed_tensor_data(y)[i], (double)v[i]);
    heed_tape_free(t);
}

/* Catches: values of one key that are added instead of replaced; orthogonal keys that disturb each
 * other.  Of DPFP-1 with Dk = 4, elements j and j + 1 alone give feature j + 1 alone. */
static void the_delta_rule_replaces(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    const int64_t length = 4;
    const heed_real k[] = {1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1};
    const heed_real q[] = {1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1};
    const heed_real v[] = {5, 7, -2, 3}, wanted[] = {5, 5, -2, 3}, open[] = {60, 60, 60, 60};
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &length);
    const heed_features dpfp = {.kind = HEED_FEATURES_DPFP, .count = 1, .unit_sum = true};
    heed_tensor *queries = input(t, 4, 4, q), *keys = input(t, 4, 4, k),
                *values = input(t, 4, 1, v);
    heed_tensor *y = heed_delta_attention(t, queries, keys, values, input(t, 4, 1, open), s,
                                          &(heed_delta_attention_options){1, 0, dpfp});
    heed_tensor *sum = heed_linear_attention(
        t, queries, keys, values, s, s,
        &(heed_linear_attention_options){.heads = 1, .causal = true, .features = dpfp});
    assert_true(y && sum);
    for (int i = 0; i < 4; i++) /* but for the 1e-6 beside the sum of phi */
        assert_true(fabs((double)heed_tensor_data(y)[i] - (double)wanted[i]) < 1e-4);
    assert_true(fabs((double)heed_tensor_data(sum)[2] - 1.5) < 1e-4); /* (5 - 2) / 2 */
    heed_tape_free(t);
}

static void refused(heed_features f, int64_t gate_rows, bool causal, const char *text)
{
    heed_tape *t = heed_tape_new(NULL, NULL);
    const int64_t length = 3;
    const heed_real zero[64] = {0};
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &length);
    heed_tensor *q = input(t, 3, 8, zero);
    assert_null(heed_linear_attention(
        t, q, q, q, s, s,
        &(heed_linear_attention_options){.heads = 2,
                                         .causal = causal,
                                         .features = f,
                                         .gate = gate_rows ? input(t, gate_rows, 2, zero) : NULL}));
    assert_string_equal(heed_tape_error(t)->text, text);
    heed_tape_free(t);
}

/* Catches: directions and gates that would be read beyond their end. */
static void wrong_features_are_refused(void **state)
{
    (void)state;
    refused((heed_features){.kind = HEED_FEATURES_WAVES}, 0, false,
            "linear_attention: these features need directions");
    refused((heed_features){.kind = HEED_FEATURES_DPFP, .count = 9}, 0, false,
            "linear_attention: nu of DPFP is 9, expected 1 to 2 Dk = 8");
    refused((heed_features){0}, 2, true, "linear_attention: gate is (2,2), expected (3,2)");
    refused((heed_features){0}, 3, false,
            "linear_attention: a gate needs causal and as many queries as keys");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_its_formula),
        cmocka_unit_test(positive_features_estimate_softmax),
        cmocka_unit_test(a_closed_gate_keeps_the_newest),
        cmocka_unit_test(the_delta_rule_replaces),
        cmocka_unit_test(wrong_features_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
