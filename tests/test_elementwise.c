/* Elementwise and reduction kernels against naive loops in double, for every instruction set and
 * sizes from 1 to several registers and a tail. */
#include "kernel/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef heed_real real;

#define MOST 75 /* longest row: more than two rounds of four AVX2 registers of float */
#define GUARD 8 /* numbers behind a row that nobody may touch */
#define UNTOUCHED ((real)-77.5)
#define ROWS 5
/* A few roundings of float; sums of MOST numbers of size 1. */
#define NEAR 2e-5

static real a[ROWS * MOST], b[ROWS * MOST], c[ROWS * MOST]; /* inputs */

static void fill(void)
{
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    for (int i = 0; i < ROWS * MOST; i++) {
        a[i] = (real)(3 * heed_rng_normal(&rng, (uint64_t)(3 * i)));
        b[i] = (real)(0.5 + heed_rng_uniform(&rng, (uint64_t)(3 * i + 1)));
        c[i] = (real)heed_rng_normal(&rng, (uint64_t)(3 * i + 2));
    }
}

static void start(real *y, const real *from, int n)
{
    memcpy(y, from, (size_t)n * sizeof *y);
    for (int i = n; i < n + GUARD; i++)
        y[i] = UNTOUCHED;
}

static void near(const char *what, const char *isa, int n, int i, real found, double expected)
{
    if (!(fabs((double)found - expected) <= NEAR * (1 + fabs(expected))))
        fail_msg("%s, set %s, n = %d: element %d is %.9g, expected %.9g", what, isa, n, i,
                 (double)found, expected);
}

static void untouched(const char *what, const char *isa, const real *y, int n)
{
    for (int i = n; i < n + GUARD; i++)
        if (y[i] != UNTOUCHED)
            fail_msg("%s, set %s, n = %d: wrote behind the end", what, isa, n);
}

/* ---- functions ---- */

static double f(int kind, double x)
{
    switch ((heed__unary_kind)kind) {
    case HEED__UNARY_IDENTITY:
        return x;
    case HEED__UNARY_RELU:
        return x > 0 ? x : 0;
    case HEED__UNARY_GELU:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case HEED__UNARY_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case HEED__UNARY_SILU:
        return x / (1 + exp(-x));
    case HEED__UNARY_TANH:
        return tanh(x);
    case HEED__UNARY_SIGMOID:
        return 1 / (1 + exp(-x));
    case HEED__UNARY_SOFTPLUS:
        return log1p(exp(x));
    case HEED__UNARY_ABS:
        return fabs(x);
    case HEED__UNARY_EXP:
        return exp(x);
    case HEED__UNARY_LOG:
        return log(x);
    case HEED__UNARY_SQRT:
        return sqrt(x);
    case HEED__UNARY_SQUARE:
        return x * x;
    case HEED__UNARY_ERF:
        return erf(x);
    }
    return NAN;
}

static const struct {
    int kind;
    const char *name;
} kinds[] = {
#define ROW(name, needs_x) {HEED__UNARY_##name, #name},
    HEED__UNARY_LIST(ROW)
#undef ROW
};
#define KINDS ((int)(sizeof kinds / sizeof *kinds))

/* Catches: a wrong function or derivative, a tail that reads or writes beyond the row, a derivative
 * that reads what it says it does not need, assignment instead of addition. */
static void functions_and_derivatives(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int i = 0; i < KINDS; i++)
            for (int n = 1; n <= MOST; n += n < 20 ? 1 : 11) {
                int kind = kinds[i].kind;
                bool positive = kind == HEED__UNARY_LOG || kind == HEED__UNARY_SQRT;
                const real *x = positive ? b : a;
                real y[MOST + GUARD], dx[MOST + GUARD];
                start(y, x, n);
                k->unary(kind, y, y, n); /* in place */
                for (int j = 0; j < n; j++)
                    near(kinds[i].name, k->isa, n, j, y[j], f(kind, (double)x[j]));
                untouched(kinds[i].name, k->isa, y, n);
                start(dx, b, n);
                bool needs_x = heed__unary_needs_x(kind);
                k->unary_grad(kind, dx, c, needs_x ? x : NULL, needs_x ? NULL : y, n);
                for (int j = 0; j < n; j++) {
                    double h = 1e-6, v = (double)x[j];
                    double slope = (f(kind, v + h) - f(kind, v - h)) / (2 * h);
                    near(kinds[i].name, k->isa, n, j, dx[j], (double)b[j] + (double)c[j] * slope);
                }
                untouched(kinds[i].name, k->isa, dx, n);
            }
}

