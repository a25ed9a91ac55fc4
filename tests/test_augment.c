/* test_augment.c: pairs as users type them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data/augment.h"
#include "temp_folder.h"

#include <ctype.h>

static heed_arena *arena;
static heed_corpus *corpus;

static int set_up(void **state)
{
    static const char *const path[] = {"pairs.tsv"};
    heed_error err = {0};
    if (make_folder(state))
        return -1;
    const char *file = in_folder(path[0]);
    FILE *f = fopen(file, "w");
    if (!f)
        return -1;
    fputs("Yesterday I met Tom in 1989.\tGestern traf ich Tom im Jahre 1989.\n"
          "See http://x.org now.\tSiehe jetzt http://x.org.\n"
          "How big!\tWie groß!\n"
          "Tom saw Tom.\tTom sah Tom.\n"
          "I sleep. In Berlin it rains %s.\tIch schlafe. In Berlin regnet es %s.\n"
          "He says “Lisa” again.\tEr sagt wieder „Lisa“.\n"
          "Click <b>here</b> now.\tJetzt <b>hier</b> klicken.\n",
          f);
    fclose(f);
    heed_corpus_files files = {.tsv = &file, .tsvs = 1};
    corpus = heed_corpus_open(&files, NULL, NULL, &err);
    arena = heed_arena_new(NULL, NULL);
    return corpus && arena ? 0 : -1;
}

static int tear_down(void **state)
{
    heed_arena_free(arena);
    heed_corpus_free(corpus);
    return remove_folder(state);
}

/* Pair i under a seed, as texts that end. */
struct made {
    char source[1024], target[1024];
};

static struct made make(const heed_augment_options *o, int64_t i, uint64_t seed)
{
    struct made m;
    heed_pair p;
    heed_error err = {0};
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    heed_arena_reset(arena);
    if (heed__augment(o, corpus, i, &rng, arena, &p, &err))
        fail_msg("%s", err.text);
    snprintf(m.source, sizeof m.source, "%.*s", (int)p.source_length, p.source);
    snprintf(m.target, sizeof m.target, "%.*s", (int)p.target_length, p.target);
    return m;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

/* Catches pairs whose sides are joined differently, and a pair that does not come first. */
static void joins(void **state)
{
    (void)state;
    const heed_augment_options o = {.join = 1};
    int longest = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct made m = make(&o, 2, seed);
        assert_memory_equal(m.source, "How big! ", 9);
        assert_memory_equal(m.target, "Wie groß! ", 11);
        int toms = count(m.source, "Tom"),
            sentences = 1 + count(m.source, " See ") + count(m.source, " How ") +
                        count(m.source, " Yesterday ") + count(m.source, " Tom saw") +
                        count(m.source, " I sleep") + count(m.source, " He says") +
                        count(m.source, " Click");
        assert_int_equal(count(m.target, "Tom"), toms);
        assert_in_range(sentences, 2, 8);
        longest = sentences > longest ? sentences : longest;
    }
    assert_int_equal(longest, 8);
}

/* Catches placeholders on one side only, a span that is not protected, and words that stand twice,
 * of which nobody knows which is which. */
