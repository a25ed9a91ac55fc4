/* test_references.c: BLEU, chrF and TER with several references of a sentence. */
#include <heed/metric.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "references_golden.h"

enum { SENTENCES = 8 };
#define CLOSE 1e-9

/* Catches clipping by the sum of references, a length that is not the nearest, a best reference of
 * the whole set in place of each sentence's. */
static void against_golden(void **state)
{
    (void)state;
    for (size_t g = 0; g < sizeof golden / sizeof *golden; g++) {
        const int n = golden[g].references;
        const char *hypothesis[SENTENCES], *reference[SENTENCES * 4];
        for (int i = 0; i < SENTENCES; i++) {
            hypothesis[i] = golden[g].lines[i * (n + 1)];
            for (int k = 0; k < n; k++)
                reference[i * n + k] = golden[g].lines[i * (n + 1) + 1 + k];
        }
        heed_bleu_options b = {.tokenize = HEED_TOKENIZE_NONE, .references = n};
        heed_chrf_options c = {.references = n};
        heed_bleu_result bleu;
        double chrf;
        char text[256];
        assert_int_equal(heed_bleu(&b, hypothesis, reference, SENTENCES, &bleu, NULL), HEED_OK);
        assert_int_equal(heed_chrf(&c, hypothesis, reference, SENTENCES, &chrf, NULL), HEED_OK);
        assert_true(fabs(bleu.score - golden[g].bleu) < CLOSE);
        assert_true(fabs(chrf - golden[g].chrf) < CLOSE);
        assert_int_equal(heed_bleu_signature(&b, text, sizeof text)[6] - '0', n);
        assert_int_equal(heed_chrf_signature(&c, text, sizeof text)[6] - '0', n);
    }
}

/* Catches TER that takes another reference's length, or not the fewest edits. */
static void edits(void **state)
{
    static const char *const hypothesis[] = {"a b c d", "x y"}, *const reference[] = {
                                                                    "a b c",   "a b d c e f",
                                                                    "a b c d", "x y z w",
                                                                    "x z",     "q"};
    (void)state;
    heed_ter_options o = {.references = 3};
    double ter;
    assert_int_equal(heed_ter(&o, hypothesis, reference, 2, &ter, NULL), HEED_OK);
    /* 0 and 1 edits; lengths (3 + 6 + 4) / 3 and (4 + 2 + 1) / 3. */
    assert_true(fabs(ter - 100.0 * 1 / (20.0 / 3)) < CLOSE);
}

/* Catches the longer of two lengths that are equally near. */
static void nearest_length(void **state)
{
    static const char *const hypothesis[] = {"a b c d e"}, *const reference[] = {"a b c d e f g",
                                                                                 "a b c d e f",
                                                                                 "a b c d"};
    (void)state;
    heed_bleu_options o = {.tokenize = HEED_TOKENIZE_NONE, .references = 3};
    heed_bleu_result r;
    assert_int_equal(heed_bleu(&o, hypothesis, reference, 1, &r, NULL), HEED_OK);
    assert_int_equal(r.reference_length, 4);
    assert_int_equal(r.matches[0], 5);
}

/* Catches references that are mixed up by the resamples: the same reference twice is one. */
static void twice_is_once(void **state)
{
    static const char *const a[] = {"the cat sat", "a dog ran on", "and then"},
                             *const b[] = {"the cat ran", "a dog sat on it", "then and"},
                             *const once[] = {"the cat sat on", "a dog ran", "and then"},
                             *const twice[] = {"the cat sat on", "the cat sat on", "a dog ran",
                                               "a dog ran",      "and then",       "and then"};
    (void)state;
    for (int metric = 0; metric < 3; metric++) {
        heed_bootstrap r[2];
        for (int n = 0; n < 2; n++) {
            const char *const *reference = n ? twice : once;
            heed_bleu_options bleu = {.effective_order = true, .references = n + 1};
            heed_chrf_options chrf = {.references = n + 1};
            heed_ter_options ter = {.references = n + 1};
            assert_int_equal(
                metric == 0   ? heed_bleu_bootstrap(&bleu, a, b, reference, 3, 50, 1, &r[n], NULL)
                : metric == 1 ? heed_chrf_bootstrap(&chrf, a, b, reference, 3, 50, 1, &r[n], NULL)
                              : heed_ter_bootstrap(&ter, a, b, reference, 3, 50, 1, &r[n], NULL),
                HEED_OK);
        }
        assert_true(fabs(r[0].score[0] - r[1].score[0]) < CLOSE);
        assert_true(fabs(r[0].mean[1] - r[1].mean[1]) < CLOSE && r[0].p == r[1].p);
    }
}

static void refuses(void **state)
{
    static const char *const text[] = {"a"};
    heed_bleu_options o = {.references = -1};
    heed_bleu_result r;
    heed_error err = {0};
    (void)state;
    assert_int_equal(heed_bleu(&o, text, text, 1, &r, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "bleu: -1 references, expected at least 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_golden), cmocka_unit_test(edits),
        cmocka_unit_test(nearest_length), cmocka_unit_test(twice_is_once),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
