/* test_random.c: random numbers and dropout: right, equal on every instruction set, unbiased. */
#include "base/random.h"
#include "kernel/kernels.h"

#include <heed/ops.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Catches a wrong constant, round count or word order: the known answers of Random123
 * (philox4x32-7), confirmed by an independent computation in Python integers. */
static void known_answers(void **state)
{
    static const struct {
        uint64_t block;
        heed_rng rng;
        uint32_t word[4];
    } known[] = {
        {0, {{0, 0}, {0, 0}}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
        {UINT64_MAX,
         {{UINT32_MAX, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}},
         {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
        {0x85a308d3243f6a88,
         {{0xa4093822, 0x299f31d0}, {0x13198a2e, 0x03707344}},
         {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t word[4];
        heed__philox(word, &known[i].rng, known[i].block);
        assert_memory_equal(word, known[i].word, sizeof word);
        if (known[i].block < UINT64_MAX / 4)
            for (uint64_t j = 0; j < 4; j++)
                assert_int_equal(heed_rng_bits(&known[i].rng, 4 * known[i].block + j), word[j]);
    }
}

/* Catches a part of the key that is ignored, or two that cancel. */
static void streams_differ(void **state)
{
    static const heed_rng_key keys[] = {
        {.seed = 0},
        {.seed = 1},
        {.step = 1},
        {.micro_batch = 1},
        {.rank = 1},
        {.set = 1},
        {.node = 1},
        {.step = 1, .node = 1},
        {.step = 1, .micro_batch = 1},
        {.micro_batch = 1, .rank = 1},
        {.rank = 1, .set = 1},
        {.seed = 1, .step = 1, .micro_batch = 1, .rank = 1, .node = 1},
    };
    const int n = (int)(sizeof keys / sizeof *keys);
    (void)state;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            heed_rng a = heed_rng_stream(&keys[i]), b = heed_rng_stream(&keys[j]);
            int same = 0;
            for (uint64_t e = 0; e < 1000; e++)
                same += heed_rng_bits(&a, e) == heed_rng_bits(&b, e);
            assert_true(same < 3);
        }
}

/* Catches a distribution of the wrong shape: the moments, within five standard errors. */
static void moments(void **state)
{
    enum { N = 200000 };
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    double u1 = 0, u2 = 0, z1 = 0, z2 = 0, z4 = 0, pair = 0, last = 0;
    int64_t count[7] = {0};
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        double u = heed_rng_uniform(&rng, i), z = heed_rng_normal(&rng, i);
        assert_true(u >= 0 && u < 1);
        u1 += u;
        u2 += u * u;
        z1 += z;
        z2 += z * z;
        z4 += z * z * z * z;
        pair += z * last;
        last = z;
        count[heed_rng_below(&rng, i, 7)]++;
    }
    assert_true(fabs(u1 / N - 0.5) < 5 * sqrt(1 / 12.0 / N));
    assert_true(fabs(u2 / N - 1 / 3.0) < 5 * sqrt(4 / 45.0 / N));
    assert_true(fabs(z1 / N) < 5 * sqrt(1.0 / N));
    assert_true(fabs(z2 / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(z4 / N - 3) < 5 * sqrt(96.0 / N));
    assert_true(fabs(pair / N) < 5 * sqrt(1.0 / N));
    for (int i = 0; i < 7; i++)
        assert_true(fabs((double)count[i] - N / 7.0) < 5 * sqrt(N * 6 / 49.0));
}

static heed_real element(const heed_rng *rng, uint64_t e, double rate)
{
    uint32_t word[4];
    heed__philox(word, rng, e / 8);
    uint32_t bits = word[e % 8 / 2] >> (16 * (e % 2)) & 0xFFFF;
    double below = round(rate * 65536);
    return bits < below ? 0 : (heed_real)(65536 / (65536 - below));
}

/* Catches a lane in the wrong place, an unaligned beginning, a write behind the end, a set that
 * draws other bits: every range against single elements. */
static void masks_on_every_set(void **state)
{
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 9, .step = 3});
    static const uint64_t firsts[] = {0, 1, 7, 8, 63, 64, 65, 1003, ((uint64_t)8 << 32) - 21};
    heed_real mask[303];
    const heed_kernels *k;
    (void)state;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++)
            for (int64_t n = 0; n <= 300; n += n < 20 ? 1 : 17) {
                const double rate = n % 2 ? 0.1 : 0.75;
                mask[n] = 77;
                k->dropout_mask(mask, &rng, firsts[f], n, rate);
                for (int64_t i = 0; i < n; i++)
                    assert_true(mask[i] == element(&rng, firsts[f] + (uint64_t)i, rate));
                assert_true(mask[n] == 77);
            }
}

/* Catches a wrong rate, a biased mean, and correlation between neighbours. */
static void masks_are_unbiased(void **state)
{
    enum { N = 1 << 20 };
    static const double rates[] = {0, 0.1, 0.3, 0.5, 0.9};
    heed_real *mask = malloc(N * sizeof *mask);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 2});
    (void)state;
    assert_non_null(mask);
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        const double p = round(rates[r] * 65536) / 65536;
        double sum = 0, pairs = 0;
        int64_t zeros = 0;
        heed__kernels()->dropout_mask(mask, &rng, 0, N, rates[r]);
        for (int i = 0; i < N; i++) {
            zeros += mask[i] == 0;
            sum += (double)mask[i];
            pairs += i ? (double)(mask[i] * mask[i - 1]) : 1;
        }
        const double odds = p / (1 - p); /* the variance of a mask element */
        assert_true(fabs((double)zeros / N - p) <= 5 * sqrt(p * (1 - p) / N));
        assert_true(fabs(sum / N - 1) <= 5 * sqrt(odds / N) + 1e-6);
        assert_true(fabs(pairs / N - 1) <= 5 * (odds + 2 * sqrt(odds)) / sqrt(N) + 1e-5);
    }
    free(mask);
}

