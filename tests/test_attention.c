/* Attention: the operator's promises, and the layer against PyTorch. */
#include <heed/attention.h>

#include "attention_golden.h"
#include "attention_oracle.h"

/* ---- the operator ---- */

/* A tape with q, k, v and the segments of a ragged batch: self-attention with 3 heads of 5. */
enum { HEADS = 3, DK = 5, D = HEADS * DK };
static const int64_t ragged[] = {7, 0, 1, 12, 4};
#define RAGGED 5
#define ROWS 24

typedef struct bench {
    heed_tape *t;
    const heed_segments *s;
    heed_tensor *q, *k, *v;
} bench;

static bench bench_new(int threads)
{
    bench b = {.t = heed_tape_new(&(heed_tape_options){.threads = threads, .seed = 9}, NULL)};
    b.s = heed_segments_new(heed_tape_arena(b.t), RAGGED, ragged);
    heed_tensor **x[] = {&b.q, &b.k, &b.v};
    for (int i = 0; i < 3; i++) {
        real *start = values(ROWS * D, 21 + i);
        *x[i] = heed_variable(b.t, HEED_SHAPE(ROWS, D), start);
        free(start);
    }
    return b;
}

static heed_tensor *attend(bench *b, const heed_attention_options *options)
{
    heed_tensor *y = heed_attention(b->t, b->q, b->k, b->v, b->s, b->s, options);
    if (!y)
        fail_msg("%s", heed_tape_error(b->t)->text);
    return y;
}

/* Catches: heads, segments, weights or bias taken from the wrong place. */
static void operator_matches_loops_per_segment_and_head(void **state)
{
    (void)state;
    enum { LONGEST = 12 };
    for (int causal = 0; causal < 2; causal++)
        for (int per_head = 0; per_head < 2; per_head++) {
            bench b = bench_new(2);
            heed_tensor *weights;
            real *bias = values(HEADS * LONGEST * LONGEST, 30);
            const heed_attention_options options = {
                .heads = HEADS,
                .causal = causal,
                .probabilities = &weights,
                .bias = heed_input(b.t, HEED_SHAPE(per_head ? HEADS : 1, LONGEST, LONGEST), bias)};
            const real *y = heed_tensor_data(attend(&b, &options));
            const real *p = heed_tensor_data(weights);
            real unused[ROWS * D] = {0};
            for (int64_t n = 0; n < RAGGED; n++)
                for (int64_t head = 0; head < HEADS; head++) {
                    const int64_t at = b.s->offset[n] * D + head * DK, length = ragged[n];
                    heed__head h = {.t = length, .s = length, .d_k = DK, .d_v = DK};
                    h.causal = causal;
                    h.scale = (real)(1 / sqrt(DK));
                    h.q = (heed__matrix){heed_tensor_data(b.q) + at, D};
                    h.k = (heed__matrix){heed_tensor_data(b.k) + at, D};
                    h.v = (heed__matrix){heed_tensor_data(b.v) + at, D};
                    h.d_out = (heed__matrix){unused, D};
                    h.bias =
                        (heed__matrix){bias + (per_head ? head * LONGEST * LONGEST : 0), LONGEST};
                    oracle r = naive(&h, NULL);
                    for (int64_t i = 0; i < length; i++)
                        assert_near(y + at + i * D, r.o + i * DK, DK, TOLERANCE);
                    assert_near(p, r.p, length * length, TOLERANCE);
                    p += length * length;
                    oracle_free(&r);
                }
            assert_int_equal(p - heed_tensor_data(weights), heed_tensor_count(weights));
            free(bias);
            heed_tape_free(b.t);
        }
}

/* Catches: a later token that reaches an earlier output through block, tile or softmax. */
static void causal_outputs_do_not_see_the_future(void **state)
{
    (void)state;
    enum { LONG = 70, WIDTH = 8 };
    const int64_t length = LONG;
    heed_tape *t = heed_tape_new(NULL, NULL);
    real *x = values(LONG * WIDTH, 40), first[LONG * WIDTH];
    const heed_attention_options options = {.heads = 2, .causal = true};
    for (int64_t changed = LONG; changed >= 0; changed -= 7) {
        heed_tape_reset(t);
        const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &length);
        for (int64_t i = changed * WIDTH; i < LONG * WIDTH; i++)
            x[i] = -3 * x[i] + 1;
        heed_tensor *in = heed_input(t, HEED_SHAPE(LONG, WIDTH), x);
        const real *y = heed_tensor_data(heed_attention(t, in, in, in, s, s, &options));
        if (changed == LONG)
            memcpy(first, y, sizeof first);
        assert_memory_equal(first, y, (size_t)(changed * WIDTH) * sizeof(real));
        if (changed < LONG)
            assert_memory_not_equal(first + changed * WIDTH, y + changed * WIDTH, sizeof(real));
    }
    free(x);
    heed_tape_free(t);
}

