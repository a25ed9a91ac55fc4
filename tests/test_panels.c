/* test_panels.c: weights into panels and back, rows to bytes. */
#include "kernel/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "panel_numbers.h"

/* ---- packing ---- */

/* Catches a wrong address, a stride that is mixed up, padding that is not zero. */
static void packs_numbers(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {3, 16}, {5, 17}, {9, 33}, {8, 15}};
    for (int s = 0; s < 5; s++)
        for (int turned = 0; turned < 2; turned++) {
            const int64_t k = shapes[s][0], n = shapes[s][1];
            const int64_t row = turned ? 1 : n + 2, col = turned ? k + 1 : 1;
            heed_real *w = numbers((k + 2) * (n + 2), 5);
            int64_t count = heed__panel_reals(k, n);
            assert_int_equal(count, heed__panels(n) * 16 * k);
            heed_real *panels = numbers(count + 1, 6);
            panels[count] = GUARD;
            heed__panel_pack(panels, w, row, col, k, n);
            for (int64_t i = 0; i < k; i++)
                for (int64_t j = 0; j < heed__panels(n) * 16; j++)
                    assert_true(panels[(j / 16 * k + i) * 16 + j % 16] ==
                                (j < n ? w[i * row + j * col] : 0));
            assert_true(panels[count] == GUARD);
            free(panels);
            free(w);
        }
}

/* The most that weights of one sign add up to in a set of eight rows that meet: of 16 rows those
 * where k mod 4 is 0 or 1, or the others. */
static double most_that_meet(const double *column, int64_t k)
{
    double most = 0;
    for (int64_t set = 0; set < 2 * ((k + 15) / 16); set++) {
        double above = 0, below = 0;
        for (int64_t i = set / 2 * 16; i < set / 2 * 16 + 16 && i < k; i++)
            if (i % 4 / 2 == set % 2)
                *(column[i] > 0 ? &above : &below) += column[i];
        most = fmax(most, fmax(above, -below));
    }
    return most;
}

/* Catches a scale that is not the column's, or coarser than it need be, bytes out of range or not
 * the nearest, eight that add up to more than 16 bits hold, a sum that does not belong to its
 * column, and a step into undefined conversions. */
static void packs_bytes(void **state)
{
    (void)state;
    enum { K = 45, N = 35, ROUND = 48, G = 12 };
    heed_real *w = numbers(K * N, 7), turned[N * K];
    int8_t panels[ROUND * 4 * G + 1], again[ROUND * 4 * G];
    float scale[ROUND + 1];
    int32_t sum[ROUND + 1];
    int alone = 0, together = 0;
    for (int64_t i = 0; i < K; i++) {
        w[i * N + 2] = 0;
        w[i * N + 3] *= (heed_real)1e-3;
        w[i * N + 4] = 1;                  /* eight of 32 */
        for (int64_t j = 5; j < N; j += 2) /* few are large: the largest decides alone */
            w[i * N + j] = (heed_real)pow((double)w[i * N + j], 5);
    }
    memset(panels, 99, sizeof panels);
    scale[ROUND] = 99;
    sum[ROUND] = 99;
    assert_int_equal(heed__panel_groups(K), G);
    assert_int_equal(heed__panel_bytes(K, N), ROUND * 4 * G);
    heed__panel_pack_int8(panels, scale, sum, w, N, 1, K, N);
    for (int64_t j = 0; j < ROUND; j++) {
        double most = 0, column[4 * G] = {0}, bytes[4 * G];
        int total = 0;
        for (int64_t i = 0; i < K && j < N; i++) {
            column[i] = (double)w[i * N + j];
            most = fmax(most, fabs(column[i]));
        }
        /* Eight that are rounded may add up to 4 more: nothing is to be changed where they then
         * fit, and where they do not, the scale is too large by 4 of 255 at most. */
        const double least = most / 127, met = most_that_meet(column, K);
        if (met <= (258 - 4) * least) {
            assert_true(fabs((double)scale[j] - least) <= 1e-7 * least);
            alone += j < N;
        } else {
            assert_true((double)scale[j] >= (1 - 1e-7) * least);
            assert_true((double)scale[j] <= (1 + 4. / 255 + 1e-7) * fmax(least, met / 258));
            together++;
        }
        for (int64_t i = 0; i < 4 * G; i++) {
            bytes[i] = panels[((j / 16 * G + i / 4) * 16 + j % 16) * 4 + i % 4];
            total += (int)bytes[i];
            assert_true(fabs(bytes[i]) <= 127);
            assert_true(fabs((double)scale[j] * bytes[i] - column[i]) <= 0.5001 * (double)scale[j]);
        }
        assert_true(most_that_meet(bytes, 4 * G) <= 258);
        assert_int_equal(sum[j], total);
    }
    assert_true(alone > 2 && together > 2); /* else this proves nothing */
    assert_true(panels[ROUND * 4 * G] == 99 && scale[ROUND] == 99 && sum[ROUND] == 99);
    /* The other stride gives the same; what is not a number goes somewhere inside. */
    for (int64_t i = 0; i < K * N; i++)
        turned[i % N * K + i / N] = w[i];
    heed__panel_pack_int8(again, scale, sum, turned, 1, K, K, N);
    assert_memory_equal(again, panels, sizeof again);
    turned[5] = (heed_real)NAN;
    turned[K + 1] = (heed_real)INFINITY;
    for (int64_t i = 0; i < K; i++) {
        turned[2 * K + i] = (heed_real)INFINITY;
        turned[3 * K + i] = (heed_real)4e-45; /* an inverse would be too large */
    }
    heed__panel_pack_int8(again, scale, sum, turned, 1, K, K, N);
    for (int64_t j = 0; j < ROUND; j++) {
        double bytes[4 * G];
        for (int64_t i = 0; i < 4 * G; i++)
            bytes[i] = again[((j / 16 * G + i / 4) * 16 + j % 16) * 4 + i % 4];
        assert_true(most_that_meet(bytes, 4 * G) <= 258);
    }
    free(w);
}

