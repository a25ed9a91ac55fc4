/* Hard attention: what is drawn, what is taken at test time, and that the gradient of chance is the
 * gradient of the expectation. */
#include <heed/attention.h>
#include <heed/task.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Two queries, one after the other, look at four places; the first word depends on the first place,
 * the second on both. */
enum { PLACES = 4, STEPS = 2, D = 3, V = 5, DRAWS = 20000 };
static const int32_t words[STEPS] = {1, 3};

struct task {
    heed_params *p;
    heed_tape *t;
    heed_attend_layer l;
    heed_reinforce_layer chance;
    heed_tensor *q, *k, *values, *out;
};

static struct task task_new(double momentum)
{
    struct task x = {.p = heed_params_new(NULL, NULL),
                     .t = heed_tape_new(&(heed_tape_options){.seed = 5}, NULL)};
    heed_scope s = heed_params_scope(x.p);
    const heed_init normal = {HEED_INIT_NORMAL, 1};
    x.q = heed_param(s, "q", HEED_SHAPE(STEPS, D), normal);
    x.k = heed_param(s, "k", HEED_SHAPE(PLACES, D), normal);
    x.values = heed_param(s, "values", HEED_SHAPE(PLACES, D), normal);
    x.out = heed_param(s, "out", HEED_SHAPE(D, V), normal);
    heed_attend_build(&x.l, heed_scope_enter(s, "score"),
                      &(heed_attend_options){.normaliser = HEED_ONE(HEED_NORMALISE_HARD),
                                             .score = HEED_SCORE_ADDITIVE,
                                             .query_d = D,
                                             .key_d = D});
    heed_reinforce_build(&x.chance, s, momentum);
    heed_error err = {0};
    if (heed_params_finish(x.p, 3, &err))
        fail_msg("%s", err.text);
    return x;
}

static void task_free(struct task *x)
{
    heed_tape_free(x->t);
    heed_params_free(x->p);
}

static heed_memory memory(struct task *x, heed_tensor *values)
{
    const int64_t places = PLACES;
    return heed_attend_memory(x->t, &x->l, x->k, values,
                              heed_segments_new(heed_tape_arena(x->t), 1, &places));
}

static const heed_segments *steps(struct task *x)
{
    const int64_t n = STEPS;
    return heed_segments_new(heed_tape_arena(x->t), 1, &n);
}

/* The words' log-probabilities (STEPS,V) after what the two steps saw, (STEPS,D). */
static heed_tensor *predict(struct task *x, heed_tensor *seen)
{
    heed_tensor *both = heed_add(x->t, seen, heed_segment_shift(x->t, seen, steps(x), 1, NULL));
    return heed_log_softmax(x->t, heed_matmul(x->t, both, x->out, HEED_NN));
}

/* - log p of the two words, and each alone. */
static heed_tensor *cost(struct task *x, heed_tensor *log_p, heed_real rewards[STEPS])
{
    heed_tensor *sum = NULL;
    for (int i = 0; i < STEPS; i++) {
        heed_tensor *one =
            heed_slice_cols(x->t, heed_slice_rows(x->t, log_p, i, i + 1), words[i], words[i] + 1);
        rewards[i] = heed_tensor_data(one)[0];
        sum = sum ? heed_add(x->t, sum, one) : one;
    }
    return heed_scale(x->t, sum, -1, 0);
}

static int64_t numbers(const struct task *x)
{
    return heed_params_size(x->p);
}

