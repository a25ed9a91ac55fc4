/* test_set_failures.c: two sets of parameters, by one process and by two that share the batches:
 * whichever call of the file system, allocation or message between the two fails, it is told,
 * nothing leaks, and the run goes on from what was saved to the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "file_calls.h"
#include "gan_task.h"
#include "rank_threads.h"
#include "train_case.h"
#include <glob.h>

/* Saves, of which one stays, kept weights, the best, their mean. */
struct run {
    const heed_allocator *allocator[2]; /* of each rank */
    bool resume, shards;
};

static heed_status train_gan(const struct run *run, heed_ranks *ranks, heed_error *err)
{
    struct gan g = {.params = {NULL}};
    heed_loop_options loop = gan_loop(4);
    loop.accumulate = 2;
    loop.valid_every = loop.log_every = 2;
    loop.save_every = loop.keep = 1;
    loop.average = 3;
    loop.average_kind = HEED_AVERAGE_LAST;
    loop.ema = 0.5;
    loop.clip_value = 0.5;
    loop.shard_optimizer = run->shards;
    const heed_task task = gan_task(&g, &loop);
    const heed_train_hooks hooks = {.ranks = ranks};
    heed_train_result result;
    const char *given = heed_ranks_folder(ranks, err);
    if (err->status)
        return err->status;
    heed_trainer *t = heed_trainer_open(given ? given : in_room("m"), &task, !given && run->resume,
                                        &hooks, run->allocator[heed_ranks_rank(ranks)], err);
    if (t)
        heed_trainer_run(t, &result, err);
    heed_trainer_free(t);
    return err->status;
}

static const char *const outcome[] = {
    "model.safetensors",
    "model-critic.safetensors",
    "training/best.safetensors",
    "training/best-critic.safetensors",
    "training/step-4/model.safetensors",
    "training/step-4/model-critic.safetensors",
    "training/step-4/moments.safetensors",
    "training/step-4/moments-critic.safetensors",
    "training/step-4/average.safetensors",
    "training/step-4/average-critic.safetensors",
};

static int entries(void)
{
    glob_t found;
    const int none = glob(in_room("*"), 0, NULL, &found);
    const int n = none ? 0 : (int)found.gl_pathc;
    globfree(&found);
    return n;
}

static int others; /* entries of the room beside the model */

