/* The tape: what it refuses and how, what survives a mistake, where gradients go. */
#include <heed/heed.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const heed_real six[6] = {1, 2, 3, 4, 5, 6};

static void expect_error(heed_tape *t, heed_status status, const char *text)
{
    assert_int_equal(heed_tape_error(t)->status, status);
    assert_string_equal(heed_tape_error(t)->text, text);
}

/* Catches: an operator that crashes on NULL, a second error that hides the first, a tape that stays
 * broken. */
static void the_first_error_stays(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *a = heed_input(t, HEED_SHAPE(2, 3), six),
                *b = heed_input(t, HEED_SHAPE(3, 2), six);
    heed_tensor *y = heed_matmul(t, a, a, HEED_NN);
    assert_null(y);
    heed_error first = *heed_tape_error(t);
    assert_int_equal(first.status, HEED_SHAPE_ERROR);
    assert_non_null(strstr(first.text, "matmul"));
    assert_non_null(strstr(first.text, "(2,3)"));
    y = heed_softmax(t, heed_relu(t, heed_add(t, y, b)));
    assert_null(y);
    assert_null(heed_add(t, a, b));
    assert_string_equal(heed_tape_error(t)->text, first.text);
    assert_int_equal(heed_backward(t, y), HEED_SHAPE_ERROR);

    heed_tape_reset(t);
    assert_int_equal(heed_tape_error(t)->status, HEED_OK);
    heed_tensor *x = heed_variable(t, HEED_SHAPE(2, 3), six);
    assert_int_equal(heed_backward(t, heed_sum(t, x, HEED_ALL)), HEED_OK);
    for (int i = 0; i < 6; i++)
        assert_true(heed_tensor_grad(x)[i] == 1);
    heed_tape_free(t);
}

/* Catches: a NULL input that is not named. */
static void null_inputs_are_named(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    assert_null(heed_add(t, heed_input(t, HEED_SHAPE(6), six), NULL));
    expect_error(t, HEED_ARGUMENT, "add: input 2 is NULL");
    heed_tape_reset(t);
    assert_int_equal(heed_backward(t, NULL), HEED_ARGUMENT);
    expect_error(t, HEED_ARGUMENT, "backward: loss is NULL");
    heed_tape_free(t);
}

/* Catches: sizes that overflow, also behind a 0, negative ones, ranks out of range. */
static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    assert_null(heed_input(t, HEED_SHAPE(INT64_MAX, 4), NULL));
    assert_int_equal(heed_tape_error(t)->status, HEED_SHAPE_ERROR);
    assert_non_null(strstr(heed_tape_error(t)->text, "(9223372036854775807,4)"));
    heed_tape_reset(t);
    assert_null(heed_input(t, HEED_SHAPE(-1, 4), NULL));
    assert_int_equal(heed_tape_error(t)->status, HEED_SHAPE_ERROR);
    heed_tape_reset(t);
    assert_null(heed_input(t, (heed_shape){9, {1, 1, 1, 1}}, NULL));
    assert_int_equal(heed_tape_error(t)->status, HEED_SHAPE_ERROR);
    heed_tape_reset(t);
    assert_null(heed_input(t, HEED_SHAPE(INT64_C(1) << 62, 0), NULL));
    assert_int_equal(heed_tape_error(t)->status, HEED_SHAPE_ERROR);
    heed_tape_reset(t);
    assert_null(heed_input(t, HEED_SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40), NULL));
    assert_int_equal(heed_tape_error(t)->status, HEED_SHAPE_ERROR);
    heed_tape_reset(t);
    assert_null(heed_input(t, HEED_SHAPE(INT64_C(1) << 40, 1 << 10), NULL));
    assert_int_equal(heed_tape_error(t)->status, HEED_MEMORY);
    heed_tape_free(t);
}

/* Catches: an operator that divides by, or reads beyond, an empty tensor. */
static void empty_tensors_do_no_harm(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *x = heed_variable(t, HEED_SHAPE(0, 3), NULL);
    heed_tensor *w = heed_variable(t, HEED_SHAPE(3, 2), six);
    heed_tensor *gain = heed_variable(t, HEED_SHAPE(2), six);
    heed_tensor *y = heed_linear(t, x, w, NULL, HEED_RELU);
    y = heed_layer_norm(t, heed_softmax(t, y), gain, NULL, 1e-5);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 0, NULL);
    y = heed_attention(t, y, y, y, s, s, &(heed_attention_options){.heads = 1});
    heed_tensor *loss = heed_sum(t, y, HEED_ALL);
    if (heed_backward(t, loss))
        fail_msg("%s", heed_tape_error(t)->text);
    assert_true(heed_tensor_data(loss)[0] == 0);
    for (int i = 0; i < 6; i++)
        assert_true(heed_tensor_grad(w)[i] == 0);
    heed_tape_free(t);
}

