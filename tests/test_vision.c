/* Operators on pictures against golden values of PyTorch (vision_golden.h), and what a value alone
 * does not show: ties, NaN, how the vector of spectral norm moves, what is refused. */
#include "kernel/kernels.h"
#include "vision_golden.h"

#include <heed/nn.h>
#include <heed/ops.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-11 /* twelve digits are printed in the golden values */
#else
#define CLOSE 3e-6 /* sums of some ten products, batch norm divides by small deviations */
#endif

#include "kernel_check.h"

static heed_tape *tape;

static int make_tape(void **state)
{
    (void)state;
    tape = heed_tape_new(&(heed_tape_options){.threads = 2}, NULL);
    return tape ? 0 : 1;
}

static int free_tape(void **state)
{
    (void)state;
    heed_tape_free(tape);
    return 0;
}

/* The inputs of vision_golden.py. */
static heed_tensor *waves(int64_t rows, int64_t cols, double step, double start)
{
    heed_tensor *x = heed_variable(tape, HEED_SHAPE(rows, cols), NULL);
    assert_non_null(x);
    for (int64_t i = 0; i < rows * cols; i++)
        heed_tensor_data(x)[i] = (heed_real)sin(step * (double)i + start);
    return x;
}

static heed_tensor *rows(int64_t n, int64_t c)
{
    return waves(n, c, 1.3, 0.2);
}

static heed_tensor *weights(int64_t n, int64_t f)
{
    return waves(n, f, 0.7, 1.1);
}

static heed_tensor *bias(int64_t f)
{
    return waves(1, f, 2.1, 0.4);
}

/* y and the gradients of sum(y g), one after the other as they are printed. */
static void expect_golden(const char *what, const double *golden, size_t count, heed_tensor *y,
                          heed_tensor *const *inputs, int n)
{
    int64_t at = 0;
    if (!y)
        fail_msg("%s: %s", what, heed_tape_error(tape)->text);
    for (int64_t i = 0; i < heed_tensor_count(y); i++)
        expect(what, i, (double)heed_tensor_data(y)[i], golden[at++]);
    heed_tensor *g = waves(heed_tensor_rows(y), heed_tensor_cols(y), 0.9, 0.7);
    if (heed_backward(tape, heed_sum(tape, heed_mul(tape, y, g), HEED_ALL)))
        fail_msg("%s: %s", what, heed_tape_error(tape)->text);
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < heed_tensor_count(inputs[k]); i++)
            expect(what, at, (double)heed_tensor_grad(inputs[k])[i], golden[at]), at++;
    assert_int_equal(at, count);
}
#define EXPECT_GOLDEN(name, y, ...)                                                                \
    expect_golden(#name, golden_##name, sizeof golden_##name / sizeof *golden_##name, y,           \
                  (heed_tensor *const[]){__VA_ARGS__},                                             \
                  (int)(sizeof((heed_tensor *const[]){__VA_ARGS__}) / sizeof(heed_tensor *)))

/* Catches: a layout, an order of taps or a padding that is not the usual one. */
static void golden_convolutions(void **state)
{
    (void)state;
    heed_tensor *x = rows(2 * 5 * 6, 3), *w = weights(9 * 3, 4), *b = bias(4);
    EXPECT_GOLDEN(conv2d,
                  heed_conv2d(tape, x, w, b,
                              &(heed_conv2d_options){.image = {5, 6},
                                                     .kernel = {3, 3},
                                                     .stride = {2, 1},
                                                     .padding = {1, 1},
                                                     .dilation = {1, 2}}),
                  x, w, b);
    heed_tape_reset(tape);
    x = rows(2 * 2 * 3, 3), w = weights(12 * 3, 2), b = bias(2);
    EXPECT_GOLDEN(conv2d_transposed,
                  heed_conv2d_transposed(tape, x, w, b,
                                         &(heed_conv2d_options){.image = {2, 3},
                                                                .kernel = {4, 3},
                                                                .stride = {2, 2},
                                                                .padding = {1, 1},
                                                                .extra = {0, 1}}),
                  x, w, b);
    heed_tape_reset(tape);
    x = rows(10, 3), w = weights(2 * 3, 2), b = bias(2);
    const heed_segments *s = heed_segments_new(heed_tape_arena(tape), 2, (int64_t[]){6, 4});
    EXPECT_GOLDEN(conv1d,
                  heed_conv1d(tape, x, w, b, s,
                              &(heed_conv1d_options){.kernel = 2, .dilation = 2, .causal = true},
                              NULL),
                  x, w, b);
}

