/* heed_attention in its forms: runs of keys, shared heads and rows, biases by distance, against
 * loops over pairs in double that know no tiles; its memory; its counts. */
#include <heed/attention.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_forms_golden.h"

typedef heed_real real;

/* Sums of up to a few thousand products of numbers of size one. */
#ifdef HEED_DOUBLE
#define NEAR 3e-10
#else
#define NEAR 1e-3
#endif

static real value(int64_t i, int salt)
{
    return (real)sin(12.9898 * (double)(i + 1) + 78.233 * salt);
}

enum { HEADS = 4, DK = 6, DV = 5, B = 5, ROWS = 161, SHARED = 3, FAR = 7 };
static const int64_t lengths[B] = {97, 0, 1, 50, 13}; /* no multiples of a block or a tile */

/* ---- forms ---- */

/* band keys around i (causal: up to i), and the first few; step and width: of the band's keys. */
struct form {
    const char *name;
    int band, first, step, width;
    int kv_heads;
    bool causal, visible, distance, shared, bias, weights;
};
static const struct form forms[] = {
    {"all keys", .kv_heads = 4},
    {"causal, shared heads", .kv_heads = 2, .causal = true},
    {"one head of keys", .kv_heads = 1, .weights = true},
    {"band", .band = 9, .kv_heads = 4},
    {"wide band, causal", .band = 40, .kv_heads = 4, .causal = true},
    {"band and first keys, shared heads", .band = 3, .first = 2, .kv_heads = 2},
    {"the same, causal, weights", .band = 3, .first = 2, .kv_heads = 2, .causal = true,
     .weights = true},
    {"every third key", .band = 31, .step = 3, .kv_heads = 4},
    {"every 29th key, causal", .band = 97, .step = 29, .kv_heads = 4, .causal = true},
    {"three of every seven keys", .band = 40, .step = 7, .width = 3, .kv_heads = 4},
    {"20 of every 41 keys, causal", .band = 97, .step = 41, .width = 20, .kv_heads = 2,
     .causal = true},
    {"visible", .kv_heads = 4, .visible = true},
    {"distance", .kv_heads = 4, .distance = true},
    {"distance, causal, shared heads", .kv_heads = 2, .causal = true, .distance = true},
    {"distance and bias, band", .band = 20, .kv_heads = 4, .distance = true, .bias = true},
    {"shared rows", .kv_heads = 4, .shared = true},
    {"shared rows and heads, causal", .kv_heads = 2, .causal = true, .shared = true},
    {"everything", .band = 11, .first = 1, .kv_heads = 2, .causal = true, .visible = true,
     .distance = true, .shared = true, .bias = true, .weights = true},
};
#define FORMS ((int)(sizeof forms / sizeof *forms))

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int band_ranges(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                       heed_key_range *out)
{
    const struct form *f = context;
    const int64_t step = f->step ? f->step : 1, begin = i - (i < f->band ? i : f->band);
    int n = 0;
    (void)head;
    (void)queries;
    if (f->first)
        out[n++] = (heed_key_range){0, (int32_t)smaller(f->first, keys), 1, 1};
    const int64_t from = n && begin < f->first ? f->first : begin;
    out[n++] = (heed_key_range){(int32_t)from, (int32_t)smaller(i + f->band + 1, keys),
                                (int32_t)step, (int32_t)f->width};
    return n;
}

/* The same in other words. */
static bool allowed(const struct form *f, int64_t i, int64_t j, int64_t visible)
{
    if ((f->causal && j > i) || (f->visible && j >= visible))
        return false;
    if (!f->band || j < f->first)
        return true;
    int64_t from = i > f->band ? i - f->band : 0;
    if (f->first && from < f->first)
        from = f->first;
    return j >= from && j <= i + f->band &&
           (j - from) % (f->step ? f->step : 1) < (f->width ? f->width : 1);
}

/* ---- one call ---- */

enum { Q, K, V, DISTANCE, SHARED_K, SHARED_V, BIAS, INPUTS };
struct call {
    heed_tape *t;
    heed_tensor *in[INPUTS], *y, *p;
    const heed_segments *s;
    int32_t visible[ROWS];
    heed_attention_counts counts;
};

