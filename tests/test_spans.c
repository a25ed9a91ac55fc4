/* test_spans.c: what no translation may change: found, taken out, put back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "spm_model.h"
#include "temp_folder.h"
#include "text/spans.h"
#include "translate/align.h"
#include "translate/translator.h"

static heed_arena *arena;
static const heed_special_ids own = HEED_OWN_IDS;

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
    for (; heed__span_next(text, length, at, HEED__ANY_LANGUAGE, &s); at = s.end)
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
        "me@home is no address, and [@you] neither",
        "Hello [%s], you have [%d] messages and [%5.2f] of [%1$s].",
        "[%(name)s] wrote",
        "[100 %] sure, [50%] off, 50%d of it, a % b",
        "50[%%] of [%d] [%%]",
        "no <b\x07> tag",
        "Dear [{name}], [{0}] of [{{total}}] in [${HOME}] or [%{user}]",
        "{not closed, { a b }",
        "A [<b>]bold[</b>] word[<br/>] and [<a href=\"x y\">]this[</a>].",
        "1 < 2 and 3 > 2, a<b",
        "Tom [&amp;] Jerry[&#160;]here & there; [M&M]",
        "Type [`ls -l`] here, but not ` or ``",
        "Good [😀]! [👩‍👩‍👧‍👦🇩🇪] [☀️]",
        "It is [3.5 km] away, [20°C] warm, [1,000 kg], [5m] long, [10 GB].",
        "I have 5 messages, 3 mice, 10 Germans, [3.5]",
        "Call [555-1234], +1 [555-123-4567] or tel:[030-12345] by [2026-11-17].",
        "10-12 people, 3-2, 33-year-old, 12345, 555-1234a, 555-1234-, 1.555-1234, 555-[1234.5]",
        "[12:30]-[14:00], [12:30]-14, 2026-11-[17/18], [1/555]-1234, --555-1234",
        "[<ph0>] is a tag like another",
        "“[%s]” not found, loading [%s]… see “[https://x.org]” or —[www.x.org]—",
        "[HTTPS://x.org/ä]，谢谢 [Www.x.org]。",
        "about [5 km]… [•][jane@x.org]",
        "[€33.58], [$56.70], [£3,000] or [50 EUR] and US[$5], but not $ or EURO",
        "born [28/01/1966], or [28.1.66], left [on May 3, 2024], back [3rd of May], in May 12 came",
        "at [5:30 p.m.] or [3 PM], at [11:31:05] and [12:05 a.m]. I am 3 years old",
        "[1.5] of [1,234.50] is [½] or [1/2] or [1½]; it may 3 times",
        "[m²] and E=[mc²], note[²]; [v2.3.1], [10.0.1], [192.168.0.1], [10.0.0.0/8]",
        "[in the 1990s], the ['90s] or [80s], the [3rd] and [21ST] time; 1990sx, 3rds",
        "[AB-1234] and [COVID-19], [H2O], [C6H12O6], [MP3]; A-LEVEL, T-shirt, A-1a",
        "[file.txt], [src/text/a.c], [/usr/bin/env], [~/a.b], [C:\\a\\b] and/or end.Now either/or",
        "[foo_bar] [camelCase] [GitHub] [std::sort] [main()] [--help-all] -- a_ _b, He said",
        "[@user] and [#tag] in [C++] or [C#], [.NET]; 3# a@ b",
        "[O'Neil] and [O'Neil's] at [AT&T] for [R&D], I'll, o'clock, O'Clock, rock & roll",
        "[**bold**] and [**]very bold[**], 2**3, a ** b",
        "[©] 2024 A [→] B [≤] C",
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

/* Catches links that lose their address, and brackets that are none. */
static void finds_links(void **state)
{
    (void)state;
    assert_string_equal(marked("a [link](url) b"), "a [[link](url)] b");
    assert_string_equal(marked("[two words](http://x.org)."), "[[]two words[](http://x.org)].");
    assert_string_equal(marked("a[1] (b) [c] d"), "a[1] (b) [c] d");
}

static const char *german(const char *text)
{
    static char out[HEED__WRITTEN + 1];
    heed__span s;
    assert_true(heed__span_next(text, strlen(text), 0, HEED__GERMAN, &s));
    const size_t n = heed__span_write(s.kind, HEED__GERMAN, text + s.begin, s.end - s.begin, out);
    assert_int_equal(heed__span_write(s.kind, HEED__OTHER_LANGUAGE, text, 1, out + n), 0);
    out[n] = '\0';
    return out;
}

/* Catches forms of another language that change a digit, and dates that are spans where nobody
 * knows how to write them. */
