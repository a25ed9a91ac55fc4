/* test_vocab.c: vocabularies of text that is already tokenised, and UTF-8 itself. */
#include "text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "vocab_help.h"

#define SPECIALS                                                                                   \
    "<unk>\n<s>\n</s>\n<ph0>\n<ph1>\n<ph2>\n<ph3>\n<ph4>\n<ph5>\n<ph6>\n<ph7>\n<ph8>\n<ph9>\n"

static heed_arena *arena;

static int set_up(void **state)
{
    arena = heed_arena_new(NULL, NULL);
    return arena ? make_folder(state) : -1;
}

static int tear_down(void **state)
{
    heed_arena_free(arena);
    return remove_folder(state);
}

/* Catches broken UTF-8 let through (overlong, surrogate, cut off, too large), and whole text
 * refused; at every distance from the start, because eight ASCII bytes are checked at once. */
static void utf8(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "a",
                                       "\xc3\xa4",
                                       "\xe2\x82\xac",
                                       "\xf0\x9f\x98\x80",
                                       "\xef\xbf\xbf",
                                       "\xf4\x8f\xbf\xbf",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80"};
    static const char *const bad[] = {"\x80",
                                      "\xc3",
                                      "\xc3(",
                                      "\xc0\xaf",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xe2\x82",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf0\x9f\x98",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xfe"};
    char text[64];
    for (int before = 0; before < 20; before++) {
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
            int n = snprintf(text, sizeof text, "%.*s%s", before, "aaaaaaaaaaaaaaaaaaaa", good[i]);
            assert_true(heed_utf8_valid(text, (size_t)n, NULL));
        }
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            int n = snprintf(text, sizeof text, "%.*s%s", before, "aaaaaaaaaaaaaaaaaaaa", bad[i]);
            size_t at = 99;
            assert_false(heed_utf8_valid(text, (size_t)n, &at));
            assert_int_equal(at, before);
        }
    }
    int32_t c;
    assert_int_equal(heed__utf8_last("a\xe2\x82\xac", 4, &c), 3);
    assert_int_equal(c, 0x20AC);
    assert_int_equal(heed__utf8_last("", 0, &c), 0);
}

/* Catches words counted or ordered wrongly, specials missing, and limits off by one. */
static void words_are_learned(void **state)
{
    (void)state;
    static const char *const lines[] = {"b a  c", "a \t b </s> <ph3>", "", "a z", NULL};
    static const struct {
        int64_t size, min_count;
        const char *file, *log;
    } cases[] = {
        {0, 0, SPECIALS "a\nb\nc\nz\n", ""},
        {0, 2, SPECIALS "a\nb\n", ""},
        {15, 0, SPECIALS "a\nb\n", ""},
        {100, 0, SPECIALS "a\nb\nc\nz\n",
         "the text supports 17 pieces, so that is the vocabulary instead of 100\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_vocab_options o = {
            .kind = HEED_WHITESPACE, .size = cases[i].size, .min_count = cases[i].min_count};
        struct logged logged = {""};
        char found[256];
        assert_int_equal(learn(&o, lines, in_folder("v"), &logged, NULL), HEED_OK);
        FILE *f = fopen(in_folder("v"), "rb");
        assert_non_null(f);
        found[fread(found, 1, sizeof found - 1, f)] = '\0';
        fclose(f);
        assert_string_equal(found, cases[i].file);
        assert_string_equal(logged.text, cases[i].log);
    }
}

/* Catches lines that are not UTF-8 learned from or passed over in silence; a text without a word,
 * or without one that is frequent enough; a size that leaves no room; and a file written in spite
 * of it. */
static void learning_is_refused(void **state)
{
    (void)state;
    heed_vocab_options o = {.kind = HEED_WHITESPACE};
    struct logged logged = {""};
    heed_error err = {0};
    static const char *const some[] = {"a", "b\xff", "c", "\xc3", NULL};
    assert_int_equal(learn(&o, some, in_folder("v"), &logged, &err), HEED_OK);
    assert_string_equal(logged.text,
                        "2 of 4 lines are not UTF-8 and were skipped (the first is line 2)\n");
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    assert_int_equal(heed_vocab_size(v), 15);
    heed_vocab_free(v);
    static const char *const none[] = {"", "  ", NULL};
    assert_int_equal(learn(&o, none, in_folder("w"), NULL, &err), HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "there is not a word in the text"));
    err = (heed_error){0};
    o.min_count = 2;
    assert_int_equal(learn(&o, some, in_folder("w"), NULL, &err), HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "the most frequent word was seen 1 times, expected at least "
                                     "2 (min_count)"));
    err = (heed_error){0};
    o.size = 13;
    assert_int_equal(learn(&o, some, in_folder("w"), NULL, &err), HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "size is 13, expected at least 14 (13 pieces are special)"));
    assert_int_equal(files_in(folder), 1);
}