static struct call call_new(const struct form *f, int threads, double dropout)
{
    struct call c = {.t = heed_tape_new(&(heed_tape_options){.threads = threads, .seed = 3}, NULL)};
    const int g = f->kv_heads, columns = f->causal ? FAR : 2 * FAR + 1;
    const heed_shape shapes[INPUTS] = {HEED_SHAPE(ROWS, HEADS * DK), HEED_SHAPE(ROWS, g * DK),
                                       HEED_SHAPE(ROWS, g * DV),     HEED_SHAPE(HEADS, columns),
                                       HEED_SHAPE(SHARED, g * DK),   HEED_SHAPE(SHARED, g * DV),
                                       HEED_SHAPE(1, 97, 97)};
    const bool there[INPUTS] = {true, true, true, f->distance, f->shared, f->shared, f->bias};
    const heed_key_pattern pattern = {
        .ranges = band_ranges, .context = f, .most = 2, .same_heads = true};
    c.s = heed_segments_new(heed_tape_arena(c.t), B, lengths);
    for (int i = 0; i < INPUTS; i++)
        if (there[i]) {
            c.in[i] = heed_variable(c.t, shapes[i], NULL);
            for (int64_t n = 0; n < heed_tensor_count(c.in[i]); n++)
                heed_tensor_data(c.in[i])[n] = value(n, 20 + i);
        }
    int32_t *visible = heed_arena_allocate(heed_tape_arena(c.t), sizeof c.visible);
    for (int i = 0; i < ROWS; i++)
        c.visible[i] = visible[i] = i % 23;
    c.y = heed_attention(c.t, c.in[Q], c.in[K], c.in[V], c.s, c.s,
                         &(heed_attention_options){.heads = HEADS,
                                                   .kv_heads = g,
                                                   .causal = f->causal,
                                                   .dropout = dropout,
                                                   .pattern = f->band ? &pattern : NULL,
                                                   .visible = f->visible ? visible : NULL,
                                                   .bias = c.in[BIAS],
                                                   .distance_bias = c.in[DISTANCE],
                                                   .shared_k = c.in[SHARED_K],
                                                   .shared_v = c.in[SHARED_V],
                                                   .probabilities = f->weights ? &c.p : NULL,
                                                   .counts = &c.counts});
    if (!c.y)
        fail_msg("%s: %s", f->name, heed_tape_error(c.t)->text);
    return c;
}

/* What is differentiated: y and p times fixed numbers, summed. */
static void call_backward(struct call *c)
{
    heed_tensor *loss = NULL, *out[] = {c->y, c->p};
    for (int i = 0; i < 2; i++) {
        if (!out[i])
            continue;
        heed_tensor *w = heed_input(c->t, heed_tensor_shape(out[i]), NULL);
        for (int64_t n = 0; n < heed_tensor_count(w); n++)
            heed_tensor_data(w)[n] = value(n, 40 + i);
        heed_tensor *one = heed_sum(c->t, heed_mul(c->t, out[i], w), HEED_ALL);
        loss = loss ? heed_add(c->t, loss, one) : one;
    }
    if (heed_backward(c->t, loss))
        fail_msg("%s", heed_tape_error(c->t)->text);
}

/* ---- the oracle ---- */

struct truth {
    double *y, *p, *grad[INPUTS];
    int64_t pairs;
};

static double at(const struct call *c, int i, int64_t row, int64_t col)
{
    return (double)heed_tensor_data(c->in[i])[row * heed_tensor_cols(c->in[i]) + col];
}

static double *grad_at(struct truth *r, const struct call *c, int i, int64_t row, int64_t col)
{
    return &r->grad[i][row * heed_tensor_cols(c->in[i]) + col];
}

/* Query i of head h in the segment from row `first` on with n rows; pair: of its pair with key 0 in
 * flat tensors.  Candidates: the shared rows, then the keys. */
