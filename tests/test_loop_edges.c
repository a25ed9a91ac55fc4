/* test_loop_edges.c: the training loop at the edges of what a task may be: data that ends or has
 * changed, measures that are missing or better when larger, saves of something else, forecasts,
 * the end of a run. */
#include <heed/heed.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"
#include <jansson.h>

/* One number w, pulled to 3; everything else is scripted. */
struct script {
    heed_params *params;
    heed_tensor *w;
    int opened, closed;
    double share;              /* of a pass, in a batch */
    int64_t ends_at, fails_at; /* the data; 0: never */
    bool second_empty;         /* of two micro-batches */
    const double *score;       /* of validation 1, 2, ...; NULL: w's own */
    int scores, validations;
    heed_fingerprint data[3];
    int n_data;
    double finished_with; /* w */
    bool fails_to_finish;
    char points[64][80]; /* of saves */
    int n_points;
};

static heed_status told(heed_error *err, heed_status status, const char *text)
{
    err->status = status;
    snprintf(err->text, sizeof err->text, "%s", text);
    return status;
}

static heed_status open_script(void *self, const char *folder, bool new_folder, heed_error *err)
{
    struct script *s = self;
    (void)folder;
    (void)new_folder;
    s->opened++;
    s->params = heed_params_new(NULL, err);
    s->w = heed_param(heed_params_scope(s->params), "w", HEED_SHAPE(1),
                      (heed_init){HEED_INIT_NORMAL, 1});
    return heed_params_finish(s->params, 1, err);
}

static heed_params *params_of(void *self, int set)
{
    (void)set;
    return ((struct script *)self)->params;
}

static void close_script(void *self)
{
    struct script *s = self;
    s->closed++;
    heed_params_free(s->params);
    s->params = NULL;
}

static heed_status next_batches(void *self, int64_t update, int micros, heed_portion *portion,
                                heed_error *err)
{
    const struct script *s = self;
    if (update == s->fails_at)
        return told(err, HEED_IO, "the script is torn");
    for (int i = 0; i < micros; i++)
        portion[i] = (heed_portion){.terms = update == s->ends_at || (i && s->second_empty) ? 0 : 1,
                                    .items = 2,
                                    .share = s->share};
    return HEED_OK;
}

static heed_tensor *script_loss(void *self, heed_tape *t, const heed_pass *pass, double *sum)
{
    const struct script *s = self;
    heed_tensor *off = heed_scale(t, s->w, 1, -3);
    (void)sum;
    return heed_scale(t, heed_sum(t, heed_mul(t, off, off), HEED_ALL), pass->weight, 0);
}

static heed_status validate(void *self, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    struct script *s = self;
    (void)t;
    (void)err;
    const int i = s->validations++;
    out[0] = (heed_measure){"loss", 1, false};
    out[1] = (heed_measure){"score", i < s->scores ? s->score[i] : 0, true};
    *count = 2;
    return HEED_OK;
}

static int data_of(void *self, heed_fingerprint *out)
{
    const struct script *s = self;
    memcpy(out, s->data, sizeof *out * (size_t)s->n_data);
    return s->n_data;
}

static heed_status finish(void *self, heed_tape *t, const char *folder, heed_error *err)
{
    struct script *s = self;
    (void)t;
    assert_true(is_there(folder));
    s->finished_with = (double)heed_params_values(s->params)[0];
    return s->fails_to_finish ? told(err, HEED_IO, "no room for results") : HEED_OK;
}

static void note_point(void *context, const char *where)
{
    struct script *s = context;
    if (s->n_points < 64)
        snprintf(s->points[s->n_points++], sizeof s->points[0], "%s", where);
}

static heed_loop_options loop_with(int64_t updates)
{
    heed_loop_options o;
    heed_error err = {0};
    assert_int_equal(heed_loop_defaults(&o, &err), HEED_OK);
    o.max_updates = updates;
    o.schedule = HEED_SCHEDULE_CONSTANT;
    o.warmup = o.average = o.valid_every = 0;
    o.rate = 0.05;
    return o;
}

