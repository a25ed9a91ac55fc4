/* test_lexicon.c: the translations of a shortlist against IBM model 1 written down once more, with
 * a table of every pair of words in double.  The text has so many pairs that the learner's own
 * table must grow more than once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "temp_folder.h"
#include <heed/heed.h>
#include <math.h>

enum { WORDS = 420, PAIRS = 4000, LENGTH = 8, KEPT = 20, FREQUENT = 30, ITERATIONS = 4 };
enum { FIRST = HEED_PLACEHOLDER + HEED_PLACEHOLDERS, NONE = WORDS };
#define LEAST 1e-4 /* a translation that is less probable is none */

static int source[PAIRS][LENGTH], target[PAIRS][LENGTH]; /* words */

/* Word i means word i; a word of three means nothing. */
static void draw_pairs(void)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 9});
    uint64_t at = 0;
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < LENGTH; k++) {
            source[i][k] = (int)heed_rng_below(&rng, at++, WORDS);
            const int other = (int)heed_rng_below(&rng, at++, WORDS);
            target[i][LENGTH - 1 - k] = heed_rng_below(&rng, at++, 3) ? source[i][k] : other;
        }
}

static void write_words(const char *name, char letter)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs("<unk>\n<s>\n</s>\n", f);
    for (int i = 0; i < HEED_PLACEHOLDERS; i++)
        fprintf(f, "<ph%d>\n", i);
    for (int i = 0; i < WORDS; i++)
        fprintf(f, "%c%d\n", letter, i);
    assert_int_equal(fclose(f), 0);
}

static void write_folder(void)
{
    const heed_model_config c = {
        .encoder_layers = 1,
        .decoder_layers = 1,
        .d = 8,
        .tying = HEED_TIE_NONE,
        .transformer = {.ff = 8, .heads = 1, .residual = true, .norm_eps = 1e-6},
        .longest = 32,
        .source_vocabulary = FIRST + WORDS,
        .target_vocabulary = FIRST + WORDS};
    const heed_text_config text = {.tokens = HEED_WHITESPACE};
    heed_error err = {0};
    assert_int_equal(heed_model_describe(folder, &c, &text, &err), HEED_OK);
    write_words("source.vocab", 's');
    write_words("target.vocab", 't');
    FILE *f = fopen(in_folder("pairs.tsv"), "w");
    assert_non_null(f);
    for (int i = 0; i < PAIRS; i++) {
        for (int k = 0; k < LENGTH; k++)
            fprintf(f, "s%d%c", source[i][k], k + 1 < LENGTH ? ' ' : '\t');
        for (int k = 0; k < LENGTH; k++)
            fprintf(f, "t%d%c", target[i][k], k + 1 < LENGTH ? ' ' : '\n');
    }
    assert_int_equal(fclose(f), 0);
}

/* ---- model 1, Brown et al. 1993 ---- */

static double p[WORDS + 1][WORDS], count[WORDS + 1][WORDS]; /* of t given s, NONE among the s */

static void expect_pair(int i)
{
    for (int k = 0; k < LENGTH; k++) {
        const int t = target[i][k];
        double sum = p[NONE][t];
        for (int j = 0; j < LENGTH; j++)
            sum += p[source[i][j]][t];
        count[NONE][t] += p[NONE][t] / sum;
        for (int j = 0; j < LENGTH; j++)
            count[source[i][j]][t] += p[source[i][j]][t] / sum;
    }
}

static void learn_naively(void)
{
    for (int s = 0; s <= WORDS; s++)
        for (int t = 0; t < WORDS; t++)
            p[s][t] = 1;
    for (int n = 0; n < ITERATIONS; n++) {
        memset(count, 0, sizeof count);
        for (int i = 0; i < PAIRS; i++)
            expect_pair(i);
        for (int s = 0; s <= WORDS; s++) {
            double total = 0;
            for (int t = 0; t < WORDS; t++)
                total += count[s][t];
            for (int t = 0; t < WORDS; t++)
                p[s][t] = total > 0 ? count[s][t] / total : 0;
        }
    }
}

