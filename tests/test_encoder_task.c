/* test_encoder_task.c: encoders that learn from files: classifiers, taggers, masked words, vectors
 * of pairs; what is trained opens and answers alike, alone and among others, fp32 and int8. */
#include <heed/heed.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"

/* ---- made-up data ---- */

static const char *const words[] = {"red",   "green", "blue", "one",  "two",
                                    "three", "up",    "down", "left", "right"};
enum { WORDS = 10 };

static heed_rng rng_of(uint64_t seed)
{
    return heed_rng_stream(&(heed_rng_key){.seed = seed});
}

/* label: whether "red" stands before "blue" in words that have both. */
static void write_labels(const char *path, int lines, uint64_t seed)
{
    FILE *f = fopen(path, "w");
    const heed_rng rng = rng_of(seed);
    uint64_t at = 0;
    assert_non_null(f);
    for (int i = 0; i < lines; i++) {
        const int n = 4 + (int)heed_rng_below(&rng, at++, 4);
        const int a = (int)heed_rng_below(&rng, at++, n);
        const int b = (a + 1 + (int)heed_rng_below(&rng, at++, n - 1)) % n;
        fprintf(f, "%s\t", a < b ? "before" : "behind");
        for (int k = 0; k < n; k++)
            fprintf(f, "%s%c",
                    k == a   ? "red"
                    : k == b ? "blue"
                             : words[3 + heed_rng_below(&rng, at++, WORDS - 3)],
                    k + 1 < n ? ' ' : '\n');
    }
    assert_int_equal(fclose(f), 0);
}