/* Catches: gradients through memory that is not the tape's any more, whether another step has begun
 * or not. */
static void a_loss_of_a_step_that_is_over(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    for (int begun = 0; begun < 2; begun++) {
        heed_tensor *loss = heed_sum(t, heed_variable(t, HEED_SHAPE(2, 3), six), HEED_ALL);
        heed_tape_reset(t);
        heed_tensor *x = begun ? heed_variable(t, HEED_SHAPE(60, 3), NULL) : NULL;
        if (begun)
            heed_square(t, x);
        assert_int_equal(heed_backward(t, loss), HEED_STATE);
        expect_error(t, HEED_STATE,
                     "backward: loss was not recorded from any parameter or variable since the "
                     "tape was reset");
        for (int i = 0; x && i < 180; i++)
            assert_true(heed_tensor_grad(x)[i] == 0);
        heed_tape_reset(t);
    }
    heed_tensor *loss = heed_sum(t, heed_variable(t, HEED_SHAPE(2, 3), six), HEED_ALL);
    assert_int_equal(heed_backward(t, loss), HEED_OK); /* a reset makes it good again */
    heed_tape_free(t);
}

/* Catches: a loss of several numbers, or of none that is trained, taken without a word. */
static void backward_wants_one_recorded_number(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *x = heed_variable(t, HEED_SHAPE(2, 3), six);
    assert_int_equal(heed_backward(t, heed_relu(t, x)), HEED_SHAPE_ERROR);
    expect_error(t, HEED_SHAPE_ERROR, "backward: loss is (2,3), expected a single number");
    heed_tape_reset(t);
    heed_tensor *loss = heed_sum(t, heed_input(t, HEED_SHAPE(2, 3), six), HEED_ALL);
    assert_int_equal(heed_backward(t, loss), HEED_STATE);
    heed_tape_reset(t);
    heed_tape_set_recording(t, false);
    loss = heed_sum(t, heed_variable(t, HEED_SHAPE(2, 3), six), HEED_ALL);
    assert_int_equal(heed_backward(t, loss), HEED_STATE);
    heed_tape_free(t);
}

/* Catches: a stop that lets gradients through; a view whose gradient goes astray; a tensor used
 * twice counted once. */
static void gradients_go_where_they_should(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *x = heed_variable(t, HEED_SHAPE(2, 3), six);
    heed_tensor *left = heed_slice_cols(t, x, 0, 2), *stopped = heed_stop_gradient(t, x);
    heed_tensor *loss = heed_add(t, heed_sum(t, heed_mul(t, left, left), HEED_ALL),
                                 heed_sum(t, heed_mul(t, stopped, x), HEED_ALL));
    assert_int_equal(heed_backward(t, loss), HEED_OK);
    static const heed_real expected[6] = {1 + 2, 2 + 4, 3, 4 + 8, 5 + 10, 6};
    for (int i = 0; i < 6; i++)
        assert_true(heed_tensor_grad(x)[i] == expected[i]);
    heed_tape_free(t);
}

/* Catches: parameters that train though frozen, and gradients that stop at them. */
static void gradients_flow_through_frozen_parameters(void **state)
{
    (void)state;
    heed_params *p = heed_params_new(NULL, NULL);
    heed_linear_layer first, second;
    heed_linear_build(&first, heed_scope_enter(heed_params_scope(p), "first"), 3, 3, HEED_TANH,
                      true);
    heed_linear_build(&second, heed_scope_enter(heed_params_scope(p), "second"), 3, 1,
                      HEED_IDENTITY, true);
    assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
    assert_int_equal(heed_params_freeze(p, "second", NULL), HEED_OK);
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *y = heed_linear_apply(
        t, &second, heed_linear_apply(t, &first, heed_input(t, HEED_SHAPE(2, 3), six)));
    assert_int_equal(heed_backward(t, heed_sum(t, y, HEED_ALL)), HEED_OK);
    double moved = 0, frozen = 0;
    for (int i = 0; i < 9; i++)
        moved += heed_tensor_grad(first.weight)[i] != 0;
    for (int i = 0; i < 3; i++)
        frozen += heed_tensor_grad(second.weight)[i] != 0;
    assert_true(moved > 0);
    assert_true(frozen == 0);
    assert_int_equal(heed_params_thaw(p, "second", NULL), HEED_OK);
    heed_tape_reset(t);
    y = heed_linear_apply(t, &second,
                          heed_linear_apply(t, &first, heed_input(t, HEED_SHAPE(2, 3), six)));
    assert_int_equal(heed_backward(t, heed_sum(t, y, HEED_ALL)), HEED_OK);
    assert_true(heed_tensor_grad(second.weight)[0] != 0);
    heed_tape_free(t);
    heed_params_free(p);
}