/* Catches: a mean divided by pixels that are not there, a gradient at the wrong maximum. */
static void golden_pools(void **state)
{
    const heed_pool2d_options o = {
        .image = {5, 4}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    (void)state;
    heed_tensor *x = rows(2 * 5 * 4, 3);
    EXPECT_GOLDEN(max_pool2d, heed_max_pool2d(tape, x, &o), x);
    heed_tape_reset(tape);
    x = rows(2 * 5 * 4, 3);
    EXPECT_GOLDEN(mean_pool2d, heed_mean_pool2d(tape, x, &o), x);
    heed_tape_reset(tape);
    x = rows(2 * 5 * 4, 3);
    EXPECT_GOLDEN(upsample,
                  heed_upsample(tape, x, (heed_image_size){5, 4}, (heed_image_size){2, 3}), x);
}

/* Catches: a gain that stays where there is none, pictures that get each other's. */
static void condition_norm(void **state)
{
    (void)state;
    heed_params *p = heed_params_new(NULL, NULL);
    heed_scope s = heed_params_scope(p);
    heed_tensor *mean = heed_state(s, "mean", HEED_SHAPE(3), 0),
                *variance = heed_state(s, "variance", HEED_SHAPE(3), 1);
    assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
    heed_tensor *x = rows(2 * 3 * 2, 3), *gain = weights(2, 3), *shift = rows(2, 3);
    const heed_segments *pictures = heed_segments_new(heed_tape_arena(tape), 2, (int64_t[]){6, 6});
    heed_tensor *h = heed_batch_norm(tape, x, NULL, NULL, mean, variance, 0.1, 1e-5);
    EXPECT_GOLDEN(condition_norm, heed_segment_affine(tape, h, gain, shift, pictures), x, gain,
                  shift);
    heed_params_fold_state(p);
    for (int i = 0; i < 3; i++) {
        expect("mean", i, (double)heed_tensor_data(mean)[i], golden_condition_norm_running[i]);
        expect("variance", i, (double)heed_tensor_data(variance)[i],
               golden_condition_norm_running[3 + i]);
    }
    heed_params_free(p);
}

/* Catches: sigma of the transpose, a gradient through u and v, u that moves where it must not, that
 * moves twice in an update of two passes, or that does not lead to the largest singular value. */
static void spectral_norm(void **state)
{
    (void)state;
    heed_params *p = heed_params_new(NULL, NULL);
    heed_tensor *u = heed_state(heed_params_scope(p), "u", HEED_SHAPE(3), 1);
    assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
    heed_tensor *w = weights(5, 3);
    EXPECT_GOLDEN(spectral_norm, heed_spectral_norm(tape, w, u, false), w);
    heed_params_fold_state(p);
    for (int i = 0; i < 3; i++)
        assert_true(heed_tensor_data(u)[i] == 1);
    heed_tape_set_training(tape, false);
    heed_spectral_norm(tape, weights(5, 3), u, true);
    heed_tape_set_training(tape, true);
    heed_params_fold_state(p);
    assert_true(heed_tensor_data(u)[0] == 1);
    for (int pass = 0; pass < 2; pass++)
        heed_spectral_norm(tape, weights(5, 3), u, true);
    assert_true(heed_tensor_data(u)[0] == 1);
    heed_params_fold_state(p);
    for (int i = 0; i < 3; i++)
        expect("u", i, (double)heed_tensor_data(u)[i], golden_spectral_norm_u[i]);
    for (int step = 0; step < 50; step++) {
        heed_tape_reset(tape);
        w = weights(5, 3);
        heed_tensor *y = heed_spectral_norm(tape, w, u, true);
        heed_params_fold_state(p);
        const double sigma = (double)(heed_tensor_data(w)[0] / heed_tensor_data(y)[0]);
        if (step == 49 && !(fabs(sigma / golden_spectral_norm_sigma[0] - 1) < 1e-5))
            fail_msg("sigma is %.9g, expected %.9g", sigma, golden_spectral_norm_sigma[0]);
    }
    w = heed_variable(tape, HEED_SHAPE(2, 3), NULL);
    heed_tensor *y = heed_spectral_norm(tape, w, u, false);
    for (int i = 0; i < 6; i++)
        assert_true(heed_tensor_data(y)[i] == 0);
    heed_params_free(p);
}

/* Catches: a tail of columns, a tie that gives two gradients, a NaN that is swallowed. */
static void pool_kernels(void **state)
{
    enum { TAPS = 4, MOST = 21 };
    static heed_real x[TAPS][MOST], y[MOST + 1], dx[TAPS][MOST + 1], dy[MOST];
    const heed_kernels *k;
    (void)state;
    const heed_real *from[TAPS] = {x[0], x[1], x[2], x[3]};
    heed_real *to[TAPS] = {dx[0], dx[1], dx[2], dx[3]};
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t n = 1; n <= MOST; n++) {
            fill(x[0], TAPS * MOST, 0.3);
            fill(dy, MOST, 1.3);
            x[1][0] = x[3][0] = 5; /* a tie */
            x[2][n / 2] = n > 1 ? (heed_real)NAN : 0;
            y[n] = 77;
            memset(dx, 0, sizeof dx);
            k->pool_max(y, from, TAPS, n);
            k->pool_max_grad(to, from, y, dy, TAPS, n);
            assert_true(y[n] == 77);
            for (int64_t j = 0; j < n; j++) {
                int best = 0;
                for (int t = 1; t < TAPS; t++)
                    best = x[t][j] > x[best][j] || isnan(x[t][j]) ? t : best;
                assert_true(isnan(x[best][j]) ? isnan(y[j]) : y[j] == x[best][j]);
                for (int t = 0; t < TAPS; t++)
                    assert_true(dx[t][j] == (t == best ? dy[j] : 0));
            }
            for (int t = 0; t < TAPS; t++)
                assert_true(dx[t][n] == 0);
        }
}

