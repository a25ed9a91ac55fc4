/* Every operator on inputs that are large enough to be shared between threads: with 2, 3 and 4 of
 * them the same bits every time, and the same numbers as one thread gives, in the outputs and in
 * the gradients. */
#include <heed/heed.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define NEAR 1e-11
#else
/* Sums of some thousand numbers, in another order. */
#define NEAR 1e-4
#endif

/* With a sanitizer a run takes ten times as long: one number of threads, with uneven shares. */
#ifdef __SANITIZE_ADDRESS__
enum { FEWEST = 3, MOST = 3 };
#else
enum { FEWEST = 2, MOST = 4 };
#endif

enum { N = 2800, D = 96, B = 5, INPUTS = 5 };
static const int64_t lengths[B] = {1000, 0, 1, 1500, 299};

/* x, y (N,D); v (D); w (D,D); u (D,4D).  ids are below D, some -1.  The segments s have N
 * rows, and so have the short ones, of 100 each. */
struct batch {
    heed_tensor *in[INPUTS];
    int32_t ids[N], positions[N];
    uint8_t mask[N];
    const heed_segments *s, *short_ones;
};
#define PAIRS(heads)                                                                               \
    (heed_pairs)                                                                                   \
    {                                                                                              \
        b->short_ones, b->short_ones, heads, NULL, NULL                                            \
    }
#define IN                                                                                         \
    heed_tensor *x = b->in[0], *y = b->in[1], *v = b->in[2], *w = b->in[3], *u = b->in[4];         \
    (void)x, (void)y, (void)v, (void)w, (void)u
#define OP(name, expression)                                                                       \
    static heed_tensor *run_##name(heed_tape *t, const struct batch *b)                            \
    {                                                                                              \
        IN;                                                                                        \
        return expression;                                                                         \
    }
static heed_tensor *positive(heed_tape *t, heed_tensor *x)
{
    return heed_scale(t, heed_square(t, x), 1, 0.5);
}
static heed_tensor *column(heed_tape *t, heed_tensor *x)
{
    return heed_slice_cols(t, x, 3, 4);
}

