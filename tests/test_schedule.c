/* Clipping, schedules and moving averages, against formulas and the paper's own figures. */
#include "train_numbers.h"

#include <float.h>
#include <string.h>

/* ---- clipping ---- */

/* Catches a norm that misses a part, or differs between two runs with the same threads. */
static void test_norm(void **state)
{
    (void)state;
    heed_params *p = make_params((const char *[]){"a", "b"}, 2, 60007);
    double sum = 0;
    for (int e = 0; e < 2; e++)
        for (int i = 0; i < 60007; i++) {
            heed_real g = number(i, e);
            heed_params_grads(p)[heed_params_entry(p, e).offset + i] = g;
            sum += (double)g * (double)g;
        }
    for (int threads = 1; threads <= 4; threads++) {
        double norm = heed_grad_norm(p, threads);
        assert_true(fabs(norm - sqrt(sum)) <= 1e-12 * norm);
        for (int again = 0; again < 3; again++)
            assert_true(heed_grad_norm(p, threads) == norm);
    }
    heed_params_free(p);
}

/* Catches scaling below the limit, to a wrong norm, or by a norm that is not finite. */
static void test_clip_norm(void **state)
{
    (void)state;
    heed_params *p = make_params((const char *[]){"a"}, 1, 3);
    heed_real *g = heed_params_grads(p);
    g[0] = 3;
    g[1] = -4;
    assert_true(heed_clip_norm(p, 5, 1) == 5 && g[0] == 3 && g[1] == -4);
    assert_true(heed_clip_norm(p, 2.5, 1) == 5 && g[0] == (heed_real)1.5 && g[1] == -2);
    assert_true(heed_clip_norm(p, 100, 1) == 2.5);
    g[2] = (heed_real)INFINITY;
    assert_true(isinf(heed_clip_norm(p, 1, 1)) && g[0] == (heed_real)1.5);
    g[2] = (heed_real)NAN;
    assert_true(isnan(heed_clip_norm(p, 1, 1)) && g[0] == (heed_real)1.5);
    heed_params_free(p);
}

/* Catches a bound missed on one side, and NaN hidden by clamping. */
static void test_clip_value(void **state)
{
    (void)state;
    heed_params *p = make_params((const char *[]){"a"}, 1, 5);
    heed_real *g = heed_params_grads(p);
    g[0] = 3;
    g[1] = -4;
    g[2] = (heed_real)0.25;
    g[3] = (heed_real)NAN;
    g[4] = -(heed_real)INFINITY;
    heed_clip_value(p, 0.5, 1);
    assert_true(g[0] == (heed_real)0.5 && g[1] == (heed_real)-0.5 && g[2] == (heed_real)0.25);
    assert_true(isnan(g[3]) && g[4] == (heed_real)-0.5);
    heed_params_free(p);
}

/* ---- schedules ---- */

/* Catches a wrong exponent, an off-by-one at the end of warm-up or of training. */
static void test_schedules(void **state)
{
    (void)state;
    const heed_schedule noam = {HEED_SCHEDULE_NOAM, .rate = 1, .warmup = 4000, .d = 512};
    const heed_schedule small = {HEED_SCHEDULE_NOAM, .rate = 1, .warmup = 2000, .d = 128};
    const heed_schedule flat = {HEED_SCHEDULE_CONSTANT, .rate = 0.5};
    const heed_schedule rise = {HEED_SCHEDULE_CONSTANT, .rate = 0.5, .warmup = 10};
    const heed_schedule root = {HEED_SCHEDULE_INVERSE_SQRT, .rate = 0.5, .warmup = 100};
    const heed_schedule cosine = {HEED_SCHEDULE_COSINE, .rate = 1, .warmup = 10, .total = 110,
                                  .floor = 0.2};
    const heed_schedule line = {HEED_SCHEDULE_LINEAR, .rate = 1, .total = 100, .floor = 0.2};
    const heed_schedule plain = {HEED_SCHEDULE_NOAM, .rate = 0.5}; /* no width, no warm-up */
    const heed_schedule cold = {HEED_SCHEDULE_INVERSE_SQRT, .rate = 0.5};
    const struct {
        const heed_schedule *s;
        int64_t step;
        double rate, relative;
    } rows[] = {
        /* by hand from the paper's formula, seven digits */
        {&noam, 1, 1.746928e-7, 5e-7},
        {&noam, 4000, 6.987712e-4, 5e-7},
        {&noam, 100000, 1.397542e-4, 5e-7},
        {&small, 2000, 1.976e-3, 3e-4},
        {&flat, 1, 0.5, 0},
        {&flat, 1000000, 0.5, 0},
        {&rise, 1, 0.05, 1e-15},
        {&rise, 10, 0.5, 0},
        {&rise, 11, 0.5, 0},
        {&root, 50, 0.25, 1e-15},
        {&root, 100, 0.5, 0},
        {&root, 400, 0.25, 1e-15},
        {&cosine, 5, 0.5, 1e-15},
        {&cosine, 10, 1, 1e-15},
        {&cosine, 35, 0.2 + 0.8 * (1 + 0.70710678118654752) / 2, 1e-14},
        {&cosine, 60, 0.6, 1e-14},
        {&cosine, 110, 0.2, 1e-14},
        {&cosine, 500, 0.2, 1e-14},
        {&line, 25, 0.8, 1e-14},
        {&line, 100, 0.2, 1e-14},
        {&line, 101, 0.2, 1e-14},
        {&plain, 4, 0.25, 1e-15},
        {&cold, 4, 0.25, 1e-15},
        {&cold, -1, 0.5, 0},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        double rate = heed_schedule_rate(rows[i].s, rows[i].step);
        if (!(fabs(rate - rows[i].rate) <= rows[i].relative * rows[i].rate))
            fail_msg("row %d: %.17g, expected %.17g", i, rate, rows[i].rate);
    }
}

/* ---- moving average ---- */

/* Catches a wrong correction of the decay, a wrong start, and a swap that loses one side. */
static void test_ema(void **state)
{
    (void)state;
    heed_params *p = make_params((const char *[]){"a"}, 1, 100);
    heed_real *w = heed_params_values(p);
    w[0] = 1;
    heed_ema *e = heed_ema_new(p, 0.15, NULL, NULL);
    assert_true(heed_ema_values(e)[0] == 1);
    /* decay 1/10, then min(.15, 2/11) = .15 */
    w[0] = 2;
    heed_ema_update(e, 1);
    assert_true(near(heed_ema_values(e)[0], 0.1 * 1 + 0.9 * 2, 1e-6));
    w[0] = 4;
    heed_ema_update(e, 1);
    double average = 0.15 * 1.9 + 0.85 * 4;
    assert_true(near(heed_ema_values(e)[0], average, 1e-6));
    assert_int_equal(heed_ema_updates(e), 2);
    heed_ema_swap(e);
    assert_true(near(w[0], average, 1e-6) && heed_ema_values(e)[0] == 4);
    heed_ema_swap(e);
    assert_true(w[0] == 4);
    /* the number of updates decides the decay */
    heed_ema_set_updates(e, 0);
    heed_ema_update(e, 1);
    assert_true(near(heed_ema_values(e)[0], 0.1 * average + 0.9 * 4, 1e-6));
    heed_ema_free(e);
    heed_params_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm),       cmocka_unit_test(test_clip_norm),
        cmocka_unit_test(test_clip_value), cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_ema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
