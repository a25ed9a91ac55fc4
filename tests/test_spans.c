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
        "50[%%] of [%d] [%%]",
        "no <b\x07> tag",
        "Dear [{name}], [{0}] of [{{total}}] in [${HOME}] or [%{user}]",
        "{not closed, { a b }",
        "A [<b>]bold[</b>] word[<br/>] and [<a href=\"x y\">]this[</a>].",
        "1 < 2 and 3 > 2, a<b",
        "Tom [&amp;] Jerry[&#160;]here & there; M&M",
        "Type [`ls -l`] here, but not ` or ``",
        "Good [😀]! [👩‍👩‍👧‍👦🇩🇪] [☀️]",
        "It is [3.5 km] away, [20°C] warm, [1,000 kg], [5m] long, [10 GB].",
        "I have 5 messages, 3 mice, 10 Germans, 3.5",
        "Call [555-1234], +1 [555-123-4567] or tel:[030-12345] by [2026-11-17].",
        "10-12 people, 3-2, 33-year-old, 12345, 555-1234a, 555-1234-, 1.555-1234, 555-1234.5",
        "12:30-14:00, 12:30-14, 2026-11-17/18, 1/555-1234, --555-1234",
        "[<ph0>] is a tag like another",
        "“[%s]” not found, loading [%s]… see “[https://x.org]” or —[www.x.org]—",
        "[HTTPS://x.org/ä]，谢谢 [Www.x.org]。",
        "about [5 km]… •[jane@x.org]",
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
    assert_true(heed__protect(&text, &length, NULL, NULL, arena, &span, &spans));
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
    assert_true(heed__protect(&closed, &length, NULL, NULL, arena, &span, &spans));
    assert_memory_equal(closed, "<ph0> Really? <ph0>", length);
    assert_string_equal(heed__restore("<ph0> Wirklich? <ph1>", span, 2, arena), "<b>Wirklich?</b>");

    /* Quotes are no words to be glued to. */
    const char *quoted = "“{name}” is missing";
    length = strlen(quoted);
    assert_true(heed__protect(&quoted, &length, NULL, NULL, arena, &span, &spans));
    assert_memory_equal(quoted, "“<ph0>” is missing", length);
    assert_string_equal(heed__restore("Datei <ph0> fehlt", span, 1, arena), "Datei {name} fehlt");
    assert_string_equal(heed__protect_again("Nur {name} %s {name}", span, 1, arena),
                        "Nur <ph0> %s {name}");
    assert_int_equal(heed__mark_begin("a <ph0> b", 9, 4), 2);
    assert_int_equal(heed__mark_begin("a <ph0> b", 9, 7), 7);
    assert_int_equal(heed__mark_begin("a <ph", 5, 4), 4);

    const char *plain = "nothing here";
    length = strlen(plain);
    assert_true(heed__protect(&plain, &length, NULL, NULL, arena, &span, &spans));
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
            n += (size_t)snprintf(text + n, sizeof text - n, "{a%d}%s", i, i % 3 ? "," : ",,ab");
        heed__limits limits = {longest, longest, true, false, NULL};
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
    heed__limits limits = {100, 100, true, false, NULL};
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
        cmocka_unit_test(takes_out_and_puts_back),
        cmocka_unit_test(numbers_and_cuts),
        cmocka_unit_test(cuts_between_spans),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
