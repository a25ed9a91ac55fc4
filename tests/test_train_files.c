/* test_train_files.c: a training and the file system: nothing gets its name before its bytes are on
 * the disk, and whichever call fails, it is told, and the run goes on from what was saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "file_calls.h"
#include "train_case.h"
#include <glob.h>

/* Everything that makes files: saves, some removed and their weights kept, the best, their mean. */
#define MANY_FILES                                                                                 \
    MORE("--max-updates", "3", "--valid-every", "2", "--save-every", "1", "--keep", "1",           \
         "--average", "2", "--ema", "0.5", "--log-every", "1", "--valid-lines", "0")

/* A resumed run writes again what they lack. */
static const char *const logs[] = {"log.jsonl", "events.out.tfevents", NULL};

static void watch(long fail_at, int error)
{
    memset(&watched, 0, sizeof watched);
    watched.fail_at = fail_at;
    watched.error = error;
    watched.streams = logs;
    watched.under = room;
}

static void stop_watching(void)
{
    watched.under = NULL;
}

/* Catches a file or folder that gets its name while its bytes, or the names in it, are only in
 * memory, and a name that itself is: a power cut would leave something broken that looks whole. */
static void test_synced_before_named(void **state)
{
    (void)state;
    heed_error err = {0};
    watch(0, 0);
    heed_status status = train_in(in_room("m/"), MANY_FILES, false, NULL, NULL, &err);
    stop_watching();
    if (status)
        fail_msg("%s", err.text);
    assert_true(watched.renames > 30); /* or nothing was seen */
    if (*watched.unsynced)
        fail_msg("not synced: %s", watched.unsynced);
    for (int i = 0; i < watched.changes; i++)
        fail_msg("never synced: %s", watched.changed[i].path);

    watch(0, 0);
    status = heed_text_save(in_room("text"), "some text\n", &err);
    stop_watching();
    assert_int_equal(status, HEED_OK);
    assert_int_equal(watched.renames, 1);
    assert_string_equal(watched.unsynced, "");
    assert_int_equal(watched.changes, 0);
}

/* ---- calls that fail ---- */

static void no_warning(void *context, heed_log_level level, const char *line)
{
    (void)context;
    if (level == HEED_LOG_WARNING)
        fail_msg("%s", line);
}
static const heed_train_hooks strict = {.log = {no_warning, NULL}};

static int entries_in_room(void)
{
    glob_t found;
    assert_int_equal(glob(in_room("*"), 0, NULL, &found), 0);
    const int n = (int)found.gl_pathc;
    globfree(&found);
    return n;
}

static const char *const outcome[] = {
    "model.safetensors",
    "config.json",
    "training/best.safetensors",
    "training/step-3/model.safetensors",
    "training/step-3/moments.safetensors",
    "training/step-3/average.safetensors",
};

/* Runs what is there, or anew, to its end: it must be as if nothing had been. */
static void finish_as(const char *reference, const char *failed, int entries)
{
    heed_error err = {0};
    const bool resume = is_there(in_room("m"));
    if (!resume)
        assert_int_equal(entries_in_room(), entries - 1);
    if (train_in(in_room("m"), MANY_FILES, resume, &strict, NULL, &err))
        fail_msg("%s failed, and the next run says '%s'", failed, err.text);
    for (size_t k = 0; k < sizeof outcome / sizeof *outcome; k++)
        if (!same_file(reference, in_room("m"), outcome[k]))
            fail_msg("%s failed, and then '%s' differs", failed, outcome[k]);
    assert_int_equal(entries_in_room(), entries);
    remove_tree(in_room("m"));
}

/* One training in which call n fails; false: there is no such call. */
static bool train_failing(long n, bool resume, int *told)
{
    heed_error err = {0};
    watch(n, EIO);
    heed_status status = train_in(in_room("m"), MANY_FILES, resume, NULL, NULL, &err);
    stop_watching();
    if (status && (status != HEED_IO || !strstr(err.text, strerror(EIO))))
        fail_msg("%s failed: status %d, '%s'", watched.failed, (int)status, err.text);
    *told += status != HEED_OK;
    return *watched.failed;
}

/* Catches an error of the file system that passes in silence, is told without its reason, or harms
 * what was saved before; and anything left behind by a run that could not begin. */
static void test_every_call_fails_once(void **state)
{
    (void)state;
    char reference[128];
    heed_error err = {0};
    int told = 0;
    snprintf(reference, sizeof reference, "%s/reference", room);
    assert_int_equal(train_in(reference, MANY_FILES, false, &strict, NULL, &err), HEED_OK);
    const int entries = entries_in_room() + 1;
    for (long n = 1; train_failing(n, false, &told); n++)
        finish_as(reference, watched.failed, entries);
    print_message("%ld calls, %d of them failed and told\n", watched.calls, told);
    assert_true(told > 200 && told > watched.calls * 9 / 10);
}

/* The same of a run that is resumed, at its end: the save is read, the mean made again. */
static void test_every_call_of_a_resume(void **state)
{
    (void)state;
    heed_error err = {0};
    int told = 0;
    assert_int_equal(train_in(in_room("m"), MANY_FILES, false, &strict, NULL, &err), HEED_OK);
    size_t n_before, n_after;
    char *before = bytes_of(in_room("m/model.safetensors"), &n_before);
    for (long n = 1; train_failing(n, true, &told); n++) {
        heed_translator *tr = heed_translator_open(in_room("m"), 1, NULL, &err);
        if (!tr)
            fail_msg("%s failed, and then the model cannot be opened: %s", watched.failed,
                     err.text);
        heed_translator_free(tr);
    }
    char *after = bytes_of(in_room("m/model.safetensors"), &n_after);
    assert_int_equal(n_before, n_after);
    assert_memory_equal(before, after, n_before);
    print_message("%ld calls, %d of them failed and told\n", watched.calls, told);
    assert_true(told > 40);
    free(before);
    free(after);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_synced_before_named),
        TEST(test_every_call_fails_once),
        TEST(test_every_call_of_a_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
