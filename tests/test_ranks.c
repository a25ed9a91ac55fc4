/* test_ranks.c: R processes that train together compute the bits of one whose updates have as many
 * micro-batches.  The ranks are threads here; tests/mpi.sh has processes. */
#include <heed/heed.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "dist/exact_sum.h"
#include "gan_task.h"
#include "rank_threads.h"
#include "train_case.h"

/* ---- translation ---- */

struct job {
    char folder[256];
    const char *const *more;
    bool resume;
    int64_t accumulate; /* of all ranks together */
    bool (*stop)(void *context);
    int asked;
    heed_train_result result;
};

static bool stop_at_tenth(void *context)
{
    return ++((struct job *)context)->asked > 10;
}

/* The default recipe of these tests, with job->more. */
static heed_status train_rank(struct rank_thread *self, heed_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct job *job = self->context;
    const heed_train_hooks hooks = {.ranks = self->ranks, .stop = job->stop, .context = job};
    heed_arena *arena = heed_arena_new(NULL, err);
    pthread_mutex_lock(&lock); /* names of files pass through memory that all share */
    heed_recipe r = recipe_with(arena, job->more);
    pthread_mutex_unlock(&lock);
    r.train.loop.accumulate = job->accumulate;
    const char *given = heed_ranks_folder(self->ranks, err);
    if (err->status) {
        heed_arena_free(arena);
        return err->status;
    }
    heed_trainer *t = given         ? heed_trainer_resume(given, NULL, &hooks, NULL, err)
                      : job->resume ? heed_trainer_resume(job->folder, &r, &hooks, NULL, err)
                                    : heed_trainer_new(job->folder, &r, &hooks, NULL, err);
    if (t)
        heed_trainer_run(t, &job->result, err);
    heed_trainer_free(t);
    heed_arena_free(arena);
    return err->status;
}

/* R ranks that share `accumulate` micro-batches; each has the options `more`. */
static heed_train_result train_ranks(int size, const char *folder, struct job job)
{
    struct job jobs[MOST_RANKS];
    void *context[MOST_RANKS];
    snprintf(job.folder, sizeof job.folder, "%s", folder);
    for (int i = 0; i < size; i++) {
        jobs[i] = job;
        context[i] = &jobs[i];
    }
    const heed_error err = run_ranks(size, train_rank, context);
    if (err.status)
        fail_msg("%s", err.text);
    return jobs[0].result;
}

/* What a run leaves, but for seconds: weights and moments. */
static void assert_same_run(const char *a, const char *b, const char *what)
{
    static const char *const names[] = {"model.safetensors", "config.json", "training/options.json",
                                        "training/step-30/model.safetensors",
                                        "training/step-30/moments.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!same_file(a, b, names[i]))
            fail_msg("%s: '%s' differs", what, names[i]);
}

static const struct {
    const char *name;
    const char *const *more;
} kinds[] = {
    {"adam", MORE("--label-smoothing", "0.1")},
    {"dropout", MORE("--dropout", "0.2", "--attention-dropout", "0.1", "--clip", "0.5")},
    {"sgd", MORE("--optimizer", "sgd", "--momentum", "0.9", "--schedule", "constant", "--rate",
                 "0.05", "--clip-value", "0.1")},
    {"adamw", MORE("--optimizer", "adamw", "--weight-decay", "0.01")},
    {"rmsprop", MORE("--optimizer", "rmsprop", "--schedule", "constant", "--rate", "0.001")},
    {"average", MORE("--ema", "0.9")},
    {"shards", MORE("--d", "64", "--shard-optimizer", "--clip", "0.5", "--clip-value", "0.1")},
    {"shards of rmsprop", MORE("--d", "64", "--shard-optimizer", "--optimizer", "rmsprop",
                               "--schedule", "constant", "--rate", "0.001", "--ema", "0.9")},
    {"batch norm", MORE("--norm", "batch", "--dropout", "0.1")},
};

/* Catches a sum in another order than that of the micro-batches, weights from the tokens of one
 * rank, random numbers that depend on the rank, and whatever a rank has of its own. */
static void test_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int size = 1; size <= 4; size++) {
            const struct job job = {.more = kinds[i].more, .accumulate = size == 3 ? 6 : 4};
            const char *one = size == 3 ? "one-6" : "one-4";
            if (size == 1 || size == 3)
                train_ranks(1, in_room(one), job);
            train_ranks(size, in_room("several"), job);
            assert_same_run(in_room(one), in_room("several"), kinds[i].name);
            remove_tree(in_room("several"));
            if (size == 4) {
                remove_tree(in_room("one-4"));
                remove_tree(in_room("one-6"));
            }
        }
}

