/* test_trainer.c: the training loop through the library: what it learns, when it stops, what it
 * does with numbers that are none, and what it leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "train_case.h"
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

/* What the hooks of these tests see and do. */
struct watch {
    int stop_question; /* stop at this question, from 1; 0: never */
    int questions;
    int64_t stop_after;   /* updates; 0: never */
    int64_t poison;       /* make this update's gradient NaN; 0: none */
    int poisonings;       /* how many times */
    double poison_factor; /* of weights, instead of the gradient; 0: none */
    int64_t updates;      /* progress calls of that kind */
    int validations, rollbacks;
    double first_loss, rate;
    char warnings[2048], lines[2048];
    const struct failing *allocator;
    int calls[2]; /* of the allocator at updates 60 and 120 */
};

static void watch_log(void *context, heed_log_level level, const char *line)
{
    struct watch *w = context;
    char *text = level == HEED_LOG_WARNING ? w->warnings : w->lines;
    size_t n = strlen(text);
    snprintf(text + n, sizeof w->lines - n, "%s\n", line);
}

static void watch_progress(void *context, const heed_train_progress *p)
{
    struct watch *w = context;
    w->validations += p->event == HEED_TRAIN_VALIDATION;
    w->rollbacks += p->event == HEED_TRAIN_ROLLBACK;
    if (p->event != HEED_TRAIN_UPDATE)
        return;
    if (w->updates++ == 0)
        w->first_loss = p->loss[0];
    w->rate = p->rate;
    if (w->allocator && (p->update == 60 || p->update == 120))
        w->calls[p->update == 120] = w->allocator->calls;
}

static bool watch_stop(void *context)
{
    struct watch *w = context;
    w->questions++;
    return (w->stop_after && w->updates >= w->stop_after) ||
           (w->stop_question && w->questions >= w->stop_question);
}

static void watch_gradients(void *context, heed_params *p, int64_t update)
{
    struct watch *w = context;
    if (update == w->poison && w->poisonings > 0) {
        w->poisonings--;
        heed_tensor *weights = heed_params_entry(p, 0).tensor;
        /* One that is no number is enough. */
        int64_t n = isnan(w->poison_factor) ? 1 : heed_tensor_count(weights);
        for (int64_t i = 0; w->poison_factor != 0 && i < n; i++)
            heed_tensor_data(weights)[i] *= (heed_real)w->poison_factor;
        if (w->poison_factor == 0)
            heed_tensor_grad(heed_params_entry(p, 1).tensor)[0] = (heed_real)NAN;
    }
}

static heed_train_hooks hooks_of(struct watch *w)
{
    return (heed_train_hooks){.log = {watch_log, w},
                              .progress = watch_progress,
                              .stop = watch_stop,
                              .gradients = watch_gradients,
                              .context = w};
}

static heed_train_result train_well(const char *folder, const char *const *more, bool resume,
                                    struct watch *w)
{
    heed_train_hooks hooks = hooks_of(w);
    heed_train_result result;
    heed_error err = {0};
    if (train_in(folder, more, resume, &hooks, &result, &err))
        fail_msg("%s", err.text);
    return result;
}

static void same_end(const char *a, const char *b, const char *step)
{
    char name[128];
    static const char *const files[] = {"model.safetensors", "moments.safetensors"};
    assert_true(same_file(a, b, "model.safetensors"));
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "training/%s/%s", step, files[i]);
        if (!same_file(a, b, name))
            fail_msg("'%s' differs", name);
    }
}

