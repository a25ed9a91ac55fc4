/* The Transformer as a whole: what it computes, what it must not see, its gradients. */
#include "small_transformer.h"

/* A whole model bends more than a layer. */
#define LAYER_STEP 1e-4
#include "layer_check.h"
#include <heed/task.h>

/* ---- what may be seen ---- */

/* Catches: a decoder that sees what it is to predict.  The tokens from `place` on change; what was
 * said about those before must not, to the last bit. */
static void no_token_sees_a_later_one(void **state)
{
    (void)state;
    for (int pre = 0; pre < 2; pre++) {
        heed_model_config config = small_config();
        config.transformer.pre_norm = pre;
        heed_model *m = new_model(&config);
        heed_tape *t = new_tape(2);
        struct pairs *p = draw_pairs(5, 1);
        heed_batch b = pack(p, 0, p->count);
        heed_real *whole = score(m, t, &b);
        int32_t *in = (int32_t *)b.target.ids;
        for (int64_t s = 0; s < b.examples; s++)
            for (int64_t n = b.target.rows->offset[s] + 1; n < b.target.rows->offset[s + 1]; n++) {
                int32_t kept = in[n];
                in[n] = 3 + (kept + 1) % (VOCABULARY - 3);
                heed_real *other = score(m, t, &b);
                for (int64_t i = 0; i < b.target.rows->rows; i++) {
                    bool after = i >= n && i < b.target.rows->offset[s + 1];
                    assert_true(after == (whole[i] != other[i]));
                }
                free(other);
                in[n] = kept;
            }
        free(whole);
        pairs_free(p);
        heed_tape_free(t);
        heed_model_free(m);
    }
}

/* Catches: cross-attention that looks into another sentence's source (the missing source mask), and
 * a source token that nobody sees. */
static void a_source_token_changes_its_own_sentence_only(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(4, 2);
    heed_batch b = pack(p, 0, p->count);
    heed_real *whole = score(m, t, &b);
    int32_t *ids = (int32_t *)b.source.ids;
    for (int64_t s = 0; s < b.examples; s++)
        for (int64_t n = b.source.rows->offset[s]; n < b.source.rows->offset[s + 1]; n++) {
            int32_t kept = ids[n];
            ids[n] = 3 + (kept + 1) % (VOCABULARY - 3);
            heed_real *other = score(m, t, &b);
            for (int64_t i = 0; i < b.target.rows->rows; i++) {
                bool own = i >= b.target.rows->offset[s] && i < b.target.rows->offset[s + 1];
                assert_true(own == (whole[i] != other[i]));
            }
            free(other);
            ids[n] = kept;
        }
    free(whole);
    pairs_free(p);
    heed_tape_free(t);
    heed_model_free(m);
}

/* ---- a batch is its sentences ---- */

/* Loss and gradients of some pairs with weight 1, added to what is there. */
static double add_loss(const heed_model *m, heed_tape *t, const heed_batch *b, double *nll)
{
    heed_tape_reset(t);
    heed_tensor *loss = heed_model_loss(m, t, b, 1, nll);
    if (heed_backward(t, loss))
        fail_msg("%s", heed_tape_error(t)->text);
    return (double)heed_tensor_data(loss)[0];
}

/* Catches: sentences that change each other's numbers, a loss that depends on how they are packed.
 * Packed = alone is also what padding would have to leave untouched. */
static void packed_sentences_are_the_sentences(void **state)
{
    (void)state;
    for (int pre = 0; pre < 2; pre++) {
        heed_model_config config = small_config();
        config.transformer.pre_norm = pre;
        heed_model *m = new_model(&config);
        heed_params *params = heed_model_params(m);
        const int64_t size = heed_params_size(params);
        heed_real *together = malloc((size_t)size * sizeof *together);
        heed_tape *t = new_tape(2);
        struct pairs *p = draw_pairs(9, 3);
        heed_batch all = pack(p, 0, p->count);

        double nll, sum = 0, nll_sum = 0, loss = add_loss(m, t, &all, &nll);
        memcpy(together, heed_params_grads(params), (size_t)size * sizeof *together);
        heed_params_zero_grads(params);
        heed_real *scores = score(m, t, &all);
        for (int i = 0; i < p->count; i++) {
            heed_batch one = pack(p, i, 1);
            double nll_one;
            sum += add_loss(m, t, &one, &nll_one);
            nll_sum += nll_one;
            heed_real *alone = score(m, t, &one);
            for (int64_t n = 0; n < one.target.rows->rows; n++)
                assert_near((double)alone[n], (double)scores[all.target.rows->offset[i] + n], SAME);
            free(alone);
        }
        assert_near(loss, sum, SAME);
        assert_near(nll, nll_sum, SAME);
        double largest = 0;
        for (int64_t j = 0; j < size; j++)
            largest = fmax(largest, fabs((double)together[j]));
        for (int64_t j = 0; j < size; j++)
            assert_near((double)heed_params_grads(params)[j] / largest,
                        (double)together[j] / largest, SAME);
        free(scores);
        free(together);
        pairs_free(p);
        heed_tape_free(t);
        heed_model_free(m);
    }
}

