/* test_checkpoint.c: saves: what is kept, what a damaged one does, what may change on resume, and a
 * disk that is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char warnings[4096];

static void collect(void *context, heed_log_level level, const char *line)
{
    (void)context;
    size_t n = strlen(warnings);
    if (level == HEED_LOG_WARNING)
        snprintf(warnings + n, sizeof warnings - n, "%s\n", line);
}
static const heed_train_hooks collecting = {.log = {collect, NULL}};

static void train_well(const char *folder, const char *const *more, bool resume)
{
    heed_error err = {0};
    warnings[0] = '\0';
    if (train_in(folder, more, resume, &collecting, NULL, &err))
        fail_msg("%s", err.text);
}

/* Replaces one byte, or cuts the file if at is negative. */
static void damage(const char *path, long at)
{
    size_t n;
    char *bytes = bytes_of(path, &n);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (at >= 0)
        bytes[at] ^= 1;
    fwrite(bytes, 1, at < 0 ? n / 2 : n, f);
    assert_int_equal(fclose(f), 0);
    free(bytes);
}

/* Catches saves that pile up, and one that goes while the average still needs its weights. */
static void test_keeps_what_is_needed(void **state)
{
    (void)state;
    train_well(in_room("m"),
               MORE("--max-updates", "60", "--keep", "2", "--average", "4", "--save-every", "5"),
               false);
    static const char *const there[] = {"step-60", "step-55", "weights/step-50.safetensors",
                                        "weights/step-45.safetensors", "latest/state.json"};
    static const char *const gone[] = {"step-50", "step-0", "weights/step-40.safetensors",
                                       "step-60.tmp"};
    char path[256];
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        snprintf(path, sizeof path, "%s/m/training/%s", room, there[i]);
        if (!is_there(path))
            fail_msg("'%s' is not there", there[i]);
    }
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        snprintf(path, sizeof path, "%s/m/training/%s", room, gone[i]);
        if (is_there(path))
            fail_msg("'%s' is still there", gone[i]);
    }
}

/* Catches an average that is not the mean, or of the wrong saves. */
static void test_average_is_the_mean(void **state)
{
    (void)state;
    heed_error err = {0};
    /* At a rate so high that the weights jump about, the mean is better and is published: with one
     * seed or another. */
    heed_train_result r = {0};
    for (char seed[2] = "1"; r.averaged == 0; seed[0]++) {
        assert_true(seed[0] <= '9');
        remove_tree(in_room("m"));
        assert_int_equal(train_in(in_room("m"),
                                  MORE("--average", "2", "--save-every", "1", "--max-updates", "60",
                                       "--keep", "3", "--schedule", "constant", "--rate", "0.1",
                                       "--valid-every", "0", "--seed", seed),
                                  false, NULL, &r, &err),
                         HEED_OK);
    }
    assert_int_equal(r.averaged, 2);
    heed_safetensors *mean = heed_safetensors_open(in_room("m/model.safetensors"), NULL, &err);
    heed_safetensors *a =
        heed_safetensors_open(in_room("m/training/step-59/model.safetensors"), NULL, &err);
    heed_safetensors *b =
        heed_safetensors_open(in_room("m/training/step-60/model.safetensors"), NULL, &err);
    assert_true(mean && a && b);
    heed_real x[3];
    double difference = 0, spread = 0;
    for (int i = 0; i < heed_safetensors_count(mean); i++) {
        const heed_stored *s = heed_safetensors_at(mean, i);
        int64_t n = 1;
        for (int k = 0; k < s->rank; k++)
            n *= s->dim[k];
        for (int64_t k = 0; k < n; k++) {
            heed_stored_read(s, &x[0], k, 1, &err);
            heed_stored_read(heed_safetensors_find(a, s->name), &x[1], k, 1, &err);
            heed_stored_read(heed_safetensors_find(b, s->name), &x[2], k, 1, &err);
            double d = x[0] - (x[1] + x[2]) / 2;
            difference = d * d > difference ? d * d : difference;
            spread += (x[1] - x[2]) * (x[1] - x[2]);
        }
    }
    heed_safetensors_close(mean);
    heed_safetensors_close(a);
    heed_safetensors_close(b);
    assert_true(spread > 0);
    assert_true(difference < 1e-12); /* one rounding of numbers around 1, squared */
}

/* Losses of the validations, by their number. */
struct losses {
    int64_t count, update[32];
    double loss[32];
};