/* Catches lines drawn unevenly, too many or too few of them, or another draw for the same seed. */
static void lines_are_drawn(void **state)
{
    (void)state;
    enum { LINES = 50, MOST = 10, SEEDS = 400 };
    char text[LINES][16];
    const char *lines[LINES + 1] = {NULL};
    for (int i = 0; i < LINES; i++) {
        snprintf(text[i], sizeof text[i], "w%d", i);
        lines[i] = text[i];
    }
    int seen[LINES] = {0};
    for (int seed = 0; seed < SEEDS; seed++) {
        heed_vocab_options o = {
            .kind = HEED_WHITESPACE, .max_lines = MOST, .seed = (uint64_t)seed / 2};
        assert_int_equal(learn(&o, lines, in_folder("v"), NULL, NULL), HEED_OK);
        heed_vocab *v = open_vocab(in_folder("v"), NULL);
        assert_int_equal(heed_vocab_size(v), 13 + MOST);
        for (int i = 0; i < LINES; i++)
            seen[i] += heed_vocab_find(v, text[i]) != HEED_UNK;
        heed_vocab_free(v);
    }
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(seen[i] % 2, 0);     /* each seed came twice */
        assert_in_range(seen[i] / 2, 16, 64); /* 40 expected, deviation 5.7 */
    }
}