/* Catches: a number that comes out differently in the tail than in the middle of a row. */
static void a_value_does_not_depend_on_its_place(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int i = 0; i < KINDS; i++) {
            real whole[MOST], alone[1];
            k->unary(kinds[i].kind, whole, b, MOST);
            for (int j = 0; j < MOST; j++) {
                k->unary(kinds[i].kind, alone, b + j, 1);
                if (memcmp(alone, whole + j, sizeof *alone) != 0)
                    fail_msg("%s, set %s: element %d", kinds[i].name, k->isa, j);
            }
        }
}

/* Catches: gelu's and silu's derivatives overflowing far out; relu and clamp swallowing NaN. */
static void far_arguments(void **state)
{
    (void)state;
    const heed_kernels *k;
    const real x[] = {(real)1e20, (real)-1e20, NAN};
    const real one[] = {1, 1, 1};
    static const int flat[] = {HEED__UNARY_GELU, HEED__UNARY_GELU_TANH, HEED__UNARY_SILU};
    for (int set = 0; (k = heed__kernels_at(set)); set++) {
        real y[3];
        for (int i = 0; i < 3; i++) {
            real dx[3] = {0};
            k->unary(flat[i], y, x, 3);
            assert_true(y[0] == x[0] && y[1] == 0 && isnan(y[2]));
            k->unary_grad(flat[i], dx, one, x, y, 3);
            assert_true(dx[0] == 1 && dx[1] == 0 && isnan(dx[2]));
        }
        k->unary(HEED__UNARY_RELU, y, x, 3);
        assert_true(isnan(y[2]));
        k->clamp(y, x, -1, 2, 3);
        assert_true(y[0] == 2 && y[1] == -1 && isnan(y[2]));
    }
}

/* ---- arithmetic ---- */

static double op(int kind, double p, double q)
{
    return kind == HEED__ADD   ? p + q
           : kind == HEED__SUB ? p - q
           : kind == HEED__MUL ? p * q
                               : p / q;
}

/* Catches: an operation mixed up, a tail that writes beyond the row. */
static void arithmetic(void **state)
{
    (void)state;
    const heed_kernels *k;
#define CHECK(name, call, expected)                                                                \
    do {                                                                                           \
        start(y, a, n);                                                                            \
        call;                                                                                      \
        for (int i = 0; i < n; i++) {                                                              \
            double A = (double)a[i], B = (double)b[i], C = (double)c[i];                           \
            (void)A, (void)B, (void)C;                                                             \
            near(name, k->isa, n, i, y[i], expected);                                              \
        }                                                                                          \
        untouched(name, k->isa, y, n);                                                             \
    } while (0)
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int n = 1; n <= MOST; n += n < 20 ? 1 : 11) {
            real y[MOST + GUARD];
            for (int kind = HEED__ADD; kind <= HEED__DIV; kind++) {
                CHECK("arith", k->arith(kind, y, a, b, n), op(kind, A, B));
                CHECK("arith_one", k->arith_one(kind, y, a, (real)1.25, n), op(kind, A, 1.25));
            }
            CHECK("affine", k->affine(y, b, (real)-1.5, (real)0.25, n), -1.5 * B + 0.25);
            CHECK("clamp", k->clamp(y, a, -1, (real)0.5, n), fmin(fmax(A, -1), 0.5));
            CHECK("clamp_grad", k->clamp_grad(y, c, b, (real)0.75, 1, n),
                  A + (B >= 0.75 && B <= 1 ? C : 0));
            CHECK("accumulate", k->accumulate(y, b, -2, n), A - 2 * B);
            CHECK("increase", k->increase(y, (real)0.5, n), A + 0.5);
            CHECK("multiply_add", k->multiply_add(y, b, c, n), A + B * C);
            CHECK("divide_add", k->divide_add(y, c, b, n), A + C / B);
            CHECK("divide_grad", k->divide_grad(y, c, a, b, n), A - C * A / B);
        }
#undef CHECK
}

/* ---- reductions ---- */

