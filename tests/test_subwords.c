/* test_subwords.c: SentencePiece vocabularies: learning, there and back, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "spm_model.h"
#include "vocab_help.h"

enum { LINES = 600, SIZE = 105 };
static char text[LINES][160];
static const char *lines[LINES + 1];
static heed_arena *arena;
static struct bytes model;

/* Sentences from a few words each, German and English, with quotes and a few Chinese ones. */
static void write_text(void)
{
    static const char *const who[] = {"Der Mann",    "Die Frau",     "The man",  "A woman",
                                      "Das Mädchen", "The children", "Ein Hund", "„Niemand“",
                                      "她",          "我们"};
    static const char *const does[] = {"läuft",      "sieht das Haus", "walks",   "is running",
                                       "sitzt da",   "reads a book",   "lacht",   "喜欢苹果",
                                       "schläft im", "jumps over the", "« dort »"};
    static const char *const where[] = {"Straße.",  "on the beach!", "am Strand, heute",
                                        "outside?", "im Garten …",   "near 1984 houses.",
                                        "很好。"};
    for (int i = 0; i < LINES; i++) {
        snprintf(text[i], sizeof *text, "%s %s %s", who[i * 7 % 10], does[i * 5 / 3 % 11],
                 where[i * 11 / 7 % 7]);
        lines[i] = text[i];
    }
}

static int set_up(void **state)
{
    write_text();
    arena = heed_arena_new(NULL, NULL);
    return arena ? make_folder(state) : -1;
}

static int tear_down(void **state)
{
    heed_arena_free(arena);
    return remove_folder(state);
}

static heed_vocab *learned(heed_vocab_kind kind, int64_t size, const char *name)
{
    heed_error err = {0};
    heed_vocab_options o = {.kind = kind, .size = size};
    if (learn(&o, lines, in_folder(name), NULL, &err))
        fail_msg("%s", err.text);
    return open_vocab(in_folder(name), NULL);
}

static size_t read_file(const char *path, char *bytes, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, room, f);
    fclose(f);
    return n;
}

/* Catches special pieces at other ids than every model is built for. */
static void specials(void **state)
{
    (void)state;
    for (heed_vocab_kind kind = HEED_UNIGRAM; kind <= HEED_BPE; kind++) {
        heed_vocab *v = learned(kind, SIZE, "v.spm");
        assert_int_equal(heed_vocab_size(v), SIZE);
        assert_string_equal(heed_vocab_piece(v, HEED_UNK), "<unk>");
        assert_string_equal(heed_vocab_piece(v, HEED_BOS), "<s>");
        assert_string_equal(heed_vocab_piece(v, HEED_EOS), "</s>");
        for (int i = 0; i < HEED_PLACEHOLDERS; i++) {
            char name[16];
            snprintf(name, sizeof name, "<ph%d>", i);
            assert_int_equal(heed_vocab_find(v, name), HEED_PLACEHOLDER + i);
        }
        heed_vocab_free(v);
    }
}

/* Catches text that comes back changed: quotes, dots and full-width signs lost, accents or spaces
 * not made one, placeholders cut, specials taken from the text, unknown characters dropped. */
