/* Optimisers, against python3-torch and naive loops. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "failing_allocator.h"
#include "kernel/kernels.h"
#include "train_numbers.h"

/* Three steps of a few roundings each, values up to 8 (and a division by a small deviation). */
static const double tolerance = sizeof(heed_real) == 8 ? 1e-13 : 4e-6;

/* ---- golden values ---- */

enum { N = 7, STEPS = 3 };
static const double start[N] = {0.5, -1.25, 2.0, 0.0, -0.03125, 8.0, -3.5};
static const double grads[STEPS][N] = {{0.1, -2.0, 0.0, 1e-3, 3.0, -0.5, 0.25},
                                       {-0.2, 1.0, 0.5, 1e-3, -1.0, -0.5, 4.0},
                                       {0.4, 0.5, -1.5, -2e-3, 2.0, -0.5, -0.125}};

/* torch.optim (1.13, float64), lr 0.01, the start and gradients above, the options named here. */
static const struct {
    const char *name;
    heed_optimizer_options options;
    double after[N];
} golden[] = {
    {"Adam, defaults",
     {.kind = HEED_ADAM},
     {0.4894825076049825, -1.236710786782058, 1.996800261230675, -0.0192471034612622,
      -0.0513191456641085, 8.029999999939999, -3.523669877988836}},
    {"AdamW",
     {.kind = HEED_ADAMW, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.1},
     {0.4880351618373928, -1.234226670687641, 1.991093045354192, -0.01833240190564224,
      -0.05054799146947318, 8.005993942060099, -3.5134224943606}},
    {"SGD",
     {.kind = HEED_SGD},
     {0.497, -1.245, 2.01, 0, -0.07124999999999999, 8.015000000000002, -3.54125}},
    {"SGD with momentum",
     {.kind = HEED_SGD, .momentum = 0.9},
     {0.49709, -1.2198, 2.0055, -2.61e-05, -0.11355, 8.02805, -3.581525}},
    {"RMSProp, defaults",
     {.kind = HEED_RMSPROP},
     {0.4561646879207513, -1.235886647727208, 1.997811515544474, -0.03977253434705732,
      -0.0862379283735626, 8.103226018932169, -3.587929498835142}},
    {"RMSProp, centred, with momentum",
     {.kind = HEED_RMSPROP, .alpha = 0.9, .eps = 1e-4, .momentum = 0.9, .centred = true},
     {0.4362348581247499, -1.195437827757587, 1.967548503822176, -0.08295489670584166,
      -0.1204502615679938, 8.161168961684316, -3.652734782666056}},
};

/* Catches a wrong formula, bias correction or default, and a gradient that is not zeroed. */
static void test_golden(void **state)
{
    (void)state;
    for (int c = 0; c < COUNT(golden); c++) {
        heed_params *p = make_params((const char *[]){"a"}, 1, N);
        heed_optimizer *o = heed_optimizer_new(p, &golden[c].options, NULL, NULL);
        assert_non_null(o);
        heed_real *w = heed_params_values(p), *g = heed_params_grads(p);
        for (int i = 0; i < N; i++)
            w[i] = (heed_real)start[i];
        for (int s = 0; s < STEPS; s++) {
            for (int i = 0; i < N; i++)
                g[i] = (heed_real)grads[s][i];
            heed_optimizer_step(o, 0.01, 1);
            for (int i = 0; i < N; i++)
                assert_true(g[i] == 0);
        }
        assert_int_equal(heed_optimizer_updates(o), STEPS);
        for (int i = 0; i < N; i++)
            if (!near(w[i], golden[c].after[i], tolerance))
                fail_msg("%s, number %d", golden[c].name, i);
        heed_optimizer_free(o);
        heed_params_free(p);
    }
}

/* Catches beta1 = 0 being taken for the default: negative asks for a real zero. */
static void test_real_zero(void **state)
{
    (void)state;
    heed_params *p = make_params((const char *[]){"a"}, 1, N);
    heed_optimizer *o = heed_optimizer_new(
        p, &(heed_optimizer_options){.kind = HEED_ADAM, .beta1 = -1}, NULL, NULL);
    for (int s = 0; s < 2; s++) {
        heed_params_grads(p)[0] = s ? (heed_real)-3 : (heed_real)1;
        heed_optimizer_step(o, 1, 1);
    }
    /* Without a memory the mean is the last gradient. */
    assert_true(heed_optimizer_moment(o, 0)[0] == (heed_real)-3);
    heed_optimizer_free(o);
    heed_params_free(p);
}