static void true_query(const struct form *f, const struct call *c, struct truth *r, int64_t first,
                       int64_t n, int64_t h, int64_t i, int64_t pair)
{
    const int64_t shared = f->shared ? SHARED : 0, row = first + i, group = HEADS / f->kv_heads;
    const int64_t k0 = h / group * DK, v0 = h / group * DV, q0 = h * DK;
    double x[SHARED + 97], w[SHARED + 97], dw[SHARED + 97], top = -INFINITY, sum = 0, inner = 0;
    for (int64_t e = 0; e < shared + n; e++) {
        const int64_t j = e - shared, distance = i - j;
        x[e] = 0;
        for (int64_t d = 0; d < DK; d++)
            x[e] += at(c, Q, row, q0 + d) *
                    (j < 0 ? at(c, SHARED_K, e, k0 + d) : at(c, K, first + j, k0 + d)) / sqrt(DK);
        if (j >= 0 && f->bias)
            x[e] += at(c, BIAS, i, j);
        if (j >= 0 && f->distance && (!f->causal || distance >= 0))
            x[e] += at(c, DISTANCE, h,
                       f->causal ? smaller(distance, FAR - 1)
                                 : FAR + (distance > FAR    ? FAR
                                          : distance < -FAR ? -FAR
                                                            : distance));
        if (j >= 0 && !allowed(f, i, j, c->visible[row]))
            x[e] = -INFINITY;
        else
            r->pairs++;
        top = fmax(top, x[e]);
    }
    for (int64_t e = 0; e < shared + n; e++)
        sum += w[e] = x[e] == -INFINITY ? 0 : exp(x[e] - top);
    for (int64_t e = 0; e < shared + n; e++) {
        const int64_t j = e - shared;
        w[e] /= sum > 0 ? sum : 1;
        dw[e] = j >= 0 && f->weights ? (double)value(pair + j, 41) : 0;
        for (int64_t d = 0; d < DV; d++) {
            const int64_t col = h * DV + d, out = row * HEADS * DV + col;
            const double dy = (double)value(out, 40);
            r->y[out] += w[e] * (j < 0 ? at(c, SHARED_V, e, v0 + d) : at(c, V, first + j, v0 + d));
            dw[e] += dy * (j < 0 ? at(c, SHARED_V, e, v0 + d) : at(c, V, first + j, v0 + d));
            *(j < 0 ? grad_at(r, c, SHARED_V, e, v0 + d) : grad_at(r, c, V, first + j, v0 + d)) +=
                w[e] * dy;
        }
        if (j >= 0)
            r->p[pair + j] = w[e];
        inner += w[e] * dw[e];
    }
    for (int64_t e = 0; e < shared + n; e++) {
        const int64_t j = e - shared, distance = i - j;
        const double dz = w[e] * (dw[e] - inner);
        for (int64_t d = 0; d < DK; d++) {
            *grad_at(r, c, Q, row, q0 + d) +=
                dz / sqrt(DK) * (j < 0 ? at(c, SHARED_K, e, k0 + d) : at(c, K, first + j, k0 + d));
            *(j < 0 ? grad_at(r, c, SHARED_K, e, k0 + d) : grad_at(r, c, K, first + j, k0 + d)) +=
                dz / sqrt(DK) * at(c, Q, row, q0 + d);
        }
        if (j >= 0 && f->bias)
            *grad_at(r, c, BIAS, i, j) += dz;
        if (j >= 0 && f->distance && (!f->causal || distance >= 0))
            *grad_at(r, c, DISTANCE, h,
                     f->causal ? smaller(distance, FAR - 1)
                               : FAR + (distance > FAR    ? FAR
                                        : distance < -FAR ? -FAR
                                                          : distance)) += dz;
    }
}

static struct truth truth_of(const struct form *f, const struct call *c)
{
    struct truth r = {0};
    int64_t pairs = 0;
    for (int b = 0; b < B; b++)
        pairs += lengths[b] * lengths[b];
    r.y = calloc(ROWS * HEADS * DV, sizeof *r.y);
    r.p = calloc((size_t)(HEADS * pairs), sizeof *r.p);
    for (int i = 0; i < INPUTS; i++)
        if (c->in[i])
            r.grad[i] = calloc((size_t)heed_tensor_count(c->in[i]), sizeof(double));
    int64_t pair = 0;
    for (int b = 0; b < B; b++)
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t i = 0; i < lengths[b]; i++, pair += lengths[b])
                true_query(f, c, &r, c->s->offset[b], lengths[b], h, i, pair);
    return r;
}

static void truth_free(struct truth *r)
{
    free(r->y);
    free(r->p);
    for (int i = 0; i < INPUTS; i++)
        free(r->grad[i]);
}

static void assert_close(const struct form *f, const char *what, const real *found,
                         const double *wanted, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - wanted[i]) <= NEAR * fmax(1, fabs(wanted[i]))))
            fail_msg("%s: %s[%lld] is %.9g, expected %.9g", f->name, what, (long long)i,
                     (double)found[i], wanted[i]);
}

/* Catches: a tile left out or counted twice, a row mask that is off by one, a head that reads
 * another's keys, gradients of what two heads or two segments share, pairs that are miscounted. */
