/* test_train_text.c: what a training makes of its text: on which side words are cut at random, and
 * which text a vocabulary is learned from, and what it rehearses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"
#include "train_oracle.h"

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in_room(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* ---- cutting at random ---- */

enum { PIECES = HEED_PLACEHOLDER + HEED_PLACEHOLDERS + 3 };
static const char vocabulary[] =
    "<unk>\n<s>\n</s>\n<ph0>\n<ph1>\n<ph2>\n<ph3>\n<ph4>\n<ph5>\n<ph6>\n<ph7>\n<ph8>\n<ph9>\n"
    "ab\na@@\nb\n";
enum { WHOLE = HEED_PLACEHOLDER + HEED_PLACEHOLDERS, BEGIN, END };

static bool row_moved(const heed_stored *before, const heed_stored *after, int64_t row)
{
    heed_real a[64], b[64];
    const int64_t d = before->dim[1];
    assert_true(before->rank == 2 && before->dim[0] == PIECES && d <= 64);
    assert_int_equal(heed_stored_read(before, a, row * d, d, NULL), HEED_OK);
    assert_int_equal(heed_stored_read(after, b, row * d, d, NULL), HEED_OK);
    return memcmp(a, b, (size_t)d * sizeof *a) != 0;
}

/* Which of the three pieces one update has moved in the embedding of one side, as in "101": its
 * table is the one of this name. */
static void moved_pieces(const char *table, char text[4])
{
    heed_error err = {0};
    heed_safetensors *before =
        heed_safetensors_open(in_room("m/training/step-0/model.safetensors"), NULL, &err);
    heed_safetensors *after =
        heed_safetensors_open(in_room("m/training/step-1/model.safetensors"), NULL, &err);
    assert_true(before && after);
    const heed_stored *a = heed_safetensors_find(before, table);
    const heed_stored *b = heed_safetensors_find(after, table);
    if (!a || !b)
        fail_msg("there is no tensor '%s'", table);
    for (int i = 0; i < 3; i++)
        text[i] = row_moved(a, b, WHOLE + i) ? '1' : '0';
    text[3] = '\0';
    heed_safetensors_close(before);
    heed_safetensors_close(after);
}

/* Catches --sampling-sides that are exchanged or both: with a probability of 1 every word is cut,
 * and an update moves only the rows of an embedding whose pieces it saw. */
static void test_sampling_sides(void **state)
{
    (void)state;
    static const struct {
        const char *sides, *source, *target;
    } cases[] = {{"source", "011", "100"}, {"target", "100", "011"}, {"both", "011", "011"}};
    write_text("v", vocabulary);
    write_text("train.s", "ab ab ab\nab\n");
    write_text("train.t", "ab ab\nab ab ab ab\n");
    write_text("valid.s", "ab\n");
    write_text("valid.t", "ab\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char found[4];
        train_seen("m",
                   MORE(PLAIN, "--max-updates", "1", "--source-vocab", in_room("v"),
                        "--target-vocab", in_room("v"), "--bpe-joiner", "@@ ", "--subword-sampling",
                        "1", "--sampling-sides", cases[i].sides, "--tying", "none"),
                   NULL);
        moved_pieces("encoder.embedding.table", found);
        assert_string_equal(found, cases[i].source);
        moved_pieces("decoder.embedding.table", found);
        assert_string_equal(found, cases[i].target);
        remove_tree(in_room("m"));
    }
}

/* ---- vocabularies ---- */

struct source {
    const char *const *line; /* ended by NULL */
    int times;
    const char *const *at;
};

static heed_status next_line(void *context, const char **text, size_t *length, heed_error *err)
{
    struct source *s = context;
    (void)err;
    if (!*s->at && s->times-- > 1)
        s->at = s->line;
    *text = *s->at;
    *length = *text ? strlen(*text) : 0;
    s->at += *text != NULL;
    return HEED_OK;
}

static heed_vocab *learn(heed_vocab_kind kind, int64_t size, const char *const *lines,
                         const char *path)
{
    heed_error err = {0};
    struct source s = {lines, 10, lines};
    heed_line_source source = {next_line, &s};
    heed_vocab_options o = {.kind = kind, .size = size, .min_count = 1};
    if (heed_vocab_train(&o, &source, path, NULL, &err))
        fail_msg("%s", err.text);
    heed_vocab *v = heed_vocab_open(path, NULL, NULL, &err);
    assert_non_null(v);
    return v;
}

/* Catches special pieces in the text (which is what a model wrote, or a page about one) that a
 * vocabulary learns to spell: it must be that of the text without them. */
