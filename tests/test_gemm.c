/* test_gemm.c: every way a product is made, against three loops. */
#include "kernel/blas.h"
#include "kernel/kernels.h"

#include <heed/base.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Small whole numbers: all sums are exact, so every order of adding must give the same bits. */
static void fill(heed_real *x, int64_t n, unsigned seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (heed_real)((int)(seed >> 24) % 9 - 4);
    }
}

static heed_real *numbers(int64_t n, unsigned seed)
{
    heed_real *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    fill(x, n, seed);
    return x;
}

static heed_real naive(const heed__product *p, int64_t i, int64_t j)
{
    heed_real sum = 0;
    for (int64_t q = 0; q < p->k; q++)
        sum += (p->trans_a ? p->a[q * p->lda + i] : p->a[i * p->lda + q]) *
               (p->trans_b ? p->b[j * p->ldb + q] : p->b[q * p->ldb + j]);
    return sum;
}

#define GUARD ((heed_real)12345)

/* A product with its matrices inside wider ones. */
typedef struct problem {
    heed__product p;
    heed_real *a, *b, *c, *before, *panels;
    int64_t count;
} problem;

static problem problem_new(int64_t m, int64_t n, int64_t k, bool ta, bool tb, heed_real beta,
                           int64_t slack)
{
    problem q;
    int64_t lda = (ta ? m : k) + slack, ldb = (tb ? k : n) + slack, ldc = n + slack;
    q.a = numbers((ta ? k : m) * lda, 1);
    q.b = numbers((tb ? n : k) * ldb, 2);
    q.count = m * ldc;
    q.c = numbers(q.count, 3);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < ldc; j++)
            if (j >= n)
                q.c[i * ldc + j] = GUARD;
            else if (beta == 0)
                q.c[i * ldc + j] = (heed_real)NAN;
    q.before = malloc((size_t)(q.count + 1) * sizeof *q.before);
    assert_non_null(q.before);
    memcpy(q.before, q.c, (size_t)q.count * sizeof *q.c);
    q.p = (heed__product){.c = q.c,
                          .a = q.a,
                          .b = q.b,
                          .ldc = ldc,
                          .lda = lda,
                          .ldb = ldb,
                          .m = m,
                          .n = n,
                          .k = k,
                          .trans_a = ta,
                          .trans_b = tb,
                          .beta = beta};
    q.panels = NULL;
    return q;
}

/* Room for copies, so that the product may be packed; exactly as much as is promised. */
static void problem_panels(problem *q, int threads)
{
    q->panels = malloc((size_t)threads * HEED_PANEL_COUNT * sizeof *q->panels);
    assert_non_null(q->panels);
    for (int64_t i = 0; i < threads * HEED_PANEL_COUNT; i++)
        q->panels[i] = (heed_real)NAN;
    q->p.panels = q->panels;
}

static void problem_check(const problem *q, const char *what)
{
    const heed__product *p = &q->p;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->ldc; j++) {
            heed_real old = q->before[i * p->ldc + j], found = q->c[i * p->ldc + j];
            heed_real expected = j >= p->n ? old : naive(p, i, j) + (p->beta == 0 ? 0 : old);
            if (j < p->n && p->bias)
                expected += p->bias[j];
            if (j < p->n && p->relu)
                expected = expected > 0 ? expected : 0;
            if (found != expected)
                fail_msg("%s %ldx%ldx%ld %d%d beta %g: (%ld,%ld) is %g, expected %g", what,
                         (long)p->m, (long)p->n, (long)p->k, p->trans_a, p->trans_b,
                         (double)p->beta, (long)i, (long)j, (double)found, (double)expected);
        }
}

static void problem_free(problem *q)
{
    free(q->a);
    free(q->b);
    free(q->c);
    free(q->before);
    free(q->panels);
}

static const int64_t sides[] = {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17, 24, 33, 64, 67};
#define N_SIDES ((int)(sizeof sides / sizeof *sides))
static const int64_t depths[] = {0, 1, 3, 8, 9, 31, 32, 33, 129, 260};
#define N_DEPTHS ((int)(sizeof depths / sizeof *depths))