static void note_loss(void *context, const heed_train_progress *p)
{
    struct losses *l = context;
    if (p->event != HEED_TRAIN_VALIDATION)
        return;
    assert_true(l->count < 32);
    l->update[l->count] = p->update;
    l->loss[l->count++] = heed_train_measured(p, "loss");
}

/* Catches an average of other saves than those that validated best. */
static void test_average_of_the_best(void **state)
{
    (void)state;
    enum { BEST = 3 };
    struct losses l = {0};
    const heed_train_hooks hooks = {.progress = note_loss, .context = &l};
    heed_train_result r = {0};
    heed_error err = {0};
    /* At a rate so high that the losses go up and down. */
    assert_int_equal(
        train_in(in_room("m"),
                 MORE("--average", "3", "--average-kind", "best", "--valid-every", "3",
                      "--max-updates", "60", "--schedule", "constant", "--rate", "0.1"),
                 false, &hooks, &r, &err),
        HEED_OK);
    json_t *saved = json_load_file(in_room("m/training/latest/state.json"), 0, NULL);
    const json_t *candidates = json_object_get(saved, "candidates");
    assert_int_equal(l.count, 20);
    assert_int_equal(json_array_size(candidates), BEST);
    int behind = 0; /* the last ones are not the best */
    for (size_t i = 0; i < BEST; i++) {
        int64_t update = json_integer_value(json_array_get(json_array_get(candidates, i), 0));
        int64_t at = 0, better = 0;
        while (at < l.count && l.update[at] != update)
            at++;
        assert_true(at < l.count);
        for (int64_t k = 0; k < l.count; k++)
            better += l.loss[k] < l.loss[at];
        assert_true(better < BEST);
        behind += at < l.count - BEST;
    }
    assert_true(behind > 0);
    json_decref(saved);
}

/* Catches a damaged save that is believed, and one that hides the whole ones before it. */
static void test_damaged_saves(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        long at;
        const char *text;
    } cases[] = {
        {"model.safetensors", 2000, "is damaged: checksum"},
        {"moments.safetensors", 3000, "is damaged: checksum"},
        {"moments.safetensors", -1, "bytes, expected"},
        {"state.json", -1, "cannot read"},
    };
    char path[256], folder[128];
    train_well(in_room("whole"), NULL, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(folder, sizeof folder, "%s/m%d", room, (int)i);
        train_well(folder, MORE("--max-updates", "20"), false);
        snprintf(path, sizeof path, "%s/training/step-20/%s", folder, cases[i].file);
        damage(path, cases[i].at);
        train_well(folder, NULL, true);
        assert_non_null(strstr(warnings, "save 20 is not whole"));
        assert_non_null(strstr(warnings, cases[i].text));
        assert_true(same_file(in_room("whole"), folder, "training/step-30/model.safetensors"));
    }
}

/* Catches a run that starts from nothing because nothing could be loaded. */
static void test_no_whole_save(void **state)
{
    (void)state;
    heed_error err = {0};
    train_well(in_room("m"), MORE("--max-updates", "20"), false);
    damage(in_room("m/training/step-10/model.safetensors"), -1);
    damage(in_room("m/training/step-20/model.safetensors"), -1);
    assert_int_equal(train_in(in_room("m"), NULL, true, NULL, NULL, &err), HEED_FORMAT);
    assert_non_null(strstr(err.text, "no whole save in"));
    heed_error other = {0};
    assert_int_equal(train_in(in_room("nowhere"), NULL, true, NULL, NULL, &other), HEED_IO);
    assert_non_null(strstr(other.text, "there is no training in it"));
}

