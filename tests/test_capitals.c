/* test_capitals.c: lines in capitals, and their lower case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "text/capitals.h"
#include <string.h>

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

/* Catches abbreviations and signs without case that are taken for shouting, and one small letter,
 * or a span with some, that hides it or does not. */
static void knows_shouting(void **state)
{
    (void)state;
    static const char *const all_caps[] = {"STOP!", "WHERE IS THE STATION?", "ÄRGER ÜBER ÖL",
                                           "SEE http://x.org/a NOW", "ПРИВЕТ"};
    static const char *const calm[] = {
        "",           "USA",          "Stop!", "WHERE IS THE STATIOn?",
        "12345 .,!?", "我看见一只狗", "I AM",  "http://X.ORG/ABC"};
    for (size_t i = 0; i < sizeof all_caps / sizeof *all_caps; i++)
        assert_true(heed__is_all_caps(all_caps[i], strlen(all_caps[i])));
    for (size_t i = 0; i < sizeof calm / sizeof *calm; i++)
        assert_false(heed__is_all_caps(calm[i], strlen(calm[i])));
}

/* Catches letters, sentences or spans that are lost on the way down or up. */
static void quietens_and_shouts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"WHERE IS THE STATION? I'M LATE. AM I?", "Where is the station? I'm late. Am I?"},
        {"\"STOP!\" HE SAID, IN %s OR {NAME}.", "\"Stop!\" He said, in %s or {NAME}."},
        {"5 DOGS AND ITS BONE", "5 dogs and its bone"},
        {"ÄRGER ÜBER ÖL", "Ärger über öl"},
        {"ȺȺȺȺ", "Ⱥⱥⱥⱥ"}, /* two bytes become three */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = strlen(cases[i][0]);
        const char *quiet = heed__to_lower(cases[i][0], &length, arena);
        assert_int_equal(length, strlen(cases[i][1]));
        assert_memory_equal(quiet, cases[i][1], length);
    }
    assert_string_equal(heed__to_upper("Groß ist <b>das</b> %s: ärgerlich, www.x.org", arena),
                        "GROSS IST <b>DAS</b> %s: ÄRGERLICH, www.x.org");
    assert_string_equal(heed__to_upper("", arena), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(knows_shouting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quietens_and_shouts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