struct lines {
    int count;
    char text[8][160];
};

static void keep_line(void *context, heed_log_level level, const char *line)
{
    struct lines *l = context;
    assert_int_equal(level, HEED_LOG_INFO);
    assert_true(l->count < 8);
    snprintf(l->text[l->count++], sizeof *l->text, "%s", line);
}

/* Catches: a profile that leaves out an operator or counts wrongly, or one that nobody asked for.
 */
static void the_profile_names_each_operator(void **state)
{
    (void)state;
    for (int on = 0; on < 2; on++) {
        struct lines l = {0};
        assert_int_equal(setenv("HEED_PROFILE", on ? "1" : "0", 1), 0);
        heed_tape *t = heed_tape_new(&(heed_tape_options){.log = {keep_line, &l}}, NULL);
        unsetenv("HEED_PROFILE");
        heed_tensor *x = heed_variable(t, HEED_SHAPE(2, 3), six);
        for (int i = 0; i < 5; i++)
            x = heed_tanh(t, x);
        assert_int_equal(heed_backward(t, heed_sum(t, x, HEED_ALL)), HEED_OK);
        heed_tape_free(t);
        assert_int_equal(l.count, on ? 3 : 0);
        if (!on)
            continue;
        assert_non_null(strstr(l.text[0], "forward"));
        int tanh_line = strncmp(l.text[1], "tanh ", 5) == 0 ? 1 : 2;
        char name[16];
        int calls = 0;
        assert_int_equal(sscanf(l.text[tanh_line], "%15s %d", name, &calls), 2);
        assert_string_equal(name, "tanh");
        assert_int_equal(calls, 5);
        assert_int_equal(strncmp(l.text[3 - tanh_line], "sum ", 4), 0);
    }
}

/* Catches: an operator that is asked in backward for a gradient that forward made no room for. */
static void thawing_waits_for_the_next_call(void **state)
{
    (void)state;
    heed_params *p = heed_params_new(NULL, NULL);
    heed_scope s = heed_params_scope(p);
    heed_tensor *h = heed_param(s, "h", HEED_SHAPE(3, 2), (heed_init){HEED_INIT_NORMAL, 1});
    heed_tensor *w = heed_param(s, "w", HEED_SHAPE(4, 2), (heed_init){HEED_INIT_NORMAL, 1});
    assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
    assert_int_equal(heed_params_freeze(p, "h", NULL), HEED_OK);
    heed_tape *t = heed_tape_new(NULL, NULL);
    static const int32_t targets[3] = {0, 1, 3};
    heed_tensor *loss = heed_project_cross_entropy(t, h, w, NULL, targets, 0, 1, NULL);
    assert_int_equal(heed_params_thaw(p, "h", NULL), HEED_OK);
    assert_int_equal(heed_backward(t, loss), HEED_OK);
    assert_true(heed_tensor_grad(h)[0] == 0);
    assert_true(heed_tensor_grad(w)[0] != 0);
    heed_tape_free(t);
    heed_params_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_error_stays),
        cmocka_unit_test(null_inputs_are_named),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(empty_tensors_do_no_harm),
        cmocka_unit_test(a_loss_of_a_step_that_is_over),
        cmocka_unit_test(backward_wants_one_recorded_number),
        cmocka_unit_test(gradients_go_where_they_should),
        cmocka_unit_test(gradients_flow_through_frozen_parameters),
        cmocka_unit_test(thawing_waits_for_the_next_call),
        cmocka_unit_test(the_profile_names_each_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