/* Runs segments of `lengths` whose first row of data is row `row` of a stream, forward and back,
 * and copies the output and dq, dk, dv of segment `which` into to (4, length, D). */
static void run_segment(const int64_t *lengths, int count, int which, int64_t row, int threads,
                        real *to)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads}, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), count, lengths);
    heed_tensor *in[3];
    const int64_t begin = s->offset[which] * D, n = lengths[which] * D;
    for (int i = 0; i < 3; i++) {
        in[i] = heed_variable(t, HEED_SHAPE(s->rows, D), NULL);
        for (int64_t j = 0; j < s->rows * D; j++)
            heed_tensor_data(in[i])[j] = value(j - begin + row * D, 50 + i);
    }
    heed_tensor *y = heed_attention(t, in[0], in[1], in[2], s, s,
                                    &(heed_attention_options){.heads = HEADS, .causal = true});
    assert_int_equal(heed_backward(t, heed_sum(t, heed_square(t, y), HEED_ALL)), HEED_OK);
    memcpy(to, heed_tensor_data(y) + begin, (size_t)n * sizeof(real));
    for (int i = 0; i < 3; i++)
        memcpy(to + (i + 1) * n, heed_tensor_grad(in[i]) + begin, (size_t)n * sizeof(real));
    heed_tape_free(t);
}

/* Catches: one sentence changing another's output or gradient, even in the last bit. */
static void segments_do_not_meet(void **state)
{
    (void)state;
    enum { LENGTH = 9 };
    real alone[4 * LENGTH * D], among[4 * LENGTH * D];
    run_segment((int64_t[]){LENGTH}, 1, 0, 300, 1, alone);
    run_segment((int64_t[]){3, LENGTH, 0, 60}, 4, 1, 300, 2, among);
    assert_memory_equal(alone, among, sizeof alone);
    run_segment((int64_t[]){0, 17, 5, LENGTH}, 4, 3, 300, 3, among);
    assert_memory_equal(alone, among, sizeof alone);
}

/* Catches: a normaliser that does not add up, weights off their documented place. */
static void rows_of_weights_sum_to_one(void **state)
{
    (void)state;
    bench b = bench_new(2);
    heed_tensor *weights;
    attend(&b,
           &(heed_attention_options){.heads = HEADS, .causal = true, .probabilities = &weights});
    const real *p = heed_tensor_data(weights);
    for (int64_t n = 0; n < RAGGED; n++)
        for (int64_t row = 0; row < HEADS * ragged[n]; row++, p += ragged[n]) {
            double sum = 0;
            for (int64_t j = 0; j < ragged[n]; j++) {
                assert_true(p[j] >= 0 && (j <= row % ragged[n] || p[j] == 0));
                sum += (double)p[j];
            }
            assert_true(fabs(sum - 1) < 1e-5);
        }
    heed_tape_free(b.t);
}

/* Catches: an output that depends on the order of keys, or on a query's neighbours. */
static void permuting_tokens_permutes_outputs(void **state)
{
    (void)state;
    enum { N = 23 };
    const int64_t length = N;
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &length);
    real *x = values(N * D, 60), moved[N * D];
    for (int64_t i = 0; i < N; i++)
        memcpy(moved + i * 5 % N * D, x + i * D, D * sizeof(real));
    heed_tensor *a = heed_input(t, HEED_SHAPE(N, D), x);
    heed_tensor *b = heed_input(t, HEED_SHAPE(N, D), moved);
    const heed_attention_options options = {.heads = HEADS};
    const real *y = heed_tensor_data(heed_attention(t, a, a, a, s, s, &options));
    const real *z = heed_tensor_data(heed_attention(t, b, b, b, s, s, &options));
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < D; j++)
            assert_true(fabs((double)y[i * D + j] - (double)z[i * 5 % N * D + j]) < TOLERANCE);
    free(x);
    heed_tape_free(t);
}

