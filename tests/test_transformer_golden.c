/* Five training steps against PyTorch: loss and every gradient at the first, every weight after the
 * last.  Post-norm and pre-norm, tied embeddings, label smoothing, Adam, Noam, ragged batches. */
#include <heed/model.h>
#include <heed/task.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "transformer_golden.h"

#ifdef HEED_DOUBLE
#define ALLOWED 1e-9
#else
#define ALLOWED 1e-4
#endif

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))

struct golden {
    const double *loss, *gradient, *weights;
    int64_t count;
};

static heed_model *golden_model(bool pre_norm)
{
    heed_error err = {0};
    heed_model *m =
        heed_model_new(&(heed_model_config){.encoder_layers = GOLDEN_LAYERS,
                                            .decoder_layers = GOLDEN_LAYERS,
                                            .d = GOLDEN_D,
                                            .tying = HEED_TIE_ALL,
                                            .transformer = {.ff = GOLDEN_FF,
                                                            .heads = GOLDEN_HEADS,
                                                            .activation = HEED_RELU,
                                                            .ff_bias = true,
                                                            .norm_eps = 1e-6,
                                                            .embedding_scale = true,
                                                            .pre_norm = pre_norm,
                                                            .residual = true,
                                                            .scale_scores = true,
                                                            .positions = HEED_POSITIONS_SINUSOID},
                                            .longest = 8,
                                            .label_smoothing = 0.1,
                                            .source_vocabulary = GOLDEN_V,
                                            .target_vocabulary = GOLDEN_V},
                       1, NULL, &err);
    if (!m)
        fail_msg("%s", err.text);
    /* The formula of transformer_golden.py: waves around 0, around 1 for gains. */
    for (int i = 0; i < heed_params_count(heed_model_params(m)); i++) {
        heed_param_info e = heed_params_entry(heed_model_params(m), i);
        const double middle = strstr(e.name, ".gain") ? 1 : 0;
        for (int64_t j = 0; j < heed_tensor_count(e.tensor); j++)
            heed_tensor_data(e.tensor)[j] =
                (heed_real)(middle +
                            0.4 * sin(1 + 1.7 * i + 0.9 * (double)j + 0.01 * i * (double)j));
    }
    return m;
}

/* The batch at *at, which moves on to the next. */
static heed_batch next_batch(heed_arena *arena, const int32_t **at)
{
    heed_tokens source[8], target[8];
    const int32_t *x = *at;
    const int pairs = *x++;
    assert_in_range(pairs, 1, 8);
    for (int i = 0; i < pairs; i++) {
        source[i] = (heed_tokens){x + 2, x[0]};
        target[i] = (heed_tokens){x + 2 + x[0], x[1]};
        x += 2 + x[0] + x[1];
    }
    *at = x;
    heed_batch b;
    assert_int_equal(heed_batch_pack(arena, NULL, source, target, pairs, &b, NULL), HEED_OK);
    return b;
}

/* Numbers of every parameter, one after the other as they were declared. */
static void compare(const char *what, int step, heed_params *p, bool grads, const double *wanted,
                    int64_t count)
{
    int64_t n = 0;
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_param_info e = heed_params_entry(p, i);
        const heed_real *found = grads ? heed_tensor_grad(e.tensor) : heed_tensor_data(e.tensor);
        for (int64_t j = 0; j < heed_tensor_count(e.tensor); j++, n++)
            if (n < count && !(fabs((double)found[j] - wanted[n]) <= ALLOWED))
                fail_msg("step %d: the %s of '%s' at %lld is %.12g, expected %.12g", step, what,
                         e.name, (long long)j, (double)found[j], wanted[n]);
    }
    assert_int_equal(n, count);
}

static void follow(bool pre_norm, const struct golden *g)
{
    heed_model *m = golden_model(pre_norm);
    heed_params *p = heed_model_params(m);
    heed_optimizer *o =
        heed_optimizer_new(p, &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, NULL);
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const heed_schedule noam = {
        .kind = HEED_SCHEDULE_NOAM, .rate = 1, .warmup = GOLDEN_WARMUP, .d = GOLDEN_D};
    const int32_t *at = golden_batches;
    for (int step = 1; step <= GOLDEN_STEPS; step++) {
        heed_batch b = next_batch(arena, &at);
        heed_tape_reset(t);
        heed_tensor *loss = heed_model_loss(m, t, &b, 1 / (double)b.target.rows->rows, NULL);
        assert_int_equal(heed_backward(t, loss), HEED_OK);
        const double found = (double)heed_tensor_data(loss)[0];
        if (!(fabs(found - g->loss[step - 1]) <= ALLOWED))
            fail_msg("step %d: loss %.12g, expected %.12g", step, found, g->loss[step - 1]);
        if (step == 1)
            compare("gradient", step, p, true, g->gradient, g->count);
        heed_optimizer_step(o, heed_schedule_rate(&noam, step), 1);
    }
    assert_ptr_equal(at, golden_batches + COUNT(golden_batches));
    compare("weight", GOLDEN_STEPS, p, false, g->weights, g->count);
    heed_arena_free(arena);
    heed_tape_free(t);
    heed_optimizer_free(o);
    heed_model_free(m);
}

/* Catches: any difference from the paper that the other tests share with the code they test. */
static void post_norm_is_pytorchs(void **state)
{
    (void)state;
    assert_int_equal(COUNT(post_norm_gradient), COUNT(post_norm_weights));
    follow(false, &(struct golden){post_norm_loss, post_norm_gradient, post_norm_weights,
                                   COUNT(post_norm_weights)});
}

/* Catches: the same, and a final norm that is missing. */
static void pre_norm_is_pytorchs(void **state)
{
    (void)state;
    assert_int_equal(COUNT(pre_norm_gradient), COUNT(pre_norm_weights));
    follow(true, &(struct golden){pre_norm_loss, pre_norm_gradient, pre_norm_weights,
                                  COUNT(pre_norm_weights)});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(post_norm_is_pytorchs),
        cmocka_unit_test(pre_norm_is_pytorchs),
    };
    return cmocka_run_group_tests_name("transformer golden", tests, NULL, NULL);
}
