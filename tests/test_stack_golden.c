/* A stack whose sublayers differ in heads, widths, positions, biases and memory: on the tape
 * against PyTorch, its gradients in double, and packed against the tape. */
#define LAYER_STEP 2e-4 /* norms of short rows bend */
#include "layer_check.h"
#include "small_transformer.h"
#include "stack_golden.h"

#include "engine_help.h"

enum { D = 12, V = 11, ROWS = 13, PARAMETERS = 22 };
static const int32_t ids[ROWS] = {3, 7, 1, 10, 4, 4, 0, 9, 6, 5, 2, 8, 1};
static const int64_t lengths[2] = {9, 4};

/* The stack stands where a decoder's own was. */
struct fixture {
    heed_arena *arena;
    heed_params *params;
    heed_stack stack;
    heed_model *model;
    void *own_parts;
};

/* Number j of parameter i, as the script has it. */
static void fill_parameters(heed_params *p)
{
    assert_int_equal(heed_params_count(p), PARAMETERS);
    for (int i = 0; i < PARAMETERS; i++) {
        const heed_param_info one = heed_params_entry(p, i);
        const bool gain = strstr(one.name, "gain");
        for (int64_t j = 0; j < heed_tensor_count(one.tensor); j++)
            heed_tensor_data(one.tensor)[j] =
                (heed_real)((gain ? 0.2 : 0.5) * sin(0.7 * (double)j + 1.3 * i + 0.2) + gain);
    }
}

static void add(struct fixture *f, int layer, const char *kind, const heed_mha_options *mha,
                const heed_ffn_options *ffn)
{
    const heed_scope s = heed_scope_enter(heed_params_scope(f->params), "%d.%s", layer, kind);
    heed_sublayer_options o = {
        .layer = layer,
        .around = {
            .place = HEED_NORM_BEFORE, .norm = HEED_NORM_RMS, .eps = 1e-5, .residual = true}};
    if (mha)
        o.mha = *mha;
    if (ffn)
        o.ffn = *ffn;
    heed_stack_append(&f->stack, s, heed_sublayer_class_find(kind), &o);
}

static struct fixture *new_fixture(void)
{
    heed_error err = {0};
    struct fixture *f = calloc(1, sizeof *f);
    f->arena = heed_arena_new(NULL, NULL);
    f->params = heed_params_new(NULL, NULL);
    const heed_scope root = heed_params_scope(f->params);
    heed_stack_init(&f->stack, f->arena, D);
    heed_input_build(&f->stack.input, root, &(heed_input_options){.d = D, .vocabulary = V});
    heed_model_config c = small_config();
    c.arch = HEED_ARCH_DECODER;
    c.d = D;
    c.source_vocabulary = 0;
    c.target_vocabulary = V;
    f->model = new_model(&c);
    heed_head_build(&f->model->head, heed_scope_enter(root, "head"),
                    &(heed_head_options){.d = D, .classes = V, .bias = true});
    add(f, 0, "self",
        &(heed_mha_options){.heads = 4,
                            .kv_heads = 2,
                            .d_k = 4,
                            .d_v = 3,
                            .causal = true,
                            .positions = HEED_POSITIONS_ROTARY,
                            .rotary_base = 100},
        NULL);
    add(f, 0, "ffn", NULL, &(heed_ffn_options){.f = 10, .gated = true, .activation = HEED_SILU});
    add(f, 1, "self",
        &(heed_mha_options){.heads = 4,
                            .kv_heads = 1,
                            .d_k = 6,
                            .d_v = 2,
                            .causal = true,
                            .position_bias = HEED_ONE(HEED_BIAS_ALIBI, {0}),
                            .positions = HEED_POSITIONS_ROTARY_NEIGHBOURS,
                            .rotary_base = 50},
        NULL);
    add(f, 1, "ffn", NULL, &(heed_ffn_options){.f = 7, .gated = true, .activation = HEED_GELU});
    add(f, 2, "self",
        &(heed_mha_options){.heads = 2,
                            .d_k = 3,
                            .d_v = 4,
                            .causal = true,
                            .position_bias = HEED_ONE(HEED_BIAS_TABLE, {3}),
                            .memory = HEED_ONE(HEED_MEMORY_PERSISTENT, {2}),
                            .pattern = HEED_ONE(HEED_PATTERN_BAND, {5})},
        NULL);
    heed_norm_build(&f->stack.norm, heed_scope_enter(root, "norm"), HEED_NORM_RMS, D, 1e-5);
    if (heed_params_finish(f->params, 1, &err))
        fail_msg("%s", err.text);
    fill_parameters(f->params);
    f->own_parts = f->model->parts;
    f->model->parts = &f->stack;
    return f;
}

