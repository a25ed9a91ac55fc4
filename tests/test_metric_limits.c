/* test_metric_limits.c: numbers inside the metrics that decide scores and that no text of ordinary
 * length would show: how far and how much TER may shift, and which interval the bootstrap gives. */
#include <heed/metric.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Words x0 .. of a phrase, behind or in front of words w0 .. of the rest. */
static void write_line(char *to, int phrase, int rest, bool in_front)
{
    for (int k = 0; k < 2; k++) {
        const bool x = (k == 0) == in_front;
        for (int i = 0; i < (x ? phrase : rest); i++)
            to += sprintf(to, "%c%d ", x ? 'x' : 'w', i);
    }
}

/* Edits that turn the phrase in front (or behind) into the phrase behind (or in front). */
static double edits(int phrase, int rest, bool to_the_right)
{
    char hypothesis[2048], reference[2048];
    const char *h = hypothesis, *r = reference;
    double score;
    write_line(hypothesis, phrase, rest, to_the_right);
    write_line(reference, phrase, rest, !to_the_right);
    assert_int_equal(heed_ter(&(heed_ter_options){0}, &h, &r, 1, &score, NULL), HEED_OK);
    return score / 100 * (phrase + rest);
}

/* Catches shifts over another distance than Tercom's 50 words, or of another number of words than
 * its 10. */
static void shifts(void **state)
{
    (void)state;
    for (int right = 0; right < 2; right++) {
        assert_true(fabs(edits(1, 49, right) - 1) < 1e-9);
        assert_true(fabs(edits(1, 50, right) - 1) < 1e-9);
        assert_true(fabs(edits(1, 51, right) - 2) < 1e-9); /* taken out here, put in there */
        assert_true(fabs(edits(1, 70, right) - 2) < 1e-9);
        assert_true(fabs(edits(10, 40, right) - 1) < 1e-9);
        assert_true(fabs(edits(11, 30, right) - 2) < 1e-9); /* ten and one */
    }
}

/* Catches an interval that holds more or less than 95 of 100 resamples.  Of N one-word sentences
 * half are wrong, so the wrong ones of a resample are binomial: their standard deviation is
 * 50 / sqrt(N) percent, and 95 in 100 lie within 1.96 of them; 90 would within 1.645. */
static void interval(void **state)
{
    (void)state;
    enum { N = 400, RESAMPLES = 2000 };
    const char *right[N], *wrong[N], *reference[N];
    for (int i = 0; i < N; i++) {
        reference[i] = "a";
        right[i] = i % 2 ? "a" : "b";
        wrong[i] = i % 4 ? "b" : "a";
    }
    for (uint64_t seed = 1; seed <= 3; seed++) {
        heed_bootstrap r;
        assert_int_equal(heed_ter_bootstrap(&(heed_ter_options){0}, right, wrong, reference, N,
                                            RESAMPLES, seed, &r, NULL),
                         HEED_OK);
        assert_true(r.score[0] == 50 && r.score[1] == 75);
        /* A quantile of 2,000 draws is off by 0.06 deviations (one sigma); scores come in steps
         * of 0.1. */
        const double deviation[2] = {50 / sqrt(N), 100 * sqrt(0.75 * 0.25 / N)};
        for (int s = 0; s < 2; s++) {
            print_message("%.2f deviations\n", r.width[s] / deviation[s]);
            assert_true(fabs(r.width[s] - 1.96 * deviation[s]) < 0.15 * deviation[s]);
            assert_true(fabs(r.mean[s] - r.score[s]) < 0.1 * deviation[s]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shifts), cmocka_unit_test(interval)};
    return cmocka_run_group_tests_name("metric limits", tests, NULL, NULL);
}
