/* Layers without recurrence: what they compute, what they refuse, and their gradients. */
#include "layer_check.h"
#include <heed/attention.h>

#ifdef HEED_DOUBLE
#define NEAR 1e-12
#else
#define NEAR 2e-6 /* a few roundings of numbers around 1 */
#endif

static heed_params *new_set(void)
{
    heed_params *p = heed_params_new(NULL, NULL);
    assert_non_null(p);
    return p;
}

static void finish(heed_params *p)
{
    heed_error err = {0};
    heed_params_finish(p, 17, &err);
    assert_string_equal(err.text, "");
}

/* An input that the check can differentiate: a parameter like any other. */
static heed_tensor *input_parameter(heed_params *p, heed_shape shape)
{
    return heed_param(heed_params_scope(p), "x", shape, (heed_init){HEED_INIT_NORMAL, 1});
}

static void assert_near(double found, double wanted)
{
    if (!(fabs(found - wanted) <= NEAR))
        fail_msg("found %.12g, wanted %.12g", found, wanted);
}

static void assert_same(const heed_tensor *a, const heed_tensor *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t j = 0; j < a->cols; j++)
            assert_near((double)heed__row(a, r)[j], (double)heed__row(b, r)[j]);
}

/* ---- positions ---- */

/* Catches: another frequency (T2T's 1/(D/2-1)), sine and cosine in blocks instead of interleaved.
 * Values by hand from the paper's formula. */
static void sinusoids_are_the_papers(void **state)
{
    (void)state;
    static const double wanted[8] = {.8414710, .5403023, .0998334, .9950042,
                                     .0099998, .9999500, .0010000, .9999995};
    heed_real out[2 * 8], wide[2 * 512];
    heed_sinusoid(out, 2, 8, HEED_POSITIONS_SINUSOID);
    for (int i = 0; i < 8; i++) {
        assert_near((double)out[i], i % 2);
        assert_true(fabs((double)out[8 + i] - wanted[i]) < 1e-7);
    }
    heed_sinusoid(wide, 2, 512, HEED_POSITIONS_SINUSOID);
    assert_true(fabs((double)wide[512 + 510] - 1.036633e-4) < 1e-10);
}

/* Catches: halves with other frequencies than the interleaved ones, or an odd D out of bounds. */
static void halves_are_the_same_numbers(void **state)
{
    (void)state;
    enum { COUNT = 20, MOST = 9 };
    for (int d = 1; d <= MOST; d++) {
        heed_real a[COUNT * MOST], b[COUNT * MOST];
        heed_sinusoid(a, COUNT, d, HEED_POSITIONS_SINUSOID);
        heed_sinusoid(b, COUNT, d, HEED_POSITIONS_SINUSOID_HALVES);
        for (int p = 0; p < COUNT; p++)
            for (int c = 0; c < d; c++)
                assert_true(a[p * d + c] == b[p * d + c / 2 + (c % 2) * ((d + 1) / 2)]);
    }
}

/* ---- embedding ---- */

enum { V = 7, D = 6, LONGEST = 4 };
static const int64_t lengths[] = {3, 0, 4, 1};
static const int32_t ids[] = {0, 6, 3, 3, 2, 1, 5, 4};

/* Catches: positions that run on over the whole batch, a scale on the positions too. */
static void embedding_counts_from_zero_in_each_segment(void **state)
{
    (void)state;
    static const heed_positions kinds[] = {HEED_POSITIONS_NONE, HEED_POSITIONS_SINUSOID,
                                           HEED_POSITIONS_SINUSOID_HALVES, HEED_POSITIONS_LEARNED};
    for (int k = 0; k < 4; k++) {
        heed_params *p = new_set();
        heed_embedding_layer l;
        heed_embedding_build(&l, heed_scope_enter(heed_params_scope(p), "e"), V, D, kinds[k],
                             LONGEST, 2.5, 0);
        finish(p);
        assert_int_equal(heed_params_trainable(p),
                         V * D + (kinds[k] == HEED_POSITIONS_LEARNED ? LONGEST * D : 0));
        heed_tape *t = heed_tape_new(NULL, NULL);
        const heed_segments *s = heed_segments_new(heed_tape_arena(t), 4, lengths);
        heed_tensor *y = heed_embedding_apply(t, &l, ids, s);
        assert_string_equal(heed_tape_error(t)->text, "");
        for (int b = 0; b < 4; b++)
            for (int64_t n = s->offset[b]; n < s->offset[b + 1]; n++)
                for (int j = 0; j < D; j++) {
                    double wanted = 2.5 * (double)l.table->data[ids[n] * D + j];
                    if (l.positions)
                        wanted += (double)l.positions->data[(n - s->offset[b]) * D + j];
                    assert_near((double)heed__row(y, n)[j], wanted);
                }
        heed_tape_free(t);
        heed_params_free(p);
    }
}