static void there_and_back(void **state)
{
    (void)state;
    static const struct {
        const char *text, *back;
    } cases[] = {
        {"", ""},
        {"  ", ""},
        {"Der Mann läuft.", "Der Mann läuft."},
        {"  Der   Mann ", "Der Mann"},
        {"Das Ma\xcc\x88"
         "dchen",
         "Das Mädchen"},                                       /* a + U+0308 */
        {"am\tStrand\xc2\xa0!\xe3\x80\x80s", "am Strand ! s"}, /* tab, no-break, U+3000 */
        {"„Niemand“ « dort » …", "„Niemand“ « dort » …"},
        {"她喜欢苹果。", "她喜欢苹果。"},
        {"the <ph3>man<ph0>", "the <ph3>man<ph0>"},
        {"so\xc2\xad"
         "da\x01",
         "soda"},                  /* soft hyphen, control */
        {"a\xe2\x96\x81m", "a m"}, /* U+2581 itself */
        {"am \xf0\x9f\x98\x80 da", "am  \xe2\x81\x87  da"},
        {"\xf0\x9f\x98\x80\xf0\x9f\x98\x81", " \xe2\x81\x87 "}, /* a run is one unknown */
    };
    for (heed_vocab_kind kind = HEED_UNIGRAM; kind <= HEED_BPE; kind++) {
        heed_vocab *v = learned(kind, SIZE, "v.spm");
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            heed_tokens t = encode(v, cases[i].text, arena);
            assert_string_equal(decode(v, t, arena), cases[i].back);
        }
        heed_tokens t = encode(v, "a </s> <s> <unk> <ph5>", arena);
        int placeholders = 0;
        for (int64_t i = 0; i < t.count; i++) {
            assert_int_not_equal(t.id[i], HEED_EOS);
            assert_int_not_equal(t.id[i], HEED_BOS);
            placeholders += t.id[i] == HEED_PLACEHOLDER + 5;
        }
        assert_int_equal(placeholders, 1);
        t = encode(v, "am", arena);
        int32_t ids[8] = {HEED_BOS};
        memcpy(ids + 1, t.id, sizeof *ids * (size_t)t.count);
        ids[t.count + 1] = HEED_EOS;
        assert_string_equal(decode(v, (heed_tokens){ids, t.count + 2}, arena), "am");
        heed_vocab_free(v);
    }
}

/* Catches another vocabulary from the same text, which would make runs unrepeatable. */
static void same_text_same_file(void **state)
{
    (void)state;
    static char one[1 << 17], two[1 << 17];
    for (heed_vocab_kind kind = HEED_UNIGRAM; kind <= HEED_BPE; kind++) {
        heed_vocab_free(learned(kind, SIZE, "one"));
        heed_vocab_free(learned(kind, SIZE, "two"));
        size_t n = read_file(in_folder("one"), one, sizeof one);
        assert_int_equal(read_file(in_folder("two"), two, sizeof two), n);
        assert_in_range(n, 1000, sizeof one - 1);
        assert_memory_equal(one, two, n);
    }
}

static heed_status fail_at_once(void *context, const char **line, size_t *length, heed_error *err)
{
    (void)context, (void)length;
    *line = NULL;
    err->status = HEED_IO;
    snprintf(err->text, sizeof err->text, "the line broke");
    return HEED_IO;
}

/* Catches a size that the text cannot fill or that its characters overfill; a source's error lost;
 * and a file left behind by any of them. */
static void sizes(void **state)
{
    (void)state;
    for (heed_vocab_kind kind = HEED_UNIGRAM; kind <= HEED_BPE; kind++) {
        struct logged logged = {""};
        heed_error err = {0};
        heed_vocab_options o = {.kind = kind, .size = 30000};
        assert_int_equal(learn(&o, lines, in_folder("v"), &logged, &err), HEED_OK);
        heed_vocab *v = open_vocab(in_folder("v"), NULL);
        char expected[128];
        snprintf(expected, sizeof expected,
                 "the text supports %d pieces, so that is the vocabulary instead of 30000\n",
                 heed_vocab_size(v));
        assert_string_equal(logged.text, expected);
        assert_in_range(heed_vocab_size(v), 100, 5000);
        heed_vocab_free(v);
        unlink(in_folder("v"));
        o.size = 40;
        assert_int_equal(learn(&o, lines, in_folder("v"), NULL, &err), HEED_ARGUMENT);
        assert_non_null(strstr(err.text, "cannot learn a vocabulary of 40 pieces: the text has so "
                                         "many different characters that it takes "));
        err = (heed_error){0};
        o.size = 0;
        assert_int_equal(learn(&o, lines, in_folder("v"), NULL, &err), HEED_ARGUMENT);
        assert_non_null(strstr(err.text, "size is 0, expected at least 14"));
        err = (heed_error){0};
        o.size = 100;
        o.coverage = 0.5;
        assert_int_equal(learn(&o, lines, in_folder("v"), NULL, &err), HEED_ARGUMENT);
        assert_non_null(strstr(err.text, "coverage is 0.5, expected 0.98 to 1"));
        err = (heed_error){0};
        o.coverage = 0;
        static const char *const none[] = {"", "\xff", " ", NULL};
        assert_int_equal(learn(&o, none, in_folder("v"), NULL, &err), HEED_ARGUMENT);
        assert_string_equal(err.text, "cannot learn a vocabulary: there is no usable line");
        err = (heed_error){0};
        heed_line_source broken = {fail_at_once, NULL};
        assert_int_equal(heed_vocab_train(&o, &broken, in_folder("v"), NULL, &err), HEED_IO);
        assert_string_equal(err.text, "the line broke");
        err = (heed_error){0};
        assert_int_equal(learn(&o, lines, in_folder("no/v"), NULL, &err), HEED_IO);
        assert_non_null(strstr(err.text, "No such file or directory"));
        assert_int_equal(files_in(folder), 0);
    }
}

