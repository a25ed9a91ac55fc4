/* Linear attention: every instruction set against a loop over pairs, forward and backward, one by
 * one and at once; and the operator's segments, threads and refusals. */
#include "kernel/kernels.h"
#include "tensor/tape.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <heed/ops.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-12
#else
#define CLOSE 2e-5
#endif
#include "kernel_check.h"

/* ---- the oracle: P_ij = phi(q_i).phi(k_j) / (sum_j phi(q_i).phi(k_j) + eps) over seen j ---- */

static double phi(double x)
{
    return x > 0 ? x + 1 : exp(x);
}

static double phi_derivative(double x)
{
    return x > 0 ? 1 : exp(x);
}

struct oracle {
    double *out, *dq, *dk, *dv;
};

static bool sees(const heed__linear_head *h, int64_t i, int64_t j)
{
    return !h->causal || j <= i;
}

static double score(const heed__linear_head *h, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t x = 0; x < h->features.d; x++)
        sum += phi((double)h->q.at[i * h->q.ld + x]) * phi((double)h->k.at[j * h->k.ld + x]);
    return sum;
}

/* O = P V; dP_ij = dO_i.v_j, dscore_ij = (dP_ij - dO_i.O_i) / total_i. */
static struct oracle quadratic(const heed__linear_head *h)
{
    struct oracle o = {calloc((size_t)(h->t * h->d_v + 1), sizeof(double)),
                       calloc((size_t)(h->t * h->features.d + 1), sizeof(double)),
                       calloc((size_t)(h->s * h->features.d + 1), sizeof(double)),
                       calloc((size_t)(h->s * h->d_v + 1), sizeof(double))};
    for (int64_t i = 0; i < h->t; i++) {
        double total = (double)h->eps, inner = 0;
        for (int64_t j = 0; j < h->s; j++)
            total += sees(h, i, j) ? score(h, i, j) : 0;
        for (int64_t x = 0; x < h->d_v; x++) {
            for (int64_t j = 0; j < h->s; j++)
                if (sees(h, i, j))
                    o.out[i * h->d_v + x] +=
                        score(h, i, j) / total * (double)h->v.at[j * h->v.ld + x];
            inner += o.out[i * h->d_v + x] * (double)h->d_out.at[i * h->d_out.ld + x];
        }
        for (int64_t j = 0; j < h->s; j++) {
            double d_p = 0;
            for (int64_t x = 0; x < h->d_v; x++) {
                const double up = (double)h->d_out.at[i * h->d_out.ld + x];
                d_p += up * (double)h->v.at[j * h->v.ld + x];
                o.dv[j * h->d_v + x] += sees(h, i, j) ? score(h, i, j) / total * up : 0;
            }
            const double d_score = sees(h, i, j) ? (d_p - inner) / total : 0;
            for (int64_t x = 0; x < h->features.d; x++) {
                const double q = (double)h->q.at[i * h->q.ld + x];
                const double k = (double)h->k.at[j * h->k.ld + x];
                o.dq[i * h->features.d + x] += d_score * phi(k) * phi_derivative(q);
                o.dk[j * h->features.d + x] += d_score * phi(q) * phi_derivative(k);
            }
        }
    }
    return o;
}

/* ---- the kernels ---- */

enum { GAP = 3 }; /* columns of another head behind each row */

static heed__matrix rows_of(int64_t rows, int64_t cols, double start)
{
    heed__matrix x = {malloc((size_t)(rows * (cols + GAP) + 1) * sizeof(heed_real)), cols + GAP};
    fill(x.at, rows * x.ld, start);
    return x;
}

static heed__matrix halves_of(int64_t rows, int64_t cols)
{
    heed__matrix x = rows_of(rows, cols, 0);
    for (int64_t i = 0; i < rows * x.ld; i++)
        x.at[i] = (heed_real)0.5;
    return x;
}

static void expect_rows(const char *what, heed__matrix x, const double *wanted, int64_t rows,
                        int64_t cols, double before)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < x.ld; j++)
            expect(what, i * x.ld + j, (double)x.at[i * x.ld + j],
                   j < cols ? wanted[i * cols + j] + before : 0.5);
}

