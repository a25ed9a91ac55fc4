/* The small kernels around products, batch norm, cross-entropy and dropout, against plain loops in
 * double: every instruction set, every size around a vector's, rows with gaps between them. */
#include "kernel/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-13
#else
#define CLOSE 1e-6 /* a few roundings, for sums of up to twenty numbers */
#endif
#define GUARD ((heed_real)77)

#include "kernel_check.h"

enum { ROWS = 19, MOST = 70, LD = MOST + 3, BIG = ROWS * LD };

/* Catches: a tail that is left out or written beyond, a NaN swallowed by the maximum. */
static void bias_and_relu(void **state)
{
    const heed_kernels *k;
    heed_real y[MOST + 1], before[MOST], bias[MOST];
    (void)state;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t n = 0; n <= MOST; n++) {
            fill(before, MOST, 0.3);
            fill(bias, MOST, 1.1);
            before[n / 2 % MOST] = (heed_real)NAN;
            memcpy(y, before, sizeof before);
            y[n] = GUARD;
            k->bias_relu(y, bias, n);
            for (int64_t i = 0; i < n; i++)
                if (i == n / 2)
                    assert_true(isnan(y[i]));
                else
                    expect("bias_relu", i, (double)y[i],
                           fmax((double)before[i] + (double)bias[i], 0));
            assert_true(y[n] == GUARD);
        }
}

/* Catches: rows left over after the blocks of eight, a mask on the wrong side, a sum that starts
 * anew. */
static void sums_of_columns(void **state)
{
    const heed_kernels *k;
    static heed_real dy[BIG], before[BIG], y[BIG], sum[MOST + 1];
    (void)state;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t rows = 0; rows <= ROWS; rows += rows < 9 ? 1 : 5)
            for (int64_t n = 1; n <= MOST; n += n < 20 ? 1 : 7)
                for (int how = 0; how < 4; how++) {
                    bool masked = how & 1, summed = how & 2;
                    fill(before, BIG, 0.2);
                    fill(y, BIG, 2.9);
                    memcpy(dy, before, sizeof dy);
                    for (int64_t j = 0; j < MOST; j++)
                        sum[j] = 3;
                    sum[n] = GUARD;
                    k->column_sums(summed ? sum : NULL, dy, LD, masked ? y : NULL, LD, rows, n);
                    for (int64_t j = 0; j < n; j++) {
                        double wanted = 3;
                        for (int64_t i = 0; i < rows; i++) {
                            bool off = masked && !(y[i * LD + j] > 0);
                            double g = off ? 0 : (double)before[i * LD + j];
                            assert_true((double)dy[i * LD + j] == g);
                            wanted += summed ? g : 0;
                        }
                        expect("column_sums", j, (double)sum[j], wanted);
                    }
                    assert_true(sum[n] == GUARD && dy[n] == before[n]);
                }
}

/* Catches: columns outside [begin,end) touched, a variance over rows - 1, statistics that count as
 * depending on x when they are fixed. */
