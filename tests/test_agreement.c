/* test_agreement.c: the fused loss of R-Drop against the same composed of plain operators, and the
 * model's loss over a batch that passes twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <heed/heed.h>
#include <math.h>
#include <stdlib.h>

#define SMOOTHING 0.1
#define STRENGTH 5.0

/* Of the largest entry; the fused one adds up V products in another order. */
#ifdef HEED_DOUBLE
#define CLOSE 1e-12
#else
#define CLOSE 2e-5
#endif

static void fill(heed_real *x, int64_t n, uint64_t seed, double scale)
{
    heed_rng_key key = {.seed = seed};
    heed_rng rng = heed_rng_stream(&key);
    for (int64_t i = 0; i < n; i++)
        x[i] = (heed_real)(scale * heed_rng_normal(&rng, (uint64_t)i));
}

static void assert_close(const heed_real *a, const heed_real *b, int64_t n)
{
    double largest = 0, apart = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)b[i]));
        apart = fmax(apart, fabs((double)a[i] - (double)b[i]));
    }
    if (!(largest > 0 && apart <= CLOSE * largest))
        fail_msg("apart by %g, the largest is %g", apart, largest);
}

/* weight (ce(z) + ce(z')) / 2 + strength/4 sum (p - p') (z - z'), rows of negative targets left
 * out. */
static heed_tensor *composed(heed_tape *t, heed_tensor *h, heed_tensor *w, const int32_t *targets,
                             int64_t n, int64_t v, double weight)
{
    heed_tensor *z[2], *p[2], *ce[2];
    heed_real *kept = calloc((size_t)(n * v), sizeof *kept);
    assert_non_null(kept);
    for (int64_t i = 0; i < n * v; i++)
        kept[i] = targets[i / v] >= 0;
    for (int i = 0; i < 2; i++) {
        z[i] = heed_matmul(t, heed_slice_rows(t, h, i * n, (i + 1) * n), w, HEED_NT);
        p[i] = heed_softmax(t, z[i]);
        ce[i] = heed_cross_entropy(t, z[i], targets, SMOOTHING);
    }
    heed_tensor *mask = heed_input(t, HEED_SHAPE(n, v), kept);
    heed_tensor *apart =
        heed_mul(t, heed_mul(t, heed_sub(t, p[0], p[1]), heed_sub(t, z[0], z[1])), mask);
    heed_tensor *divergence = heed_sum(t, apart, HEED_ALL);
    free(kept);
    return heed_add(t, heed_scale(t, heed_add(t, ce[0], ce[1]), weight / 2, 0),
                    heed_scale(t, divergence, weight * STRENGTH / 4, 0));
}

static void compare(int64_t n, int64_t d, int64_t v, int threads)
{
    heed_error err = {0};
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads}, &err);
    heed_real *h = calloc((size_t)(2 * n * d), sizeof *h), *w = calloc((size_t)(v * d), sizeof *w);
    heed_real *dh = calloc((size_t)(2 * n * d), sizeof *dh);
    heed_real *dw = calloc((size_t)(v * d), sizeof *dw);
    int32_t *targets = calloc((size_t)n, sizeof *targets);
    assert_true(t && h && w && dh && dw && targets);
    fill(h, 2 * n * d, 1, 1);
    fill(w, v * d, 2, 0.5);
    for (int64_t i = 0; i < n; i++)
        targets[i] = i == 2 ? -1 : (int32_t)(7 * i % v);
    heed_tensor *th = heed_variable(t, HEED_SHAPE(2 * n, d), h);
    heed_tensor *tw = heed_variable(t, HEED_SHAPE(v, d), w);
    heed_tensor *slow = composed(t, th, tw, targets, n, v, 0.25);
    assert_int_equal(heed_backward(t, slow), HEED_OK);
    heed_real wanted = *heed_tensor_data(slow);
    for (int64_t i = 0; i < 2 * n * d; i++)
        dh[i] = heed_tensor_grad(th)[i];
    for (int64_t i = 0; i < v * d; i++)
        dw[i] = heed_tensor_grad(tw)[i];
    heed_tape_reset(t);
    th = heed_variable(t, HEED_SHAPE(2 * n, d), h);
    tw = heed_variable(t, HEED_SHAPE(v, d), w);
    double nll = 0;
    heed_tensor *fast = heed_project_agreement(t, th, tw, targets, SMOOTHING, STRENGTH, 0.25, &nll);
    assert_int_equal(heed_backward(t, fast), HEED_OK);
    assert_close(heed_tensor_data(fast), &wanted, 1);
    assert_close(heed_tensor_grad(th), dh, 2 * n * d);
    assert_close(heed_tensor_grad(tw), dw, v * d);
    assert_true(nll > 0);
    free(h);
    free(w);
    free(dh);
    free(dw);
    free(targets);
    heed_tape_free(t);
}

/* Catches a wrong formula. */
static void test_small(void **state)
{
    (void)state;
    compare(5, 7, 19, 1);
    compare(5, 7, 19, 3);
}

/* Catches rows that meet the wrong partner when there are several chunks. */
static void test_chunks(void **state)
{
    (void)state;
    compare(330, 4, 30000, 2);
}

/* Catches a loss of the model that is not twice the same without dropout, or that is with it. */
static void test_model(void **state)
{
    (void)state;
    static const int32_t source[] = {13, 14, 15}, target[] = {14, 13};
    const heed_tokens sources[2] = {{source, 3}, {source + 1, 2}};
    const heed_tokens targets[2] = {{target, 2}, {target + 1, 1}};
    heed_error err = {0};
    heed_model_config config = {.encoder_layers = 1,
                                .decoder_layers = 1,
                                .d = 16,
                                .tying = HEED_TIE_ALL,
                                .transformer = {.ff = 16,
                                                .heads = 2,
                                                .activation = HEED_RELU,
                                                .residual = true,
                                                .scale_scores = true,
                                                .positions = HEED_POSITIONS_SINUSOID},
                                .longest = 16,
                                .label_smoothing = 0.1,
                                .source_vocabulary = 20,
                                .target_vocabulary = 20};
    for (int dropout = 0; dropout < 2; dropout++) {
        config.dropout = dropout ? 0.3 : 0;
        heed_model *m = heed_model_new(&config, 1, NULL, &err);
        heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, &err);
        assert_true(m && t);
        heed_batch batch;
        assert_int_equal(heed_batch_pack(heed_tape_arena(t), sources, targets, 2, &batch, &err),
                         HEED_OK);
        double once = 0, twice = 0;
        heed_real plain = *heed_tensor_data(heed_model_loss(m, t, &batch, 1, &once));
        heed_real both = *heed_tensor_data(heed_model_r_drop(m, t, &batch, 5, 1, &twice));
        if (dropout) {
            assert_true(fabs(twice - once) > 1e-3);
        } else {
            assert_close(&both, &plain, 1);
            assert_true(fabs(twice - once) < 1e-4);
        }
        heed_tape_free(t);
        heed_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
