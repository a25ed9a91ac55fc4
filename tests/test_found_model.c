/* test_found_model.c: models of other programs computed as they are found: a model of heed's
 * written as CTranslate2's, versions 2 and 6, gives the same answers; with DATA=dir also the
 * real ones of dir/weights/ct2-aren, held against CTranslate2's own numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "temp_folder.h"

#include "ct2_files.h"

/* A model against its files of two versions. */
static void check_ct2(bool zero_start)
{
    static const int32_t target[] = {3, 2, 5};
    heed_model *m = small_model(zero_start);
    heed_error err = {0};
    heed_engine *own = heed_engine_new(m, NULL, &err);
    assert_non_null(own);
    const heed_tokens source = {source_ids, 4};
    double expected[4], found[4];
    log_p(own, &source, target, 4, expected);
    for (int version = 2; version <= 6; version += 4) {
        write_ct2(m, version);
        assert_true(heed_found_is(folder));
        heed_engine *e = heed_engine_open(folder, NULL, &err);
        if (!e)
            fail_msg("%s", err.text);
        assert_int_equal(heed_engine_configuration(e)->ids.source.eos, -1);
        log_p(e, &source, target, 4, found);
        for (int i = 0; i < 4; i++) /* the same numbers, but for the file's 32 bits */
            assert_true(fabs(found[i] - expected[i]) < 1e-6);
        heed_engine_free(e);
    }
    heed_engine_free(own);
    heed_model_free(m);
}

/* Catches a tensor in another's place, a matrix not turned, other positions, another activation or
 * number of heads, special tokens of heed's own vocabularies, another start than Marian's in a
 * model that was made from one of its. */
static void ct2_as_found(void **state)
{
    (void)state;
    check_ct2(false);
    check_ct2(true);
}

/* Catches a found model that does not translate, or whose unknown words end the program. */
static void ct2_translates(void **state)
{
    (void)state;
    heed_model *m = small_model(false);
    heed_error err = {0};
    write_ct2(m, 6);
    heed_model_free(m);
    heed_translator *tr = heed_translator_open(folder, 1, NULL, &err);
    if (!tr)
        fail_msg("%s", err.text);
    assert_int_equal(heed_vocab_special(heed_translator_source(tr)).unk, 5);
    assert_int_equal(heed_vocab_special(heed_translator_target(tr)).eos, 1);
    assert_string_equal(heed_vocab_piece(heed_translator_target(tr), 6), "<unk>");
    heed_translator_free(tr);
}

/* Catches models that heed does not compute, but opens; and sentences that do not say what is
 * wrong. */
static void refused(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_model *m = small_model(false);
    write_ct2(m, 6);
    heed_model_free(m);
    remove(in_folder("target_vocabulary.txt"));
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "there is no target_vocabulary.txt beside it"));
    write_lines("target_vocabulary.txt", "<s>\n</s>\na\n");
    err = (heed_error){0};
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "it has 3 tokens, expected 7 as in the model, or one less"));
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const char *json = NULL;
    char path[256];
    snprintf(path, sizeof path, "tests/fuzz/llama2c/valid");
    assert_false(heed_found_is(path)); /* its name does not end in .bin */
    assert_true(heed_found_is("tests/fuzz/gguf/valid"));
    err = (heed_error){0};
    assert_int_equal(heed_found_describe("tests/fuzz/gguf/valid", arena, &json, &err), HEED_OK);
    assert_non_null(strstr(json, "\"publisher\": \"llama.cpp\""));
    assert_non_null(strstr(json, "it has no token_embd.weight: a vocabulary alone"));
    heed_arena_free(arena);
}

/* Catches numbers other than CTranslate2's own (its tests, tests/cc/translator_test.cc, and a
 * float64 reading of the files), of all five files. */
static void real_ones(void **state)
{
    (void)state;
    static const struct {
        const char *folder;
        double log_p[7];
    } cases[] = {
        {"v2", {-0.106023, -0.065410, -0.056002, -0.447953, -0.230714, -0.092184, -0.063463}},
        {"v1", {-0.106023, -0.065410, -0.056002, -0.447953, -0.230714, -0.092184, -0.063463}},
        {"v2-i16", {-0.107075, -0.065529, -0.056565, -0.443987, -0.229119, -0.093619, -0.064097}},
        {"v1-i16", {-0.107075, -0.065529, -0.056565, -0.443987, -0.229119, -0.093619, -0.064097}},
        {"v2-i8", {-0.108879, -0.06701, -0.056107, -0.465482, -0.228789, -0.097572, -0.063836}},
    };
    const char *data = getenv("DATA");
    if (!data) {
        print_message("DATA is not set: not compared with CTranslate2's own numbers\n");
        skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[600];
        heed_error err = {0};
        heed_vocab *source, *target;
        heed_tokens in, out;
        double found[7];
        snprintf(path, sizeof path, "%s/weights/ct2-aren/%s", data, cases[i].folder);
        heed_arena *arena = heed_arena_new(NULL, NULL);
        heed_engine *e = heed_engine_open(path, NULL, &err);
        if (!e || heed_vocabs_open(path, NULL, NULL, &source, &target, &err))
            fail_msg("%s", err.text);
        const char *arabic = "آ ت ز م و ن", *latin = "a t z m o n";
        heed_vocab_encode(source, arabic, strlen(arabic), arena, &in, NULL);
        heed_vocab_encode(target, latin, strlen(latin), arena, &out, NULL);
        assert_int_equal(out.count, 6);
        log_p(e, &in, out.id, 7, found);
        for (int k = 0; k < 7; k++)
            assert_true(fabs(found[k] - cases[i].log_p[k]) < 1e-5);
        heed_vocabs_free(source, target);
        heed_engine_free(e);
        heed_arena_free(arena);
    }
}

/* Catches a token other than a float64 reading of stories260K.bin gives (greedy, from BOS):
 * matrices in another order, positions on halves, heads shared otherwise. */
static void real_stories(void **state)
{
    (void)state;
    static const int32_t expected[] = {1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315,
                                       421, 395, 317, 426, 338, 401, 396, 267, 337, 410, 408, 419,
                                       292, 411, 322, 265, 282, 295, 433, 426, 385, 328, 432, 358,
                                       394, 261, 370, 432, 352, 266, 268, 388, 426, 338, 391, 266};
    enum { TOKENS = sizeof expected / sizeof *expected };
    const char *data = getenv("DATA");
    if (!data) {
        print_message("DATA is not set: stories260K is not told\n");
        skip();
    }
    char path[600];
    heed_error err = {0};
    heed_scores scores;
    snprintf(path, sizeof path, "%s/stories260K", data);
    heed_engine *e = heed_engine_open(path, NULL, &err);
    if (!e)
        fail_msg("%s", err.text);
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, &err);
    assert_int_equal(heed_session_add(s, NULL, 1, &err), HEED_OK);
    for (int i = 0; i + 1 < TOKENS; i++) {
        int32_t best = 0;
        if (heed_session_step(s, &expected[i], &scores, &err))
            fail_msg("%s", err.text);
        for (int32_t k = 1; k < scores.columns; k++)
            best = scores.logit[k] > scores.logit[best] ? k : best;
        assert_int_equal(best, expected[i + 1]);
    }
    heed_session_free(s);
    heed_engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ct2_as_found, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(ct2_translates, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refused, make_folder, remove_folder),
        cmocka_unit_test(real_ones),
        cmocka_unit_test(real_stories),
    };
    return cmocka_run_group_tests_name("found model", tests, NULL, NULL);
}
