/* test_language.c: text of a language model as tokens, and the blocks that it is learned in. */
#include "base/folder.h"
#include "data/token_stream.h"
#include "nn/params.h"
#include "task/language_task.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct place {
    char folder[64], text[96], vocab[96];
};

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int begin(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    strcpy(p->folder, "/tmp/heed-test-XXXXXX");
    if (!mkdtemp(p->folder))
        return -1;
    snprintf(p->text, sizeof p->text, "%s/text", p->folder);
    snprintf(p->vocab, sizeof p->vocab, "%s/vocab", p->folder);
    *state = p;
    return 0;
}

static int end(void **state)
{
    struct place *p = *state;
    const heed_status status = heed__folder_remove(p->folder, NULL);
    free(p);
    return status ? -1 : 0;
}

/* A vocabulary of the text at p->text. */
static heed_vocab *learn(const struct place *p, heed_vocab_kind kind, int64_t size)
{
    heed_error err = {0};
    heed__text_files files;
    const char *const paths[] = {p->text};
    assert_int_equal(heed__text_files_open(&files, paths, 1, NULL, &err), HEED_OK);
    heed__text_walk walk = heed__text_walk_new(&files, HEED__ALL_LINES);
    const heed_line_source lines = heed__text_walk_source(&walk);
    const heed_vocab_options o = {.kind = kind, .size = size, .min_count = 1, .cased = true};
    if (heed_vocab_train(&o, &lines, p->vocab, NULL, &err))
        fail_msg("%s", err.text);
    heed__text_files_close(&files);
    heed_vocab *v = heed_vocab_open(p->vocab, NULL, NULL, &err);
    if (!v)
        fail_msg("%s", err.text);
    return v;
}

static heed__token_stream read_stream(const struct place *p, const heed_vocab *v, int64_t held_out,
                                      int which)
{
    heed_error err = {0};
    heed__text_files files;
    heed__token_stream s;
    const char *const paths[] = {p->text};
    assert_int_equal(heed__text_files_open(&files, paths, 1, NULL, &err), HEED_OK);
    files.held_out = held_out;
    if (heed__token_stream_read(&s, v, &files, which, NULL, &err))
        fail_msg("%s", err.text);
    heed__text_files_close(&files);
    return s;
}

static const char small[] = "the cat sat\n\n  on the mat.\nthe \xc3\xa9nd\n";

/* Catches line ends that are lost, or end marks where there should be none. */
static void test_line_ends(void **state)
{
    const struct place *p = *state;
    write_file(p->text, small, sizeof small - 1);
    static const heed_vocab_kind kinds[] = {HEED_CHARACTERS, HEED_BYTES, HEED_WHITESPACE,
                                            HEED_WORDPIECE};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        heed_vocab *v = learn(p, kinds[k], k == 1 ? 290 : 60);
        heed_arena *arena = heed_arena_new(NULL, NULL);
        heed__token_stream s = read_stream(p, v, 0, HEED__ALL_LINES);
        const bool keeps = kinds[k] == HEED_CHARACTERS || kinds[k] == HEED_BYTES;
        int64_t marks = 0;
        for (int64_t i = 0; i < s.count; i++)
            marks += s.id[i] == heed__vocab_end_mark(v);
        assert_int_equal(heed__vocab_keeps_lines(v, arena), keeps);
        assert_int_equal(marks, keeps ? 0 : 4);
        assert_int_equal(s.bytes, sizeof small - 1);
        const char *back;
        size_t size;
        assert_int_equal(heed_vocab_decode_bytes(v, s.id, s.count, arena, &back, &size, NULL),
                         HEED_OK);
        if (keeps) {
            assert_int_equal(size, sizeof small - 1);
            assert_memory_equal(back, small, size);
        } else {
            assert_int_equal(s.id[s.count - 1], heed__vocab_end_mark(v));
        }
        heed__token_stream_close(&s);
        heed_arena_free(arena);
        heed_vocab_free(v);
    }
}

/* Several megabytes with empty lines, blanks at both ends of lines, and long runs of them. */
static char *make_large(size_t *size)
{
    static const char *const lines[] = {"the cat sat on the mat",   "",    "  indented", "x ",
                                        "a line\twith a tab at it", "",    "",           "   ",
                                        "numbers 123 and 4567",     "end."};
    char *text = malloc(4000000);
    size_t n = 0;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    for (uint64_t i = 0; n < 2600000; i++)
        n += (size_t)sprintf(text + n, "%s\n", lines[heed_rng_below(&rng, i, 10)]);
    n += (size_t)sprintf(text + n, "last\n");
    *size = n;
    return text;
}

