/* test_task.c: the training loop and tasks that are made outside of the library, on the public
 * headers alone: one that draws its own examples, and a toy GAN with two sets of parameters. */
#include <heed/heed.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gan_task.h"
#include "train_case.h"

/* ---- the example of CONTRIBUTING ---- */

struct line {
    heed_params *params;
    heed_linear_layer layer;
    double first[2]; /* what was drawn for the two micro-batches of update 1 */
};

static heed_status open_line(void *self, const char *folder, bool new_folder, heed_error *err)
{
    struct line *l = self;
    (void)folder;
    (void)new_folder;
    l->params = heed_params_new(NULL, err);
    heed_linear_build(&l->layer, heed_params_scope(l->params), 1, 1, HEED_IDENTITY, true);
    return heed_params_finish(l->params, 1, err);
}

static heed_params *params_of(void *self, int set)
{
    (void)set;
    return ((struct line *)self)->params;
}

static void close_line(void *self)
{
    heed_params_free(((struct line *)self)->params);
}

static heed_tensor *line_loss(void *self, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct line *l = self;
    heed_real x[16], y[16];
    (void)sum;
    for (int i = 0; i < 16; i++) {
        x[i] = (heed_real)heed_rng_normal(&pass->rng, (uint64_t)i);
        y[i] = 3 * x[i] - 1;
    }
    if (pass->update == 1)
        l->first[pass->micro] = (double)x[0];
    heed_tensor *said = heed_linear_apply(t, &l->layer, heed_input(t, HEED_SHAPE(16, 1), x));
    heed_tensor *off = heed_sub(t, said, heed_input(t, HEED_SHAPE(16, 1), y));
    return heed_scale(t, heed_sum(t, heed_mul(t, off, off), HEED_ALL), pass->weight / 16, 0);
}

static heed_loop_options loop_with(int64_t updates)
{
    heed_loop_options o;
    heed_error err = {0};
    assert_int_equal(heed_loop_defaults(&o, &err), HEED_OK);
    o.max_updates = updates;
    o.schedule = HEED_SCHEDULE_CONSTANT;
    o.warmup = o.valid_every = o.average = 0;
    o.rate = 0.05;
    return o;
}

static heed_train_result run_task(const char *folder, const heed_task *task, bool resume,
                                  const heed_train_hooks *hooks)
{
    heed_error err = {0};
    heed_train_result result = {.averaged = 0};
    heed_trainer *t = heed_trainer_open(folder, task, resume, hooks, NULL, &err);
    if (t)
        heed_trainer_run(t, &result, &err);
    if (err.status)
        fail_msg("%s", err.text);
    heed_trainer_free(t);
    return result;
}

static double stored_number(const char *path, const char *name)
{
    heed_error err = {0};
    heed_real x = 0;
    heed_safetensors *f = heed_safetensors_open(path, NULL, &err);
    const heed_stored *s = f ? heed_safetensors_find(f, name) : NULL;
    assert_non_null(s);
    assert_int_equal(heed_stored_read(s, &x, 0, 1, &err), HEED_OK);
    heed_safetensors_close(f);
    return (double)x;
}

/* Catches a loop that asks more of a task than params and loss, one without validation that leaves
 * no weights, and micro-batches that draw the same. */
static void test_smallest_task(void **state)
{
    (void)state;
    struct line line = {.params = NULL};
    heed_loop_options loop = loop_with(300);
    loop.accumulate = 2;
    const heed_task task = {.self = &line,
                            .loop = &loop,
                            .open = open_line,
                            .params = params_of,
                            .loss = line_loss,
                            .close = close_line};
    heed_train_result r = run_task(in_room("m"), &task, false, NULL);
    assert_int_equal(r.reason, HEED_TRAIN_MAX_UPDATES);
    assert_true(r.last.loss[0] < 1e-3);
    assert_true(fabs(stored_number(in_room("m/model.safetensors"), "weight") - 3) < 0.05);
    assert_true(fabs(stored_number(in_room("m/model.safetensors"), "bias") + 1) < 0.05);
    assert_true(line.first[0] != line.first[1]);
    assert_true(is_there(in_room("m/training/curves.svg")));
}

static bool stop_at_once(void *context)
{
    return ++*(int *)context > 7;
}

