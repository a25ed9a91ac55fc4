/* test_examples.c: files of examples with answers, and the figures of answers. */
#include <heed/encoder.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <zlib.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "fuzz/fuzz_examples.c"
#include "temp_folder.h"

#define LABELS                                                                                     \
    {                                                                                              \
        .kind = HEED_EXAMPLES_LABELS                                                               \
    }
#define PAIRS                                                                                      \
    {                                                                                              \
        .kind = HEED_EXAMPLES_PAIRS                                                                \
    }
#define TAGS                                                                                       \
    {                                                                                              \
        .kind = HEED_EXAMPLES_TAGS                                                                 \
    }

static char warned[1024];

static void take_warning(void *context, heed_log_level level, const char *line)
{
    (void)context;
    if (level == HEED_LOG_WARNING)
        snprintf(warned, sizeof warned, "%s", line);
}

static heed_examples *open_text(const char *name, const char *text, heed_examples_options o,
                                heed_error *err)
{
    const heed_log_sink log = {take_warning, NULL};
    const char *const paths[] = {in_folder(name)};
    warned[0] = '\0';
    write_plain(paths[0], text, strlen(text));
    return heed_examples_open(paths, 1, &o, &log, NULL, err);
}

static heed_examples *opened(const char *name, const char *text, heed_examples_options o)
{
    heed_error err = {0};
    heed_examples *x = open_text(name, text, o, &err);
    if (!x)
        fail_msg("%s", err.text);
    return x;
}

/* The error without the folder: everything behind the name. */
static void refused(const char *name, const char *text, heed_examples_options o,
                    const char *expected)
{
    heed_error err = {0};
    assert_null(open_text(name, text, o, &err));
    const char *at = strstr(err.text, name);
    assert_non_null(at);
    assert_string_equal(at + strlen(name), expected);
}

/* Catches numbers of labels that follow the order of the lines, a second text that is lost, columns
 * that are taken into a text, CRLF and byte order marks in labels. */
static void test_labels(void **state)
{
    (void)state;
    heed_examples *x = opened("a.tsv", "\xef\xbb\xbfred\tone\r\nblue\t two \n\nred\t",
                              (heed_examples_options)LABELS);
    int64_t n;
    const char *const *name = heed_examples_labels(x, &n);
    assert_int_equal(n, 2);
    assert_string_equal(name[0], "blue");
    assert_string_equal(name[1], "red");
    assert_int_equal(heed_examples_count(x), 3);
    assert_false(heed_examples_are_pairs(x));
    assert_string_equal(heed_examples_at(x, 0).text[0], "one");
    assert_int_equal(heed_examples_at(x, 0).label, 1);
    assert_string_equal(heed_examples_at(x, 1).text[0], " two ");
    assert_string_equal(heed_examples_at(x, 2).text[0], "");
    assert_int_equal(heed_examples_at(x, 2).line, 4);
    assert_null(heed_examples_at(x, 0).text[1]);
    heed_examples_free(x);

    x = opened("b.tsv", "yes\ta\tb\t4.5\nno\tc\td\t1\n", (heed_examples_options)LABELS);
    assert_true(heed_examples_are_pairs(x));
    assert_string_equal(heed_examples_at(x, 1).text[1], "d");
    heed_examples_free(x);

    static const char *const known[] = {"no", "maybe", "yes"};
    x = opened("c.tsv", "yes\ta\n", (heed_examples_options){.labels = known, .label_count = 3});
    assert_int_equal(heed_examples_at(x, 0).label, 2);
    heed_examples_free(x);
    refused("c.tsv", "yes\ta\nnever\tb\n",
            (heed_examples_options){.labels = known, .label_count = 3},
            "' line 2: label 'never' was never seen in training, expected one of no, maybe, yes");
}

