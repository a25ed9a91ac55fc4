/* test_any_line.c: lines of every script, of controls, of broken bytes, of a hundred thousand
 * bytes, of nothing: one out for each one in.  HEED_TEST_LINES says how many (3000). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "failing_allocator.h"
#include "text/utf8.h"
#include "translate/translator.h"
#include "vocab_help.h"

enum { LONG_LINE = 100000 };

static heed_vocab *vocab;
static heed_model *model;

/* A vocabulary of a few languages, and a model that has learned nothing. */
static int set_up(void **state)
{
    static const char *const lines[] = {
        "the quick brown fox jumps over the lazy dog, again and again.",
        "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
        "съешь же ещё этих мягких французских булок, да выпей чаю",
        "いろはにほへとちりぬるを 我们在这里",
        "نص حكيم له سر قاطع وذو شأن عظيم",
        "다람쥐 헌 쳇바퀴에 타고파 0123456789",
        NULL,
    };
    heed_error err = {0};
    if (make_folder(state))
        return -1;
    heed_vocab_options o = {.kind = HEED_BPE, .size = 190};
    if (learn(&o, lines, in_folder("v.spm"), NULL, &err) == HEED_OK)
        vocab = heed_vocab_open(in_folder("v.spm"), NULL, NULL, &err);
    int64_t n = vocab ? heed_vocab_size(vocab) : 1;
    heed_model_config config = {.arch = HEED_ARCH_TRANSFORMER,
                                .encoder_layers = 1,
                                .decoder_layers = 1,
                                .d = 8,
                                .tying = HEED_TIE_ALL,
                                .transformer = {.ff = 8,
                                                .heads = 1,
                                                .activation = HEED_RELU,
                                                .ff_bias = true,
                                                .norm_eps = 1e-6,
                                                .embedding_scale = true,
                                                .residual = true,
                                                .scale_scores = true,
                                                .positions = HEED_POSITIONS_SINUSOID},
                                .longest = 200,
                                .source_vocabulary = n,
                                .target_vocabulary = n};
    if (vocab)
        model = heed_model_new(&config, 5, NULL, &err);
    if (err.status)
        print_error("%s\n", err.text);
    return err.status;
}

static int tear_down(void **state)
{
    heed_model_free(model);
    heed_vocab_free(vocab);
    return remove_folder(state);
}

/* ---- lines ---- */

static char *put_character(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* What may not be changed, what only looks like it, and what stands around it. */
static const char *const fragments[] = {
    "http://", "x.org/a", "www.", "jane@",  "x.org",    "%s",   "%1$",
    "%",       "{name}",  "{",    "}}",     "<b>",      "</b>", "<",
    ">",       "&amp;",   "&",    "`code`", "`",        "😀",    "👩‍👩‍👧",
    "3.5 km",  "1,000",   "1987", "12",     "555-1234", "-",    "Reykjavik",
    "Tom",     "THE DOG", "ÜBER", "dog's",  ".",        "! ",   "? ",
    "“",       "…",       " ",    "  ",     "\t",       "\xC3", "ß"};

/* What line i is made of, by turns: one block of 128 characters anywhere in Unicode, any
 * characters, letters, controls and spaces, bytes, fragments, nothing. */
static size_t write_line(char *text, int64_t i)
{
    heed_rng_key key = {.seed = 9, .step = (uint64_t)i};
    heed_rng rng = heed_rng_stream(&key);
    uint64_t at = 0;
#define BELOW(n) heed_rng_below(&rng, at++, n)
    int64_t kind = BELOW(9), most = BELOW(4) ? 60 : 400, length = BELOW(most);
    const bool is_long = i % 500 == 250;
    if (is_long)
        kind = i / 500 % 8;
    int32_t block = (int32_t)(BELOW(0x110000 / 128) * 128);
    char *to = text;
    for (int64_t k = 0; (is_long ? to - text < LONG_LINE : k < length) && kind < 8; k++) {
        if (kind == 7) {
            const char *some = fragments[BELOW(sizeof fragments / sizeof *fragments)];
            to = stpcpy(to, some);
            continue;
        }
        int64_t c = kind < 3    ? block + BELOW(128)
                    : kind == 3 ? BELOW(0x110000)
                    : kind == 4 ? (BELOW(5) ? 'a' + BELOW(26) : ' ')
                    : kind == 5 ? (BELOW(2) ? 1 + BELOW(32) : 0x7F + BELOW(34))
                                : 1 + BELOW(255);
        if (c == 0 || c == '\n' || (c >= 0xD800 && c < 0xE000))
            c = ' ';
        if (kind == 6)
            *to++ = (char)c;
        else
            to = put_character(to, (int32_t)c);
    }
#undef BELOW
    *to = '\0';
    return (size_t)(to - text);
}

struct stream {
    int64_t count, read, done, broken;
    bool protects;
    char *text;
};

static heed_status next_line(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    struct stream *s = context;
    (void)wait, (void)err;
    if (s->read == s->count)
        return HEED_OK;
    size_t n = write_line(s->text, s->read);
    s->broken += !heed_utf8_valid(s->text, n, NULL);
    *line = (heed_source_line){.text = s->text, .tag = (void *)(intptr_t)s->read++};
    return HEED_OK;
}

static heed_status done_line(void *context, const heed_source_line *line, const heed_translation *t,
                             heed_error *err)
{
    struct stream *s = context;
    (void)err;
    assert_int_equal((intptr_t)line->tag, s->done++);
    assert_non_null(t->text);
    assert_null(strpbrk(t->text, "\r\n"));
    assert_true(heed_utf8_valid(t->text, strlen(t->text), NULL));
    assert_false(s->protects && strstr(t->text, "<ph"));
    s->broken -= t->repaired;
    return HEED_OK;
}

/* Catches a line that is lost, doubled, refused or moved, and memory that is; then the same where
 * lines are cut, spans, numbers and names protected, and capitals made small. */
static void test_as_many_out_as_in(void **state)
{
    (void)state;
    const char *asked = getenv("HEED_TEST_LINES");
    const heed_text_config trained = {
        .tokens = HEED_BPE, .trained_length = 30, .trained_longest = 60, .protects = true};
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_error err = {0};
    assert_int_equal(heed_text_save(in_folder("names.txt"), "Tom\n", &err), HEED_OK);
    heed__names *names = heed__names_open(in_folder("names.txt"), NULL, &err);
    assert_non_null(names);
    for (int round = 1; round <= 3; round++) {
        const int workers = round < 3 ? round : 2;
        struct stream s = {.count = asked ? atoll(asked) : 3000,
                           .protects = round == 3,
                           .text = malloc(2 * LONG_LINE)};
        heed_line_stream stream = {&s, next_line, done_line};
        heed_search_options o = {.beam = workers, .n_best = 1, .extra_length = 9, .max_length = 3};
        heed_translator *tr = heed_translator_new(model, vocab, vocab, 1, &a, &err);
        assert_non_null(tr);
        if (s.protects)
            heed__translator_trained(tr, &trained, names);
        if (heed_translate_stream(tr, &o, &(heed_stream_options){.workers = workers}, &stream,
                                  &err))
            fail_msg("line %lld: %s", (long long)s.read, err.text);
        assert_int_equal(s.done, s.count);
        assert_int_equal(s.broken, 0);
        heed_translator_free(tr);
        free(s.text);
        assert_int_equal(f.held, 0);
    }
    heed__names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_many_out_as_in)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