static void fixture_free(struct fixture *f)
{
    f->model->parts = f->own_parts;
    heed_model_free(f->model);
    heed_params_free(f->params);
    heed_arena_free(f->arena);
    free(f);
}

static heed_tensor *logits(const struct fixture *f, heed_tape *t)
{
    const heed_segments *rows = heed_segments_new(heed_tape_arena(t), 2, lengths);
    heed_flow flow = {.rows = rows};
    flow.x = heed_input_apply(t, &f->stack.input, &(heed_batch_side){.rows = rows, .ids = ids});
    heed_tensor *y = heed_head_logits(t, &f->model->head, heed_stack_apply(t, &f->stack, &flow));
    if (!y)
        fail_msg("%s", heed_tape_error(t)->text);
    return y;
}

/* Catches: key heads that meet the wrong query heads, pairs turned by another angle, a slope or a
 * distance that is another's, shared rows with a bias, a band that is one too wide; and gradients
 * that are lost where heads share keys. */
static void the_tape_is_pytorch(void **state)
{
    (void)state;
    struct fixture *f = new_fixture();
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 2}, NULL);
    heed_tensor *y = logits(f, t);
    heed_real weights[ROWS * V];
    for (int i = 0; i < ROWS * V; i++) {
        assert_near((double)heed_tensor_data(y)[i], golden_logits[i], 50 * SAME);
        weights[i] = (heed_real)sin(0.7 * i + 1.3 * 50 + 0.2);
    }
    const heed_real *const all[] = {weights};
    heed_params_zero_grads(f->params);
    assert_int_equal(heed__backward_from(t, &y, all, 1), 0);
    for (int i = 0; i < PARAMETERS; i++) {
        const heed_param_info one = heed_params_entry(f->params, i);
        double sum = 0;
        for (int64_t j = 0; j < heed_tensor_count(one.tensor); j++)
            sum += cos((double)j) * (double)heed_params_grads(f->params)[one.offset + j];
        if (!(fabs(sum - golden_gradients[i]) <= 100 * SAME * fmax(1, fabs(sum))))
            fail_msg("the gradient of '%s' sums to %.12g, expected %.12g", one.name, sum,
                     golden_gradients[i]);
    }
    heed_tape_free(t);
    fixture_free(f);
}

static int run_stack(heed_tape *t, void *context, heed_tensor **out)
{
    out[0] = logits(context, t);
    return 1;
}

/* Catches: a gradient that is lost or doubled between such sublayers.  In double only. */
static void gradients_are_the_differences(void **state)
{
    (void)state;
    if (sizeof(heed_real) < sizeof(double))
        skip();
    struct fixture *f = new_fixture();
    layer_check(f->params, run_stack, f);
    fixture_free(f);
}

static heed_real *extended(const heed_engine *e, int portion)
{
    heed_session *s = new_session(e, 2);
    heed_real *to = malloc(ROWS * V * sizeof *to);
    heed_error err = {0};
    assert_int_equal(heed_session_add(s, NULL, 2, NULL), HEED_OK);
    for (int64_t row = 0, at = 0; row < 2; at += lengths[row++])
        for (int64_t i = 0; i < lengths[row]; i += portion) {
            heed_scores last;
            const int64_t n = lengths[row] - i < portion ? lengths[row] - i : portion;
            const heed_extension x = {.row = row, .tokens = {ids + at + i, n}, .last = true};
            if (heed_session_extend(s, &x, 1, &last, &err))
                fail_msg("%s", err.text);
            memcpy(to + (at + i + n - 1) * V, last.logit, V * sizeof *to);
        }
    heed_session_free(s);
    return to;
}

/* Catches: a packed sublayer that takes its widths, heads or biases from another; a cell whose keys
 * overlap the next layer's; tokens at once that are not single ones. */
static void packed_is_the_tape(void **state)
{
    (void)state;
    struct fixture *f = new_fixture();
    heed_tape *t = new_tape(1);
    const heed_real *full = heed_tensor_data(logits(f, t));
    for (int int8 = 0; int8 < 2; int8++) {
        heed_engine *e = int8 ? new_int8_engine(f->model) : new_engine(f->model);
        assert_non_null(e->weights);
        heed_real *one = extended(e, 1), *three = extended(e, 3);
        for (int i = 0; !int8 && i < ROWS * V; i++)
            assert_near((double)one[i], (double)full[i], 20 * SAME);
        assert_memory_equal(one + (ROWS - 1) * V, three + (ROWS - 1) * V, V * sizeof *one);
        assert_memory_equal(one + 2 * V, three + 2 * V, V * sizeof *one);
        free(one);
        free(three);
        heed_engine_free(e);
    }
    heed_tape_free(t);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tape_is_pytorch),
        cmocka_unit_test(gradients_are_the_differences),
        cmocka_unit_test(packed_is_the_tape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
