/* The vector functions of vecmath.h: error in ulp over all floats, and the ends of their ranges,
 * for every instruction set through the kernel `unary`; expm1 and log1p, which only carry others,
 * here in the compiler's default set. */
#include "kernel/kernels.h"
#include "kernel/vecmath.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define DIGITS DBL_MANT_DIG
#define LOWEST_EXPONENT DBL_MIN_EXP
#define SMALLEST_NORMAL DBL_MIN
#else
#define DIGITS FLT_MANT_DIG
#define LOWEST_EXPONENT FLT_MIN_EXP
#define SMALLEST_NORMAL FLT_MIN
#endif

static long double sigmoidl(long double x)
{
    return 1 / (1 + expl(-x));
}

/* The size of the last digit of a real near x; subnormals have the spacing of the smallest normal.
 */
static long double ulp_of(long double x)
{
    int e;
    frexpl(x, &e);
    return ldexpl(1, (e < LOWEST_EXPONENT ? LOWEST_EXPONENT : e) - DIGITS);
}

/* Error of y, in ulp.  What would be subnormal may be 0. */
static long double error_of(real y, long double exact)
{
    real rounded = (real)exact;
    if (isnan(rounded) || isinf(rounded) || isinf(y))
        return (isnan(rounded) && isnan(y)) || rounded == y ? 0 : INFINITY;
    if (y == 0 && fabsl(exact) < SMALLEST_NORMAL)
        return 0;
    return fabsl((long double)y - exact) / ulp_of(exact);
}

/* Every STRIDE-th float, all exponents and signs, infinities and NaN among them. */
#define STRIDE 4099u
#define CHUNK 1024

static int next_floats(uint64_t *bits, real *x)
{
    int n = 0;
    for (; n < CHUNK && *bits < 1ull << 32; n++, *bits += STRIDE) {
        uint32_t b = (uint32_t)*bits;
        float f;
        memcpy(&f, &b, sizeof f);
        x[n] = f;
    }
    return n;
}

static const struct {
    const char *name;
    int kind;
    long double (*exact)(long double);
    double ulp;
} functions[] = {
    {"exp", HEED__UNARY_EXP, expl, 1.1},
    {"log", HEED__UNARY_LOG, logl, 1.6},
    {"tanh", HEED__UNARY_TANH, tanhl, 3},
    {"erf", HEED__UNARY_ERF, erfl, 3.5},
    {"sigmoid", HEED__UNARY_SIGMOID, sigmoidl, 2.5},
};
#define N_FUNCTIONS (sizeof functions / sizeof *functions)

/* Catches: a wrong coefficient, a range reduction that fails for large arguments, cancellation near
 * zero, garbage from infinities and NaN. */
static void errors_stay_within_the_stated_ulp(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (size_t f = 0; f < N_FUNCTIONS; f++) {
            real x[CHUNK], y[CHUNK], at = 0;
            long double worst = 0;
            uint64_t bits = 0;
            for (int n; (n = next_floats(&bits, x));) {
                k->unary(functions[f].kind, y, x, n);
                for (int i = 0; i < n; i++) {
                    long double e = error_of(y[i], functions[f].exact((long double)x[i]));
                    if (e > worst) {
                        worst = e;
                        at = x[i];
                    }
                }
            }
            if (!(worst <= functions[f].ulp))
                fail_msg("%s of %.9g in set %s is off by %.3Lf ulp, more than %g",
                         functions[f].name, (double)at, k->isa, worst, functions[f].ulp);
        }
}

