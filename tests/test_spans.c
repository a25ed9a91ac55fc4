/* test_spans.c: what no translation may change: found, taken out, put back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/protect.h"
#include "text/spans.h"

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

/* The text with its spans in brackets. */
static const char *marked(const char *text)
{
    static char out[4096];
    size_t length = strlen(text), at = 0, n = 0;
    heed__span s;
    for (; heed__span_next(text, length, at, &s); at = s.end)
        n += (size_t)snprintf(out + n, sizeof out - n, "%.*s[%.*s]", (int)(s.begin - at), text + at,
                              (int)(s.end - s.begin), text + s.begin);
    snprintf(out + n, sizeof out - n, "%s", text + at);
    return out;
}

/* Catches spans that are missed or cut short, that swallow the sentence around them, and ordinary
 * text that is taken for one. */
static void finds_spans(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "See [https://example.org/a?b=c#d] now.",
        "See [http://example.org].",
        "(see [http://example.org/a_(b)])",
        "Go to [www.example.org], please.",
        "Write to [jane.doe+x@mail.example.org].",
        "Write to [a@b.de]!",
        "me@home is no address, and @you neither",
        "Hello [%s], you have [%d] messages and [%5.2f] of [%1$s].",
        "[%(name)s] wrote",
        "100 % sure, 50% off, 50%d of it, a % b",
        "Dear [{name}], [{0}] of [{{total}}] in [${HOME}] or [%{user}]",
        "{not closed, { a b }",
        "A [<b>]bold[</b>] word[<br/>] and [<a href=\"x y\">]this[</a>].",
        "1 < 2 and 3 > 2, a<b",
        "Tom [&amp;] Jerry[&#160;]here & there; M&M",
        "Type [`ls -l`] here, but not ` or ``",
        "Good [😀]! [👩‍👩‍👧‍👦🇩🇪] [☀️]",
        "It is [3.5 km] away, [20°C] warm, [1,000 kg], [5m] long, [10 GB].",
        "I have 5 messages, 3 mice, 10 Germans, 3.5",
        "[<ph0>] is a tag like another",
        "",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char plain[1024];
        size_t n = 0;
        for (const char *p = cases[i]; *p; p++)
            if (*p != '[' && *p != ']')
                plain[n++] = *p;
        plain[n] = '\0';
        assert_string_equal(marked(plain), cases[i]);
    }
}

/* Catches places that are not given back, glue that is lost, and spans that vanish with their
 * placeholder. */
static void takes_out_and_puts_back(void **state)
{
    (void)state;
    const char *text = "A <b>bold</b> %s at http://x.org.";
    size_t length = strlen(text);
    heed__protected *span = NULL;
    int64_t spans = 0;
    assert_true(heed__protect(&text, &length, arena, &span, &spans));
    assert_int_equal(spans, 4);
    assert_int_equal(length, strlen("A <ph0> bold <ph0> <ph0> at <ph0>."));
    assert_memory_equal(text, "A <ph0> bold <ph0> <ph0> at <ph0>.", length);
    assert_string_equal(heed__restore("Ein <ph0> fettes <ph1> <ph2> bei <ph3>.", span, 4, arena),
                        "Ein <b>fettes</b> %s bei http://x.org.");
    assert_string_equal(heed__restore("<ph3>: <ph0> F <ph1>", span, 4, arena),
                        "http://x.org: <b>F</b> %s");
    assert_string_equal(heed__restore("", span, 4, arena), "<b> </b> %s http://x.org");
    assert_string_equal(heed__restore("<ph7> <ph", span, 0, arena), "<ph7> <ph");

    const char *plain = "nothing here";
    length = strlen(plain);
    assert_true(heed__protect(&plain, &length, arena, &span, &spans));
    assert_int_equal(spans, 0);
    assert_string_equal(plain, "nothing here");
}

/* Catches a part with two placeholders of one number. */
static void numbers_and_cuts(void **state)
{
    (void)state;
    int32_t id[60];
    for (int i = 0; i < 60; i++)
        id[i] = i % 2 ? HEED_PLACEHOLDER : 20;
    heed_tokens t = {id, 60};
    assert_int_equal(heed__placeholders(&t), 30);
    assert_int_equal(heed__protected_tokens(&t), 2 * HEED_PLACEHOLDERS + 1);
    t.count = heed__protected_tokens(&t);
    assert_int_equal(heed__number_placeholders(&t, arena), HEED_PLACEHOLDERS);
    for (int i = 0; i < 20; i++)
        assert_int_equal(t.id[i], i % 2 ? HEED_PLACEHOLDER + i / 2 : 20);
    assert_int_equal(id[3], HEED_PLACEHOLDER); /* a copy */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_spans),
        cmocka_unit_test(takes_out_and_puts_back),
        cmocka_unit_test(numbers_and_cuts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