/* Catches tokens lost or found wrongly, and a text that can end a sentence by naming a special. */
static void words_there_and_back(void **state)
{
    (void)state;
    write_plain(in_folder("v"), SPECIALS "a\nb@@\nc\n\xc3\xa4\n@@\n",
                strlen(SPECIALS "a\nb@@\nc\n\xc3\xa4\n@@\n"));
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    heed_vocab *joined = open_vocab(in_folder("v"), "@@ ");
    static const struct {
        const char *text, *plain, *joined;
        int32_t id[6];
        int count;
        int32_t word[6];
    } cases[] = {
        {"", "", "", {0}, 0, {0}},
        {"  \t ", "", "", {0}, 0, {0}},
        {" a  c\t\xc3\xa4", "a c \xc3\xa4", "a c \xc3\xa4", {13, 15, 16}, 3, {0, 1, 2}},
        {"b@@ b@@ a c", "b@@ b@@ a c", "bba c", {14, 14, 13, 15}, 4, {0, 0, 0, 1}},
        {"a b@@", "a b@@", "a b", {13, 14}, 2, {0, 1}},
        {"b@@ q c", "b@@ \xe2\x81\x87 c", "b\xe2\x81\x87 c", {14, 0, 15}, 3, {0, 0, 1}},
        {"</s> <ph4>", "\xe2\x81\x87 <ph4>", "\xe2\x81\x87 <ph4>", {0, 7}, 2, {0, 1}},
        {"<s> <unk>", "\xe2\x81\x87 \xe2\x81\x87", "\xe2\x81\x87 \xe2\x81\x87", {0, 0}, 2, {0, 1}},
        {"@@ a", "@@ a", "a", {17, 13}, 2, {0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_tokens t = encode(v, cases[i].text, arena);
        assert_int_equal(t.count, cases[i].count);
        if (t.count)
            assert_memory_equal(t.id, cases[i].id, sizeof *t.id * (size_t)t.count);
        assert_string_equal(decode(v, t, arena), cases[i].plain);
        assert_string_equal(decode(joined, t, arena), cases[i].joined);
        int32_t word[6];
        int64_t words = heed_vocab_words(joined, t.id, t.count, word);
        assert_int_equal(words, t.count ? cases[i].word[t.count - 1] + 1 : 0);
        assert_memory_equal(word, cases[i].word, sizeof *word * (size_t)t.count);
    }
    static const int32_t ids[] = {HEED_BOS, 14, 15, HEED_EOS};
    assert_string_equal(decode(joined, (heed_tokens){ids, 4}, arena), "bc");
    int32_t word[4];
    assert_int_equal(heed_vocab_words(joined, ids, 4, word), 3);
    assert_memory_equal(word, ((int32_t[]){0, 1, 1, 2}), sizeof word);
    heed_vocab_free(joined);
    heed_vocab_free(v);
}

/* Catches ids and texts from outside that are believed. */
static void wrong_arguments(void **state)
{
    (void)state;
    write_plain(in_folder("v"), SPECIALS "a\n", strlen(SPECIALS "a\n"));
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    heed_error err = {0};
    heed_tokens t;
    const char *text;
    assert_string_equal(heed_vocab_piece(v, -1), "<unk>");
    assert_string_equal(heed_vocab_piece(v, 14), "<unk>");
    assert_string_equal(heed_vocab_piece(v, 13), "a");
    assert_int_equal(heed_vocab_find(v, "a"), 13);
    assert_int_equal(heed_vocab_find(v, "x"), HEED_UNK);
    static const int32_t ids[] = {13, 14};
    assert_int_equal(heed_vocab_decode(v, ids, 2, arena, &text, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot decode: id 14 at position 1, expected 0 to 13");
    err = (heed_error){0};
    assert_int_equal(heed_vocab_encode(v, "a\xff", 2, arena, &t, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot encode a text: byte 2 of 2 is not UTF-8");
    heed_vocab_free(v);
    err = (heed_error){0};
    assert_null(heed_vocab_open(in_folder("v"), " ", NULL, &err));
    assert_string_equal(err.text, "the joiner is ' ', expected what a piece ends in, as in '@@ '");
}

/* Catches a file that is not a vocabulary taken for one, or refused without saying why. */
static void files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size; /* 0: strlen */
        const char *error;
    } cases[] = {
        {"", 0, "': it is empty"},
        {"hello\n", 0, "': line 1 is 'hello', expected '<unk>'"},
        {"<unk>\n</s>\n", 0, "': line 2 is '</s>', expected '<s>'"},
        {"<unk>\n<s>\n", 0, "': it ends after 2 lines, expected '</s>' next"},
        {SPECIALS "a\n\nb\n", 0, "': line 15 is empty, expected one piece a line"},
        {SPECIALS "a\nb\na\n", 0, "': line 16 is 'a', which line 14 was before"},
        {SPECIALS "a b\n", 0, "': line 14 has a space in it, expected one piece a line"},
        {SPECIALS "a\xff\n", 0, "': line 14, byte 2 is not UTF-8"},
        {"\x7f"
         "ELF\x02\x01\x01\0\0\0",
         10,
         "': it is neither a SentencePiece model, a tokenizer.json or vocab.json, a GGUF file, "
         "llama2.c's tokenizer nor a text with one piece a line"},
    };
    heed_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = cases[i].size ? cases[i].size : strlen(cases[i].bytes);
        const char *text = open_error(in_folder("v"), cases[i].bytes, n, &err);
        if (!strstr(text, cases[i].error))
            fail_msg("found '%s', expected '%s'", text, cases[i].error);
    }
    err = (heed_error){0};
    assert_null(heed_vocab_open(folder, NULL, NULL, &err));
    assert_non_null(strstr(err.text, "Is a directory"));
    err = (heed_error){0};
    assert_null(heed_vocab_open(in_folder("missing"), NULL, NULL, &err));
    assert_non_null(strstr(err.text, "missing': No such file or directory"));
}

/* Catches a leak or a crash when memory runs out while opening. */
static void memory_runs_out(void **state)
{
    (void)state;
    write_plain(in_folder("v"), SPECIALS "a\n", strlen(SPECIALS "a\n"));
    for (int n = 1;; n++) {
        struct failing c = {.fail_at = n};
        heed_allocator a = failing_allocator(&c);
        heed_error err = {0};
        heed_vocab *v = heed_vocab_open(in_folder("v"), "@@", &a, &err);
        assert_int_equal(err.status, v ? HEED_OK : HEED_MEMORY);
        bool opened = v != NULL;
        heed_vocab_free(v);
        assert_int_equal(c.held, 0);
        if (opened)
            break;
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(utf8),
        TEST(words_are_learned),
        TEST(learning_is_refused),
        TEST(lines_are_drawn),
        TEST(words_there_and_back),
        TEST(wrong_arguments),
        TEST(files_are_refused),
        TEST(memory_runs_out),
    };
    return cmocka_run_group_tests_name("vocab", tests, NULL, NULL);
}