/* Catches a resume that takes another recipe for the same run. */
static void test_what_may_change(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"--d", "32"},     {"--batch-tokens", "65"},   {"--seed", "2"},
        {"--rate", "0.5"}, {"--valid-metric", "bleu"}, {"--dropout", "0.2"}};
    static const char *const allowed[][2] = {{"--max-updates", "22"}, {"--max-minutes", "60"},
                                             {"--valid-every", "4"},  {"--keep", "5"},
                                             {"--valid-beam", "2"},   {"--valid-lines", "3"},
                                             {"--threads", "2"},      {"--log-every", "1"}};
    train_well(in_room("m"), MORE("--max-updates", "20"), false);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        heed_error err = {0};
        assert_int_equal(
            train_in(in_room("m"), MORE(refused[i][0], refused[i][1]), true, NULL, NULL, &err),
            HEED_ARGUMENT);
        char text[64];
        snprintf(text, sizeof text, "%s cannot change on resume", refused[i][0]);
        assert_non_null(strstr(err.text, text));
    }
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        train_well(in_room("m"), MORE("--max-updates", "21", allowed[i][0], allowed[i][1]), true);
        if (strcmp(allowed[i][0], "--threads") == 0)
            assert_non_null(strstr(warnings, "2 threads instead of 1"));
    }
    static const char *const ends[] = {"cosine", "linear"};
    for (int i = 0; i < 2; i++) {
        heed_error total = {0};
        train_well(in_room(ends[i]),
                   MORE("--max-updates", "2", "--warmup", "1", "--schedule", ends[i]), false);
        train_well(in_room(ends[i]),
                   MORE("--max-updates", "2", "--warmup", "1", "--schedule", ends[i]), true);
        assert_int_equal(
            train_in(in_room(ends[i]),
                     MORE("--max-updates", "3", "--warmup", "1", "--schedule", ends[i]), true, NULL,
                     NULL, &total),
            HEED_ARGUMENT);
        assert_non_null(strstr(total.text, "the learning rate of '"));
    }
    heed_error gone = {0};
    assert_int_equal(unlink(in_room("linear/training/options.json")), 0);
    assert_int_equal(train_in(in_room("linear"), NULL, true, NULL, NULL, &gone), HEED_IO);
    assert_non_null(strstr(gone.text, "there is no training in it"));
    heed_error err = {0}; /* where translations are what is scored, they stay alike */
    train_well(in_room("b"), MORE("--max-updates", "5", "--valid-metric", "bleu"), false);
    assert_int_equal(train_in(in_room("b"), MORE("--valid-metric", "bleu", "--valid-beam", "2"),
                              true, NULL, NULL, &err),
                     HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "--valid-beam cannot change on resume"));
}

/* Catches a resume on other sentences than those it began with. */
static void test_changed_data(void **state)
{
    (void)state;
    heed_error err = {0};
    train_well(in_room("m"), MORE("--max-updates", "20"), false);
    write_pairs(in_room("train.s"), in_room("train.t"), 61, 1);
    assert_int_equal(train_in(in_room("m"), NULL, true, NULL, NULL, &err), HEED_STATE);
    assert_non_null(strstr(err.text, "its data has changed: training pairs 61, expected 60"));
    write_pairs(in_room("train.s"), in_room("train.t"), 60, 1);
    write_pairs(in_room("valid.s"), in_room("valid.t"), 7, 2);
    err.status = HEED_OK;
    assert_int_equal(train_in(in_room("m"), NULL, true, NULL, NULL, &err), HEED_STATE);
    assert_non_null(strstr(err.text, "its data has changed: validation pairs 7, expected 6"));
    write_pairs(in_room("valid.s"), in_room("valid.t"), 6, 2);
    damage(in_room("train.t"), 1);
    err.status = HEED_OK;
    assert_int_equal(train_in(in_room("m"), NULL, true, NULL, NULL, &err), HEED_STATE);
    assert_non_null(strstr(err.text, "its data has changed: training checksum "));
    write_pairs(in_room("train.s"), in_room("train.t"), 60, 1);
    damage(in_room("valid.t"), 1);
    err.status = HEED_OK;
    assert_int_equal(train_in(in_room("m"), NULL, true, NULL, NULL, &err), HEED_STATE);
    assert_non_null(strstr(err.text, "its data has changed: validation checksum "));
    damage(in_room("valid.t"), 1);
    train_well(in_room("m"), MORE("--max-updates", "21"), true);
}

