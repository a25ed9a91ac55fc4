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
        heed_arena *arena = heed_arena_new(NULL, NULL);
        const char *json = NULL;
        assert_int_equal(heed_found_describe(folder, arena, &json, NULL), HEED_OK);
        assert_non_null(strstr(json, "\"int8_columns\": 251")); /* 11 + 2 (52 + 68) */
        assert_non_null(strstr(json, "\"wide_columns\": "));
        heed_arena_free(arena);
        clear_folder();
    }
}

/* Source piece 3 may be 7 or 9, piece 4 may be 6, EOS 5; 0 and 1 are on every list. */
static void write_lex(const char *name)
{
    static const uint64_t offset[MARIAN_V + 1] = {0, 1, 1, 1, 3, 4, 4, 4, 4, 4, 4, 4};
    static const uint32_t id[] = {5, 7, 9, 6};
    static struct marian_out o;
    const uint64_t head[] = {2, 2, MARIAN_V + 1, 4};
    uint64_t h = 0;
    o.size = 0;
    out_number(&o, 0, 8);
    out_number(&o, 0, 8);
    for (int i = 0; i < 4; i++)
        out_number(&o, head[i], 8);
    for (int i = 0; i <= MARIAN_V; i++)
        out_number(&o, offset[i], 8);
    for (int i = 0; i < 4; i++)
        out_number(&o, id[i], 4);
    for (size_t at = 16; at + 8 <= o.size; at += 8) {
        uint64_t v;
        memcpy(&v, o.at + at, 8);
        h ^= v + 0x9e3779b9u + (h << 6) + (h >> 2);
    }
    const uint64_t magic = 0xF11A48D5013417F5u;
    memcpy(o.at, &magic, 8);
    memcpy(o.at + 8, &h, 8);
    write_out(&o, name);
}

/* Catches a shortlist beside a model that is not found, that lacks what EOS may become or the
 * source's own pieces, or is not filled to a multiple of 8. */
static void shortlist(void **state)
{
    (void)state;
    struct marian_model m = {.ssru = true};
    heed_error err = {0};
    heed_scores scores;
    marian_fill(&m);
    write_marian_bin(&m, "model.bin");
    write_vocabulary("vocab.spm");
    write_lex("lex.50.50.ende.s2t.bin");
    heed_engine *e = heed_engine_open(folder, NULL, &err);
    if (!e || heed_engine_open_shortlist(e, folder, &err))
        fail_msg("%s", err.text);
    heed_session *s = heed_session_new(e, &(heed_session_options){1, true}, NULL, &err);
    const heed_tokens three = {source + 1, 1}, two = {source, 2};
    assert_int_equal(heed_session_add(s, &three, 1, &err), HEED_OK);
    assert_int_equal(heed_session_step(s, fed, &scores, &err), HEED_OK);
    static const int32_t expected[] = {0, 1, 2, 3, 4, 5, 7, 9}; /* 2 and 4 fill it */
    assert_int_equal(scores.choice->count, 8);
    assert_memory_equal(scores.choice->id, expected, sizeof expected);
    heed_session_clear(s);
    assert_int_equal(heed_session_add(s, &two, 1, &err), HEED_OK);
    assert_int_equal(heed_session_step(s, fed, &scores, &err), HEED_OK);
    static const int32_t both[] = {0, 1, 3, 4, 5, 6, 7, 9};
    assert_int_equal(scores.choice->count, 8);
    assert_memory_equal(scores.choice->id, both, sizeof both);
    heed_session_free(s);
    heed_engine_free(e);
}

