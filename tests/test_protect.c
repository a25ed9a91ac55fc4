/* test_protect.c: spans through a translator whose model has never seen a placeholder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "temp_folder.h"
#include "toy_fixture.h"
#include "translate/translator.h"

/* Spans of every kind between words, more of them than there are placeholders; what the words
 * between them are is drawn. */
static const char *const kinds[] = {
    "http://x.org/a,b", "jane@x.org", "%s", "{name}", "<b>", "&amp;", "\xF0\x9F\x98\x80", "3.5 km"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *draw_with_spans(uint64_t seed, int *each)
{
    static char text[64][4096];
    static int next;
    char *line = text[next++ % 64];
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    size_t n = 0;
    memset(each, 0, KINDS * sizeof *each);
    for (uint64_t i = 0; i < 3 + seed % 40; i++) {
        int64_t word = heed_rng_below(&rng, 2 * i, 2 * TOY_WORDS);
        if (word < TOY_WORDS) {
            n += (size_t)snprintf(line + n, 4096 - n, "%s%c", n ? " " : "", (char)('a' + word));
            continue;
        }
        int kind = (int)heed_rng_below(&rng, 2 * i + 1, KINDS);
        each[kind]++;
        n += (size_t)snprintf(line + n, 4096 - n, "%s%s", n ? " " : "", kinds[kind]);
    }
    return line;
}

static int times(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* Catches a span that is changed, lost or said twice by a model that has never seen a placeholder,
 * whatever the search: the best and the others, greedy, drawn, with room for it or hardly any. */
static void test_spans_survive(void **state)
{
    (void)state;
    enum { N = 40, BEST = 3 };
    static const heed_search_options how[] = {
        {.beam = 1, .n_best = 1, .extra_length = 50},
        {.beam = 4, .n_best = BEST, .length_penalty = 0.6, .extra_length = 5},
        {.beam = 4, .n_best = 1, .extra_length = 1, .max_length = 3},
        {.beam = 1, .n_best = BEST, .sample = true, .temperature = 1, .extra_length = 50},
    };
    const heed_text_config knows = {.protects = true}, plain = {0};
    const char *lines[N];
    int each[N][KINDS];
    heed_translation out[N * BEST];
    for (int i = 0; i < N; i++)
        lines[i] = draw_with_spans((uint64_t)i, each[i]);
    heed__translator_trained(translator, &knows, NULL);
    for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
        translate(&how[h], lines, N, out);
        for (int i = 0; i < N * (int)how[h].n_best; i++)
            for (int k = 0; out[i].text && k < KINDS; k++)
                if (times(out[i].text, kinds[k]) != each[i / how[h].n_best][k])
                    fail_msg("'%s' of '%s' is in '%s' %d times", kinds[k], lines[i / how[h].n_best],
                             out[i].text, times(out[i].text, kinds[k]));
        heed_arena_reset(arena);
    }
    heed_translator_protect(translator, false);
    translate(&how[0], lines, N, out);
    int kept = 0;
    for (int i = 0; i < N; i++)
        kept += times(out[i].text, kinds[0]);
    assert_int_equal(kept, 0);
    heed__translator_trained(translator, &plain, NULL);
    heed_translator_protect(translator, true); /* it does not know them */
    translate(&how[0], lines, 1, out);
    assert_int_equal(times(out[0].text, kinds[0]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spans_survive)};
    return cmocka_run_group_tests(tests, toy_set_up, toy_tear_down);
}