/* Catches a task without a position that is resumed elsewhere than where it was, and a stop that
 * draws no curves. */
static void test_resumed_task(void **state)
{
    (void)state;
    struct line line = {.params = NULL};
    const heed_loop_options loop = loop_with(40);
    const heed_task task = {.self = &line,
                            .loop = &loop,
                            .open = open_line,
                            .params = params_of,
                            .loss = line_loss,
                            .close = close_line};
    run_task(in_room("whole"), &task, false, NULL);
    for (int i = 0; i < 5; i++) {
        int asked = 0;
        heed_train_hooks hooks = {.stop = stop_at_once, .context = &asked};
        run_task(in_room("m"), &task, i > 0, &hooks);
        assert_true(is_there(in_room("m/training/curves.svg")));
        assert_int_equal(unlink(in_room("m/training/curves.svg")), 0); /* drawn at every stop */
    }
    assert_int_equal(run_task(in_room("m"), &task, true, NULL).last.update, 40);
    assert_true(same_file(in_room("whole"), in_room("m"), "model.safetensors"));
    assert_true(same_file(in_room("whole"), in_room("m"), "training/step-40/moments.safetensors"));
}

static heed_status fail_to_open(void *self, const char *folder, bool new_folder, heed_error *err)
{
    (void)folder;
    (void)new_folder;
    (void)self;
    err->status = HEED_FORMAT;
    snprintf(err->text, sizeof err->text, "no luck");
    return HEED_FORMAT;
}

static void count_close(void *self)
{
    ++*(int *)self;
}

