/* test_metric.c: what holds for BLEU, chrF and TER whatever the text, and what they refuse.  Their
 * values are in test_metric_values.c. */
#include "metric/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"

/* The same sums in the same order: nothing but the last digits of log and exp may differ. */
#define CLOSE 1e-8

#define LENGTH(array) (int64_t)(sizeof(array) / sizeof *(array))

static double bleu(heed_bleu_options o, const char *hypothesis, const char *reference)
{
    heed_bleu_result r;
    o.effective_order = true;
    assert_int_equal(heed_bleu(&o, &hypothesis, &reference, 1, &r, NULL), HEED_OK);
    return r.score;
}

static double chrf(heed_chrf_options o, const char *hypothesis, const char *reference)
{
    double score;
    assert_int_equal(heed_chrf(&o, &hypothesis, &reference, 1, &score, NULL), HEED_OK);
    return score;
}

static double ter(heed_ter_options o, const char *hypothesis, const char *reference)
{
    double score;
    assert_int_equal(heed_ter(&o, &hypothesis, &reference, 1, &score, NULL), HEED_OK);
    return score;
}

/* Words that a tokeniser makes of a line. */
static int64_t words(heed_bleu_options o, const char *line)
{
    heed_bleu_result r;
    assert_int_equal(heed_bleu(&o, &line, &line, 1, &r, NULL), HEED_OK);
    return r.hypothesis_length;
}

static const char *const some[] = {
    "A dog runs over the meadow.",       "Zwei Männer stehen am Herd und bereiten Essen zu.",
    "Der 3. Versuch, am 12.5., um 8.30", "\"Nein\", sagte sie; \"nie & nimmer\" (so war es).",
    "机器翻译很有用，不是吗？",
};

/* Catches a tokeniser that treats the two sides differently, and scores that do not reach the end
 * of their scale. */
static void perfect_and_hopeless(void **state)
{
    (void)state;
    static const char *const other[] = {"x", "y z", "q", "vv", "ww"};
    heed_bleu_result b;
    double score;
    for (int t = HEED_TOKENIZE_13A; t <= HEED_TOKENIZE_ZH; t++) {
        heed_bleu_options o = {.tokenize = (heed_tokenize)t};
        assert_int_equal(heed_bleu(&o, some, some, LENGTH(some), &b, NULL), HEED_OK);
        assert_true(fabs(b.score - 100) < CLOSE);
    }
    for (int w = 0; w <= 2; w += 2) {
        heed_chrf_options o = {.word_order = w};
        assert_int_equal(heed_chrf(&o, some, some, LENGTH(some), &score, NULL), HEED_OK);
        assert_true(fabs(score - 100) < CLOSE);
        assert_int_equal(heed_chrf(&o, other, some + 4, 1, &score, NULL), HEED_OK);
        assert_true(score == 0);
    }
    heed_ter_options t = {0};
    assert_int_equal(heed_ter(&t, some, some, LENGTH(some), &score, NULL), HEED_OK);
    assert_true(score == 0);
    assert_int_equal(heed_ter(&t, other, some, 1, &score, NULL), HEED_OK);
    assert_true(fabs(score - 100) < CLOSE);
    heed_bleu_options o = {0};
    assert_int_equal(heed_bleu(&o, other, some, LENGTH(some), &b, NULL), HEED_OK);
    assert_true(b.score == 0 && b.precision[0] == 0 && b.brevity_penalty > 0);
}