/* A number and the words up to the next direction are a span; a colour begins another kind. */
static void write_tags(const char *path, int sentences, uint64_t seed)
{
    FILE *f = fopen(path, "w");
    const heed_rng rng = rng_of(seed);
    uint64_t at = 0;
    assert_non_null(f);
    for (int i = 0; i < sentences; i++) {
        const int n = 3 + (int)heed_rng_below(&rng, at++, 12);
        for (int k = 0, before = 9; k < n; k++) {
            const int w = (int)heed_rng_below(&rng, at++, WORDS);
            const char *tag = w >= 6                      ? "O"
                              : w < 3                     ? "B-colour"
                              : before >= 3 && before < 6 ? "I-number"
                                                          : "B-number";
            fprintf(f, "%s\tX\t%s\n", words[w], tag);
            before = w;
        }
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

/* Each word but the first follows from the one before. */
static void write_text(const char *path, int lines, uint64_t seed)
{
    FILE *f = fopen(path, "w");
    const heed_rng rng = rng_of(seed);
    assert_non_null(f);
    for (int i = 0; i < lines; i++) {
        int w = (int)heed_rng_below(&rng, (uint64_t)i, WORDS);
        for (int k = 0; k < 8; k++, w = (w + 1) % WORDS)
            fprintf(f, "%s%c", words[w], k < 7 ? ' ' : '\n');
    }
    assert_int_equal(fclose(f), 0);
}

/* Three words, and the same three in another order; with a score: 1 for those, 0 for others. */
static void write_pairs_of(const char *path, int lines, bool scored, uint64_t seed)
{
    FILE *f = fopen(path, "w");
    const heed_rng rng = rng_of(seed);
    uint64_t at = 0;
    assert_non_null(f);
    for (int i = 0; i < lines; i++) {
        int w[6];
        const bool same = !scored || i % 2;
        for (int k = 0; k < 6; k++)
            w[k] = (int)heed_rng_below(&rng, at++, WORDS);
        for (int k = 0; k < 3 && same; k++)
            w[3 + k] = w[2 - k];
        if (scored)
            fprintf(f, "%d\t", same ? 5 : 1);
        fprintf(f, "%s %s %s\t%s %s %s\n", words[w[0]], words[w[1]], words[w[2]], words[w[3]],
                words[w[4]], words[w[5]]);
    }
    assert_int_equal(fclose(f), 0);
}

/* ---- training ---- */

#define SMALL                                                                                      \
    "--encoder-layers", "1", "--d", "32", "--ff", "64", "--heads", "4", "--vocab-size", "90",      \
        "--batch-tokens", "256", "--dropout", "0", "--word-dropout", "0", "--label-smoothing",     \
        "0", "--rate", "0.005", "--warmup", "20", "--threads", "1", "--average", "0"

static heed_trainer *open_run(const char *folder, const char *const *more, heed_arena *arena,
                              const heed_train_hooks *hooks, heed_error *err)
{
    static const char *const small[] = {SMALL};
    const char *all[96];
    int n = 0;
    heed_encoder_recipe r;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        all[n++] = small[i];
    while (*more)
        all[n++] = *more++;
    if (heed_encoder_recipe_parse(&r, n, all, arena, err))
        return NULL;
    return heed_encoder_trainer_new(folder, &r, hooks, NULL, err);
}

/* The measure of the last validation. */
static double run(const char *folder, const char *const *more, const char *measure)
{
    heed_error err = {0};
    heed_train_result result = {.averaged = 0};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_trainer *t = open_run(folder, more, arena, NULL, &err);
    if (t)
        heed_trainer_run(t, &result, &err);
    if (err.status)
        fail_msg("%s", err.text);
    const double value = heed_train_measured(&result.last, measure);
    heed_trainer_free(t);
    heed_arena_free(arena);
    return value;
}

static heed_encoder *open_encoder(const char *folder)
{
    heed_error err = {0};
    heed_encoder *e = heed_encoder_open(folder, 2, NULL, &err);
    if (!e)
        fail_msg("%s", err.text);
    return e;
}

static void convert(const char *from, const char *to)
{
    heed_error err = {0};
    if (heed_convert(from, to, HEED_NUMBERS_INT8, &err))
        fail_msg("%s", err.text);
}

/* ---- classifying ---- */

/* Probabilities of one line. */
static void probabilities(heed_encoder *e, const char *const *text, int n, double *p)
{
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const heed_real *found;
    heed_error err = {0};
    if (heed_encoder_classify(e, text, NULL, n, arena, &found, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 2 * n; i++)
        p[i] = (double)found[i];
    heed_arena_free(arena);
}

/* Catches a classifier that does not learn or forgets its labels, lines that change each other,
 * int8 that is another model. */
static void test_classify(void **state)
{
    (void)state;
    const char *const args[] = {"--task",
                                "classify",
                                "--tsv",
                                in_room("l.tsv"),
                                "--valid-tsv",
                                in_room("lv.tsv"),
                                "--max-updates",
                                "250",
                                "--valid-every",
                                "250",
                                NULL};
    write_labels(in_room("l.tsv"), 1000, 1);
    write_labels(in_room("lv.tsv"), 200, 2);
    const double accuracy = run(in_room("classify"), args, "accuracy");
    assert_true(accuracy >= 95);

    heed_encoder *e = open_encoder(in_room("classify"));
    int64_t n;
    static const char *const lines[] = {"red one blue", "blue up up up left red", "", "blue red"};
    double all[8], one[2];
    assert_string_equal(heed_encoder_labels(e, &n)[0], "before");
    assert_int_equal(n, 2);
    assert_string_equal(heed_encoder_trained_for(e), "classify");
    probabilities(e, lines, 4, all);
    assert_true(all[0] > 0.5 && all[3] > 0.5 && all[7] > 0.5);
    for (int i = 0; i < 4; i++) {
        probabilities(e, lines + i, 1, one);
        assert_true(one[0] == all[2 * i] && one[1] == all[2 * i + 1]);
    }
    heed_error err = {0};
    assert_int_equal(heed_encoder_can(e, HEED_ENCODER_TAG, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "the model was trained with --task classify, this needs --task "
                                  "tag");
    heed_encoder_free(e);

    double bytes[8];
    convert(in_room("classify"), in_room("classify8"));
    e = open_encoder(in_room("classify8"));
    probabilities(e, lines, 4, bytes);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(bytes[i] - all[i]) < 0.05);
    heed_encoder_free(e);
}

/* ---- tagging ---- */

/* Catches answers at other rows than first pieces, F1 of single tags, and long sentences whose
 * second part is lost. */
static void test_tag(void **state)
{
    (void)state;
    const char *const args[] = {"--task",
                                "tag",
                                "--conll",
                                in_room("t.conll"),
                                "--valid-conll",
                                in_room("tv.conll"),
                                "--max-updates",
                                "250",
                                "--valid-every",
                                "250",
                                "--longest",
                                "16",
                                NULL};
    write_tags(in_room("t.conll"), 800, 3);
    write_tags(in_room("tv.conll"), 100, 4);
    assert_true(run(in_room("tag"), args, "F1") >= 95);
    heed_encoder *e = open_encoder(in_room("tag"));
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_error err = {0};
    const char *word[60];
    const int64_t length[] = {1, 0, 59};
    const int32_t *tag;
    const heed_real *p;
    int64_t n;
    for (int i = 0; i < 60; i++)
        word[i] = i % 5 == 0 ? "red" : "up";
    if (heed_encoder_tag(e, word, length, 3, arena, &tag, &p, &err))
        fail_msg("%s", err.text);
    const char *const *name = heed_encoder_labels(e, &n);
    for (int i = 0; i < 60; i++) {
        assert_string_equal(name[tag[i]], i % 5 == 0 ? "B-colour" : "O");
        assert_true(p[i] > 0.3 && p[i] <= 1);
    }
    heed_arena_free(arena);
    heed_encoder_free(e);
}

/* ---- masked words, and starting from them ---- */

/* Catches masks that are not learned from, a head that says other pieces than it was asked for,
 * weights that do not come along with --from. */
static void test_masked(void **state)
{
    (void)state;
    const char *const args[] = {
        "--task", "mlm",           "--text", in_room("text"), "--max-updates",
        "1200",   "--valid-every", "1200",   "--longest",     "16",
        NULL};
    write_text(in_room("text"), 2000, 5);
    assert_true(run(in_room("mlm"), args, "accuracy") >= 85);
    heed_encoder *e = open_encoder(in_room("mlm"));
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_error err = {0};
    const heed_filled *filled;
    int64_t masks;
    if (heed_encoder_fill(e, "one two [MASK] up down [MASK] right", 3, arena, &filled, &masks,
                          &err))
        fail_msg("%s", err.text);
    assert_int_equal(masks, 2);
    assert_string_equal(filled[0].piece, "three");
    assert_string_equal(filled[0].text, "one two three up down left right");
    assert_string_equal(filled[3].piece, "left");
    assert_true(filled[0].probability > filled[1].probability);
    assert_int_equal(heed_encoder_fill(e, "one two", 3, arena, &filled, &masks, &err),
                     HEED_ARGUMENT);
    assert_string_equal(err.text, "there is no [MASK] in the text");
    heed_arena_free(arena);
    heed_encoder_free(e);

    /* No update: what a classifier has of it is the encoder, not the head. */
    const char *const from[] = {"--task", "classify",     "--tsv",         in_room("f.tsv"),
                                "--from", in_room("mlm"), "--max-updates", "1",
                                "--rate", "1e-12",        "--warmup",      "0",
                                NULL};
    FILE *f = fopen(in_room("f.tsv"), "w");
    for (int i = 0; i < 40; i++)
        fprintf(f, "%s\t%s\n", i % 2 ? "a" : "b", words[i % WORDS]);
    assert_int_equal(fclose(f), 0);
    const char *all[64];
    int n = 0;
    for (; from[n]; n++)
        all[n] = from[n];
    heed_encoder_recipe r;
    arena = heed_arena_new(NULL, NULL);
    err = (heed_error){0};
    heed_train_result result;
    heed_encoder_recipe_parse(&r, n, all, arena, &err);
    heed_trainer *t = heed_encoder_trainer_new(in_room("from"), &r, NULL, NULL, &err);
    if (!t || heed_trainer_run(t, &result, &err))
        fail_msg("%s", err.text);
    heed_trainer_free(t);
    heed_safetensors *a = heed_safetensors_open(in_room("mlm/model.safetensors"), NULL, &err);
    heed_safetensors *b = heed_safetensors_open(in_room("from/model.safetensors"), NULL, &err);
    heed_real x[8], y[8];
    heed_stored_read(heed_safetensors_find(a, "encoder.0.self.qkv.weight"), x, 0, 8, &err);
    heed_stored_read(heed_safetensors_find(b, "encoder.0.self.qkv.weight"), y, 0, 8, &err);
    if (err.status)
        fail_msg("%s", err.text);
    for (int i = 0; i < 8; i++)
        assert_true(fabs((double)(x[i] - y[i])) < 1e-6);
    heed_safetensors_close(a);
    heed_safetensors_close(b);
    heed_arena_free(arena);
}

/* ---- vectors ---- */

/* Catches vectors that are not of length 1, and pairs that are not told apart. */
static void test_embed(void **state)
{
    (void)state;
    const char *const args[] = {"--task",         "embed",         "--tsv",
                                in_room("p.tsv"), "--max-updates", "150",
                                "--valid-every",  "150",           NULL};
    const char *const scored[] = {"--task",         "embed",         "--tsv",
                                  in_room("s.tsv"), "--max-updates", "400",
                                  "--valid-every",  "400",           NULL};
    write_pairs_of(in_room("p.tsv"), 600, false, 6);
    write_pairs_of(in_room("s.tsv"), 600, true, 7);
    assert_true(run(in_room("embed"), args, "accuracy") >= 80);
    assert_true(run(in_room("scored"), scored, "Spearman") >= 60);
    heed_encoder *e = open_encoder(in_room("embed"));
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_error err = {0};
    static const char *const lines[] = {"red one up", "up one red", "left two blue"};
    const heed_real *v;
    double square = 0, near = 0, far = 0;
    if (heed_encoder_embed(e, lines, 3, arena, &v, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 32; i++) {
        square += (double)(v[i] * v[i]);
        near += (double)(v[i] * v[32 + i]);
        far += (double)(v[i] * v[64 + i]);
    }
    assert_true(fabs(square - 1) < 1e-5);
    assert_true(near > far + 0.1);
    heed_arena_free(arena);
    heed_encoder_free(e);
}

/* ---- saves ---- */

static bool stop_after(void *context)
{
    return --*(int *)context <= 0;
}

/* Catches an order of examples, hidden tokens or masks that a pause changes. */
static void test_resume(void **state)
{
    (void)state;
    const char *const args[] = {"--task",
                                "classify",
                                "--tsv",
                                in_room("r.tsv"),
                                "--max-updates",
                                "60",
                                "--valid-every",
                                "20",
                                "--word-dropout",
                                "0.2",
                                "--dropout",
                                "0.1",
                                "--accumulate",
                                "2",
                                NULL};
    write_labels(in_room("r.tsv"), 300, 8);
    run(in_room("whole"), args, "loss");
    heed_error err = {0};
    heed_train_result result;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    int left = 33;
    const heed_train_hooks hooks = {.stop = stop_after, .context = &left};
    heed_trainer *t = open_run(in_room("part"), args, arena, &hooks, &err);
    if (!t || heed_trainer_run(t, &result, &err))
        fail_msg("%s", err.text);
    heed_trainer_free(t);
    assert_int_equal(result.reason, HEED_TRAIN_ASKED);
    t = heed_encoder_trainer_resume(in_room("part"), NULL, NULL, NULL, &err);
    if (!t || heed_trainer_run(t, &result, &err))
        fail_msg("%s", err.text);
    heed_trainer_free(t);
    heed_arena_free(arena);
    char command[700];
    snprintf(command, sizeof command, "cmp -s %s %s", in_room("whole/model.safetensors"),
             in_room("part/model.safetensors"));
    assert_int_equal(system(command), 0);
}

/* ---- what is refused ---- */

static void refused(const char *const *more, const char *expected)
{
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    assert_null(open_run(in_room("refused"), more, arena, NULL, &err));
    if (!strstr(err.text, expected))
        fail_msg("'%s' has not '%s'", err.text, expected);
    heed_arena_free(arena);
}

static void test_refused(void **state)
{
    (void)state;
    write_labels(in_room("ok.tsv"), 20, 9);
    FILE *f = fopen(in_room("odd.tsv"), "w");
    fputs("before\tred blue\nnever\tred\n", f);
    fclose(f);
#define REFUSED(text, ...) refused((const char *const[]){__VA_ARGS__, NULL}, text)
    REFUSED("nothing to learn from: --task classify needs --tsv", "--task", "classify");
    REFUSED("--task tag reads --conll and --valid-conll, not --tsv", "--task", "tag", "--tsv", "x");
    REFUSED("label 'never' was never seen in training, expected one of before, behind", "--tsv",
            in_room("ok.tsv"), "--valid-tsv", in_room("odd.tsv"));
    REFUSED("--longest is 4, expected at least 8", "--tsv", in_room("ok.tsv"), "--longest", "4");
    REFUSED("the vocabulary has no [MASK]", "--task", "mlm", "--text", in_room("ok.tsv"),
            "--tokens", "whitespace");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classify), cmocka_unit_test(test_tag),
        cmocka_unit_test(test_masked),   cmocka_unit_test(test_embed),
        cmocka_unit_test(test_resume),   cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_room, clear_room);
}
