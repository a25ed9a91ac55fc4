/* test_panel_product.c: products with packed weights, in every instruction set: whole numbers
 * against 64-bit sums, real ones by their bits. */
#include "kernel/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "panel_numbers.h"

#define CLOSE 2e-6 /* relative to the sizes that are added: a few roundings of a float */

#ifdef HEED_DOUBLE
#define FUSED fma
#else
#define FUSED fmaf
#endif

/* ---- products of bytes ---- */

typedef struct bytes_case {
    heed__panel_weights w;
    heed__panel_rows rows;
    int8_t *panels;
    float *scale;
    int32_t *sum;
    int64_t m, lda, ldc;
    heed_real *c;
} bytes_case;

/* Every operand as large as it may be, with the signs and gaps that make sums large in some places
 * and small in others. */
static int activation_of(int kind, int64_t i, int64_t k, unsigned *seed)
{
    return kind == 0 ? 127 : kind == 1 ? 127 * (int)((i + k) % 2) : (int)(next(seed) % 128);
}

/* Eight weights that meet, as large as they may be together: 258 on one side, or on both. */
static const int few_large[8] = {127, 127, 4}, all_alike[8] = {33, 33, 32, 32, 32, 32, 32, 32};
static const int both_sides[8] = {127, -127, 127, -127, 4, -4};

/* Rows of 16 whose k mod 4 is 0 or 1 meet, and the others: which one of its eight k is. */
static int place_of(int64_t k)
{
    return (int)(k % 16 / 4 * 2 + k % 2);
}

static int weight_of(int kind, int64_t k, int64_t j, unsigned *seed)
{
    const int64_t set = k / 16 * 2 + k % 4 / 2;
    const int *eight = (set + j) % 2 ? few_large : all_alike;
    const int size = eight[(place_of(k) + j + set) % 8];
    switch (kind) {
    case 0:
        return size;
    case 1:
        return -size;
    case 2: /* one set above, the next below */
        return set % 2 ? size : -size;
    case 3: /* where every other activation is 0, one side of them is left */
        return both_sides[place_of(k)];
    default:
        return next(seed) % 2 ? size : -size;
    }
}

static bytes_case bytes_new(int64_t m, int64_t n, int64_t k, int a_kind, int w_kind)
{
    const int64_t groups = heed__panel_groups(k), up = heed__panels(n) * 16;
    bytes_case x = {.m = m, .lda = 4 * groups, .ldc = n + 3};
    unsigned seed = (unsigned)(m + 100 * n + k);
    x.rows.bytes = room(m * x.lda);
    x.rows.step = room(m * (int64_t)sizeof *x.rows.step);
    x.rows.low = room(m * (int64_t)sizeof *x.rows.low);
    x.panels = room(heed__panel_bytes(k, n));
    x.scale = room(up * (int64_t)sizeof *x.scale);
    x.sum = room(up * (int64_t)sizeof *x.sum);
    x.c = room(m * x.ldc * (int64_t)sizeof *x.c);
    for (int64_t i = 0; i < m; i++) {
        x.rows.step[i] = 1;
        x.rows.low[i] = 0;
        for (int64_t p = 0; p < x.lda; p++)
            x.rows.bytes[i * x.lda + p] =
                p < k ? (uint8_t)activation_of(a_kind, i, p, &seed) : (uint8_t)0;
    }
    memset(x.panels, 0, (size_t)heed__panel_bytes(k, n));
    for (int64_t j = 0; j < up; j++) {
        x.scale[j] = 1;
        x.sum[j] = 0;
        for (int64_t p = 0; p < k && j < n; p++) {
            int byte = weight_of(w_kind, p, j, &seed);
            x.panels[((j / 16 * groups + p / 4) * 16 + j % 16) * 4 + p % 4] = (int8_t)byte;
            x.sum[j] += byte;
        }
    }
    x.w = (heed__panel_weights){
        .k = k, .n = n, .bits = 8, .bytes = x.panels, .scale = x.scale, .sum = x.sum};
    return x;
}

