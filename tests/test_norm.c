/* test_norm.c: layer, RMS and batch norm, alone and fused, against plain loops and golden values.
 */
#include "tensor/tape.h"

#include <heed/nn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-11 /* twelve digits are printed in the golden values */
#else
#define CLOSE 2e-5 /* float sums of some hundred terms */
#endif

static void assert_close(const heed_real *found, const double *wanted, int64_t n)
{
    double largest = 1;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(wanted[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - wanted[i]) <= CLOSE * largest))
            fail_msg("element %d is %.9g, expected %.9g", (int)i, (double)found[i], wanted[i]);
}

/* amplitude * sin(step i + start): the inputs of the golden values. */
static heed_real *waves(heed_real *x, int64_t n, double amplitude, double step, double start,
                        double shift)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (heed_real)(shift + amplitude * sin(step * (double)i + start));
    return x;
}

/* ---- kernels against plain loops ---- */

enum { ROWS = 3, MOST = 131, SLACK = 2 };
struct room {
    heed_real x[ROWS * (MOST + SLACK)], r[ROWS * (MOST + SLACK)], dy[ROWS * MOST], y[ROWS * MOST];
    heed_real dx[ROWS * (MOST + SLACK)], dr[ROWS * (MOST + SLACK)];
    heed_real gain[MOST], bias[MOST], mean[ROWS], rstd[ROWS], mask[ROWS * MOST];
    heed_real scratch[HEED_NORM_SCRATCH(MOST)];
    double want_y[ROWS * MOST], want_dx[ROWS * MOST], want_dr[ROWS * MOST], want_dgain[MOST],
        want_dbias[MOST];
};

static void naive(struct room *m, const heed__norm *n)
{
    const int64_t d = n->d;
    memset(m->want_dgain, 0, sizeof m->want_dgain);
    memset(m->want_dbias, 0, sizeof m->want_dbias);
    for (int64_t i = 0; i < ROWS; i++) {
        double s[MOST], mean = 0, variance = 0, g = 0, gh = 0;
        for (int64_t j = 0; j < d; j++) {
            s[j] = (double)n->x[i * n->ldx + j];
            if (n->r)
                s[j] += (double)m->mask[i * d + j] * (double)n->r[i * n->ldr + j];
            mean += n->centred ? s[j] / (double)d : 0;
        }
        for (int64_t j = 0; j < d; j++)
            variance += (s[j] - mean) * (s[j] - mean) / (double)d;
        double rstd = 1 / sqrt(variance + n->eps);
        for (int64_t j = 0; j < d; j++) {
            double h = (s[j] - mean) * rstd, dy = (double)m->dy[i * d + j];
            m->want_y[i * d + j] = h * (double)m->gain[j] + (n->bias ? (double)m->bias[j] : 0);
            m->want_dgain[j] += dy * h;
            m->want_dbias[j] += dy;
            g += n->centred ? dy * (double)m->gain[j] / (double)d : 0;
            gh += dy * (double)m->gain[j] * h / (double)d;
        }
        for (int64_t j = 0; j < d; j++) {
            double h = (s[j] - mean) * rstd;
            double ds = rstd * ((double)(m->dy[i * d + j] * m->gain[j]) - g - h * gh);
            m->want_dx[i * d + j] = ds;
            m->want_dr[i * d + j] = ds * (double)m->mask[i * d + j];
        }
    }
}

static void unpad(heed_real *to, const heed_real *from, int64_t d, int64_t ld)
{
    for (int64_t i = 0; i < ROWS; i++)
        memcpy(to + i * d, from + i * ld, (size_t)d * sizeof *to);
}

/* Catches a wrong tail, a lane counted twice, a forgotten leading dimension, assigning where adding
 * was asked: every set, odd sizes, centred and not, with and without residual. */