/* Catches: forbidden keys that still weigh in, by their number or by their size. */
static void forbidden_keys_change_nothing(void **state)
{
    (void)state;
    enum { T = 6, S = 11, KEPT = 4 };
    const int64_t t_length = T, s_length = S, kept_length = KEPT;
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_arena *arena = heed_tape_arena(t);
    const heed_segments *queries = heed_segments_new(arena, 1, &t_length);
    real *q = values(T * D, 70), *k = values(S * D, 71), bias[T * S] = {0};
    for (int64_t i = 0; i < T * S; i++)
        if (i % S >= KEPT) {
            bias[i] = -INFINITY;
            k[i % S * D] = 1000;
        }
    heed_tensor *in = heed_input(t, HEED_SHAPE(T, D), q);
    heed_tensor *some = heed_input(t, HEED_SHAPE(KEPT, D), k);
    heed_tensor *all = heed_input(t, HEED_SHAPE(S, D), k);
    heed_attention_options options = {.heads = HEADS};
    const real *y = heed_tensor_data(heed_attention(
        t, in, some, some, queries, heed_segments_new(arena, 1, &kept_length), &options));
    options.bias = heed_input(t, HEED_SHAPE(1, T, S), bias);
    const real *z = heed_tensor_data(
        heed_attention(t, in, all, all, queries, heed_segments_new(arena, 1, &s_length), &options));
    for (int64_t i = 0; i < T * D; i++)
        assert_true(fabs((double)y[i] - (double)z[i]) < TOLERANCE);
    free(q);
    free(k);
    heed_tape_free(t);
}

/* Catches: 0/0 in a row without any key, forward or backward. */
static void a_query_without_keys_gives_zeros(void **state)
{
    (void)state;
    enum { T = 5 };
    const int64_t lengths[] = {T, 2}, key_lengths[] = {T, 0};
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *queries = heed_segments_new(heed_tape_arena(t), 2, lengths);
    const heed_segments *keys = heed_segments_new(heed_tape_arena(t), 2, key_lengths);
    real *x = values((T + 2) * D, 80), bias[T * T] = {0};
    for (int64_t j = 0; j < T; j++)
        bias[2 * T + j] = -INFINITY;
    heed_tensor *q = heed_variable(t, HEED_SHAPE(T + 2, D), x);
    heed_tensor *k = heed_variable(t, HEED_SHAPE(T, D), x);
    heed_tensor *b = heed_variable(t, HEED_SHAPE(1, T, T), bias);
    heed_tensor *y = heed_attention(t, q, k, k, queries, keys,
                                    &(heed_attention_options){.heads = HEADS, .bias = b});
    assert_int_equal(heed_backward(t, heed_sum(t, heed_square(t, y), HEED_ALL)), HEED_OK);
    for (int64_t i = 0; i < (T + 2) * D; i++) {
        const bool lonely = i / D == 2 || i / D >= T;
        assert_true(lonely ? heed_tensor_data(y)[i] == 0 : heed_tensor_data(y)[i] != 0);
        assert_true(lonely ? heed_tensor_grad(q)[i] == 0 : isfinite(heed_tensor_grad(q)[i]));
    }
    for (int64_t j = 0; j < T; j++)
        assert_true(heed_tensor_grad(b)[2 * T + j] == 0);
    free(x);
    heed_tape_free(t);
}

/* Catches: a sum whose order depends on timing, or on how many threads share the work. */
static void threads_never_change_a_bit(void **state)
{
    (void)state;
    enum { LONGEST = 61, SEGMENTS = 6 };
    static const int64_t lengths[SEGMENTS] = {5, LONGEST, 33, 1, 60, 17};
    static real first[4 * LONGEST * D], again[4 * LONGEST * D];
    for (int which = 0; which < SEGMENTS; which++) {
        run_segment(lengths, SEGMENTS, which, 0, 1, first);
        for (int threads = 1; threads <= 4; threads++)
            for (int repeat = 0; repeat < 3; repeat++) {
                run_segment(lengths, SEGMENTS, which, 0, threads, again);
                assert_memory_equal(first, again, (size_t)(4 * lengths[which] * D) * sizeof(real));
            }
    }
}