/* The gradient of sum over both choices of p(s1) p(s2) cost(s1, s2). */
static void enumerate(struct task *x, double *gradient)
{
    heed_tape_reset(x->t);
    heed_params_zero_grads(x->p);
    x->l.options.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_SOFT);
    heed_memory m = memory(x, NULL);
    heed_tensor *p = heed_attend(x->t, &x->l, x->q, &m, steps(x), NULL), *total = NULL;
    x->l.options.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_HARD);
    for (int a = 0; a < PLACES; a++)
        for (int b = 0; b < PLACES; b++) {
            heed_real rewards[STEPS];
            heed_tensor *seen = heed_gather_rows(
                x->t, x->values,
                memcpy(heed_arena_allocate(heed_tape_arena(x->t), 2 * sizeof(int32_t)),
                       (int32_t[]){a, b}, 2 * sizeof(int32_t)),
                STEPS);
            heed_tensor *both = heed_mul(x->t, heed_slice_cols(x->t, p, a, a + 1),
                                         heed_slice_cols(x->t, p, PLACES + b, PLACES + b + 1));
            heed_tensor *part = heed_mul(x->t, cost(x, predict(x, seen), rewards),
                                         heed_reshape(x->t, both, HEED_SHAPE(1, 1)));
            total = total ? heed_add(x->t, total, part) : part;
        }
    if (heed_backward(x->t, total))
        fail_msg("%s", heed_tape_error(x->t)->text);
    for (int64_t i = 0; i < numbers(x); i++)
        gradient[i] = (double)heed_params_grads(x->p)[i];
}

/* One draw: its loss, with the term of chance. */
static void draw(struct task *x, uint64_t step)
{
    heed_real rewards[STEPS];
    heed_tensor *log_p;
    heed_tape_reset(x->t);
    heed_tape_step(x->t, step, 0, 0);
    heed_params_zero_grads(x->p);
    heed_memory m = memory(x, x->values);
    heed_tensor *seen =
        heed_attend(x->t, &x->l, x->q, &m, steps(x), &(heed_attend_extra){.chosen_log_p = &log_p});
    heed_tensor *loss = cost(x, predict(x, seen), rewards);
    heed_tensor *chance = heed_reinforce(x->t, &x->chance, log_p, rewards, steps(x), 1);
    if (heed_backward(x->t, heed_add(x->t, loss, heed_reshape(x->t, chance, HEED_SHAPE(1, 1)))))
        fail_msg("%s", heed_tape_error(x->t)->text);
    heed_params_fold_state(x->p);
}

/* Mean and variance of the gradient over many draws. */
static void sample(struct task *x, double *mean, double *variance)
{
    const int64_t n = numbers(x);
    memset(mean, 0, (size_t)n * sizeof *mean);
    memset(variance, 0, (size_t)n * sizeof *variance);
    for (int k = 0; k < DRAWS; k++) {
        draw(x, (uint64_t)k);
        for (int64_t i = 0; i < n; i++) {
            const double g = (double)heed_params_grads(x->p)[i];
            mean[i] += g / DRAWS;
            variance[i] += g * g / DRAWS;
        }
    }
    for (int64_t i = 0; i < n; i++)
        variance[i] -= mean[i] * mean[i];
}

/* Catches: a wrong sign, a straight-through estimator, a choice that is not judged by what follows
 * it, a baseline that depends on the draw it judges. */
static void chance_has_the_gradient_of_the_expectation(void **state)
{
    (void)state;
    double exact[512], mean[512], variance[512], spread[2] = {0};
    for (int baseline = 0; baseline < 2; baseline++) {
        struct task x = task_new(baseline ? 0.9 : 1); /* 1: it never moves from 0 */
        assert_in_range(numbers(&x), 1, 512);
        enumerate(&x, exact);
        sample(&x, mean, variance);
        double largest = 0;
        for (int64_t i = 0; i < numbers(&x); i++) {
            largest = fmax(largest, fabs(exact[i]));
            spread[baseline] += variance[i];
            /* Beside chance there is rounding, of numbers of size one. */
            const double allowed = 4 * sqrt(variance[i] / DRAWS) + 1e-6;
            if (!(fabs(mean[i] - exact[i]) <= allowed))
                fail_msg("number %d: %g on average, expected %g +- %g", (int)i, mean[i], exact[i],
                         allowed);
        }
        assert_true(largest > 0.1);
        task_free(&x);
    }
    print_message("variance %.3g, with a baseline %.3g\n", spread[0], spread[1]);
    assert_true(spread[1] < 0.7 * spread[0]);
}

