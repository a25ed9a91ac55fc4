/* Parameter sets: layout, names, starts, freezing, groups, failing memory. */
#include "nn/params.h"
#include "tensor/tape.h"
#include <heed/nn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"

static const heed_init normal = {HEED_INIT_NORMAL, 1};

static heed_params *new_set(void)
{
    heed_params *p = heed_params_new(NULL, NULL);
    assert_non_null(p);
    return p;
}

static void finish(heed_params *p, uint64_t seed)
{
    heed_error err = {0};
    heed_params_finish(p, seed, &err);
    assert_string_equal(err.text, "");
}

/* Catches: a program written without error branches, as heed.h shows one, that crashes when the
 * very first allocation fails. */
static void no_set_no_tape(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_linear_layer l;
    heed_linear_build(&l, heed_scope_enter(heed_params_scope(NULL), "out"), 2, 3, HEED_RELU, true);
    assert_int_equal(heed_params_finish(NULL, 1, &err), HEED_ARGUMENT);
    heed_tape_reset(NULL);
    heed_tensor *x = heed_input(NULL, HEED_SHAPE(1, 2), NULL);
    assert_null(heed_linear_apply(NULL, &l, x));
    assert_int_equal(heed_backward(NULL, heed_sum(NULL, x, HEED_ALL)), HEED_ARGUMENT);
    assert_string_equal(heed_tape_error(NULL)->text, "there is no tape");
    heed_tape_free(NULL);
    heed_params_free(NULL);
}

/* Catches: entries that overlap or lose their alignment, garbage in the padding (an optimiser walks
 * over it), state mixed with parameters, a wrong order on disk. */
static void flat_layout(void **state)
{
    (void)state;
    heed_params *p = new_set();
    heed_scope s = heed_scope_enter(heed_params_scope(p), "layer.%d", 3);
    heed_tensor *w = heed_param(s, "weight", HEED_SHAPE(3, 5), normal);
    heed_tensor *m = heed_state(s, "mean", HEED_SHAPE(7), 0.25);
    heed_tensor *b = heed_param(heed_params_scope(p), "b", HEED_SHAPE(1), normal);
    assert_null(heed_tensor_data(w));
    finish(p, 1);

    int64_t line = 64 / (int64_t)sizeof(heed_real);
    assert_int_equal(heed_params_size(p), (15 + line - 1) / line * line + line);
    assert_int_equal(heed_params_state_size(p), line);
    assert_int_equal(heed_params_trainable(p), 16);
    assert_int_equal(heed_params_count(p), 3);
    const char *names[] = {"layer.3.weight", "layer.3.mean", "b"};
    heed_tensor *tensors[] = {w, m, b};
    for (int i = 0; i < 3; i++) {
        heed_param_info e = heed_params_entry(p, i);
        assert_string_equal(e.name, names[i]);
        assert_ptr_equal(e.tensor, tensors[i]);
        assert_int_equal(e.is_state, i == 1);
        assert_false(e.frozen);
        heed_real *flat = e.is_state ? heed_params_state_values(p) : heed_params_values(p);
        assert_ptr_equal(heed_tensor_data(e.tensor), flat + e.offset);
        assert_int_equal((uintptr_t)heed_tensor_data(e.tensor) % 64, 0);
        assert_ptr_equal(heed_params_find(p, names[i]), e.tensor);
    }
    assert_null(heed_params_find(p, "layer.3"));
    assert_ptr_equal(heed_tensor_grad(b), heed_params_grads(p) + heed_params_entry(p, 2).offset);
    assert_null(heed_tensor_grad(m));
    for (int64_t i = 15; i < heed_params_entry(p, 2).offset; i++)
        assert_true(heed_params_values(p)[i] == 0);
    for (int64_t i = 0; i < heed_params_state_size(p); i++)
        assert_true(heed_params_state_values(p)[i] == (i < 7 ? 0.25 : 0));
    heed_params_grads(p)[3] = 2;
    heed_params_zero_grads(p);
    assert_true(heed_params_grads(p)[3] == 0);
    heed_params_free(p);
}