static heed_task task_of(struct script *s, const heed_loop_options *loop)
{
    return (heed_task){.self = s,
                       .loop = loop,
                       .open = open_script,
                       .params = params_of,
                       .next = next_batches,
                       .loss = script_loss,
                       .close = close_script};
}

static heed_error run(const heed_task *task, bool resume, heed_train_result *result)
{
    heed_error err = {0};
    heed_train_result own;
    const heed_train_hooks hooks = {.save_point = note_point, .context = task->self};
    heed_trainer *t = heed_trainer_open(in_room("m"), task, resume, &hooks, NULL, &err);
    if (t)
        heed_trainer_run(t, result ? result : &own, &err);
    heed_trainer_free(t);
    return err;
}

static void runs(const heed_task *task, bool resume, heed_train_result *result)
{
    const heed_error err = run(task, resume, result);
    if (err.status)
        fail_msg("%s", err.text);
}

static void refused(const heed_task *task, bool resume, heed_status status, const char *text)
{
    const heed_error err = run(task, resume, NULL);
    if (err.status != status || !strstr(err.text, text))
        fail_msg("status %d, '%s', expected %d, '%s'", (int)err.status, err.text, (int)status,
                 text);
}

/* ---- options ---- */

/* Catches options that a program sets by itself and that divide by zero or outgrow a list, and
 * tasks without what the loop needs. */
static void test_refused_tasks(void **state)
{
    (void)state;
    struct script s = {.share = 0};
    heed_loop_options loops[4];
    for (int i = 0; i < 4; i++)
        loops[i] = loop_with(1);
    loops[0].accumulate = 0;
    loops[1].log_every = 0;
    loops[2].keep = 0;
    loops[3].average = 101;
    for (int i = 0; i < 4; i++) {
        const heed_task task = task_of(&s, &loops[i]);
        refused(&task, false, HEED_ARGUMENT, "options of the loop: accumulate, log_every and keep");
    }
    const heed_loop_options loop = loop_with(1);
    heed_task task = task_of(&s, &loop);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    task.sets = 2;
    refused(&task, false, HEED_ARGUMENT, "a task with 2 sets of parameters: expected 4 at most");
    task.sets = 5;
    task.set_names = names;
    refused(&task, false, HEED_ARGUMENT, "a task with 5 sets of parameters: expected 4 at most");
    task.sets = 1;
    task.loss = NULL;
    refused(&task, false, HEED_ARGUMENT, "a task needs params and loss");
    assert_int_equal(s.opened, 0);
    assert_int_equal(s.closed, 7);
    heed_error err = {0};
    task.loop = NULL;
    task.close = NULL;
    assert_null(heed_trainer_open(in_room("m"), &task, false, NULL, NULL, &err));
    assert_string_equal(err.text, "a trainer needs a folder, a task and the task's loop");
    assert_false(is_there(in_room("m")));
}

/* Catches Adam's constants taken for "not given" where they are 0, and a trainer that has other
 * options than it was given. */
static void test_zero_is_a_number(void **state)
{
    (void)state;
    double w[2];
    for (int i = 0; i < 2; i++) {
        struct script s = {.share = 0};
        heed_loop_options loop = loop_with(5);
        loop.beta1 = loop.beta2 = i ? 0 : 0.9;
        loop.eps = 0;
        const heed_task task = task_of(&s, &loop);
        heed_error err = {0};
        heed_train_result result;
        heed_trainer *t = heed_trainer_open(in_room("m"), &task, false, NULL, NULL, &err);
        assert_non_null(t);
        assert_memory_equal(heed_trainer_options(t), &loop, sizeof loop);
        const double before = (double)heed_params_values(s.params)[0];
        assert_int_equal(heed_trainer_run(t, NULL, &err), HEED_ARGUMENT);
        err = (heed_error){0};
        assert_int_equal(heed_trainer_run(t, &result, &err), HEED_OK);
        w[i] = (double)heed_params_values(s.params)[0] - before;
        heed_trainer_free(t);
        remove_tree(in_room("m"));
    }
    /* Without memory Adam is the sign of the gradient: each step is the rate. */
    assert_true(fabs(w[1] - 5 * 0.05) < 1e-5);
    assert_true(w[0] > 0);
}