static void batch_norm_columns(void **state)
{
    const heed_kernels *k;
    static heed_real x[BIG], y[BIG], dy[BIG], dx[BIG], gain[MOST], bias[MOST];
    double mean[MOST], variance[MOST], rstd[MOST], dgain[MOST], dbias[MOST];
    enum { BEGIN = 2 };
    (void)state;
    fill(x, BIG, 0.4);
    fill(dy, BIG, 1.3);
    fill(gain, MOST, 2.2);
    fill(bias, MOST, 0.7);
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t d = BEGIN + 2; d <= MOST; d += 3)
            for (int fixed = 0; fixed < 2; fixed++) {
                const int64_t rows = ROWS - d % 3, end = d - 1;
                heed__column_norm n = {.x = x,
                                       .gain = gain,
                                       .bias = d % 2 ? bias : NULL,
                                       .rows = rows,
                                       .d = d,
                                       .ldx = LD,
                                       .mean = mean,
                                       .rstd = rstd,
                                       .y = y,
                                       .dy = dy,
                                       .dgain = dgain,
                                       .dbias = dbias,
                                       .dx = dx,
                                       .lddx = LD,
                                       .fixed = fixed};
                for (int64_t j = 0; j < MOST; j++)
                    mean[j] = variance[j] = dgain[j] = dbias[j] = 77;
                for (int64_t i = 0; i < BIG; i++)
                    y[i] = dx[i] = GUARD;
                k->column_moments(mean, variance, x, LD, rows, BEGIN, end);
                for (int64_t j = 0; j < MOST; j++)
                    rstd[j] = 1 / sqrt(variance[j] + 1e-5);
                k->column_norm_forward(&n, BEGIN, end);
                k->column_norm_sums(&n, BEGIN, end);
                k->column_norm_backward(&n, BEGIN, end);
                for (int64_t j = BEGIN; j < end; j++) {
                    double m = 0, v = 0, g = 0, gh = 0;
                    for (int64_t i = 0; i < rows; i++)
                        m += (double)x[i * LD + j] / (double)rows;
                    for (int64_t i = 0; i < rows; i++)
                        v += pow((double)x[i * LD + j] - m, 2) / (double)rows;
                    expect("mean", j, mean[j], m);
                    expect("variance", j, variance[j], v);
                    double r = 1 / sqrt(v + 1e-5);
                    for (int64_t i = 0; i < rows; i++) {
                        double h = ((double)x[i * LD + j] - m) * r, o = (double)dy[i * d + j];
                        g += o;
                        gh += o * h;
                        expect("forward", i * d + j, (double)y[i * d + j],
                               h * (double)gain[j] + (n.bias ? (double)bias[j] : 0));
                    }
                    expect("dbias", j, dbias[j], g);
                    expect("dgain", j, dgain[j], gh);
                    for (int64_t i = 0; i < rows; i++) {
                        double h = ((double)x[i * LD + j] - m) * r;
                        double s = fixed ? 0 : (g + h * gh) / (double)rows;
                        expect("backward", i * LD + j, (double)dx[i * LD + j],
                               77 + (double)gain[j] * r * ((double)dy[i * d + j] - s));
                    }
                }
                assert_true(y[BEGIN - 1] == GUARD && y[end] == GUARD);
                assert_true(dx[BEGIN - 1] == GUARD && dx[end] == GUARD);
                assert_true(mean[BEGIN - 1] == 77 && dgain[end] == 77);
            }
}

/* Catches: a lane behind the end that is counted, epsilon on the target alone, assigning where
 * adding was asked; lengths also around the block of 1024. */
static void cross_entropy_rows(void **state)
{
    enum { V = 2100 };
    const heed_kernels *k;
    static heed_real x[V + 1], dx[V + 1];
    (void)state;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t v = 1; v <= V; v = v < 40     ? v + 1
                                        : v < 1020 ? 1020
                                        : v < 1030 ? v + 1
                                                   : v + 357)
            for (int how = 0; how < 4; how++) {
                const double e = how & 1 ? 0.1 : 0, scale = 0.7, base = how & 2 ? 5 : 0;
                const int32_t target = (int32_t)(v * 2 / 3);
                double sum = 0, mean = 0;
                fill(x, V + 1, 0.6);
                for (int64_t i = 0; i < v; i++) {
                    sum += exp((double)x[i]);
                    mean += (double)x[i] / (double)v;
                }
                heed__entropy row = k->cross_entropy_row(x, v, target, e);
                const double nll = log(sum) - (double)x[target];
                expect("nll", v, row.nll, nll);
                expect("loss", v, row.loss, (1 - e) * nll + e * (log(sum) - mean));
                for (int64_t i = 0; i < V; i++)
                    dx[i] = (heed_real)base;
                dx[v] = GUARD;
                k->cross_entropy_grad(dx, x, &row, v, target, e, scale, base == 0);
                for (int64_t i = 0; i < v; i++) {
                    double q = e / (double)v + (i == target ? 1 - e : 0);
                    expect("gradient", i, (double)dx[i],
                           base + scale * (exp((double)x[i]) / sum - q));
                }
                assert_true(dx[v] == GUARD);
                memcpy(dx, x, (size_t)v * sizeof *dx);
                heed__entropy both = k->cross_entropy_both(dx, v, target, e, scale);
                expect("nll of both", v, both.nll, nll);
                expect("loss of both", v, both.loss, (1 - e) * nll + e * (log(sum) - mean));
                for (int64_t i = 0; i < v; i++) {
                    double q = e / (double)v + (i == target ? 1 - e : 0);
                    expect("gradient of both", i, (double)dx[i],
                           scale * (exp((double)x[i]) / sum - q));
                }
                assert_true(dx[v] == GUARD);
            }
}