static void protects(void **state)
{
    (void)state;
    const heed_augment_options o = {.protect = 1};
    bool name = false, number = false, wrapped = false, quoted = false;
    bool first = false, last = false, around = false;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct made m = make(&o, 0, seed);
        for (int k = 0; k < HEED_PLACEHOLDERS; k++) {
            char mark[16];
            snprintf(mark, sizeof mark, "<ph%d>", k);
            assert_in_range(count(m.source, mark), 0, 1);
            assert_int_equal(count(m.source, mark), count(m.target, mark));
        }
        name |= !strstr(m.source, "Tom") && !strstr(m.target, "Tom");
        number |= !strstr(m.source, "1989") && !strstr(m.target, "1989");
        wrapped |= strstr(m.source, "> Tom <") && strstr(m.target, "> Tom <");
        const bool begins = strncmp(m.source, "<ph0> Yesterday", 15) == 0;
        const bool ends = m.source[strlen(m.source) - 1] == '>';
        assert_int_equal(begins, strncmp(m.target, "<ph0> Gestern", 13) == 0);
        assert_int_equal(ends, m.target[strlen(m.target) - 1] == '>');
        first |= begins && !ends;
        last |= ends && !begins;
        around |= begins && ends;
        assert_true(strstr(m.source, "Yesterday I met"));
        assert_true(strstr(m.target, "Gestern traf ich"));

        m = make(&o, 1, seed);
        assert_null(strstr(m.source, "http"));
        assert_null(strstr(m.target, "http"));
        assert_int_equal(count(m.source, "<ph0>"), 1);
        m = make(&o, 3, seed);
        assert_non_null(strstr(m.source, "Tom saw Tom."));
        m = make(&o, 5, seed); /* quotes differ, the name does not */
        quoted |= strstr(m.source, "“<ph0>”") && strstr(m.target, "„<ph0>“");
        m = make(&o, 6, seed); /* as they are when a line is translated */
        if (m.source[0] == 'C') {
            assert_memory_equal(m.source, "Click <ph0> here <ph1> now.", 27);
            assert_memory_equal(m.target, "Jetzt <ph0> hier <ph1> klicken.", 31);
        } else {
            assert_memory_equal(m.source, "<ph0> Click <ph1> here <ph2> now.", 33);
            assert_memory_equal(m.target, "<ph0> Jetzt <ph1> hier <ph2> klicken.", 37);
        }
    }
    assert_true(name && number && wrapped && quoted && first && last && around);
}

/* Catches an invented word that differs between the sides, and numbers or first words replaced. */
static void invents(void **state)
{
    (void)state;
    const heed_augment_options o = {.invent = 1};
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct made m = make(&o, 0, seed);
        char source[32], target[32];
        assert_int_equal(sscanf(m.source, "Yesterday I met %30s in 1989.", source), 1);
        assert_int_equal(sscanf(m.target, "Gestern traf ich %30s im Jahre 1989.", target), 1);
        assert_string_equal(source, target);
        assert_string_not_equal(source, "Tom");
        assert_true(isupper((unsigned char)source[0]));
        m = make(&o, 4, seed); /* the first word of a second sentence is no name */
        assert_true(strstr(m.source, "I sleep. In ") && strstr(m.target, "Ich schlafe. In "));
        assert_null(strstr(m.source, "Berlin"));
    }
    /* Capitals are no names either, and spans stay what they are. */
    const heed_augment_options both = {.invent = 1, .vary = 1};
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct made m = make(&both, 4, seed);
        assert_true(strstr(m.source, "%s") && strstr(m.target, "%s"));
        if (strstr(m.source, "I SLEEP"))
            assert_string_equal(m.source, "I SLEEP. IN BERLIN IT RAINS %s.");
    }
}

/* Catches a small letter on the wrong side, and a full stop lost on one side. */
static void varies(void **state)
{
    (void)state;
    const heed_augment_options o = {.vary = 1};
    bool small = false, plain = false;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct made m = make(&o, 0, seed);
        if (strstr(m.source, "yesterday")) {
            small = true;
            assert_string_equal(m.target, "Gestern traf ich Tom im Jahre 1989.");
        } else {
            plain = true;
            assert_string_equal(m.source, "Yesterday I met Tom in 1989");
            assert_string_equal(m.target, "Gestern traf ich Tom im Jahre 1989");
        }
        assert_string_equal(make(&o, 2, seed).target, "Wie groß!");
    }
    assert_true(small && plain);
}

/* Catches draws that depend on anything but the stream, and options nobody checks. */
static void is_a_function(void **state)
{
    (void)state;
    const heed_augment_options o = {0.5, 0.5, 0.5, 0.5}, none = {0}, wrong = {.vary = 1.5};
    heed_error err = {0};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct made a = make(&o, (int64_t)seed % 4, seed), b = make(&o, (int64_t)seed % 4, seed);
        assert_string_equal(a.source, b.source);
        assert_string_equal(a.target, b.target);
        a = make(&none, 0, seed);
        assert_string_equal(a.source, "Yesterday I met Tom in 1989.");
    }
    assert_true(heed__augments(&o) && !heed__augments(&none));
    assert_int_equal(heed__augment_check(&o, &err), HEED_OK);
    assert_int_equal(heed__augment_check(&wrong, &err), HEED_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins),  cmocka_unit_test(protects),      cmocka_unit_test(invents),
        cmocka_unit_test(varies), cmocka_unit_test(is_a_function),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
