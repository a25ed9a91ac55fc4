/* test_align.c: from attention between pieces to pairs of words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/align.h"
#include "folder.h"
#include "spm_model.h"

enum { FIRST = HEED_PLACEHOLDER + HEED_PLACEHOLDERS };

static heed_arena *arena;
static heed_vocab *pieces, *joined; /* SentencePiece; words of which some go on in the next */

/* Their pieces, in order from FIRST. */
static const char *const spm[] = {"▁the", "▁hou", "se", "▁is", "▁", "good", "好", "人"};
static const char *const words[] = {"das", "Hau@@", "s", "ist", "gut"};
enum { THE, HOU, SE, IS, SPACE, GOOD, HAO, REN };
enum { DAS, HAU, S, IST, GUT };
#define SPM(i) (FIRST + (i))

static int set_up(void **state)
{
    heed_error err = {0};
    static struct bytes model;
    if (make_folder(state))
        return -1;
    put_specials(&model);
    for (size_t i = 0; i < sizeof spm / sizeof *spm; i++)
        put_piece(&model, spm[i], -1, NORMAL);
    put_specs(&model, 1, NULL, 0);
    write_plain(in_folder("v.spm"), model.at, model.size);
    FILE *f = fopen(in_folder("v"), "w");
    fputs("<unk>\n<s>\n</s>\n", f);
    for (int i = 0; i < HEED_PLACEHOLDERS; i++)
        fprintf(f, "<ph%d>\n", i);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fprintf(f, "%s\n", words[i]);
    fclose(f);
    pieces = heed_vocab_open(in_folder("v.spm"), NULL, NULL, &err);
    joined = pieces ? heed_vocab_open(in_folder("v"), "@@", NULL, &err) : NULL;
    arena = heed_arena_new(NULL, &err);
    if (err.status)
        print_error("%s\n", err.text);
    return err.status;
}

static int tear_down(void **state)
{
    heed_arena_free(arena);
    heed_vocab_free(joined);
    heed_vocab_free(pieces);
    return remove_folder(state);
}

static const char *aligned(heed__side source, heed__side target, const heed_real *weight,
                           int64_t ld)
{
    heed__alignment a;
    heed_error err = {0};
    if (heed__align(&source, &target, weight, ld, arena, &a, &err))
        fail_msg("%s", err.text);
    const char *text = heed__pharaoh(&a, 1, arena, &err);
    assert_non_null(text);
    return text;
}

#define SIDE(v, ...)                                                                               \
    ((heed__side){.vocab = v,                                                                      \
                  .tokens = {(const int32_t[]){__VA_ARGS__},                                       \
                             (int64_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))}})

/* Catches pieces taken for words, weights of a word's pieces that are not added up, EOS that takes
 * part, on either side, and a leading dimension that is ignored. */
static void test_words(void **state)
{
    (void)state;
    /* the house is </s>  ->  das Haus ist </s> */
    heed__side source = SIDE(pieces, SPM(THE), SPM(HOU), SPM(SE), SPM(IS), HEED_EOS);
    heed__side target = SIDE(joined, SPM(DAS), SPM(HAU), SPM(S), SPM(IST), HEED_EOS);
    static const heed_real weight[5][6] = {
        {0.4f, 0.1f, 0.1f, 0.1f, 0.3f, 9}, /* das: the */
        {0.4f, 0.2f, 0.3f, 0.1f, 0, 9},    /* Haus: no piece of house alone, but both together */
        {0.35f, 0.3f, 0.05f, 0.3f, 0, 9},  /* would be `the` */
        {0.05f, 0, 0, 0.1f, 0.85f, 9},     /* ist: EOS, and of the words `is` */
        {1, 0, 0, 0, 0, 9},                /* EOS is no word */
    };
    assert_string_equal(aligned(source, target, weight[0], 6), "0-0 1-1 2-2");
    source.tokens.count = target.tokens.count = 4; /* without EOS */
    assert_string_equal(aligned(source, target, weight[0], 6), "0-0 1-1 2-2");
}

/* Catches a space that is a piece of its own, scripts without spaces, and equals that do not go to
 * the first. */
static void test_where_words_begin(void **state)
{
    (void)state;
    heed__side source = SIDE(pieces, SPM(SPACE), SPM(GOOD), SPM(HAO), SPM(REN));
    heed__side target = SIDE(joined, SPM(GUT), SPM(GUT), SPM(IST));
    static const heed_real weight[3][4] = {
        {0.3f, 0.3f, 0.4f, 0}, {0, 0.1f, 0.4f, 0.5f}, {0.25f, 0, 0.25f, 0.25f}};
    assert_string_equal(aligned(source, target, weight[0], 4), "0-0 2-1 0-2");
}

/* Catches numbers that are those of the text with placeholders: tags belong to the word that they
 * are glued to, and a span may have several words. */
static void test_spans(void **state)
{
    (void)state;
    enum { PH = HEED_PLACEHOLDER };
    static const heed__protected span[] = {
        {"<b>", 3, false, true}, {"</b>", 4, true, false}, {"3.5 km", 6, false, false}};
    /* 3.5 km the <b>house</b> is  ->  das 3.5 km ist */
    heed__side source = SIDE(pieces, SPM(SPACE), PH + 2, SPM(THE), SPM(SPACE), PH, SPM(HOU),
                             SPM(SE), SPM(SPACE), PH + 1, SPM(IS));
    heed__side target = SIDE(joined, SPM(DAS), PH + 2, SPM(IST));
    source.span = target.span = span;
    source.spans = target.spans = 3;
    static const heed_real weight[3][10] = {
        {0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, {[9] = 1}};
    assert_string_equal(aligned(source, target, weight[0], 10), "2-0 0-1 4-3");
    static const heed_real tag[3][10] = {{[8] = 1}, {[6] = 1}, {[4] = 1}};
    assert_string_equal(aligned(source, target, tag[0], 10), "3-0 3-1 3-3");
}

/* Catches sides with nothing in them, and parts of a line whose words are counted anew. */
static void test_parts(void **state)
{
    (void)state;
    heed__side source = SIDE(pieces, SPM(THE), SPM(IS)), target = SIDE(joined, SPM(DAS), SPM(IST));
    heed__side nothing = SIDE(pieces, HEED_EOS);
    static const heed_real weight[2][2] = {{0.1f, 0.9f}, {0.8f, 0.2f}};
    assert_string_equal(aligned(source, target, weight[0], 2), "1-0 0-1");
    assert_string_equal(aligned(nothing, target, weight[0], 1), "");
    assert_string_equal(aligned(source, nothing, weight[0], 2), "");
    heed__alignment part[3];
    heed_error err = {0};
    assert_int_equal(heed__align(&source, &target, weight[0], 2, arena, &part[0], &err), HEED_OK);
    assert_int_equal(heed__align(&nothing, &target, weight[0], 1, arena, &part[1], &err), HEED_OK);
    part[2] = part[0];
    assert_string_equal(heed__pharaoh(part, 3, arena, &err), "1-0 0-1 3-4 2-5");
    assert_string_equal(heed__pharaoh(part, 0, arena, &err), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_where_words_begin),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