/* The same one by one: a state, a key at a time. */
static void check_steps(const heed_kernels *kernels, const heed__linear_head *h,
                        const double *wanted)
{
    const int64_t size = heed__linear_state(&h->features, h->d_v);
    heed_real *state = calloc((size_t)size, sizeof *state);
    heed_real *out = malloc((size_t)h->d_v * sizeof *out);
    heed_real *room = malloc((size_t)heed__feature_room(&h->features) * sizeof *room);
    for (int64_t j = 0; !h->causal && j < h->s; j++)
        kernels->linear_learn(&h->features, state, h->k.at + j * h->k.ld, h->v.at + j * h->v.ld,
                              h->d_v, NULL, room);
    for (int64_t i = 0; i < h->t; i++) {
        if (h->causal && i < h->s)
            kernels->linear_learn(&h->features, state, h->k.at + i * h->k.ld, h->v.at + i * h->v.ld,
                                  h->d_v, NULL, room);
        kernels->linear_ask(&h->features, out, state, h->q.at + i * h->q.ld, h->d_v, h->eps, false,
                            room);
        for (int64_t x = 0; x < h->d_v; x++)
            expect("a step", x, (double)out[x], wanted[i * h->d_v + x]);
    }
    free(state);
    free(out);
    free(room);
}