/* Catches: dropout that touches the weights given out, is not scaled, or works outside training. */
static void dropout_zeroes_or_scales_weights(void **state)
{
    (void)state;
    enum { N = 40 };
    const int64_t length = N;
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &length);
    real *x = values(N * N, 90);
    heed_tensor *q = heed_input(t, HEED_SHAPE(N, N), x), *v = heed_input(t, HEED_SHAPE(N, N), NULL);
    for (int64_t i = 0; i < N; i++)
        heed_tensor_data(v)[i * N + i] = 1; /* the output is the weights that were used */
    heed_tensor *weights;
    const heed_attention_options options = {.heads = 1, .dropout = 0.25, .probabilities = &weights};
    const real *y = heed_tensor_data(heed_attention(t, q, q, v, s, s, &options));
    const real *p = heed_tensor_data(weights);
    int dropped = 0;
    for (int64_t i = 0; i < N * N; i++) {
        dropped += y[i] == 0;
        assert_true(y[i] == 0 || fabs((double)(y[i] / p[i]) - 1 / 0.75) < 1e-4);
    }
    /* 400 expected of 1600; the standard deviation is 17. */
    assert_in_range(dropped, 315, 485);
    heed_tape_set_training(t, false);
    y = heed_tensor_data(heed_attention(t, q, q, v, s, s, &options));
    for (int64_t i = 0; i < N * N; i++)
        assert_true(fabs((double)(y[i] - p[i])) < TOLERANCE);
    free(x);
    heed_tape_free(t);
}

/* Catches: a wrong call that computes something, or whose text names nothing. */
static void wrong_calls_are_named(void **state)
{
    (void)state;
    bench b = bench_new(1);
    const int64_t ten[] = {10}, two[] = {12, 12};
    heed_arena *arena = heed_tape_arena(b.t);
    const heed_segments *other = heed_segments_new(arena, 1, ten);
    const heed_segments *halves = heed_segments_new(arena, 2, two);
    heed_tensor *narrow = heed_input(b.t, HEED_SHAPE(ROWS, 6), NULL);
    heed_tensor *bias = heed_input(b.t, HEED_SHAPE(2, 12, 12), NULL);
    heed_tensor *small = heed_input(b.t, HEED_SHAPE(1, 12, 11), NULL);
    const struct {
        heed_tensor *q, *k, *v;
        const heed_segments *queries, *keys;
        heed_attention_options options;
        const char *text;
    } calls[] = {
        {b.q, b.k, b.v, b.s, b.s, {.heads = 0}, "attention: heads is 0, expected at least 1"},
        {b.q,
         b.k,
         b.v,
         b.s,
         b.s,
         {.heads = 4},
         "attention: q is (24,15), expected (24,H*Dk) with 4 heads"},
        {b.q, b.k, b.v, NULL, b.s, {.heads = 3}, "attention: segments of the queries are NULL"},
        {b.q, b.k, b.v, b.s, halves, {.heads = 3}, "attention: keys have 2 segments, expected 5"},
        {b.q,
         b.k,
         b.v,
         other,
         other,
         {.heads = 3},
         "attention: q is (24,15), expected (10,H*Dk) with 3 heads"},
        {b.q,
         narrow,
         b.v,
         b.s,
         b.s,
         {.heads = 3},
         "attention: k is (24,6), expected (24,15) as q has"},
        {b.q,
         b.k,
         b.v,
         b.s,
         b.s,
         {.heads = 3, .dropout = 1},
         "attention: dropout is 1, expected 0 <= rate < 1"},
        {b.q,
         b.k,
         b.v,
         b.s,
         b.s,
         {.heads = 3, .scale = INFINITY},
         "attention: scale is inf, expected a finite number"},
        {b.q,
         b.k,
         b.v,
         b.s,
         b.s,
         {.heads = 3, .bias = bias},
         "attention: bias is (2,12,12), expected (3 or 1,T,S) with T at least 12 and S at least "
         "12"},
        {b.q,
         b.k,
         b.v,
         b.s,
         b.s,
         {.heads = 3, .bias = small},
         "attention: bias is (1,12,11), expected (3 or 1,T,S) with T at least 12 and S at least "
         "12"},
        {b.q, NULL, b.v, b.s, b.s, {.heads = 3}, "attention: input 2 is NULL"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        heed_tape *t = heed_tape_new(NULL, NULL);
        assert_null(heed_attention(t, calls[i].q, calls[i].k, calls[i].v, calls[i].queries,
                                   calls[i].keys, &calls[i].options));
        assert_string_equal(heed_tape_error(t)->text, calls[i].text);
        heed_tape_free(t);
    }
    heed_tape_free(b.t);
}

/* ---- the layer ---- */

static heed_params *build(heed_mha_layer *l, const heed_mha_options *options)
{
    heed_params *p = heed_params_new(NULL, NULL);
    heed_mha_build(l, heed_scope_enter(heed_params_scope(p), "self"), options);
    return p;
}

/* Catches: a layer that is not the paper's; packed rows that are not padded and masked ones. */
static void layer_matches_pytorch_on_padded_batches(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof golden / sizeof *golden; n++) {
        const struct golden *g = &golden[n];
        heed_mha_layer l;
        heed_params *p = build(&l, &(heed_mha_options){.d = g->d,
                                                       .memory_d = g->memory_d,
                                                       .heads = g->heads,
                                                       .cross = g->memory_d > 0,
                                                       .causal = g->causal,
                                                       .bias = true});
        assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
        for (int i = 0; i < heed_params_count(p); i++) {
            heed_tensor *w = heed_params_entry(p, i).tensor;
            for (int64_t j = 0; j < heed_tensor_count(w); j++)
                heed_tensor_data(w)[j] = (real)0.5 * value(j, i + 1);
        }
        heed_tape *t = heed_tape_new(NULL, NULL);
        heed_arena *arena = heed_tape_arena(t);
        const heed_segments *queries = heed_segments_new(arena, g->segments, g->queries);
        const heed_segments *keys = heed_segments_new(arena, g->segments, g->keys);
        const int64_t count = queries->rows * g->d, memory_count = keys->rows * g->memory_d;
        real *start = values(count, 10), *memory = values(memory_count, 11),
             *dy = values(count, 12);
        heed_tensor *x = heed_variable(t, HEED_SHAPE(queries->rows, g->d), start);
        heed_tensor *m =
            g->memory_d ? heed_input(t, HEED_SHAPE(keys->rows, g->memory_d), memory) : x;
        heed_tensor *y = heed_mha_apply(t, &l, x, m, queries, keys, NULL);
        heed_tensor *up = heed_input(t, HEED_SHAPE(queries->rows, g->d), dy);
        if (heed_backward(t, heed_sum(t, heed_mul(t, y, up), HEED_ALL)))
            fail_msg("%s", heed_tape_error(t)->text);
        assert_near(heed_tensor_data(y), g->y, count, TOLERANCE);
        assert_near(heed_tensor_grad(x), g->dx, count, TOLERANCE);
        free(start);
        free(memory);
        free(dy);
        heed_tape_free(t);
        heed_params_free(p);
    }
}