/* Catches a seam between the portions of a large text that the tokens show. */
static void test_portions(void **state)
{
    const struct place *p = *state;
    size_t size;
    char *text = make_large(&size);
    write_file(p->text, text, size);
    heed_vocab *v = learn(p, HEED_BYTES, 320);
    heed__token_stream s = read_stream(p, v, 0, HEED__ALL_LINES);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_tokens whole;
    assert_int_equal(heed_vocab_encode(v, text, size, arena, &whole, NULL), HEED_OK);
    assert_int_equal(s.count, whole.count);
    assert_memory_equal(s.id, whole.id, (size_t)s.count * sizeof *s.id);
    heed_arena_free(arena);
    heed__token_stream_close(&s);
    heed_vocab_free(v);
    free(text);
}

/* Catches text that is held out and learned as well, or neither; and other text on another day. */
static void test_held_out(void **state)
{
    const struct place *p = *state;
    size_t size;
    char *text = make_large(&size);
    write_file(p->text, text, size);
    heed_vocab *v = learn(p, HEED_CHARACTERS, 0);
    const int64_t asked = 50000;
    heed__token_stream all = read_stream(p, v, 0, HEED__ALL_LINES);
    heed__token_stream kept = read_stream(p, v, asked, HEED__KEPT_LINES);
    heed__token_stream held = read_stream(p, v, asked, HEED__HELD_LINES);
    assert_int_equal(all.bytes, (int64_t)size);
    assert_int_equal(kept.bytes + held.bytes, all.bytes);
    assert_int_equal(kept.count + held.count, all.count);
    assert_true(held.bytes > asked - 1000 && held.bytes < asked + 1000);
    assert_int_not_equal(kept.checksum, held.checksum);
    assert_int_equal(heed__text_hold_out(100), 5);
    assert_int_equal(heed__text_hold_out(5000000), 100000);
    assert_int_equal(heed__text_hold_out((int64_t)1 << 40), 2000000);
    heed__token_stream_close(&all);
    heed__token_stream_close(&kept);
    heed__token_stream_close(&held);
    heed_vocab_free(v);
    free(text);
}

/* Catches a line that is not UTF-8 among the tokens, or a good one that goes with it. */
static void test_broken(void **state)
{
    const struct place *p = *state;
    static const char text[] = "good\nbad \xff\xfe\nfine\n", good[] = "good\nfine\n";
    write_file(p->text, good, sizeof good - 1);
    heed_vocab *v = learn(p, HEED_CHARACTERS, 0), *bytes = learn(p, HEED_BYTES, 270);
    heed__token_stream wanted = read_stream(p, v, 0, HEED__ALL_LINES);
    write_file(p->text, text, sizeof text - 1);
    heed__token_stream s = read_stream(p, v, 0, HEED__ALL_LINES);
    assert_int_equal(s.broken, 1);
    assert_int_equal(s.count, wanted.count);
    assert_memory_equal(s.id, wanted.id, (size_t)s.count * sizeof *s.id);
    heed__token_stream raw = read_stream(p, bytes, 0, HEED__ALL_LINES);
    assert_int_equal(raw.broken, 0);
    assert_int_equal(raw.bytes, sizeof text - 1);
    heed__token_stream_close(&raw);
    heed__token_stream_close(&s);
    heed__token_stream_close(&wanted);
    heed_vocab_free(bytes);
    heed_vocab_free(v);
}

/* ---- blocks ---- */

static heed_trainer *open_trainer(const struct place *p, const char *folder,
                                  const char *const *more, int count, heed_arena *arena)
{
    heed_error err = {0};
    heed_language_recipe r;
    const char *words[64] = {"--text",
                             p->text,
                             "--valid-text",
                             p->text,
                             "--tokens",
                             "characters",
                             "--context",
                             "7",
                             "--decoder-layers",
                             "2",
                             "--d",
                             "16",
                             "--ff",
                             "24",
                             "--heads",
                             "2",
                             "--batch-tokens",
                             "30",
                             "--max-updates",
                             "20",
                             "--warmup",
                             "2",
                             "--threads",
                             "1"};
    int n = 24;
    for (int i = 0; i < count; i++)
        words[n++] = more[i];
    if (heed_language_recipe_parse(&r, n, words, arena, &err))
        fail_msg("%s", err.text);
    heed_trainer *t = heed_language_trainer_new(folder, &r, NULL, NULL, &err);
    if (!t)
        fail_msg("%s", err.text);
    return t;
}

/* A line of PLACES different characters: a token tells where it stands. */
enum { PLACES = 300 };
static void write_places(const char *path)
{
    char text[3 * PLACES];
    size_t n = 0;
    for (int i = 0; i < PLACES; i++) {
        text[n++] = (char)(0xc4 + (i >> 6));
        text[n++] = (char)(0x80 + (i & 63));
    }
    text[n++] = '\n';
    write_file(path, text, n);
}

/* The place of a token in the text. */
static int place_of(const heed__language_run *t, int32_t id)
{
    for (int64_t i = 0; i < t->train.count; i++)
        if (t->train.id[i] == id)
            return (int)i;
    fail_msg("token %d is not in the text", (int)id);
    return -1;
}

