/* Every operator's cases, spoiled one input at a time: absent, empty, a size more or less, an axis
 * more or less.  Nothing may crash; what is refused is refused in words that name the operator,
 * what was found and what was wanted; and the tape works again afterwards. */
#include "ops/list.h"
#include "tensor/op.h"
#include <heed/ops.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DECLARE(name) extern const heed_op heed__op_##name;
HEED_OP_LIST(DECLARE)
static const heed_op *const all[] = {
#define ROW(name) &heed__op_##name,
    HEED_OP_LIST(ROW)};

enum spoil { ABSENT, NO_ROWS, NO_COLS, ROW_MORE, COL_MORE, COL_LESS, AXIS_MORE, AXIS_LESS, SPOILS };

/* These read an array of the caller's with an entry for every row: more rows than the case has
 * entries would be the test's own mistake. */
static bool reads_by_row(const heed_op *op)
{
    static const char *const names[] = {"cross_entropy", "project_cross_entropy", "select",
                                        "scatter_rows"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op->name, names[i]) == 0)
            return true;
    return false;
}

/* False if this cannot be done to the shape. */
static bool spoil_shape(heed_shape *s, enum spoil how)
{
    switch (how) {
    case NO_ROWS:
        s->dim[0] = 0;
        return s->rank > 1;
    case NO_COLS:
        s->dim[s->rank - 1] = 0;
        return true;
    case ROW_MORE:
        s->dim[0]++;
        return s->rank > 1;
    case COL_MORE:
        s->dim[s->rank - 1]++;
        return true;
    case COL_LESS:
        return --s->dim[s->rank - 1] > 0;
    case AXIS_MORE:
        memmove(s->dim + 1, s->dim, 3 * sizeof *s->dim);
        s->dim[0] = 1;
        return s->rank++ < HEED_MAX_RANK;
    case AXIS_LESS:
        memmove(s->dim, s->dim + 1, 3 * sizeof *s->dim);
        return --s->rank > 0;
    default:
        return true;
    }
}

/* Runs the case with input `which` spoiled (none if < 0), backward too where there is something to
 * walk. */
static heed_status run_spoiled(heed_tape *t, const heed_op *op, const heed_opcase *c, int which,
                               enum spoil how)
{
    heed_tensor *in[HEED_CASE_IN] = {0}, *out[HEED_MAX_OUT] = {0};
    heed_tape_reset(t);
    for (int i = 0; i < HEED_CASE_IN && c->in[i].rank; i++) {
        heed_shape s = c->in[i];
        if (i == which && (how == ABSENT || !spoil_shape(&s, how)))
            continue;
        in[i] = heed_variable(t, s, NULL);
        assert_non_null(in[i]);
        for (int64_t j = 0; j < heed_tensor_count(in[i]); j++)
            heed_tensor_data(in[i])[j] = (heed_real)(1 + 0.1 * (double)(j % 7));
    }
    op->run(t, c, in, out);
    if (out[0])
        heed_backward(t, heed_sum(t, out[0], HEED_ALL));
    return heed_tape_error(t)->status;
}

static bool is_named(const char *text, const char *name)
{
    size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == ':';
}

/* False, and the text shown, if it does not say whose mistake it was and what was expected. */
static bool is_said_well(const heed_tape *t, const heed_op *op, const heed_opcase *c, int which,
                         enum spoil how)
{
    const heed_error *e = heed_tape_error(t);
    /* A case of linear scales its bias first. */
    bool named = is_named(e->text, op->name) || is_named(e->text, "scale");
    bool wanted = e->status != HEED_SHAPE_ERROR ||
                  (strstr(e->text, " expected ") && strpbrk(e->text, "0123456789"));
    if (!named || !wanted)
        print_message("%s, '%s', input %d, spoil %d: the text is '%s'\n", op->name, c->what,
                      which + 1, (int)how, e->text);
    return named && wanted;
}

/* Catches: an operator that reads beyond an input of another shape, divides by an empty one,
 * crashes on NULL, says nothing of use, or leaves the tape broken. */
static void every_input_of_every_operator(void **state)
{
    int refused = 0, unclear = 0, ran = 0;
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 2}, NULL);
    (void)state;
    for (size_t o = 0; o < sizeof all / sizeof *all; o++)
        for (int n = 0; n < all[o]->n_cases; n++) {
            const heed_opcase *c = &all[o]->cases[n];
            for (int i = 0; i < HEED_CASE_IN && c->in[i].rank; i++)
                for (int how = 0; how < SPOILS; how++, ran++) {
                    if (how == ROW_MORE && reads_by_row(all[o]))
                        continue;
                    if (run_spoiled(t, all[o], c, i, (enum spoil)how)) {
                        unclear += !is_said_well(t, all[o], c, i, (enum spoil)how);
                        refused++;
                    }
                }
            if (run_spoiled(t, all[o], c, -1, ABSENT))
                fail_msg("%s, '%s' afterwards: %s", all[o]->name, c->what,
                         heed_tape_error(t)->text);
        }
    print_message("%d spoiled calls, %d refused\n", ran, refused);
    assert_int_equal(unclear, 0);
    assert_true(refused > ran / 4);
    heed_tape_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_of_every_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
