/* test_train_log.c: what a run leaves to look at: lines that any reader of JSON takes, whatever the
 * names and numbers are, events, and curves that follow a run through its rollbacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "file_calls.h"
#include "train/trainer.h"
#include "train_case.h"
#include <jansson.h>
#include <math.h>

static const heed_task plain = {.items = "bits", .perplexity = true};

static json_t *last_line(void)
{
    size_t n;
    char *text = bytes_of(in_room("log.jsonl"), &n);
    assert_true(n > 1 && text[n - 1] == '\n');
    text[n - 1] = '\0';
    const char *line = strrchr(text, '\n');
    json_t *object = json_loads(line ? line + 1 : text, 0, NULL);
    if (!object)
        fail_msg("no JSON: %s", line ? line + 1 : text);
    free(text);
    return object;
}

/* Writes one line; what it says, to be released. */
static json_t *logged(const heed_train_progress *p)
{
    heed_error err = {0};
    heed__log *l = heed__log_open(in_room("log.jsonl"), INT64_MAX, NULL, &err);
    assert_non_null(l);
    assert_int_equal(heed__log_progress(l, p, &err), HEED_OK);
    const int64_t bytes = heed__log_bytes(l);
    heed__log_close(l);
    size_t n;
    free(bytes_of(in_room("log.jsonl"), &n));
    assert_int_equal(n, bytes);
    return last_line();
}

static double number_at(const json_t *line, const char *name)
{
    const json_t *v = json_object_get(line, name);
    if (!json_is_number(v))
        fail_msg("'%s' is missing", name);
    return json_number_value(v);
}

/* Catches a name of a measure that breaks the line or meets another one, a number that JSON does
 * not have, and perplexities of what is no loss. */