/* ---- ranges ---- */

static const heed_optimizer_options every_kind[] = {
    {.kind = HEED_SGD, .momentum = 0.9},
    {.kind = HEED_ADAM},
    {.kind = HEED_ADAMW, .weight_decay = 0.1},
    {.kind = HEED_RMSPROP, .centred = true, .momentum = 0.9},
};

/* Catches frozen weights or moments that move, neighbours that do not, and gradients left over. */
static void test_frozen(void **state)
{
    (void)state;
    const char *const names[] = {"a", "b", "c"};
    for (int k = 0; k < COUNT(every_kind); k++) {
        heed_params *p = make_params(names, 3, 37);
        heed_optimizer *o = heed_optimizer_new(p, &every_kind[k], NULL, NULL);
        assert_int_equal(heed_params_freeze(p, "b", NULL), HEED_OK);
        for (int64_t i = 0; i < heed_params_size(p); i++)
            heed_params_values(p)[i] = heed_params_grads(p)[i] = 1;
        heed_optimizer_step(o, 0.1, 2);
        for (int e = 0; e < 3; e++) {
            heed_param_info info = heed_params_entry(p, e);
            for (int64_t i = info.offset; i < info.offset + 37; i++) {
                assert_int_equal(heed_params_values(p)[i] == 1, e == 1);
                assert_true(heed_params_grads(p)[i] == 0);
                for (int m = 0; m < heed_optimizer_moments(o); m++)
                    assert_int_equal(heed_optimizer_moment(o, m)[i] == 0, e == 1);
            }
        }
        assert_int_equal(heed_params_thaw(p, "b", NULL), HEED_OK);
        heed_real *b = heed_params_values(p) + heed_params_entry(p, 1).offset;
        heed_params_grads(p)[heed_params_entry(p, 1).offset] = 1;
        heed_optimizer_step(o, 0.1, 1);
        assert_true(b[0] < 1);
        heed_optimizer_free(o);
        heed_params_free(p);
    }
}

/* Catches a group's rate factor or weight decay going to the wrong range or being ignored. */
static void test_groups(void **state)
{
    (void)state;
    const char *const names[] = {"a", "b"};
    heed_params *p = make_params(names, 2, 5);
    heed_params_set_group(p, "b", (heed_group){.rate_factor = 0.5, .weight_decay = 0.25}, NULL);
    heed_optimizer *o = heed_optimizer_new(
        p, &(heed_optimizer_options){.kind = HEED_ADAMW, .weight_decay = 0.5}, NULL, NULL);
    heed_real *w = heed_params_values(p);
    int64_t b = heed_params_entry(p, 1).offset;
    w[0] = w[b] = 1;
    heed_optimizer_step(o, 0.5, 1); /* no gradient: only the decay acts */
    assert_true(w[0] == (heed_real)(1 - 0.5 * 0.5));
    assert_true(w[b] == (heed_real)(1 - 0.5 * 0.5 * 0.25));
    heed_optimizer_free(o);

    o = heed_optimizer_new(p, &(heed_optimizer_options){.kind = HEED_SGD}, NULL, NULL);
    assert_int_equal(heed_optimizer_moments(o), 0);
    w[0] = w[b] = 0;
    heed_params_grads(p)[0] = heed_params_grads(p)[b] = -1;
    heed_optimizer_step(o, 0.5, 1);
    assert_true(w[0] == (heed_real)0.5 && w[b] == (heed_real)0.25);
    heed_optimizer_free(o);
    heed_params_free(p);
}

static void run_steps(heed_params *p, heed_optimizer *o, int from, int to, int threads)
{
    for (int s = from; s < to; s++) {
        for (int64_t i = 0; i < heed_params_size(p); i++)
            heed_params_grads(p)[i] = number(i, s);
        heed_optimizer_step(o, 0.01, threads);
    }
}