static void writes_german(void **state)
{
    (void)state;
    assert_string_equal(german("3 May 2024"), "3. Mai 2024");
    assert_string_equal(german("On Dec. 24th"), "Am 24. Dezember");
    assert_string_equal(german("on March 1, 2024"), "am 1. März 2024");
    assert_string_equal(german("5:30 p.m. today"), "17:30");
    assert_string_equal(german("12:05 a.m. today"), "0:05");
    assert_string_equal(german("12 PM"), "12 Uhr");
    assert_string_equal(german("1990s"), "1990er");
    assert_string_equal(german("In the '90s"), "In den '90er-Jahren");
    assert_string_equal(german("3rd"), "3.");
    assert_string_equal(german("€1,234.50"), ""); /* as it stands */
    heed__span s;
    assert_false(heed__span_next("3 May", 5, 0, HEED__OTHER_LANGUAGE, &s));
    assert_int_equal(heed__language_of("models/en-de/"), HEED__GERMAN);
    assert_int_equal(heed__language_of("de"), HEED__OTHER_LANGUAGE);

    /* The point of an ordinal ends the sentence as well. */
    const char *text = "He was 3rd.";
    size_t length = strlen(text);
    heed__protected *span = NULL;
    int64_t spans = 0;
    assert_true(heed__protect(&text, &length, HEED__GERMAN, NULL, NULL, arena, &span, &spans));
    assert_string_equal(heed__restore("Er war <ph0>.", span, 1, arena), "Er war 3.");
    assert_string_equal(heed__protect_again("Er war 3. hier", span, 1, arena), "Er war <ph0> hier");
    assert_string_equal(heed__protect_again("Er war 3rd", span, 1, arena), "Er war <ph0>");
}

/* Catches letters without end that are handed to the model. */
static void finds_unbroken_text(void **state)
{
    (void)state;
    static char text[70000];
    heed__span s;
    memset(text, 'a', sizeof text - 1);
    assert_true(heed__span_next(text, sizeof text - 1, 0, HEED__OTHER_LANGUAGE, &s));
    assert_int_equal(s.end - s.begin, sizeof text - 1);
    assert_false(heed__span_next(text, 40, 0, HEED__OTHER_LANGUAGE, &s));
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
    assert_true(
        heed__protect(&text, &length, HEED__OTHER_LANGUAGE, NULL, NULL, arena, &span, &spans));
    assert_int_equal(spans, 4);
    assert_int_equal(length, strlen("A <ph0> bold <ph0> <ph0> at <ph0>."));
    assert_memory_equal(text, "A <ph0> bold <ph0> <ph0> at <ph0>.", length);
    assert_string_equal(heed__restore("Ein <ph0> fettes <ph1> <ph2> bei <ph3>.", span, 4, arena),
                        "Ein <b>fettes</b> %s bei http://x.org.");
    assert_string_equal(heed__restore("<ph3>: <ph0> F <ph1>", span, 4, arena),
                        "http://x.org: <b>F</b> %s");
    assert_string_equal(heed__restore("", span, 4, arena), "<b> </b> %s http://x.org");
    assert_string_equal(
        heed__protect_again("Ein <b>fettes</b> %s bei http://x.org.", span, 4, arena),
        "Ein <ph0> fettes <ph1> <ph2> bei <ph3>.");
    assert_string_equal(heed__protect_again("<b> </b>", span, 4, arena), "<ph0> <ph1>");
    assert_string_equal(heed__restore("<ph7> <ph", span, 0, arena), "<ph7> <ph");

    /* What closes a sentence is glued to like its last word. */
    const char *closed = "<b>Really?</b>";
    length = strlen(closed);
    assert_true(
        heed__protect(&closed, &length, HEED__OTHER_LANGUAGE, NULL, NULL, arena, &span, &spans));
    assert_memory_equal(closed, "<ph0> Really? <ph0>", length);
    assert_string_equal(heed__restore("<ph0> Wirklich? <ph1>", span, 2, arena), "<b>Wirklich?</b>");

    /* Quotes are no words to be glued to. */
    const char *quoted = "“{name}” is missing";
    length = strlen(quoted);
    assert_true(
        heed__protect(&quoted, &length, HEED__OTHER_LANGUAGE, NULL, NULL, arena, &span, &spans));
    assert_memory_equal(quoted, "“<ph0>” is missing", length);
    assert_string_equal(heed__restore("Datei <ph0> fehlt", span, 1, arena), "Datei {name} fehlt");
    assert_string_equal(heed__protect_again("Nur {name} %s {name}", span, 1, arena),
                        "Nur <ph0> %s {name}");
    assert_int_equal(heed__mark_begin("a <ph0> b", 9, 4), 2);
    assert_int_equal(heed__mark_begin("a <ph0> b", 9, 7), 7);
    assert_int_equal(heed__mark_begin("a <ph", 5, 4), 4);

    const char *plain = "nothing here";
    length = strlen(plain);
    assert_true(
        heed__protect(&plain, &length, HEED__OTHER_LANGUAGE, NULL, NULL, arena, &span, &spans));
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
    assert_int_equal(heed__placeholders(&own, &t), 30);
    assert_int_equal(heed__protected_tokens(&own, &t), 2 * HEED_PLACEHOLDERS + 1);
    t.count = heed__protected_tokens(&own, &t);
    assert_int_equal(heed__number_placeholders(&own, &t, arena), HEED_PLACEHOLDERS);
    for (int i = 0; i < 20; i++)
        assert_int_equal(t.id[i], i % 2 ? HEED_PLACEHOLDER + i / 2 : 20);
    assert_int_equal(id[3], HEED_PLACEHOLDER); /* a copy */
}