static void test_wrong_labels(void **state)
{
    (void)state;
    const heed_examples_options o = LABELS;
    refused("w.tsv", "a\tb\nno tab\n", o,
            "' line 2: there is no tab in it, expected label TAB text");
    refused("w.tsv", "a\tb\tc\na\tb\n", o,
            "' line 2: it has two columns, expected label TAB text TAB text as in the first line");
    refused("w.tsv", "a\tb\na\tb\tc\n", o,
            "' line 2: it has three columns, expected label TAB text as in the first line");
    refused("w.tsv", "\tb\n", o, "' line 1: the label is empty");
    refused("w.tsv", "a\t\xff\n", o, "' line 1: byte 3 is not UTF-8");
    refused("w.tsv", "\n\n", o, "': there are no examples in it, expected lines of label TAB text");
}

static void test_pairs(void **state)
{
    (void)state;
    const heed_examples_options o = PAIRS;
    heed_examples *x = opened("p.tsv", "a\tb\nc\td\n", o);
    assert_false(heed_examples_are_scored(x));
    assert_string_equal(heed_examples_at(x, 1).text[1], "d");
    assert_true(isnan(heed_examples_at(x, 1).score));
    heed_examples_free(x);
    x = opened("p.tsv", "2.5\ta\tb\n-1e1\tc\td\tmore\n", o);
    assert_true(heed_examples_are_scored(x));
    assert_true(heed_examples_at(x, 1).score == -10);
    assert_string_equal(heed_examples_at(x, 1).text[1], "d");
    heed_examples_free(x);
    refused("p.tsv", "a\tb\tc\n", o,
            "' line 1: 'a' is not a number, expected score TAB text TAB text");
    refused("p.tsv", "nan\tb\tc\n", o,
            "' line 1: 'nan' is not a number, expected score TAB text TAB text");
    refused("p.tsv", "a\n", o,
            "' line 1: there is no tab in it, expected text TAB text, or score TAB text TAB text");
}

/* Catches the wrong column, sentences that run into each other or end the file unseen, contractions
 * and empty nodes as words, a comment that is a word in plain columns. */
static void test_columns(void **state)
{
    (void)state;
    heed_examples_options o = TAGS;
    int64_t n;
    heed_examples *x = opened("a.conll", "# NN O\nEU NN B-X\n\n\nhere RB O", o);
    assert_int_equal(heed_examples_count(x), 2);
    heed_example e = heed_examples_at(x, 0);
    assert_int_equal(e.words, 2);
    assert_string_equal(e.word[0], "#");
    assert_string_equal(heed_examples_labels(x, &n)[e.tag[1]], "B-X");
    assert_int_equal(heed_examples_at(x, 1).line, 5);
    heed_examples_free(x);
    o.tag_column = "2";
    x = opened("a.conll", "EU\tNN\tB-X\n", o);
    assert_string_equal(heed_examples_labels(x, &n)[0], "NN");
    heed_examples_free(x);

    static const char conllu[] = "# text = this comment has ten words, not nine\n"
                                 "1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
                                 "1\tvamos\tir\tVERB\tV1\t_\t0\troot\t_\t_\n"
                                 "2\tnos\tnosotros\tPRON\tP1\t_\t1\tobj\t_\t_\n"
                                 "2.1\tempty\t_\tVERB\tV9\t_\t_\t_\t_\t_\n\n";
    o.tag_column = NULL;
    x = opened("a.conllu", conllu, o);
    e = heed_examples_at(x, 0);
    assert_int_equal(e.words, 2);
    assert_string_equal(e.word[1], "nos");
    assert_string_equal(heed_examples_labels(x, &n)[e.tag[0]], "VERB");
    assert_int_equal(n, 2);
    heed_examples_free(x);
    o.tag_column = "xpos";
    x = opened("a.conllu", conllu, o);
    assert_string_equal(heed_examples_labels(x, &n)[heed_examples_at(x, 0).tag[0]], "V1");
    heed_examples_free(x);
    o.tag_column = "none";
    x = opened("bare.conll", "one\ntwo\n", o);
    assert_int_equal(heed_examples_at(x, 0).tag[1], -1);
    heed_examples_free(x);
}