static void bytes_free(bytes_case *x)
{
    free(x->rows.bytes);
    free(x->rows.step);
    free(x->rows.low);
    free(x->panels);
    free(x->scale);
    free(x->sum);
    free(x->c);
}

static int64_t bytes_sum(const bytes_case *x, int64_t i, int64_t j)
{
    const int64_t groups = heed__panel_groups(x->w.k);
    int64_t sum = 0;
    for (int64_t p = 0; p < x->w.k; p++)
        sum += (int64_t)x->rows.bytes[i * x->lda + p] *
               x->panels[((j / 16 * groups + p / 4) * 16 + j % 16) * 4 + p % 4];
    return sum;
}

static void clear(heed_real *c, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        c[i] = GUARD;
}

static void check_exact(int64_t m, int64_t n, int64_t k, int a_kind, int w_kind)
{
    const heed_kernels *ks;
    bytes_case x = bytes_new(m, n, k, a_kind, w_kind);
    int64_t *sums = room(m * n * (int64_t)sizeof *sums);
    for (int64_t i = 0; i < m * n; i++)
        sums[i] = bytes_sum(&x, i / n, i % n);
    for (int set = 0; (ks = heed__kernels_at(set)); set++) {
        clear(x.c, m * x.ldc);
        ks->panel_product(x.c, x.ldc, NULL, 0, &x.rows, m, &x.w, 0, heed__panels(n));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < x.ldc; j++) {
                heed_real found = x.c[i * x.ldc + j];
                heed_real wanted = j < n ? (heed_real)sums[i * n + j] : GUARD;
                if (found != wanted)
                    fail_msg("%s %ldx%ldx%ld, operands %d %d: (%ld,%ld) is %.9g, expected %.9g",
                             ks->isa, (long)m, (long)k, (long)n, a_kind, w_kind, (long)i, (long)j,
                             (double)found, (double)wanted);
            }
    }
    free(sums);
    bytes_free(&x);
}

/* Catches any instruction that saturates or wraps, and any row, column or step that is left out: in
 * each set the sum is the 64-bit one, which is below 2^24 here, so that a float holds it.  Each way
 * to cut the rows meets all operands; one row meets four panels and fewer. */
static void bytes_are_exact(void **state)
{
    (void)state;
    static const int64_t depths[] = {1, 3, 7, 8, 9, 31, 64, 100, 515, 1024, 2050, 4096};
    static const int64_t heights[] = {1, 2, 3, 4, 5, 6, 7, 9, 13, 16, 31, 200};
    static const int64_t widths[] = {1, 15, 16, 17, 40, 33, 64};
    for (int at = 0; at < 12 * 3 * 5; at++)
        check_exact(heights[(at + at / 12) % 12], widths[at % 7], depths[at % 12], at / 12 % 3,
                    at / 36);
    for (int at = 0; at < 7 * 3 * 5; at++)
        for (int64_t k = 64; k <= 100; k += 36)
            for (int64_t n = 33; n <= 64; n += 31)
                check_exact(heights[at % 7], n, k, at / 7 % 3, at / 21);
}

static double activate(int kind, double x)
{
    switch (kind) {
    case HEED__UNARY_RELU:
        return fmax(x, 0);
    case HEED__UNARY_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case HEED__UNARY_TANH:
        return tanh(x);
    default:
        return x;
    }
}

/* Columns of panels [begin,end) of a few rows from `top` must have the bits that `whole` has. */
static void same_bits(const heed_kernels *ks, const heed__panel_weights *w, const heed_real *a,
                      int64_t lda, const heed__panel_rows *rows, const heed_real *whole,
                      int64_t ldc, int64_t top, int64_t m, int64_t begin, int64_t end)
{
    const int64_t left = begin * 16, right = end * 16 < w->n ? end * 16 : w->n, ld = w->n + 1;
    heed_real *c = room(m * ld * (int64_t)sizeof *c);
    clear(c, m * ld);
    heed__panel_rows some = {0};
    if (w->bits)
        some = (heed__panel_rows){rows->bytes + top * 4 * heed__panel_groups(w->k),
                                  rows->step + top, rows->low + top};
    ks->panel_product(c, ld, a ? a + top * lda : NULL, lda, &some, m, w, begin, end);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < ld; j++) {
            heed_real wanted = j >= left && j < right ? whole[(top + i) * ldc + j] : GUARD;
            if (memcmp(&c[i * ld + j], &wanted, sizeof wanted) != 0)
                fail_msg("%s %d bits: %ld rows, panels %ld to %ld: (%ld,%ld) is %.9g, expected "
                         "%.9g",
                         ks->isa, w->bits, (long)m, (long)begin, (long)end, (long)i, (long)j,
                         (double)c[i * ld + j], (double)wanted);
        }
    free(c);
}