/* Catches: other names or shapes than checkpoints and importers rely on. */
static void layer_declares_its_parameters(void **state)
{
    (void)state;
    heed_mha_layer l;
    heed_params *p = build(&l, &(heed_mha_options){.d = 8, .heads = 2, .d_k = 3, .d_v = 5});
    assert_int_equal(heed_params_count(p), 2);
    assert_int_equal(heed_tensor_cols(heed_params_find(p, "self.qkv.weight")), 2 * (3 + 3 + 5));
    assert_int_equal(heed_tensor_rows(heed_params_find(p, "self.out.weight")), 2 * 5);
    heed_params_free(p);
    p = build(&l,
              &(heed_mha_options){.d = 8, .memory_d = 6, .heads = 2, .cross = true, .bias = true});
    assert_int_equal(heed_params_count(p), 6);
    assert_non_null(heed_params_find(p, "self.q.bias"));
    assert_int_equal(heed_tensor_rows(heed_params_find(p, "self.kv.weight")), 6);
    assert_int_equal(heed_tensor_cols(heed_params_find(p, "self.kv.weight")), 2 * (4 + 4));
    heed_params_free(p);
}

/* Catches: a layer built or applied in a way that means nothing. */
static void wrong_layers_are_named(void **state)
{
    (void)state;
    const struct {
        heed_mha_options options;
        const char *text;
    } layers[] = {
        {{.d = 8, .heads = 3},
         "mha: 3 heads do not divide d = 8; choose heads that do, or give d_k and d_v"},
        {{.d = 8, .heads = 0}, "mha: d is 8 and heads 0, expected at least 1 each"},
        {{.d = 8, .heads = 2, .memory_d = 4},
         "mha: memory_d is 4, expected d = 8 without cross: self-attention's memory is x"},
        {{.d = 8, .heads = 2, .d_k = -1},
         "mha: d_k, d_v, memory_d are -1, 0, 0, expected none below 0"},
        {{.d = 8, .heads = 2, .dropout = 2}, "mha: dropout is 2, expected 0 <= rate < 1"},
    };
    heed_mha_layer l;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        heed_params *p = build(&l, &layers[i].options);
        assert_non_null(strstr(heed_params_error(p)->text, layers[i].text));
        heed_params_free(p);
    }
    heed_params *p = build(&l, &(heed_mha_options){.d = D, .heads = HEADS});
    assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
    bench b = bench_new(1);
    assert_null(heed_mha_apply(b.t, &l, b.q, b.k, b.s, b.s, NULL));
    assert_string_equal(
        heed_tape_error(b.t)->text,
        "mha: memory is not x, expected cross = true for keys and values of another sequence");
    heed_tape_free(b.t);
    heed_params_free(p);
}

