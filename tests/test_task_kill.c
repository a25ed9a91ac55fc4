/* test_task_kill.c: labs, and a task with two sets of parameters, killed (SIGKILL) at random
 * moments and resumed until they have come to their end: the bits are those of a training that was
 * not.  Trainings run in children, because a process that has run OpenMP must not fork. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gan_task.h"
#include "labs/lab.h"
#include "train_case.h"
#include <sys/wait.h>

enum { KILLS = 20 };

/* In a child: trains what is in the folder, or anew, to its end. */
typedef void training(const char *folder);

static pid_t start(training *train, const char *folder)
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        train(folder);
        _exit(0);
    }
    return child;
}

/* True if it came to its end, and was not killed. */
static bool has_ended(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("a training ended badly: status %d", status);
    return true;
}

static void same_files(const char *a, const char *b, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!same_file(a, b, names[i]))
            fail_msg("'%s' differs from that of a training that was not killed", names[i]);
}

/* Kills come at any time up to a tenth of what a whole training takes; one that comes to its end
 * before there were enough of them is compared, removed and begun again. */
static void kill_and_compare(training *train, const char *const *names)
{
    char whole[128], folder[128];
    snprintf(whole, sizeof whole, "%s/whole", room);
    snprintf(folder, sizeof folder, "%s/m", room);
    const double begin = heed_clock_seconds();
    assert_true(has_ended(start(train, whole)));
    const double seconds = heed_clock_seconds() - begin;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)getpid()});
    int kills = 0, ends = 0;
    for (uint64_t i = 0; kills < KILLS; i++) {
        const pid_t child = start(train, folder);
        usleep((useconds_t)(1e6 * heed_rng_uniform(&rng, i) * seconds / 10));
        kill(child, SIGKILL);
        if (!has_ended(child)) {
            kills++;
            continue;
        }
        same_files(whole, folder, names);
        remove_tree(folder);
        ends++;
    }
    assert_true(has_ended(start(train, folder)));
    same_files(whole, folder, names);
    print_message("%d kills, %d ends, %.2f s a training\n", kills, ends + 1, seconds);
}

static void must(const heed_error *err)
{
    if (!err->status)
        return;
    fprintf(stderr, "%s\n", err->text);
    _exit(97);
}

/* ---- a lab ---- */

/* words: the options of a new one, without --model. */
static void train_lab(const lab *l, const char *const *words, int count, const char *folder)
{
    char config[160];
    heed_error err = {0};
    heed_option_result parsed;
    snprintf(config, sizeof config, "%s/config.json", folder);
    const char *begin[64] = {"--model", folder};
    const char *const resume[] = {"--config", config, "--resume", folder};
    const bool there = is_there(folder);
    memcpy(begin + 2, words, (size_t)count * sizeof *words);
    heed_arena *arena = heed_arena_new(NULL, &err);
    void *settings = heed_arena_allocate(arena, l->settings);
    heed_option_parse(l->options, there ? 4 : count + 2, there ? resume : begin, settings, arena,
                      &parsed, &err);
    must(&err);
    lab_session r = {
        .options = settings, .hooks = {.log = {only_whole_saves, NULL}}, .arena = arena};
    l->run(&r, settings, &err);
    must(&err);
    heed_arena_free(arena);
}

static void train_ntm(const char *folder)
{
    static const char *const words[] = {
        "--updates",    "120", "--valid-every",    "50", "--units",     "8",
        "--save-every", "5",   "--batch",          "2",  "--locations", "10",
        "--longest",    "3",   "--test-sequences", "2",  "--threads",   "1"};
    train_lab(&lab_ntm, words, sizeof words / sizeof *words, folder);
}

static void train_sagan(const char *folder)
{
    static const char *const words[] = {
        "--updates",    "150", "--valid-every",   "50", "--side",          "16",
        "--save-every", "10",  "--batch",         "2",  "--judge-updates", "1",
        "--width",      "2",   "--test-pictures", "20", "--threads",       "1"};
    train_lab(&lab_sagan, words, sizeof words / sizeof *words, folder);
}

/* Catches a lab that loses what it had when it is killed, or draws other examples when it goes
 * on. */
static void test_killed_lab(void **state)
{
    (void)state;
    static const char *const compared[] = {"model.safetensors",
                                           "memory.svg",
                                           "training/best.safetensors",
                                           "training/step-120/model.safetensors",
                                           "training/step-120/moments.safetensors",
                                           NULL};
    kill_and_compare(train_ntm, compared);
}

/* Catches a set whose running statistics or vectors of power iterations a save forgets, a
 * discriminator that goes on without its moments, a curve of gamma that is cut or doubled. */
static void test_killed_sagan(void **state)
{
    (void)state;
    static const char *const compared[] = {"model.safetensors",
                                           "model-discriminator.safetensors",
                                           "judge.safetensors",
                                           "samples.svg",
                                           "gamma.svg",
                                           "training/best-discriminator.safetensors",
                                           "training/step-150/model.safetensors",
                                           "training/step-150/model-discriminator.safetensors",
                                           "training/step-150/moments.safetensors",
                                           "training/step-150/moments-discriminator.safetensors",
                                           NULL};
    kill_and_compare(train_sagan, compared);
}

/* ---- two sets ---- */

static void train_gan(const char *folder)
{
    static struct gan g;
    heed_loop_options loop = gan_loop(300);
    loop.valid_every = 60;
    loop.save_every = 10;
    loop.ema = 0.9;
    loop.average = 2;
    const heed_task task = gan_task(&g, &loop);
    const heed_train_hooks hooks = {.log = {only_whole_saves, NULL}};
    heed_error err = {0};
    heed_train_result result;
    heed_trainer *t = heed_trainer_open(folder, &task, is_there(folder), &hooks, NULL, &err);
    if (t)
        heed_trainer_run(t, &result, &err);
    must(&err);
    heed_trainer_free(t);
}

/* Catches a set whose weights, moments or averages a save forgets, or that goes on at another
 * update than the other. */
static void test_killed_gan(void **state)
{
    (void)state;
    static const char *const compared[] = {"model.safetensors",
                                           "model-critic.safetensors",
                                           "training/best-critic.safetensors",
                                           "training/step-300/model.safetensors",
                                           "training/step-300/model-critic.safetensors",
                                           "training/step-300/moments.safetensors",
                                           "training/step-300/moments-critic.safetensors",
                                           "training/step-300/average-critic.safetensors",
                                           NULL};
    kill_and_compare(train_gan, compared);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_killed_lab), TEST(test_killed_sagan),
                                       TEST(test_killed_gan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