/* Catches a loop that does not train, or publishes something else than what it trained. */
static void test_learns_and_translates(void **state)
{
    (void)state;
    struct watch w = {0};
    write_pairs(in_room("valid.s"), in_room("valid.t"), 60, 1); /* what is learned, by heart */
    heed_train_result r = train_well(in_room("m"),
                                     MORE("--max-updates", "1000", "--valid-every", "200", "--d",
                                          "32", "--ff", "64", "--rate", "0.5", "--dropout", "0",
                                          "--label-smoothing", "0", "--warmup", "100"),
                                     false, &w);
    assert_int_equal(r.reason, HEED_TRAIN_MAX_UPDATES);
    assert_int_equal(w.updates, 1000);
    assert_true(heed_train_measured(&r.last, "loss") < 0.3 * w.first_loss);
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_translator *tr = heed_translator_open(in_room("m"), 1, NULL, &err);
    assert_non_null(tr);
    heed_search_options search = {.beam = 1, .n_best = 1, .extra_length = 10};
    size_t n;
    char *source = bytes_of(in_room("train.s"), &n), *target = bytes_of(in_room("train.t"), &n);
    char *at[2] = {NULL, NULL};
    const char *line = strtok_r(source, "\n", &at[0]), *wanted = strtok_r(target, "\n", &at[1]);
    int right = 0, lines = 0;
    for (; line; lines++) {
        heed_translation out;
        assert_int_equal(heed_translate(tr, &search, &line, 1, arena, &out, &err), HEED_OK);
        right += strcmp(out.text, wanted) == 0;
        line = strtok_r(NULL, "\n", &at[0]);
        wanted = strtok_r(NULL, "\n", &at[1]);
    }
    assert_int_equal(lines, 60);
    if (right < 54) /* 58 at least with eight seeds */
        fail_msg("%d of 60 lines are right", right);
    free(source);
    free(target);
    heed_translator_free(tr);
    heed_arena_free(arena);
}

/* Catches state that a save forgets: position, moments, average, dropout's step, the log's sums. */
static void test_resume_is_identical(void **state)
{
    (void)state;
    const char *const *more = MORE("--ema", "0.9", "--accumulate", "2", "--save-every", "7");
    struct watch whole = {0};
    train_well(in_room("whole"), more, false, &whole);
    for (int64_t stop = 1; stop < 30; stop += 6) {
        struct watch first = {.stop_after = stop}, second = {.stop_after = 5}, third = {0};
        char folder[128];
        snprintf(folder, sizeof folder, "%s/stopped-%d", room, (int)stop);
        heed_train_result r = train_well(folder, more, false, &first);
        assert_int_equal(r.reason, HEED_TRAIN_ASKED);
        assert_int_equal(r.last.update, stop);
        train_well(folder, more, true, &second);
        train_well(folder, more, true, &third);
        same_end(in_room("whole"), folder, "step-30");
        assert_true(same_file(in_room("whole"), folder, "training/step-30/average.safetensors"));
    }
}

/* Catches a validation that is lost because somebody stopped the run in its middle: stops at one
 * question in three, those inside validations and the last average among them. */
static void test_stopped_anywhere(void **state)
{
    (void)state;
    struct watch whole = {0};
    train_well(in_room("whole"), NULL, false, &whole);
    assert_true(whole.questions > 40);
    for (int n = 1; n <= whole.questions; n += 3) {
        struct watch first = {.stop_question = n}, second = {0};
        train_well(in_room("m"), NULL, false, &first);
        train_well(in_room("m"), NULL, true, &second);
        same_end(in_room("whole"), in_room("m"), "step-30");
        remove_tree(in_room("m"));
    }
}

/* Catches a log that repeats or lacks lines after a resume. */
static void test_log_of_a_resumed_run(void **state)
{
    (void)state;
    struct watch first = {.stop_after = 17}, second = {0};
    train_well(in_room("m"), NULL, false, &first);
    train_well(in_room("m"), NULL, true, &second);
    size_t n;
    char *log = bytes_of(in_room("m/training/log.jsonl"), &n);
    int updates = 0, validations = 0;
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        int update;
        updates += sscanf(line, "{\"event\": \"update\", \"update\": %d", &update) == 1;
        validations += strncmp(line, "{\"event\": \"validation\"", 22) == 0;
        assert_int_equal(line[strlen(line) - 1], '}');
    }
    assert_int_equal(updates, 6);
    assert_int_equal(validations, 3);
    free(log);
}