static void every_form_matches_loops(void **state)
{
    static const char *const names[INPUTS] = {"dq", "dk", "dv", "ddistance", "dk'", "dv'", "dbias"};
    (void)state;
    for (int n = 0; n < FORMS; n++) {
        const struct form *f = &forms[n];
        struct call c = call_new(f, 1 + n % 3, 0);
        struct truth r = truth_of(f, &c);
        assert_close(f, "y", heed_tensor_data(c.y), r.y, ROWS * HEADS * DV);
        if (c.p)
            assert_close(f, "p", heed_tensor_data(c.p), r.p, heed_tensor_count(c.p));
        if (c.counts.pairs != r.pairs || c.counts.products < r.pairs)
            fail_msg("%s: %lld pairs in %lld products, expected %lld pairs", f->name,
                     (long long)c.counts.pairs, (long long)c.counts.products, (long long)r.pairs);
        call_backward(&c);
        for (int i = 0; i < INPUTS; i++)
            if (c.in[i])
                assert_close(f, names[i], heed_tensor_grad(c.in[i]), r.grad[i],
                             heed_tensor_count(c.in[i]));
        truth_free(&r);
        heed_tape_free(c.t);
    }
}

/* Catches: a bit that depends on the number of threads: forward any, backward but for what is
 * summed over segments. */
static void threads_change_no_bit(void **state)
{
    (void)state;
    for (int n = 0; n < FORMS; n++) {
        struct call one = call_new(&forms[n], 1, 0.1);
        call_backward(&one);
        for (int threads = 2; threads <= 4; threads++) {
            struct call more = call_new(&forms[n], threads, 0.1);
            call_backward(&more);
            assert_memory_equal(heed_tensor_data(one.y), heed_tensor_data(more.y),
                                (size_t)heed_tensor_count(one.y) * sizeof(real));
            for (int i = Q; i <= DISTANCE; i++)
                if (one.in[i])
                    assert_memory_equal(heed_tensor_grad(one.in[i]), heed_tensor_grad(more.in[i]),
                                        (size_t)heed_tensor_count(one.in[i]) * sizeof(real));
            heed_tape_free(more.t);
        }
        heed_tape_free(one.t);
    }
}

/* Catches: a segment that changes another's numbers. */
static void segments_do_not_meet(void **state)
{
    (void)state;
    for (int n = 0; n < FORMS; n++) {
        struct call c = call_new(&forms[n], 2, 0);
        const int64_t first = c.s->offset[3], size = lengths[3] * HEADS * DV;
        real *before = malloc((size_t)size * sizeof *before);
        memcpy(before, heed_tensor_data(c.y) + first * HEADS * DV, (size_t)size * sizeof *before);
        const heed_key_pattern pattern = {
            .ranges = band_ranges, .context = &forms[n], .most = 2, .same_heads = true};
        for (int i = Q; i <= V; i++)
            for (int64_t row = 0; row < ROWS; row++)
                for (int64_t col = 0; col < heed_tensor_cols(c.in[i]); col++)
                    if (row < first || row >= first + lengths[3])
                        heed_tensor_data(c.in[i])[row * heed_tensor_cols(c.in[i]) + col] *= -50;
        int32_t *visible = heed_arena_allocate(heed_tape_arena(c.t), sizeof c.visible);
        memcpy(visible, c.visible, sizeof c.visible);
        heed_tensor *y =
            heed_attention(c.t, c.in[Q], c.in[K], c.in[V], c.s, c.s,
                           &(heed_attention_options){.heads = HEADS,
                                                     .kv_heads = forms[n].kv_heads,
                                                     .causal = forms[n].causal,
                                                     .pattern = forms[n].band ? &pattern : NULL,
                                                     .visible = forms[n].visible ? visible : NULL,
                                                     .bias = c.in[BIAS],
                                                     .distance_bias = c.in[DISTANCE],
                                                     .shared_k = c.in[SHARED_K],
                                                     .shared_v = c.in[SHARED_V]});
        assert_memory_equal(before, heed_tensor_data(y) + first * HEADS * DV,
                            (size_t)size * sizeof *before);
        free(before);
        heed_tape_free(c.t);
    }
}

/* ---- memory ---- */