/* clang-format off */
#define OPERATORS(X) \
    X(add, heed_add(t, x, y)) \
    X(add_row, heed_add(t, x, v)) \
    X(sub_row, heed_sub(t, x, v)) \
    X(mul_column, heed_mul(t, x, column(t, y))) \
    X(mul_row, heed_mul(t, x, v)) \
    X(div, heed_div(t, x, positive(t, y))) \
    X(clamp, heed_clamp(t, x, -0.5, 0.5)) \
    X(abs, heed_abs(t, x)) \
    X(exp, heed_exp(t, x)) \
    X(log, heed_log(t, positive(t, x))) \
    X(sqrt, heed_sqrt(t, positive(t, x))) \
    X(relu, heed_relu(t, x)) \
    X(gelu, heed_gelu(t, x)) \
    X(gelu_tanh, heed_gelu_tanh(t, x)) \
    X(silu, heed_silu(t, x)) \
    X(tanh, heed_tanh(t, x)) \
    X(sigmoid, heed_sigmoid(t, x)) \
    X(softplus, heed_softplus(t, x)) \
    X(maxout, heed_maxout(t, x, 4)) \
    X(matmul_nn, heed_matmul(t, x, w, HEED_NN)) \
    X(matmul_nt, heed_matmul(t, x, w, HEED_NT)) \
    X(matmul_tn, heed_matmul(t, x, y, HEED_TN)) \
    X(batch_matmul, heed_batch_matmul(t, heed_reshape(t, x, HEED_SHAPE(28, 100, D)), \
                                      heed_reshape(t, y, HEED_SHAPE(28, 100, D)), HEED_NT)) \
    X(linear, heed_linear(t, x, w, v, HEED_GELU)) \
    X(linear_few_rows, heed_linear(t, heed_slice_rows(t, x, 0, 8), u, NULL, HEED_TANH)) \
    X(outer, heed_outer(t, heed_slice_cols(t, x, 0, 7), y)) \
    X(cosine, heed_cosine(t, x, y, 1e-6)) \
    X(softmax, heed_softmax(t, x)) \
    X(log_softmax, heed_log_softmax(t, x)) \
    X(segment_softmax, heed_segment_softmax(t, x, b->s)) \
    X(segment_sum, heed_segment_sum(t, x, b->s)) \
    X(segment_mean, heed_segment_mean(t, x, b->s)) \
    X(segment_max, heed_segment_max(t, x, b->s)) \
    X(sum_all, heed_sum(t, x, HEED_ALL)) \
    X(sum_rows, heed_sum(t, x, HEED_ROWS)) \
    X(mean_cols, heed_mean(t, x, HEED_COLS)) \
    X(max_rows, heed_max(t, x, HEED_ROWS)) \
    X(logsumexp_rows, heed_logsumexp(t, x, HEED_ROWS)) \
    X(logsumexp_cols, heed_logsumexp(t, x, HEED_COLS)) \
    X(logsumexp_all, heed_logsumexp(t, x, HEED_ALL)) \
    X(top_k, heed_top_k(t, x, 5, NULL)) \
    X(layer_norm, heed_layer_norm(t, x, v, v, 1e-5)) \
    X(rms_norm, heed_rms_norm(t, x, v, 1e-5)) \
    X(batch_norm, heed_batch_norm(t, x, v, v, heed_input(t, HEED_SHAPE(D), NULL), \
                                  heed_input(t, HEED_SHAPE(D), NULL), 0.1, 1e-5)) \
    X(dropout, heed_dropout(t, x, 0.3)) \
    X(add_norm, heed_add_norm(t, x, y, v, v, 0.3, 1e-5)) \
    X(add_dropout, heed_add_dropout(t, x, y, 0.3)) \
    X(embedding, heed_embedding(t, w, b->ids, N, &(heed_embedding_options){ \
        .scale = 2, .positions = y, .position_ids = b->positions, .dropout = 0.1})) \
    X(gather_rows, heed_gather_rows(t, x, b->ids, N)) \
    X(scatter_rows, heed_scatter_rows(t, x, b->ids, D)) \
    X(select_rows, heed_select(t, b->mask, true, x, y)) \
    X(concat_cols, heed_concat_cols(t, (heed_tensor *[]){x, y, x}, 3)) \
    X(concat_rows, heed_concat_rows(t, (heed_tensor *[]){x, w, y}, 3)) \
    X(transpose_last, heed_transpose_last(t, x)) \
    X(stack_steps, heed_stack_steps(t, (heed_tensor *[]){x, y}, 2)) \
    X(segment_shift, heed_segment_shift(t, x, b->s, 2, v)) \
    X(segment_reverse, heed_segment_reverse(t, x, b->s)) \
    X(cross_entropy, heed_cross_entropy(t, x, b->ids, 0.1)) \
    X(project_cross_entropy, heed_project_cross_entropy(t, x, w, v, b->ids, 0.1, 0.01, NULL)) \
    X(attention, heed_attention(t, x, y, y, b->s, b->s, &(heed_attention_options){ \
        .heads = 4, .causal = true, .dropout = 0.1})) \
    X(unit, heed_unit(t, x, 4, 1e-6)) \
    X(pairs_dot, heed_pairs_dot(t, x, y, 0.1, &PAIRS(4))) \
    X(pairs_additive, heed_pairs_additive(t, x, y, v, &PAIRS(2))) \
    X(pairs_location, heed_pairs_location(t, heed_matmul(t, x, u, HEED_NN), &PAIRS(1))) \
    X(pairs_gaussian, heed_pairs_gaussian(t, heed_slice_cols(t, x, 0, 4), 9, &PAIRS(4))) \
    X(pairs_softmax, heed_pairs_softmax(t, heed_pairs_dot(t, x, y, 0.1, &PAIRS(4)), &PAIRS(4), \
                                        NULL)) \
    X(pairs_choose, heed_pairs_choose(t, heed_pairs_dot(t, x, y, 0.1, &PAIRS(4)), true, \
                                      &PAIRS(4), NULL, NULL)) \
    X(pairs_mix, heed_pairs_mix(t, heed_pairs_dot(t, x, y, 0.1, &PAIRS(4)), y, &PAIRS(4))) \
    X(lstm_step, heed_lstm_step(t, heed_linear(t, x, u, NULL, HEED_IDENTITY), \
                                (heed_lstm_state){y, x}, u).h) \
    X(gru_step, heed_gru_step(t, heed_linear(t, x, heed_slice_cols(t, u, 0, 3 * D), NULL, \
                                             HEED_IDENTITY), \
                              y, heed_slice_cols(t, u, 0, 3 * D), NULL, HEED_GRU_Z_TAKES)) \
    X(sample, heed_sample(t, heed_log_softmax(t, x), NULL))
