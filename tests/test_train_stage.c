/* test_train_stage.c: where a model directory is prepared and who may train it: what killed
 * trainings left beside it, locks, names as long as they may be and longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "file_calls.h"
#include "gan_task.h"
#include "train_case.h"
#include <limits.h>

static char said[4096];

static void collect(void *context, heed_log_level level, const char *line)
{
    (void)context;
    (void)level;
    const size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", line);
}

/* New or resumed, to its end. */
static heed_status train(const char *folder, bool resume, heed_error *err)
{
    struct gan g = {.params = {NULL}};
    heed_loop_options loop = gan_loop(3);
    loop.save_every = loop.keep = 1;
    loop.average = 2;
    loop.ema = 0.5;
    loop.valid_every = 2;
    const heed_task task = gan_task(&g, &loop);
    const heed_train_hooks hooks = {.log = {collect, NULL}};
    heed_train_result result;
    *said = '\0';
    *err = (heed_error){0};
    heed_trainer *t = heed_trainer_open(folder, &task, resume, &hooks, NULL, err);
    if (t)
        heed_trainer_run(t, &result, err);
    heed_trainer_free(t);
    return err->status;
}

static void trains(const char *folder, bool resume)
{
    heed_error err;
    if (train(folder, resume, &err))
        fail_msg("%s", err.text);
}

static void refuses(const char *folder, bool resume, heed_status status, const char *text)
{
    heed_error err;
    train(folder, resume, &err);
    if (err.status != status || !strstr(err.text, text))
        fail_msg("status %d, '%s', expected %d, '%s'", (int)err.status, err.text, (int)status,
                 text);
}

/* ---- what killed trainings left ---- */

/* A folder of that name with training/lock and a file in it, as far as `parts` goes. */
static void leave(const char *name, int parts)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", room, name);
    assert_int_equal(mkdir(path, 0777), 0);
    strcat(path, "/training");
    assert_true(parts < 2 || mkdir(path, 0777) == 0);
    strcat(path, "/lock");
    FILE *lock = parts < 3 ? NULL : fopen(path, "w");
    assert_true(parts < 3 || (lock && fclose(lock) == 0));
}

/* Catches folders of dead trainings that pile up, and one of a training that is alive, of another
 * model or of a person that is taken for such. */
static void test_leftovers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int parts;
        bool goes;
    } left[] = {
        {"m.heed-4000001.tmp", 1, true},   {"m.heed-4000002.tmp", 2, true},
        {"m.heed-4000003.tmp", 3, true},   {"m.heed-4000004.tmp.gone", 3, true},
        {"m.heed-4000005.tmp", 3, false}, /* its process is alive */
        {"m.heed-4000006.tmpx", 3, false}, {"n.heed-4000007.tmp", 3, false},
        {"m.heed-x.tmp", 3, false},        {"m.heed-4000008", 3, false},
    };
    enum { COUNT = sizeof left / sizeof *left };
    for (int i = 0; i < COUNT; i++)
        leave(left[i].name, left[i].parts);
    const int alive = open(in_room("m.heed-4000005.tmp/training/lock"), O_RDWR);
    assert_int_equal(flock(alive, LOCK_EX | LOCK_NB), 0);
    trains(in_room("m"), false);
    for (int i = 0; i < COUNT; i++)
        if (is_there(in_room(left[i].name)) == left[i].goes)
            fail_msg("'%s' %s", left[i].name, left[i].goes ? "is still there" : "is gone");
    assert_non_null(strstr(said, "m.heed-4000003.tmp', which a killed training left"));
    assert_non_null(strstr(said, "m.heed-4000004.tmp.gone', which a killed training left"));
    close(alive);
}

/* Catches a new training that fails because of what another one has left, or says that it is gone
 * when it is not. */
static void test_leftovers_that_stay(void **state)
{
    (void)state;
    int stayed = 0, failures = 0;
    for (long n = 1;; n++) {
        heed_error err;
        leave("m.heed-4000003.tmp", 3);
        memset(&watched, 0, sizeof watched);
        watched.fail_at = n;
        watched.error = EIO;
        watched.under = in_room("m.heed-4000003.tmp");
        const heed_status status = train(in_room("m"), false, &err);
        watched.under = NULL;
        if (status)
            fail_msg("%s failed, and the training with it: %s", watched.failed, err.text);
        const bool there = is_there(in_room("m.heed-4000003.tmp"));
        assert_int_equal(!strstr(said, "left"), there);
        stayed += there;
        remove_tree(in_room("m"));
        remove_tree(in_room("m.heed-4000003.tmp"));
        if (!*watched.failed)
            break;
        failures++;
    }
    assert_true(failures > 4 && stayed > 3);
}