/* Catches: reading behind the table of positions. */
static void embedding_refuses_what_is_too_long(void **state)
{
    (void)state;
    heed_params *p = new_set();
    heed_embedding_layer l;
    heed_embedding_build(&l, heed_params_scope(p), V, D, HEED_POSITIONS_SINUSOID, LONGEST - 1, 1,
                         0);
    finish(p);
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 4, lengths);
    assert_null(heed_embedding_apply(t, &l, ids, s));
    assert_string_equal(heed_tape_error(t)->text,
                        "embedding: a segment of 4 rows, positions for at most 3");
    heed_tape_reset(t);
    assert_null(heed_embedding_apply(t, &l, ids, NULL));
    assert_string_equal(heed_tape_error(t)->text, "embedding: no segments");
    heed_tape_free(t);
    heed_params_free(p);
}

static int run_embedding(heed_tape *t, void *context, heed_tensor **out)
{
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 4, lengths);
    out[0] = heed_embedding_apply(t, context, ids, s);
    return 1;
}

/* Catches: a table or learned positions without their gradient. */
static void embedding_gradient(void **state)
{
    (void)state;
    for (int dropout = 0; dropout < 2; dropout++) {
        heed_params *p = new_set();
        heed_embedding_layer l;
        heed_embedding_build(&l, heed_params_scope(p), V, D, HEED_POSITIONS_LEARNED, LONGEST, 1.5,
                             dropout * 0.3);
        finish(p);
        layer_check(p, run_embedding, &l);
        heed_params_free(p);
    }
}

/* ---- linear and feed-forward ---- */

struct with_input {
    heed_tensor *x, *y;
    heed_linear_layer linear;
    heed_ffn_layer ffn;
    heed_norm_layer norm;
    double dropout;
};

static int run_linear(heed_tape *t, void *context, heed_tensor **out)
{
    struct with_input *m = context;
    out[0] = heed_linear_apply(t, &m->linear, m->x);
    return 1;
}

/* Catches: a wrong derivative through any fused activation, with and without bias. */
static void linear_gradient(void **state)
{
    (void)state;
    static const heed_activation smooth[] = {HEED_IDENTITY, HEED_GELU, HEED_GELU_TANH,
                                             HEED_SILU,     HEED_TANH, HEED_SIGMOID};
    for (int k = 0; k < 6; k++)
        for (int bias = 0; bias < 2; bias++) {
            heed_params *p = new_set();
            struct with_input m = {.x = input_parameter(p, HEED_SHAPE(3, 5))};
            heed_linear_build(&m.linear, heed_scope_enter(heed_params_scope(p), "l"), 5, 7,
                              smooth[k], bias);
            assert_int_equal(m.linear.bias != NULL, bias);
            finish(p);
            layer_check(p, run_linear, &m);
            heed_params_free(p);
        }
}

static int run_ffn(heed_tape *t, void *context, heed_tensor **out)
{
    struct with_input *m = context;
    out[0] = heed_ffn_apply(t, &m->ffn, m->x);
    return 1;
}