/* Catches: draws that do not follow the weights, and chance or expectation at test time. */
static void it_draws_in_training_and_takes_the_likeliest_else(void **state)
{
    (void)state;
    struct task x = task_new(0.9);
    int drawn[PLACES] = {0};
    heed_tensor *weights, *soft;
    const int32_t *chosen;
    for (int k = 0; k < 4000; k++) {
        heed_tape_reset(x.t);
        heed_tape_step(x.t, (uint64_t)k, 0, 0);
        heed_memory m = memory(&x, x.values);
        assert_non_null(heed_attend(x.t, &x.l, x.q, &m, steps(&x),
                                    &(heed_attend_extra){.weights = &weights, .chosen = &chosen}));
        for (int i = 0; i < PLACES; i++)
            assert_true(heed_tensor_data(weights)[i] == (i == chosen[0]));
        drawn[chosen[0]]++;
    }
    heed_tape_reset(x.t);
    x.l.options.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_SOFT);
    heed_memory m = memory(&x, x.values);
    heed_attend(x.t, &x.l, x.q, &m, steps(&x), &(heed_attend_extra){.weights = &soft});
    int best = 0;
    for (int i = 0; i < PLACES; i++) {
        const double p = (double)heed_tensor_data(soft)[i];
        assert_true(fabs(drawn[i] - 4000 * p) <= 4 * sqrt(4000 * p * (1 - p)));
        best = heed_tensor_data(soft)[i] > heed_tensor_data(soft)[best] ? i : best;
    }
    x.l.options.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_HARD);
    heed_tape_set_training(x.t, false);
    heed_tensor *y = heed_attend(x.t, &x.l, x.q, &m, steps(&x),
                                 &(heed_attend_extra){.weights = &weights, .chosen = &chosen});
    assert_int_equal(chosen[0], best);
    assert_memory_equal(heed_tensor_data(y), heed_tensor_data(x.values) + best * D,
                        D * sizeof(heed_real));
    task_free(&x);
}

/* Catches: a baseline that forgets, moves when nothing is learned or before an update ends, starts
 * far below, or weighs the passes of an update by anything but their rewards. */
static void the_baseline_is_a_moving_mean(void **state)
{
    (void)state;
    struct task x = task_new(0.75);
    heed_tensor *log_p = heed_input(x.t, HEED_SHAPE(STEPS, 1), (heed_real[]){-1, -3});
    const heed_real first[STEPS] = {2, 4}, second[STEPS] = {7, 7};
    /* Nothing is expected yet: - (6 * -1 + 4 * -3). */
    heed_tensor *loss = heed_reinforce(x.t, &x.chance, log_p, first, steps(&x), 1);
    assert_true(fabs((double)heed_tensor_data(loss)[0] - 18) < 1e-5);
    heed_params_fold_state(x.p);
    /* Now 3 a step: rewards left are 8 and 4. */
    loss = heed_reinforce(x.t, &x.chance, log_p, second, steps(&x), 0.5);
    assert_true(fabs((double)heed_tensor_data(loss)[0] - 0.5 * (8 + 12)) < 1e-5);
    const heed_real *b = heed_tensor_data(x.chance.baseline);
    assert_true(fabs((double)(b[0] / b[1]) - 3) < 1e-6);
    /* One reward of 1 more in the same update. */
    const int64_t one = 1;
    heed_tensor *single = heed_input(x.t, HEED_SHAPE(1, 1), NULL);
    heed_reinforce(x.t, &x.chance, single, (heed_real[]){1},
                   heed_segments_new(heed_tape_arena(x.t), 1, &one), 1);
    heed_params_fold_state(x.p);
    const double expected = (0.75 * 0.25 * 3 + 0.25 * 5) / (0.75 * 0.25 + 0.25);
    assert_true(fabs((double)(b[0] / b[1]) - expected) < 1e-5);
    heed_tape_set_training(x.t, false);
    heed_reinforce(x.t, &x.chance, log_p, first, steps(&x), 1);
    heed_params_fold_state(x.p);
    assert_true(fabs((double)(b[0] / b[1]) - expected) < 1e-5);
    assert_null(heed_reinforce(x.t, &x.chance, x.q, first, NULL, 1));
    assert_string_equal(heed_tape_error(x.t)->text, "reinforce: log_p has 2 rows, expected 0");
    task_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chance_has_the_gradient_of_the_expectation),
        cmocka_unit_test(it_draws_in_training_and_takes_the_likeliest_else),
        cmocka_unit_test(the_baseline_is_a_moving_mean),
    };
    return cmocka_run_group_tests_name("hard attention", tests, NULL, NULL);
}