/* Forward and backward of one segment of n; grads (3,n,D) or NULL.  Returns the tape's bytes. */
static int64_t run_length(int64_t n, bool causal, bool kept, const heed_key_pattern *pattern,
                          double dropout, real *grads)
{
    enum { D = 16 };
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 2}, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &n);
    heed_tensor *in[3], *p;
    for (int i = 0; i < 3; i++) {
        in[i] = heed_variable(t, HEED_SHAPE(n, D), NULL);
        for (int64_t j = 0; j < n * D; j++)
            heed_tensor_data(in[i])[j] = value(j, 60 + i);
    }
    heed_tensor *y = heed_attention(t, in[0], in[1], in[2], s, s,
                                    &(heed_attention_options){.heads = 2,
                                                              .causal = causal,
                                                              .pattern = pattern,
                                                              .dropout = dropout,
                                                              .probabilities = kept ? &p : NULL});
    assert_int_equal(heed_backward(t, heed_sum(t, heed_square(t, y), HEED_ALL)), HEED_OK);
    for (int i = 0; grads && i < 3; i++)
        memcpy(grads + i * n * D, heed_tensor_grad(in[i]), (size_t)(n * D) * sizeof(real));
    const int64_t bytes = (int64_t)heed_tape_memory(t);
    heed_tape_free(t);
    return bytes;
}

/* Catches: probabilities that are made again with other bits than they had. */
static void made_again_is_as_kept(void **state)
{
    (void)state;
    enum { N = 530 }; /* above what is kept */
    real *kept = malloc(3 * N * 16 * sizeof *kept), *again = malloc(3 * N * 16 * sizeof *again);
    for (int causal = 0; causal < 2; causal++)
        for (int drops = 0; drops < 2; drops++) {
            const double rate = drops ? 0.2 : 0;
            const int64_t more = run_length(N, causal, true, NULL, rate, kept);
            const int64_t less = run_length(N, causal, false, NULL, rate, again);
            assert_memory_equal(kept, again, 3 * N * 16 * sizeof *kept);
            assert_true(more - less > 2 * N * N * (int64_t)sizeof(real) * 9 / 10);
        }
    free(kept);
    free(again);
}

/* Catches: memory that grows with the square of the length. */
static void memory_is_linear(void **state)
{
    (void)state;
    static const struct form f = {"band", .band = 32};
    const heed_key_pattern pattern = {
        .ranges = band_ranges, .context = &f, .most = 2, .same_heads = true};
    for (int banded = 0; banded < 2; banded++) {
        const heed_key_pattern *p = banded ? &pattern : NULL;
        const int64_t half = run_length(1000, true, false, p, 0, NULL);
        const int64_t whole = run_length(2000, true, false, p, 0, NULL);
        if (whole > 2.8 * (double)half)
            fail_msg("%lld bytes for 2000, %lld for 1000", (long long)whole, (long long)half);
    }
}

/* Catches: a band that computes more products as the segment grows. */
static void work_is_linear(void **state)
{
    (void)state;
    enum { N = 3000 };
    static const struct form f = {"band", .band = 32};
    const heed_key_pattern pattern = {
        .ranges = band_ranges, .context = &f, .most = 2, .same_heads = true};
    const int64_t n = N;
    heed_attention_counts counts;
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &n);
    heed_tensor *x = heed_input(t, HEED_SHAPE(N, 2), NULL);
    assert_non_null(heed_attention(
        t, x, x, x, s, s,
        &(heed_attention_options){.heads = 2, .pattern = &pattern, .counts = &counts}));
    assert_int_equal(counts.pairs, 2 * (N * 65 - 32 * 33));
    assert_true(counts.products < 3 * counts.pairs);
    heed_tape_free(t);
}

/* ---- what is refused ---- */

static int wild_ranges(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                       heed_key_range *out)
{
    (void)context, (void)head, (void)i, (void)queries, (void)keys;
    out[0] = (heed_key_range){-7, 2, 0, 9};
    out[1] = (heed_key_range){1, 1 << 30, 1, 0};
    return 99;
}

/* Catches: a pattern that is believed where it leaves its segment or overlaps itself. */
static void wild_patterns_stay_inside(void **state)
{
    (void)state;
    const int64_t n = 5;
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &n);
    heed_tensor *x = heed_input(t, HEED_SHAPE(5, 4), NULL);
    for (int i = 0; i < 20; i++)
        heed_tensor_data(x)[i] = value(i, 70);
    const heed_key_pattern wild = {.ranges = wild_ranges, .most = 2, .same_heads = true};
    heed_tensor *all = heed_attention(t, x, x, x, s, s, &(heed_attention_options){.heads = 2});
    heed_tensor *y =
        heed_attention(t, x, x, x, s, s, &(heed_attention_options){.heads = 2, .pattern = &wild});
    for (int i = 0; i < 20; i++)
        assert_true(fabs((double)(heed_tensor_data(all)[i] - heed_tensor_data(y)[i])) < NEAR);
    heed_tape_free(t);
}