/* Catches a wrong tail, stride, tile or beta in the kernels of any instruction set. */
static void kernels_match_naive(void **state)
{
    (void)state;
    for (int set = 0; heed__kernels_at(set); set++) {
        const heed_kernels *ks = heed__kernels_at(set);
        for (int at = 0; at < N_SIDES * N_SIDES * N_DEPTHS; at++) {
            int64_t m = sides[at % N_SIDES], n = sides[at / N_SIDES % N_SIDES];
            int64_t k = depths[at / N_SIDES / N_SIDES];
            heed_real beta = at % 2 ? 1 : 0;
            for (int form = 0; form < 3; form++) { /* NN, NT, TN */
                problem q = problem_new(m, n, k, form == 2, form == 1, beta, at % 3);
                heed__product *p = &q.p;
                if (form == 1)
                    ks->gemm_few_nt(p->c, p->ldc, p->a, p->lda, p->b, p->ldb, m, n, k, beta);
                else
                    ks->gemm_few(p->c, p->ldc, p->a, form ? 1 : p->lda, form ? p->lda : 1, p->b,
                                 p->ldb, m, n, k, beta);
                problem_check(&q, ks->isa);
                problem_free(&q);
            }
        }
    }
}

/* Catches a wrong copy, edge, cut of the sum, beta, bias or activation of the packed kernel, in any
 * instruction set; the last two shapes have several blocks of everything. */
static void packed_matches_naive(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {1, 1, 1},   {6, 16, 8},   {5, 15, 7},     {7, 17, 9},     {13, 33, 24},    {73, 40, 30},
        {8, 24, 16}, {79, 9, 513}, {72, 17, 1535}, {150, 4110, 9}, {77, 1045, 520}, {310, 40, 120}};
    heed_real *bias = numbers(5000, 8);
    for (int set = 0; heed__kernels_at(set); set++)
        for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
            /* The large ones: A B, A^T B + C, A B^T + bias, all of it. */
            for (int form = 0; form<16; form += shapes[s][1]> 1000 ? 5 : 1) {
                problem q = problem_new(shapes[s][0], shapes[s][1], shapes[s][2], form & 1,
                                        form & 2, (heed_real)(form >> 2 & 1), s % 3);
                problem_panels(&q, 1);
                q.p.bias = form & 8 ? bias : NULL;
                q.p.relu = (form ^ s) & 4;
                heed__kernels_at(set)->gemm_packed(&q.p);
                problem_check(&q, heed__kernels_at(set)->isa);
                problem_free(&q);
            }
    free(bias);
}

/* Catches the packed kernel being taken where its speed has not been proved. */
static void packed_pays_where_measured(void **state)
{
    (void)state;
    for (int set = 0; heed__kernels_at(set); set++) {
        const heed_kernels *ks = heed__kernels_at(set);
        assert_int_equal(ks->gemm_packed_pays(), strcmp(ks->isa, "baseline") != 0);
    }
}

/* Catches a mistake in what is copied together when rows lie far apart, in more than one panel. */
static void far_apart_matches_naive(void **state)
{
    (void)state;
    for (int set = 0; heed__kernels_at(set); set++)
        for (int form = 0; form < 4; form++) { /* NN, TN; beta 0, 1 */
            bool tn = form & 1;
            problem q = problem_new(200, 37, 261, tn, false, (heed_real)(form / 2), 256);
            heed__product *p = &q.p;
            heed__kernels_at(set)->gemm_few(p->c, p->ldc, p->a, tn ? 1 : p->lda, tn ? p->lda : 1,
                                            p->b, p->ldb, p->m, p->n, p->k, p->beta);
            problem_check(&q, heed__kernels_at(set)->isa);
            problem_free(&q);
        }
}

/* Catches a wrong cut over threads, a wrong choice of kernel, sizes of zero and one, and a bias or
 * an activation that one of the ways forgets. */