static void kernels_against_loops(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67, 131};
    struct room *m = calloc(1, sizeof *m);
    const heed_kernels *k;
    (void)state;
    assert_non_null(m);
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++)
            for (int kind = 0; kind < 8; kind++) {
                const int64_t d = sizes[z], ld = d + SLACK;
                heed_real flat[ROWS * MOST];
                waves(m->x, ROWS * ld, 2, 1.3, 0.2, 5);
                waves(m->r, ROWS * ld, 1, 2.3, 0.1, 0);
                waves(m->dy, ROWS * d, 1, 0.9, 0.7, 0);
                waves(m->gain, d, 0.5, 0.7, 0.1, 1);
                waves(m->bias, d, 1, 0.9, 0.4, 0);
                heed__norm n = {.x = m->x, .gain = m->gain, .d = d, .ldx = ld, .ldr = ld};
                n.centred = kind & 1;
                n.r = kind & 2 ? m->r : NULL;
                n.bias = kind & 4 ? m->bias : NULL;
                n.rate = kind & 4 ? 0.3 : 0;
                n.rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
                n.eps = 0.01;
                n.y = m->y;
                n.mean = m->mean;
                n.rstd = m->rstd;
                k->dropout_mask(m->mask, &n.rng, 0, ROWS * d, n.rate);
                naive(m, &n);
                k->norm_forward(&n, 0, ROWS, m->scratch);
                assert_close(m->y, m->want_y, ROWS * d);
                for (int again = 0; again < 2; again++) {
                    n.dy = m->dy;
                    n.dx = m->dx;
                    n.dr = n.r ? m->dr : NULL;
                    n.lddx = n.lddr = ld;
                    n.assign_x = n.assign_r = !again;
                    k->norm_backward(&n, 0, ROWS, m->scratch);
                    for (int64_t i = 0; again && i < ROWS * d; i++) {
                        m->want_dx[i] *= 2;
                        m->want_dr[i] *= 2;
                    }
                    unpad(flat, m->dx, d, ld);
                    assert_close(flat, m->want_dx, ROWS * d);
                    unpad(flat, m->dr, d, ld);
                    if (n.r)
                        assert_close(flat, m->want_dr, ROWS * d);
                    assert_close(HEED_NORM_DGAIN(m->scratch, d), m->want_dgain, d);
                    assert_close(HEED_NORM_DBIAS(m->scratch, d), m->want_dbias, d);
                }
            }
    free(m);
}

/* ---- golden values ----
 * python3-torch 1.13, float64: torch.nn.functional.layer_norm and batch_norm of x = 2 sin(1.3 i +
 * .2) as (3,5), gain = 1 + .5 sin(.7 i + .1), bias = sin(.9 i + .4); gradients of sum(y * w), w =
 * sin(2.1 i + .3); running mean .1 sin(.5 i), variance 1 + .3 sin(1.1 i), momentum .1, eps 1e-5. */
static const double ln_y[] = {0.70779554111,   2.937992512428,  1.55709131008,  -1.588359492949,
                              -1.983018146043, 1.010751014477,  2.915859491101, 1.087830498772,
                              -1.822944224004, -1.750255125347, 1.283505114015, 2.794255517365,
                              0.602148439529,  -1.963731262939, -1.465834808786};
static const double ln_dx[] = {0.114894132211,  0.655564042503,  -1.145317275011, 0.074789991529,
                               0.300069108768,  -0.802572450626, 0.055264929258,  0.746515458038,
                               -0.583746307531, 0.584538370861,  0.765966115568,  -0.554205585762,
                               0.404827481696,  0.302330802884,  -0.918918814385};
static const double ln_dgain[] = {0.051918668695, 0.122356276284, -0.416492747921, 0.053373041683,
                                  -0.404092606528};
static const double ln_dbias[] = {-0.047993427255, 0.016022061568, 0.031816076514, -0.048146506152,
                                  0.016797075648};
static const double bn_y[] = {-0.916547456552, 2.114437105957,  2.635595253386, 1.889536694896,
                              -2.087228062469, 0.430708897303,  1.717285145651, 0.825200239284,
                              -0.253838883637, -0.834939548943, 1.654093586175, -0.941047695356,
                              -1.035306281211, -1.51095582396,  0.651760125487};
static const double bn_dx[] = {1.507678305574,  1.626664405382,  -1.407341286223, 3.689404057124,
                               -0.636687357432, -3.168112117732, -1.783672836722, 2.776313248087,
                               -9.980260058092, 1.173807221622,  1.660433812158,  0.15700843134,
                               -1.368971961864, 6.290856000969,  -0.53711986419};
static const double bn_dgain[] = {0.361638109096, 2.137289135723, -1.626167596902, -0.073307200745,
                                  -2.056592198234};
static const double bn_dbias[] = {-0.047993427255, 0.016022061568, 0.031816076514, -0.048146506152,
                                  0.016797075648};
static const double bn_mean[] = {0.079706184408, 0.237931517725, 0.100234770195, -0.091899953723,
                                 -0.039861046377};