static void expect_refused(heed_tensor *y, const char *text)
{
    assert_null(y);
    assert_string_equal(heed_tape_error(tape)->text, text);
    heed_tape_reset(tape);
}

/* Catches: a refusal without a reason, or none. */
static void what_is_refused(void **state)
{
    (void)state;
    expect_refused(heed_max_pool2d(tape, rows(12, 2),
                                   &(heed_pool2d_options){.image = {3, 4}, .kernel = {4, 2}}),
                   "max_pool2d: a kernel of 4 x 2 does not fit a picture of 3 x 4");
    expect_refused(heed_mean_pool2d(tape, rows(12, 2),
                                    &(heed_pool2d_options){
                                        .image = {3, 4}, .kernel = {2, 2}, .padding = {2, 0}}),
                   "mean_pool2d: padding is 2 x 0, expected less than the kernel 2 x 2");
    expect_refused(
        heed_upsample(tape, rows(12, 2), (heed_image_size){5, 2}, (heed_image_size){2, 2}),
        "upsample: x is (12,2), expected (B*5*2,C)");
    expect_refused(
        heed_upsample(tape, rows(12, 2), (heed_image_size){3, 4}, (heed_image_size){0, 2}),
        "upsample: image is 3 x 4, by is 0 x 2, expected 1 to 65536");
    const heed_segments *s = heed_segments_new(heed_tape_arena(tape), 2, (int64_t[]){6, 6});
    expect_refused(heed_segment_affine(tape, rows(12, 2), rows(3, 2), NULL, s),
                   "segment_affine: gain is (3,2), expected (2,2)");
    expect_refused(heed_spectral_norm(tape, rows(5, 2), rows(1, 5), true),
                   "spectral_norm: u is (1,5), expected (2)");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, make_tape, free_tape)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(golden_convolutions), TEST(golden_pools), TEST(condition_norm),
        TEST(spectral_norm),       TEST(pool_kernels), TEST(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