static void wrong_forms_are_named(void **state)
{
    (void)state;
    const int64_t n = 4;
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &n);
    heed_tensor *x = heed_input(t, HEED_SHAPE(4, 6), NULL);
    heed_tensor *half = heed_input(t, HEED_SHAPE(4, 2), NULL);
    const heed_key_pattern none = {.most = 1};
    const struct {
        heed_attention_options o;
        const char *text;
    } rows[] = {
        {{.heads = 3, .kv_heads = 2}, "attention: kv_heads is 2, expected a divisor of heads = 3"},
        {{.heads = 3, .kv_heads = 1}, "attention: k is (4,6), expected (4,2) as q has"},
        {{.heads = 3, .pattern = &none}, "attention: the pattern has at most 0 ranges, expected 1"},
        {{.heads = 3, .shared_k = x}, "attention: shared_v is NULL, expected both or none"},
        {{.heads = 3, .shared_k = half, .shared_v = x},
         "attention: shared_k is (4,2), expected (P,6) as k has"},
        {{.heads = 3, .distance_bias = half},
         "attention: distance_bias is (4,2), expected (3 or 1,L) with L odd"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heed_tape *own = heed_tape_new(NULL, NULL);
        assert_null(heed_attention(own, x, x, x, s, s, &rows[i].o));
        assert_string_equal(heed_tape_error(own)->text, rows[i].text);
        heed_tape_free(own);
    }
    heed_tape_free(t);
}

/* ---- the layer ---- */

/* Catches: slopes, tables and persistent rows that are another toolkit's no more, a head of queries
 * on the wrong head of keys. */
static void layers_match_pytorch(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof form_golden / sizeof *form_golden; n++) {
        const struct form_golden *g = &form_golden[n];
        heed_params *p = heed_params_new(NULL, NULL);
        heed_mha_layer l;
        heed_mha_options o = {.d = g->d,
                              .heads = g->heads,
                              .kv_heads = g->kv_heads,
                              .d_k = g->d_k,
                              .d_v = g->d_v,
                              .causal = g->causal};
        if (g->alibi)
            o.position_bias = (heed_slot_spec)HEED_ONE(HEED_BIAS_ALIBI);
        if (g->radius)
            o.position_bias = (heed_slot_spec)HEED_ONE(HEED_BIAS_TABLE, {g->radius});
        if (g->rows)
            o.memory = (heed_slot_spec)HEED_ONE(HEED_MEMORY_PERSISTENT, {g->rows});
        heed_mha_build(&l, heed_params_scope(p), &o);
        assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
        for (int i = 0; i < heed_params_count(p); i++) {
            heed_tensor *w = heed_params_entry(p, i).tensor;
            for (int64_t j = 0; j < heed_tensor_count(w); j++)
                heed_tensor_data(w)[j] = (real)0.5 * value(j, i + 1);
        }
        heed_tape *t = heed_tape_new(NULL, NULL);
        const heed_segments *s = heed_segments_new(heed_tape_arena(t), 2, (int64_t[]){5, 3});
        heed_tensor *x = heed_variable(t, HEED_SHAPE(8, g->d), NULL);
        heed_tensor *dy = heed_input(t, HEED_SHAPE(8, g->d), NULL);
        for (int64_t i = 0; i < heed_tensor_count(x); i++) {
            heed_tensor_data(x)[i] = value(i, 10);
            heed_tensor_data(dy)[i] = value(i, 12);
        }
        heed_tensor *y = heed_mha_apply(t, &l, x, x, s, s, NULL);
        if (heed_backward(t, heed_sum(t, heed_mul(t, y, dy), HEED_ALL)))
            fail_msg("%s: %s", g->name, heed_tape_error(t)->text);
        const struct form f = {.name = g->name};
        assert_close(&f, "y", heed_tensor_data(y), g->y, heed_tensor_count(y));
        assert_close(&f, "dx", heed_tensor_grad(x), g->dx, heed_tensor_count(x));
        heed_tape_free(t);
        heed_params_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_matches_loops),  cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(segments_do_not_meet),      cmocka_unit_test(made_again_is_as_kept),
        cmocka_unit_test(memory_is_linear),          cmocka_unit_test(work_is_linear),
        cmocka_unit_test(wild_patterns_stay_inside), cmocka_unit_test(wrong_forms_are_named),
        cmocka_unit_test(layers_match_pytorch),
    };
    return cmocka_run_group_tests_name("attention in its forms", tests, NULL, NULL);
}
