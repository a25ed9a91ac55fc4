/* test_train_kill.c: a training killed (SIGKILL) before a call of the file system, whichever it is:
 * the next run ends with the same files as one that was not, no more and no less.  Nothing is left
 * of a directory that was still being prepared, and no temporary file in one that was complete.
 *
 * Trainings run in children, because a process that has run OpenMP must not fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "file_calls.h"
#include "train_case.h"
#include <sys/wait.h>

#define OPTIONS                                                                                    \
    MORE("--max-updates", "2", "--valid-every", "2", "--save-every", "1", "--keep", "1",           \
         "--average", "2", "--valid-lines", "0")

/* Trains in a child that dies before its n-th call (0: never).  True if it came to its end; *calls,
 * if not NULL, how many there were. */
static bool train_child(const char *folder, long n, long *calls)
{
    int tube[2], status;
    assert_int_equal(pipe(tube), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const heed_train_hooks hooks = {.log = {only_whole_saves, NULL}};
        heed_error err = {0};
        const bool resume = is_there(folder);
        watched.fail_at = n;
        watched.under = room;
        if (train_in(folder, OPTIONS, resume, &hooks, NULL, &err))
            fprintf(stderr, "%s\n", err.text);
        watched.under = NULL;
        _exit(write(tube[1], &watched.calls, sizeof watched.calls) < 0 ? 99 : (int)err.status);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (calls)
        assert_int_equal(read(tube[0], calls, sizeof *calls), sizeof *calls);
    close(tube[0]);
    close(tube[1]);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the training ended badly: status %d", status);
    return true;
}

/* ---- what there is ---- */

struct names {
    char name[256][96];
    int count;
    size_t skip; /* of the paths */
};
static struct names *collecting;

static int collect(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    assert_true(collecting->count < 256);
    if (!strstr(path, "events.out.tfevents")) /* one for each run */
        snprintf(collecting->name[collecting->count++], sizeof collecting->name[0], "%s %c",
                 path + collecting->skip,
                 type == FTW_DP   ? 'd'
                 : type == FTW_SL ? 'l'
                                  : 'f');
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static struct names names_below(const char *folder)
{
    struct names n = {.skip = strlen(folder)};
    collecting = &n;
    nftw(folder, collect, 16, FTW_DEPTH | FTW_PHYS);
    qsort(n.name, (size_t)n.count, sizeof n.name[0], by_name);
    return n;
}

static void same_names(const struct names *found, const struct names *wanted, long n)
{
    for (int i = 0; i < found->count || i < wanted->count; i++) {
        const int order = i >= found->count    ? 1
                          : i >= wanted->count ? -1
                                               : strcmp(found->name[i], wanted->name[i]);
        if (order)
            fail_msg("killed before call %ld: '%s' %s", n,
                     order < 0 ? found->name[i] : wanted->name[i],
                     order < 0 ? "is left" : "is missing");
    }
}

/* Catches what a killed training leaves and the next one does not remove, and whatever it makes
 * that next one end otherwise. */
static void test_killed_before_any_call(void **state)
{
    (void)state;
    static const char *const outcome[] = {"model.safetensors", "training/best.safetensors",
                                          "training/step-2/model.safetensors",
                                          "training/step-2/moments.safetensors"};
    char reference[128];
    static struct names wanted, found;
    long calls, kills = 0;
    snprintf(reference, sizeof reference, "%s/m", room);
    assert_true(train_child(reference, 0, &calls));
    wanted = names_below(room);
    char other[128];
    snprintf(other, sizeof other, "%s-reference", room);
    assert_int_equal(rename(reference, other), 0);
    for (long n = 1; n <= calls; n++, kills++) {
        assert_false(train_child(reference, n, NULL));
        assert_true(train_child(reference, 0, NULL));
        for (size_t k = 0; k < sizeof outcome / sizeof *outcome; k++)
            if (!same_file(other, reference, outcome[k]))
                fail_msg("killed before call %ld: '%s' differs", n, outcome[k]);
        found = names_below(room);
        same_names(&found, &wanted, n);
        remove_tree(reference);
    }
    remove_tree(other);
    print_message("%ld kills\n", kills);
    assert_true(kills > 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed_before_any_call, make_room, clear_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