static void product_matches_naive(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 300, 70}, {300, 1, 70},  {300, 1, 1},
                                        {70, 300, 1}, {5, 700, 40}, {700, 5, 40},  {40, 40, 300},
                                        {17, 33, 0},  {65, 66, 67}, {130, 70, 90}, {100, 210, 16},
                                        {0, 5, 5},    {5, 0, 5},    {513, 40, 20}, {1100, 40, 33}};
    heed_real *bias = numbers(1000, 8);
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
        for (int form = 0; form < 32; form++)
            for (int threads = 1; threads <= 4; threads++) {
                problem q = problem_new(shapes[s][0], shapes[s][1], shapes[s][2], form & 1,
                                        form & 2, (heed_real)(form >> 2 & 1), form >> 3 & 1);
                q.p.bias = (form ^ threads) & 8 ? bias : NULL;
                q.p.relu = (form ^ threads) & 1;
                if (form & 16)
                    problem_panels(&q, threads);
                heed__gemm(&q.p, threads, NULL, NULL);
                problem_check(&q, "heed__gemm");
                problem_free(&q);
            }
    free(bias);
}

/* Catches a sum that depends on how the product is cut: packed, every number of threads gives the
 * same bits, and so do fewer rows. */
static void packed_bits_do_not_depend_on_the_cut(void **state)
{
    (void)state;
    for (int form = 0; form < 4; form++) {
        problem q = problem_new(500, 170, 1190, form & 1, form & 2, 0, 0);
        problem_panels(&q, 4);
        for (int64_t i = 0; i < 500 * 1190; i++)
            q.a[i] = q.a[i] / 7 + (heed_real)1e-3;
        heed__gemm(&q.p, 1, NULL, NULL);
        memcpy(q.before, q.c, (size_t)q.count * sizeof *q.c);
        for (int threads = 2; threads <= 4; threads++) {
            memset(q.c, 0, (size_t)q.count * sizeof *q.c);
            heed__gemm(&q.p, threads, NULL, NULL);
            assert_memory_equal(q.before, q.c, (size_t)q.count * sizeof *q.c);
        }
        memset(q.c, 0, (size_t)q.count * sizeof *q.c);
        q.p.m = 201;
        heed__gemm(&q.p, 1, NULL, NULL);
        assert_memory_equal(q.before, q.c, (size_t)(201 * q.p.ldc) * sizeof *q.c);
        problem_free(&q);
    }
}

/* Catches a kernel chosen by what happens to be there: room for copies that this product did not
 * ask for must not change a bit of it. */
static void room_not_asked_for_changes_nothing(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {300, 5, 700}, {5, 300, 700}, {300, 700, 5}, {20, 20, 20}, {24, 23, 24}};
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
        for (int form = 0; form < 4; form++) {
            problem q =
                problem_new(shapes[s][0], shapes[s][1], shapes[s][2], form & 1, form & 2, 0, 0);
            for (int64_t i = 0; i < shapes[s][0] * shapes[s][2]; i++)
                q.a[i] = q.a[i] / 7 + (heed_real)1e-3;
            assert_int_equal(heed__gemm_panels(q.p.m, q.p.n, q.p.k), 0);
            heed__gemm(&q.p, 2, NULL, NULL);
            memcpy(q.before, q.c, (size_t)q.count * sizeof *q.c);
            problem_panels(&q, 2);
            heed__gemm(&q.p, 2, NULL, NULL);
            assert_memory_equal(q.before, q.c, (size_t)q.count * sizeof *q.c);
            problem_free(&q);
        }
}

/* Catches a sum whose order depends on which thread comes first; 500 rows go to the library. */
static void same_threads_same_bits(void **state)
{
    (void)state;
    for (int form = 0; form < 3; form++)
        for (int threads = 1; threads <= 4; threads++) {
            problem q = problem_new(500, 170, 190, form == 2, form == 1, 0, 0);
            for (int64_t i = 0; i < 500 * 190; i++)
                q.a[i] = q.a[i] / 7 + (heed_real)1e-3;
            heed__gemm(&q.p, threads, NULL, NULL);
            memcpy(q.before, q.c, (size_t)q.count * sizeof *q.c);
            for (int again = 0; again < 5; again++) {
                heed__gemm(&q.p, threads, NULL, NULL);
                assert_memory_equal(q.before, q.c, (size_t)q.count * sizeof *q.c);
            }
            problem_free(&q);
        }
}