static void make_reference(void)
{
    heed_error err = {0};
    if (train_gan(&(struct run){.resume = false}, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(rename(in_room("m"), in_room("reference")), 0);
    others = entries();
}

/* What is there, or a new run, ends as if nothing had been; a run that could not begin has left
 * nothing. */
static void finish(const char *what, bool keep)
{
    heed_error err = {0};
    const struct run run = {.resume = is_there(in_room("m"))};
    if (entries() != others + run.resume)
        fail_msg("%s, and something is left beside the model", what);
    if (train_gan(&run, NULL, &err))
        fail_msg("%s, and the next run says '%s'", what, err.text);
    for (size_t i = 0; i < sizeof outcome / sizeof *outcome; i++)
        if (!same_file(in_room("reference"), in_room("m"), outcome[i]))
            fail_msg("%s, and then '%s' differs", what, outcome[i]);
    assert_int_equal(entries(), others + 1);
    if (!keep)
        remove_tree(in_room("m"));
}

/* ---- the file system ---- */

/* Catches a failure that is told for one set and passes for the other. */
static void test_every_file_call(void **state)
{
    (void)state;
    static const char *const logs[] = {"log.jsonl", "events.out.tfevents", NULL};
    int told[2] = {0};
    make_reference();
    for (int resume = 0; resume < 2; resume++)
        for (long n = 1;; n++) {
            heed_error err = {0};
            if (resume && n == 1)
                finish("nothing failed", true);
            memset(&watched, 0, sizeof watched);
            watched.fail_at = n;
            watched.error = EIO;
            watched.streams = logs;
            watched.under = room;
            train_gan(&(struct run){.resume = resume}, NULL, &err);
            watched.under = NULL;
            if (!*watched.failed)
                break;
            if (err.status && (err.status != HEED_IO || !strstr(err.text, strerror(EIO))))
                fail_msg("%s failed: status %d, '%s'", watched.failed, (int)err.status, err.text);
            told[resume] += err.status != HEED_OK;
            finish(watched.failed, resume);
        }
    print_message("%d and %d failures told\n", told[0], told[1]);
    assert_true(told[0] > 200 && told[1] > 30);
}

/* ---- memory ---- */

/* Catches memory that a failed allocation for the second set, or for the second rank, leaves behind
 * or frees twice, and a rank that waits for ever for another one that has none. */
static heed_status train_failing(struct failing *f, int rank, bool resume, bool shards);

static void each_allocation(int ranks, int rank, bool resume, bool shards)
{
    int failures = 0;
    for (int n = 1;; n++) {
        struct failing f = {.fail_at = n};
        char what[64];
        if (resume && n == 1)
            finish("nothing failed", true);
        const heed_status status = train_failing(&f, ranks == 1 ? -1 : rank, resume, shards);
        snprintf(what, sizeof what, "allocation %d of rank %d", n, rank);
        if (f.held)
            fail_msg("%s: %ld bytes are held", what, (long)f.held);
        if (f.calls < n)
            break;
        if (status != HEED_MEMORY && status)
            fail_msg("%s: status %d", what, (int)status);
        failures += status == HEED_MEMORY;
        finish(what, resume);
    }
    print_message("%d ranks, rank %d%s%s: %d failures\n", ranks, rank, resume ? ", resumed" : "",
                  shards ? ", in parts" : "", failures);
    assert_true(failures > 10);
    remove_tree(in_room("m"));
}

static heed_status run_body(struct rank_thread *self, heed_error *err)
{
    return train_gan(self->context, self->ranks, err);
}

static heed_status train_failing(struct failing *f, int rank, bool resume, bool shards)
{
    const heed_allocator a = failing_allocator(f);
    struct run run = {.resume = resume, .shards = shards};
    heed_error err = {0};
    run.allocator[rank > 0] = &a;
    if (rank < 0)
        return train_gan(&run, NULL, &err);
    err = run_ranks(2, run_body, (void *const[]){&run, &run});
    return err.status;
}

static void test_every_allocation(void **state)
{
    (void)state;
    make_reference();
    for (int resume = 0; resume < 2; resume++)
        each_allocation(1, 0, resume, false);
}

static void test_every_allocation_of_a_rank(void **state)
{
    (void)state;
    make_reference();
    for (int rank = 0; rank < 2; rank++)
        for (int shards = 0; shards < 2; shards++)
            each_allocation(2, rank, false, shards);
    each_allocation(2, 0, true, true);
}

/* ---- the other rank ---- */

/* Catches a message that does not come and is taken for one that did, a rank that waits for another
 * one for ever, and a run whose save is harmed by it. */
static void test_every_message(void **state)
{
    (void)state;
    make_reference();
    for (int i = 0; i < 4; i++) {
        const struct run new = {.shards = i / 2};
        int failures = 0;
        for (long n = 1;; n++, failures++) {
            struct run run = new;
            char what[64];
            cable.rank = i % 2;
            cable.fail_at = n;
            cable.calls = 0;
            const heed_error err = run_ranks(2, run_body, (void *const[]){&run, &run});
            if (cable.calls < n)
                break;
            snprintf(what, sizeof what, "message %ld of rank %d", n, cable.rank);
            if (err.status != HEED_IO || !strstr(err.text, "the cable is cut"))
                fail_msg("%s: status %d, '%s'", what, (int)err.status, err.text);
            finish(what, false);
        }
        cable.fail_at = 0;
        print_message("%d messages\n", failures);
        assert_true(failures > 40);
        finish("nothing failed", false);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_file_call),
        TEST(test_every_allocation),
        TEST(test_every_allocation_of_a_rank),
        TEST(test_every_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