/* Catches a save of an older version that is taken for a damaged one, or read as far as it goes. */
static void test_save_of_an_older_version(void **state)
{
    (void)state;
    size_t n;
    heed_error err = {0};
    train_well(in_room("m"), MORE("--max-updates", "20"), false);
    char *text = bytes_of(in_room("m/training/step-20/state.json"), &n);
    char *format = strstr(text, "\"format\": 2");
    assert_non_null(format);
    format[strlen("\"format\": ")] = '1';
    FILE *f = fopen(in_room("m/training/step-20/state.json"), "w");
    assert_true(f && fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    free(text);
    assert_int_equal(train_in(in_room("m"), NULL, true, NULL, NULL, &err), HEED_STATE);
    assert_non_null(strstr(err.text, "is of format 1, expected 2: end this training with the "
                                     "version of heed that began it"));
}

/* Catches two processes that save into one directory, and one that does not say which has it. */
static void test_lock(void **state)
{
    (void)state;
    heed_error err = {0};
    train_well(in_room("m"), MORE("--max-updates", "20"), false);
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_recipe r = recipe_with(arena, NULL);
    heed_trainer *first = heed_trainer_resume(in_room("m"), &r, NULL, NULL, &err);
    assert_non_null(first);
    assert_null(heed_trainer_resume(in_room("m"), &r, NULL, NULL, &err));
    char process[64];
    snprintf(process, sizeof process, "is being trained by process %ld", (long)getpid());
    assert_non_null(strstr(err.text, process));
    heed_trainer_free(first);
    heed_arena_free(arena);
}

/* ---- no room ---- */

/* Resumes m in a child that cannot write files larger than `limit`; its message goes to text. */
static int train_limited(const char *folder, rlim_t limit, char *text, size_t room_for_text)
{
    int tube[2];
    assert_int_equal(pipe(tube), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit most = {limit, limit};
        heed_error err = {0};
        signal(SIGXFSZ, SIG_IGN);
        if (limit)
            setrlimit(RLIMIT_FSIZE, &most);
        const heed_train_hooks hooks = {.log = {only_whole_saves, NULL}};
        heed_status status = train_in(folder, NULL, true, &hooks, NULL, &err);
        _exit(write(tube[1], err.text, strlen(err.text) + 1) < 0 ? 99 : (int)status);
    }
    int status;
    waitpid(child, &status, 0);
    close(tube[1]);
    ssize_t n = read(tube[0], text, room_for_text - 1);
    text[n > 0 ? n : 0] = '\0';
    close(tube[0]);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Catches a failed write, of whichever file, that passes, says nothing, or harms the save before:
 * the limit grows through the sizes of all files until the run succeeds. */
static void test_write_fails_anywhere(void **state)
{
    (void)state;
    char text[600], reference[128];
    int failures = 0;
    snprintf(reference, sizeof reference, "%s/reference", room);
    if (fork() == 0) { /* what has run OpenMP must not fork */
        train_well(reference, NULL, false);
        train_well(in_room("m"), MORE("--max-updates", "12"), false);
        _exit(0);
    }
    wait(NULL);
    for (rlim_t limit = 256;; limit = limit * 5 / 4) {
        int status = train_limited(in_room("m"), limit, text, sizeof text);
        if (status == HEED_OK)
            break;
        failures++;
        assert_int_equal(status, HEED_IO);
        if (!strstr(text, "cannot write"))
            fail_msg("limit %ld: '%s'", (long)limit, text);
        heed_error err = {0};
        heed_translator *tr = heed_translator_open(in_room("m"), 1, NULL, &err);
        assert_non_null(tr);
        heed_translator_free(tr);
    }
    assert_true(failures > 5);
    assert_true(same_file(reference, in_room("m"), "training/step-30/moments.safetensors"));
    assert_true(same_file(reference, in_room("m"), "model.safetensors"));
}

/* The same with a disk that is really full: a tmpfs that grows. */
static void test_full_disk(void **state)
{
    (void)state;
    char disk[128], folder[160], text[600], size[64];
    int failures = 0;
    snprintf(disk, sizeof disk, "%s/disk", room);
    snprintf(folder, sizeof folder, "%s/m", disk);
    assert_int_equal(mkdir(disk, 0777), 0);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=4m") != 0) {
        print_message("skipped: a small tmpfs cannot be mounted here (%s)\n", strerror(errno));
        skip();
    }
    if (fork() == 0) {
        train_well(folder, MORE("--max-updates", "12"), false);
        _exit(0);
    }
    wait(NULL);
    int status = HEED_IO;
    /* In steps of two pages: each attempt leaves a page of TensorBoard events. */
    for (long pages = 4; status != HEED_OK && pages < 1024; pages += 2) {
        snprintf(size, sizeof size, "remount,size=%ldk", 4 * pages);
        /* Smaller than what is there already is refused. */
        if (mount("tmpfs", disk, "tmpfs", MS_REMOUNT, size + 8) != 0)
            continue;
        status = train_limited(folder, 0, text, sizeof text);
        failures += status != HEED_OK;
        if (status != HEED_OK && (status != HEED_IO || !strstr(text, "No space left on device")))
            fail_msg("%s: status %d, '%s'", size, status, text);
    }
    umount(disk);
    assert_int_equal(status, HEED_OK);
    assert_true(failures > 5);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* The first two fork, before anything here has used OpenMP. */
        TEST(test_write_fails_anywhere),
        TEST(test_full_disk),
        TEST(test_keeps_what_is_needed),
        TEST(test_average_is_the_mean),
        TEST(test_average_of_the_best),
        TEST(test_damaged_saves),
        TEST(test_no_whole_save),
        TEST(test_what_may_change),
        TEST(test_changed_data),
        TEST(test_lock),
        TEST(test_save_of_an_older_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
