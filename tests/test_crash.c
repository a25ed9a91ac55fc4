/* test_crash.c: a training killed (SIGKILL) at any moment leaves a directory that loads, resumes,
 * and ends with the same bits as one that was not.
 *
 * Each kill is a training of its own, in a child process: half of them die at a random moment, half
 * between the steps of a save (or of publishing the best weights), and some again while they are
 * being resumed.  HEED_KILLS says how many; 200 where it is not set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* What a run leaves that must not depend on where it was killed. */
static const char *const outcome[] = {
    "model.safetensors",
    "config.json",
    "training/best.safetensors",
    "training/step-30/model.safetensors",
    "training/step-30/moments.safetensors",
    "training/step-30/average.safetensors",
};
#define OPTIONS MORE("--ema", "0.9", "--save-every", "4", "--dropout", "0.2")

/* Kills its own process at the n-th point of a save. */
struct trap {
    long left; /* points until then; 0: never */
};

static void spring(void *context, const char *where)
{
    struct trap *trap = context;
    (void)where;
    if (trap->left > 0 && --trap->left == 0)
        kill(getpid(), SIGKILL);
}

/* Trains in a child, which dies at point `at` of its saves, or after so many microseconds (0: does
 * not).  True if it came to its end. */
static bool train_child(const char *folder, bool resume, long at, long microseconds)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct trap trap = {at};
        heed_train_hooks hooks = {
            .log = {only_whole_saves, NULL}, .save_point = spring, .context = &trap};
        heed_error err = {0};
        heed_status status = train_in(folder, OPTIONS, resume, &hooks, NULL, &err);
        if (status)
            fprintf(stderr, "%s: %s\n", folder, err.text);
        _exit(status ? 1 : 0);
    }
    if (microseconds) {
        struct timespec t = {0, microseconds * 1000};
        nanosleep(&t, NULL);
        kill(child, SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the training ended badly: status %d", status);
    return true;
}

/* Points that an undisturbed run passes. */
static void count_points(void *context, const char *where)
{
    (void)where;
    ++*(long *)context;
}

/* What is there must be a model that translates. */
static void loads(const char *folder)
{
    heed_error err = {0};
    heed_translator *tr = heed_translator_open(folder, 1, NULL, &err);
    if (!tr)
        fail_msg("%s", err.text);
    heed_translator_free(tr);
}

/* One training with its kills, resumed to its end.  Returns how many of them struck. */
static int one_case(const heed_rng *rng, uint64_t i, long points, double duration,
                    const char *reference)
{
    const char *folder = in_room("killed");
    bool inside = i % 2 == 0, done = false, resume = false;
    int struck = 0;
    for (uint64_t round = 0; !done; round++) {
        /* The first round always dies, the second sometimes, then it may finish. */
        bool strike = round == 0 || (round == 1 && i % 5 == 0);
        uint64_t draw = 16 * i + 2 * round;
        long at = 1 + (long)heed_rng_below(rng, draw, points);
        long moment = 1 + (long)(heed_rng_uniform(rng, draw + 1) * duration * 1e6);
        done =
            train_child(folder, resume, strike && inside ? at : 0, strike && !inside ? moment : 0);
        struck += !done;
        if (!done && is_there(folder)) {
            loads(folder);
            resume = true;
        }
    }
    for (size_t k = 0; k < sizeof outcome / sizeof *outcome; k++)
        if (!same_file(reference, folder, outcome[k]))
            fail_msg("case %d, killed %d times: '%s' differs", (int)i, struck, outcome[k]);
    remove_tree(folder);
    return struck;
}

/* Catches a save that is not whole when the process dies, a resume that forgets something, and a
 * directory that has its name before it is complete. */
static void test_killed_at_any_moment(void **state)
{
    (void)state;
    const char *wanted = getenv("HEED_KILLS");
    int kills = wanted ? atoi(wanted) : 200, inside = 0, elsewhere = 0;
    char reference[128];
    long points = 0;
    heed_rng_key key = {.seed = 7};
    heed_rng rng = heed_rng_stream(&key);
    snprintf(reference, sizeof reference, "%s/reference", room);
    /* In a child as well: a process that has run OpenMP must not fork. */
    double begin = heed_clock_seconds();
    assert_true(train_child(reference, false, 0, 0));
    double duration = heed_clock_seconds() - begin;
    int tube[2];
    assert_int_equal(pipe(tube), 0);
    if (fork() == 0) {
        heed_train_hooks hooks = {.save_point = count_points, .context = &points};
        heed_error err = {0};
        train_in(in_room("counted"), OPTIONS, false, &hooks, NULL, &err);
        _exit(write(tube[1], &points, sizeof points) != sizeof points);
    }
    assert_int_equal(read(tube[0], &points, sizeof points), sizeof points);
    wait(NULL);
    close(tube[0]);
    close(tube[1]);
    assert_true(points > 50);
    for (uint64_t i = 0; inside + elsewhere < kills; i++)
        *(i % 2 == 0 ? &inside : &elsewhere) += one_case(&rng, i, points, duration, reference);
    print_message("%d kills, %d of them inside a save\n", inside + elsewhere, inside);
    assert_true(inside >= kills / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed_at_any_moment, make_room, clear_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