/* ---- rows to bytes, columns to numbers ---- */

/* Catches a byte that is not the nearest, bounds that miss a tail or take in what lies behind it, a
 * step of zero that divides, a row that changes another. */
static void rows_become_bytes(void **state)
{
    (void)state;
    enum { M = 5, MOST = 150, LD = MOST + 3 };
    const heed_kernels *ks;
    heed_real *a = numbers(M * LD, 1);
    uint8_t bytes[M * (MOST + 16) + 1], alone[MOST + 16];
    float step[M], low[M], one_step, one_low;
    const heed__panel_rows rows = {bytes, step, low}, single = {alone, &one_step, &one_low};
    for (int64_t i = 0; i < LD; i++) {
        a[LD + i] = 3;                          /* a constant row */
        a[2 * LD + i] = (heed_real)(5 + i % 2); /* 0 is far outside */
    }
    for (int set = 0; (ks = heed__kernels_at(set)); set++)
        for (int64_t k = 1; k <= MOST; k++) {
            const int64_t size = 4 * heed__panel_groups(k);
            a[3 * LD + k] = 1000; /* behind the end */
            memset(bytes, 99, sizeof bytes);
            ks->panel_quantise(&rows, a, LD, M, k);
            for (int64_t i = 0; i < M; i++) {
                const heed_real *x = a + i * LD;
                double least = INFINITY, most = -INFINITY;
                for (int64_t j = 0; j < k; j++) {
                    least = fmin(least, (double)x[j]);
                    most = fmax(most, (double)x[j]);
                }
                assert_true((double)low[i] == (double)(float)least);
                assert_true(fabs((double)step[i] - (most - least) / 127) <= 1e-6 * (most - least));
                for (int64_t j = 0; j < size; j++) {
                    int byte = bytes[i * size + j];
                    double back = (double)low[i] + (double)step[i] * byte;
                    assert_true(j < k ? byte <= 127 : byte == 0);
                    if (j < k && !(fabs(back - (double)x[j]) <= 0.5001 * (double)step[i] + 1e-6))
                        fail_msg("%s: %d of row %d of %d is %g, came back as %g", ks->isa, (int)j,
                                 (int)i, (int)k, (double)x[j], back);
                }
                ks->panel_quantise(&single, x, LD, 1, k);
                assert_memory_equal(alone, bytes + i * size, (size_t)size);
                assert_true(one_step == step[i] && one_low == low[i]);
            }
            assert_int_equal(bytes[M * size], 99);
            a[3 * LD + k] = 0;
        }
    free(a);
}

/* Catches bytes out of range, which would saturate, and undefined conversions, when a row holds
 * what is not a number; and a good row beside it that is changed. */
static void rows_of_no_numbers(void **state)
{
    (void)state;
    enum { K = 45, SIZE = 48 };
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e-40, 3e38};
    const heed_kernels *ks;
    for (int set = 0; (ks = heed__kernels_at(set)); set++)
        for (int kind = 0; kind < 5; kind++)
            for (int64_t where = 0; where < K; where += 11) {
                heed_real *a = numbers(2 * K, 1);
                uint8_t bytes[2 * SIZE], good[SIZE];
                float step[2], low[2];
                ks->panel_quantise(&(heed__panel_rows){good, step, low}, a + K, K, 1, K);
                a[where] = (heed_real)odd[kind];
                for (int64_t i = 0; kind == 3 && i < K; i++)
                    a[i] = i == where ? (heed_real)odd[kind] : 0;
                ks->panel_quantise(&(heed__panel_rows){bytes, step, low}, a, K, 2, K);
                for (int64_t i = 0; i < K; i++)
                    assert_true(bytes[i] <= 127);
                assert_memory_equal(bytes + SIZE, good, SIZE);
                free(a);
            }
}

