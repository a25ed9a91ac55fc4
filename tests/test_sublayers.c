/* Sublayers of sets: gradients of the whole block, rows that may stand in any order, segments that
 * change nothing of each other, and what a stack carries. */
#include "layer_check.h"
#include <heed/stack.h>

enum { D = 8, ROWS = 9, B = 3, POINTS = 3, LAYERS = 2 };
static const int64_t lengths[B] = {4, 0, 5};

struct setting {
    heed_params *p;
    heed_arena *arena;
    heed_stack stack;
    heed_tensor *x;
    const int32_t *order; /* of the rows; NULL: as they are */
};

static struct setting setting_new(int kind)
{
    struct setting s = {.p = heed_params_new(NULL, NULL), .arena = heed_arena_new(NULL, NULL)};
    heed_scope root = heed_params_scope(s.p);
    heed_sublayer_options o = {.mha = {.heads = 2, .memory = HEED_ONE(kind, {POINTS})},
                               .ffn = {.f = 6, .activation = HEED_TANH, .bias = true},
                               .around = {.place = HEED_NORM_AFTER, .eps = 1e-5, .residual = true}};
    s.x = heed_param(root, "x", HEED_SHAPE(ROWS, D), (heed_init){HEED_INIT_NORMAL, 1});
    heed_stack_init(&s.stack, s.arena, D);
    for (o.layer = 0; o.layer < LAYERS; o.layer++)
        heed_stack_append(&s.stack, heed_scope_enter(root, "%d", o.layer),
                          heed_sublayer_class_of(&o.mha), &o);
    heed_error err = {0};
    if (heed_params_finish(s.p, 7, &err))
        fail_msg("%s", err.text);
    return s;
}

static void setting_free(struct setting *s)
{
    heed_params_free(s->p);
    heed_arena_free(s->arena);
}

static heed_tensor *forward(heed_tape *t, const struct setting *s, const int64_t *length, int count)
{
    const heed_segments *rows = heed_segments_new(heed_tape_arena(t), count, length);
    heed_tensor *x = s->order ? heed_gather_rows(t, s->x, s->order, ROWS) : s->x;
    heed_flow flow = {.x = heed_slice_rows(t, x, 0, rows->rows), .rows = rows};
    heed_tensor *y = heed_stack_apply(t, &s->stack, &flow);
    if (!y)
        fail_msg("%s", heed_tape_error(t)->text);
    return y;
}

static int run_stack(heed_tape *t, void *context, heed_tensor **out)
{
    out[0] = forward(t, context, lengths, B);
    return 1;
}

/* Catches: a part without its gradient, P that is not the next layer's. */
static void blocks_have_their_gradients(void **state)
{
    (void)state;
    for (int kind = HEED_MEMORY_ISAB; kind <= HEED_MEMORY_LUNA; kind++) {
        struct setting s = setting_new(kind);
        if (kind == HEED_MEMORY_LUNA) /* what the last layer carries, nobody reads */
            assert_int_equal(heed_params_freeze(s.p, "1.packed", NULL), HEED_OK);
        layer_check(s.p, run_stack, &s);
        setting_free(&s);
    }
}

/* Catches: a row that depends on where it stands, or on another sequence. */
static void sets_have_no_order(void **state)
{
    static const int32_t order[ROWS] = {2, 0, 3, 1, 8, 4, 7, 5, 6};
    (void)state;
    for (int kind = HEED_MEMORY_ISAB; kind <= HEED_MEMORY_LUNA; kind++) {
        struct setting s = setting_new(kind);
        heed_tape *t = heed_tape_new(NULL, NULL);
        heed_tensor *y = forward(t, &s, lengths, B), *alone = forward(t, &s, lengths, 1);
        assert_memory_equal(heed_tensor_data(y), heed_tensor_data(alone),
                            (size_t)heed_tensor_count(alone) * sizeof(heed_real));
        s.order = order;
        heed_tensor *moved = forward(t, &s, lengths, B);
        for (int i = 0; i < ROWS; i++)
            for (int d = 0; d < D; d++)
                assert_true(fabs((double)heed__row(moved, i)[d] -
                                 (double)heed__row(y, order[i])[d]) < 1e-5);
        heed_tape_free(t);
        setting_free(&s);
    }
}

/* Catches: a block that ignores its points: with others it must give others. */
static void points_matter(void **state)
{
    static const char *const names[] = {"0.points", "0.start"};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct setting s = setting_new(HEED_MEMORY_ISAB + kind);
        heed_tape *t = heed_tape_new(NULL, NULL);
        heed_tensor *points = heed_params_find(s.p, names[kind]);
        assert_non_null(points);
        assert_int_equal(heed_tensor_rows(points), POINTS);
        assert_null(heed_params_find(s.p, "1.start")); /* carried */
        const double before = (double)heed_tensor_data(forward(t, &s, lengths, B))[0];
        for (int64_t i = 0; i < heed_tensor_count(points); i++)
            heed_tensor_data(points)[i] += (heed_real)(i % 3);
        assert_true(fabs((double)heed_tensor_data(forward(t, &s, lengths, B))[0] - before) > 1e-4);
        heed_tape_free(t);
        setting_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_their_gradients),
        cmocka_unit_test(sets_have_no_order),
        cmocka_unit_test(points_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
