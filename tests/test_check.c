/* The gradient check on trial: an operator that is right must pass, and each of the ways to get one
 * wrong must be refused, by the variation that is there for it. */
#include "tensor/tape.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What is wrong with y = a b, element by element. */
enum mistake {
    NONE,
    FACTOR,             /* a derivative that is nearly right */
    NOT_A_NUMBER,       /* NaN in the first of several numbers */
    FORGETS_AN_INPUT,   /* db is never written */
    VANISHES,           /* nothing to be right about */
    ASSIGNS,            /* = for += */
    SPOILS_SAVED,       /* the second walk finds what the first has used up */
    WANTED_OR_NOT,      /* writes da even if nobody wants it */
    ONLY_IF_BOTH,       /* writes da only if db is wanted as well */
    PACKED_FORWARD,     /* forward takes every input for contiguous */
    PACKED_BACKWARD,    /* backward does */
    BESIDE_THE_SLICE,   /* writes where the next slice's gradient is */
    READS_BEFORE_ADDING /* loses one of two contributions to the same tensor */
};
static enum mistake mistake;

/* The forward lines' smallest detectable error: the harness asks for 1e-8 in double, 1e-2 in
 * float. */
#ifdef HEED_DOUBLE
static const real factor = (real)1.001;
#else
static const real factor = (real)1.05;
#endif

static heed_status shape(heed_opcall *c)
{
    heed_status status = heed__out(c, c->in[0]->shape);
    return status ? status : heed__save(c, sizeof(real));
}

static void forward(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    heed_tensor *y = c->out[0];
    *(real *)c->saved = 1;
    for (int64_t i = 0; i < y->rows * y->cols; i++) {
        int64_t row = i / y->cols, col = i % y->cols;
        real p = mistake == PACKED_FORWARD ? a->data[i] : heed__row(a, row)[col];
        y->data[i] = mistake == VANISHES ? 1 : p * heed__row(b, row)[col];
    }
}

/* Where element i of input n's gradient is. */
static real *place(heed_opcall *c, int n, int64_t i)
{
    const heed_tensor *x = c->in[n];
    int64_t at = mistake == PACKED_BACKWARD ? i : i / x->cols * x->ld + i % x->cols;
    return heed__grad(c, n) + at;
}

/* da = dy b, db = dy a */
static void backward(heed_opcall *c)
{
    const heed_tensor *a = c->in[0], *b = c->in[1];
    const real *dy = heed__out_grad(c, 0);
    bool first = heed__wants(c, 0), second = heed__wants(c, 1);
    if (mistake == WANTED_OR_NOT)
        first = true;
    if (mistake == ONLY_IF_BOTH)
        first = first && second;
    real scale = *(real *)c->saved * (mistake == FACTOR ? factor : 1);
    if (mistake == SPOILS_SAVED)
        *(real *)c->saved = 0;
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        int64_t row = i / a->cols, col = i % a->cols;
        real da = scale * dy[i] * heed__row(b, row)[col], db = dy[i] * heed__row(a, row)[col];
        if (mistake == NOT_A_NUMBER && i == 0)
            da = (real)NAN;
        if (mistake == VANISHES)
            da = db = 0;
        if (mistake == FORGETS_AN_INPUT)
            second = false;
        real before = second ? *place(c, 1, i) : 0;
        if (first)
            *place(c, 0, i) = mistake == ASSIGNS ? da : *place(c, 0, i) + da;
        if (second)
            *place(c, 1, i) = (mistake == READS_BEFORE_ADDING ? before : *place(c, 1, i)) + db;
        if (mistake == BESIDE_THE_SLICE && first && a->ld > a->cols && col == a->cols - 1)
            place(c, 0, i)[1] += da;
    }
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out);
static const heed_opcase cases[] = {
    {.what = "on trial", .in = {HEED_DIMS2(3, 5), HEED_DIMS2(3, 5)}}};
HEED_OP(on_trial, "y = a b", shape, forward, backward, cases, run);

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed__first(heed__apply(t, &heed__op_on_trial, in, 2, 0, NULL, 0));
}

static heed_check_result check(enum mistake m)
{
    heed_check_result result;
    heed_error err = {0};
    mistake = m;
    assert_int_equal(heed__check_case(&heed__op_on_trial, cases, 1, &result, &err), HEED_OK);
    return result;
}

/* Catches: a check that refuses what is right; without it the next test proves nothing. */
static void the_right_one_passes(void **state)
{
    (void)state;
    heed_check_result result = check(NONE);
    if (!result.passed)
        fail_msg("%s", result.text);
    assert_true(result.error <= result.tolerance);
}

/* Catches: a check, or one of its variations, that lets its mistake through. */
static void each_mistake_is_refused(void **state)
{
    static const struct {
        enum mistake mistake;
        const char *text; /* how the refusal begins */
    } rows[] = {
        {FACTOR, "plain: the gradient of input 1 is off by 0.0"},
        {NOT_A_NUMBER, "plain: the gradient of input 1 is off by nan"},
        {FORGETS_AN_INPUT, "plain: the gradient of input 2 is off by 1"},
        {VANISHES, "plain: the gradient of input 1 vanishes, the case proves nothing"},
        {ASSIGNS, "input 1 has a gradient that is not added to what is there"},
        {SPOILS_SAVED, "input 1 has a gradient that is not added to what is there"},
        {WANTED_OR_NOT, "input 1 gets a gradient though it needs none"},
        {ONLY_IF_BOTH, "input 1 gets another gradient when one needs none"},
        {PACKED_FORWARD, "input 1 or another as a column slice gives another output"},
        {PACKED_BACKWARD, "input 1 as a column slice is written beside it"},
        {BESIDE_THE_SLICE, "input 1 as a column slice is written beside it"},
        {READS_BEFORE_ADDING, "with input 2 = input 1: the gradient of input 1 is off by"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heed_check_result result = check(rows[i].mistake);
        if (result.passed || strncmp(result.text, rows[i].text, strlen(rows[i].text)) != 0)
            fail_msg("mistake %d: %s, '%s', expected '%s'", (int)rows[i].mistake,
                     result.passed ? "passed" : "refused", result.text, rows[i].text);
    }
}

/* Catches: a case that cannot be run taken for one that passed. */
static void a_case_that_fails_is_no_proof(void **state)
{
    static const heed_opcase broken = {.what = "no second input", .in = {HEED_DIMS2(3, 5)}};
    heed_check_result result;
    heed_error err = {0};
    (void)state;
    assert_int_equal(heed__check_case(&heed__op_on_trial, &broken, 1, &result, &err), HEED_OK);
    assert_false(result.passed);
    assert_string_equal(result.text, "on_trial: input 2 is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_one_passes),
        cmocka_unit_test(each_mistake_is_refused),
        cmocka_unit_test(a_case_that_fails_is_no_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