/* Catches a NaN that reaches the weights, a rollback to another place or at the full rate, and one
 * that an interrupted run does differently. */
static void test_rolls_back(void **state)
{
    (void)state;
    struct watch clean = {0}, whole = {.poison = 13, .poisonings = 1};
    train_well(in_room("clean"), NULL, false, &clean);
    heed_train_result r = train_well(in_room("whole"), NULL, false, &whole);
    assert_int_equal(r.last.update, 30);
    assert_int_equal(whole.rollbacks, 1);
    assert_float_equal(whole.rate, clean.rate / 2, 1e-9);
    assert_non_null(strstr(whole.warnings, "update 13: the gradient of '"));
    assert_non_null(strstr(whole.warnings, "back to update 10, with the learning rate times 0.5"));
    struct watch first = {.stop_after = 12}, second = {.poison = 13, .poisonings = 1};
    train_well(in_room("stopped"), NULL, false, &first);
    train_well(in_room("stopped"), NULL, true, &second);
    same_end(in_room("whole"), in_room("stopped"), "step-30");
}

/* Catches a run that goes back for ever, or that damages its directory before it gives up. */
static void test_gives_up(void **state)
{
    (void)state;
    struct watch w = {.poison = 13, .poisonings = 4};
    heed_train_hooks hooks = hooks_of(&w);
    heed_error err = {0};
    assert_int_equal(train_in(in_room("m"), NULL, false, &hooks, NULL, &err), HEED_NUMERIC);
    assert_int_equal(w.rollbacks, 3);
    assert_non_null(strstr(err.text, "train anew, or --from this model"));
    struct watch again = {0};
    assert_int_equal(train_well(in_room("m"), NULL, true, &again).last.update, 30);
}

/* Catches a loss that is reported as "-nan". */
static void test_nan_has_no_sign(void **state)
{
    (void)state;
    struct watch w = {.poison = 12, .poisonings = 4, .poison_factor = -NAN};
    heed_train_hooks hooks = hooks_of(&w);
    heed_error err = {0};
    assert_int_equal(train_in(in_room("m"), NULL, false, &hooks, NULL, &err), HEED_NUMERIC);
    assert_non_null(strstr(err.text, "update 13: the weights of '"));
    assert_non_null(strstr(err.text, "are not finite (loss nan nats a token"));
}

/* Catches an exploding loss that passes for a number. */
static void test_absurd_rate(void **state)
{
    (void)state;
    struct watch w = {0};
    heed_train_hooks hooks = hooks_of(&w);
    heed_error err = {0};
    assert_int_equal(train_in(in_room("m"), MORE("--rate", "1e20"), false, &hooks, NULL, &err),
                     HEED_NUMERIC);
    assert_int_equal(w.rollbacks, 3);
}

/* Catches weights that nothing can be computed with and that are validated, published or saved, to
 * be gone back to. */