static void all_cuts_same_bits(const heed_kernels *ks, const heed__panel_weights *w,
                               const heed_real *a, int64_t lda, const heed__panel_rows *rows,
                               const heed_real *whole, int64_t ldc, int64_t most)
{
    const int64_t panels = heed__panels(w->n);
    for (int64_t m = 1; m <= 14; m++)
        same_bits(ks, w, a, lda, rows, whole, ldc, (3 * m) % (most - m + 1), m, 0, panels);
    heed__panel_weights far = *w;
    far.from_memory = true;
    for (int64_t m = 1; m <= 7; m++)
        same_bits(ks, &far, a, lda, rows, whole, ldc, 2, m, 0, panels);
    for (int64_t begin = 0; begin <= panels; begin++)
        for (int64_t end = begin; end <= panels; end++)
            same_bits(ks, w, a, lda, rows, whole, ldc, 1, 1 + (begin + end) % 7, begin, end);
}

/* Catches a scale, step, low, bias or activation that goes to the wrong row or column, and a value
 * that depends on how many rows there are or how the columns are shared. */
static void bytes_become_numbers(void **state)
{
    (void)state;
    enum { M = 23, K = 75, N = 92 };
    static const int kinds[] = {HEED__UNARY_IDENTITY, HEED__UNARY_RELU, HEED__UNARY_GELU,
                                HEED__UNARY_TANH};
    const heed_kernels *ks;
    for (int at = 0; at < 8; at++) {
        bytes_case x = bytes_new(M, N, K, 2, 4);
        heed_real *bias = numbers(N, 3), *spread = numbers(2 * M + 2 * N, 4);
        x.w.activation = kinds[at / 2];
        x.w.bias = at % 2 ? bias : NULL;
        for (int64_t i = 0; i < M; i++) {
            x.rows.step[i] = (float)(0.01 * (1.5 + (double)spread[i]));
            x.rows.low[i] = (float)spread[M + i];
        }
        for (int64_t j = 0; j < N; j++)
            x.scale[j] = (float)(0.02 * (1.5 + (double)spread[2 * M + j]));
        for (int set = 0; (ks = heed__kernels_at(set)); set++) {
            clear(x.c, M * x.ldc);
            ks->panel_product(x.c, x.ldc, NULL, 0, &x.rows, M, &x.w, 0, heed__panels(N));
            for (int64_t i = 0; i < M; i++) {
                for (int64_t j = 0; j < N; j++) {
                    double s = (double)x.scale[j], found = (double)x.c[i * x.ldc + j];
                    double part = s * (double)x.rows.step[i] * (double)bytes_sum(&x, i, j);
                    double base = s * (double)x.rows.low[i] * x.sum[j];
                    double b = x.w.bias ? (double)bias[j] : 0;
                    double wanted = activate(x.w.activation, part + base + b);
                    if (!(fabs(found - wanted) <= CLOSE * (fabs(part) + fabs(base) + fabs(b) + 1)))
                        fail_msg("%s activation %d: (%ld,%ld) is %.9g, expected %.9g", ks->isa,
                                 x.w.activation, (long)i, (long)j, found, wanted);
                }
                for (int64_t j = N; j < x.ldc; j++)
                    assert_true(x.c[i * x.ldc + j] == GUARD);
            }
            all_cuts_same_bits(ks, &x.w, NULL, 0, &x.rows, x.c, x.ldc, M);
        }
        free(bias);
        free(spread);
        bytes_free(&x);
    }
}

/* ---- products of numbers ---- */