/* Catches: expm1 and log1p that lose small arguments, or the ends of their ranges. */
static void expm1_and_log1p_keep_small_arguments(void **state)
{
    (void)state;
    real x[CHUNK], y[CHUNK], z[CHUNK];
    uint64_t bits = 0;
    for (int n; (n = next_floats(&bits, x));) {
        for (int64_t i = 0; i < n; i += VW) {
            vstore_at(y, vexpm1(vload_at(x, i, n)), i, n);
            vstore_at(z, vlog1p(vload_at(x, i, n)), i, n);
        }
        for (int i = 0; i < n; i++) {
            if (!(x[i] > 88) && error_of(y[i], expm1l((long double)x[i])) > 2)
                fail_msg("expm1 of %.9g is %.9g", (double)x[i], (double)y[i]);
            if (error_of(z[i], log1pl((long double)x[i])) > 2)
                fail_msg("log1p of %.9g is %.9g", (double)x[i], (double)z[i]);
        }
    }
}

/* Catches: a mask of -inf that does not become 0, NaN swallowed (also one with a payload, whose
 * bits go through the integer part of exp), a sign lost at zero. */
static void the_ends_of_the_ranges(void **state)
{
    (void)state;
    const heed_kernels *k;
    real payload = NAN;
    ((unsigned char *)&payload)[0] = 0x35;
    const real x[] = {-INFINITY, INFINITY, NAN, payload, 0, (real)-0.0, -1, 1000, -1000};
    real y[9];
    for (int set = 0; (k = heed__kernels_at(set)); set++) {
        k->unary(HEED__UNARY_EXP, y, x, 9);
        assert_true(y[0] == 0 && y[1] == INFINITY && isnan(y[2]) && isnan(y[3]));
        assert_true(y[4] == 1 && y[5] == 1 && y[8] == 0);
        k->unary(HEED__UNARY_LOG, y, x, 9);
        assert_true(isnan(y[0]) && y[1] == INFINITY && isnan(y[2]) && isnan(y[3]));
        assert_true(y[4] == -INFINITY && y[5] == -INFINITY && isnan(y[6]));
        for (int kind = 0; kind < 2; kind++) {
            k->unary(kind ? HEED__UNARY_ERF : HEED__UNARY_TANH, y, x, 9);
            assert_true(y[0] == -1 && y[1] == 1 && isnan(y[2]) && isnan(y[3]));
            assert_true(y[4] == 0 && y[5] == 0 && signbit(y[5]) && y[7] == 1 && y[8] == -1);
        }
        k->unary(HEED__UNARY_SIGMOID, y, x, 9);
        assert_true(y[0] == 0 && y[1] == 1 && isnan(y[2]) && y[4] == (real)0.5 && y[8] == 0);
        k->unary(HEED__UNARY_SOFTPLUS, y, x, 9);
        assert_true(y[0] == 0 && y[1] == INFINITY && isnan(y[2]) && y[7] == 1000 && y[8] == 0);
    }
}

/* Catches: a wrong coefficient, a sign that the number of turns decides, a quarter turn too many.
 * */
static void sines_are_close_in_absolute_terms(void **state)
{
    (void)state;
    real x[CHUNK], y[CHUNK], z[CHUNK];
    uint64_t bits = 0;
    for (int n; (n = next_floats(&bits, x));) {
        for (int64_t i = 0; i < n; i += VW) {
            vstore_at(y, vsin(vload_at(x, i, n)), i, n);
            vstore_at(z, vcos(vload_at(x, i, n)), i, n);
        }
        for (int i = 0; i < n; i++) {
            if (fabs((double)x[i]) <= 1e3 && (fabs((double)y[i] - sin((double)x[i])) > 2e-7 ||
                                              fabs((double)z[i] - cos((double)x[i])) > 2e-7))
                fail_msg("sin and cos of %.9g are %.9g and %.9g", (double)x[i], (double)y[i],
                         (double)z[i]);
            if (isfinite(x[i]) && !(fabs((double)y[i]) < 1.1 && fabs((double)z[i]) < 1.1))
                fail_msg("sin and cos of %.9g are %.9g and %.9g", (double)x[i], (double)y[i],
                         (double)z[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_within_the_stated_ulp),
        cmocka_unit_test(expm1_and_log1p_keep_small_arguments),
        cmocka_unit_test(sines_are_close_in_absolute_terms),
        cmocka_unit_test(the_ends_of_the_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