/* Catches y = base + x * mask going wrong at a chunk's edge. */
static void masks_are_applied(void **state)
{
    enum { N = 1100 };
    heed_real x[N], base[N], y[N];
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 4});
    const heed_kernels *k;
    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = (heed_real)(i % 13 - 6);
        base[i] = (heed_real)(i % 7);
    }
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t n = 0; n < N; n += 109) {
            k->dropout_add(y, base, x, &rng, 5, n, 0.5);
            for (int64_t i = 0; i < n; i++)
                assert_true(y[i] == base[i] + x[i] * element(&rng, 5 + (uint64_t)i, 0.5));
            k->dropout_add(y, NULL, x, &rng, 5, n, 0);
            assert_memory_equal(y, x, (size_t)n * sizeof *x);
        }
}

static heed_tape *new_tape(void)
{
    heed_error err = {0};
    heed_tape *t = heed_tape_new(&(heed_tape_options){.seed = 1}, &err);
    assert_non_null(t);
    return t;
}

/* Catches a backward pass that draws another mask, and a step that repeats the last one's. */
static void operator_keeps_its_mask(void **state)
{
    enum { ROWS = 5, COLS = 37, N = ROWS * COLS };
    heed_real ones[N], before[N];
    heed_tape *t = new_tape();
    (void)state;
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    for (uint64_t step = 0; step < 3; step++) {
        heed_tape_reset(t);
        heed_tape_step(t, step, 0, 0);
        heed_tensor *x = heed_variable(t, HEED_SHAPE(ROWS, COLS), ones);
        heed_tensor *y = heed_dropout(t, x, 0.5);
        heed_tensor *flat = heed_cross_entropy(t, y, (int32_t[]){0, 1, 2, 3, 4}, 0);
        assert_non_null(flat);
        assert_int_equal(heed_backward(t, flat), HEED_OK);
        int kept = 0;
        for (int i = 0; i < N; i++) {
            /* p - q is never 0: the gradient is 0 exactly where the mask is. */
            assert_int_equal(heed_tensor_data(y)[i] == 0, heed_tensor_grad(x)[i] == 0);
            kept += heed_tensor_data(y)[i] != 0;
        }
        assert_true(kept > N / 4 && kept < 3 * N / 4);
        if (step)
            assert_memory_not_equal(before, heed_tensor_data(y), sizeof before);
        memcpy(before, heed_tensor_data(y), sizeof before);
    }
    heed_tape_set_training(t, false);
    heed_tape_reset(t);
    heed_tensor *x = heed_variable(t, HEED_SHAPE(ROWS, COLS), ones);
    assert_ptr_equal(heed_dropout(t, x, 0.5), x);
    assert_null(heed_dropout(t, x, 1.0));
    assert_string_equal(heed_tape_error(t)->text, "dropout: rate is 1, expected 0 <= rate < 1");
    heed_tape_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(streams_differ),
        cmocka_unit_test(moments),
        cmocka_unit_test(masks_on_every_set),
        cmocka_unit_test(masks_are_unbiased),
        cmocka_unit_test(masks_are_applied),
        cmocka_unit_test(operator_keeps_its_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