/* Catches: dropout in the wrong place or drawn anew in backward. */
static void ffn_gradient(void **state)
{
    (void)state;
    for (int dropout = 0; dropout < 2; dropout++) {
        heed_params *p = new_set();
        struct with_input m = {.x = input_parameter(p, HEED_SHAPE(5, 4))};
        heed_ffn_build(
            &m.ffn, heed_scope_enter(heed_params_scope(p), "ffn"),
            &(heed_ffn_options){
                .d = 4, .f = 9, .activation = HEED_GELU, .bias = true, .dropout = dropout * 0.4});
        finish(p);
        layer_check(p, run_ffn, &m);
        heed_params_free(p);
    }
}

/* Catches: a second activation, swapped layers, other names on disk. */
static void ffn_is_two_linear_layers(void **state)
{
    (void)state;
    heed_params *p = new_set();
    heed_ffn_layer l;
    heed_ffn_build(&l, heed_scope_enter(heed_params_scope(p), "ffn"),
                   &(heed_ffn_options){.d = 3, .f = 5, .activation = HEED_RELU, .bias = true});
    finish(p);
    static const char *const names[] = {"ffn.in.weight", "ffn.in.bias", "ffn.out.weight",
                                        "ffn.out.bias"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(heed_params_entry(p, i).name, names[i]);
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_real x[3] = {0.3, -1.2, 2};
    heed_tensor *y = heed_ffn_apply(t, &l, heed_input(t, HEED_SHAPE(1, 3), x));
    for (int j = 0; j < 3; j++) {
        double sum = (double)l.out.bias->data[j];
        for (int f = 0; f < 5; f++) {
            double hidden = (double)l.in.bias->data[f];
            for (int i = 0; i < 3; i++)
                hidden += (double)x[i] * (double)l.in.weight->data[i * 5 + f];
            sum += fmax(hidden, 0) * (double)l.out.weight->data[f * 3 + j];
        }
        assert_near((double)y->data[j], sum);
    }
    heed_tape_free(t);
    heed_params_free(p);
}

/* ---- norms ---- */

static const heed_norm_kind kinds[] = {HEED_NORM_LAYER, HEED_NORM_RMS, HEED_NORM_BATCH};

static void build_norm(struct with_input *m, heed_params *p, heed_norm_kind kind)
{
    m->x = input_parameter(p, HEED_SHAPE(6, 5));
    m->y =
        heed_param(heed_params_scope(p), "y", HEED_SHAPE(6, 5), (heed_init){HEED_INIT_NORMAL, 1});
    heed_norm_build(&m->norm, heed_scope_enter(heed_params_scope(p), "norm"), kind, 5, 1e-5);
    finish(p);
}

static int run_residual(heed_tape *t, void *context, heed_tensor **out)
{
    struct with_input *m = context;
    out[0] = heed_norm_residual(t, &m->norm, m->x, m->y, m->dropout);
    out[1] = heed_norm_apply(t, &m->norm, m->x);
    return 2;
}

/* Catches: a norm or a fused residual whose gradient is not that of its formula. */
static void norm_gradients(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int dropout = 0; dropout < 2; dropout++) {
            heed_params *p = new_set();
            struct with_input m = {.dropout = 0.4 * dropout};
            build_norm(&m, p, kinds[k]);
            layer_check(p, run_residual, &m);
            heed_params_free(p);
        }
}

/* Catches: a fused residual that is not norm(x + y), and RMS norm with a bias. */
static void residual_is_norm_of_the_sum(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        heed_params *p = new_set();
        struct with_input m = {0};
        build_norm(&m, p, kinds[k]);
        assert_int_equal(m.norm.bias == NULL, kinds[k] == HEED_NORM_RMS);
        assert_int_equal(heed_params_state_size(p) > 0, kinds[k] == HEED_NORM_BATCH);
        heed_tape *t = heed_tape_new(NULL, NULL);
        assert_same(heed_norm_residual(t, &m.norm, m.x, m.y, 0),
                    heed_norm_apply(t, &m.norm, heed_add(t, m.x, m.y)));
        heed_tape_free(t);
        heed_params_free(p);
    }
}

/* Catches: running statistics that do not move in training, move outside it, before the update
 * ends, or again in the next, and passes of an update that do not count alike. */
