/* test_split.c: cutting long texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "text/utf8.h"

#include <heed/data.h>

static heed_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = heed_arena_new(NULL, NULL);
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    heed_arena_free(arena);
    return 0;
}

/* The parts, joined by '|'. */
static const char *split(const char *text, size_t max_bytes)
{
    static char out[2048];
    const size_t *end = NULL;
    int64_t parts = heed_split_sentences(text, strlen(text), max_bytes, arena, &end);
    assert_in_range(parts, 1, 1000);
    size_t n = 0, at = 0;
    for (int64_t i = 0; i < parts; i++) {
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%.*s", i ? "|" : "", (int)(end[i] - at),
                              text + at);
        at = end[i];
    }
    assert_int_equal(at, strlen(text));
    return out;
}

/* Catches sentences cut in two, at abbreviations, initials, ordinals and dots inside; and sentence
 * ends not seen.  Each text is cut once, at its sentence end ('|'), because both halves fit. */
static void sentence_ends(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "A first one. |And a second one.",
        "Is it? |Yes, it is.",
        "Stop that now! |\"No,\" he said.",
        "He said \"no.\" |She said yes to him.",
        "„Ja, das ist so.“ |Dann gingen sie heim.",
        "« C'est vrai. » |Elle est partie.",
        "Er ging. |»Ja«, sagte sie.",
        "(That was all.) |[Then it began.]",
        "Well... |Then nothing happened.",
        "Na gut … |Dann eben nicht mehr.",
        "It was in 1984. |The year was cold.",
        "¿Quién es? |¿Y dónde está?",
        "Really?! |That is not so good.",
        "Wir sahen Dr. Meier und Mr. Li. |Dann kam z.B. Anna.",
        "Am 3. Oktober war es kalt. |Es gab am 24. Dezember Schnee.",
        "The U.S. Army and J. R. Smith met vs. Prof. Li. |It rained there for 3.5 hours.",
        "Das sind ca. 30 Stück, usw. bzw. nichts. |Vgl. Abb. 3 und Kap. 4 dazu.",
        "e.g. this one stays whole. |I.e. this one is the other.",
        "他来了。|她走了。",
        "你好吗？|我很好！",
        "「いいね。」|そうだ。",
        "完了。 |Next one.",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        const char *bar = strchr(cases[i], '|');
        size_t first = (size_t)(bar - cases[i]), second = strlen(bar + 1);
        snprintf(text, sizeof text, "%.*s%s", (int)first, cases[i], bar + 1);
        assert_string_equal(split(text, first > second ? first : second), cases[i]);
    }
}

/* Catches parts that are too long where there is a way, and one that is cut without need. */
static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t most;
        const char *parts;
    } cases[] = {
        {"", 10, ""},
        {"", 0, ""},
        {"One. Two. Three.", 16, "One. Two. Three."},
        {"One. Two. Three.", 15, "One. Two. |Three."},
        {"One. Two. Three.", 9, "One. |Two. |Three."}, /* "One. Two. " has 10 */
        {"One. Two. Three.", 5, "One. |Two. |Three|."},
        {"no end here at all", 10, "no end |here at |all"},
        {"lower. case goes on. and on", 14, "lower. case |goes on. and |on"},
        {"abcdefgh", 3, "abc|def|gh"},
        {"äöüß", 3, "ä|ö|ü|ß"}, /* two bytes each */
        {"äöüß", 1, "ä|ö|ü|ß"},
        {"äöüß", 0, "ä|ö|ü|ß"},
        {"xa\xcc\x88"
         "b",
         3, "x|a\xcc\x88|b"}, /* an accent stays with its letter */
        {"a\xcc\x88\xcc\x88\xcc\x88", 4, "a\xcc\x88|\xcc\x88\xcc\x88"}, /* unless it cannot */
        {"\xff\xff\xff", 2, "\xff\xff|\xff"}, /* bytes, if it is no text */
        {"a    b", 2, "a |  | b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(split(cases[i].text, cases[i].most), cases[i].parts) != 0)
            fail_msg("'%s' at %zu: found '%s', expected '%s'", cases[i].text, cases[i].most,
                     split(cases[i].text, cases[i].most), cases[i].parts);
}

/* Catches text lost or characters cut at any size, and parts above it. */
static void any_size(void **state)
{
    (void)state;
    static const char text[] =
        "Dr. Ä. sah „sie“. 他来了。她😀走了！ Und dann? \"Ja.\" e\xcc\x81t\xc3\xa9 "
        "…  und so weiter, usw. Am 3. Mai.";
    for (size_t most = 1; most < sizeof text; most++) {
        const size_t *end;
        heed_arena_reset(arena);
        int64_t parts = heed_split_sentences(text, sizeof text - 1, most, arena, &end);
        size_t at = 0;
        for (int64_t i = 0; i < parts; i++) {
            assert_true(end[i] > at);
            assert_true(heed_utf8_valid(text + at, end[i] - at, NULL));
            assert_true(end[i] - at <= (most < 4 ? 4 : most));
            at = end[i];
        }
        assert_int_equal(at, sizeof text - 1);
    }
}

/* Catches a crash when memory is short. */
static void memory_runs_out(void **state)
{
    (void)state;
    for (int n = 1; n < 4; n++) {
        struct failing c = {.fail_at = n};
        heed_allocator a = failing_allocator(&c);
        heed_arena *small = heed_arena_new(&a, NULL);
        const size_t *end;
        if (small)
            assert_int_equal(heed_split_sentences("a b", 3, 1, small, &end), n < 3 ? 0 : 3);
        heed_arena_free(small);
        assert_int_equal(c.held, 0);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(sentence_ends), TEST(sizes), TEST(any_size),
                                       TEST(memory_runs_out)};
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