/* ---- locks ---- */

/* Catches a training in a folder that another process trains, where that one could not say which it
 * is, and a lock that cannot be had and is taken for one that is held. */
static void test_lock_of_another(void **state)
{
    (void)state;
    trains(in_room("m"), false);
    const int held = open(in_room("m/training/lock"), O_RDWR);
    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(ftruncate(held, 0), 0);
    refuses(in_room("m"), true, HEED_STATE, "is being trained by another process");
    assert_int_equal(write(held, "x\n", 2), 2);
    refuses(in_room("m"), true, HEED_STATE, "is being trained by another process");
    assert_int_equal(pwrite(held, "77\n", 3, 0), 3);
    refuses(in_room("m"), true, HEED_STATE, "is being trained by process 77");
    close(held);
    assert_int_equal(unlink(in_room("m/training/lock")), 0);
    assert_int_equal(mkdir(in_room("m/training/lock"), 0777), 0);
    refuses(in_room("m"), true, HEED_IO, "cannot write '");
    assert_int_equal(rmdir(in_room("m/training/lock")), 0);
    trains(in_room("m"), true);
}

/* ---- names ---- */

/* Catches a path that is cut where it is longest, and files that land elsewhere because of it. */
static void test_longest_name(void **state)
{
    (void)state;
    enum { LONGEST = PATH_MAX - 256, PART = 200 };
    static char folder[PATH_MAX + 8];
    heed_error err = {0};
    size_t n = (size_t)snprintf(folder, sizeof folder, "%s/", room);
    while (n + 2 < LONGEST) {
        const size_t rest = LONGEST - n - 2, part = rest < PART ? rest : PART;
        memset(folder + n, 'd', part);
        folder[n + part] = '\0';
        assert_int_equal(mkdir(folder, 0777), 0);
        folder[n + part] = '/';
        n += part + 1;
    }
    memset(folder + n, 'm', LONGEST - n);
    folder[LONGEST] = '\0';
    trains(folder, false);
    trains(folder, true);
    strcat(folder, "/training/step-3/average-critic.safetensors");
    assert_true(is_there(folder));
    memset(folder + LONGEST, 'm', 1);
    folder[LONGEST + 1] = '\0';
    refuses(folder, false, HEED_ARGUMENT, "has 3841 bytes, expected at most 3840");
    refuses(folder, true, HEED_ARGUMENT, "has 3841 bytes, expected at most 3840");
    assert_int_equal(heed_trainer_discard(folder, &err), HEED_ARGUMENT);
}

/* Catches a place where nothing can be prepared, or where something is, that is told late or not
 * by its name. */
static void test_other_places(void **state)
{
    (void)state;
    char current[PATH_MAX];
    heed_error err = {0};
    refuses(in_room("nowhere/m"), false, HEED_IO, "cannot make the directory '");
    refuses(in_room("train.s"), false, HEED_ARGUMENT, "is there already, and no training");
    refuses(in_room("nowhere"), true, HEED_IO, "there is no training in it");
    assert_int_equal(mkdir(in_room("empty"), 0777), 0);
    trains(in_room("empty"), false); /* a folder that somebody has made for it */
    trains(in_room("empty//"), true);
    assert_int_equal(heed_trainer_discard(NULL, &err), HEED_ARGUMENT);
    assert_int_equal(heed_trainer_discard(in_room("empty"), &err), HEED_OK); /* is no stage */
    assert_true(is_there(in_room("empty/training")));
    /* Beside a name without a folder is the current one. */
    assert_non_null(getcwd(current, sizeof current));
    assert_int_equal(chdir(room), 0);
    trains("here", false);
    assert_int_equal(chdir(current), 0);
    assert_true(is_there(in_room("here/training/latest/state.json")));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_leftovers), TEST(test_leftovers_that_stay),
                                       TEST(test_lock_of_another), TEST(test_longest_name),
                                       TEST(test_other_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