/* The gradient of x = [q | k | v] through what attention makes of it; apart: each of the three is a
 * tensor of its own first. */
static void slices_grads(real *grads, const int64_t *lengths, const int64_t *more, bool causal,
                         bool apart)
{
    bench b = bench_new(2);
    heed_attention_options options = {.heads = HEADS, .causal = causal};
    /* Memory that gradients will be made of is full of something else. */
    heed_tensor *dirt = heed_input(b.t, HEED_SHAPE(8 * ROWS, 3 * D), NULL);
    for (int64_t i = 0; i < heed_tensor_count(dirt); i++)
        heed_tensor_data(dirt)[i] = (real)NAN;
    heed_tape_reset(b.t);
    real *start = values(ROWS * 3 * D, 40);
    heed_tensor *x = heed_variable(b.t, HEED_SHAPE(ROWS, 3 * D), start);
    heed_tensor *y = heed_scale(b.t, x, 2, 0), *part[3];
    for (int i = 0; i < 3; i++) {
        part[i] = heed_slice_cols(b.t, y, i * D, (i + 1) * D);
        if (apart)
            part[i] = heed_scale(b.t, part[i], 1, 0);
    }
    const heed_segments *q_s = heed_segments_new(heed_tape_arena(b.t), RAGGED, lengths);
    const heed_segments *k_s = heed_segments_new(heed_tape_arena(b.t), RAGGED, more);
    heed_tensor *o = heed_attention(b.t, part[0], part[1], part[2], q_s, k_s, &options);
    heed_backward(b.t, heed_mean(b.t, heed_mul(b.t, o, o), HEED_ALL));
    assert_int_equal(heed_tape_error(b.t)->status, HEED_OK);
    memcpy(grads, heed_tensor_grad(x), ROWS * 3 * D * sizeof *grads);
    free(start);
    heed_tape_free(b.t);
}

/* Catches: a gradient that is assigned where it should be added, or left as it was, when q, k and v
 * are columns of one product: sentences without queries, without keys, and keys nobody sees. */
static void slices_get_the_gradients_of_tensors(void **state)
{
    (void)state;
    static const int64_t lengths[][RAGGED] = {
        {7, 0, 1, 12, 4}, {4, 5, 0, 3, 12}, {12, 12, 0, 0, 0}, {0, 0, 12, 12, 0}};
    for (int causal = 0; causal < 2; causal++)
        for (int i = 0; i < 16; i++) {
            real one[ROWS * 3 * D], other[ROWS * 3 * D];
            slices_grads(one, lengths[i / 4], lengths[i % 4], causal, false);
            slices_grads(other, lengths[i / 4], lengths[i % 4], causal, true);
            for (int n = 0; n < ROWS * 3 * D; n++)
                if (!(fabs((double)(one[n] - other[n])) <= TOLERANCE))
                    fail_msg("lengths %d, causal %d: gradient %d is %g, expected %g", i, causal, n,
                             (double)one[n], (double)other[n]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operator_matches_loops_per_segment_and_head),
        cmocka_unit_test(causal_outputs_do_not_see_the_future),
        cmocka_unit_test(segments_do_not_meet),
        cmocka_unit_test(rows_of_weights_sum_to_one),
        cmocka_unit_test(permuting_tokens_permutes_outputs),
        cmocka_unit_test(forbidden_keys_change_nothing),
        cmocka_unit_test(a_query_without_keys_gives_zeros),
        cmocka_unit_test(threads_never_change_a_bit),
        cmocka_unit_test(dropout_zeroes_or_scales_weights),
        cmocka_unit_test(wrong_calls_are_named),
        cmocka_unit_test(layer_matches_pytorch_on_padded_batches),
        cmocka_unit_test(layer_declares_its_parameters),
        cmocka_unit_test(wrong_layers_are_named),
        cmocka_unit_test(slices_get_the_gradients_of_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
