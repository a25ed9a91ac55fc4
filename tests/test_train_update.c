/* test_train_update.c: single updates of a training against arithmetic in double: how long a step
 * is, what several batches of one update add up to, which rate update N has, what the optimiser
 * gets from the options.  With plain SGD a step is rate times gradient: the saves tell it all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"
#include "train_oracle.h"

/* ---- clipping ---- */

/* Catches --clip that is ignored, that clips where it should not, or that turns the step. */
static void test_clip(void **state)
{
    (void)state;
    struct seen s;
    train_seen("free", MORE(PLAIN, "--max-updates", "1"), &s);
    const double norm = s.update[0].norm[0];
    assert_true(norm > 0.1);
    char half[32], twice[32];
    snprintf(half, sizeof half, "%.9g", norm / 2);
    snprintf(twice, sizeof twice, "%.9g", norm * 2);
    train_seen("half", MORE(PLAIN, "--max-updates", "1", "--clip", half), &s);
    assert_true(within(s.update[0].norm[0], norm, 1e-9)); /* what is told is the norm before */
    train_seen("twice", MORE(PLAIN, "--max-updates", "1", "--clip", twice), NULL);
    struct weights a = first_step("free"), b = first_step("half"), c = first_step("twice");
    assert_true(within(length_of(a), norm, 1e-4));
    assert_true(within(length_of(b), norm / 2, 1e-4));
    assert_true(distance(a, c) == 0);
    for (int64_t i = 0; i < a.n; i++)
        b.x[i] *= 2;
    assert_true(distance(a, b) < 1e-4 * norm);
    free(a.x);
    free(b.x);
    free(c.x);
}

/* ---- several batches of an update ---- */

/* One long pair and some short ones: batches of unequal size. */
static void write_unequal(void)
{
    FILE *s = fopen(in_room("train.s"), "w"), *t = fopen(in_room("train.t"), "w");
    assert_true(s && t);
    for (int i = 0; i < 24; i++)
        fprintf(s, "w%d%c", i * 7 % 10, i < 23 ? ' ' : '\n');
    for (int i = 0; i < 29; i++)
        fprintf(t, "w%d%c", i * 3 % 10, i < 28 ? ' ' : '\n');
    for (int i = 0; i < 4; i++) {
        fprintf(s, "w%d w%d w%d\n", i, i + 1, 9 - i);
        fprintf(t, "w%d w%d\n", 9 - i, i);
    }
    assert_int_equal(fclose(s) | fclose(t), 0);
}

/* Catches gradients of an update that are divided by the tokens of one of its batches, added up
 * twice, or those of one batch alone: two batches are the same as one of all their pairs. */
static void test_accumulation(void **state)
{
    (void)state;
    struct seen one, two, first;
    write_unequal(); /* 30 target tokens, and 4 times 3 */
    train_seen("one", MORE(PLAIN, "--max-updates", "1", "--batch-tokens", "64"), &one);
    train_seen("two",
               MORE(PLAIN, "--max-updates", "1", "--batch-tokens", "30", "--accumulate", "2"),
               &two);
    train_seen("first", MORE(PLAIN, "--max-updates", "1", "--batch-tokens", "30"), &first);
    struct weights a = first_step("one"), b = first_step("two"), c = first_step("first");
    assert_true(within(two.update[0].norm[0], one.update[0].norm[0], 1e-5));
    assert_true(within(two.update[0].loss[0], one.update[0].loss[0], 1e-5));
    assert_true(distance(a, b) < 1e-5 * length_of(a));
    assert_true(distance(a, c) > 0.1 * length_of(a)); /* or the above proves nothing */
    free(a.x);
    free(b.x);
    free(c.x);
}

static void write_equal(int pairs)
{
    FILE *s = fopen(in_room("train.s"), "w"), *t = fopen(in_room("train.t"), "w");
    assert_true(s && t);
    for (int i = 0; i < pairs; i++) {
        fputs("w1 w2 w3 w4 w5 w6 w7\n", s);
        fputs("w7 w6 w5 w4 w3 w2 w1\n", t);
    }
    assert_int_equal(fclose(s) | fclose(t), 0);
}