/* Catches precision and recall, or the clipping of counts, taken from one side only. */
static void sides_change_places(void **state)
{
    (void)state;
    const char *a = "the the the cat sat on a mat", *b = "the cat the dog sat on the red mat";
    heed_chrf_options even = {.beta = 1, .word_order = 2}, recall = {.beta = 3};
    assert_true(fabs(chrf(even, a, b) - chrf(even, b, a)) < CLOSE);
    assert_true(fabs(chrf(recall, a, b) - chrf(recall, b, a)) > 0.1);
    heed_bleu_options o = {0};
    heed_bleu_result ab, ba;
    assert_int_equal(heed_bleu(&o, &a, &b, 1, &ab, NULL), HEED_OK);
    assert_int_equal(heed_bleu(&o, &b, &a, 1, &ba, NULL), HEED_OK);
    assert_memory_equal(ab.matches, ba.matches, sizeof ab.matches);
    assert_int_equal(ab.matches[0], 7); /* the the the cat sat on mat */
    assert_int_equal(ab.hypothesis_length, ba.reference_length);
    assert_true(ab.brevity_penalty < 1 && ba.brevity_penalty == 1);
}

/* Catches a table that loses or merges n-grams: against comparing each with each. */
static void n_grams_against_naive(void **state)
{
    (void)state;
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3});
    uint64_t drawn = 0;
    heed__pair p;
    heed__pair_init(&p, NULL);
    for (int round = 0; round < 60; round++) {
        int64_t kinds = 1 + heed_rng_below(&rng, drawn++, 40);
        for (int s = 0; s < HEED__SIDES; s++) {
            p.unit[s].count = 0;
            for (int64_t i = heed_rng_below(&rng, drawn++, 90); i > 0; i--)
                heed__codes_add(&p.unit[s], (int32_t)heed_rng_below(&rng, drawn++, kinds));
        }
        for (int64_t n = 1; n <= 6; n++) {
            const heed__codes *h = &p.unit[0], *r = &p.unit[1];
            bool used[90] = {false};
            int64_t common = 0;
            for (int64_t i = 0; i + n <= h->count; i++)
                for (int64_t j = 0; j + n <= r->count; j++)
                    if (!used[j] && memcmp(h->at + i, r->at + j, (size_t)n * sizeof *h->at) == 0) {
                        used[j] = true;
                        common++;
                        break;
                    }
            heed__matches m = heed__pair_matches(&p, n);
            assert_int_equal(m.common, common);
            assert_int_equal(m.hypothesis, h->count < n ? 0 : h->count - n + 1);
            assert_int_equal(m.reference, r->count < n ? 0 : r->count - n + 1);
        }
    }
    assert_false(heed__pair_failed(&p));
    heed__pair_deinit(&p);
}

/* Catches the compound split off by one: as perl does it, on bytes and without overlap. */
static void compounds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t words;
    } cases[] = {
        {"a-b", 3},        {"ab-cd-ef", 5}, {"a-b-c", 3}, {"a-\xc3\xb6-c", 5},
        {"a -b c- d", 4},  {"a--b", 3},     {"-a-", 1},   {"\xc3\xa4-\xc3\xb6-\xc3\xbc", 5},
        {"a-\xc2\xa0", 3}, {"a-\tb", 2},    {"-", 1},
    };
    for (int64_t i = 0; i < LENGTH(cases); i++) {
        heed_bleu_options o = {.tokenize = HEED_TOKENIZE_MULTI_BLEU, .compound_split = true};
        if (words(o, cases[i].text) != cases[i].words)
            fail_msg("'%s': %d words, expected %d", cases[i].text, (int)words(o, cases[i].text),
                     (int)cases[i].words);
    }
}

/* Catches smoothing in multi-bleu's mode, and spaces beyond ASCII taken for spaces there. */
static void tokenized(void **state)
{
    (void)state;
    const char *h = "a b c x y z", *r = "a b c d e f";
    heed_bleu_options o = {.tokenize = HEED_TOKENIZE_MULTI_BLEU};
    assert_true(bleu(o, h, r) == 0);
    o.tokenize = HEED_TOKENIZE_NONE;
    assert_true(bleu(o, h, r) > 10);
    o.smooth = HEED_SMOOTH_NONE;
    assert_true(bleu(o, h, r) == 0);
    assert_int_equal(words(o, "a\xc2\xa0\x62 c\x1c\x64"), 4);
    o.tokenize = HEED_TOKENIZE_MULTI_BLEU;
    assert_int_equal(words(o, "a\xc2\xa0\x62 c\x1c\x64"), 2);
}