/* ---- data ---- */

/* Catches a run that goes on without data, a reason that is lost, and a second micro-batch that
 * counts although there is nothing in it. */
static void test_data_ends(void **state)
{
    (void)state;
    heed_loop_options loop = loop_with(6);
    struct script s = {.ends_at = 4};
    heed_task task = task_of(&s, &loop);
    refused(&task, false, HEED_STATE, "the training data ended before its time");
    remove_tree(in_room("m"));
    s = (struct script){.fails_at = 4};
    refused(&task, false, HEED_IO, "the script is torn");
    s = (struct script){.share = 0};
    runs(&task, true, NULL); /* from its beginning: nothing was saved since */
    assert_int_equal(rename(in_room("m"), in_room("one")), 0);
    s = (struct script){.second_empty = true};
    loop.accumulate = 2;
    runs(&task, false, NULL);
    assert_true(same_file(in_room("one"), in_room("m"), "model.safetensors"));
}

/* Catches a run that is resumed with other data, or with data of which less or more is known. */
static void test_other_data(void **state)
{
    (void)state;
    const heed_loop_options loop = loop_with(2);
    struct script s = {.data = {{"lines", 5}, {"checksum", 6}, {"words", 7}}, .n_data = 2};
    heed_task task = task_of(&s, &loop);
    task.data = data_of;
    runs(&task, false, NULL);
    runs(&task, true, NULL);
    s.data[1].value = 8;
    refused(&task, true, HEED_STATE, "its data has changed: checksum 8, expected 6");
    s.data[1] = (heed_fingerprint){"sum", 6};
    refused(&task, true, HEED_STATE, "its save describes other data");
    s.data[1].name = "checksum";
    s.n_data = 3;
    refused(&task, true, HEED_STATE, "its save describes other data");
    s.n_data = 1;
    refused(&task, true, HEED_STATE, "its save describes other data");
    task.data = NULL;
    refused(&task, true, HEED_STATE, "its save describes other data");
    task.data = data_of;
    s.n_data = 2;
    runs(&task, true, NULL);
}

/* ---- saves ---- */

static void change_state(const char *field, json_t *value)
{
    const char *path = in_room("m/training/step-2/state.json");
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_object_set_new(root, field, value), 0);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
}

/* Catches a save that was copied from elsewhere and is believed because it is whole. */
static void test_foreign_saves(void **state)
{
    (void)state;
    const heed_loop_options loop = loop_with(2);
    struct script s = {.share = 0};
    const heed_task task = task_of(&s, &loop);
    for (int i = 0; i < 3; i++) {
        runs(&task, false, NULL);
        remove_tree(in_room("m/training/step-0"));
        if (i == 0)
            change_state("update", json_integer(3));
        else if (i == 1)
            change_state("files", json_array());
        else
            change_state("sets", json_loads("[{\"optimizer_updates\": 1, \"ema_updates\": 0, "
                                            "\"loss_sum\": 0}, {}]",
                                            0, NULL));
        refused(&task, true, HEED_FORMAT, "does not belong to this save");
        remove_tree(in_room("m"));
    }
    runs(&task, false, NULL);
    remove_tree(in_room("m/training/step-0"));
    remove_tree(in_room("m/training/step-2"));
    refused(&task, true, HEED_IO, "there is no save in '");
}

/* Catches half-written files of killed trainings that pile up, files of persons that go with them,
 * and what cannot be removed and is not told. */
