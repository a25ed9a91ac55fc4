/* test_sample.c: subwords cut at random: the right distribution, from the given numbers alone. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "spm_model.h"
#include "vocab_help.h"

#define SPACE "▁"

static heed_arena *arena;
static struct bytes model;

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

/* The pieces of a small model and their scores; for BPE the scores are the order of the merges. */
struct scored {
    const char *text;
    float score;
};
static const struct scored small[] = {
    {SPACE, -1.5f}, {"a", -2},  {"b", -2.5f}, {"c", -3},  {SPACE "a", -1}, {"ab", -0.5f},
    {"ba", -3.5f},  {"bc", -4}, {"abc", -2},  {"cc", -6}, {"aba", -1.25f}, {"ä", -5},
};
enum { SMALL = sizeof small / sizeof *small };

static heed_vocab *small_vocab(int model_type)
{
    put_specials(&model);
    for (int i = 0; i < SMALL; i++)
        put_piece(&model, small[i].text, small[i].score, NORMAL);
    put_specs(&model, model_type, NULL, 0);
    write_plain(in_folder("v"), model.at, model.size);
    return open_vocab(in_folder("v"), NULL);
}

static heed_rng stream(uint64_t i)
{
    return heed_rng_stream(&(heed_rng_key){.seed = 7, .step = i});
}

static heed_tokens sample(const heed_vocab *v, const char *text, double strength, uint64_t i)
{
    heed_tokens t = {0};
    heed_error err = {0};
    heed_rng rng = stream(i);
    if (heed_vocab_sample(v, text, strlen(text), strength, &rng, arena, &t, &err))
        fail_msg("%s", err.text);
    return t;
}

/* The pieces, joined by '|'. */
static const char *pieces(const heed_vocab *v, heed_tokens t)
{
    static char text[1024];
    size_t n = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < t.count; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? "|" : "",
                              heed_vocab_piece(v, t.id[i]));
    return text;
}

static bool same(heed_tokens a, heed_tokens b)
{
    return a.count == b.count &&
           (a.count == 0 || memcmp(a.id, b.id, sizeof *a.id * (size_t)a.count) == 0);
}

/* All segmentations of a normalised text, with their weights. */
struct all {
    char cut[64][64];
    double weight[64], sum;
    int seen[64], count;
};

static void enumerate(struct all *all, const char *rest, const char *so_far, double score,
                      double strength)
{
    if (*rest == '\0') {
        assert_in_range(all->count, 0, 63);
        snprintf(all->cut[all->count], sizeof *all->cut, "%s", so_far);
        all->sum += all->weight[all->count] = exp(strength * score);
        all->count++;
        return;
    }
    for (int i = 0; i < SMALL; i++) {
        size_t n = strlen(small[i].text);
        char longer[64];
        if (strncmp(rest, small[i].text, n) != 0)
            continue;
        snprintf(longer, sizeof longer, "%s%s%s", so_far, *so_far ? "|" : "", small[i].text);
        enumerate(all, rest + n, longer, score + small[i].score, strength);
    }
}

/* Catches a sampler whose frequencies are not P^strength, compared with every segmentation there
 * is: chi-square with as many degrees of freedom stays below its mean and six deviations. */
static void unigram_frequencies(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    heed_vocab *v = small_vocab(1);
    static const double strengths[] = {0.1, 0.5, 1, 2};
    for (int s = 0; s < 4; s++) {
        static struct all all;
        memset(&all, 0, sizeof all);
        enumerate(&all, SPACE "ababcc", "", 0, strengths[s]);
        assert_int_equal(all.count, 27);
        for (uint64_t i = 0; i < DRAWS; i++) {
            heed_arena_reset(arena);
            const char *cut = pieces(v, sample(v, "ababcc", strengths[s], i));
            int k = 0;
            while (k < all.count && strcmp(all.cut[k], cut) != 0)
                k++;
            if (k == all.count)
                fail_msg("'%s' is no segmentation", cut);
            all.seen[k]++;
        }
        double chi = 0;
        int cells = 0;
        for (int k = 0; k < all.count; k++) {
            double expected = DRAWS * all.weight[k] / all.sum;
            if (expected < 1) {
                assert_in_range(all.seen[k], 0, 10);
                continue;
            }
            chi += (all.seen[k] - expected) * (all.seen[k] - expected) / expected;
            cells++;
        }
        if (chi > cells + 6 * sqrt(2.0 * cells))
            fail_msg("strength %g: chi-square %g with %d cells", strengths[s], chi, cells);
    }
    heed_vocab_free(v);
}

