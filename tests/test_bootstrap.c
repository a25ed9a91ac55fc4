/* test_bootstrap.c: is one system better than another? */
#include <heed/metric.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A test set of N lines and two systems: the reference with one word in `bad` wrong. */
enum { N = 60, W = 12 }; /* lines, words */
struct systems {
    char text[3][N][W * 4];
    const char *line[3][N];
};

static void make_systems(struct systems *s, int bad_a, int bad_b)
{
    int bad[2] = {bad_a, bad_b};
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    uint64_t drawn = 0;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N; i++) {
            char *at = s->text[k][i];
            s->line[k][i] = at;
            for (int w = 0; w < W; w++) {
                int number = i * W + w + 1;
                bool wrong = k < 2 && heed_rng_below(&rng, drawn++, bad[k]) == 0;
                at += sprintf(at, "%s%02d", wrong ? "x" : "", (number * 7 + number / 5) % 83);
                *at++ = ' ';
            }
            at[-1] = '\0';
        }
}

static heed_bootstrap compare(const struct systems *s, int metric, int64_t resamples, uint64_t seed)
{
    heed_bleu_options b = {.tokenize = HEED_TOKENIZE_NONE};
    heed_chrf_options c = {.word_order = 2};
    heed_ter_options t = {0};
    heed_bootstrap r;
    heed_status status = metric == 0   ? heed_bleu_bootstrap(&b, s->line[0], s->line[1], s->line[2],
                                                             N, resamples, seed, &r, NULL)
                         : metric == 1 ? heed_chrf_bootstrap(&c, s->line[0], s->line[1], s->line[2],
                                                             N, resamples, seed, &r, NULL)
                                       : heed_ter_bootstrap(&t, s->line[0], s->line[1], s->line[2],
                                                            N, resamples, seed, &r, NULL);
    assert_int_equal(status, HEED_OK);
    return r;
}

/* Catches a p that does not tell a clear difference from none, and results that a seed does not
 * repeat. */
static void bootstrap(void **state)
{
    (void)state;
    static struct systems clear, close, same;
    make_systems(&clear, 17, 4);
    make_systems(&close, 9, 9);
    make_systems(&same, 9, 9);
    memcpy(same.text[1], same.text[0], sizeof same.text[0]);
    for (int metric = 0; metric < 3; metric++) {
        heed_bootstrap r = compare(&clear, metric, 300, 1);
        assert_true(r.p < 0.01);
        assert_true(metric == 2 ? r.score[0] < r.score[1] : r.score[0] > r.score[1]);
        for (int s = 0; s < 2; s++) {
            assert_true(r.width[s] > 0);
            assert_true(fabs(r.mean[s] - r.score[s]) < r.width[s]);
        }
        heed_bootstrap again = compare(&clear, metric, 300, 1),
                       other = compare(&clear, metric, 300, 2);
        assert_memory_equal(&r, &again, sizeof r);
        assert_true(other.mean[0] != r.mean[0] && other.score[0] == r.score[0]);
        assert_true(compare(&close, metric, 300, 1).p > 0.05);
        r = compare(&same, metric, 300, 1);
        assert_true(r.p == 1 && r.score[0] == r.score[1] && r.mean[0] == r.mean[1]);
    }
}

/* Catches a score of the whole set that is not the one heed_bleu gives. */
static void bootstrap_scores(void **state)
{
    (void)state;
    static struct systems s;
    make_systems(&s, 5, 8);
    heed_bootstrap r = compare(&s, 0, 1, 1);
    heed_bleu_options o = {.tokenize = HEED_TOKENIZE_NONE};
    heed_bleu_result b;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(heed_bleu(&o, s.line[k], s.line[2], N, &b, NULL), HEED_OK);
        assert_true(b.score == r.score[k] && r.width[k] == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bootstrap),
        cmocka_unit_test(bootstrap_scores),
    };
    return cmocka_run_group_tests_name("bootstrap", tests, NULL, NULL);
}
