/* test_snail.c: SNAIL of `heed lab snail`: its gradient, what a question may see, and the
 * episodes. */
#include "labs/snail_tasks.h"
#include "layer_check.h"

#ifdef HEED_DOUBLE
#define CLOSE 1e-11
#else
#define CLOSE 1e-4
#endif

static snail_sizes sizes_of(int64_t ways, int64_t shots, int64_t side)
{
    return (snail_sizes){.side = side,
                         .width = SNAIL_PROTOTYPE,
                         .filters = 4,
                         .ways = ways,
                         .shots = shots,
                         .keys = {4, 5, 6},
                         .values = {3, 4, 5},
                         .dense = 3,
                         .dilation = 1,
                         .attention = true,
                         .convolution = true};
}

struct fixture {
    snail_sizes sizes;
    snail_source source;
    heed_params *params;
    heed_arena *arena;
    heed_tape *tape;
    snail net;
    snail_batch batch;
};

enum { EPISODES = 3 };

static struct fixture fixture_new(snail_sizes sizes, snail_task task)
{
    struct fixture f = {.sizes = sizes,
                        .params = heed_params_new(NULL, NULL),
                        .arena = heed_arena_new(NULL, NULL),
                        .tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL)};
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 6});
    assert_int_equal(snail_source_open(&f.source, task, 0.5, NULL, f.arena, NULL), HEED_OK);
    snail_build(&f.net, heed_params_scope(f.params), &sizes);
    assert_int_equal(heed_params_finish(f.params, 3, NULL), HEED_OK);
    assert_true(snail_draw(&f.source, &sizes, SNAIL_TRAIN, EPISODES, &rng, f.arena, &f.batch));
    return f;
}

static void fixture_free(struct fixture *f)
{
    snail_source_close(&f->source);
    heed_tape_free(f->tape);
    heed_params_free(f->params);
    heed_arena_free(f->arena);
}

static int run_net(heed_tape *t, void *context, heed_tensor **out)
{
    struct fixture *f = context;
    out[0] = snail_logits(t, &f->net, &f->batch, NULL);
    return 1;
}

/* Catches a wrong derivative anywhere between the examples and the logits. */
static void gradient(void **state)
{
    (void)state;
    struct fixture f = fixture_new(sizes_of(3, 2, 0), SNAIL_PROTOTYPES);
    layer_check(f.params, run_net, &f);
    fixture_free(&f);
}

static void logits_of(struct fixture *f, const snail_batch *b, heed_tensor **looked, heed_real *out)
{
    heed_tape_reset(f->tape);
    heed_tape_set_recording(f->tape, false);
    heed_tape_set_training(f->tape, false);
    heed_tensor *y = snail_logits(f->tape, &f->net, b, looked);
    assert_string_equal(heed_tape_error(f->tape)->text, "");
    memcpy(out, heed_tensor_data(y), (size_t)heed_tensor_count(y) * sizeof *out);
}

static bool same(const heed_real *a, const heed_real *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fabs((double)a[i] - (double)b[i]) > CLOSE)
            return false;
    return true;
}

/* Catches the question's label among what is shown, an episode that sees its neighbours, an example
 * that is not seen at all. */
static void what_a_question_sees(void **state)
{
    (void)state;
    for (int blocks = 1; blocks < 4; blocks++) {
        snail_sizes z = sizes_of(5, 1, 0);
        z.attention = blocks & 1;
        z.convolution = blocks & 2;
        struct fixture f = fixture_new(z, SNAIL_PROTOTYPES);
        const int64_t length = 6, n = EPISODES * 5;
        heed_real all[EPISODES * 5], after[EPISODES * 5];
        logits_of(&f, &f.batch, NULL, all);
        f.batch.label[length - 1] = (f.batch.label[length - 1] + 1) % 5;
        logits_of(&f, &f.batch, NULL, after);
        assert_true(same(all, after, n));
        for (int i = 0; i < length; i++) {
            heed_real *x = &f.batch.shown[(length + i) * SNAIL_PROTOTYPE];
            x[3] += 1;
            logits_of(&f, &f.batch, NULL, after);
            x[3] -= 1;
            assert_true(same(all, after, 5) && same(all + 10, after + 10, 5));
            assert_false(same(all + 5, after + 5, 5));
        }
        fixture_free(&f);
    }
}