static void batch_norm_keeps_its_statistics(void **state)
{
    (void)state;
    heed_params *p = new_set();
    struct with_input m = {0};
    build_norm(&m, p, HEED_NORM_BATCH);
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tape_set_training(t, false);
    heed_norm_apply(t, &m.norm, m.x);
    for (int j = 0; j < 5; j++) {
        assert_true(m.norm.running_mean->data[j] == 0);
        assert_true(m.norm.running_variance->data[j] == 1);
    }
    heed_params_fold_state(p);
    heed_tape_set_training(t, true);
    for (int updates = 1; updates <= 2; updates++) {
        double before[5], sum[5] = {0};
        for (int j = 0; j < 5; j++)
            before[j] = (double)m.norm.running_mean->data[j];
        for (int pass = 0; pass < updates; pass++) {
            const heed_tensor *x = pass ? m.y : m.x;
            heed_norm_apply(t, &m.norm, pass ? m.y : m.x);
            for (int i = 0; i < 30; i++)
                sum[i % 5] += (double)x->data[i] / 6;
        }
        for (int j = 0; j < 5; j++)
            assert_true((double)m.norm.running_mean->data[j] == before[j]);
        heed_params_fold_state(p);
        for (int j = 0; j < 5; j++)
            assert_near((double)m.norm.running_mean->data[j],
                        0.9 * before[j] + 0.1 * sum[j] / updates);
    }
    const heed_real first = m.norm.running_mean->data[0];
    heed_norm_apply(t, &m.norm, m.x);
    heed_params_zero_grads(p); /* an update that is given up */
    heed_params_fold_state(p);
    assert_true(m.norm.running_mean->data[0] == first);
    heed_tape_free(t);
    heed_params_free(p);
}

/* ---- attention ---- */

struct attending {
    heed_mha_layer layer;
    heed_tensor *x, *memory;
};

static int run_mha(heed_tape *t, void *context, heed_tensor **out)
{
    struct attending *m = context;
    heed_arena *arena = heed_tape_arena(t);
    const heed_segments *queries = heed_segments_new(arena, 3, (int64_t[]){3, 0, 2});
    const heed_segments *keys =
        m->memory ? heed_segments_new(arena, 3, (int64_t[]){1, 2, 4}) : queries;
    out[0] = heed_mha_apply(t, &m->layer, m->x, m->memory ? m->memory : m->x, queries, keys, NULL);
    return 1;
}

/* Catches: a slice of the joint product with another's gradient, x counted once where it is query,
 * key and value, a lost bias. */
static void mha_gradients(void **state)
{
    static const heed_mha_options rows[] = {
        {.d = 6, .heads = 2},
        {.d = 6, .heads = 3, .causal = true, .bias = true, .dropout = 0.3},
        {.d = 4, .heads = 1, .d_k = 3, .d_v = 5, .score = HEED_SCORE_DOT},
        {.d = 6, .heads = 2, .cross = true, .memory_d = 5, .bias = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heed_params *p = new_set();
        struct attending m = {.x = input_parameter(p, HEED_SHAPE(5, rows[i].d))};
        if (rows[i].cross)
            m.memory = heed_param(heed_params_scope(p), "memory", HEED_SHAPE(7, 5),
                                  (heed_init){HEED_INIT_NORMAL, 1});
        heed_mha_build(&m.layer, heed_scope_enter(heed_params_scope(p), "self"), &rows[i]);
        finish(p);
        layer_check(p, run_mha, &m);
        heed_params_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sinusoids_are_the_papers),
        cmocka_unit_test(halves_are_the_same_numbers),
        cmocka_unit_test(embedding_counts_from_zero_in_each_segment),
        cmocka_unit_test(embedding_refuses_what_is_too_long),
        cmocka_unit_test(embedding_gradient),
        cmocka_unit_test(linear_gradient),
        cmocka_unit_test(ffn_is_two_linear_layers),
        cmocka_unit_test(ffn_gradient),
        cmocka_unit_test(norm_gradients),
        cmocka_unit_test(residual_is_norm_of_the_sum),
        cmocka_unit_test(batch_norm_keeps_its_statistics),
        cmocka_unit_test(mha_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
