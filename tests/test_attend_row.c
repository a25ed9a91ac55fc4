/* test_attend_row.c: attention of one query and parts of a log-sum-exp, in every instruction set.
 * */
#include "kernel/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-13
#else
#define CLOSE 3e-6 /* sums of up to 70 terms of size 1, and their exponentials */
#endif
#define GUARD ((heed_real)77)

#include "kernel_check.h"

enum { MOST_KEYS = 40, MOST_ROW = 3 * 101, MOST_CELL = 3 * 133 };

/* Keys with their values that follow each other in no order, with gaps. */
static void scatter(const heed_real **row, heed_real *room, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = room + (i * 17 % MOST_KEYS) * (MOST_CELL + 5);
}

static void check_attention(const heed_kernels *k, const heed_real *out, const heed_real *weights,
                            const heed_real *q, const heed_real *const *key, int64_t n,
                            int64_t heads, int64_t d_k, int64_t d_v)
{
    const double scale = 0.37;
    for (int64_t h = 0; h < heads; h++) {
        double e[MOST_KEYS], sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double dot = 0;
            for (int64_t j = 0; j < d_k; j++)
                dot += (double)q[h * d_k + j] * (double)key[i][h * d_k + j];
            sum += e[i] = exp(scale * dot);
        }
        for (int64_t i = 0; i < n; i++)
            expect(k->isa, i, (double)weights[h * n + i], e[i] / sum);
        for (int64_t j = 0; j < d_v; j++) {
            double mixed = 0;
            for (int64_t i = 0; i < n; i++)
                mixed += e[i] / sum * (double)key[i][heads * d_k + h * d_v + j];
            expect(k->isa, h * d_v + j, (double)out[h * d_v + j], mixed);
        }
    }
}

/* Catches a head, key or tail that is left out or read from elsewhere, weights of the wrong shape,
 * and anything but zeros where there is nothing to attend to. */
static void one_query(void **state)
{
    (void)state;
    static const int64_t depths[][2] = {{64, 64}, {1, 3}, {8, 70}, {70, 8}, {20, 33}, {32, 101}};
    static heed_real cells[MOST_KEYS * (MOST_CELL + 5)];
    heed_real q[MOST_ROW], out[MOST_ROW + 1], weights[3 * MOST_KEYS + 1];
    const heed_real *key[MOST_KEYS];
    const heed_kernels *k;
    fill(cells, MOST_KEYS * (MOST_CELL + 5), 0.3);
    fill(q, MOST_ROW, 0.8);
    scatter(key, cells, MOST_KEYS);
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int at = 0; at < 6; at++)
            for (int64_t n = 0; n <= MOST_KEYS; n++) {
                const int64_t heads = 1 + n % 3, d_k = depths[at][0], d_v = depths[at][1];
                for (int64_t i = 0; i <= MOST_ROW; i++)
                    out[i] = GUARD;
                weights[heads * n] = GUARD;
                k->attend_row(out, weights, q, key, n, key, n / 2, heads, d_k, d_v,
                              (heed_real)0.37);
                check_attention(k, out, weights, q, key, n, heads, d_k, d_v);
                assert_true(out[heads * d_v] == GUARD && weights[heads * n] == GUARD);
            }
}

/* Catches numbers behind the end that are counted, NaN from a chunk of which nothing is possible,
 * and NaN that a largest number hides. */
static void parts_of_log_sum_exp(void **state)
{
    (void)state;
    heed_real x[HEED_LSE_CHUNK + 1], max, sum;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++) {
        for (int64_t n = 1; n <= HEED_LSE_CHUNK; n++) {
            double wanted = 0;
            fill(x, n, 0.1);
            x[n] = 1000;
            x[n / 3] = 30;
            x[n / 2] = (heed_real)-INFINITY;
            k->log_sum_exp_part(&max, &sum, x, n);
            double most = n / 3 == n / 2 ? -INFINITY : 30;
            for (int64_t i = 0; i < n; i++)
                most = fmax(most, (double)x[i]);
            assert_true((double)max == most);
            for (int64_t i = 0; i < n && most > -INFINITY; i++)
                wanted += exp((double)x[i] - most);
            expect("sum", n, (double)sum, wanted);
            k->log_sum_exp_part(&max, NULL, x, n);
            assert_true((double)max == most);
            heed_real kept = x[n / 4];
            x[n / 4] = (heed_real)NAN;
            k->log_sum_exp_part(&max, NULL, x, n);
            assert_true(isnan(max));
            x[n / 4] = kept;
        }
        x[0] = x[1] = (heed_real)-INFINITY;
        for (int64_t n = 0; n <= 2; n++) {
            k->log_sum_exp_part(&max, &sum, x, n);
            assert_true(max == -INFINITY && sum == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_query),
        cmocka_unit_test(parts_of_log_sum_exp),
    };
    return cmocka_run_group_tests_name("attend row", tests, NULL, NULL);
}