/* Catches merge dropout whose probability is not the one asked for.  "bc" has one merge; of "babc"
 * the first, "ab" (-0.5), opens the second, "abc" (-2); if it is left out, "ba" (-3.5) has its
 * turn, then "bc" (-4), which opens "abc" from the other side if "ba" was left out too. */
static void bpe_frequencies(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    heed_vocab *v = small_vocab(2);
    static const double p = 0.3;
    const struct {
        const char *text, *cut;
        double expected;
    } cases[] = {
        {"bc", SPACE "|bc", 1 - p},
        {"bc", SPACE "|b|c", p},
        {"babc", SPACE "|b|abc", (1 - p) * (1 - p) + p * p * (1 - p) * (1 - p)},
        {"babc", SPACE "|b|ab|c", (1 - p) * p},
        {"babc", SPACE "|ba|bc", p * (1 - p) * (1 - p)},
        {"babc", SPACE "|ba|b|c", p * (1 - p) * p},
        {"babc", SPACE "|b|a|bc", p * p * (1 - p) * p},
        {"babc", SPACE "|b|a|b|c", p * p * p},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int seen = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            heed_arena_reset(arena);
            seen += strcmp(pieces(v, sample(v, cases[k].text, p, i)), cases[k].cut) == 0;
        }
        double q = cases[k].expected, deviation = sqrt(DRAWS * q * (1 - q));
        if (fabs(seen - DRAWS * q) > 5 * deviation)
            fail_msg("'%s': seen %d times, expected %g", cases[k].cut, seen, DRAWS * q);
    }
    heed_vocab_free(v);
}

static const char *const texts[] = {
    "",       "a",        "ab ab",      "ababcc abc  bcbc a", "<ph1>ab<ph9>",
    "a<ph0>", "xyz ab q", "äba",        "a\xcc\x88 b",        "x",
    "😀ab😀😀c", "<ph",      "</s>ab <s>",
};
enum { TEXTS = sizeof texts / sizeof *texts };

/* Catches sampled pieces that are another text, or placeholders cut. */
static void decode_to_the_same_text(void **state)
{
    (void)state;
    for (int type = 1; type <= 2; type++) {
        heed_vocab *v = small_vocab(type);
        static const double strengths[] = {0.01, 0.3, 1};
        for (int k = 0; k < TEXTS; k++)
            for (uint64_t i = 0; i < 60; i++) {
                heed_arena_reset(arena);
                heed_tokens best = encode(v, texts[k], arena);
                heed_tokens t = sample(v, texts[k], strengths[i % 3], i);
                const char *expected = decode(v, best, arena);
                assert_string_equal(decode(v, t, arena), expected);
                int placeholders = 0;
                for (int64_t j = 0; j < best.count; j++)
                    placeholders += best.id[j] >= 3 && best.id[j] < 13;
                for (int64_t j = 0; j < t.count; j++)
                    placeholders -= t.id[j] >= 3 && t.id[j] < 13;
                assert_int_equal(placeholders, 0);
            }
        heed_vocab_free(v);
    }
}

/* Catches limits that are not the ends of the scale: no noise is the best segmentation, all of it
 * is characters. */