static const double bn_variance[] = {0.915488664115, 1.141089400356, 1.136519095177, 0.860219458298,
                                     0.654533212704};
static const double bn_eval_y[] = {
    0.737956949437, 3.198370364532, 1.609466068507, -2.297084304147, -2.840489557209,
    1.190441507884, 3.177672037108, 1.017509472312, -2.613513090762, -2.412513301331,
    1.601322985022, 3.039127980818, 0.409167591954, -2.799102584291, -1.904425785231};

static heed_tape *new_tape(void)
{
    heed_error err = {0};
    heed_tape *t = heed_tape_new(&(heed_tape_options){.seed = 1, .threads = 1}, &err);
    assert_non_null(t);
    return t;
}

static heed_tensor *wave_variable(heed_tape *t, heed_shape shape, double amplitude, double step,
                                  double start, double shift)
{
    heed_tensor *x = heed_variable(t, shape, NULL);
    assert_non_null(x);
    waves(heed_tensor_data(x), heed_tensor_count(x), amplitude, step, start, shift);
    return x;
}

/* d sum(y * w) / d everything, w = sin(2.1 i + .3). */
static void back_from(heed_tape *t, heed_tensor *y)
{
    const int64_t n = heed_tensor_count(y);
    heed_real *w = heed_arena_allocate(heed_tape_arena(t), (size_t)n * sizeof *w);
    assert_non_null(w);
    waves(w, n, 1, 2.1, 0.3, 0);
    assert_int_equal(heed__backward_from(t, &y, (const heed_real *const *)&w, 1), HEED_OK);
}

/* Catches an unbiased variance, eps in the wrong place, a wrong gradient. */
static void golden_layer_norm(void **state)
{
    heed_tape *t = new_tape();
    (void)state;
    heed_tensor *x = wave_variable(t, HEED_SHAPE(3, 5), 2, 1.3, 0.2, 0);
    heed_tensor *gain = wave_variable(t, HEED_SHAPE(5), 0.5, 0.7, 0.1, 1);
    heed_tensor *bias = wave_variable(t, HEED_SHAPE(5), 1, 0.9, 0.4, 0);
    heed_tensor *y = heed_layer_norm(t, x, gain, bias, 1e-5);
    assert_non_null(y);
    assert_close(heed_tensor_data(y), ln_y, 15);
    back_from(t, y);
    assert_close(heed_tensor_grad(x), ln_dx, 15);
    assert_close(heed_tensor_grad(gain), ln_dgain, 5);
    assert_close(heed_tensor_grad(bias), ln_dbias, 5);
    heed_tape_free(t);
}

/* Catches a biased running variance, momentum on the wrong side, running statistics not used
 * outside training. */
static void golden_batch_norm(void **state)
{
    heed_tape *t = new_tape();
    (void)state;
    heed_tensor *x = wave_variable(t, HEED_SHAPE(3, 5), 2, 1.3, 0.2, 0);
    heed_tensor *gain = wave_variable(t, HEED_SHAPE(5), 0.5, 0.7, 0.1, 1);
    heed_tensor *bias = wave_variable(t, HEED_SHAPE(5), 1, 0.9, 0.4, 0);
    heed_params *p = heed_params_new(NULL, NULL);
    heed_tensor *mean = heed_state(heed_params_scope(p), "mean", HEED_SHAPE(5), 0);
    heed_tensor *variance = heed_state(heed_params_scope(p), "variance", HEED_SHAPE(5), 0);
    assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
    waves(heed_tensor_data(mean), 5, 0.1, 0.5, 0, 0);
    waves(heed_tensor_data(variance), 5, 0.3, 1.1, 0, 1);
    heed_tensor *y = heed_batch_norm(t, x, gain, bias, mean, variance, 0.1, 1e-5);
    assert_non_null(y);
    assert_close(heed_tensor_data(y), bn_y, 15);
    heed_params_fold_state(p);
    assert_close(heed_tensor_data(mean), bn_mean, 5);
    assert_close(heed_tensor_data(variance), bn_variance, 5);
    back_from(t, y);
    assert_close(heed_tensor_grad(x), bn_dx, 15);
    assert_close(heed_tensor_grad(gain), bn_dgain, 5);
    assert_close(heed_tensor_grad(bias), bn_dbias, 5);
    heed_tape_set_training(t, false);
    y = heed_batch_norm(t, x, gain, bias, mean, variance, 0.1, 1e-5);
    assert_close(heed_tensor_data(y), bn_eval_y, 15);
    heed_tape_free(t);
    heed_params_free(p);
}