/* Catches a crash or a silent difference on bytes that are no UTF-8: one U+FFFD for each longest
 * beginning of a character, as Python's errors="replace". */
static void broken_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int64_t replaced;
    } cases[] = {
        {"\xff", 1},         {"\x80\x80", 2},     {"\xc3", 1},     {"\xc0\xaf", 2},
        {"\xe2\x82", 1},     {"\xed\xa0\x80", 3}, {"\xf0\x9f", 1}, {"\xf4\x90\x80\x80", 4},
        {"\xe0\x80\x80", 3}, {"\xf0\x9f\x98", 1}, {"\xfe\xc3", 2},
    };
    for (int64_t i = 0; i < LENGTH(cases); i++) {
        char broken[64], mended[64];
        snprintf(broken, sizeof broken, "ab%scd", cases[i].bytes);
        strcpy(mended, "ab");
        for (int64_t k = 0; k < cases[i].replaced; k++)
            strcat(mended, "\xef\xbf\xbd");
        strcat(mended, "cd");
        assert_int_equal(words((heed_bleu_options){.tokenize = HEED_TOKENIZE_CHAR}, broken),
                         4 + cases[i].replaced);
        assert_true(fabs(chrf((heed_chrf_options){0}, broken, mended) - 100) < CLOSE);
        assert_true(ter((heed_ter_options){.normalized = true}, broken, mended) == 0);
        for (int t = HEED_TOKENIZE_13A; t <= HEED_TOKENIZE_MULTI_BLEU; t++)
            words((heed_bleu_options){.tokenize = (heed_tokenize)t, .lowercase = true}, broken);
    }
}

/* Catches scores of nothing that are not numbers, and empty sides that count. */
static void empty_sides(void **state)
{
    (void)state;
    assert_true(bleu((heed_bleu_options){0}, "", "") == 0);
    assert_true(bleu((heed_bleu_options){0}, "", "a b") == 0);
    assert_true(bleu((heed_bleu_options){0}, "a b", "") == 0);
    assert_true(chrf((heed_chrf_options){0}, "", "") == 0);
    assert_true(chrf((heed_chrf_options){.word_order = 2}, "a b", " ") == 0);
    assert_true(ter((heed_ter_options){0}, "", "") == 0);
    assert_true(ter((heed_ter_options){0}, "a b", " ") == 100);
    assert_true(ter((heed_ter_options){0}, "", "a b") == 100);
}

/* Catches texts that scripts compare and that would change unseen. */
static void signatures(void **state)
{
    (void)state;
    char text[256], expected[256];
    heed_bleu_options b = {0};
    snprintf(expected, sizeof expected,
             "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed-%s", heed_version());
    assert_string_equal(heed_bleu_signature(&b, text, sizeof text), expected);
    b = (heed_bleu_options){.tokenize = HEED_TOKENIZE_MULTI_BLEU,
                            .lowercase = true,
                            .compound_split = true,
                            .smooth = HEED_SMOOTH_EXP,
                            .effective_order = true};
    snprintf(expected, sizeof expected,
             "nrefs:1|case:lc|eff:yes|tok:multi-bleu|compounds:split|smooth:none|version:heed-%s",
             heed_version());
    assert_string_equal(heed_bleu_signature(&b, text, sizeof text), expected);
    snprintf(expected, sizeof expected,
             "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:heed-%s", heed_version());
    assert_string_equal(
        heed_chrf_signature(&(heed_chrf_options){.word_order = 2}, text, sizeof text), expected);
    snprintf(expected, sizeof expected,
             "nrefs:1|case:mixed|eff:yes|nc:4|nw:0|space:yes|beta:1|version:heed-%s",
             heed_version());
    assert_string_equal(
        heed_chrf_signature(&(heed_chrf_options){.char_order = 4, .beta = 1, .whitespace = true},
                            text, sizeof text),
        expected);
    snprintf(expected, sizeof expected,
             "nrefs:1|case:lc|tok:tercom|norm:yes|punct:no|asian:no|version:heed-%s",
             heed_version());
    assert_string_equal(
        heed_ter_signature(&(heed_ter_options){.normalized = true, .no_punctuation = true}, text,
                           sizeof text),
        expected);
    assert_string_equal(heed_bleu_signature(&b, text, 8), "nrefs:1"); /* cut, not overrun */
}