static void add_one(void *context, int64_t begin, int64_t end, int64_t left, int64_t right)
{
    heed__product *p = context;
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = left; j < right; j++)
            p->c[i * p->ldc + j] += 1;
}

/* Catches a block that the callback misses, sees twice, or sees before it is finished. */
static void after_sees_each_element_once(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{3, 500, 40},  {500, 3, 40},    {1500, 70, 30},
                                        {70, 1500, 5}, {1300, 1700, 2}, {40, 30, 0}};
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
        for (int threads = 1; threads <= 4; threads++) {
            problem q =
                problem_new(shapes[s][0], shapes[s][1], shapes[s][2], false, false, 0, s % 2);
            heed__gemm(&q.p, threads, add_one, &q.p);
            for (int64_t i = 0; i < q.p.m; i++)
                for (int64_t j = 0; j < q.p.n; j++)
                    q.c[i * q.p.ldc + j] -= 1;
            problem_check(&q, "after");
            problem_free(&q);
        }
}

/* Catches a value that depends on how many other rows are in the product: the decoder promises that
 * an answer does not depend on what else is in the batch, for tiles of every height. */
static void rows_do_not_meet(void **state)
{
    (void)state;
    for (int set = 0; heed__kernels_at(set); set++) {
        const heed_kernels *ks = heed__kernels_at(set);
        enum { ROWS = 13, N = 53, DEEP = 170 };
        heed_real *a = numbers(ROWS * DEEP, 4), *b = numbers(N * DEEP, 5);
        heed_real *whole = numbers(ROWS * N, 6), *part = numbers(ROWS * N, 7);
        for (int i = 0; i < ROWS * DEEP; i++)
            a[i] = a[i] / 7 + (heed_real)1e-3;
        for (int64_t m = 1; m <= 12; m++) {
            ks->gemm_few(whole, N, a, DEEP, 1, b, N, ROWS, N, DEEP, 0);
            ks->gemm_few(part, N, a, DEEP, 1, b, N, m, N, DEEP, 0);
            assert_memory_equal(whole, part, (size_t)m * N * sizeof *part);
            ks->gemm_few_nt(whole, N, a, DEEP, b, DEEP, ROWS, N, DEEP, 0);
            ks->gemm_few_nt(part, N, a, DEEP, b, DEEP, m, N, DEEP, 0);
            assert_memory_equal(whole, part, (size_t)m * N * sizeof *part);
        }
        free(a);
        free(b);
        free(whole);
        free(part);
    }
}

/* Catches a library that is not asked what it is, and a machine that has no name. */
static void machine_is_described(void **state)
{
    (void)state;
    heed_machine machine;
    heed_machine_describe(&machine);
    assert_true(strlen(machine.cpu) > 0);
    assert_non_null(heed__kernels_named(machine.instruction_set));
    assert_true(strstr(machine.blas, "BLIS") || strstr(machine.blas, "OpenBLAS") ||
                strstr(machine.blas, "CBLAS"));
    assert_true(machine.threads >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_match_naive),
        cmocka_unit_test(far_apart_matches_naive),
        cmocka_unit_test(packed_matches_naive),
        cmocka_unit_test(packed_pays_where_measured),
        cmocka_unit_test(room_not_asked_for_changes_nothing),
        cmocka_unit_test(packed_bits_do_not_depend_on_the_cut),
        cmocka_unit_test(product_matches_naive),
        cmocka_unit_test(same_threads_same_bits),
        cmocka_unit_test(after_sees_each_element_once),
        cmocka_unit_test(rows_do_not_meet),
        cmocka_unit_test(machine_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
