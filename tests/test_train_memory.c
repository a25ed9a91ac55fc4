/* test_train_memory.c: a training in which one allocation fails, whichever it is: it ends with
 * MEMORY, gives everything back, and what was saved goes on as if nothing had been. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "train_case.h"
#include <jansson.h>

#define OPTIONS                                                                                    \
    MORE("--max-updates", "2", "--valid-every", "1", "--save-every", "1", "--keep", "1",           \
         "--average", "2", "--ema", "0.5", "--valid-lines", "1", "--log-every", "1",               \
         "--accumulate", "2")

/* New, or resumed if it is there, with this allocator. */
static heed_status train_with(const heed_allocator *a, heed_error *err)
{
    heed_arena *arena = heed_arena_new(NULL, err);
    assert_non_null(arena);
    heed_recipe r = recipe_with(arena, OPTIONS);
    heed_train_result result;
    heed_trainer *t = is_there(in_room("m")) ? heed_trainer_resume(in_room("m"), &r, NULL, a, err)
                                             : heed_trainer_new(in_room("m"), &r, NULL, a, err);
    if (t)
        heed_trainer_run(t, &result, err);
    heed_trainer_free(t);
    heed_arena_free(arena);
    return err->status;
}

static void same_as(const char *reference)
{
    static const char *const outcome[] = {
        "model.safetensors", "training/best.safetensors", "training/step-2/model.safetensors",
        "training/step-2/moments.safetensors", "training/step-2/average.safetensors"};
    for (size_t k = 0; k < sizeof outcome / sizeof *outcome; k++)
        if (!same_file(reference, in_room("m"), outcome[k]))
            fail_msg("'%s' differs", outcome[k]);
}

/* The allocation that fails goes up by so many after the first hundred, in which every one is
 * another: later ones are those of steps and searches, again and again. */
static int next(int n)
{
    return n + 1 + n / 100;
}

static void make_reference(char reference[128])
{
    heed_error err = {0};
    snprintf(reference, 128, "%s/reference", room);
    if (train_in(reference, OPTIONS, false, NULL, NULL, &err))
        fail_msg("%s", err.text);
}

/* Catches a leak, a crash, or a failure that passes for a success. */
static void test_allocation_fails(void **state)
{
    (void)state;
    char reference[128];
    heed_status status = HEED_MEMORY;
    int failures = 0;
    make_reference(reference);
    for (int n = 1; status; n = next(n)) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0}, none = {0};
        status = train_with(&a, &err);
        if (status && status != HEED_MEMORY)
            fail_msg("allocation %d: status %d, '%s'", n, (int)status, err.text);
        assert_int_equal(f.held, 0);
        if (!status && f.calls >= n) { /* one that could be done without */
            same_as(reference);
            status = HEED_MEMORY;
        } else if (status) {
            if (train_with(NULL, &none))
                fail_msg("allocation %d failed, and the next run says '%s'", n, none.text);
            same_as(reference);
        }
        remove_tree(in_room("m"));
        failures++;
    }
    print_message("%d failures\n", failures);
    assert_true(failures > 200);
}

/* The same of a run that is resumed at its end. */
static void test_allocation_of_a_resume_fails(void **state)
{
    (void)state;
    char reference[128];
    heed_error none = {0};
    heed_status status = HEED_MEMORY;
    make_reference(reference);
    assert_int_equal(train_with(NULL, &none), HEED_OK);
    for (int n = 1; status; n = next(n)) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        status = train_with(&a, &err);
        if (status && status != HEED_MEMORY)
            fail_msg("allocation %d: status %d, '%s'", n, (int)status, err.text);
        assert_int_equal(f.held, 0);
        if (!status && f.calls >= n)
            status = HEED_MEMORY;
    }
    same_as(reference);
}

/* ---- jansson's memory ---- */

static long json_calls, json_fail_at;

static void *json_allocate(size_t size)
{
    return ++json_calls == json_fail_at ? NULL : malloc(size);
}

/* Trains with call n failing; false: there is no such call. */
static bool train_json_failing(long n, heed_status *status, heed_error *err)
{
    json_malloc_t allocate;
    json_free_t release;
    json_get_alloc_funcs(&allocate, &release);
    json_calls = 0;
    json_fail_at = n;
    json_set_alloc_funcs(json_allocate, free);
    *status = train_with(NULL, err);
    json_set_alloc_funcs(allocate, release);
    return json_calls >= n;
}

/* Catches weights, a state or a configuration that lack what there was no memory for. */
static void test_json_allocation_fails(void **state)
{
    (void)state;
    char reference[128];
    int told = 0;
    make_reference(reference);
    for (long n = 1;; n += 1 + n / 20) {
        heed_error err = {0}, none = {0};
        heed_status status;
        if (!train_json_failing(n, &status, &err))
            break;
        told += status != HEED_OK;
        if (status && status != HEED_MEMORY)
            fail_msg("allocation %ld: status %d, '%s'", n, (int)status, err.text);
        if (status && train_with(NULL, &none))
            fail_msg("allocation %ld failed, and the next run says '%s'", n, none.text);
        same_as(reference);
        remove_tree(in_room("m"));
    }
    print_message("%d failures told\n", told);
    assert_true(told > 50);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_allocation_fails),
                                       TEST(test_allocation_of_a_resume_fails),
                                       TEST(test_json_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