/* Catches: an error that is lost, replaced by a later one, or that crashes what follows. */
static void first_error_sticks(void **state)
{
    (void)state;
    static const struct {
        heed_shape shape;
        const char *name;
        heed_init init;
        heed_status status;
        const char *text;
    } wrong[] = {
        {{2, {2, 3, 1, 1}},
         "w",
         {HEED_INIT_ZERO, 0},
         HEED_ARGUMENT,
         "parameter 'w' declared twice"},
        {{2, {2, 0, 1, 1}},
         "x",
         {HEED_INIT_ZERO, 0},
         HEED_SHAPE_ERROR,
         "parameter 'x' is (2,0), expected sizes of at least 1"},
        {{2, {2, -3, 1, 1}},
         "x",
         {HEED_INIT_ZERO, 0},
         HEED_SHAPE_ERROR,
         "parameter 'x' is (2,-3), expected sizes of at least 1"},
        {{2, {INT64_MAX / 2, 4, 1, 1}}, "x", {HEED_INIT_ZERO, 0}, HEED_SHAPE_ERROR, NULL},
        {{1, {4, 1, 1, 1}},
         "x",
         {HEED_INIT_XAVIER_UNIFORM, 1},
         HEED_SHAPE_ERROR,
         "parameter 'x' is (4), its init needs (in,out)"},
        {{1, {4, 1, 1, 1}}, "", {HEED_INIT_ZERO, 0}, HEED_ARGUMENT, "an empty name under ''"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        heed_params *p = new_set();
        heed_scope s = heed_params_scope(p);
        assert_non_null(heed_param(s, "w", HEED_SHAPE(2, 3), normal));
        assert_null(heed_param(s, wrong[i].name, wrong[i].shape, wrong[i].init));
        assert_int_equal(heed_params_error(p)->status, wrong[i].status);
        assert_null(heed_param(heed_scope_enter(s, "later"), "w", HEED_SHAPE(0), normal));
        heed_error err = {0};
        assert_int_equal(heed_params_finish(p, 1, &err), wrong[i].status);
        if (wrong[i].text)
            assert_string_equal(err.text, wrong[i].text);
        heed_params_free(p);
    }
}

/* Catches: a set that grows after its buffers exist, or draws its weights anew. */
static void nothing_after_finish(void **state)
{
    (void)state;
    heed_params *p = new_set();
    heed_tensor *w = heed_param(heed_params_scope(p), "w", HEED_SHAPE(2), normal);
    finish(p, 1);
    heed_real first = heed_tensor_data(w)[0];
    heed_error err = {0};
    assert_int_equal(heed_params_finish(p, 2, &err), HEED_STATE);
    assert_true(heed_tensor_data(w)[0] == first);
    assert_null(heed_param(heed_params_scope(p), "v", HEED_SHAPE(2), normal));
    assert_string_equal(heed_params_error(p)->text, "parameter 'v' declared after finish");
    heed_params_free(p);
}

/* Catches: an empty set without buffers. */
static void empty_set(void **state)
{
    (void)state;
    heed_params *p = new_set();
    finish(p, 1);
    assert_int_equal(heed_params_size(p), 0);
    assert_non_null(heed_params_values(p));
    assert_int_equal(heed__params_ranges(p), 0);
    heed_params_zero_grads(p);
    heed_params_free(p);
}

static double value_of(heed_params *p, const char *name, int64_t i)
{
    heed_tensor *x = heed_params_find(p, name);
    assert_non_null(x);
    return (double)heed_tensor_data(x)[i];
}

/* Catches: a start that depends on what else is in the model, or two parameters that start alike.
 */
static void start_depends_on_seed_and_name_alone(void **state)
{
    (void)state;
    heed_params *a = new_set(), *b = new_set(), *c = new_set();
    heed_param(heed_params_scope(a), "w", HEED_SHAPE(4), normal);
    heed_param(heed_params_scope(b), "before", HEED_SHAPE(100), normal);
    heed_param(heed_params_scope(b), "w", HEED_SHAPE(4), normal);
    heed_param(heed_params_scope(c), "w", HEED_SHAPE(4), normal);
    finish(a, 7);
    finish(b, 7);
    finish(c, 8);
    for (int i = 0; i < 4; i++) {
        assert_true(value_of(a, "w", i) == value_of(b, "w", i));
        assert_true(value_of(a, "w", i) != value_of(c, "w", i));
        assert_true(value_of(b, "w", i) != value_of(b, "before", i));
    }
    heed_params_free(a);
    heed_params_free(b);
    heed_params_free(c);
}

/* Catches: a wrong fan, a variance for a deviation, a bound that is not kept.  With n = 120000
 * draws the deviation's own error is about 1/sqrt(2n) = 0.2 %, the mean's 0.3 % of the deviation;
 * we allow five times that. */
static void initialisers_have_their_spread(void **state)
{
    (void)state;
    enum { IN = 300, OUT = 400, N = IN * OUT };
    static const struct {
        heed_init init;
        double deviation, bound;
    } rows[] = {
        {{HEED_INIT_ZERO, 9}, 0, 0},
        {{HEED_INIT_UNIFORM, 0.3}, 0.3 / 1.7320508, 0.3},
        {{HEED_INIT_NORMAL, 0.3}, 0.3, 3},
        {{HEED_INIT_XAVIER_UNIFORM, 2},
         2 * 0.0534522,
         2 * 0.0925820}, /* sqrt(2/700), sqrt(6/700) */
        {{HEED_INIT_XAVIER_NORMAL, 2}, 2 * 0.0534522, 1},
        {{HEED_INIT_KAIMING, 1}, 0.0816497, 1}, /* sqrt(2/300) */
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        heed_params *p = new_set();
        heed_tensor *w = heed_param(heed_params_scope(p), "w", HEED_SHAPE(IN, OUT), rows[k].init);
        finish(p, 3);
        const heed_real *v = heed_tensor_data(w);
        double sum = 0, squares = 0, largest = 0;
        for (int i = 0; i < N; i++) {
            sum += (double)v[i];
            squares += (double)v[i] * (double)v[i];
            largest = fmax(largest, fabs((double)v[i]));
        }
        double d = rows[k].deviation;
        assert_true(fabs(sum / N) <= 0.015 * d);
        assert_true(fabs(sqrt(squares / N) - d) <= 0.01 * d);
        assert_true(largest <= rows[k].bound * (1 + 1e-6));
        if (rows[k].init.kind == HEED_INIT_UNIFORM || rows[k].init.kind == HEED_INIT_XAVIER_UNIFORM)
            assert_true(largest >= 0.999 * rows[k].bound);
        heed_params_free(p);
    }
}

/* Catches: vectors that are not orthogonal, rows taken for columns, a lost scale. */
static void orthogonal_is_orthogonal(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {7, 7}, {40, 13}, {13, 40}, {64, 64}};
    for (size_t k = 0; k < 5; k++) {
        int64_t rows = shapes[k][0], cols = shapes[k][1], few = rows < cols ? rows : cols;
        heed_params *p = new_set();
        heed_init init = {HEED_INIT_ORTHOGONAL, 2};
        heed_tensor *w = heed_param(heed_params_scope(p), "w", HEED_SHAPE(rows, cols), init);
        finish(p, 11);
        const heed_real *q = heed_tensor_data(w);
        bool tall = rows > cols;
        for (int64_t i = 0; i < few; i++)
            for (int64_t j = 0; j < few; j++) {
                double sum = 0;
                for (int64_t n = 0; n < (tall ? rows : cols); n++)
                    sum += tall ? (double)q[n * cols + i] * (double)q[n * cols + j]
                                : (double)q[i * cols + n] * (double)q[j * cols + n];
                /* scale^2 = 4 on the diagonal; float rounding of 64 products */
                assert_true(fabs(sum - (i == j ? 4 : 0)) < 1e-5);
            }
        heed_params_free(p);
    }
}

