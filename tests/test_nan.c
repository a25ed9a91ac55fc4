/* test_nan.c: a NaN is not lost in an operator that takes the largest of several numbers: what a
 * broken weight makes must reach the loss, where it is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <heed/heed.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 70 };

static heed_tape *tape;
static heed_real numbers[MOST * MOST];

/* (rows,cols) of small numbers with one NaN. */
static heed_tensor *with_nan(int64_t rows, int64_t cols, int64_t at)
{
    heed_tape_reset(tape);
    for (int64_t i = 0; i < rows * cols; i++)
        numbers[i] = (heed_real)(i * 7 % 11 - 5);
    numbers[at] = (heed_real)NAN;
    return heed_input(tape, HEED_SHAPE(rows, cols), numbers);
}

/* The NaN stands in y[at], and nowhere else. */
static void only_nan(heed_tensor *y, int64_t at, const char *what)
{
    if (!y)
        fail_msg("%s: %s", what, heed_tape_error(tape)->text);
    for (int64_t i = 0; i < heed_tensor_count(y); i++)
        if (!isnan(heed_tensor_data(y)[i]) != (i != at))
            fail_msg("%s: number %d of %d is %g", what, (int)i, (int)heed_tensor_count(y),
                     (double)heed_tensor_data(y)[i]);
}

/* Rows of every length that fills registers or does not, the NaN in every place. */
static void maxima(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= MOST; n += n < 40 ? 1 : 15)
        for (int64_t at = 0; at < n; at++) {
            only_nan(heed_max(tape, with_nan(1, n, at), HEED_ALL), 0, "max of all");
            only_nan(heed_max(tape, with_nan(3, n, n + at), HEED_COLS), 1, "max of columns");
            only_nan(heed_max(tape, with_nan(n, 5, at * 5 + 2), HEED_ROWS), 2, "max of rows");
            only_nan(heed_maxout(tape, with_nan(3, 2 * n, 2 * n + at), n), 2, "maxout");
            only_nan(heed_top_k(tape, with_nan(2, n, n + at), n < 4 ? n : 4, NULL), n < 4 ? n : 4,
                     "top_k");
            heed_tensor *x = with_nan(n + 2, 3, (1 + at) * 3 + 1);
            const heed_segments *s =
                heed_segments_new(heed_tape_arena(tape), 3, (const int64_t[]){1, n, 1});
            only_nan(heed_segment_max(tape, x, s), 4, "segment max");
        }
}

/* The place that a maximum came from, which its gradient goes to, is the NaN's. */
static void places(void **state)
{
    (void)state;
    for (int64_t at = 0; at < 20; at++) {
        const int32_t *column;
        heed_tensor *x = with_nan(1, 20, at);
        assert_non_null(heed_top_k(tape, x, 20, &column));
        assert_int_equal(column[0], at);
        bool seen[20] = {false}; /* and each of the others is there once, in order */
        for (int i = 0; i < 20; i++) {
            assert_false(seen[column[i]]);
            seen[column[i]] = true;
            if (i > 1)
                assert_true(numbers[column[i]] <= numbers[column[i - 1]]);
        }
        heed_tape_reset(tape);
        heed_tensor *v = heed_variable(tape, HEED_SHAPE(1, 20), numbers);
        assert_int_equal(heed_backward(tape, heed_max(tape, v, HEED_ALL)), HEED_OK);
        for (int64_t i = 0; i < 20; i++)
            assert_true(heed_tensor_grad(v)[i] == (i == at));
    }
}

/* Also where everything else is masked. */
static void softmaxes(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 40; n++)
        for (int64_t at = 0; at < n; at++)
            for (int masked = 0; masked < 2; masked++) {
                with_nan(1, n, at);
                for (int64_t i = 0; masked && i < n; i++)
                    numbers[i] = i == at ? (heed_real)NAN : (heed_real)-INFINITY;
                heed_tensor *x = heed_input(tape, HEED_SHAPE(1, n), numbers);
                heed_tensor *sums[] = {heed_sum(tape, heed_softmax(tape, x), HEED_ALL),
                                       heed_sum(tape, heed_log_softmax(tape, x), HEED_ALL),
                                       heed_logsumexp(tape, x, HEED_ALL)};
                for (int i = 0; i < 3; i++)
                    only_nan(sums[i], 0, "softmax");
            }
}

/* One choice of several keys, the likeliest or drawn. */
static void choices(void **state)
{
    (void)state;
    for (int draw = 0; draw < 2; draw++)
        for (int64_t at = 0; at < 12; at++) {
            with_nan(12, 1, at);
            heed_tensor *log_p = heed_input(tape, HEED_SHAPE(12), numbers);
            const int64_t one = 1, keys = 12;
            const heed_pairs pairs = {.queries = heed_segments_new(heed_tape_arena(tape), 1, &one),
                                      .keys = heed_segments_new(heed_tape_arena(tape), 1, &keys),
                                      .heads = 1};
            heed_tensor *w = heed_pairs_choose(tape, log_p, draw, &pairs, NULL, NULL);
            only_nan(heed_sum(tape, w, HEED_ALL), 0, "choice");
        }
}

static int set_up(void **state)
{
    (void)state;
    tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    return tape ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    heed_tape_free(tape);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maxima), cmocka_unit_test(places),
                                       cmocka_unit_test(softmaxes), cmocka_unit_test(choices)};
    return cmocka_run_group_tests_name("nan", tests, set_up, tear_down);
}