/* Catches: a loss or a score that is another function of the same logits than the other. */
static void loss_and_score_agree(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.label_smoothing = 0;
    heed_model *m = new_model(&config);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(8, 4);
    heed_batch b = pack(p, 0, p->count);
    double nll, loss = add_loss(m, t, &b, &nll), sum = 0;
    heed_real *scores = score(m, t, &b);
    for (int64_t n = 0; n < b.target.rows->rows; n++)
        sum -= (double)scores[n];
    assert_near(loss, sum, SAME);
    assert_near(nll, sum, SAME);
    heed_tape_reset(t);
    double tokens = (double)b.target.rows->rows;
    assert_near((double)heed_tensor_data(heed_model_loss(m, t, &b, 1 / tokens, NULL))[0],
                sum / tokens, SAME);
    /* Unit logits: log V + 1/2 to begin with, whatever the number of sentences. */
    assert_true(fabs(sum / tokens - log(VOCABULARY) - 0.5) < 0.4);
    free(scores);
    pairs_free(p);
    heed_tape_free(t);
    heed_model_free(m);
}

/* ---- tying ---- */

static const heed_real *grad_of(const heed_model *m, const char *name)
{
    heed_tensor *x = heed_params_find(heed_model_params(m), name);
    if (!x)
        fail_msg("there is no parameter '%s'", name);
    return heed_tensor_grad(x);
}

/* Catches: a tied matrix that misses one of its three gradients.  The same numbers untied give each
 * of them alone. */
static void tied_gradient_is_the_sum_of_three(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *tied = new_model(&config);
    config.tying = HEED_TIE_NONE;
    heed_model *apart = new_model(&config);
    heed_params *from = heed_model_params(tied), *to = heed_model_params(apart);
    const heed_tensor *table = heed_params_find(from, "embedding.table");
    assert_non_null(table);
    assert_int_equal(heed_params_trainable(to),
                     heed_params_trainable(from) + 2 * heed_tensor_count(table));
    for (int i = 0; i < heed_params_count(to); i++) {
        heed_param_info e = heed_params_entry(to, i);
        const heed_tensor *x = heed_params_find(from, e.name);
        const heed_real *values = heed_tensor_data(x ? x : table);
        memcpy(heed_tensor_data(e.tensor), values,
               (size_t)heed_tensor_count(e.tensor) * sizeof *values);
    }
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(6, 5);
    heed_batch b = pack(p, 0, p->count);
    assert_near(add_loss(tied, t, &b, NULL), add_loss(apart, t, &b, NULL), SAME);
    const heed_real *sum = grad_of(tied, "embedding.table");
    const heed_real *three[] = {grad_of(apart, "encoder.embedding.table"),
                                grad_of(apart, "decoder.embedding.table"),
                                grad_of(apart, "output.weight")};
    double each[3] = {0, 0, 0};
    for (int64_t j = 0; j < heed_tensor_count(table); j++) {
        double wanted = 0;
        for (int k = 0; k < 3; k++) {
            wanted += (double)three[k][j];
            each[k] += fabs((double)three[k][j]);
        }
        assert_near((double)sum[j], wanted, 10 * SAME);
    }
    for (int k = 0; k < 3; k++)
        assert_true(each[k] > 1);
    pairs_free(p);
    heed_tape_free(t);
    heed_model_free(apart);
    heed_model_free(tied);
}

/* Catches: sinusoids saved with the weights, or a table for each stack. */
static void positions_are_not_saved(void **state)
{
    (void)state;
    for (int tying = HEED_TIE_NONE; tying <= HEED_TIE_ALL; tying++)
        for (int kind = HEED_POSITIONS_NONE; kind <= HEED_POSITIONS_ROTARY_NEIGHBOURS; kind++) {
            heed_model_config config = small_config();
            config.tying = tying;
            config.transformer.positions = kind;
            heed_model *m = new_model(&config);
            heed_params *p = heed_model_params(m);
            int tables = 0;
            for (int i = 0; i < heed_params_count(p); i++)
                tables += strstr(heed_params_entry(p, i).name, "positions") != NULL;
            assert_int_equal(tables, kind != HEED_POSITIONS_LEARNED ? 0
                                     : tying == HEED_TIE_ALL        ? 1
                                                                    : 2);
            assert_int_equal(heed_params_state_size(p), 0);
            heed_model_free(m);
        }
}

/* Catches: other frequencies than the paper's: "for any fixed offset k, PE(pos+k) can be
 * represented as a linear function of PE(pos)", a rotation of each pair. */