/* Catches a byte of a row with a multiplier that is not the nearest or leaves 0..254, what is not
 * finite and becomes a number, and products of weights and rows that are as large as can be. */
static void rows_with_a_multiplier(void **state)
{
    (void)state;
    enum { M = 3, K = 75, SIZE = 80, N = 21 };
    static int8_t most[K * N];
    const float multiplier = 40.5f;
    const heed_kernels *ks;
    heed_real *a = numbers(M * K, 1);
    uint8_t bytes[M * SIZE];
    float step[M], low[M], scale[32];
    int32_t sum[32];
    int8_t *panels = room(heed__panel_bytes(K, N));
    const heed__panel_rows rows = {bytes, step, low};
    memset(most, 127, sizeof most);
    for (int64_t i = 0; i < K; i++)
        a[K + i] = 1e6f; /* clipped */
    for (int set = 0; (ks = heed__kernels_at(set)); set++) {
        a[2 * K + 7] = (heed_real)NAN;
        ks->panel_quantise_fixed(&rows, a, K, M, K, multiplier);
        for (int64_t i = 0; i < 2; i++)
            for (int64_t j = 0; j < SIZE; j++) {
                const double x = j < K ? (double)a[i * K + j] * (double)multiplier : 0;
                const double byte = bytes[i * SIZE + j] - 127.0;
                assert_true(j >= K ? byte + 127 == 0
                                   : fabs(byte - fmax(-127, fmin(127, x))) <= 0.5001);
            }
        assert_true(isnan(step[2]) && !isnan(step[0]));
        heed__panel_weights w = {.k = K, .n = N, .bits = 8, .multiplier = multiplier};
        assert_int_equal(
            heed__panel_keep_int8(panels, scale, sum, most, N, 1, K, N, 0.5f, heed__panel_most(&w)),
            N);
        w.bytes = panels;
        w.scale = scale;
        w.sum = sum;
        w.wide = true;
        heed_real c[M * N];
        ks->panel_product(c, N, a, K, &rows, M, &w, 0, heed__panels(N));
        const double whole = 127.0 * 127 * K * 0.5 / (double)multiplier;
        for (int64_t j = 0; j < N; j++) {
            assert_true(fabs((double)c[N + j] - whole) <= 1e-5 * whole);
            assert_true(isnan((double)c[2 * N + j]));
        }
    }
    free(panels);
    free(a);
}

/* Catches a column that is read from the wrong panel or group, and a factor that is left out. */
static void columns_come_back(void **state)
{
    (void)state;
    enum { K = 29, N = 37 };
    const heed_kernels *ks;
    heed_real *w = numbers(K * N, 1), *panels = numbers(heed__panel_reals(K, N), 2), out[K + 1];
    int8_t *bytes = room(heed__panel_bytes(K, N));
    float scale[48];
    int32_t sum[48];
    for (int bits = 0; bits <= 8; bits += 8) {
        heed__panel_weights x = {
            .k = K, .n = N, .bits = bits, .real = panels, .bytes = bytes, .scale = scale};
        if (bits)
            heed__panel_pack_int8(bytes, scale, sum, w, N, 1, K, N);
        else
            heed__panel_pack(panels, w, N, 1, K, N);
        for (int set = 0; (ks = heed__kernels_at(set)); set++)
            for (int64_t j = 0; j < N; j++) {
                double error = bits ? 0.501 * (double)scale[j] : 0;
                out[K] = GUARD;
                ks->panel_column(out, &x, j, (heed_real)4);
                for (int64_t i = 0; i < K; i++)
                    assert_true(fabs((double)out[i] / 4 - (double)w[i * N + j]) <= error);
                assert_true(out[K] == GUARD);
            }
    }
    free(bytes);
    free(panels);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_numbers),          cmocka_unit_test(packs_bytes),
        cmocka_unit_test(rows_become_bytes),      cmocka_unit_test(rows_of_no_numbers),
        cmocka_unit_test(rows_with_a_multiplier), cmocka_unit_test(columns_come_back),
    };
    return cmocka_run_group_tests_name("panels", tests, NULL, NULL);
}