/* Learns one epoch; returns the place of the first token. */
static int learn_epoch(const heed_trainer *trainer, int epoch)
{
    heed__language_run *t = trainer->task.self;
    int learned[PLACES + 1] = {0}, rows = 0, first = -1;
    const int64_t blocks = (t->train.count - 1) / 7;
    while (t->position.epoch == epoch && t->position.at[0] < blocks - 1) {
        heed_portion portion[1];
        heed_error err = {0};
        assert_int_equal(trainer->task.next(t, 1, 1, portion, &err), HEED_OK);
        assert_int_equal(portion[0].epoch, epoch);
        const heed_batch *b = &t->micro[0];
        first = first < 0 ? place_of(t, b->target.ids[0]) : first;
        for (int64_t i = 0; i < b->wanted_count; i++) {
            assert_int_equal(place_of(t, b->wanted[i]), place_of(t, b->target.ids[i]) + 1);
            learned[place_of(t, b->wanted[i])]++;
            rows++;
        }
    }
    for (int i = 0; i <= PLACES; i++)
        assert_true(learned[i] <= 1);
    assert_true(rows > PLACES - 3 * 7);
    return first;
}

/* Catches a token that an epoch learns twice, tokens that it never learns, an order that is not
 * drawn anew, and answers that are not the tokens that follow. */
static void test_every_token_once(void **state)
{
    const struct place *p = *state;
    char folder[96];
    write_places(p->text);
    snprintf(folder, sizeof folder, "%s/m", p->folder);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_trainer *trainer = open_trainer(p, folder, NULL, 0, arena);
    heed__language_run *t = trainer->task.self;
    const int first = learn_epoch(trainer, 0);
    t->position = (heed_position){.epoch = 1};
    assert_int_not_equal(learn_epoch(trainer, 1), first);
    assert_int_equal(trainer->task.seek(t, (heed_position){.epoch = 0}, NULL), HEED_OK);
    assert_int_equal(learn_epoch(trainer, 0), first);
    assert_int_equal(trainer->task.seek(t, (heed_position){.at = {99}}, NULL), HEED_ARGUMENT);
    heed_trainer_free(trainer);
    heed_arena_free(arena);
}

static double deviation(const heed_params *p, const char *name)
{
    const heed_tensor *x = heed_params_find(p, name);
    if (!x)
        fail_msg("no %s", name);
    const heed_real *v = heed_tensor_data(x);
    const int64_t n = heed_tensor_count(x);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum / (double)n);
}

/* Catches first weights that are not GPT-2's: 0.02, by the root of twice the layers where residual
 * branches end; and decay of gains and biases. */
static void test_first_weights(void **state)
{
    const struct place *p = *state;
    char folder[96];
    write_file(p->text, small, sizeof small - 1);
    snprintf(folder, sizeof folder, "%s/m", p->folder);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    static const char *const more[] = {"--d", "64", "--ff", "128", "--weight-decay", "0.1"};
    heed_trainer *trainer = open_trainer(p, folder, more, 6, arena);
    const heed_params *params =
        heed_model_params(((heed__language_run *)trainer->task.self)->model);
    static const char *const plain[] = {"embedding.table", "decoder.0.self.qkv.weight",
                                        "decoder.1.ffn.in.weight"};
    static const char *const residual[] = {"decoder.0.self.out.weight", "decoder.1.ffn.out.weight"};
    for (size_t i = 0; i < 3; i++)
        assert_true(fabs(deviation(params, plain[i]) / 0.02 - 1) < 0.1);
    for (size_t i = 0; i < 2; i++)
        assert_true(fabs(deviation(params, residual[i]) / 0.01 - 1) < 0.1);
    for (int i = 0, n = 0; i < heed__params_ranges(params); i++) {
        const heed__param_range r = heed__params_range(params, i);
        n += r.has_weight_decay && r.weight_decay == 0;
        if (i + 1 == heed__params_ranges(params))
            assert_true(n > 4);
    }
    heed_trainer_free(trainer);
    heed_arena_free(arena);
}

/* Catches a model that cannot learn a text by heart. */
static void test_learns_by_heart(void **state)
{
    const struct place *p = *state;
    char folder[96];
    write_file(p->text, small, sizeof small - 1);
    snprintf(folder, sizeof folder, "%s/m", p->folder);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    static const char *const more[] = {"--max-updates", "300", "--rate",    "0.005",
                                       "--d",           "32",  "--ff",      "64",
                                       "--dropout",     "0",   "--context", "16"};
    heed_error err = {0};
    heed_train_result result;
    heed_trainer *t = open_trainer(p, folder, more, 12, arena);
    if (heed_trainer_run(t, &result, &err))
        fail_msg("%s", err.text);
    /* Where a block begins nothing is known of what comes: that much is left. */
    assert_true(heed_train_measured(&result.last, "loss") < 1);
    assert_true(heed_train_measured(&result.last, "bits/byte") < 1.4);
    heed_trainer_free(t);
    heed_arena_free(arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_line_ends),       TEST(test_portions),         TEST(test_held_out),
        TEST(test_broken),          TEST(test_every_token_once), TEST(test_first_weights),
        TEST(test_learns_by_heart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