/* clang-format on */
OPERATORS(OP)

static const struct {
    const char *name;
    heed_tensor *(*run)(heed_tape *t, const struct batch *b);
} operators[] = {
#define ROW(name, expression) {#name, run_##name},
    OPERATORS(ROW)};

/* Output and gradients of one run, one after the other. */
struct numbers {
    int64_t count;
    heed_real *at;
};

static void append(struct numbers *n, const heed_real *x, int64_t count)
{
    n->at = realloc(n->at, (size_t)(n->count + count) * sizeof *n->at);
    assert_non_null(n->at);
    memcpy(n->at + n->count, x, (size_t)count * sizeof *x);
    n->count += count;
}

/* The same normal numbers for every input of every run: they are drawn once. */
static heed_real drawn[N * D];

static int draw_inputs(void **state)
{
    (void)state;
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 8});
    for (int i = 0; i < N * D; i++)
        drawn[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
    return 0;
}

static struct numbers run_one(size_t k, int threads)
{
    const heed_shape shapes[INPUTS] = {HEED_SHAPE(N, D), HEED_SHAPE(N, D), HEED_SHAPE(D),
                                       HEED_SHAPE(D, D), HEED_SHAPE(D, 4 * D)};
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads, .seed = 2}, NULL);
    assert_non_null(t);
    static struct batch b;
    for (int i = 0; i < INPUTS; i++) {
        b.in[i] = heed_variable(t, shapes[i], drawn);
        assert_non_null(b.in[i]);
        /* x and y must differ. */
        for (int64_t j = 0; i == 1 && j < heed_tensor_count(b.in[i]); j++)
            heed_tensor_data(b.in[i])[j] = drawn[N * D - 1 - j];
    }
    for (int i = 0; i < N; i++) {
        b.ids[i] = i % 11 == 5 ? -1 : i * 29 % D;
        b.positions[i] = i * 7 % N;
        b.mask[i] = i % 3 == 0;
    }
    b.s = heed_segments_new(heed_tape_arena(t), B, lengths);
    int64_t hundreds[N / 100];
    for (int i = 0; i < N / 100; i++)
        hundreds[i] = 100;
    b.short_ones = heed_segments_new(heed_tape_arena(t), N / 100, hundreds);
    heed_tensor *y = operators[k].run(t, &b);
    if (!y)
        fail_msg("%s: %s", operators[k].name, heed_tape_error(t)->text);
    struct numbers n = {0};
    append(&n, heed_tensor_data(y), heed_tensor_count(y));
    /* Not the plain sum: its gradient is 1 everywhere, and a softmax's then 0. */
    heed_tensor *loss = heed_sum(t, heed_square(t, y), HEED_ALL);
    if (heed_backward(t, loss))
        fail_msg("%s: %s", operators[k].name, heed_tape_error(t)->text);
    for (int i = 0; i < INPUTS; i++)
        append(&n, heed_tensor_grad(b.in[i]), heed_tensor_count(b.in[i]));
    heed_tape_free(t);
    return n;
}

static void expect_near(const char *name, int threads, const struct numbers *a,
                        const struct numbers *b)
{
    double largest = 0;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++)
        largest = fmax(largest, fabs((double)a->at[i]));
    for (int64_t i = 0; i < a->count; i++)
        if (!(fabs((double)a->at[i] - (double)b->at[i]) <= NEAR * largest))
            fail_msg("%s with %d threads: number %d is %.9g, with one thread %.9g", name, threads,
                     (int)i, (double)b->at[i], (double)a->at[i]);
}

/* Catches: work lost or done twice where one thread's share ends, two threads that add to one
 * place, a sum whose order is a matter of timing. */
static void threads_share_without_a_trace(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof operators / sizeof *operators; k++) {
        struct numbers alone = run_one(k, 1);
        for (int threads = FEWEST; threads <= MOST; threads++) {
            struct numbers first = run_one(k, threads), again = run_one(k, threads);
            expect_near(operators[k].name, threads, &alone, &first);
            if (memcmp(first.at, again.at, (size_t)first.count * sizeof *first.at) != 0)
                fail_msg("%s with %d threads: other bits", operators[k].name, threads);
            free(first.at);
            free(again.at);
        }
        free(alone.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_without_a_trace),
    };
    return cmocka_run_group_tests(tests, draw_inputs, NULL);
}