/* Catches dividing by rows - 1 = 0, and messages that do not say what was found. */
static void refusals(void **state)
{
    heed_tape *t = new_tape();
    (void)state;
    heed_tensor *x = wave_variable(t, HEED_SHAPE(1, 5), 2, 1.3, 0.2, 0);
    heed_tensor *v = wave_variable(t, HEED_SHAPE(5), 0.5, 0.7, 0.1, 1);
    assert_null(heed_batch_norm(t, x, v, v, v, v, 0.1, 1e-5));
    assert_string_equal(heed_tape_error(t)->text,
                        "batch_norm: x is (1,5), expected at least 2 rows to train on");
    heed_tape_reset(t);
    x = wave_variable(t, HEED_SHAPE(3, 4), 2, 1.3, 0.2, 0);
    v = wave_variable(t, HEED_SHAPE(5), 0.5, 0.7, 0.1, 1);
    assert_null(heed_layer_norm(t, x, v, NULL, 1e-5));
    assert_string_equal(heed_tape_error(t)->text, "layer_norm: gain is (5), expected (4)");
    heed_tape_reset(t);
    x = wave_variable(t, HEED_SHAPE(3, 4), 2, 1.3, 0.2, 0);
    v = wave_variable(t, HEED_SHAPE(4), 0.5, 0.7, 0.1, 1);
    assert_null(heed_add_norm(t, x, v, v, v, 0.1, 1e-5));
    assert_string_equal(heed_tape_error(t)->text, "add_norm: y is (4), expected (3,4) as x is");
    heed_tape_free(t);
}

/* The fused operator, or its two parts; the first call after a reset draws the same mask in both.
 */
static void residual(heed_tape *t, bool fused, heed_real *out, int64_t rows, int64_t d)
{
    heed_tape_reset(t);
    heed_tensor *x = wave_variable(t, HEED_SHAPE(rows, d), 2, 1.3, 0.2, 0);
    heed_tensor *r = wave_variable(t, HEED_SHAPE(rows, d), 1, 0.77, 0.1, 0);
    heed_tensor *gain = wave_variable(t, HEED_SHAPE(d), 0.5, 0.7, 0.1, 1);
    heed_tensor *bias = wave_variable(t, HEED_SHAPE(d), 1, 0.9, 0.4, 0);
    heed_tensor *y = fused ? heed_add_norm(t, x, r, gain, bias, 0.3, 1e-5)
                           : heed_layer_norm(t, heed_add_dropout(t, x, r, 0.3), gain, bias, 1e-5);
    assert_non_null(y);
    back_from(t, y);
    const size_t n = (size_t)(rows * d), bytes = n * sizeof *out;
    memcpy(out, heed_tensor_data(y), bytes);
    memcpy(out + n, heed_tensor_grad(x), bytes);
    memcpy(out + 2 * n, heed_tensor_grad(r), bytes);
    memcpy(out + 3 * n, heed_tensor_grad(gain), (size_t)d * sizeof *out);
    memcpy(out + 3 * n + (size_t)d, heed_tensor_grad(bias), (size_t)d * sizeof *out);
}

/* Catches a fused mask that differs from the plain one, a slot lost between threads, and sums that
 * change from run to run. */
static void fused_is_its_parts(void **state)
{
    enum { N = 301, D = 97, ALL = 3 * N * D + 2 * D };
    heed_real *parts = malloc(3 * ALL * sizeof *parts), *fused = parts + ALL, *again = fused + ALL;
    double *wanted = malloc(ALL * sizeof *wanted);
    heed_tape *t = new_tape();
    (void)state;
    assert_non_null(parts);
    assert_non_null(wanted);
    residual(t, false, parts, N, D);
    for (int i = 0; i < ALL; i++)
        wanted[i] = (double)parts[i];
    for (int threads = 1; threads <= 4; threads++) {
        heed_tape_set_threads(t, threads);
        residual(t, true, fused, N, D);
        assert_close(fused, wanted, ALL);
        residual(t, true, again, N, D);
        assert_memory_equal(fused, again, ALL * sizeof *fused);
    }
    heed_tape_free(t);
    free(wanted);
    free(parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_against_loops), cmocka_unit_test(golden_layer_norm),
        cmocka_unit_test(golden_batch_norm),     cmocka_unit_test(refusals),
        cmocka_unit_test(fused_is_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