/* Catches results that depend on the number of threads or on where a thread's part begins. */
static void test_threads(void **state)
{
    (void)state;
    const char *const names[] = {"a", "b"};
    for (int k = 0; k < COUNT(every_kind); k++) {
        heed_params *sets[4];
        for (int threads = 1; threads <= 4; threads++) {
            heed_params *p = sets[threads - 1] = make_params(names, 2, 50001);
            heed_params_set_group(p, "b", (heed_group){.rate_factor = 3}, NULL);
            heed_optimizer *o = heed_optimizer_new(p, &every_kind[k], NULL, NULL);
            run_steps(p, o, 0, 3, threads);
            assert_memory_equal(heed_params_values(p), heed_params_values(sets[0]),
                                (size_t)heed_params_size(p) * sizeof(heed_real));
            heed_optimizer_free(o);
        }
        for (int i = 0; i < 4; i++)
            heed_params_free(sets[i]);
    }
}

/* Catches state that a checkpoint of moments and the number of updates would miss. */
static void test_resume(void **state)
{
    (void)state;
    for (int k = 0; k < COUNT(every_kind); k++) {
        heed_params *p = make_params((const char *[]){"a"}, 1, 100);
        heed_params *q = make_params((const char *[]){"a"}, 1, 100);
        size_t bytes = (size_t)heed_params_size(p) * sizeof(heed_real);
        heed_optimizer *o = heed_optimizer_new(p, &every_kind[k], NULL, NULL);
        heed_optimizer *r = heed_optimizer_new(q, &every_kind[k], NULL, NULL);
        run_steps(p, o, 0, 2, 1);
        memcpy(heed_params_values(q), heed_params_values(p), bytes);
        assert_true(heed_optimizer_moments(o) > 0);
        for (int m = 0; m < heed_optimizer_moments(o); m++) {
            memcpy(heed_optimizer_moment(r, m), heed_optimizer_moment(o, m), bytes);
            for (int other = 0; other < m; other++)
                assert_string_not_equal(heed_optimizer_moment_name(o, m),
                                        heed_optimizer_moment_name(o, other));
        }
        heed_optimizer_set_updates(r, heed_optimizer_updates(o));
        run_steps(p, o, 2, 4, 1);
        run_steps(q, r, 2, 4, 1);
        assert_memory_equal(heed_params_values(p), heed_params_values(q), bytes);
        heed_optimizer_free(o);
        heed_optimizer_free(r);
        heed_params_free(p);
        heed_params_free(q);
    }
}

/* ---- kernels ---- */

enum { MAX = 101, ROOM = MAX + 8 };
enum { W, G, M, V, U, ARRAYS };
enum { ADAM, RMSPROP, CENTRED, SGD, AVERAGE, KERNELS };

/* What a kernel shall do to number i, with the constants of run_kernel. */
static void naive(int kernel, double y[ARRAYS][ROOM], int64_t i)
{
    double *w = &y[W][i], *g = &y[G][i], *m = &y[M][i], *v = &y[V][i], *u = &y[U][i];
    switch (kernel) {
    case ADAM:
        *m = 0.75 * *m + 0.25 * *g;
        *v = 0.5 * *v + 0.5 * *g * *g;
        *w = 0.875 * *w - 0.125 * *m / (2 * sqrt(*v) + 0.5);
        break;
    case RMSPROP:
        *v = 0.75 * *v + 0.25 * *g * *g;
        *w -= 0.125 * *g / (sqrt(*v) + 0.5);
        break;
    case CENTRED:
        *v = 0.75 * *v + 0.25 * *g * *g;
        *m = 0.75 * *m + 0.25 * *g;
        *u = 0.5 * *u + *g / (sqrt(*v - *m * *m) + 0.5);
        *w -= 0.125 * *u;
        break;
    case SGD:
        *u = 0.5 * *u + *g;
        *w -= 0.125 * *u;
        break;
    case AVERAGE:
        *w += 0.125 * (*m - *w);
        return;
    }
    *g = 0;
}

static void run_kernel(const heed_kernels *k, int kernel, heed_real x[ARRAYS][ROOM], int64_t n)
{
    const heed_real half = (heed_real)0.5, quarter = (heed_real)0.25, eighth = (heed_real)0.125;
    const heed__adam adam = {.rate = eighth,
                             .beta1 = 3 * quarter,
                             .rest1 = quarter,
                             .beta2 = half,
                             .rest2 = half,
                             .scale = 2,
                             .eps = half,
                             .keep = 7 * eighth};
    const heed__rmsprop rms = {eighth, 3 * quarter, quarter, half, half};
    if (kernel == ADAM)
        k->adam(x[W], x[G], x[M], x[V], n, &adam);
    else if (kernel == RMSPROP)
        k->rmsprop(x[W], x[G], x[V], NULL, NULL, n, &rms);
    else if (kernel == CENTRED)
        k->rmsprop(x[W], x[G], x[V], x[M], x[U], n, &rms);
    else if (kernel == SGD)
        k->sgd(x[W], x[G], x[U], n, eighth, half);
    else
        k->average(x[W], x[M], n, eighth);
}

