/* Do the pieces learn together?  Three tasks with a fixed seed and a level that must be reached. */
#include <heed/heed.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct learner {
    heed_params *p;
    heed_tape *t;
    heed_optimizer *o;
};

static struct learner learner_new(void)
{
    struct learner l = {heed_params_new(NULL, NULL), heed_tape_new(NULL, NULL), NULL};
    assert_non_null(l.p);
    assert_non_null(l.t);
    return l;
}

static void learner_start(struct learner *l, uint64_t seed)
{
    heed_error err = {0};
    if (heed_params_finish(l->p, seed, &err))
        fail_msg("%s", err.text);
    heed_optimizer_options adam = {.kind = HEED_ADAM, .beta2 = 0.999, .eps = 1e-8};
    l->o = heed_optimizer_new(l->p, &adam, NULL, &err);
    assert_non_null(l->o);
}

static void learner_update(struct learner *l, heed_tensor *loss, double rate)
{
    if (heed_backward(l->t, loss))
        fail_msg("%s", heed_tape_error(l->t)->text);
    heed_clip_norm(l->p, 1, heed_tape_threads(l->t));
    heed_optimizer_step(l->o, rate, heed_tape_threads(l->t));
}

static void learner_free(struct learner *l)
{
    heed_optimizer_free(l->o);
    heed_tape_free(l->t);
    heed_params_free(l->p);
}