static void test_abandoned_files(void **state)
{
    (void)state;
    static const char *const gone[] = {"m/.heed-17-0.tmp", "m/training/.heed-18-0.tmp",
                                       "m/training/step-9.tmp/model.safetensors"};
    static const char *const stay[] = {"m/.heed-17-1.tmp", "m/heed-18-0.tmp",
                                       "m/training/step-x.tmp"};
    const heed_loop_options loop = loop_with(2);
    struct script s = {.share = 0};
    const heed_task task = task_of(&s, &loop);
    runs(&task, false, NULL);
    assert_int_equal(mkdir(in_room("m/training/step-9.tmp"), 0777), 0);
    for (int i = 0; i < 3; i++) {
        FILE *a = fopen(in_room(gone[i]), "w"), *b = fopen(in_room(stay[i]), "w");
        assert_true(a && b);
        fclose(a);
        fclose(b);
    }
    runs(&task, true, NULL);
    for (int i = 0; i < 3; i++)
        if (is_there(in_room(gone[i])) || !is_there(in_room(stay[i])))
            fail_msg("'%s' stays, or '%s' is gone", gone[i], stay[i]);
    assert_int_equal(mkdir(in_room("m/training/.heed-19-0.tmp"), 0777), 0);
    refused(&task, true, HEED_IO, "cannot remove '");
}

/* Catches steps of a save in another order: what is named before it is synced, or removed before
 * there is something newer. */
static void test_steps_of_a_save(void **state)
{
    (void)state;
    static const char *const steps[] = {"begun",
                                        "model.safetensors",
                                        "moments.safetensors",
                                        "state.json",
                                        "synced",
                                        "renamed",
                                        "linked",
                                        "latest",
                                        "pruned"};
    enum { STEPS = sizeof steps / sizeof *steps };
    const heed_loop_options loop = loop_with(2);
    struct script s = {.share = 0};
    const heed_task task = task_of(&s, &loop);
    runs(&task, false, NULL);
    assert_int_equal(s.n_points, 2 * STEPS + 2); /* two saves, and the model published */
    for (int i = 0; i < STEPS; i++)
        assert_string_equal(s.points[i], steps[i]);
}

/* ---- validation ---- */

/* Catches an average of saves that scored worst, one that counts a score that is not there, and
 * an average that is published although it is worse. */
