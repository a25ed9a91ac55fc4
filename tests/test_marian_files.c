/* test_marian_files.c: what lies beside Marian's models: vocab.yml and the lexical shortlist; with
 * DATA=dir also real ones (dir/weights). */
#include "files/lex.h"
#include "files/vocab_yml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

static unsigned char bytes[1 << 23];

/* A file, also a .gz one. */
static size_t slurp(const char *path)
{
    gzFile f = gzopen(path, "rb");
    if (!f)
        fail_msg("there is no '%s'", path);
    const int n = gzread(f, bytes, sizeof bytes);
    gzclose(f);
    assert_true(n >= 0);
    return (size_t)n;
}

/* Catches quotes, escapes and pairs of lines that are read as plain pieces, or skipped. */
static void yml(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t id;
    } expected[] = {{"</s>", 0},
                    {"<unk>", 1},
                    {"!", 2},
                    {"!\\\"", 3},
                    {"'", 4},
                    {"$", 5},
                    {"\\\"", 6},
                    {"\xc2\x84", 7},
                    {"\xc2\x85  ", 8},
                    {",\"", 9},
                    {"}\\", 10},
                    {"a:b", 11},
                    {"\xe2\x96\x81\n", 20},
                    {"plain", 21}};
    heed__yml_piece *piece;
    size_t count;
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const size_t n = slurp("tests/fuzz/yml/valid");
    if (heed__yml_read("v", (const char *)bytes, n, arena, &piece, &count, &err))
        fail_msg("%s", err.text);
    assert_int_equal(count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(piece[i].text, expected[i].text);
        assert_int_equal(piece[i].id, expected[i].id);
    }
    heed_arena_free(arena);
}

/* Catches ids of another piece, and a checksum that leaves out the last half word. */
static void lex(void **state)
{
    (void)state;
    heed__lex l;
    heed_error err = {0};
    size_t n = slurp("tests/fuzz/lex/valid");
    if (heed__lex_open(&l, "l", bytes, n, 4, 100, &err))
        fail_msg("%s", err.text);
    assert_int_equal(l.first, 3);
    assert_int_equal(l.best, 2);
    assert_int_equal(l.entries, 6);
    assert_int_equal(heed__lex_offset(&l, 2), 3);
    assert_int_equal(heed__lex_id(&l, heed__lex_offset(&l, 3)), 7);
    n = slurp("tests/fuzz/lex/valid_odd");
    assert_int_equal(heed__lex_open(&l, "l", bytes, n, 0, 100, &err), HEED_OK);
}

/* Catches broken files that open, or a sentence that does not say what is wrong. */
static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *says;
    } cases[] = {
        {"yml/broken_quote", "line 1 has a quote that does not end"},
        {"yml/broken_escape", "line 1 has an escape that YAML does not have"},
        {"yml/broken_id", "line 1 has no id"},
        {"yml/broken_twice", "'a' and 'b' both have id 1"},
        {"yml/broken_question", "expected ': id' behind '? piece'"},
        {"yml/broken_empty", "has an empty piece"},
        {"yml/broken_no_id", "expected 'piece: id'"},
        {"lex/broken_checksum", "its checksum is wrong"},
        {"lex/broken_magic", "it is no shortlist of Bergamot's"},
        {"lex/broken_id", "source piece 0 has target id 500, expected ascending ids below 100"},
        {"lex/broken_order", "source piece 0 has target id 1"},
        {"lex/broken_cut", "which 2 offsets and 2 ids do not make"},
        {"lex/broken_short", "it is no shortlist"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[128];
        heed_error err = {0};
        heed__lex l;
        heed__yml_piece *piece;
        size_t count;
        heed_arena *arena = heed_arena_new(NULL, NULL);
        snprintf(path, sizeof path, "tests/fuzz/%s", cases[i].file);
        const size_t n = slurp(path);
        const heed_status status =
            *cases[i].file == 'y'
                ? heed__yml_read("v", (const char *)bytes, n, arena, &piece, &count, &err)
                : heed__lex_open(&l, "l", bytes, n, 0, 100, &err);
        assert_int_equal(status, HEED_FORMAT);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
        heed_arena_free(arena);
    }
    heed__lex l;
    heed_error err = {0};
    const size_t n = slurp("tests/fuzz/lex/valid");
    assert_int_equal(heed__lex_open(&l, "l", bytes, n, 7, 100, &err), HEED_FORMAT);
    assert_non_null(strstr(err.text, "it has 4 source pieces, expected 7"));
}

/* Catches the same on real files: CTranslate2's awkward vocab.yml with what it must give, and
 * Firefox's shortlist of 2021. */
static void real_ones(void **state)
{
    (void)state;
    const char *data = getenv("DATA");
    if (!data) {
        print_message("DATA is not set: no real vocab.yml and shortlist\n");
        skip();
    }
    char path[600], expected[4096];
    heed_error err = {0};
    heed__yml_piece *piece;
    size_t count;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    snprintf(path, sizeof path, "%s/weights/ct2-aren/marian-vocab/vocab.expected.txt", data);
    const size_t wanted = slurp(path);
    memcpy(expected, bytes, wanted);
    snprintf(path, sizeof path, "%s/weights/ct2-aren/marian-vocab/vocab.yml", data);
    size_t n = slurp(path), at = 0;
    if (heed__yml_read("v", (const char *)bytes, n, arena, &piece, &count, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++) {
        assert_true(at + piece[i].length < wanted);
        assert_memory_equal(expected + at, piece[i].text, piece[i].length);
        at += piece[i].length + 1;
    }
    assert_int_equal(at, wanted);
    heed_arena_free(arena);
    heed__lex l;
    snprintf(path, sizeof path, "%s/weights/firefox-ende-2021/lex.50.50.ende.s2t.bin.gz", data);
    n = slurp(path);
    if (heed__lex_open(&l, "lex", bytes, n, 32000, 32000, &err))
        fail_msg("%s", err.text);
    assert_int_equal(l.entries, 701609);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yml),
        cmocka_unit_test(lex),
        cmocka_unit_test(refused),
        cmocka_unit_test(real_ones),
    };
    return cmocka_run_group_tests_name("marian files", tests, NULL, NULL);
}