/* Catches pieces joined to wrong words, and a line of Chinese that becomes one word. */
static void words(void **state)
{
    (void)state;
    put_specials(&model);
    static const char *const pieces[] = {"▁the", "▁",    "re", "d",   ".",
                                         "我",   "喜欢", "。", "▁我", "苹"};
    for (int i = 0; i < 10; i++)
        put_piece(&model, pieces[i], -1, NORMAL);
    put_specs(&model, 1, NULL, 0);
    write_plain(in_folder("v"), model.at, model.size);
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    enum { THE = 13, SPACE, RE, D, DOT, I, LIKE, STOP, SPACE_I, AP };
    static const struct {
        int32_t id[8];
        int n;
        int32_t word[8];
    } cases[] = {
        {{THE, SPACE, RE, D, DOT, HEED_EOS}, 6, {0, 1, 1, 1, 1, 2}},
        {{HEED_BOS, THE, RE, HEED_EOS}, 4, {0, 1, 1, 2}},
        {{SPACE_I, LIKE, AP, STOP, HEED_EOS}, 5, {0, 1, 2, 3, 4}},
        {{SPACE, I, LIKE}, 3, {0, 0, 1}},
        {{SPACE_I, D, RE, I}, 4, {0, 1, 1, 2}},
        {{RE, HEED_UNK, D}, 3, {0, 0, 0}},
        {{THE, SPACE, THE, D}, 4, {0, 1, 1, 1}}, /* two spaces in the text, one word */
        {{THE, SPACE, HEED_EOS}, 3, {0, 0, 1}},
        {{THE, SPACE}, 2, {0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t word[8];
        int n = cases[i].n;
        assert_int_equal(heed_vocab_words(v, cases[i].id, n, word), cases[i].word[n - 1] + 1);
        assert_memory_equal(word, cases[i].word, sizeof *word * (size_t)n);
    }
    heed_vocab_free(v);
}

static void refused(const char *expected)
{
    heed_error err;
    const char *found = open_error(in_folder("bad"), model.at, model.size, &err);
    if (!strstr(found, expected))
        fail_msg("found '%s', expected '%s'", found, expected);
}

/* Catches a model of another program whose special pieces are looked for at heed's places, or whose
 * text is normalised by heed. */
static void foreign_models_open(void **state)
{
    (void)state;
    model.size = 0;
    put_piece(&model, "</s>", 0, CONTROL);
    put_piece(&model, "<unk>", 0, UNKNOWN);
    put_piece(&model, "▁the", -1, NORMAL);
    put_specs(&model, 1, NULL, 0);
    write_plain(in_folder("foreign.spm"), (const char *)model.at, model.size);
    heed_error err = {0};
    heed_vocab *v = heed_vocab_open(in_folder("foreign.spm"), NULL, NULL, &err);
    if (!v)
        fail_msg("%s", err.text);
    const heed_special_ids ids = heed_vocab_special(v);
    assert_int_equal(ids.eos, 0);
    assert_int_equal(ids.unk, 1);
    assert_int_equal(ids.bos, -1);
    assert_int_equal(ids.placeholders, 0);
    heed_tokens tokens;
    assert_int_equal(heed_vocab_encode(v, "the the", 7, arena, &tokens, &err), HEED_OK);
    assert_int_equal(tokens.count, 2);
    assert_int_equal(tokens.id[1], 2);
    heed_vocab_free(v);
}

/* Catches a model whose ids mean something else here, and damaged ones that are believed. */
static void models_are_refused(void **state)
{
    (void)state;
    model.size = 0;
    put_specs(&model, 1, NULL, 0);
    refused("it has no pieces");
    model.size = 0;
    put_piece(&model, "<unk>", 0, UNKNOWN);
    put_piece(&model, "<s>", 0, CONTROL);
    put_piece(&model, "</s>", 0, CONTROL);
    put_piece(&model, "a", 0, NORMAL);
    put_piece(&model, "<ph0>", 0, USER);
    put_specs(&model, 1, NULL, 0);
    refused("'<ph0>' is piece 4, expected as number 3; was it made by another program?");
    model.size = 0;
    put_piece(&model, "<unk>", 0, UNKNOWN);
    put_piece(&model, "<s>", 0, CONTROL);
    put_piece(&model, "▁the", -1, NORMAL);
    put_specs(&model, 1, NULL, 0);
    refused("it has no piece '</s>', expected as number 2; was it made by another program?");
    model.size = 0;
    put_piece(&model, "<unk>", 0, NORMAL);
    put_specs(&model, 1, NULL, 0);
    refused("'<unk>' is piece 0, as it should be, but of type 1, expected 2");
    put_specials(&model);
    put_piece(&model, "a", -1, NORMAL);
    put_piece(&model, "b", -1, NORMAL);
    put_piece(&model, "a", -2, NORMAL);
    refused("pieces 13 and 15 are both 'a'");
    put_specials(&model);
    put_specs(&model, 3, NULL, 0);
    refused("its type is 'word', expected 'unigram' or 'bpe'");
    put_specials(&model);
    put_piece(&model, "a", 1.0f / 0.0f, NORMAL);
    refused("piece 13 is invalid");
    put_specials(&model);
    put_piece(&model, "a\xff", -1, NORMAL);
    refused("piece 13 is invalid");
    put_specials(&model);
    put_piece(&model, "", -1, NORMAL);
    refused("piece 13 is invalid");
    model.size = 0;
    put_varint(&model, 1 << 3 | 2);
    put_varint(&model, (uint64_t)1 << 63);
    refused("it ends too early");
    memcpy(model.at, "\n\n\nhello\n", model.size = 9);
    refused("not a SentencePiece model, or a damaged one");
}

/* One rule, 'A' becomes "b", as SentencePiece stores it: byte c leads from a node with offset o to
 * node ^ o ^ c.  place is where the text lies, deep how many bytes 'A' there may be in a row. */
enum { UNITS = 768 };
static size_t one_rule(uint32_t *map, uint32_t place)
{
    uint32_t *unit = map + 1;
    map[0] = UNITS * 4;
    for (int i = 0; i < UNITS; i++)
        unit[i] = 0x800000FF; /* a label that no byte has */
    unit[0] = 256 << 10;
    unit[256 ^ 'A'] = (uint32_t)(256 ^ 'A' ^ 512) << 10 | 1 << 8 | 'A';
    unit[512] = 0x80000000 | place;
    memcpy(unit + UNITS, "b", 2);
    return 4 + UNITS * 4 + 2;
}

/* Catches a character map that leads SentencePiece out of its memory, and one refused that is
 * good. */
static void character_maps(void **state)
{
    (void)state;
    static uint32_t map[UNITS + 2];
    size_t size = one_rule(map, 0);
    put_specials(&model);
    put_piece(&model, "b", -1, NORMAL);
    put_piece(&model, "▁", -1, NORMAL);
    put_specs(&model, 1, map, size);
    write_plain(in_folder("v"), model.at, model.size);
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    assert_string_equal(decode(v, encode(v, "A b A", arena), arena), "b b b");
    heed_vocab_free(v);
    static const struct {
        int unit;
        uint32_t value;
    } damage[] = {
        {-1, UNITS * 4 + 4},                                /* longer than it is */
        {-1, 6},                                            /* no whole unit */
        {0, 4096 << 10},                                    /* out at the root */
        {256 ^ 'A', (uint32_t)(4096 << 10) | 1 << 8 | 'A'}, /* out one below */
        {512, 0x80000002},                                  /* behind the texts */
        {256 ^ 'A', 'A' << 10 | 'A'},                       /* a circle */
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        one_rule(map, 0);
        map[damage[i].unit + 1] = damage[i].value;
        put_specials(&model);
        put_specs(&model, 1, map, size);
        refused("its character map is invalid");
    }
    one_rule(map, 0);
    put_specials(&model);
    put_specs(&model, 1, map, size - 1); /* the last text has no end */
    refused("its character map is invalid");
}

/* Catches a crash, or a vocabulary that is not whole, from a file that was cut off or has wrong
 * bytes in it: it is refused with a name and a reason, or works. */
static void damaged_files(void **state)
{
    (void)state;
    static char whole[1 << 17], damaged[1 << 17];
    heed_vocab_free(learned(HEED_UNIGRAM, SIZE, "v"));
    size_t n = read_file(in_folder("v"), whole, sizeof whole);
    heed_error err;
    for (size_t cut = 1; cut < n - 1; cut += cut % 16 + 1)
        open_error(in_folder("d"), whole, cut, &err);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    int refused_some = 0;
    for (int i = 0; i < 400; i++) {
        memcpy(damaged, whole, n);
        damaged[heed_rng_below(&rng, 2 * (uint64_t)i, (int64_t)n)] =
            (char)heed_rng_bits(&rng, 2 * (uint64_t)i + 1);
        write_plain(in_folder("d"), damaged, n);
        err = (heed_error){0};
        heed_vocab *v = heed_vocab_open(in_folder("d"), NULL, NULL, &err);
        if (v)
            decode(v, encode(v, "Der Mann läuft 喜", arena), arena);
        else
            assert_true(err.status && strstr(err.text, in_folder("d")));
        refused_some += v == NULL;
        heed_vocab_free(v);
    }
    assert_in_range(refused_some, 1, 399);
}

/* Catches a leak or a crash when memory runs out while opening or encoding. */
static void memory_runs_out(void **state)
{
    (void)state;
    heed_vocab_free(learned(HEED_UNIGRAM, SIZE, "v"));
    for (int n = 1;; n++) {
        struct failing c = {.fail_at = n};
        heed_allocator a = failing_allocator(&c);
        heed_error err = {0};
        heed_vocab *v = heed_vocab_open(in_folder("v"), NULL, &a, &err);
        heed_arena *small = v ? heed_arena_new(&a, &err) : NULL;
        heed_tokens t;
        const char *back;
        if (small && !heed_vocab_encode(v, "Der Mann läuft", 15, small, &t, &err))
            heed_vocab_decode(v, t.id, t.count, small, &back, &err);
        heed_arena_free(small);
        heed_vocab_free(v);
        assert_int_equal(c.held, 0);
        if (c.calls < n)
            break;
        assert_int_equal(err.status, HEED_MEMORY);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(specials),
        TEST(there_and_back),
        TEST(same_text_same_file),
        TEST(sizes),
        TEST(words),
        TEST(foreign_models_open),
        TEST(models_are_refused),
        TEST(character_maps),
        TEST(damaged_files),
        TEST(memory_runs_out),
    };
    return cmocka_run_group_tests_name("subwords", tests, NULL, NULL);
}