static void limits(void **state)
{
    (void)state;
    heed_vocab *unigram = small_vocab(1), *bpe = small_vocab(2);
    for (int k = 0; k < TEXTS; k++) {
        heed_tokens best = encode(unigram, texts[k], arena);
        assert_true(same(sample(unigram, texts[k], 1000, 1), best));
        assert_true(same(sample(unigram, texts[k], 0, 1), best));
        best = encode(bpe, texts[k], arena);
        assert_true(same(sample(bpe, texts[k], 1e-12, 1), best));
        assert_true(same(sample(bpe, texts[k], 0, 1), best));
    }
    assert_string_equal(pieces(bpe, sample(bpe, "abcc ab<ph2>a", 1, 1)),
                        SPACE "|a|b|c|c|" SPACE "|a|b|<ph2>|a");
    assert_string_equal(pieces(bpe, sample(bpe, "axyb", 1, 1)), SPACE "|a|<unk>|b");
    heed_error err = {0};
    heed_tokens t;
    heed_rng rng = stream(1);
    assert_int_equal(heed_vocab_sample(bpe, "a", 1, 1.5, &rng, arena, &t, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot sample: strength is 1.5, expected 0 to 1");
    err = (heed_error){0};
    assert_int_equal(heed_vocab_sample(unigram, "a", 1, NAN, &rng, arena, &t, &err), HEED_ARGUMENT);
    err = (heed_error){0};
    assert_int_equal(heed_vocab_sample(unigram, "\xff", 1, 1, &rng, arena, &t, &err),
                     HEED_ARGUMENT);
    heed_vocab_free(unigram);
    heed_vocab_free(bpe);
}

struct job {
    const heed_vocab *v;
    double strength;
    int32_t id[50][32];
    int64_t count[50];
};

static void *draw_fifty(void *context)
{
    struct job *j = context;
    heed_arena *own = heed_arena_new(NULL, NULL);
    for (uint64_t i = 0; i < 50; i++) {
        heed_rng rng = stream(i);
        heed_tokens t = {0};
        heed_vocab_sample(j->v, "ababcc abc", 10, j->strength, &rng, own, &t, NULL);
        j->count[i] = t.count;
        memcpy(j->id[i], t.id, sizeof *t.id * (size_t)t.count);
    }
    heed_arena_free(own);
    return NULL;
}

/* Catches hidden state: the same numbers must give the same pieces in any thread, while others
 * draw, and different numbers different ones. */
static void from_the_numbers_alone(void **state)
{
    (void)state;
    static struct job job[3];
    for (int type = 1; type <= 2; type++) {
        heed_vocab *v = small_vocab(type);
        pthread_t thread[2];
        for (int i = 0; i < 3; i++) {
            memset(&job[i], 0, sizeof job[i]);
            job[i].v = v;
            job[i].strength = 0.4;
        }
        draw_fifty(&job[2]);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, draw_fifty, &job[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        assert_memory_equal(&job[0], &job[2], sizeof job[0]);
        assert_memory_equal(&job[1], &job[2], sizeof job[0]);
        int different = 0;
        for (int i = 1; i < 50; i++)
            different += memcmp(job[0].id[i], job[0].id[0], sizeof job[0].id[0]) != 0;
        assert_in_range(different, 20, 49);
        heed_vocab_free(v);
    }
}

/* Catches characters in no piece that are dropped where the model spells them in bytes. */
static void bytes(void **state)
{
    (void)state;
    put_specials(&model);
    put_piece(&model, SPACE, -1, NORMAL);
    put_piece(&model, "a", -1, NORMAL);
    for (int i = 0; i < 256; i++) {
        char name[16];
        snprintf(name, sizeof name, "<0x%02X>", i);
        put_piece(&model, name, 0, BYTE);
    }
    static struct bytes spec;
    spec.size = 0;
    put_number(&spec, 3, 1);
    put_number(&spec, 35, 1); /* byte_fallback */
    put_bytes(&model, 2, spec.at, spec.size);
    put_bytes(&model, 3, "", 0);
    write_plain(in_folder("v"), model.at, model.size);
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    heed_tokens best = encode(v, "aäb", arena), t = sample(v, "aäb", 1, 1);
    assert_string_equal(pieces(v, t), SPACE "|a|<0xC3>|<0xA4>|<0x62>");
    assert_true(same(best, t));
    assert_string_equal(decode(v, t, arena), "aäb");
    heed_vocab_free(v);
}

static heed_vocab *words_vocab(void)
{
    static const char *const lines[] = {
        "walking walk@@ wal@@ king w@@ al@@ k@@ ing ß@@ ßal@@ @@ x wal k<ph1> k</s> <@@ ph1> unk>",
        NULL};
    const heed_vocab_options o = {.kind = HEED_WHITESPACE};
    assert_int_equal(learn(&o, lines, in_folder("v"), NULL, NULL), HEED_OK);
    return open_vocab(in_folder("v"), "@@ ");
}

/* Catches words cut in other places, or more or less often, than the vocabulary and the strength
 * say; a head that lacks its joiner; a tail that gets or loses one. */
static void words_frequencies(void **state)
{
    (void)state;
    heed_vocab *v = words_vocab();
    /* walking: whole with 1-p; in two at either place with p/2; walk@@ only has wal@@ k@@, whose
     * wal@@ only has w@@ al@@; king only has k@@ ing. */
    const double p = 0.4;
    const struct {
        const char *cut;
        double chance;
    } cases[] = {
        {"walking", 1 - p},
        {"walk@@|ing", p / 2 * (1 - p)},
        {"wal@@|k@@|ing", p / 2 * p * (1 - p) + p / 2 * (1 - p) * p},
        {"w@@|al@@|k@@|ing", p / 2 * p * p + p / 2 * p * p},
        {"wal@@|king", p / 2 * (1 - p) * (1 - p)},
        {"w@@|al@@|king", p / 2 * p * (1 - p)},
    };
    enum { DRAWS = 20000, CASES = sizeof cases / sizeof *cases };
    int seen[CASES] = {0}, sum = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        heed_arena_reset(arena);
        const char *cut = pieces(v, sample(v, "walking", p, i));
        for (int k = 0; k < CASES; k++)
            seen[k] += strcmp(cut, cases[k].cut) == 0;
    }
    for (int k = 0; k < CASES; k++) {
        double expected = DRAWS * cases[k].chance;
        assert_true(fabs(seen[k] - expected) < 5 * sqrt(expected));
        sum += seen[k];
    }
    assert_int_equal(sum, DRAWS);
    heed_vocab_free(v);
}

/* Catches special pieces cut or taken for parts of a word, a joiner that is a word, cuts that go
 * beyond what the vocabulary has, no joiner at all, and texts that are not UTF-8. */
static void words_limits(void **state)
{
    (void)state;
    heed_vocab *v = words_vocab();
    assert_string_equal(pieces(v, sample(v, "walking ßal@@ king <ph1> zebra @@ x", 1, 1)),
                        "w@@|al@@|k@@|ing|ß@@|al@@|k@@|ing|<ph1>|<unk>|@@|x");
    assert_true(
        same(sample(v, "walking ßal@@ king", 1e-12, 1), encode(v, "walking ßal@@ king", arena)));
    assert_string_equal(pieces(v, sample(v, "k<ph1> k</s> <ph1> zebra <unk>", 1, 1)),
                        "k<ph1>|k</s>|<ph1>|<unk>|<unk>");
    assert_int_equal(sample(v, "", 1, 1).count, 0);
    heed_error err = {0};
    heed_tokens t;
    heed_rng rng = stream(1);
    assert_int_equal(heed_vocab_sample(v, "\xff", 1, 1, &rng, arena, &t, &err), HEED_ARGUMENT);
    heed_vocab_free(v);
    v = open_vocab(in_folder("v"), NULL);
    err = (heed_error){0};
    assert_int_equal(heed_vocab_sample(v, "walking", 7, 1, &rng, arena, &t, &err), HEED_ARGUMENT);
    assert_string_equal(err.text,
                        "cannot sample: words are not split, expected a joiner of their pieces");
    assert_true(same(sample(v, "walking", 0, 1), encode(v, "walking", arena)));
    heed_vocab_free(v);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unigram_frequencies),     TEST(bpe_frequencies),
        TEST(decode_to_the_same_text), TEST(limits),
        TEST(from_the_numbers_alone),  TEST(bytes),
        TEST(words_frequencies),       TEST(words_limits),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
