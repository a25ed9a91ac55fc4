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

enum { MOST_HEADS = 6, MOST_KEYS = 40, MOST_ROW = 3 * 101, MOST_CELL = 3 * 133 };

/* Keys with their values that follow each other in no order, with gaps. */
static void scatter(const heed_real **row, heed_real *room, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = room + (i * 17 % MOST_KEYS) * (MOST_CELL + 5);
}

/* By the book, in double. */
static void check_attention(const heed_kernels *kernels, const heed_real *out,
                            const heed_real *probabilities, const heed_real *q,
                            const heed__attend_form *f, const heed__attend_keys *k)
{
    const int64_t n = k->n;
    for (int64_t h = 0; h < f->heads; h++) {
        const int64_t kv = h / (f->heads / f->kv_heads);
        double e[MOST_KEYS], sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double score = 0;
            for (int64_t j = 0; j < f->d_k; j++)
                score += (double)q[h * f->d_k + j] * (double)k->key[i][kv * f->d_k + j];
            score *= (double)f->scale;
            if (f->slope)
                score -= (double)f->slope[h] * (double)k->distance[i];
            if (f->bias && k->column[i] >= 0)
                score += (double)f->bias[h * f->columns + k->column[i]];
            sum += e[i] = exp(score);
        }
        sum = sum > 0 ? sum : 1; /* all are forbidden: zeros */
        for (int64_t i = 0; i < n; i++)
            expect(kernels->isa, i, (double)probabilities[h * n + i], e[i] / sum);
        for (int64_t j = 0; j < f->d_v; j++) {
            double mixed = 0;
            for (int64_t i = 0; i < n; i++)
                mixed += e[i] / sum * (double)k->key[i][f->value + kv * f->d_v + j];
            expect(kernels->isa, h * f->d_v + j, (double)out[h * f->d_v + j], mixed);
        }
    }
}

static void attend_and_check(const heed_kernels *kernels, const heed_real *q,
                             const heed__attend_form *f, const heed__attend_keys *k)
{
    heed_real out[MOST_ROW + 1], probabilities[MOST_HEADS * MOST_KEYS + 1];
    for (int64_t i = 0; i <= MOST_ROW; i++)
        out[i] = GUARD;
    probabilities[f->heads * k->n] = GUARD;
    kernels->attend_row(out, probabilities, q, f, k);
    check_attention(kernels, out, probabilities, q, f, k);
    assert_true(out[f->heads * f->d_v] == GUARD && probabilities[f->heads * k->n] == GUARD);
}

/* Catches a head, key or tail that is left out or read from elsewhere, probabilities of the wrong
 * shape, and anything but zeros where there is nothing to attend to. */
static void one_query(void **state)
{
    (void)state;
    static const int64_t depths[][2] = {{64, 64}, {1, 3}, {8, 70}, {70, 8}, {20, 33}, {32, 101}};
    static heed_real cells[MOST_KEYS * (MOST_CELL + 5)];
    heed_real q[MOST_ROW];
    const heed_real *key[MOST_KEYS];
    const heed_kernels *k;
    fill(cells, MOST_KEYS * (MOST_CELL + 5), 0.3);
    fill(q, MOST_ROW, 0.8);
    scatter(key, cells, MOST_KEYS);
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int at = 0; at < 6; at++)
            for (int64_t n = 0; n <= MOST_KEYS; n++) {
                const int64_t heads = 1 + n % 3, d_k = depths[at][0], d_v = depths[at][1];
                const heed__attend_form f = {.heads = heads,
                                             .kv_heads = heads,
                                             .d_k = d_k,
                                             .d_v = d_v,
                                             .value = heads * d_k,
                                             .scale = (heed_real)0.37};
                attend_and_check(
                    k, q, &f,
                    &(heed__attend_keys){.key = key, .n = n, .next = key, .next_n = n / 2});
            }
}

/* Catches a head that meets another group's key or value, a slope or bias of another head, distance
 * or column, a bias on a key that has none, and NaN where all keys are forbidden. */
static void grouped_heads_and_distances(void **state)
{
    (void)state;
    static const int64_t groups[][2] = {{6, 6}, {6, 3}, {6, 2}, {6, 1}, {4, 2}, {1, 1}};
    static heed_real cells[MOST_KEYS * (MOST_CELL + 5)];
    enum { COLUMNS = 11 };
    heed_real q[MOST_ROW], slope[MOST_HEADS], bias[MOST_HEADS * COLUMNS], distance[MOST_KEYS];
    int32_t column[MOST_KEYS];
    const heed_real *key[MOST_KEYS];
    const heed_kernels *k;
    fill(cells, MOST_KEYS * (MOST_CELL + 5), 0.3);
    fill(q, MOST_ROW, 0.8);
    fill(slope, MOST_HEADS, 0.1);
    fill(bias, MOST_HEADS * COLUMNS, 1.5);
    bias[3] = bias[4 * COLUMNS + 5] = -(heed_real)INFINITY;
    scatter(key, cells, MOST_KEYS);
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int at = 0; at < 6; at++)
            for (int64_t n = 1; n <= MOST_KEYS; n++)
                for (int with = 0; with < 4; with++) {
                    const heed__attend_form f = {.heads = groups[at][0],
                                                 .kv_heads = groups[at][1],
                                                 .d_k = 9,
                                                 .d_v = 17,
                                                 .value = groups[at][1] * 9 + 3,
                                                 .scale = (heed_real)-0.41,
                                                 .slope = with & 1 ? slope : NULL,
                                                 .bias = with & 2 ? bias : NULL,
                                                 .columns = COLUMNS};
                    for (int64_t i = 0; i < n; i++) {
                        distance[i] = (heed_real)(n - 1 - i);
                        column[i] = i % 7 == 2 ? -1 : (int32_t)(i * 3 % COLUMNS);
                        if (n == 5)
                            column[i] = 3; /* forbidden in the first head */
                    }
                    attend_and_check(
                        k, q, &f,
                        &(heed__attend_keys){
                            .key = key, .n = n, .distance = distance, .column = column});
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
        cmocka_unit_test(grouped_heads_and_distances),
        cmocka_unit_test(parts_of_log_sum_exp),
    };
    return cmocka_run_group_tests_name("attend row", tests, NULL, NULL);
}
