/* test_train_clock.c: what a training decides by the clock.  No length of time is asserted that a
 * busy machine could stretch: the trainer's own clock is held against its limits, update by
 * update, and against the clock of the machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"
#include <math.h>
#include <time.h>

static double machine_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleeps a little in every update, so that there are tens of them and not thousands. */
enum { MOST = 4096 };
struct clocks {
    int64_t updates, validations, saves;
    double begin;                       /* of the machine */
    double seconds[MOST], offset[MOST]; /* the trainer's at each update; the machine's, less that */
    int64_t validated_at[MOST];         /* updates then */
};

static void note_clock(void *context, const heed_train_progress *p)
{
    struct clocks *c = context;
    const double now = machine_seconds();
    assert_true(c->updates < MOST);
    if (p->event == HEED_TRAIN_UPDATE) {
        c->seconds[c->updates] = p->seconds;
        c->offset[c->updates++] = now - p->seconds;
        usleep(5000);
    } else if (p->event == HEED_TRAIN_VALIDATION) {
        c->validated_at[c->validations++] = c->updates;
    } else {
        c->saves += p->event == HEED_TRAIN_SAVE;
    }
}

static heed_train_result train_timed(const char *m, const char *const *more, struct clocks *c)
{
    heed_train_hooks hooks = {.progress = note_clock, .context = c};
    heed_train_result result;
    heed_error err = {0};
    memset(c, 0, sizeof *c);
    c->begin = machine_seconds();
    if (train_in(in_room(m), more, false, &hooks, &result, &err))
        fail_msg("%s", err.text);
    return result;
}

/* Catches minutes that are seconds or hours, a limit that comes an update late, and a clock that
 * is not the machine's. */
static void test_max_minutes(void **state)
{
    (void)state;
    static struct clocks c;
    heed_train_result r = train_timed(
        "m", MORE("--max-updates", "0", "--max-minutes", "0.004", "--valid-every", "0"), &c);
    const double limit = 0.004 * 60;
    assert_int_equal(r.reason, HEED_TRAIN_MAX_MINUTES);
    assert_true(c.updates > 1);
    assert_true(r.last.seconds >= limit);
    for (int64_t i = 0; i + 1 < c.updates; i++)
        assert_true(c.seconds[i] < limit);
    assert_true(r.last.fraction == 1);
    /* The offset grows by what happens between the trainer's look at the clock and ours. */
    const double trainer = c.seconds[c.updates - 1] - c.seconds[0];
    const double machine = c.offset[c.updates - 1] - c.offset[0] + trainer;
    assert_true(trainer > 0.25 * machine && trainer < 4 * machine);
}

/* Catches validations and saves by the clock that come at another time: none before its minutes
 * are over, and one as soon as they are. */
static void test_minutes_between(void **state)
{
    (void)state;
    static struct clocks c;
    heed_train_result r =
        train_timed("m",
                    MORE("--max-updates", "60", "--valid-every", "0", "--valid-minutes", "0.001",
                         "--save-minutes", "0", "--valid-lines", "0"),
                    &c);
    const double between = 0.001 * 60;
    assert_int_equal(r.reason, HEED_TRAIN_MAX_UPDATES);
    assert_true(c.validations >= 3);
    assert_int_equal(c.validated_at[c.validations - 1], 60);
    double last = 0; /* when the trainer's clock was last at a validation, at least */
    for (int64_t i = 0, v = 0; i < c.updates && v + 1 < c.validations; i++) {
        const bool validated = c.validated_at[v] == i + 1;
        if (validated) {
            assert_true(c.seconds[i] - last >= between);
            last = c.seconds[i];
            v++;
        } else if (v > 0) {
            /* The validation itself took a while, until the update after it at most. */
            assert_true(c.seconds[i] - c.seconds[c.validated_at[v - 1]] < between);
        }
    }

    train_timed("saved",
                MORE("--max-updates", "60", "--valid-every", "0", "--save-minutes", "0.001",
                     "--valid-lines", "0"),
                &c);
    assert_true(c.saves >= 4); /* those of the clock, and the last */
    assert_true((double)(c.saves - 2) * between <= machine_seconds() - c.begin);

    train_timed("never",
                MORE("--max-updates", "60", "--valid-every", "0", "--valid-minutes", "60",
                     "--save-minutes", "60", "--valid-lines", "0"),
                &c);
    assert_int_equal(c.validations, 1);
    assert_int_equal(c.saves, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_max_minutes), TEST(test_minutes_between)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