/* Catches: a base or a mask taken though it is NULL, or left out though it is there. */
static void masked_sums(void **state)
{
    const heed_kernels *k;
    heed_real y[MOST + 1], base[MOST], x[MOST], mask[MOST];
    (void)state;
    fill(base, MOST, 0.1);
    fill(x, MOST, 0.9);
    fill(mask, MOST, 2.5);
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t n = 0; n <= MOST; n++)
            for (int how = 0; how < 6; how++) {
                const bool based = how & 1, masked = how & 2, in_place = how & 4;
                for (int64_t i = 0; i < n; i++)
                    y[i] = in_place ? base[i] : GUARD;
                y[n] = GUARD;
                k->masked_add(y,
                              in_place ? y
                              : based  ? base
                                       : NULL,
                              x, masked ? mask : NULL, (heed_real)1.5, n);
                for (int64_t i = 0; i < n; i++)
                    expect("masked_add", i, (double)y[i],
                           (based || in_place ? (double)base[i] : 0) +
                               1.5 * (double)x[i] * (masked ? (double)mask[i] : 1));
                assert_true(y[n] == GUARD);
            }
}

/* Catches: a tail of a key left out, a gradient assigned or written beyond, one that needs another.
 */
static void additive_score(void **state)
{
    enum { KEYS = 5 };
    const heed_kernels *k;
    static heed_real q[MOST], v[MOST], keys[BIG], e[KEYS], de[KEYS], dq[LD], dv[LD], dk[BIG];
    (void)state;
    fill(q, MOST, 0.4);
    fill(v, MOST, 1.3);
    fill(keys, BIG, 2.2);
    fill(de, KEYS, 0.9);
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t d = 1; d <= MOST; d += d < 20 ? 1 : 7)
            for (int skip = -1; skip < 3; skip++) { /* which gradient is not asked for */
                double want_q[MOST] = {0}, want_v[MOST] = {0};
                for (int64_t i = 0; i < LD; i++)
                    dq[i] = dv[i] = GUARD;
                for (int64_t i = 0; i < BIG; i++)
                    dk[i] = GUARD;
                k->additive_scores(e, q, keys, LD, v, KEYS, d);
                k->additive_grads(skip == 0 ? NULL : dq, skip == 1 ? NULL : dk,
                                  skip == 2 ? NULL : dv, de, q, keys, LD, v, KEYS, d);
                for (int64_t j = 0; j < KEYS; j++) {
                    double sum = 0;
                    for (int64_t i = 0; i < d; i++) {
                        const double x = tanh((double)q[i] + (double)keys[j * LD + i]);
                        const double slope = (double)de[j] * (double)v[i] * (1 - x * x);
                        sum += (double)v[i] * x;
                        want_q[i] += slope;
                        want_v[i] += (double)de[j] * x;
                        expect("additive dk", i, (double)(dk[j * LD + i] - GUARD) / 77,
                               skip == 1 ? 0 : slope / 77);
                    }
                    expect("additive_scores", j, (double)e[j] / 10, sum / 10);
                    assert_true(dk[j * LD + d] == GUARD);
                }
                for (int64_t i = 0; i < d; i++) {
                    expect("additive dq", i, (double)(dq[i] - GUARD) / 77,
                           skip == 0 ? 0 : want_q[i] / 77);
                    expect("additive dv", i, (double)(dv[i] - GUARD) / 77,
                           skip == 2 ? 0 : want_v[i] / 77);
                }
                assert_true(dq[d] == GUARD && dv[d] == GUARD);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(additive_score),     cmocka_unit_test(bias_and_relu),
        cmocka_unit_test(sums_of_columns),    cmocka_unit_test(batch_norm_columns),
        cmocka_unit_test(cross_entropy_rows), cmocka_unit_test(masked_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