static heed_params *tree(void)
{
    heed_params *p = new_set();
    heed_scope s = heed_scope_enter(heed_params_scope(p), "encoder");
    for (int i = 0; i < 12; i++)
        heed_param(heed_scope_enter(s, "%d", i), "w", HEED_SHAPE(3), normal);
    heed_state(heed_scope_enter(s, "1"), "mean", HEED_SHAPE(3), 0);
    heed_param(heed_params_scope(p), "encoder2", HEED_SHAPE(3), normal);
    return p;
}

/* Catches: "encoder.1" freezing "encoder.10", a frozen gradient left behind, state frozen. */
static void freezing_stops_at_the_dot(void **state)
{
    (void)state;
    heed_params *p = tree();
    finish(p, 1);
    for (int64_t i = 0; i < heed_params_size(p); i++)
        heed_params_grads(p)[i] = 1;
    assert_int_equal(heed_params_freeze(p, "encoder.1", NULL), HEED_OK);
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_param_info e = heed_params_entry(p, i);
        bool frozen = strcmp(e.name, "encoder.1.w") == 0;
        assert_int_equal(e.frozen, frozen);
        if (!e.is_state) {
            assert_int_equal(e.tensor->needs_grad, !frozen);
            assert_true(heed_tensor_grad(e.tensor)[0] == (frozen ? 0 : 1));
        }
    }
    assert_int_equal(heed_params_freeze(p, "encoder", NULL), HEED_OK);
    assert_true(heed_params_entry(p, 11).frozen);
    assert_false(heed_params_entry(p, 13).frozen); /* encoder2 */
    assert_int_equal(heed_params_thaw(p, "encoder.10.w", NULL), HEED_OK);
    assert_false(heed_params_entry(p, 10).frozen);
    assert_int_equal(heed_params_freeze(p, "", NULL), HEED_OK);
    assert_true(heed_params_entry(p, 13).frozen);
    heed_error err = {0};
    assert_int_equal(heed_params_freeze(p, "encode", &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "no parameter under 'encode'");
    heed_params_free(p);
}