/* Catches dropout that drops the same in every batch of an update: four equal batches would then
 * have the gradient of one. */
static void test_dropout_of_batches(void **state)
{
    (void)state;
    static const char *const kinds[][4] = {
        {"--dropout", "0"}, {"--dropout", "0.4"}, {"--attention-dropout", "0.4", "--dropout", "0"}};
    for (int i = 0; i < 3; i++) {
        const char *const *k = kinds[i];
        write_equal(4);
        train_seen("four",
                   MORE(PLAIN, "--max-updates", "1", "--batch-tokens", "8", "--accumulate", "4",
                        k[0], k[1], k[2], k[3]),
                   NULL);
        write_equal(1);
        train_seen("one",
                   MORE(PLAIN, "--max-updates", "1", "--batch-tokens", "8", k[0], k[1], k[2], k[3]),
                   NULL);
        struct weights a = first_step("four"), b = first_step("one");
        const double apart = distance(a, b) / length_of(b);
        print_message("%s %s: %.3g apart\n", k[0], k[1], apart);
        assert_true(i == 0 ? apart < 1e-5 : apart > 0.02);
        free(a.x);
        free(b.x);
        remove_tree(in_room("four"));
        remove_tree(in_room("one"));
    }
}

/* ---- the rate ---- */

/* As their papers have them, for a peak of 0.5 (Noam: a factor), 4 updates of warm-up, 10 in all
 * and a floor of 0.1; d is 16. */
static double noam(double n)
{
    return 0.5 * pow(16, -0.5) * fmin(pow(n, -0.5), n * pow(4, -1.5));
}

static double inverse_sqrt(double n)
{
    return n <= 4 ? 0.5 * n / 4 : 0.5 * sqrt(4 / n);
}

static double constant(double n)
{
    return n <= 4 ? 0.5 * n / 4 : 0.5;
}

static double cosine(double n)
{
    return n <= 4 ? 0.5 * n / 4 : 0.1 + 0.4 * (1 + cos(acos(-1) * (n - 4) / 6)) / 2;
}

static double linear(double n)
{
    return n <= 4 ? 0.5 * n / 4 : 0.5 - 0.4 * (n - 4) / 6;
}

static bool stop_at_four(void *context)
{
    return ((const struct seen *)context)->updates >= 4;
}

/* Catches an update with the rate of its neighbour, a schedule that another name chooses, and a
 * resumed run that counts from its own start: where the clip always bites, a step is as long as
 * rate times clip. */
static void test_rate(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double (*rate)(double n);
    } schedules[] = {{"noam", noam},
                     {"inverse-sqrt", inverse_sqrt},
                     {"constant", constant},
                     {"cosine", cosine},
                     {"linear", linear}};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        const char *name = schedules[i].name;
        const bool floor = i >= 3;
        const char *const *words =
            MORE(PLAIN, "--schedule", name, "--rate", "0.5", "--warmup", "4", "--max-updates", "10",
                 "--clip", "0.05", floor ? "--rate-floor" : "--seed", floor ? "0.1" : "1");
        struct seen s = {0};
        heed_error err = {0};
        heed_train_hooks hooks = {.progress = note_progress, .stop = stop_at_four, .context = &s};
        assert_int_equal(train_in(in_room(name), words, false, &hooks, NULL, &err), HEED_OK);
        hooks.stop = NULL;
        assert_int_equal(train_in(in_room(name), words, true, &hooks, NULL, &err), HEED_OK);
        assert_int_equal(s.updates, 10);
        struct weights before = saved_weights(name, 0);
        for (int n = 1; n <= 10; n++) {
            const double rate = schedules[i].rate(n);
            struct weights after = saved_weights(name, n);
            assert_true(s.update[n - 1].norm[0] > 0.05);
            assert_true(within(s.update[n - 1].rate, rate, 1e-9));
            assert_true(within(distance(before, after), 0.05 * rate, 2e-3));
            free(before.x);
            before = after;
        }
        free(before.x);
    }
}

/* ---- optimisers ---- */