static void test_larger_is_better(void **state)
{
    (void)state;
    /* of updates 1 to 6, and of the average */
    static const double score[] = {1, 5, NAN, 3, 4, 2, 4.5};
    heed_loop_options loop = loop_with(6);
    loop.valid_every = 1;
    loop.average = 2;
    loop.average_kind = HEED_AVERAGE_BEST;
    struct script s = {.score = score, .scores = 7};
    heed_task task = task_of(&s, &loop);
    heed_train_result r;
    task.validate = validate;
    task.best = "score";
    runs(&task, false, &r);
    assert_int_equal(r.last.best_update, 2);
    assert_true(r.last.best.value == 5 && r.average_score == 4.5);
    assert_int_equal(r.averaged, 0);
    json_t *saved = json_load_file(in_room("m/training/latest/state.json"), 0, NULL);
    const json_t *candidates = json_object_get(saved, "candidates");
    assert_int_equal(json_array_size(candidates), 2);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(candidates, 0), 0)), 2);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(candidates, 1), 0)), 5);
    json_decref(saved);
    assert_true(same_file(in_room("m"), in_room("m"), "training/best.safetensors"));
    size_t n, m;
    char *a = bytes_of(in_room("m/model.safetensors"), &n);
    char *b = bytes_of(in_room("m/training/best.safetensors"), &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

/* Catches a run without any limit that never ends, and patience that counts from the first
 * validation rather than from the best. */
static void test_default_patience(void **state)
{
    (void)state;
    static const double score[] = {1, 2, 3};
    heed_loop_options loop = loop_with(0);
    loop.valid_every = 2;
    struct script s = {.score = score, .scores = 3};
    heed_task task = task_of(&s, &loop);
    heed_train_result r;
    task.validate = validate;
    task.best = "score";
    runs(&task, false, &r);
    assert_int_equal(r.reason, HEED_TRAIN_PATIENCE);
    assert_int_equal(r.last.update, 2 * (3 + 10));
    assert_int_equal(r.last.best_update, 6);
    assert_true(heed_train_measured(&r.last, "score") == 0);
    assert_true(isnan(heed_train_measured(&r.last, NULL)));
}

/* Catches results that are made with the last weights rather than the best, or not told when they
 * cannot be written. */
static void test_finish_has_the_best(void **state)
{
    (void)state;
    static const double score[] = {1, 9, 2, 3};
    heed_loop_options loop = loop_with(8);
    loop.valid_every = 2;
    struct script s = {.score = score, .scores = 4};
    heed_task task = task_of(&s, &loop);
    task.validate = validate;
    task.best = "score";
    task.finish = finish;
    runs(&task, false, NULL);
    heed_error err = {0};
    heed_real w;
    heed_safetensors *f = heed_safetensors_open(in_room("m/model.safetensors"), NULL, &err);
    assert_non_null(f);
    assert_int_equal(heed_stored_read(heed_safetensors_find(f, "w"), &w, 0, 1, &err), HEED_OK);
    heed_safetensors_close(f);
    assert_true(s.finished_with == (double)w);
    f = heed_safetensors_open(in_room("m/training/latest/model.safetensors"), NULL, &err);
    assert_int_equal(heed_stored_read(heed_safetensors_find(f, "w"), &w, 0, 1, &err), HEED_OK);
    heed_safetensors_close(f);
    assert_true(s.finished_with != (double)w); /* the last one */
    s.fails_to_finish = true;
    refused(&task, true, HEED_IO, "no room for results");
}

/* ---- forecast ---- */

/* Catches a forecast that hides why it could not be made, that leaves the moving average out of the
 * memory, and an epoch whose length is made up where there are none. */
static void test_forecast(void **state)
{
    (void)state;
    heed_train_forecast f[2];
    for (int i = 0; i < 2; i++) {
        struct script s = {.share = i ? 0.25 : 0};
        heed_loop_options loop = loop_with(5);
        loop.ema = i ? 0.5 : 0;
        const heed_task task = task_of(&s, &loop);
        heed_error err = {0};
        heed_trainer *t = heed_trainer_open(in_room("m"), &task, false, NULL, NULL, &err);
        assert_non_null(t);
        assert_int_equal(heed_trainer_forecast(t, NULL, &err), HEED_ARGUMENT);
        for (int64_t n = 1; n < 3; n++) {
            heed_error torn = {0};
            s.fails_at = n;
            assert_int_equal(heed_trainer_forecast(t, &f[i], &torn), HEED_IO);
            assert_string_equal(torn.text, "the script is torn");
        }
        s.fails_at = 0;
        err = (heed_error){0};
        assert_int_equal(heed_trainer_forecast(t, &f[i], &err), HEED_OK);
        heed_trainer_free(t);
        assert_int_equal(f[i].parameters, 1);
        assert_true(f[i].items_per_second > 0 && f[i].seconds_per_update > 0);
    }
    assert_int_equal(f[0].updates_per_epoch, 0);
    assert_true(f[0].seconds_per_epoch == 0);
    assert_int_equal(f[1].updates_per_epoch, 4);
    assert_true(fabs(f[1].seconds_per_epoch - 4 * f[1].seconds_per_update) <
                1e-9 * f[1].seconds_per_epoch);
    assert_true(f[1].memory > f[0].memory);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_refused_tasks),       TEST(test_zero_is_a_number), TEST(test_data_ends),
        TEST(test_other_data),          TEST(test_foreign_saves),    TEST(test_abandoned_files),
        TEST(test_steps_of_a_save),     TEST(test_larger_is_better), TEST(test_default_patience),
        TEST(test_finish_has_the_best), TEST(test_forecast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