/* Catches a softmax over the queries, and one that sees the future. */
static void attention_is_causal(void **state)
{
    (void)state;
    struct fixture f = fixture_new(sizes_of(5, 1, 0), SNAIL_PROTOTYPES);
    heed_tensor *looked = NULL;
    heed_real all[EPISODES * 5];
    logits_of(&f, &f.batch, &looked, all);
    for (int64_t r = 0; r < EPISODES * 6; r++) {
        double sum = 0;
        for (int64_t i = 0; i < 6; i++) {
            const double p = (double)heed_tensor_data(looked)[r * 6 + i];
            assert_true(i <= r % 6 ? p > 0 : p == 0);
            sum += p;
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    fixture_free(&f);
}

/* Catches a TC block that is too short to reach the first example. */
static void reach(void **state)
{
    (void)state;
    for (int64_t ways = 2; ways < 30; ways++)
        for (int64_t dilation = 1; dilation < 3; dilation++) {
            snail_sizes z = sizes_of(ways, 3, 0);
            z.dilation = dilation;
            assert_true(snail_reach(&z) >= ways * 3 + 1);
        }
}

/* Catches classes that come twice, examples that are not of their class, a question whose class was
 * not shown, classes of the training in a test. */
static void episodes(void **state)
{
    enum { WAYS = 4, SHOTS = 3, LENGTH = WAYS * SHOTS + 1 };
    (void)state;
    snail_sizes z = sizes_of(WAYS, SHOTS, 0);
    struct fixture f = fixture_new(z, SNAIL_PROTOTYPES);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 9});
    snail_batch b, other;
    int first[WAYS] = {0};
    f.source.noise = 0.01;
    assert_true(snail_draw(&f.source, &z, SNAIL_TRAIN, 200, &rng, f.arena, &b));
    assert_true(snail_draw(&f.source, &z, SNAIL_TEST, 200, &rng, f.arena, &other));
    for (int e = 0; e < 200; e++) {
        int count[WAYS] = {0};
        const int32_t *label = b.label + e * LENGTH;
        for (int i = 0; i + 1 < LENGTH; i++) {
            assert_in_range(label[i], 0, WAYS - 1);
            count[label[i]]++;
        }
        for (int k = 0; k < WAYS; k++)
            assert_int_equal(count[k], SHOTS);
        first[label[0]]++;
    }
    for (int k = 0; k < WAYS; k++)
        assert_in_range(first[k], 25, 80);      /* of 200, 50 each by chance */
    assert_int_equal(snail_bayes(&z, &b), 200); /* hardly any noise */
    assert_true(b.shown[0] != other.shown[0]);
    fixture_free(&f);
}

/* Catches pictures that do not go through the convolutions as they should: other pictures, other
 * logits, and of their own episode alone. */
static void pictures(void **state)
{
    (void)state;
    struct fixture f = fixture_new(sizes_of(3, 1, 28), SNAIL_CHARACTERS);
    heed_real all[EPISODES * 3], after[EPISODES * 3];
    logits_of(&f, &f.batch, NULL, all);
    for (int i = 0; i < 784; i++)
        f.batch.shown[4 * 784 + i] = 1 - f.batch.shown[4 * 784 + i];
    logits_of(&f, &f.batch, NULL, after);
    assert_true(same(all, after, 3) && same(all + 6, after + 6, 3));
    assert_false(same(all + 3, after + 3, 3));
    fixture_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient),
        cmocka_unit_test(what_a_question_sees),
        cmocka_unit_test(attention_is_causal),
        cmocka_unit_test(reach),
        cmocka_unit_test(episodes),
        cmocka_unit_test(pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