/* One chain over k, then the bias. */
static heed_real chain(const heed_real *a, const heed_real *w, int64_t ldw, int64_t k, bool fused)
{
    heed_real sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum = fused ? FUSED(a[p], w[p * ldw], sum) : sum + a[p] * w[p * ldw];
    return sum;
}

/* Catches a sum that is cut or taken in another order than k's: each element is one chain, of fused
 * or of separate operations, all of them in the same way. */
static void numbers_are_chains(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 130, 33}, {2, 70, 9},   {3, 64, 64},
                                        {4, 100, 17}, {5, 16, 515}, {6, 47, 12},  {7, 15, 100},
                                        {13, 33, 0},  {12, 96, 5},  {97, 40, 77}, {200, 31, 130}};
    const heed_kernels *ks;
    for (int at = 0; at < 12; at++) {
        const int64_t m = shapes[at][0], n = shapes[at][1], k = shapes[at][2];
        const int64_t lda = k + at % 3, ldc = n + at % 4;
        heed_real *a = numbers(m * lda, 1), *w = numbers(k * n, 2), *bias = numbers(n, 3);
        heed_real *panels = numbers(heed__panel_reals(k, n), 4), *c = numbers(m * ldc, 5);
        heed__panel_pack(panels, w, n, 1, k, n);
        heed__panel_weights x = {.k = k,
                                 .n = n,
                                 .real = panels,
                                 .bias = at % 2 ? bias : NULL,
                                 .activation = at % 3 == 2 ? HEED__UNARY_RELU : 0};
        for (int set = 0; (ks = heed__kernels_at(set)); set++) {
            int64_t fused = 0, apart = 0;
            clear(c, m * ldc);
            ks->panel_product(c, ldc, a, lda, NULL, m, &x, 0, heed__panels(n));
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < ldc; j++) {
                    heed_real wanted[2] = {GUARD, GUARD};
                    for (int f = 0; f < 2 && j < n; f++) {
                        wanted[f] = chain(a + i * lda, w + j, n, k, f) + (x.bias ? bias[j] : 0);
                        if (x.activation == HEED__UNARY_RELU && wanted[f] < 0)
                            wanted[f] = 0;
                    }
                    apart += c[i * ldc + j] == wanted[0];
                    fused += c[i * ldc + j] == wanted[1];
                }
            if (fused != m * ldc && apart != m * ldc)
                fail_msg("%s %ldx%ldx%ld: %ld of %ld are not the fused chain, %ld not the other",
                         ks->isa, (long)m, (long)k, (long)n, (long)(m * ldc - fused),
                         (long)(m * ldc), (long)(m * ldc - apart));
        }
        free(a);
        free(w);
        free(bias);
        free(panels);
        free(c);
    }
}

/* Catches a value that depends on the number of rows or on how the columns are shared. */
static void numbers_keep_their_bits(void **state)
{
    (void)state;
    enum { M = 23, K = 75, N = 155 };
    const heed_kernels *ks;
    heed_real *a = numbers(M * K, 1), *w = numbers(K * N, 2), *bias = numbers(N, 3);
    heed_real *panels = numbers(heed__panel_reals(K, N), 4), *c = numbers(M * N, 5);
    heed__panel_pack(panels, w, N, 1, K, N);
    for (int kind = HEED__UNARY_IDENTITY; kind <= HEED__UNARY_SIGMOID; kind++)
        for (int set = 0; (ks = heed__kernels_at(set)); set++) {
            heed__panel_weights x = {
                .k = K, .n = N, .real = panels, .bias = bias, .activation = kind};
            ks->panel_product(c, N, a, K, NULL, M, &x, 0, heed__panels(N));
            all_cuts_same_bits(ks, &x, a, K, NULL, c, N, M);
        }
    free(a);
    free(w);
    free(bias);
    free(panels);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_exact),
        cmocka_unit_test(bytes_become_numbers),
        cmocka_unit_test(numbers_are_chains),
        cmocka_unit_test(numbers_keep_their_bits),
    };
    return cmocka_run_group_tests_name("panel products", tests, NULL, NULL);
}