static void test_wrong_columns(void **state)
{
    (void)state;
    heed_examples_options o = TAGS;
    refused("w.conll", "a A\nb B C\n", o,
            "' line 2: it has 3 columns, expected 2 as in the lines before");
    refused("w.conll", "a\n", o, "' line 1: it has one column, expected a word and its tag");
    refused("w.conll", "a\t\n", o, "' line 1: the tag is empty");
    refused("w.conllu", "1\ta\n", o, "' line 1: it has 2 columns, expected the 10 of CoNLL-U");
    o.tag_column = "4";
    refused("w.conll", "a A\n", o, "' line 1: it has 2 columns, but the tag is to be in column 4");
    heed_error err = {0};
    o.tag_column = "last";
    assert_null(open_text("w.conll", "a A\n", o, &err));
    assert_string_equal(err.text, "the tag column is 'last', expected a number from 1 to 64, upos "
                                  "or xpos");
    static const char *const known[] = {"A"};
    heed_examples *x = opened("w.conll", "a A\nb B\n",
                              (heed_examples_options){HEED_EXAMPLES_TAGS, NULL, known, 1});
    assert_int_equal(heed_examples_at(x, 0).tag[1], -1);
    assert_non_null(strstr(warned, "line 2: tag 'B' was never seen in training (known: A)"));
    heed_examples_free(x);
}

/* Catches a .gz that is read as it is, and files that are not there. */
static void test_files(void **state)
{
    (void)state;
    const char *const paths[] = {in_folder("z.tsv.gz"), in_folder("absent")};
    gzFile z = gzopen(paths[0], "wb");
    assert_true(gzputs(z, "a\tone\nb\ttwo\n") > 0);
    assert_int_equal(gzclose(z), Z_OK);
    const heed_examples_options o = LABELS;
    heed_error err = {0};
    heed_examples *x = heed_examples_open(paths, 1, &o, NULL, NULL, &err);
    assert_int_equal(heed_examples_count(x), 2);
    heed_examples_free(x);
    assert_null(heed_examples_open(paths, 2, &o, NULL, NULL, &err));
    assert_non_null(strstr(err.text, "absent"));
}

/* Catches a crash or a leak where memory is short, at any call. */
static void test_short_memory(void **state)
{
    (void)state;
    static const char *const text[] = {"yes\ta\tb\nno\tc\td\n", "1\ta\tb\n",
                                       "a O\nb B-x\n\nc I-x\n"};
    for (int kind = 0; kind < 3; kind++) {
        const char *const paths[] = {in_folder("memory")};
        const heed_examples_options o = {.kind = (heed_examples_kind)kind};
        struct failing f = {.fail_at = 0};
        const heed_allocator a = failing_allocator(&f);
        write_plain(paths[0], text[kind], strlen(text[kind]));
        heed_examples *x = heed_examples_open(paths, 1, &o, NULL, &a, NULL);
        assert_non_null(x);
        heed_examples_free(x);
        const int calls = f.calls;
        assert_true(calls > 4 && f.held == 0);
        for (int n = 1; n <= calls; n++) {
            heed_error err = {0};
            f = (struct failing){.fail_at = n};
            assert_null(heed_examples_open(paths, 1, &o, NULL, &a, &err));
            assert_int_equal(err.status, HEED_MEMORY);
            assert_int_equal(f.held, 0);
        }
    }
}

/* What the fuzzer begins with: whole and broken files of every kind. */
static void test_replay(void **state)
{
    (void)state;
    static uint8_t bytes[4096];
    char path[512];
    int files = 0;
    DIR *d = opendir("tests/fuzz/examples");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (*e->d_name == '.')
            continue;
        snprintf(path, sizeof path, "tests/fuzz/examples/%s", e->d_name);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        assert_int_equal(LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof bytes, f)), 0);
        fclose(f);
        files++;
    }
    closedir(d);
    assert_true(files >= 10);
}