/* Catches a save that depends on how many have made it, and moments that do not come together, or
 * go to others than their owners. */
static void test_resumed_by_others(void **state)
{
    (void)state;
    static const int sizes[] = {2, 4, 1};
    for (int shards = 0; shards < 2; shards++) {
        const struct job job = {.more = shards ? MORE("--dropout", "0.1", "--d", "64", "--ff", "64",
                                                      "--shard-optimizer")
                                               : MORE("--dropout", "0.1"),
                                .accumulate = 4};
        train_ranks(1, in_room("whole"), job);
        for (int i = 0; i < 3; i++) {
            struct job part = job;
            part.resume = i > 0;
            part.stop = i < 2 ? stop_at_tenth : NULL;
            const heed_train_result r = train_ranks(sizes[i], in_room("parts"), part);
            assert_int_equal(r.reason, i < 2 ? HEED_TRAIN_ASKED : HEED_TRAIN_MAX_UPDATES);
        }
        assert_same_run(in_room("whole"), in_room("parts"), "resumed");
        remove_tree(in_room("whole"));
        remove_tree(in_room("parts"));
    }
}

/* Catches ranks of which only some go back after an update that diverged. */
static void test_all_roll_back(void **state)
{
    (void)state;
    const struct job job = {.more = MORE("--rate", "1e6", "--schedule", "constant", "--valid-every",
                                         "5", "--warmup", "0"),
                            .accumulate = 2};
    heed_error err[2];
    for (int i = 0; i < 2; i++) {
        struct job jobs[2] = {job, job};
        void *context[2] = {&jobs[0], &jobs[1]};
        for (int k = 0; k < 2; k++)
            snprintf(jobs[k].folder, sizeof jobs[k].folder, "%s", in_room(i ? "several" : "one"));
        err[i] = run_ranks(1 + i, train_rank, context);
    }
    assert_int_equal(err[0].status, HEED_NUMERIC);
    assert_string_equal(err[0].text, err[1].text);
}

/* ---- a task with two sets ---- */

static heed_status train_gan(struct rank_thread *self, heed_error *err)
{
    const struct job *job = self->context;
    struct gan g = {.params = {NULL}};
    heed_loop_options loop = gan_loop(30);
    loop.accumulate = job->accumulate;
    const heed_task task = gan_task(&g, &loop);
    const heed_train_hooks hooks = {.ranks = self->ranks};
    heed_train_result result;
    const char *given = heed_ranks_folder(self->ranks, err);
    if (err->status)
        return err->status;
    heed_trainer *t =
        heed_trainer_open(given ? given : job->folder, &task, false, &hooks, NULL, err);
    if (t)
        heed_trainer_run(t, &result, err);
    heed_trainer_free(t);
    return err->status;
}

/* Catches sums that belong to one set only. */
static void test_two_sets(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size++) {
        struct job job = {.accumulate = 12};
        snprintf(job.folder, sizeof job.folder, "%s", in_room(size == 1 ? "one" : "several"));
        void *const context[] = {&job, &job, &job, &job};
        const heed_error err = run_ranks(size, train_gan, context);
        if (err.status)
            fail_msg("%s", err.text);
        if (size == 1)
            continue;
        assert_true(same_file(in_room("one"), in_room("several"), "model.safetensors"));
        assert_true(same_file(in_room("one"), in_room("several"), "model-critic.safetensors"));
        remove_tree(in_room("several"));
    }
}