enum { MOST_NUMBERS = 20000 };

/* An optimiser in double that runs beside the trainer's. */
struct beside {
    bool adam;
    double beta1, beta2, eps, decay, momentum, rate;
    int64_t updates, numbers;
    double weight[MOST_NUMBERS], mean[MOST_NUMBERS], square[MOST_NUMBERS];
    double furthest; /* of the trainer's weights from these */
};

/* Kingma and Ba, algorithm 1, with the decay of Loshchilov and Hutter, algorithm 2. */
static double adam(struct beside *b, int64_t i, double g)
{
    const double t = (double)b->updates;
    b->mean[i] = b->beta1 * b->mean[i] + (1 - b->beta1) * g;
    b->square[i] = b->beta2 * b->square[i] + (1 - b->beta2) * g * g;
    const double m = b->mean[i] / (1 - pow(b->beta1, t));
    const double v = b->square[i] / (1 - pow(b->beta2, t));
    return b->rate * (m / (sqrt(v) + b->eps) + b->decay * b->weight[i]);
}

static double sgd(struct beside *b, int64_t i, double g)
{
    b->mean[i] = b->momentum * b->mean[i] + g;
    return b->rate * b->mean[i];
}

/* The weights are those before the update; the first ones are where both begin. */
static void step_beside(void *context, heed_params *p, int64_t update)
{
    struct beside *b = context;
    int64_t n = 0;
    assert_int_equal(update, ++b->updates);
    for (int i = 0; i < heed_params_count(p); i++) {
        const heed_tensor *x = heed_params_entry(p, i).tensor;
        for (int64_t k = 0; k < heed_tensor_count(x); k++, n++) {
            const double w = (double)heed_tensor_data(x)[k], g = (double)heed_tensor_grad(x)[k];
            assert_true(n < MOST_NUMBERS);
            b->weight[n] = update == 1 ? w : b->weight[n];
            b->furthest = fmax(b->furthest, fabs(w - b->weight[n]));
            b->weight[n] -= b->adam ? adam(b, n, g) : sgd(b, n, g);
        }
    }
    b->numbers = n;
}

/* Catches an option of the optimiser that does not reach it, or reaches another. */
static void test_optimizers(void **state)
{
    (void)state;
    static const struct {
        const char *words[9];
        struct beside b;
    } cases[] = {
        {{"--optimizer", "adam"}, {.adam = true, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9}},
        {{"--optimizer", "adam", "--beta1", "0.5", "--beta2", "0.7", "--eps", "0.01"},
         {.adam = true, .beta1 = 0.5, .beta2 = 0.7, .eps = 0.01}},
        {{"--optimizer", "adam", "--beta1", "0", "--eps", "0.001"},
         {.adam = true, .beta1 = 0, .beta2 = 0.98, .eps = 0.001}},
        {{"--optimizer", "adamw", "--weight-decay", "0.3", "--eps", "0.001"},
         {.adam = true, .beta1 = 0.9, .beta2 = 0.98, .eps = 0.001, .decay = 0.3}},
        {{"--optimizer", "sgd", "--momentum", "0.8"}, {.momentum = 0.8}},
    };
    static struct beside b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *c = cases[i].words;
        heed_train_hooks hooks = {.gradients = step_beside, .context = &b};
        heed_error err = {0};
        b = cases[i].b;
        b.rate = 0.01;
        assert_int_equal(
            train_in(in_room("m"),
                     MORE("--schedule", "constant", "--warmup", "0", "--rate", "0.01",
                          "--max-updates", "6", c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]),
                     false, &hooks, NULL, &err),
            HEED_OK);
        assert_int_equal(b.updates, 6);
        if (b.furthest > 1e-5) /* five steps of up to 0.05, each rounded to a float of up to 4 */
            fail_msg("%s %s %s: %g off", c[1], c[2] ? c[2] : "", c[3] ? c[3] : "", b.furthest);
        remove_tree(in_room("m"));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_clip), TEST(test_accumulation), TEST(test_dropout_of_batches),
        TEST(test_rate), TEST(test_optimizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