/* ---- comparing ---- */

static const int32_t *numbers(const heed_safetensors *f, const char *name, int64_t *n)
{
    const heed_stored *s = heed_safetensors_find(f, name);
    assert_true(s && s->dtype == HEED_I32 && s->rank == 1);
    *n = s->dim[0];
    return s->data;
}

/* In the same order but for what rounding to float may exchange, and nothing better left out. */
static void check_list(int s, const int32_t *list, int64_t n)
{
    const double off = 1e-3;
    bool there[WORDS] = {false};
    double last = 1;
    for (int64_t i = 0; i < n; i++) {
        const int t = list[i] - FIRST;
        assert_in_range(t, 0, WORDS - 1);
        assert_false(there[t]);
        there[t] = true;
        if (!(p[s][t] <= last * (1 + off) && p[s][t] >= LEAST * (1 - off)))
            fail_msg("word %d: translation %d of %d, p = %g, behind one of %g", s, (int)i, (int)n,
                     p[s][t], last);
        last = p[s][t];
    }
    const double better = n == KEPT ? last * (1 + off) : LEAST * (1 + off);
    for (int t = 0; t < WORDS; t++)
        if (!there[t] && p[s][t] > better)
            fail_msg("word %d lacks its translation %d, p = %g of %g", s, t, p[s][t], better);
    assert_true(n <= KEPT);
}

static void check_frequent(const int32_t *list, int64_t n)
{
    int64_t seen[WORDS] = {0}, last = INT64_MAX;
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < LENGTH; k++)
            seen[target[i][k]]++;
    assert_int_equal(n, FREQUENT + 1);
    assert_int_equal(list[0], HEED_EOS);
    for (int64_t i = 1; i < n; i++) {
        int64_t *here = &seen[list[i] - FIRST];
        assert_true(*here > 0 && *here <= last);
        last = *here;
        *here = 0;
    }
    for (int t = 0; t < WORDS; t++)
        assert_true(seen[t] <= last);
}

/* Catches pairs or counts that are lost, when the table grows and otherwise; a wrong expectation
 * or normaliser; lists of other words than the most probable. */
static void same_as_by_hand(void **state)
{
    (void)state;
    heed_error err = {0};
    draw_pairs();
    write_folder();
    const char *tsv = in_folder("pairs.tsv");
    heed_corpus *c =
        heed_corpus_open(&(heed_corpus_files){.tsv = &tsv, .tsvs = 1}, NULL, NULL, &err);
    assert_non_null(c);
    if (heed_shortlist_train(folder, c, &(heed_shortlist_options){KEPT, FREQUENT}, NULL, &err))
        fail_msg("%s", err.text);
    heed_corpus_free(c);
    learn_naively();
    int64_t together = 0, offsets, tokens, always;
    for (int s = 0; s <= WORDS; s++)
        for (int t = 0; t < WORDS; t++)
            together += count[s][t] > 0;
    assert_true(together > 80000); /* of which 32,768 fit the first table, 65,536 the second */
    heed_safetensors *f = heed_safetensors_open(in_folder("shortlist.safetensors"), NULL, &err);
    assert_non_null(f);
    const int32_t *offset = numbers(f, "offset", &offsets), *token = numbers(f, "token", &tokens);
    const int32_t *frequent = numbers(f, "always", &always);
    assert_int_equal(offsets, FIRST + WORDS + 1);
    assert_int_equal(offset[FIRST + WORDS], tokens);
    for (int s = 0; s < WORDS; s++)
        check_list(s, token + offset[FIRST + s], offset[FIRST + s + 1] - offset[FIRST + s]);
    check_frequent(frequent, always);
    heed_safetensors_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_as_by_hand, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("lexicon", tests, NULL, NULL);
}