/* ---- what must be the same ---- */

static heed_error train_two(struct job a, struct job b)
{
    void *context[] = {&a, &b};
    snprintf(a.folder, sizeof a.folder, "%s", in_room("m"));
    snprintf(b.folder, sizeof b.folder, "%s", in_room("m"));
    return run_ranks(2, train_rank, context);
}

/* Catches a rank that trains on other text without a word, and one that cannot read it. */
static void test_other_data(void **state)
{
    (void)state;
    heed_error err = train_two((struct job){.accumulate = 2}, (struct job){.accumulate = 3});
    assert_int_equal(err.status, HEED_OK); /* what a rank was asked for does not count */
    remove_tree(in_room("m"));
    err = train_two((struct job){.accumulate = 3}, (struct job){.accumulate = 3});
    assert_string_equal(err.text, "3 batches in an update cannot be shared by 2 processes");
    assert_false(is_there(in_room("m")));
}

/* ---- a rank that is gone ---- */

#define SILENCE 1.0 /* seconds */

struct watched {
    double late; /* seconds after the others that this one ends */
    int calls;   /* of lost */
    char text[200];
};

static void note_lost(void *context, const char *text)
{
    struct watched *w = context;
    w->calls++;
    snprintf(w->text, sizeof w->text, "%s", text ? text : "");
}

static void rest(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    nanosleep(&time, NULL);
}

static heed_status be_watched(struct rank_thread *self, heed_error *err)
{
    struct watched *w = self->context;
    heed_status status = heed__ranks_watch(self->ranks, SILENCE, note_lost, w, err);
    rest(SILENCE * 2 + w->late);
    return status;
}

/* Catches ranks that wait for ever for one that is gone, a wrong one named, the same said by many,
 * and ranks that are taken for lost while they are busy, or because others have ended. */
static void test_lost_rank(void **state)
{
    (void)state;
    for (int silent = -1; silent < 3; silent++) {
        struct watched w[3] = {{.late = 0}, {.late = silent < 0 ? SILENCE * 2 : 0}, {.late = 0}};
        void *context[] = {&w[0], &w[1], &w[2]};
        const heed_error err = run_ranks_but(silent, 3, be_watched, context);
        assert_string_equal(err.text, "");
        for (int i = silent == 0; i < 3; i++) /* rank 0 hears nothing either of who gave it up */
            assert_int_equal(w[i].calls, silent >= 0);
        if (silent < 0)
            continue;
        char expected[64];
        snprintf(expected, sizeof expected, "nothing has been heard of rank %d on here for 1 seco",
                 silent);
        const int says = silent == 0;
        assert_non_null(strstr(w[says].text, expected));
        if (silent > 0)
            assert_string_equal(w[3 - silent].text, "");
    }
}

/* Each rank has options of its own, as programs do that are started with others. */
static heed_status train_own(struct rank_thread *self, heed_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct job *job = self->context;
    const heed_train_hooks hooks = {.ranks = self->ranks};
    heed_arena *arena = heed_arena_new(NULL, err);
    pthread_mutex_lock(&lock);
    heed_recipe r = recipe_with(arena, job->more);
    pthread_mutex_unlock(&lock);
    r.train.loop.accumulate = 2;
    const char *given = heed_ranks_folder(self->ranks, err);
    if (!err->status) {
        heed_trainer *t = given ? heed_trainer_resume(given, &r, &hooks, NULL, err)
                                : heed_trainer_new(job->folder, &r, &hooks, NULL, err);
        if (t)
            heed_trainer_run(t, &job->result, err);
        heed_trainer_free(t);
    }
    heed_arena_free(arena);
    return err->status;
}