static void check_range(const heed_params *p, int i, int first, int last, heed__param_range wanted)
{
    heed__param_range r = heed__params_range(p, i);
    assert_int_equal(r.begin, heed_params_entry(p, first).offset);
    int64_t line = 64 / (int64_t)sizeof(heed_real);
    assert_int_equal(r.end, heed_params_entry(p, last).offset + line);
    assert_int_equal(r.frozen, wanted.frozen);
    assert_int_equal(r.has_weight_decay, wanted.has_weight_decay);
    assert_true(r.rate_factor == wanted.rate_factor && r.weight_decay == wanted.weight_decay);
}

/* Catches: an optimiser that visits a parameter twice or not at all, or under a wrong group. */
static void ranges_are_merged_and_complete(void **state)
{
    (void)state;
    heed_params *p = tree();
    assert_int_equal(heed__params_ranges(p), 0);
    finish(p, 1);
    const heed__param_range plain = {.rate_factor = 1};
    assert_int_equal(heed__params_ranges(p), 1);
    check_range(p, 0, 0, 13, plain);

    heed_group slow = {0.5, 0}, decayed = {2, 0.01};
    heed_params_set_group(p, "encoder.1", slow, NULL);
    heed_params_set_group(p, "encoder.2", slow, NULL);
    heed_params_set_group(p, "encoder2", slow, NULL);
    heed_params_set_group(p, "encoder2", decayed, NULL); /* the later one wins */
    heed_params_freeze(p, "encoder.5", NULL);
    assert_int_equal(heed__params_ranges(p), 6);
    check_range(p, 0, 0, 0, plain);
    check_range(p, 1, 1, 2, (heed__param_range){.rate_factor = 0.5, .has_weight_decay = true});
    check_range(p, 2, 3, 4, plain);
    check_range(p, 3, 5, 5, (heed__param_range){.rate_factor = 1, .frozen = true});
    check_range(p, 4, 6, 11, plain);
    check_range(
        p, 5, 13, 13,
        (heed__param_range){.rate_factor = 2, .weight_decay = 0.01, .has_weight_decay = true});
    for (int i = 1; i < 6; i++)
        assert_int_equal(heed__params_range(p, i).begin, heed__params_range(p, i - 1).end);
    assert_int_equal(heed__params_range(p, 5).end, heed_params_size(p));

    heed_params_thaw(p, "", NULL);
    heed_params_set_group(p, "", slow, NULL);
    assert_int_equal(heed__params_ranges(p), 1);
    heed_error err = {0};
    assert_int_equal(heed_params_set_group(p, "decoder", slow, &err), HEED_ARGUMENT);
    heed_params_free(p);
}