/* Catches: a lane lost or counted twice, padding seen as a number, the last of equal maxima. */
static void rows_to_one_number(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int n = 1; n <= MOST; n++) {
            double sum = 0, dot = 0, most = -INFINITY, exps = 0;
            int where = 0;
            real x[MOST + GUARD];
            start(x, a, n);
            for (int i = 0; i < n; i++) {
                x[i] -= 20; /* zeros behind the row would be the largest */
                sum += (double)x[i];
                dot += (double)x[i] * (double)c[i];
                if ((double)x[i] > most) {
                    most = (double)x[i];
                    where = i;
                }
            }
            for (int i = 0; i < n; i++)
                exps += exp((double)x[i] - most);
            int32_t index = -1;
            near("row_sum", k->isa, n, 0, k->row_sum(x, n), sum);
            near("row_dot", k->isa, n, 0, k->row_dot(x, c, n), dot);
            assert_true((double)k->row_max(x, n, &index) == most);
            assert_int_equal(index, where);
            x[n - 1] = (real)most; /* a second one, if it was not the last */
            k->row_max(x, n, &index);
            assert_int_equal(index, where);
            x[n - 1] = a[n - 1] - 20;
            real y = k->row_logsumexp(x, n), dx[MOST + GUARD];
            near("row_logsumexp", k->isa, n, 0, y, most + log(exps));
            start(dx, c, n);
            k->row_exp_grad(dx, x, y, 2, n);
            for (int i = 0; i < n; i++)
                near("row_exp_grad", k->isa, n, i, dx[i],
                     (double)c[i] + 2 * exp((double)x[i] - (double)y));
            untouched("row_exp_grad", k->isa, dx, n);
        }
}

/* Catches: rows mixed up, a leading dimension ignored, a masked column that gives NaN. */
static void columns_to_one_row(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int n = 1; n < MOST; n += n < 20 ? 1 : 13) {
            real x[ROWS * MOST], y[MOST + GUARD], soft[ROWS * MOST], dx[ROWS * MOST];
            int32_t index[MOST];
            memcpy(x, a, sizeof x);
            for (int r = 0; r < ROWS; r++)
                x[r * MOST + n / 2] = -INFINITY;
            start(y, c, n);
            k->column_max(y, index, x, MOST, ROWS, n);
            untouched("column_max", k->isa, y, n);
            for (int i = 0; i < n; i++) {
                int best = 0;
                for (int r = 1; r < ROWS; r++)
                    best = x[r * MOST + i] > x[best * MOST + i] ? r : best;
                assert_int_equal(index[i], best);
                assert_true(y[i] == x[best * MOST + i]);
            }
            start(y, c, n);
            k->column_sum(y, b, MOST, ROWS, n);
            untouched("column_sum", k->isa, y, n);
            for (int i = 0; i < n; i++) {
                double sum = 0;
                for (int r = 0; r < ROWS; r++)
                    sum += (double)b[r * MOST + i];
                near("column_sum", k->isa, n, i, y[i], sum);
            }
            start(y, c, n);
            k->column_logsumexp(y, x, MOST, ROWS, n);
            untouched("column_logsumexp", k->isa, y, n);
            k->column_softmax(soft, MOST, x, MOST, ROWS, n);
            memset(dx, 0, sizeof dx);
            k->column_exp_grad(dx, x, MOST, y, c, ROWS, n);
            for (int i = 0; i < n; i++) {
                double sum = 0, dot = 0;
                for (int r = 0; r < ROWS; r++)
                    sum += exp((double)x[r * MOST + i]);
                if (i == n / 2)
                    assert_true(y[i] == -INFINITY);
                else
                    near("column_logsumexp", k->isa, n, i, y[i], log(sum));
                for (int r = 0; r < ROWS; r++) {
                    double p = i == n / 2 ? 0 : exp((double)x[r * MOST + i]) / sum;
                    near("column_softmax", k->isa, n, i, soft[r * MOST + i], p);
                    near("column_exp_grad", k->isa, n, i, dx[r * MOST + i], (double)c[i] * p);
                    dot += p * (double)c[r * MOST + i];
                }
                real column[ROWS] = {0};
                k->column_softmax_grad(column, 1, c + i, soft + i, MOST, ROWS, 1);
                for (int r = 0; r < ROWS; r++)
                    near("column_softmax_grad", k->isa, n, i, column[r],
                         (double)soft[r * MOST + i] * ((double)c[r * MOST + i] - dot));
            }
        }
}

static int setup(void **state)
{
    (void)state;
    fill();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_and_derivatives),
        cmocka_unit_test(a_value_does_not_depend_on_its_place),
        cmocka_unit_test(far_arguments),
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(rows_to_one_number),
        cmocka_unit_test(columns_to_one_row),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