/* Catches a rank with other options or other text that trains along, and one that is refused for
 * its number of threads, which is each machine's own. */
static void test_other_options(void **state)
{
    (void)state;
    char other[256];
    snprintf(other, sizeof other, "%s", in_room("other.s"));
    write_pairs(other, in_room("other.t"), 60, 5);
    const struct {
        const char *const *more;
        heed_status status;
        const char *text;
    } rows[] = {
        {MORE("--threads", "2"), HEED_OK, ""},
        {MORE("--dropout", "0.5"), HEED_ARGUMENT, "the options differ: \"dropout\": 0.5"},
        {MORE("--threads", "2", "--warmup", "21"), HEED_ARGUMENT,
         "the options differ: \"warmup\": 21 here, \"warmup\": 20 on rank 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job a = {.more = NULL}, b = {.more = rows[i].more};
        snprintf(a.folder, sizeof a.folder, "%s", in_room("m"));
        const heed_error err = run_ranks(2, train_own, (void *const[]){&a, &b});
        if (err.status != rows[i].status || !strstr(err.text, rows[i].text))
            fail_msg("row %d: status %d, '%s'", (int)i, (int)err.status, err.text);
        remove_tree(in_room("m"));
    }
}

/* ---- sums ---- */

enum { NUMBERS = 3 * 4096 * 2 + 5, ROUNDS = 3 };

struct numbers {
    heed__exact_sum *sum;
    heed_real values[ROUNDS][NUMBERS];
    bool share;
};

static heed_real number_of(int micro, int i)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3, .step = (uint64_t)micro});
    return (heed_real)(heed_rng_normal(&rng, (uint64_t)i) * (i % 7 == 0 ? 1e6 : 1));
}

static heed_status sum_numbers(struct rank_thread *self, heed_error *err)
{
    struct numbers *x = self->context;
    const int size = heed_ranks_size(self->ranks);
    x->sum = heed__exact_sum_new(self->ranks, NUMBERS, ROUNDS, NULL, err);
    for (int round = 0; x->sum && round < ROUNDS; round++) {
        for (int i = 0; i < NUMBERS; i++)
            x->values[0][i] = number_of(round * size + self->rank, i);
        for (int64_t b = heed__exact_sum_buckets(x->sum, NUMBERS); b-- > 0;)
            if (heed__exact_sum_add(x->sum, x->values[0], NUMBERS, b, round, true, err))
                return err->status;
        for (int i = 0; round < ROUNDS - 1 && i < NUMBERS; i++)
            assert_true(x->values[0][i] == 0);
    }
    heed__exact_sum_free(x->sum);
    return err->status;
}

/* Catches parts that do not meet, and an order other than that of the micro-batches. */
static void test_sum(void **state)
{
    (void)state;
    static struct numbers x[MOST_RANKS];
    for (int size = 1; size <= MOST_RANKS; size++) {
        void *context[MOST_RANKS];
        for (int i = 0; i < size; i++)
            context[i] = &x[i];
        assert_int_equal(run_ranks(size, sum_numbers, context).status, HEED_OK);
        for (int i = 0; i < NUMBERS; i++) {
            heed_real sum = number_of(0, i);
            for (int m = 1; m < size * ROUNDS; m++)
                sum += number_of(m, i);
            for (int r = 0; r < size; r++)
                assert_true(x[r].values[0][i] == sum);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_lost_rank),
        cmocka_unit_test_setup_teardown(test_same_bits, make_room, clear_room),
        cmocka_unit_test_setup_teardown(test_resumed_by_others, make_room, clear_room),
        cmocka_unit_test_setup_teardown(test_all_roll_back, make_room, clear_room),
        cmocka_unit_test_setup_teardown(test_two_sets, make_room, clear_room),
        cmocka_unit_test_setup_teardown(test_other_data, make_room, clear_room),
        cmocka_unit_test_setup_teardown(test_other_options, make_room, clear_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