static void test_special_pieces(void **state)
{
    (void)state;
    static const char *const with[] = {"<s>a dog runs home</s>",
                                       "the <ph3> dog <unk>sleeps at home", "<ph9><ph0> dogs run",
                                       "</s></s> the runs", NULL};
    static const char *const without[] = {"a dog runs home", "the dog sleeps at home", "dogs run",
                                          "the runs", NULL};
    for (int kind = HEED_UNIGRAM; kind <= HEED_WHITESPACE; kind++) {
        const int64_t size = kind == HEED_WHITESPACE ? 0 : 44;
        heed_vocab *a = learn((heed_vocab_kind)kind, size, with, in_room("with"));
        heed_vocab *b = learn((heed_vocab_kind)kind, size, without, in_room("without"));
        /* Of words, those that only touch a special piece are others. */
        for (int32_t i = 0; kind != HEED_WHITESPACE && i < heed_vocab_size(b); i++)
            assert_string_equal(heed_vocab_piece(a, i), heed_vocab_piece(b, i));
        if (kind != HEED_WHITESPACE)
            assert_int_equal(heed_vocab_size(a), heed_vocab_size(b));
        for (int32_t i = HEED_PLACEHOLDER + HEED_PLACEHOLDERS; i < heed_vocab_size(a); i++)
            for (int32_t k = 0; k < HEED_PLACEHOLDER + HEED_PLACEHOLDERS; k++)
                assert_string_not_equal(heed_vocab_piece(a, i), heed_vocab_piece(a, k));
        heed_vocab_free(a);
        heed_vocab_free(b);
    }
}

/* ---- what is rehearsed ---- */

struct watched {
    int64_t events, stop_after;
    double fraction;
};

static void note_preparing(void *context, const heed_train_progress *p)
{
    struct watched *w = context;
    if (p->event != HEED_TRAIN_PREPARE)
        return;
    assert_true(p->fraction > w->fraction && p->fraction <= 1);
    w->fraction = p->fraction;
    w->events++;
}

static bool stop_then(void *context)
{
    const struct watched *w = context;
    return w->stop_after && w->events >= w->stop_after;
}

/* Catches a model that translates its sample before the first update without a word, or so that
 * nobody can stop it: then there is no folder, and the error says why. */
static void test_sample_is_watched(void **state)
{
    (void)state;
    train_seen("old", MORE("--rate", "0.01", "--schedule", "constant", "--max-updates", "60"),
               NULL);
    char old[256]; /* in_room's own are used again */
    snprintf(old, sizeof old, "%s", in_room("old"));
    const char *const *from = MORE("--from", old, "--max-updates", "2");
    struct watched w = {.stop_after = 3};
    const heed_train_hooks hooks = {.progress = note_preparing, .stop = stop_then, .context = &w};
    heed_error err = {0};
    assert_int_equal(train_in(in_room("new"), from, false, &hooks, NULL, &err), HEED_STATE);
    assert_string_equal(err.text, "stopped after translating 3 of 60 lines");
    assert_int_equal(w.events, 3);
    assert_false(is_there(in_room("new")));
    w = (struct watched){0};
    err = (heed_error){0};
    if (train_in(in_room("new"), from, false, &hooks, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(w.events, 60);
    assert_true(w.fraction == 1);
}

/* Catches rehearsed pairs that pull at what the model says now: before anything has moved, an
 * update of nothing else has no gradient; one with the new pair has. */
static void test_rehearsal_pulls_at_nothing(void **state)
{
    (void)state;
    char old[256];
    int64_t without = 0;
    struct seen s;
    snprintf(old, sizeof old, "%s", in_room("old"));
    train_seen("old", MORE("--rate", "0.01", "--schedule", "constant", "--max-updates", "60"),
               NULL);
    write_text("train.s", "w1 w2 w3 w4 w5\n");
    write_text("train.t", "w1 w1 w1 w1 w1\n");
    const char *const *still = MORE("--from", old, "--rehearse", "0.98", "--batch-tokens", "8",
                                    "--dropout", "0", "--schedule", "constant", "--warmup", "0",
                                    "--rate", "1e-30", "--average", "0", "--max-updates", "250");
    train_seen("taught", still, &s);
    for (int64_t i = 0; i < s.updates; i++)
        without += s.update[i].norm[0] < 1e-4;
    assert_int_equal(s.updates, 250);
    assert_in_range(without, 125, 249);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_sampling_sides), TEST(test_special_pieces),
                                       TEST(test_sample_is_watched),
                                       TEST(test_rehearsal_pulls_at_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