static void positions_shift_linearly(void **state)
{
    (void)state;
    enum { COUNT = 60, D = 12, K = 7 };
    heed_real pe[COUNT * D];
    heed_sinusoid(pe, COUNT, D, HEED_POSITIONS_SINUSOID);
    for (int i = 0; i < D / 2; i++) {
        double angle = K * pow(10000, -2.0 * i / D);
        for (int pos = 0; pos + K < COUNT; pos++) {
            double s = (double)pe[pos * D + 2 * i], c = (double)pe[pos * D + 2 * i + 1];
            const heed_real *later = pe + (pos + K) * D + 2 * i;
            assert_near((double)later[0], s * cos(angle) + c * sin(angle), SAME);
            assert_near((double)later[1], c * cos(angle) - s * sin(angle), SAME);
        }
    }
}

/* ---- chance ---- */

/* Catches: dropout outside training, masks that repeat from step to step or do not come back, and
 * one that changes the mean: to first order in a small rate the loss stays. */
static void dropout_is_chance_with_the_right_mean(void **state)
{
    (void)state;
    enum { STEPS = 300 };
    heed_model_config config = small_config();
    config.dropout = config.attention.dropout = config.transformer.ff_dropout = 0.02;
    heed_model *m = new_model(&config);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(16, 6);
    heed_batch b = pack(p, 0, p->count);
    heed_tape_set_recording(t, false);
    double sum = 0, first = 0, loss[2];
    for (int step = 0; step <= STEPS; step++) {
        heed_tape_reset(t);
        heed_tape_step(t, (uint64_t)(step % STEPS), 0, 0); /* the last is the first again */
        double l = (double)heed_tensor_data(heed_model_loss(m, t, &b, 1, NULL))[0];
        if (step == 0)
            first = l;
        else if (step < STEPS)
            assert_true(l != first);
        else
            assert_true(l == first);
        sum += step < STEPS ? l : 0;
    }
    heed_tape_set_training(t, false);
    for (int i = 0; i < 2; i++) {
        heed_tape_reset(t);
        heed_tape_step(t, (uint64_t)i, 0, 0);
        loss[i] = (double)heed_tensor_data(heed_model_loss(m, t, &b, 1, NULL))[0];
    }
    assert_true(loss[0] == loss[1]);
    assert_near(sum / STEPS, loss[0], 0.01);
    pairs_free(p);
    heed_tape_free(t);
    heed_model_free(m);
}

/* Catches: anything in a step that is not a function of seed, data and number of threads. */
static void runs_repeat_to_the_last_bit(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.dropout = 0.1;
    heed_real *first = NULL;
    for (int run = 0; run < 2; run++) {
        heed_model *m = new_model(&config);
        heed_params *params = heed_model_params(m);
        heed_optimizer *o =
            heed_optimizer_new(params, &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, NULL);
        heed_tape *t = new_tape(2);
        struct pairs *p = draw_pairs(32, 7);
        for (int step = 1; step <= 4; step++) {
            heed_batch b = pack(p, 8 * (step - 1), 8);
            heed_tape_reset(t);
            heed_tape_step(t, (uint64_t)step, 0, 0);
            assert_int_equal(heed_backward(t, heed_model_loss(m, t, &b, 0.02, NULL)), HEED_OK);
            heed_optimizer_step(o, 1e-3, 2);
        }
        size_t bytes = (size_t)heed_params_size(params) * sizeof *first;
        if (run == 0)
            first = memcpy(malloc(bytes), heed_params_values(params), bytes);
        else
            assert_memory_equal(first, heed_params_values(params), bytes);
        pairs_free(p);
        heed_tape_free(t);
        heed_optimizer_free(o);
        heed_model_free(m);
    }
    free(first);
}

/* ---- gradients ---- */

struct gradient_case {
    const heed_model *m;
    heed_batch batch;
};

static int run_loss(heed_tape *t, void *context, heed_tensor **out)
{
    struct gradient_case *c = context;
    out[0] = heed_model_loss(c->m, t, &c->batch, 0.25, NULL);
    return 1;
}

static void check_gradient(const heed_model_config *config)
{
    static const int32_t ids[] = {3, 5, 4, 6, 3, 4, 5};
    heed_model *m = new_model(config);
    struct pairs *p = draw_pairs(0, 1);
    p->source[0] = (heed_tokens){ids, 3};
    p->source[1] = (heed_tokens){ids + 2, 4};
    p->target[0] = (heed_tokens){ids + 3, 2};
    p->target[1] = (heed_tokens){ids + 1, 4};
    struct gradient_case c = {m, pack(p, 0, 2)};
    /* What is the same in every row, batch norm takes away again: no gradient. */
    static const char *const constant[] = {"encoder.0.ffn.out.bias", "encoder.0.ffn.norm.bias",
                                           "decoder.0.ffn.out.bias"};
    for (int i = 0; i < 3 && config->transformer.norm == HEED_NORM_BATCH; i++)
        assert_int_equal(heed_params_freeze(heed_model_params(m), constant[i], NULL), HEED_OK);
    layer_check(heed_model_params(m), run_loss, &c);
    pairs_free(p);
    heed_model_free(m);
}