/* Catches a task that is closed twice or never where it cannot be opened, and what that leaves. */
static void test_task_that_fails(void **state)
{
    (void)state;
    int closed = 0;
    heed_error err = {0};
    const heed_loop_options loop = loop_with(1);
    heed_task task = {.self = &closed, .loop = &loop, .close = count_close};
    assert_null(heed_trainer_open(in_room("m"), &task, false, NULL, NULL, &err));
    assert_string_equal(err.text, "a task needs params and loss");
    assert_int_equal(closed, 1);
    task.params = params_of;
    task.loss = line_loss;
    task.open = fail_to_open;
    err.status = HEED_OK;
    assert_null(heed_trainer_open(in_room("m"), &task, false, NULL, NULL, &err));
    assert_string_equal(err.text, "no luck");
    assert_int_equal(closed, 2);
    assert_null(heed_trainer_open(NULL, &task, false, NULL, NULL, NULL));
    assert_int_equal(closed, 3);
    assert_null(heed_trainer_open(in_room("m"), NULL, false, NULL, NULL, NULL));
    assert_false(is_there(in_room("m")));
    heed_train_result result;
    heed_train_forecast forecast;
    assert_int_equal(heed_trainer_run(NULL, &result, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_trainer_forecast(NULL, &forecast, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_loop_defaults(NULL, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_trainer_text(NULL).pairs, 0);
    assert_true(isnan(heed_train_measured(NULL, "loss")));
}

/* ---- two sets of parameters ---- */

/* The same training without the loop: freeze the other set, loss, backward pass, clip, step. */
static void train_by_hand(struct gan *g, const heed_loop_options *o)
{
    heed_error err = {0};
    heed_tape *t =
        heed_tape_new(&(heed_tape_options){.threads = 1, .seed = (uint64_t)o->seed}, &err);
    heed_optimizer *optimizer[2];
    const heed_optimizer_options adam = {
        .kind = HEED_ADAM, .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps};
    assert_int_equal(gan_open(g, NULL, true, &err), HEED_OK);
    for (int k = 0; k < 2; k++)
        optimizer[k] = heed_optimizer_new(g->params[k], &adam, NULL, &err);
    for (int64_t update = 1; update <= o->max_updates; update++)
        for (int k = 0; k < 2; k++) {
            const heed_rng_key key = {.seed = (uint64_t)o->seed,
                                      .step = (uint64_t)update,
                                      .set = (uint32_t)k,
                                      .node = HEED_TASK_NODE};
            const heed_pass pass = {update, k, 0, 1, heed_rng_stream(&key)};
            double sum;
            assert_int_equal(heed_params_freeze(g->params[1 - k], "", &err), HEED_OK);
            heed_tape_reset(t);
            heed_tape_step(t, (uint64_t)update, 0, 0);
            heed_tape_for_set(t, (uint32_t)k);
            assert_int_equal(heed_backward(t, gan_loss(g, t, &pass, &sum)), HEED_OK);
            assert_int_equal(heed_params_thaw(g->params[1 - k], "", &err), HEED_OK);
            heed_clip_norm(g->params[k], o->clip, 1);
            heed_optimizer_step(optimizer[k], o->rate, 1);
        }
    for (int k = 0; k < 2; k++)
        heed_optimizer_free(optimizer[k]);
    heed_tape_free(t);
}

/* Catches sets that are trained at the same time or in another order, a loss that moves the other
 * set's weights, and noise that both phases share: against the same by hand, bit for bit. */
static void test_two_sets_by_hand(void **state)
{
    (void)state;
    static struct gan loop_gan, hand_gan;
    heed_loop_options loop = gan_loop(60);
    const heed_task task = gan_task(&loop_gan, &loop);
    heed_error err = {0};
    run_task(in_room("m"), &task, false, NULL);
    train_by_hand(&hand_gan, &loop);
    static const char *const names[] = {"training/step-60/model.safetensors",
                                        "training/step-60/model-critic.safetensors"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(heed_params_save(hand_gan.params[k], in_room("by-hand"), &err), HEED_OK);
        size_t n, m;
        char *a = bytes_of(in_room("by-hand"), &n), path[128];
        snprintf(path, sizeof path, "%s/m/%s", room, names[k]);
        char *b = bytes_of(path, &m);
        if (n != m || memcmp(a, b, n) != 0)
            fail_msg("'%s' is not what it is by hand", names[k]);
        free(a);
        free(b);
    }
    gan_close(&hand_gan);
    assert_true(loop_gan.drawn[0] != loop_gan.drawn[1]);
}

/* Draws at every validation: what was drawn then is there at the next update. */
static void look_at_curves(void *context, const heed_train_progress *p)
{
    int *seen = context;
    if (p->event != HEED_TRAIN_UPDATE || p->update % 100 != 1 || p->update == 1)
        return;
    *seen += is_there(in_room("m/training/curves.svg"));
    unlink(in_room("m/training/curves.svg"));
}

/* Catches a game that does not come to the distribution it imitates, measures that are not kept,
 * losses of one set that are shown as the other's, an average or a best model of one set alone. */
static void test_two_sets_learn(void **state)
{
    (void)state;
    static struct gan g;
    heed_loop_options loop = gan_loop(1200);
    loop.valid_every = 100;
    loop.ema = 0.99;
    loop.average = 3;
    const heed_task task = gan_task(&g, &loop);
    int drawn = 0;
    const heed_train_hooks hooks = {.progress = look_at_curves, .context = &drawn};
    heed_train_result r = run_task(in_room("m"), &task, false, &hooks);
    assert_int_equal(drawn, 11);
    print_message("off by %.3f at update %d; losses %.3f and %.3f\n", r.last.best.value,
                  (int)r.last.best_update, r.last.loss[0], r.last.loss[1]);
    assert_true(r.last.best.value < 0.3);
    assert_string_equal(r.last.best.name, "distance");
    assert_true(heed_train_measured(&r.last, "deviation") > 0);
    assert_true(isnan(heed_train_measured(&r.last, "BLEU")));
    size_t n;
    char *log = bytes_of(in_room("m/training/log.jsonl"), &n);
    assert_non_null(strstr(log, "\"loss_generator\": "));
    assert_non_null(strstr(log, "\"norm_critic\": "));
    assert_non_null(strstr(log, "\"distance\": "));
    free(log);
    static const char *const files[] = {"model.safetensors",
                                        "model-critic.safetensors",
                                        "training/best.safetensors",
                                        "training/best-critic.safetensors",
                                        "training/latest/average-critic.safetensors",
                                        "training/latest/moments-critic.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/m/%s", room, files[i]);
        if (!is_there(path))
            fail_msg("'%s' is not there", files[i]);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_smallest_task),    TEST(test_resumed_task),   TEST(test_task_that_fails),
        TEST(test_two_sets_by_hand), TEST(test_two_sets_learn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