/* Catches a line that is cut inside of a placeholder, spans that are numbered over the end of their
 * part, and a sentence that is cut although another end was there. */
static void cuts_between_spans(void **state)
{
    static const char *const pieces[] = {"\xE2\x96\x81", ",", "a", "b", "."};
    static struct bytes model;
    heed_error err = {0};
    assert_int_equal(make_folder(state), 0);
    put_specials(&model);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        put_piece(&model, pieces[i], -1, NORMAL);
    put_specs(&model, 1, NULL, 0);
    write_plain(in_folder("v.spm"), model.at, model.size);
    heed_vocab *v = heed_vocab_open(in_folder("v.spm"), NULL, NULL, &err);
    if (!v)
        fail_msg("%s", err.text);
    for (int64_t longest = 5; longest < 60; longest++) {
        char text[4096] = "";
        size_t n = 0;
        for (int i = 0; i < 100; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "{a%d}%s", i, i % 3 ? "," : ", ab");
        heed__limits limits = {.together = longest, .longest = longest, .protects = true};
        heed__line line;
        assert_int_equal(heed__split_line(v, text, &limits, arena, &line, &err), HEED_OK);
        int seen = 0;
        for (int64_t p = 0; p < line.parts; p++) {
            const heed__part *part = &line.part[p];
            assert_in_range(part->tokens.count, 1, longest);
            assert_int_equal(heed__placeholders(&own, &part->tokens), part->spans);
            for (int64_t i = 0, k = 0; i < part->tokens.count; i++)
                if (heed__is_placeholder(&own, part->tokens.id[i]))
                    assert_int_equal(part->tokens.id[i], HEED_PLACEHOLDER + k++);
            for (int64_t i = 0; i < part->spans; i++, seen++) {
                char expected[16];
                int length = snprintf(expected, sizeof expected, "{a%d}", seen);
                assert_int_equal(part->span[i].length, length);
                assert_memory_equal(part->span[i].text, expected, (size_t)length);
            }
        }
        assert_int_equal(seen, 100);
        heed_arena_reset(arena);
    }
    heed__limits limits = {.together = 100, .longest = 100, .protects = true};
    heed__line line;
    assert_int_equal(heed__split_line(v, "{a} {b} a {c} {d}! {a} a! {a} {b} {c} b {d}!", &limits,
                                      arena, &line, &err),
                     HEED_OK);
    assert_int_equal(line.parts, 2); /* few enough go together */
    assert_int_equal(line.part[0].spans, 5);
    /* Where there is nothing else, there is nothing to translate. */
    assert_int_equal(heed__split_line(v, "<b>{a}</b> -", &limits, arena, &line, &err), HEED_OK);
    assert_int_equal(line.parts, 0);
    assert_string_equal(line.copied, "<b>{a}</b> -");
    assert_int_equal(heed__split_line(v, "{a}\r{b}\n", &limits, arena, &line, &err), HEED_OK);
    assert_string_equal(line.copied, "{a} {b} ");
    assert_string_equal(heed__pharaoh_same(line.copied, arena, &err), "0-0 1-1");
    heed_vocab_free(v);
    remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_spans),
        cmocka_unit_test(finds_links),
        cmocka_unit_test(writes_german),
        cmocka_unit_test(finds_unbroken_text),
        cmocka_unit_test(takes_out_and_puts_back),
        cmocka_unit_test(numbers_and_cuts),
        cmocka_unit_test(cuts_between_spans),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