static void check_kernel(const heed_kernels *k, int kernel, int64_t n)
{
    /* A few roundings of numbers up to 40. */
    const double allowed = sizeof(heed_real) == 8 ? 1e-14 : 1e-5;
    heed_real x[ARRAYS][ROOM];
    double y[ARRAYS][ROOM];
    for (int a = 0; a < ARRAYS; a++)
        for (int64_t i = 0; i < ROOM; i++) {
            x[a][i] = number(i, a) + (a == V ? 30 : 0); /* a mean square is positive */
            y[a][i] = x[a][i];
        }
    for (int64_t i = 0; i < n; i++)
        naive(kernel, y, i);
    run_kernel(k, kernel, x, n);
    for (int a = 0; a < ARRAYS; a++)
        for (int64_t i = 0; i < ROOM; i++)
            if (i < n ? !near(x[a][i], y[a][i], allowed) : (double)x[a][i] != y[a][i])
                fail_msg("%s: kernel %d, n %d, array %d, number %d", k->isa, kernel, (int)n, a,
                         (int)i);
}

/* Catches a wrong tail or a write behind it: every set, odd sizes. */
static void test_kernels(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 3, 7, 8, 9, 31, 32, 33, 64, 100, MAX};
    for (int set = 0; heed__kernels_at(set); set++)
        for (int kernel = 0; kernel < KERNELS; kernel++)
            for (int c = 0; c < COUNT(sizes); c++)
                check_kernel(heed__kernels_at(set), kernel, sizes[c]);
}

/* Catches moments left to decay below the normal numbers, where arithmetic crawls, and NaN lost. */
static void test_tiny_moments(void **state)
{
    (void)state;
    static const int moments[] = {2, 1, 3, 1}; /* that each kernel has */
    const heed_real least = (heed_real)(sizeof(heed_real) == 8 ? DBL_MIN : (double)FLT_MIN);
    for (int set = 0; heed__kernels_at(set); set++)
        for (int kernel = ADAM; kernel <= SGD; kernel++) {
            heed_real x[ARRAYS][ROOM] = {{0}};
            for (int a = M; a <= U; a++) {
                x[a][0] = least;
                x[a][1] = 4 * least;
                x[a][2] = (heed_real)NAN;
            }
            run_kernel(heed__kernels_at(set), kernel, x, 9);
            int moved = 0;
            for (int a = M; a <= U; a++) {
                moved += x[a][0] == 0 && x[a][1] >= 2 * least;
                assert_true(x[a][0] == 0 || x[a][0] == least); /* or not this kernel's */
                assert_true(isnan(x[a][2]));
            }
            assert_int_equal(moved, moments[kernel]);
        }
}

/* Catches a lost tail, and squares that overflow in float. */
static void test_sum_squares(void **state)
{
    (void)state;
    heed_real x[103];
    for (int set = 0; heed__kernels_at(set); set++)
        for (int n = 0; n <= COUNT(x); n++) {
            double expected = 0;
            for (int i = 0; i < n; i++) {
                x[i] = number(i, n) * (heed_real)1e30;
                expected += (double)x[i] * (double)x[i];
            }
            double sum = heed__kernels_at(set)->sum_squares(x, n);
            assert_true(fabs(sum - expected) <= 1e-14 * expected);
        }
}

/* ---- bad input ---- */

