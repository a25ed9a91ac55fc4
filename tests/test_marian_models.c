/* test_marian_models.c: Marian's models with made-up weights, in every file they come in, against
 * Marian's definitions in float64 (marian_golden.py). */
#include <heed/engine.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "marian_golden.h"
#include "spm_model.h"
#include "temp_folder.h"

#include "marian_files.h"

#define TOLERANCE 1e-5 /* fp32 of numbers around 1 through four layers */

static const int32_t source[] = {4, 3, 2}, fed[] = {0, 2, 6, 3}, wanted[] = {2, 6, 3, 0};

/* ▁a and ten more pieces. */
static void write_vocabulary(const char *name)
{
    static struct bytes b;
    b.size = 0;
    put_piece(&b, "</s>", 0, CONTROL);
    put_piece(&b, "<unk>", 0, UNKNOWN);
    for (int i = 2; i < MARIAN_V; i++) {
        char text[8];
        snprintf(text, sizeof text, "%s%c", i % 2 ? "" : "\xe2\x96\x81", 'a' + i);
        put_piece(&b, text, (float)-i, NORMAL);
    }
    put_specs(&b, 1, NULL, 0);
    write_plain(in_folder(name), (const char *)b.at, b.size);
}

static void check(const double *expected, double tolerance)
{
    heed_error err = {0};
    heed_real got[4];
    assert_true(heed_found_is(folder));
    heed_engine *e = heed_engine_open(folder, NULL, &err);
    if (!e)
        fail_msg("%s", err.text);
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, &err);
    const heed_tokens tokens = {source, 3};
    const heed_extension x = {.tokens = {fed, 4}, .wanted = wanted, .log_p = got};
    if (heed_session_add(s, &tokens, 1, &err) || heed_session_extend(s, &x, 1, NULL, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 4; i++)
        if (!(fabs((double)got[i] - expected[i]) < tolerance))
            fail_msg("log P of token %d is %.7f, expected %.7f", i, (double)got[i], expected[i]);
    heed_session_free(s);
    heed_engine_free(e);
}

static void clear_folder(void)
{
    assert_int_equal(remove_folder(NULL), 0);
    assert_int_equal(make_folder(NULL), 0);
}

/* Catches matrices that are not turned, Marian's positions, start and epsilon, norms of another
 * place, the first layer called 0; a layout that gives another model. */
static void layouts(void **state)
{
    static const struct {
        bool ssru, pre;
        const double *expected;
    } forms[] = {{false, false, marian_self}, {true, false, marian_ssru}, {true, true, marian_pre}};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int npz = 0; npz < 2; npz++) {
            struct marian_model m = {.ssru = forms[i].ssru, .pre = forms[i].pre};
            marian_fill(&m);
            (npz ? write_marian_npz : write_marian_bin)(&m, npz ? "model.npz" : "model.bin");
            write_vocabulary("vocab.spm");
            check(forms[i].expected, TOLERANCE);
            clear_folder();
        }
}

/* Catches int8 values read untransposed or with a wrong multiplier, rows that are not rounded by
 * their own multiplier, a shared vocabulary's output with another scale; either program's codes. */
static void int8(void **state)
{
    (void)state;
    for (int fork = 0; fork < 2; fork++) {
        struct marian_model m = {.ssru = true, .int8 = true, .fork = fork};
        marian_fill(&m);
        write_marian_bin(&m, "model.ende.intgemm.alphas.bin");
        write_vocabulary("vocab.ende.spm");
        check(marian_int8, TOLERANCE);
        clear_folder();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(layouts, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(int8, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("models of Marian", tests, NULL, NULL);
}