/* Catches wrong arguments that pass or crash, and texts that do not say what was wrong. */
static void refused(void **state)
{
    (void)state;
    const char *lines[] = {"a", NULL};
    heed_bleu_result b;
    heed_bootstrap r;
    double score;
    heed_error err = {0};
    assert_int_equal(heed_bleu(&(heed_bleu_options){0}, lines, lines, 0, &b, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "bleu: 0 sentences, expected at least 1");
    err = (heed_error){0};
    assert_int_equal(heed_ter(&(heed_ter_options){0}, lines, lines, 2, &score, &err),
                     HEED_ARGUMENT);
    assert_string_equal(err.text, "ter: hypothesis 2 is NULL, expected text");
    err = (heed_error){0};
    assert_int_equal(
        heed_chrf(&(heed_chrf_options){.char_order = 99}, lines, lines, 1, &score, &err),
        HEED_ARGUMENT);
    assert_string_equal(err.text, "chrf: orders are 99 and 0, beta is 0; expected orders of at "
                                  "most 32 and beta not below 0");
    err = (heed_error){0};
    assert_int_equal(
        heed_bleu_bootstrap(&(heed_bleu_options){0}, lines, lines, lines, 1, 0, 1, &r, &err),
        HEED_ARGUMENT);
    assert_string_equal(err.text, "bleu: 0 resamples of 1 pairs, expected at least 1 of each");
}

/* One of the calls with an allocator that fails; a long line makes every buffer grow. */
static heed_status call(int which, const heed_allocator *a, const char *const *h,
                        const char *const *r)
{
    heed_bleu_options b = {.allocator = a, .lowercase = true, .compound_split = true};
    heed_chrf_options c = {.allocator = a, .word_order = 2};
    heed_ter_options t = {.allocator = a, .normalized = true};
    heed_bleu_result result;
    heed_bootstrap compared;
    double score;
    switch (which) {
    case 0:
        return heed_bleu(&b, h, r, 2, &result, NULL);
    case 1:
        return heed_chrf(&c, h, r, 2, &score, NULL);
    case 2:
        return heed_ter(&t, h, r, 2, &score, NULL);
    default:
        return heed_ter_bootstrap(&t, h, r, r, 2, 3, 1, &compared, NULL);
    }
}

/* Catches a leak, a crash or a wrong score when memory runs out anywhere. */
static void memory_runs_out(void **state)
{
    (void)state;
    char text[2][2000] = {"", ""};
    for (int i = 0; i < 30; i++) {
        sprintf(text[0] + strlen(text[0]), "w%d-a-rather-long-word-that-fills-much-memory, ", i);
        sprintf(text[1] + strlen(text[1]), "w%d-a-rather-long-word-that-fills-much-memory. ",
                (i + 9) % 30);
    }
    const char *h[] = {"a b", text[0]}, *r[] = {"b a", text[1]};
    for (int which = 0; which < 4; which++) {
        heed_status status = HEED_MEMORY;
        int n = 0;
        while (status) {
            struct failing c = {.fail_at = ++n};
            heed_allocator a = failing_allocator(&c);
            status = call(which, &a, h, r);
            assert_true(status == HEED_MEMORY || (status == HEED_OK && c.calls < n));
            assert_int_equal(c.held, 0);
        }
        assert_true(n > 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perfect_and_hopeless),
        cmocka_unit_test(sides_change_places),
        cmocka_unit_test(n_grams_against_naive),
        cmocka_unit_test(compounds),
        cmocka_unit_test(tokenized),
        cmocka_unit_test(broken_bytes),
        cmocka_unit_test(empty_sides),
        cmocka_unit_test(signatures),
        cmocka_unit_test(refused),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