/* Every part has its smooth version here: ReLU's kink is where differences fail. */
static heed_model_config gradient_config(void)
{
    heed_model_config config = small_config();
    heed_transformer_config *c = &config.transformer;
    config.encoder_layers = config.decoder_layers = 1;
    config.d = 4;
    c->ff = 6;
    c->heads = 2;
    c->activation = HEED_TANH;
    config.longest = 6;
    config.source_vocabulary = config.target_vocabulary = 7;
    return config;
}

/* Catches: a gradient that is lost or doubled between the layers, in any of the arrangements.  In
 * double only: differences of a float loss are as large as small gradients. */
static void gradients_of_the_whole_model(void **state)
{
    (void)state;
    if (sizeof(heed_real) < sizeof(double))
        skip();
    heed_model_config config = gradient_config();
    heed_transformer_config *c = &config.transformer;
    check_gradient(&config); /* the paper's */
    config.encoder_layers = config.decoder_layers = 2;
    c->pre_norm = true;
    check_gradient(&config);
    c->norm = HEED_NORM_RMS;
    config.tying = HEED_TIE_TARGET;
    c->positions = HEED_POSITIONS_LEARNED;
    check_gradient(&config);
    c->pre_norm = false;
    config.encoder_layers = config.decoder_layers = 1;
    config.tying = HEED_TIE_ALL;
    c->d_k = 3;
    c->d_v = 1;
    c->attention_bias = true;
    check_gradient(&config);
    c->norm = HEED_NORM_BATCH;
    c->attention_bias = false;
    config.tying = HEED_TIE_NONE;
    c->positions = HEED_POSITIONS_NONE;
    config.source_vocabulary = 9;
    check_gradient(&config);
    c->norm = HEED_NORM_LAYER;
    c->activation = HEED_GELU;
    c->scale_scores = false;
    c->positions = HEED_POSITIONS_SINUSOID_HALVES;
    config.dropout = c->ff_dropout = config.attention.dropout = 0.1;
    check_gradient(&config);
    c->residual = false;
    check_gradient(&config);
    c->pre_norm = true;
    check_gradient(&config);
    config = gradient_config();
    config.d = 6; /* with which no state of the unit is near the kink of its ReLU */
    c->decoder_unit = HEED_DECODER_UNIT_SSRU;
    c->zero_start = c->output_bias = true;
    c->positions = HEED_POSITIONS_SINUSOID_MARIAN;
    check_gradient(&config);
    for (int kind = HEED_POSITIONS_ROTARY; kind <= HEED_POSITIONS_ROTARY_NEIGHBOURS; kind++) {
        config = gradient_config();
        c->positions = kind;
        c->d_k = 4;
        c->ff_gated = c->output_bias = c->pre_norm = true;
        c->ff_bias = false;
        c->norm = HEED_NORM_RMS;
        c->activation = HEED_SILU;
        check_gradient(&config);
    }
    config = gradient_config();
    c->kv_heads = 1;
    config.attention.pattern = (heed_slot_spec){
        .count = 2, .term = {{HEED_PATTERN_BAND, {2}}, {HEED_PATTERN_GLOBAL, {1}}}};
    config.attention.position_bias = (heed_slot_spec)HEED_ONE(HEED_BIAS_TABLE, {2});
    config.attention.memory = (heed_slot_spec)HEED_ONE(HEED_MEMORY_PERSISTENT, {2});
    check_gradient(&config);
    for (int score = HEED_SCORE_GENERAL; score <= HEED_SCORE_LOCATION; score++) {
        config = gradient_config();
        config.attention.score = score;
        config.transformer.heads = 1; /* wider ones: gradients well above the differences' noise */
        check_gradient(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_token_sees_a_later_one),
        cmocka_unit_test(a_source_token_changes_its_own_sentence_only),
        cmocka_unit_test(packed_sentences_are_the_sentences),
        cmocka_unit_test(loss_and_score_agree),
        cmocka_unit_test(tied_gradient_is_the_sum_of_three),
        cmocka_unit_test(positions_are_not_saved),
        cmocka_unit_test(positions_shift_linearly),
        cmocka_unit_test(dropout_is_chance_with_the_right_mean),
        cmocka_unit_test(runs_repeat_to_the_last_bit),
        cmocka_unit_test(gradients_of_the_whole_model),
    };
    return cmocka_run_group_tests_name("transformer", tests, NULL, NULL);
}