static void test_saves_nothing_absurd(void **state)
{
    (void)state;
    static const char *const cases[][5] = {
        {"--valid-every", "1"},
        {"--save-every", "1", "--valid-every", "0"},
        {"--valid-every", "1", "--valid-lines", "0"},
        {"--max-updates", "1", "--valid-lines", "0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watch w = {0};
        heed_train_hooks hooks = hooks_of(&w);
        heed_error err = {0};
        const char *const *c = cases[i];
        assert_int_equal(train_in(in_room("m"),
                                  MORE("--schedule", "constant", "--warmup", "0", "--rate", "1e30",
                                       c[0], c[1], c[2], c[3]),
                                  false, &hooks, NULL, &err),
                         HEED_NUMERIC);
        assert_int_equal(w.rollbacks, 3);
        assert_int_equal(w.validations, 0);
        assert_non_null(strstr(w.warnings, "after update 1 the loss is "));
        assert_non_null(strstr(w.warnings, "back to update 0, with the learning rate times 0.5"));
        assert_non_null(strstr(err.text, "train anew, or --from this model"));
        assert_false(is_there(in_room("m/training/step-1")));
        assert_false(is_there(in_room("m/training/best.safetensors")));
        remove_tree(in_room("m"));
    }
}

/* Catches weights that only a validation shows to be absurd: those that a resumed run starts
 * with. */
static void test_absurd_validation(void **state)
{
    (void)state;
    static const struct {
        double factor;
        const char *text;
    } cases[] = {{NAN, "after update 12 the weights of '"},
                 {1e6, "after update 12 the validation loss is "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watch first = {
            .poison = 12, .poisonings = 1, .poison_factor = cases[i].factor, .stop_after = 12};
        struct watch second = {0};
        train_well(in_room("m"), NULL, false, &first);
        heed_train_result r = train_well(in_room("m"), MORE("--valid-every", "12"), true, &second);
        assert_int_equal(r.last.update, 30);
        assert_int_equal(second.rollbacks, 1);
        assert_non_null(strstr(second.warnings, cases[i].text));
        assert_non_null(strstr(second.warnings, "back to update 10, "));
        remove_tree(in_room("m"));
    }
}

/* Catches a patience that is not counted, or reset by equal scores. */
static void test_patience(void **state)
{
    (void)state;
    struct watch w = {0};
    heed_train_result r = train_well(in_room("m"),
                                     MORE("--max-updates", "0", "--schedule", "constant", "--rate",
                                          "1e-30", "--valid-every", "2"),
                                     false, &w);
    assert_int_equal(r.reason, HEED_TRAIN_PATIENCE);
    assert_int_equal(r.last.best_update, 2);
    assert_int_equal(r.last.update, 2 + 10 * 2);
}

/* Catches epochs that end too early or too late: each pair is seen once in each. */
static void test_epochs(void **state)
{
    (void)state;
    struct watch w = {0};
    heed_train_result r =
        train_well(in_room("m"), MORE("--max-updates", "0", "--max-epochs", "3"), false, &w);
    assert_int_equal(r.reason, HEED_TRAIN_MAX_EPOCHS);
    assert_int_equal(r.last.epoch, 3);
    assert_int_equal(w.updates % 3, 0);
}

/* Catches a run without validation files that validates on what it trains on. */
static void test_holds_out(void **state)
{
    (void)state;
    struct watch w = {0};
    heed_error err = {0};
    heed_train_hooks hooks = hooks_of(&w);
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_recipe r = recipe_with(arena, NULL);
    heed_train_forecast f;
    r.train.valid_source = r.train.valid_target = (heed_option_list){NULL, 0};
    heed_trainer *t = heed_trainer_new(in_room("m"), &r, &hooks, NULL, &err);
    assert_non_null(t);
    assert_int_equal(heed_trainer_forecast(t, &f, &err), HEED_OK);
    assert_int_equal(heed_trainer_text(t).valid_pairs, 3);
    assert_int_equal(heed_trainer_text(t).pairs, 57);
    assert_non_null(strstr(w.lines, "3 of the pairs are held out"));
    heed_trainer_free(t);
    heed_arena_free(arena);
}

/* Catches pairs that are left out without a word. */
static void test_tells_what_is_too_long(void **state)
{
    (void)state;
    struct watch w = {0};
    heed_error err = {0};
    FILE *s = fopen(in_room("train.s"), "a"), *t = fopen(in_room("train.t"), "a");
    assert_true(s && t);
    for (int i = 0; i < 20; i++)
        fprintf(s, "w1%c", i < 19 ? ' ' : '\n');
    fputs("w1\n", t);
    assert_int_equal(fclose(s) | fclose(t), 0);
    train_well(in_room("m"), MORE("--max-tokens", "20", "--accumulate", "9"), false, &w);
    assert_string_equal(w.warnings, "1 of 61 pairs are left out: more than 20 tokens "
                                    "(--max-tokens) on a side\n");
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_recipe r = recipe_with(arena, MORE("--longest", "20"));
    heed_train_forecast f;
    heed_trainer *trainer = heed_trainer_new(in_room("n"), &r, NULL, NULL, &err);
    assert_non_null(trainer);
    assert_int_equal(heed_trainer_forecast(trainer, &f, &err), HEED_OK);
    assert_int_equal(heed_trainer_text(trainer).left_out, 1);
    heed_trainer_free(trainer);
    heed_arena_free(arena);
}

static int entries_in_room(void)
{
    int n = 0;
    DIR *d = opendir(room);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Catches a forecast that leaves something behind or has no numbers in it. */
static void test_forecast(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_recipe r = recipe_with(arena, NULL);
    heed_train_forecast f;
    int before = entries_in_room();
    heed_trainer *t = heed_trainer_new(in_room("m"), &r, NULL, NULL, &err);
    assert_non_null(t);
    assert_int_equal(heed_trainer_forecast(t, &f, &err), HEED_OK);
    const heed_text_report text = heed_trainer_text(t);
    heed_trainer_free(t);
    assert_int_equal(entries_in_room(), before);
    assert_int_equal(text.pairs, 60);
    assert_int_equal(text.valid_pairs, 6);
    assert_int_equal(text.source_vocabulary, HEED_PLACEHOLDER + HEED_PLACEHOLDERS + 10);
    assert_true(f.parameters > 1000 && f.memory > 4 * (size_t)f.parameters);
    assert_true(f.items_per_second > 0 && f.seconds_per_epoch > 0);
    assert_in_range(f.updates_per_epoch, 4, 8);
    heed_arena_free(arena);
}

/* Catches options that fail late, without a name, or leave a directory behind. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *words[7];
        heed_status status;
        const char *text;
    } cases[] = {
        {{"--heads", "7"}, HEED_ARGUMENT, "--heads 7 does not divide --d 16"},
        {{"--no-joint"}, HEED_ARGUMENT, "use --tying target or --tying none"},
        {{"--tsv", "nowhere.tsv"}, HEED_IO, "'nowhere.tsv'"},
        {{"--schedule", "cosine", "--max-updates", "0", "--max-epochs", "1"},
         HEED_ARGUMENT,
         "--schedule cosine needs --max-updates"},
        {{"--warmup", "0"}, HEED_ARGUMENT, "--warmup"},
        {{"--subword-sampling", "0.1"},
         HEED_ARGUMENT,
         "needs --tokens sentencepiece, or --bpe-joiner"},
        {{"--weight-decay", "0.1"}, HEED_ARGUMENT, "needs --optimizer adamw"},
        {{"--source", "more.en"},
         HEED_ARGUMENT,
         "files with --source: 2, with --target: 1, expected as many"},
        {{"--vocab", "nowhere.vocab"}, HEED_IO, "'nowhere.vocab'"},
        {{"--vocab-size", "10000000", "--d", "65536", "--ff", "1000000"},
         HEED_MEMORY,
         "million parameters"},
        {{"--max-tokens", "1"}, HEED_FORMAT, "--max-tokens"},
    };
    int before = entries_in_room();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_error err = {0};
        heed_status status = train_in(in_room("m"), cases[i].words, false, NULL, NULL, &err);
        if (status != cases[i].status || !strstr(err.text, cases[i].text))
            fail_msg("%s %s: status %d, '%s'", cases[i].words[0],
                     cases[i].words[1] ? cases[i].words[1] : "", (int)status, err.text);
        assert_int_equal(entries_in_room(), before);
    }
}

static void *keep_writing(void *folder)
{
    for (int i = 0; i < 500; i++) {
        char path[320];
        snprintf(path, sizeof path, "%s/%d", (const char *)folder, i);
        FILE *f = fopen(path, "w");
        if (!f)
            break;
        fclose(f);
    }
    return NULL;
}

/* Catches something left behind of a directory that another thread still prepares. */
static void test_discard(void **state)
{
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s.heed-%ld.tmp", in_room("m"), (long)getpid());
    for (int i = 0; i < 100; i++) {
        heed_error err = {0};
        pthread_t writer;
        assert_int_equal(mkdir(path, 0777), 0);
        assert_int_equal(pthread_create(&writer, NULL, keep_writing, path), 0);
        usleep(300 + 10 * (unsigned)i);
        heed_status status = heed_trainer_discard(in_room("m"), &err);
        pthread_join(writer, NULL);
        if (status || is_there(path))
            fail_msg("round %d: '%s'", i, err.text);
    }
    assert_int_equal(heed_trainer_discard(in_room("m"), NULL), HEED_OK);
}

/* Catches a directory with something in it that is overwritten. */
static void test_existing_directory(void **state)
{
    (void)state;
    struct watch w = {0};
    train_well(in_room("m"), MORE("--max-updates", "2"), false, &w);
    heed_error err = {0};
    assert_int_equal(train_in(in_room("m"), NULL, false, NULL, NULL, &err), HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "go on with --resume"));
}

/* Catches an update that asks for memory once the first epochs are over. */
static void test_updates_do_not_allocate(void **state)
{
    (void)state;
    struct failing f = {0};
    heed_allocator counting = failing_allocator(&f);
    struct watch w = {.allocator = &f};
    heed_train_hooks hooks = hooks_of(&w);
    heed_error err = {0};
    heed_train_result result;
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_recipe r = recipe_with(arena, MORE("--max-updates", "121", "--valid-every", "0"));
    heed_trainer *t = heed_trainer_new(in_room("m"), &r, &hooks, &counting, &err);
    assert_non_null(t);
    assert_int_equal(heed_trainer_run(t, &result, &err), HEED_OK);
    heed_trainer_free(t);
    heed_arena_free(arena);
    assert_true(w.calls[0] > 0);
    assert_int_equal(w.calls[1], w.calls[0]);
    assert_int_equal(f.held, 0);
}

/* Catches memory that is lost, or a crash, when any allocation of the preparation fails. */
static void test_preparing_without_memory(void **state)
{
    (void)state;
    heed_error none = {0};
    heed_arena *arena = heed_arena_new(NULL, &none);
    heed_recipe r = recipe_with(arena, MORE("--ema", "0.9"));
    heed_trainer *t = NULL;
    int before = entries_in_room();
    for (int n = 1; !t; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        t = heed_trainer_new(in_room("m"), &r, NULL, &a, &err);
        if (!t && err.status != HEED_MEMORY)
            fail_msg("allocation %d: status %d, '%s'", n, (int)err.status, err.text);
        heed_trainer_free(t);
        assert_int_equal(f.held, 0);
        assert_true(n < 2000);
    }
    assert_int_equal(entries_in_room(), before);
    heed_arena_free(arena);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_learns_and_translates),
        TEST(test_resume_is_identical),
        TEST(test_stopped_anywhere),
        TEST(test_log_of_a_resumed_run),
        TEST(test_rolls_back),
        TEST(test_gives_up),
        TEST(test_absurd_rate),
        TEST(test_nan_has_no_sign),
        TEST(test_saves_nothing_absurd),
        TEST(test_absurd_validation),
        TEST(test_patience),
        TEST(test_epochs),
        TEST(test_holds_out),
        TEST(test_tells_what_is_too_long),
        TEST(test_forecast),
        TEST(test_refusals),
        TEST(test_discard),
        TEST(test_existing_directory),
        TEST(test_updates_do_not_allocate),
        TEST(test_preparing_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