/* Catches options that would give NaN or a division by zero, and texts that do not name them. */
static void test_refused(void **state)
{
    (void)state;
    heed_params *p = make_params((const char *[]){"a"}, 1, 3);
    const struct {
        heed_optimizer_options options;
        const char *text;
    } rows[] = {
        {{.kind = HEED_ADAM, .beta2 = 1}, "optimizer: beta2 is 1, expected in [0,1)"},
        {{.kind = HEED_ADAM, .beta1 = NAN}, "optimizer: beta1 is nan, expected in [0,1)"},
        {{.kind = HEED_ADAMW, .weight_decay = -1},
         "optimizer: weight decay is -1, expected in [0,inf)"},
        {{.kind = HEED_RMSPROP, .alpha = 2}, "optimizer: alpha is 2, expected in [0,1)"},
        {{.kind = (heed_optimizer_kind)9}, "optimizer: there is no kind 9"},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        heed_error err = {0};
        assert_null(heed_optimizer_new(p, &rows[i].options, NULL, &err));
        assert_int_equal(err.status, HEED_ARGUMENT);
        assert_string_equal(err.text, rows[i].text);
    }
    heed_error err = {0};
    assert_null(heed_ema_new(p, 1, NULL, &err));
    assert_string_equal(err.text, "ema: decay is 1, expected in [0,1)");
    heed_params_free(p);

    heed_params *unfinished = heed_params_new(NULL, NULL);
    err = (heed_error){0};
    assert_null(heed_optimizer_new(unfinished, NULL, NULL, &err));
    assert_string_equal(err.text, "optimizer: the parameter set is not finished");
    err = (heed_error){0};
    assert_null(heed_ema_new(unfinished, 0.5, NULL, &err));
    assert_string_equal(err.text, "ema: the parameter set is not finished");
    heed_params_free(unfinished);
}

/* Catches a crash where an optimiser, an average or a set could not be made, and a moment that is
 * read beyond the last. */
static void test_nothing_there(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_optimizer_step(NULL, 1, 1);
    heed_optimizer_set_updates(NULL, 3);
    assert_int_equal(heed_optimizer_updates(NULL), 0);
    assert_int_equal(heed_optimizer_moments(NULL), 0);
    assert_null(heed_optimizer_moment(NULL, 0));
    assert_null(heed_optimizer_moment_name(NULL, 0));
    assert_null(heed_optimizer_new(NULL, NULL, NULL, &err));
    assert_int_equal(err.status, HEED_STATE);
    assert_true(heed_grad_norm(NULL, 1) == 0 && heed_clip_norm(NULL, 1, 1) == 0);
    heed_clip_value(NULL, 1, 1);
    assert_true(heed_schedule_rate(NULL, 1) == 0);

    err = (heed_error){0};
    assert_null(heed_ema_new(NULL, 0.5, NULL, &err));
    assert_int_equal(err.status, HEED_STATE);
    heed_ema_update(NULL, 1);
    heed_ema_swap(NULL);
    heed_ema_set_updates(NULL, 3);
    assert_null(heed_ema_values(NULL));
    assert_int_equal(heed_ema_updates(NULL), 0);

    heed_params *p = make_params((const char *[]){"a"}, 1, 3);
    heed_optimizer *o =
        heed_optimizer_new(p, &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, &(heed_error){0});
    heed_ema *e = heed_ema_new(p, 0.5, NULL, NULL);
    err = (heed_error){0};
    assert_null(heed_ema_new(p, -0.1, NULL, &err));
    assert_string_equal(err.text, "ema: decay is -0.1, expected in [0,1)");
    assert_null(heed_optimizer_moment(o, -1));
    assert_null(heed_optimizer_moment(o, 2));
    assert_null(heed_optimizer_moment_name(o, -1));
    assert_null(heed_optimizer_moment_name(o, 2));
    assert_non_null(heed_optimizer_moment(o, 1));
    heed_optimizer_set_updates(o, -5);
    heed_ema_set_updates(e, -5);
    assert_int_equal(heed_optimizer_updates(o) + heed_ema_updates(e), 0);
    heed_ema_free(e);
    heed_optimizer_free(o);
    heed_params_free(p);
}

/* Catches a leak or a crash when the n-th allocation fails, for every n. */
static void test_memory(void **state)
{
    (void)state;
    heed_params *p = make_params((const char *[]){"a"}, 1, 300);
    int failures = 0;
    for (int n = 1;; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_optimizer *o = heed_optimizer_new(p, &every_kind[3], &a, &err);
        heed_ema *e = o ? heed_ema_new(p, 0.5, &a, &err) : NULL;
        bool done = e != NULL;
        if (!done)
            assert_int_equal(err.status, HEED_MEMORY);
        heed_ema_free(e);
        heed_optimizer_free(o);
        assert_int_equal(f.held, 0);
        if (done)
            break;
        failures++;
    }
    assert_int_equal(failures, 6); /* the optimiser, three moments; the average, its values */
    heed_params_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_real_zero),
        cmocka_unit_test(test_frozen),        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_resume),
        cmocka_unit_test(test_kernels),       cmocka_unit_test(test_sum_squares),
        cmocka_unit_test(test_tiny_moments),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nothing_there), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