/* Catches: a frozen layer that blocks the gradient of what lies before it, or collects one. */
static void gradients_flow_through_a_frozen_layer(void **state)
{
    (void)state;
    heed_params *p = new_set();
    heed_linear_layer first, second;
    heed_linear_build(&first, heed_scope_enter(heed_params_scope(p), "first"), 3, 4, HEED_TANH,
                      true);
    heed_linear_build(&second, heed_scope_enter(heed_params_scope(p), "second"), 4, 1,
                      HEED_IDENTITY, true);
    finish(p, 5);
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_real x[3] = {1, -2, 0.5}, free_grad[12];
    for (int frozen = 0; frozen < 2; frozen++) {
        if (frozen)
            heed_params_freeze(p, "second", NULL);
        heed_params_zero_grads(p);
        heed_tape_reset(t);
        heed_tensor *y = heed_linear_apply(t, &first, heed_input(t, HEED_SHAPE(1, 3), x));
        heed_backward(t, heed_linear_apply(t, &second, y));
        assert_string_equal(heed_tape_error(t)->text, "");
        const heed_real *grad = heed_tensor_grad(first.weight);
        for (int i = 0; i < 12; i++) {
            assert_true(grad[i] != 0);
            if (frozen)
                assert_true(grad[i] == free_grad[i]);
        }
        memcpy(free_grad, grad, sizeof free_grad);
        for (int i = 0; i < 4; i++)
            assert_int_equal(heed_tensor_grad(second.weight)[i] == 0, frozen);
    }
    heed_tape_free(t);
    heed_params_free(p);
}

/* Catches: a crash where an error belongs. */
static void a_layer_of_an_unfinished_set_is_refused(void **state)
{
    (void)state;
    heed_params *p = new_set();
    heed_linear_layer l;
    heed_linear_build(&l, heed_scope_enter(heed_params_scope(p), "out"), 3, 4, HEED_IDENTITY, true);
    heed_tape *t = heed_tape_new(NULL, NULL);
    assert_null(heed_linear_apply(t, &l, heed_input(t, HEED_SHAPE(1, 3), NULL)));
    assert_int_equal(heed_tape_error(t)->status, HEED_STATE);
    assert_string_equal(heed_tape_error(t)->text,
                        "linear: 'out.weight' has no values yet: call heed_params_finish first");
    heed_tape_free(t);
    heed_params_free(p);
}

/* Catches: a leak or a crash when the n-th allocation fails, for every n. */
static void any_allocation_may_fail(void **state)
{
    (void)state;
    bool finished = false;
    for (int n = 1; !finished; n++) {
        assert_true(n < 100);
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_params *p = heed_params_new(&a, &err);
        if (p) {
            heed_scope s = heed_scope_enter(heed_params_scope(p), "deep.%s", "scope");
            for (int i = 0; i < 70; i++)
                heed_param(heed_scope_enter(s, "%d", i), "w", HEED_SHAPE(30, 30),
                           (heed_init){HEED_INIT_ORTHOGONAL, 1});
            heed_state(s, "mean", HEED_SHAPE(3), 0);
            finished = heed_params_finish(p, 1, &err) == HEED_OK;
            heed_params_freeze(p, "", NULL);
            heed_params_free(p);
        }
        assert_int_equal(err.status, finished ? HEED_OK : HEED_MEMORY);
        assert_int_equal(f.held, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_layout),
        cmocka_unit_test(no_set_no_tape),
        cmocka_unit_test(first_error_sticks),
        cmocka_unit_test(nothing_after_finish),
        cmocka_unit_test(empty_set),
        cmocka_unit_test(start_depends_on_seed_and_name_alone),
        cmocka_unit_test(initialisers_have_their_spread),
        cmocka_unit_test(orthogonal_is_orthogonal),
        cmocka_unit_test(freezing_stops_at_the_dot),
        cmocka_unit_test(ranges_are_merged_and_complete),
        cmocka_unit_test(gradients_flow_through_a_frozen_layer),
        cmocka_unit_test(a_layer_of_an_unfinished_set_is_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