/* ---- figures ---- */

static void assert_close(double a, double b)
{
    if (!(fabs(a - b) < 1e-12))
        fail_msg("%.15g is not %.15g", a, b);
}

static void test_label_figures(void **state)
{
    (void)state;
    /* By hand: label 0 is said three times, twice rightly, wanted three times; 2 is never said. */
    static const int32_t wanted[] = {0, 0, 0, 1, 1, 2, -1}, said[] = {0, 0, 1, 1, 0, 1, 1};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_label_figures f;
    assert_int_equal(heed_label_figures_of(wanted, said, 7, 4, arena, &f, NULL), HEED_OK);
    assert_close(f.accuracy, 3.0 / 7);
    assert_close(f.precision[0], 2.0 / 3);
    assert_close(f.recall[0], 2.0 / 3);
    assert_close(f.precision[1], 1.0 / 4);
    assert_close(f.f1[1], 2.0 / 6);
    assert_close(f.f1[2], 0);
    assert_true(isnan(f.f1[3]));
    assert_close(f.macro_f1, (2.0 / 3 + 1.0 / 3 + 0) / 3);
    assert_int_equal(f.confusion[2 * 4 + 1], 1);
    heed_arena_free(arena);
}

/* The cases that tell conlleval from counting tags: I- that begins a span, two spans side by side,
 * one that is too long, another kind in the same place. */
static void test_span_figures(void **state)
{
    (void)state;
    enum { O, BA, IA, BB, IB };
    static const char *const tags[] = {"O", "B-a", "I-a", "B-b", "I-b"};
    static const int32_t wanted[] = {BA, IA, O, BA, BA, O, /* */ IA, O, BB, IB, IB, /* */ BA, -1};
    static const int32_t said[] = {BA, IA, O, BA, IA, O, /* */ BA, O, BB, IB, O, /* */ BB, O};
    static const int64_t length[] = {6, 5, 2};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_span_figures f;
    assert_true(heed_tags_are_spans(tags, 5));
    assert_false(heed_tags_are_spans((const char *const[]){"NOUN", "O"}, 2));
    assert_false(heed_tags_are_spans((const char *const[]){"O"}, 1));
    assert_int_equal(heed_span_figures_of(tags, 5, wanted, said, length, 3, arena, &f, NULL), 0);
    /* wanted: a a a | a b | a ?; said: a a | a b | b; right: the first a, and the I-a that
     * begins */
    assert_int_equal(f.all.wanted, 7);
    assert_int_equal(f.all.said, 5);
    assert_int_equal(f.all.right, 2);
    assert_close(f.all.f1, 4.0 / 12);
    assert_int_equal(f.kinds, 2);
    assert_string_equal(f.kind[0].name, "a");
    assert_int_equal(f.kind[0].right, 2);
    assert_close(f.kind[0].precision, 2.0 / 3);
    assert_close(f.kind[1].f1, 0);
    heed_arena_free(arena);
}

/* By hand, from the ranks 1 2.5 2.5 4 5 and 2 1 3.5 3.5 5: 7.25 / 9.5. */
static void test_spearman(void **state)
{
    (void)state;
    static const double a[] = {1, 2, 2, 4, 5}, b[] = {2, 1, 3, 3, 9}, same[] = {1, 1, 1, 1, 1};
    double rho;
    assert_int_equal(heed_spearman(a, b, 5, &rho, NULL), HEED_OK);
    assert_close(rho, 0.7631578947368421);
    assert_int_equal(heed_spearman(a, same, 5, &rho, NULL), HEED_OK);
    assert_true(isnan(rho));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),        cmocka_unit_test(test_wrong_labels),
        cmocka_unit_test(test_pairs),         cmocka_unit_test(test_columns),
        cmocka_unit_test(test_wrong_columns), cmocka_unit_test(test_files),
        cmocka_unit_test(test_label_figures), cmocka_unit_test(test_span_figures),
        cmocka_unit_test(test_spearman),      cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_replay),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