/* Catches files packed by gzip that do not open, and damaged ones that do. */
static void gzip(void **state)
{
    (void)state;
    static struct marian_out o;
    struct marian_model m = {.ssru = true};
    marian_fill(&m);
    write_marian_bin(&m, "plain");
    write_vocabulary("vocab.spm");
    FILE *f = fopen(in_folder("plain"), "rb");
    o.size = fread(o.at, 1, sizeof o.at, f);
    fclose(f);
    gzFile z = gzopen(in_folder("model.ende.intgemm.alphas.bin.gz"), "wb");
    assert_int_equal(gzwrite(z, o.at, (unsigned)o.size), o.size);
    gzclose(z);
    check(marian_ssru, TOLERANCE);
    f = fopen(in_folder("model.ende.intgemm.alphas.bin.gz"), "rb");
    o.size = fread(o.at, 1, sizeof o.at, f) / 2;
    fclose(f);
    write_out(&o, "model.ende.intgemm.alphas.bin.gz");
    heed_error err = {0};
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "it is packed by gzip, and damaged"));
}

/* Catches models that heed does not compute and opens, and messages that do not say why. */
static void refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"dec-cell: ssru", "dec-cell: gruu", "its dec-cell is 'gruu', heed computes 'ssru'"},
        {"autoreg: rnn", "autoreg: aan", "its transformer-decoder-autoreg is 'aan'"},
        {"type: transformer\n", "type: s2s\n", "its type is 's2s', heed computes 'transformer'"},
        {"postprocess: dan", "postprocess: dar", "'', 'ar', '' and ''"},
        {"activation: relu", "activation: mish", "its transformer-ffn-activation is 'mish'"},
        {"heads: 2", "heads: 3", "--heads 3 does not divide --d 8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct marian_model m = {.ssru = true};
        heed_error err = {0};
        marian_fill(&m);
        char *at = strstr(m.yml, cases[i].from);
        assert_non_null(at);
        memmove(at + strlen(cases[i].to), at + strlen(cases[i].from),
                strlen(at + strlen(cases[i].from)) + 1);
        memcpy(at, cases[i].to, strlen(cases[i].to));
        write_marian_bin(&m, "model.bin");
        write_vocabulary("vocab.spm");
        assert_null(heed_engine_open(folder, NULL, &err));
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
    }
    remove(in_folder("vocab.spm"));
    struct marian_model m = {.ssru = true};
    heed_error err = {0};
    marian_fill(&m);
    write_marian_bin(&m, "model.bin");
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "there is no vocabulary beside it"));
}

/* Catches OPUS-MT's archives, whose pieces are of two SentencePiece models and whose ids of a
 * vocab.yml, that do not open, or pieces with SentencePiece's ids. */
static void opus(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_vocab *v[2];
    heed_tokens t;
    struct marian_model m = {.ssru = false};
    char yml[256] = "";
    marian_fill(&m);
    write_marian_npz(&m, "opus.npz");
    write_vocabulary("source.spm");
    write_vocabulary("target.spm");
    for (int i = 0; i < MARIAN_V; i++) /* letters in the other order */
        if (i < 2)
            strcat(yml, i ? "<unk>: 1\n" : "</s>: 0\n");
        else
            snprintf(yml + strlen(yml), 32, "\"%s%c\": %d\n", i % 2 ? "" : "\xe2\x96\x81", 'a' + i,
                     MARIAN_V + 1 - i);
    write_plain(in_folder("opus.vocab.yml"), yml, strlen(yml));
    check(marian_self, TOLERANCE);
    if (heed_vocabs_open(folder, NULL, NULL, &v[0], &v[1], &err))
        fail_msg("%s", err.text);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    assert_int_equal(heed_vocab_encode(v[0], "cd", 2, arena, &t, &err), HEED_OK);
    static const int32_t ids[] = {MARIAN_V - 1, MARIAN_V - 2};
    assert_int_equal(t.count, 2);
    assert_memory_equal(t.id, ids, sizeof ids);
    heed_arena_free(arena);
    heed_vocabs_free(v[0], v[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(layouts, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(int8, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(shortlist, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(gzip, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(opus, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refused, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("models of Marian", tests, NULL, NULL);
}
