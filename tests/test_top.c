/* test_top.c: the best continuations, found block by block in logits, against sorting them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/top.h"

enum { MAX_V = 900, ROWS = 3, MOST = 32, PEAKS = MAX_V / HEED_PEAK_COLUMNS + 1 };

static heed_real logit[ROWS * MAX_V], log_z[ROWS], peak[ROWS * PEAKS];
static int32_t column[MAX_V];
static heed_tokens choice[ROWS];
static bool banned[4 * MAX_V];
static heed__candidate every[ROWS * MAX_V], best[MOST];

static int by_candidate(const void *a, const void *b)
{
    return heed__candidate_before(a, b) ? -1 : 1;
}

/* Numbers of a case: coarse ones are often equal. */
struct numbers {
    heed_rng rng;
    uint64_t at;
    bool coarse;
};

static double draw(struct numbers *n, double scale)
{
    double x = -scale * heed_rng_uniform(&n->rng, n->at++);
    return n->coarse ? floor(x) : x;
}

/* What `top` holds after all rows is what sorting gives. */
static void check_against_sorting(const heed_scores *scores, const heed__filter *f,
                                  const double *base, int64_t capacity)
{
    heed__top top = {.item = best, .capacity = capacity};
    int64_t all = 0, bad;
    for (int r = 0; r < ROWS; r++) {
        heed__outlook v = heed__outlook_of(scores, r);
        for (int64_t i = 0; i < scores->columns; i++) {
            heed_real x;
            int32_t token = scores->choice ? scores->choice[r].id[i] : (int32_t)i;
            assert_true(heed__log_p_at(&v, i, &x));
            if (!isinf(x) && !heed__forbids(f, token))
                every[all++] = (heed__candidate){base[r] + (double)x, r, token, x, -1, v.logit[i]};
        }
        assert_true(heed__top_scan(&top, &v, f, base[r], r, &bad));
    }
    heed__top_sort(&top);
    qsort(every, (size_t)all, sizeof *every, by_candidate);
    assert_int_equal(top.count, all < capacity ? all : capacity);
    for (int64_t i = 0; i < top.count; i++) {
        assert_int_equal(best[i].row, every[i].row);
        assert_int_equal(best[i].token, every[i].token);
        assert_true(best[i].log_p == every[i].log_p);
        assert_true(best[i].token_log_p == every[i].token_log_p);
    }
}

/* Catches a best one that the block-wise scan skips: at block edges, among equals, in short rows,
 * where the logits are far from the log-probabilities; a wrong token for a column; what is
 * forbidden and taken all the same. */
static void test_same_as_sorting(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        heed_rng_key key = {.seed = seed};
        struct numbers n = {heed_rng_stream(&key), 0, seed % 2};
        int64_t v = 3 + heed_rng_below(&n.rng, n.at++, MAX_V - 3);
        int64_t capacity = 1 + heed_rng_below(&n.rng, n.at++, MOST);
        double base[ROWS], shift = seed % 3 ? 1000 * heed_rng_normal(&n.rng, n.at++) : 0;
        for (int r = 0; r < ROWS; r++) {
            base[r] = draw(&n, 10);
            log_z[r] = (heed_real)(n.coarse ? floor(shift) : shift);
            for (int64_t i = 0; i < v; i++) {
                double x = draw(&n, 20);
                x = seed % 5 == 0 && x < -15 ? -INFINITY : x;
                logit[r * v + i] = (heed_real)(x + (double)log_z[r]);
            }
        }
        for (int64_t i = 0; i < v; i++)
            column[i] = (int32_t)(i ? column[i - 1] + 1 + heed_rng_below(&n.rng, n.at++, 3) : 0);
        for (int i = 0; i < 4 * MAX_V; i++)
            banned[i] = i == HEED_BOS || (seed % 4 == 0 && heed_rng_below(&n.rng, n.at++, 3) == 0);
        const int32_t also[] = {column[v / 2], (int32_t)(v / 3)};
        for (int r = 0; r < ROWS; r++)
            choice[r] = (heed_tokens){column, v};
        for (int64_t i = 0; i < ROWS * PEAKS; i++)
            peak[i] = -(heed_real)INFINITY;
        const int64_t peaks = (v + HEED_PEAK_COLUMNS - 1) / HEED_PEAK_COLUMNS;
        for (int64_t i = 0; i < ROWS * v; i++) {
            heed_real *of = &peak[i / v * peaks + i % v / HEED_PEAK_COLUMNS];
            *of = logit[i] > *of ? logit[i] : *of;
        }
        heed_scores scores = {logit, log_z, v, seed % 7 < 3 ? choice : NULL,
                              seed % 11 < 6 ? peak : NULL};
        heed__filter f = {banned, also, (int64_t)(seed % 3)};
        check_against_sorting(&scores, &f, base, capacity);
    }
}

/* Catches a token sought in the wrong half, or found where it is not. */
static void test_columns(void **state)
{
    (void)state;
    static const int32_t tokens[] = {0, 2, 3, 7, 8, 20};
    heed__outlook v = {logit, 0, 6, tokens, NULL}, all = {logit, 0, 6, NULL, NULL};
    for (int32_t token = 0; token < 25; token++) {
        int64_t found = heed__column_of(&v, token), expected = -1;
        for (int i = 0; i < 6; i++)
            expected = tokens[i] == token ? i : expected;
        assert_int_equal(found, expected);
        assert_int_equal(heed__column_of(&all, token), token < 6 ? token : -1);
        if (found >= 0)
            assert_int_equal(heed__token_at(&v, found), token);
    }
}

/* Catches what is no log-probability and passes because the heap is full of better ones, or because
 * the logits are large. */
static void test_no_log_probability(void **state)
{
    (void)state;
    static const heed_real wrong[] = {(heed_real)NAN, (heed_real)INFINITY, (heed_real)0.5};
    heed__filter f = {banned, NULL, 0};
    memset(banned, 0, sizeof banned);
    for (int w = 0; w < 3; w++)
        for (int64_t at = 0; at < MAX_V; at += 7) {
            heed__top top = {.item = best, .capacity = 2};
            heed__outlook v = {logit, 300, MAX_V, NULL, NULL};
            int64_t bad = -1;
            for (int64_t i = 0; i < MAX_V; i++)
                logit[i] = (heed_real)(290 - (double)i);
            assert_true(heed__top_scan(&top, &v, &f, 0, 0, &bad));
            logit[at] = 300 + wrong[w];
            assert_false(heed__top_scan(&top, &v, &f, -200, 1, &bad)); /* far behind the first */
            assert_int_equal(bad, at);
            heed_error err = {0};
            assert_int_equal(heed__bad_column(&v, bad, 3, &err), HEED_NUMERIC);
            assert_non_null(strstr(err.text, "(after 3 tokens of a sentence)"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_sorting),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_no_log_probability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