static int largest(const heed_real *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* Catches: layers, loss and optimiser that are each right but do not fit together. */
static void two_spirals(void **state)
{
    (void)state;
    enum { N = 200, H = 32 };
    heed_real xy[N][2];
    int32_t arm[N];
    for (int i = 0; i < N; i++) {
        double r = 0.1 + 0.9 * i / N, angle = 9.42 * r + 3.1416 * (i % 2);
        arm[i] = i % 2;
        xy[i][0] = (heed_real)(r * cos(angle));
        xy[i][1] = (heed_real)(r * sin(angle));
    }
    struct learner l = learner_new();
    heed_scope s = heed_params_scope(l.p);
    heed_linear_layer in, hidden, out;
    heed_linear_build(&in, heed_scope_enter(s, "in"), 2, H, HEED_TANH, true);
    heed_linear_build(&hidden, heed_scope_enter(s, "hidden"), H, H, HEED_TANH, true);
    heed_linear_build(&out, heed_scope_enter(s, "out"), H, 2, HEED_IDENTITY, true);
    learner_start(&l, 1);
    int right = 0;
    for (int step = 1; step <= 2500; step++) {
        heed_tape_reset(l.t);
        heed_tensor *h = heed_linear_apply(l.t, &in, heed_input(l.t, HEED_SHAPE(N, 2), xy[0]));
        heed_tensor *y = heed_linear_apply(l.t, &out, heed_linear_apply(l.t, &hidden, h));
        heed_tensor *loss = heed_scale(l.t, heed_cross_entropy(l.t, y, arm, 0), 1.0 / N, 0);
        learner_update(&l, loss, 0.01);
        right = 0;
        for (int i = 0; i < N; i++)
            right += largest(heed_tensor_data(y) + 2 * i, 2) == arm[i];
    }
    print_message("spirals: %d of %d right\n", right, N);
    assert_true(right >= N * 99 / 100);
    learner_free(&l);
}

enum { ADD_B = 32, ADD_T = 30, ADD_H = 48 };

/* Each sequence: T pairs (number in [0,1], mark); two marks, one in each half; the answer is the
 * sum of the marked. */
static void adding_batch(heed_real (*x)[2], heed_real *answer, uint64_t batch)
{
    heed_rng_key key = {.seed = 5, .step = batch};
    heed_rng rng = heed_rng_stream(&key);
    uint64_t draw = 0;
    for (int b = 0; b < ADD_B; b++) {
        int first = (int)heed_rng_below(&rng, draw++, ADD_T / 2);
        int second = ADD_T / 2 + (int)heed_rng_below(&rng, draw++, ADD_T / 2);
        for (int t = 0; t < ADD_T; t++) {
            x[b * ADD_T + t][0] = (heed_real)heed_rng_uniform(&rng, draw++);
            x[b * ADD_T + t][1] = t == first || t == second;
        }
        answer[b] = x[b * ADD_T + first][0] + x[b * ADD_T + second][0];
    }
}

/* Catches: an LSTM whose state does not carry over thirty steps, forwards or in its gradient. */
static void lstm_adds_two_marked_numbers(void **state)
{
    (void)state;
    struct learner l = learner_new();
    heed_scope s = heed_params_scope(l.p);
    heed_rnn_layer rnn;
    heed_linear_layer out;
    heed_rnn_options options = {.cell = HEED_CELL_LSTM, .layers = 1, .in = 2, .d = ADD_H};
    heed_rnn_build(&rnn, heed_scope_enter(s, "lstm"), &options);
    heed_linear_build(&out, heed_scope_enter(s, "out"), ADD_H, 1, HEED_IDENTITY, true);
    learner_start(&l, 2);
    heed_real x[ADD_B * ADD_T][2], answer[ADD_B];
    int64_t lengths[ADD_B];
    for (int b = 0; b < ADD_B; b++)
        lengths[b] = ADD_T;
    double error = 0;
    for (int step = 1; step <= 1800; step++) {
        adding_batch(x, answer, (uint64_t)step);
        heed_tape_reset(l.t);
        const heed_segments *seg = heed_segments_new(heed_tape_arena(l.t), ADD_B, lengths);
        heed_rnn_state end;
        heed_rnn_apply(l.t, &rnn, heed_input(l.t, HEED_SHAPE(ADD_B * ADD_T, 2), x[0]), seg, NULL,
                       &end);
        heed_tensor *y = heed_linear_apply(l.t, &out, end.at[0][0].h);
        heed_tensor *wrong = heed_sub(l.t, y, heed_input(l.t, HEED_SHAPE(ADD_B, 1), answer));
        heed_tensor *loss = heed_mean(l.t, heed_square(l.t, wrong), HEED_ALL);
        learner_update(&l, loss, step < 1200 ? 0.005 : 0.001);
        error = 0.95 * error + 0.05 * heed_tensor_data(loss)[0];
    }
    print_message("adding: mean squared error %.5f (guessing 1: 0.167)\n", error);
    assert_true(error < 0.005);
    learner_free(&l);
}

enum { LOOK_B = 32, LOOK_N = 16, LOOK_V = 16, LOOK_D = 32 };

/* Catches: attention that cannot choose by content: 16 pairs (key, value), one key asked for. */
static void attention_looks_up_a_key(void **state)
{
    (void)state;
    struct learner l = learner_new();
    heed_scope s = heed_params_scope(l.p);
    heed_embedding_layer keys, values;
    heed_mha_layer mha;
    heed_linear_layer out;
    heed_embedding_build(&keys, heed_scope_enter(s, "keys"), LOOK_V, LOOK_D, HEED_POSITIONS_NONE, 0,
                         sqrt(LOOK_D), 0);
    heed_embedding_build(&values, heed_scope_enter(s, "values"), LOOK_V, LOOK_D,
                         HEED_POSITIONS_NONE, 0, sqrt(LOOK_D), 0);
    heed_mha_options options = {.d = LOOK_D, .memory_d = 2 * LOOK_D, .heads = 2, .cross = true};
    heed_mha_build(&mha, heed_scope_enter(s, "look"), &options);
    heed_linear_build(&out, heed_scope_enter(s, "out"), LOOK_D, LOOK_V, HEED_IDENTITY, true);
    learner_start(&l, 3);
    int64_t one[LOOK_B], many[LOOK_B];
    for (int b = 0; b < LOOK_B; b++) {
        one[b] = 1;
        many[b] = LOOK_N;
    }
    double right = 0;
    for (int step = 1; step <= 1200; step++) {
        int32_t key[LOOK_B * LOOK_N], value[LOOK_B * LOOK_N], asked[LOOK_B], answer[LOOK_B];
        heed_rng_key name = {.seed = 9, .step = (uint64_t)step};
        heed_rng rng = heed_rng_stream(&name);
        uint64_t draw = 0;
        for (int b = 0; b < LOOK_B; b++) {
            for (int i = 0; i < LOOK_N; i++) {
                /* A random order of all keys: swap each with an earlier one. */
                int j = (int)heed_rng_below(&rng, draw++, i + 1);
                key[b * LOOK_N + i] = key[b * LOOK_N + j];
                key[b * LOOK_N + j] = i;
                value[b * LOOK_N + i] = (int32_t)heed_rng_below(&rng, draw++, LOOK_V);
            }
            int i = (int)heed_rng_below(&rng, draw++, LOOK_N);
            asked[b] = key[b * LOOK_N + i];
            answer[b] = value[b * LOOK_N + i];
        }
        heed_tape_reset(l.t);
        const heed_segments *q = heed_segments_new(heed_tape_arena(l.t), LOOK_B, one);
        const heed_segments *kv = heed_segments_new(heed_tape_arena(l.t), LOOK_B, many);
        heed_tensor *pair[2] = {heed_embedding_apply(l.t, &keys, key, kv),
                                heed_embedding_apply(l.t, &values, value, kv)};
        heed_tensor *memory = heed_concat_cols(l.t, pair, 2);
        heed_tensor *x = heed_embedding_apply(l.t, &keys, asked, q);
        heed_tensor *y =
            heed_linear_apply(l.t, &out, heed_mha_apply(l.t, &mha, x, memory, q, kv, NULL));
        learner_update(&l, heed_scale(l.t, heed_cross_entropy(l.t, y, answer, 0), 1.0 / LOOK_B, 0),
                       0.003);
        int hits = 0;
        for (int b = 0; b < LOOK_B; b++)
            hits += largest(heed_tensor_data(y) + b * LOOK_V, LOOK_V) == answer[b];
        right = 0.95 * right + 0.05 * hits / LOOK_B;
    }
    print_message("look-up: %.1f %% right (guessing: 6.3)\n", 100 * right);
    assert_true(right > 0.99);
    learner_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_spirals),
        cmocka_unit_test(lstm_adds_two_marked_numbers),
        cmocka_unit_test(attention_looks_up_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