static void check_kernels(const heed_kernels *kernels, const int64_t *size, bool causal)
{
    heed__linear_head h = {.t = size[0], .s = size[1], .features = {.d = size[2]}, .d_v = size[3]};
    h.causal = causal;
    h.eps = (heed_real)heed__linear_eps(HEED__FEATURES_ELU);
    h.q = rows_of(h.t, h.features.d, 1);
    h.k = rows_of(h.s, h.features.d, 2);
    h.v = rows_of(h.s, h.d_v, 3);
    h.d_out = rows_of(h.t, h.d_v, 4);
    for (int64_t x = 0; h.s && x < h.features.d; x++)
        h.k.at[x] = 0; /* phi(0) is 1: such a key counts */
    h.out = halves_of(h.t, h.d_v);
    h.total = rows_of(h.t, 1, 0);
    h.d_q = halves_of(h.t, h.features.d);
    h.d_k_rows = halves_of(h.s, h.features.d);
    h.d_v_rows = halves_of(h.s, h.d_v);
    const size_t bytes = (kernels->linear_scratch(&h.features, h.d_v) + 127) / 64 * 64;
    h.scratch = aligned_alloc(64, bytes);
    memset(h.scratch, 0xff, bytes); /* NaN: scratch holds nothing yet */
    struct oracle o = quadratic(&h);
    kernels->linear_forward(&h);
    expect_rows("out", h.out, o.out, h.t, h.d_v, 0);
    kernels->linear_backward(&h);
    expect_rows("dq", h.d_q, o.dq, h.t, h.features.d, 0.5);
    expect_rows("dk", h.d_k_rows, o.dk, h.s, h.features.d, 0.5);
    expect_rows("dv", h.d_v_rows, o.dv, h.s, h.d_v, 0.5);
    check_steps(kernels, &h, o.out);
    void *all[] = {h.q.at,     h.k.at,   h.v.at,        h.d_out.at,    h.out.at,
                   h.total.at, h.d_q.at, h.d_k_rows.at, h.d_v_rows.at, h.scratch,
                   o.out,      o.dq,     o.dk,          o.dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Catches: a running sum that a chunk's edge changes, in either direction; a key of a short chunk
 * that is 0 and counts as phi(0) = 1; a wrong tail of a register in any instruction set. */
static void kernels_are_the_quadratic_form(void **state)
{
    static const int64_t sizes[][4] = {
        {1, 1, 1, 1},    {2, 3, 5, 4},   {7, 9, 3, 17},   {24, 24, 16, 16},
        {47, 47, 8, 24}, {48, 48, 7, 9}, {49, 49, 20, 6}, {97, 60, 5, 3},
        {60, 145, 2, 8}, {4, 0, 3, 5},   {0, 4, 3, 5},    {150, 150, 1, 1},
    };
    (void)state;
    for (int i = 0; heed__kernels_at(i); i++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
            for (int causal = 0; causal < 2; causal++)
                check_kernels(heed__kernels_at(i), sizes[n], causal);
}

/* ---- the operator ---- */

enum { ROWS = 130, HEADS = 4, KV = 2, DK = 6, DV = 5 };

static heed_tensor *apply(heed_tape *t, const heed_real *q, const heed_real *k, const heed_real *v,
                          const int64_t *lengths, int segments, bool causal)
{
    int64_t rows = 0;
    for (int b = 0; b < segments; b++)
        rows += lengths[b];
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), segments, lengths);
    heed_tensor *y = heed_linear_attention(
        t, heed_input(t, HEED_SHAPE(rows, HEADS * DK), q),
        heed_input(t, HEED_SHAPE(rows, KV * DK), k), heed_input(t, HEED_SHAPE(rows, KV * DV), v), s,
        s, &(heed_linear_attention_options){.heads = HEADS, .kv_heads = KV, .causal = causal});
    if (!y)
        fail_msg("%s", heed_tape_error(t)->text);
    return y;
}

/* Catches: what one segment has seen reaching the next; heads that meet another's keys; sums that
 * depend on the number of threads. */
static void segments_stand_alone(void **state)
{
    static const int64_t lengths[] = {60, 0, 49, 21};
    static heed_real q[ROWS * HEADS * DK], k[ROWS * KV * DK], v[ROWS * KV * DV];
    (void)state;
    fill(q, ROWS * HEADS * DK, 1);
    fill(k, ROWS * KV * DK, 2);
    fill(v, ROWS * KV * DV, 3);
    for (int causal = 0; causal < 2; causal++) {
        heed_tape *one = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
        heed_tape *three = heed_tape_new(&(heed_tape_options){.threads = 3}, NULL);
        const heed_real *all = heed_tensor_data(apply(one, q, k, v, lengths, 4, causal));
        const heed_real *others = heed_tensor_data(apply(three, q, k, v, lengths, 4, causal));
        assert_memory_equal(all, others, ROWS * HEADS * DV * sizeof *all);
        int64_t at = 0;
        for (int b = 0; b < 4; at += lengths[b++]) {
            if (!lengths[b])
                continue;
            const heed_real *alone =
                heed_tensor_data(apply(three, q + at * HEADS * DK, k + at * KV * DK,
                                       v + at * KV * DV, lengths + b, 1, causal));
            assert_memory_equal(all + at * HEADS * DV, alone,
                                (size_t)(lengths[b] * HEADS * DV) * sizeof *all);
        }
        heed_tape_free(one);
        heed_tape_free(three);
    }
}

static void refused(int heads, int kv_heads, int64_t k_cols, const char *text)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    static const int64_t length = 3;
    heed_real zero[64] = {0};
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &length);
    heed_tensor *q = heed_input(t, HEED_SHAPE(3, 8), zero);
    heed_tensor *k = heed_input(t, HEED_SHAPE(3, k_cols), zero);
    assert_null(heed_linear_attention(
        t, q, k, k, s, s, &(heed_linear_attention_options){.heads = heads, .kv_heads = kv_heads}));
    assert_string_equal(heed_tape_error(t)->text, text);
    heed_tape_free(t);
}

/* Catches: shapes that would be read beyond their end. */
static void wrong_shapes_are_refused(void **state)
{
    (void)state;
    refused(3, 0, 8, "linear_attention: q is (3,8), expected (3,3*Dk)");
    refused(4, 3, 8,
            "linear_attention: 4 heads and 3 of keys, expected a number and a divisor of it");
    refused(4, 2, 8, "linear_attention: k is (3,8), expected (3,4)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_the_quadratic_form),
        cmocka_unit_test(segments_stand_alone),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