static void test_names_and_numbers(void **state)
{
    (void)state;
    char longest[100];
    memset(longest, 'L', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    heed_train_progress p = {.event = HEED_TRAIN_VALIDATION,
                             .update = 7,
                             .epoch = 2,
                             .measure = {{"loss", 2, false},
                                         {"BLEU-4 {%}~", 31.5, true},
                                         {"Z9az", NAN, true},
                                         {longest, 4, true}},
                             .measures = 4,
                             .best = {"BLEU-4 {%}~", 30, true},
                             .best_update = 5,
                             .task = &plain,
                             .seconds = INFINITY};
    json_t *line = logged(&p);
    assert_string_equal(json_string_value(json_object_get(line, "event")), "validation");
    assert_true(number_at(line, "update") == 7 && number_at(line, "epoch") == 2);
    assert_true(number_at(line, "bleu-4_____") == 31.5);
    assert_null(json_object_get(line, "z9az"));
    longest[sizeof(heed__log_key) - 1] = '\0';
    for (char *c = longest; *c; c++)
        *c = 'l';
    assert_true(number_at(line, longest) == 4);
    assert_true(fabs(number_at(line, "perplexity") - exp(2)) < 1e-4);
    assert_true(number_at(line, "best") == 30 && number_at(line, "best_update") == 5);
    assert_null(json_object_get(line, "seconds"));
    json_decref(line);

    p.measures = 0; /* of a task that does not validate */
    p.best.name = NULL;
    line = logged(&p);
    assert_null(json_object_get(line, "perplexity"));
    assert_null(json_object_get(line, "metric"));
    json_decref(line);
}

/* Catches a line of many processes that is cut, and the wrong one called the slowest. */
static void test_many_ranks(void **state)
{
    (void)state;
    double speed[65];
    for (int i = 0; i < 65; i++)
        speed[i] = i == 63 ? 1.5 : 123456.7 + i;
    heed_train_progress p = {.event = HEED_TRAIN_UPDATE,
                             .loss = {1},
                             .norm = {NAN},
                             .ranks = 64,
                             .rank_speed = speed,
                             .waiting = 0.25,
                             .task = &plain,
                             .speed = 77};
    json_t *line = logged(&p);
    assert_true(number_at(line, "bits_per_second") == 77);
    assert_null(json_object_get(line, "norm"));
    assert_true(number_at(line, "slowest") == 63 && number_at(line, "waiting") == 0.25);
    const json_t *each = json_object_get(line, "each_per_second");
    assert_int_equal(json_array_size(each), 64);
    assert_true(json_number_value(json_array_get(each, 63)) == 1.5);
    json_decref(line);

    p.ranks = 65; /* more than a line has room for */
    line = logged(&p);
    assert_true(number_at(line, "ranks") == 65 && number_at(line, "slowest") == 63);
    assert_null(json_object_get(line, "each_per_second"));
    json_decref(line);

    p.ranks = 1;
    line = logged(&p);
    assert_null(json_object_get(line, "slowest"));
    json_decref(line);
}

/* Catches a reason that ends the text it stands in. */
static void test_reasons(void **state)
{
    (void)state;
    heed_error err = {0};
    char why[2 * sizeof err.text];
    memset(why, 'w', sizeof why);
    memcpy(why, "\"a\\b\"\n\t", 7);
    why[sizeof why - 1] = '\0';
    heed__log *l = heed__log_open(in_room("log.jsonl"), 0, NULL, &err);
    assert_int_equal(heed__log_rollback(l, 9, 5, why, &err), HEED_OK);
    heed__log_close(l);
    json_t *line = last_line();
    assert_true(number_at(line, "update") == 9 && number_at(line, "to") == 5);
    const char *said = json_string_value(json_object_get(line, "why"));
    assert_memory_equal(said, "'a'b'''", 7);
    assert_int_equal(strlen(said), sizeof err.text - 1);
    json_decref(line);
}

/* Catches a write that was interrupted and is taken for a failure, or whose line is lost; and a log
 * that cannot be cut and goes on behind what a resumed run writes again. */
static void test_writes(void **state)
{
    (void)state;
    heed_error err = {0};
    size_t n;
    const heed_train_progress p = {.event = HEED_TRAIN_UPDATE, .loss = {1}, .task = &plain};
    heed__log *l = heed__log_open(in_room("log.jsonl"), 0, NULL, &err);
    memset(&watched, 0, sizeof watched);
    watched.under = room;
    watched.fail_at = 1;
    watched.error = EINTR;
    assert_int_equal(heed__log_progress(l, &p, &err), HEED_OK);
    assert_non_null(strstr(watched.failed, "write"));
    watched.calls = 0;
    watched.error = ENOSPC;
    assert_int_equal(heed__log_progress(l, &p, &err), HEED_IO);
    watched.under = NULL;
    assert_non_null(strstr(err.text, "cannot write the log"));
    const int64_t bytes = heed__log_bytes(l);
    heed__log_close(l);
    free(bytes_of(in_room("log.jsonl"), &n));
    assert_int_equal(n, bytes);
    json_decref(last_line());

    err = (heed_error){0};
    watched.under = room;
    watched.fail_at = 2; /* open, ftruncate */
    watched.calls = 0;
    watched.error = EIO;
    assert_null(heed__log_open(in_room("log.jsonl"), bytes - 1, NULL, &err));
    watched.under = NULL;
    assert_non_null(strstr(watched.failed, "ftruncate"));
    assert_int_equal(err.status, HEED_IO);
    l = heed__log_open(in_room("log.jsonl"), 0, NULL, &err);
    assert_int_equal(heed__log_bytes(l), 0);
    heed__log_close(l);
    assert_null(heed__log_open(in_room("nowhere/log.jsonl"), 0, NULL, &err));
    assert_null(heed__events_open(in_room("nowhere"), NULL, &err));
}

/* ---- curves ---- */

enum { UPDATES = 700, SAVED = 10, BAD = 25 };
struct wave {
    heed_params *params;
    heed_tensor *w;
    bool bad; /* update BAD is still to go wrong */
};

static heed_status open_wave(void *self, const char *folder, bool new_folder, heed_error *err)
{
    struct wave *x = self;
    (void)folder;
    (void)new_folder;
    x->params = heed_params_new(NULL, err);
    x->w = heed_param(heed_params_scope(x->params), "w", HEED_SHAPE(1),
                      (heed_init){HEED_INIT_NORMAL, 1});
    return heed_params_finish(x->params, 1, err);
}

static heed_params *params_of(void *self, int set)
{
    (void)set;
    return ((struct wave *)self)->params;
}

static heed_tensor *wave_loss(void *self, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct wave *x = self;
    *sum = pass->update == BAD && x->bad ? INFINITY : 2 + sin((double)pass->update);
    x->bad = x->bad && pass->update != BAD;
    return heed_scale(t, heed_sum(t, heed_mul(t, x->w, x->w), HEED_ALL), pass->weight, 0);
}

static void close_wave(void *self)
{
    heed_params_free(((struct wave *)self)->params);
}

/* Catches updates that a rollback took back and that stay in the picture, and a curve that loses
 * points where it outgrows its memory. */
static void test_curves_after_a_rollback(void **state)
{
    (void)state;
    struct wave wave = {.bad = true};
    heed_loop_options loop;
    heed_error err = {0};
    heed_train_result result;
    assert_int_equal(heed_loop_defaults(&loop, &err), HEED_OK);
    loop.schedule = HEED_SCHEDULE_CONSTANT;
    loop.warmup = loop.average = loop.valid_every = 0;
    loop.max_updates = UPDATES;
    loop.save_every = SAVED;
    loop.log_every = 1;
    const heed_task task = {.self = &wave,
                            .loop = &loop,
                            .open = open_wave,
                            .params = params_of,
                            .loss = wave_loss,
                            .close = close_wave};
    heed_trainer *t = heed_trainer_open(in_room("m"), &task, false, NULL, NULL, &err);
    if (!t || heed_trainer_run(t, &result, &err))
        fail_msg("%s", err.text);
    heed_trainer_free(t);
    size_t n;
    char *log = bytes_of(in_room("m/training/log.jsonl"), &n);
    assert_non_null(strstr(log, "\"event\": \"rollback\", \"update\": 25, \"to\": 20"));
    free(log);
    char *svg = bytes_of(in_room("m/training/curves.svg"), &n);
    /* Of each curve x only grows. */
    int curves = 0;
    for (const char *at = svg; (at = strstr(at, "<polyline class=\"line")); curves++) {
        const char *c = strstr(at, "points=\"");
        assert_non_null(c);
        double before = -1;
        int points = 0;
        for (at = c += strlen("points=\""); *c != '"'; points++) {
            char *next;
            const double x = strtod(c, &next);
            if (next == c || *next != ',')
                fail_msg("'%.20s' among the points", c);
            strtod(next + 1, &next);
            c = next + strspn(next, " ");
            if (x < before)
                fail_msg("curve %d goes back from %g to %g", curves, before, x);
            before = x;
        }
        assert_true(points > 100);
    }
    free(svg);
    assert_true(curves >= 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_names_and_numbers), TEST(test_many_ranks),
                                       TEST(test_reasons), TEST(test_writes),
                                       TEST(test_curves_after_a_rollback)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
