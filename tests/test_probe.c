/* test_probe.c: the yardsticks of the benchmarks do what they are timed for, in every set. */
#include "kernel/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef heed_real real;

/* Catches a triad or a sum that skips or doubles elements at the end of an odd size. */
static void test_triad_and_read(void **state)
{
    (void)state;
    enum { N = 203 };
    real a[N + 1], b[N], c[N];
    for (int i = 0; i < N; i++) {
        b[i] = (real)(i % 13);
        c[i] = (real)(i % 7 - 3);
    }
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int n = 0; n <= N; n++) {
            real sum = 0; /* small whole numbers: exact in any order */
            for (int i = 0; i <= N; i++)
                a[i] = -77;
            k->probe_triad(a, b, c, (real)0.5, n);
            for (int i = 0; i < n; i++) {
                assert_true(a[i] == b[i] + (real)0.5 * c[i]);
                sum += b[i];
            }
            assert_true(a[n] == -77);
            assert_true(k->probe_read(b, n) == sum);
        }
}

/* Catches a peak counted from operations that were not done: every chain must have gone `rounds`
 * steps of x -> m x + c. */
static void test_fma_does_its_rounds(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++) {
        enum { ROUNDS = 5 };
        real sink[3] = {(real)0.5, (real)0.25, 0};
        double operations = k->probe_fma(sink, ROUNDS), lanes = operations / (2 * ROUNDS);
        /* x_5 = x_0 / 32 + 0.5 (1 - 1/32); chain j starts with 1 + j in each of its lanes. */
        double chains = 12, width = lanes / chains;
        double expected = width * (chains * (chains + 1) / 2 / 32 + chains * 0.5 * 31 / 32);
        assert_true(width == 2 || width == 4 || width == 8 || width == 16);
        assert_true(fabs((double)sink[2] - expected) <= 1e-4 * expected);
    }
}

/* Catches the same of the bytes: each multiply-add that was counted has added a b. */
static void test_int8_does_its_rounds(void **state)
{
    (void)state;
    static const int32_t operands[][2] = {{1, 1}, {127, -127}, {127, 127}, {3, -5}};
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int at = 0; at < 4; at++) {
            int32_t sink[3] = {operands[at][0], operands[at][1], 0};
            double operations = k->probe_int8(sink, 7);
            assert_true(operations >= 2 * 7 * 16);
            assert_true(operations / 2 * operands[at][0] * operands[at][1] == sink[2]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_triad_and_read),
        cmocka_unit_test(test_fma_does_its_rounds),
        cmocka_unit_test(test_int8_does_its_rounds),
    };
    return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
