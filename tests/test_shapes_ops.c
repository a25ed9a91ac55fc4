/* Values of the shape and reduction operators against results worked out by hand, and what they
 * say when shapes are wrong. */
#include <heed/ops.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define NEAR 1e-6
#define COUNT(...) ((int)(sizeof((const heed_real[]){__VA_ARGS__}) / sizeof(heed_real)))

static heed_tape *t;

static int setup(void **state)
{
    (void)state;
    t = heed_tape_new(&(heed_tape_options){.threads = 2}, NULL);
    return t ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    heed_tape_free(t);
    return 0;
}

static heed_tensor *in(heed_shape shape, const heed_real *values)
{
    return heed_variable(t, shape, values);
}
#define IN(shape, ...) in(shape, (const heed_real[]){__VA_ARGS__})

static void same(const char *what, const heed_real *found, int64_t stride, int64_t cols,
                 const heed_real *wanted, int n)
{
    for (int i = 0; i < n; i++) {
        heed_real f = found[i / cols * stride + i % cols];
        if (f != wanted[i] && !(fabs((double)f - (double)wanted[i]) <= NEAR))
            fail_msg("%s: element %d is %g, expected %g", what, i, (double)f, (double)wanted[i]);
    }
}

static void is(const heed_tensor *y, heed_shape shape, const heed_real *wanted, int n)
{
    if (!y)
        fail_msg("no result: %s", heed_tape_error(t)->text);
    heed_shape s = heed_tensor_shape(y);
    assert_int_equal(s.rank, shape.rank);
    for (int i = 0; i < shape.rank; i++)
        assert_int_equal(s.dim[i], shape.dim[i]);
    assert_int_equal(heed_tensor_count(y), n);
    same("value", heed_tensor_data(y), heed_tensor_stride(y), heed_tensor_cols(y), wanted, n);
}
#define IS(y, shape, ...) is(y, shape, (const heed_real[]){__VA_ARGS__}, COUNT(__VA_ARGS__))

/* The gradient of x after a walk back from sum(weights * y). */
static void grad_is(heed_tensor *x, heed_tensor *y, const heed_real *weights,
                    const heed_real *wanted)
{
    heed_tensor *w = heed_input(t, heed_tensor_shape(y), weights);
    heed_status status = heed_backward(t, heed_sum(t, heed_mul(t, y, w), HEED_ALL));
    if (status)
        fail_msg("%s", heed_tape_error(t)->text);
    same("gradient", heed_tensor_grad(x), heed_tensor_stride(x), heed_tensor_cols(x), wanted,
         (int)heed_tensor_count(x));
}

static void refused(const heed_tensor *y, const char *text)
{
    assert_null(y);
    assert_string_equal(heed_tape_error(t)->text, text);
    heed_tape_reset(t);
}

/* Catches: rows and columns exchanged in broadcasting, an operation with its sides exchanged. */
static void broadcast_values(void **state)
{
    (void)state;
    heed_tensor *a = IN(HEED_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    IS(heed_sub(t, a, IN(HEED_SHAPE(3), 1, 0, -1)), HEED_SHAPE(2, 3), 0, 2, 4, 3, 5, 7);
    IS(heed_mul(t, a, IN(HEED_SHAPE(2, 1), 2, -1)), HEED_SHAPE(2, 3), 2, 4, 6, -4, -5, -6);
    IS(heed_div(t, a, IN(HEED_SHAPE(1), 2)), HEED_SHAPE(2, 3), .5, 1, 1.5, 2, 2.5, 3);
    IS(heed_add(t, heed_slice_cols(t, a, 1, 3), IN(HEED_SHAPE(1, 2), 10, 20)), HEED_SHAPE(2, 2), 12,
       23, 15, 26);
    heed_tape_reset(t);
    refused(heed_add(t, IN(HEED_SHAPE(2, 3), 1, 2, 3, 4, 5, 6), IN(HEED_SHAPE(2), 1, 2)),
            "add: b is (2), expected (2,3), a row (3), a column (2,1) or a scalar");
    refused(heed_mul(t, IN(HEED_SHAPE(1), 1), NULL), "mul: input 2 is NULL");
    refused(heed_clamp(t, IN(HEED_SHAPE(1), 1), 2, 1), "clamp: low is 2, expected at most high, 1");
}

/* Catches: a broadcast gradient that depends on the threads, or misses a thread's share. */
static void broadcast_gradients_of_many_rows(void **state)
{
    (void)state;
    enum { rows = 700, cols = 129 };
    static heed_real values[rows * cols], first[cols + 1];
    for (int i = 0; i < rows * cols; i++)
        values[i] = (heed_real)(i % 17 - 8) / 8;
    for (int threads = 1; threads <= 4; threads++) {
        heed_tape_reset(t);
        heed_tape_set_threads(t, threads);
        heed_tensor *a = heed_variable(t, HEED_SHAPE(rows, cols), values);
        heed_tensor *row = heed_variable(t, HEED_SHAPE(cols), NULL);
        heed_tensor *one = heed_variable(t, HEED_SHAPE(1), NULL);
        heed_tensor *y = heed_square(t, heed_add(t, heed_add(t, a, row), one));
        assert_int_equal(heed_backward(t, heed_sum(t, y, HEED_ALL)), HEED_OK);
        double total = 0;
        for (int c = 0; c < cols; c++) {
            double sum = 0;
            for (int r = 0; r < rows; r++)
                sum += 2 * (double)values[r * cols + c];
            assert_true(fabs((double)heed_tensor_grad(row)[c] - sum) < 1e-3);
            total += sum;
        }
        assert_true(fabs((double)heed_tensor_grad(one)[0] - total) < 1e-2);
        if (threads == 1)
            memcpy(first, heed_tensor_grad(row), cols * sizeof *first);
        assert_memory_equal(first, heed_tensor_grad(row), cols * sizeof *first);
    }
    heed_tape_reset(t);
    heed_tape_set_threads(t, 2);
}

/* Catches: an axis mixed up, the mean divided by the wrong count, the last maximum instead of the
 * first. */
static void reductions(void **state)
{
    (void)state;
    heed_tensor *x = IN(HEED_SHAPE(2, 3), 1, 5, 3, 4, 5, 0);
    IS(heed_sum(t, x, HEED_ALL), HEED_SHAPE(1), 18);
    IS(heed_sum(t, x, HEED_COLS), HEED_SHAPE(2, 1), 9, 9);
    IS(heed_sum(t, x, HEED_ROWS), HEED_SHAPE(1, 3), 5, 10, 3);
    IS(heed_mean(t, x, HEED_ALL), HEED_SHAPE(1), 3);
    IS(heed_mean(t, x, HEED_COLS), HEED_SHAPE(2, 1), 3, 3);
    IS(heed_mean(t, x, HEED_ROWS), HEED_SHAPE(1, 3), 2.5, 5, 1.5);
    IS(heed_max(t, x, HEED_COLS), HEED_SHAPE(2, 1), 5, 5);
    IS(heed_max(t, x, HEED_ROWS), HEED_SHAPE(1, 3), 4, 5, 3);
    IS(heed_sum(t, heed_slice_cols(t, x, 1, 3), HEED_ALL), HEED_SHAPE(1), 13);
    heed_tensor *m = heed_max(t, x, HEED_ALL);
    IS(m, HEED_SHAPE(1), 5);
    grad_is(x, m, (const heed_real[]){2}, (const heed_real[]){0, 2, 0, 0, 0, 0});
    heed_tape_reset(t);
    x = IN(HEED_SHAPE(2, 2), 1, 7, 1, 7);
    grad_is(x, heed_max(t, x, HEED_ROWS), (const heed_real[]){2, 3},
            (const heed_real[]){2, 3, 0, 0});
    heed_tape_reset(t);
    refused(heed_mean(t, heed_input(t, HEED_SHAPE(0, 3), NULL), HEED_ROWS),
            "mean: x is (0,3), expected at least one element to reduce");
    refused(heed_max(t, IN(HEED_SHAPE(1), 1), (heed_axis)9),
            "max: axis is 9, expected HEED_ALL, HEED_ROWS or HEED_COLS");
}

/* Catches: masked numbers that make NaN, in the value or the gradient, for each axis. */
static void logsumexp_of_masked_numbers(void **state)
{
    (void)state;
    heed_real no = -INFINITY, ln2 = (heed_real)log(2);
    for (int axis = HEED_ROWS; axis <= HEED_COLS; axis++) {
        heed_tensor *x = axis == HEED_COLS ? IN(HEED_SHAPE(2, 3), no, no, no, 1, no, 1)
                                           : IN(HEED_SHAPE(3, 2), no, 1, no, no, no, 1);
        heed_tensor *y = heed_logsumexp(t, x, (heed_axis)axis);
        if (axis == HEED_COLS)
            IS(y, HEED_SHAPE(2, 1), no, 1 + ln2);
        else
            IS(y, HEED_SHAPE(1, 2), no, 1 + ln2);
        y = heed_select(t, (const uint8_t[]){0, 1}, false, y,
                        heed_input(t, heed_tensor_shape(y), NULL));
        static const heed_real by_row[] = {0, 0, 0, 2, 0, 2}, by_column[] = {0, 2, 0, 0, 0, 2};
        grad_is(x, y, (const heed_real[]){7, 4}, axis == HEED_COLS ? by_row : by_column);
        heed_tape_reset(t);
    }
    heed_tensor *x = IN(HEED_SHAPE(2, 2), no, no, no, no);
    heed_tensor *y = heed_logsumexp(t, x, HEED_ALL);
    IS(y, HEED_SHAPE(1), no);
    assert_int_equal(heed_backward(t, y), HEED_OK);
    same("gradient", heed_tensor_grad(x), 2, 2, (const heed_real[]){0, 0, 0, 0}, 4);
    heed_tape_reset(t);
}

/* Catches: blocks lost in a long reduction, a result that depends on the threads. */
static void a_long_reduction(void **state)
{
    (void)state;
    enum { n = 100003 };
    static heed_real values[n];
    double sum = 0, exps = 0;
    for (int i = 0; i < n; i++) {
        values[i] = (heed_real)((double)(i * 37 % 101) / 101);
        sum += (double)values[i];
        exps += exp((double)values[i]);
    }
    values[70001] = 2;
    sum += 2 - (double)(70001 * 37 % 101) / 101;
    exps += exp(2) - exp((double)(70001 * 37 % 101) / 101);
    for (int threads = 1; threads <= 3; threads++) {
        heed_tape_reset(t);
        heed_tape_set_threads(t, threads);
        heed_tensor *x = heed_variable(t, HEED_SHAPE(n), values);
        assert_true(fabs((double)*heed_tensor_data(heed_sum(t, x, HEED_ALL)) / sum - 1) < 1e-5);
        assert_true(fabs((double)*heed_tensor_data(heed_logsumexp(t, x, HEED_ALL)) - log(exps)) <
                    1e-5);
        heed_tensor *m = heed_max(t, x, HEED_ALL);
        assert_true(*heed_tensor_data(m) == 2);
        heed_backward(t, m);
        assert_true(heed_tensor_grad(x)[70001] == 1);
    }
    heed_tape_reset(t);
    heed_tape_set_threads(t, 2);
}

/* Catches: a segment that sees its neighbour, an empty one that shifts the rest, masked NaN. */
static void segments(void **state)
{
    (void)state;
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 3, (const int64_t[]){2, 0, 3});
    heed_real no = -INFINITY;
    heed_tensor *x = IN(HEED_SHAPE(5, 2), 1, 9, 3, 2, 4, no, 8, no, 6, no);
    IS(heed_segment_sum(t, heed_slice_cols(t, x, 0, 1), s), HEED_SHAPE(3, 1), 4, 0, 18);
    IS(heed_segment_mean(t, heed_slice_cols(t, x, 0, 1), s), HEED_SHAPE(3, 1), 2, 0, 6);
    IS(heed_segment_max(t, x, s), HEED_SHAPE(3, 2), 3, 9, 0, 0, 8, no);
    heed_tensor *y = heed_segment_softmax(t, x, s);
    double e = 1 / (1 + exp(-2.0)), f = 1 / (1 + exp(7.0)), z = 1 + exp(4.0) + exp(2.0);
    IS(y, HEED_SHAPE(5, 2), (heed_real)(1 - e), (heed_real)(1 - f), (heed_real)e, (heed_real)f,
       (heed_real)(1 / z), 0, (heed_real)(exp(4.0) / z), 0, (heed_real)(exp(2.0) / z), 0);
    grad_is(x, y, (const heed_real[]){0, 0, 0, 0, 0, 1, 0, 2, 0, 3},
            (const heed_real[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    x = IN(HEED_SHAPE(5, 1), 1, 2, 3, 4, 5);
    heed_tensor *fill = IN(HEED_SHAPE(1), -1);
    IS(heed_segment_shift(t, x, s, 1, NULL), HEED_SHAPE(5, 1), 0, 1, 0, 3, 4);
    IS(heed_segment_shift(t, x, s, -2, fill), HEED_SHAPE(5, 1), -1, -1, 5, -1, -1);
    IS(heed_segment_shift(t, x, s, INT64_MIN, fill), HEED_SHAPE(5, 1), -1, -1, -1, -1, -1);
    IS(heed_segment_reverse(t, x, s), HEED_SHAPE(5, 1), 2, 1, 5, 4, 3);
    refused(heed_segment_sum(t, IN(HEED_SHAPE(1, 2), 1, 2), s),
            "segment_sum: x is (1,2), expected (5,D), the rows of 3 segments");
    refused(heed_segment_reverse(t, IN(HEED_SHAPE(1), 1), NULL),
            "segment_reverse: segments are NULL");
    s = heed_segments_new(heed_tape_arena(t), 1, (const int64_t[]){1});
    refused(heed_segment_shift(t, IN(HEED_SHAPE(1, 2), 1, 2), s, 1, IN(HEED_SHAPE(1), 1)),
            "segment_shift: fill is (1), expected (2)");
}

/* Catches: an index off by one, absent rows, rows that meet but are not added. */
static void gather_and_scatter(void **state)
{
    (void)state;
    heed_tensor *x = IN(HEED_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    IS(heed_gather_rows(t, x, (const int32_t[]){2, -1, 0, 2}, 4), HEED_SHAPE(4, 2), 5, 6, 0, 0, 1,
       2, 5, 6);
    IS(heed_scatter_rows(t, x, (const int32_t[]){3, -5, 3}, 4), HEED_SHAPE(4, 2), 0, 0, 0, 0, 0, 0,
       6, 8);
    IS(heed_select(t, (const uint8_t[]){0, 1, 0}, true, x, heed_scale(t, x, -1, 0)),
       HEED_SHAPE(3, 2), -1, -2, 3, 4, -5, -6);
    heed_tape_reset(t);
    refused(heed_gather_rows(t, IN(HEED_SHAPE(2, 1), 1, 2), (const int32_t[]){0, 2}, 2),
            "gather_rows: index[1] is 2, expected less than 2");
    refused(heed_scatter_rows(t, IN(HEED_SHAPE(1, 1), 1), NULL, 2), "scatter_rows: index is NULL");
    refused(heed_gather_rows(t, IN(HEED_SHAPE(1, 1), 1), (const int32_t[]){0}, -1),
            "gather_rows: (-1,1) is not a shape of 1 to 4 sizes that fit in memory");
    refused(
        heed_select(t, (const uint8_t[]){1}, true, IN(HEED_SHAPE(1), 1), IN(HEED_SHAPE(1, 1), 1)),
        "select: b is (1,1), expected (1) like a");
}

/* Catches: columns out of order, views that point beside their numbers, a copy where a view was
 * promised. */
static void shapes(void **state)
{
    (void)state;
    heed_tensor *x = IN(HEED_SHAPE(2, 3), 1, 2, 3, 4, 5, 6), *y = IN(HEED_SHAPE(2, 1), 7, 8);
    IS(heed_concat_cols(t, (heed_tensor *[]){x, y, x}, 3), HEED_SHAPE(2, 7), 1, 2, 3, 7, 1, 2, 3, 4,
       5, 6, 8, 4, 5, 6);
    IS(heed_concat_rows(t, (heed_tensor *[]){x, IN(HEED_SHAPE(3), 0, 0, 1)}, 2), HEED_SHAPE(3, 3),
       1, 2, 3, 4, 5, 6, 0, 0, 1);
    heed_tensor *s = heed_stack_steps(t, (heed_tensor *[]){y, heed_slice_cols(t, x, 2, 3)}, 2);
    IS(s, HEED_SHAPE(2, 2, 1), 7, 8, 3, 6);
    IS(heed_unstack(t, s, 1), HEED_SHAPE(2, 1), 3, 6);
    IS(heed_transpose_last(t, x), HEED_SHAPE(3, 2), 1, 4, 2, 5, 3, 6);
    IS(heed_transpose_last(t, heed_reshape(t, x, HEED_SHAPE(2, 3, 1))), HEED_SHAPE(2, 1, 3), 1, 2,
       3, 4, 5, 6);
    IS(heed_slice_rows(t, x, 1, 2), HEED_SHAPE(1, 3), 4, 5, 6);
    heed_tensor *r = heed_reshape(t, x, HEED_SHAPE(3, 2));
    IS(r, HEED_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    assert_ptr_equal(heed_tensor_data(r), heed_tensor_data(x));
    IS(heed_reshape(t, heed_slice_cols(t, x, 1, 3), HEED_SHAPE(4)), HEED_SHAPE(4), 2, 3, 5, 6);
    heed_tensor *v = IN(HEED_SHAPE(2), 3, 4);
    grad_is(v, heed_mul(t, v, heed_stop_gradient(t, v)), (const heed_real[]){1, 1},
            (const heed_real[]){3, 4});
    heed_tape_reset(t);
#define X IN(HEED_SHAPE(2, 3), 1, 2, 3, 4, 5, 6)
    refused(heed_concat_cols(t, (heed_tensor *[]){X, IN(HEED_SHAPE(1), 1)}, 2),
            "concat_cols: an input is (1), expected 2 rows like the first");
    refused(heed_concat_rows(t, (heed_tensor *[]){X, IN(HEED_SHAPE(1), 1)}, 2),
            "concat_rows: an input is (1), expected the columns of the first, (2,3)");
    refused(heed_concat_rows(t, NULL, 0), "concat_rows: an input is NULL");
    refused(heed_stack_steps(t, (heed_tensor *[]){X, IN(HEED_SHAPE(1), 1)}, 2),
            "stack_steps: an input is (1), expected (2,3) like the first");
    refused(heed_slice_cols(t, X, 1, 4), "slice_cols: x is (2,3), expected to contain 1 to 4");
    refused(heed_slice_rows(t, X, -1, 1), "slice_rows: x is (2,3), expected to contain -1 to 1");
    refused(heed_unstack(t, X, 2),
            "unstack: x is (2,3), expected two axes or more and more than 2 steps");
    refused(heed_reshape(t, X, HEED_SHAPE(5)),
            "reshape: x is (2,3), expected the same count as (5)");
    refused(heed_transpose_last(t, IN(HEED_SHAPE(1), 1)),
            "transpose_last: x is (1), expected (M,N) or (G,M,N)");
#undef X
}

/* Catches: ties taken from the wrong side, an order that is not sorted, wrong columns. */
static void choices(void **state)
{
    (void)state;
    const int32_t *at;
    heed_tensor *x = IN(HEED_SHAPE(2, 5), 3, 1, 3, 2, 3, -5, -1, -2, -1, -9);
    IS(heed_top_k(t, x, 3, &at), HEED_SHAPE(2, 3), 3, 3, 3, -1, -1, -2);
    assert_memory_equal(at, ((const int32_t[]){0, 2, 4, 1, 3, 2}), 6 * sizeof *at);
    IS(heed_top_k(t, x, 5, NULL), HEED_SHAPE(2, 5), 3, 3, 3, 2, 1, -1, -1, -2, -5, -9);
    x = IN(HEED_SHAPE(1, 6), 1, 4, 2, 2, 9, -1);
    heed_tensor *y = heed_maxout(t, x, 2);
    IS(y, HEED_SHAPE(1, 3), 4, 2, 9);
    grad_is(x, y, (const heed_real[]){1, 2, 3}, (const heed_real[]){0, 1, 2, 0, 3, 0});
    IS(heed_outer(t, IN(HEED_SHAPE(1, 2), 2, 3), IN(HEED_SHAPE(1, 3), 1, 0, -1)), HEED_SHAPE(1, 6),
       2, 0, -2, 3, 0, -3);
    IS(heed_cosine(t, IN(HEED_SHAPE(2, 2), 3, 4, 0, 0), IN(HEED_SHAPE(2, 2), 4, 3, 1, 1), 1e-8),
       HEED_SHAPE(2, 1), (heed_real)0.96, 0);
    heed_tape_reset(t);
    refused(heed_top_k(t, IN(HEED_SHAPE(1, 2), 1, 2), 3, &at),
            "top_k: x is (1,2), expected (N,C) with 1 <= k = 3 <= C < 2^31");
    assert_null(at);
    refused(heed_maxout(t, IN(HEED_SHAPE(1, 3), 1, 2, 3), 2),
            "maxout: x is (1,3), expected columns in groups of 2");
    refused(heed_outer(t, IN(HEED_SHAPE(2, 1), 1, 2), IN(HEED_SHAPE(1, 1), 1)),
            "outer: b is (1,1), expected (2,J), the rows of a");
    refused(heed_cosine(t, IN(HEED_SHAPE(1), 1), IN(HEED_SHAPE(1), 1), 0),
            "cosine: eps is 0, expected more than 0");
}

/* Catches: frequencies that are not the probabilities, an impossible column drawn, the same draw in
 * every step. */
static void sampling(void **state)
{
    (void)state;
    enum { n = 20000 };
    static heed_real values[n * 4];
    for (int i = 0; i < n; i++) {
        values[4 * i] = (heed_real)log(0.2);
        values[4 * i + 1] = -INFINITY;
        values[4 * i + 2] = (heed_real)log(0.7);
        values[4 * i + 3] = (heed_real)log(0.1);
    }
    int32_t first[64];
    for (uint64_t step = 0; step < 2; step++) {
        heed_tape_reset(t);
        heed_tape_step(t, step, 0, 0);
        const int32_t *drawn;
        heed_tensor *p = heed_sample(t, heed_input(t, HEED_SHAPE(n, 4), values), &drawn);
        int count[4] = {0};
        for (int i = 0; i < n; i++) {
            count[drawn[i]]++;
            assert_true(heed_tensor_data(p)[i] == values[drawn[i]]);
        }
        assert_int_equal(count[1], 0);
        /* Three standard deviations of a count are below 200. */
        assert_in_range(count[0], 3800, 4200);
        assert_in_range(count[2], 13800, 14200);
        if (step)
            assert_memory_not_equal(first, drawn, sizeof first);
        memcpy(first, drawn, sizeof first);
    }
    heed_tape_reset(t);
    heed_real no = -INFINITY;
    const int32_t *drawn;
    IS(heed_sample(t, IN(HEED_SHAPE(1, 2), no, no), &drawn), HEED_SHAPE(1, 1), no);
    assert_int_equal(drawn[0], 0);
    /* Proportions that exp alone takes to 0 or infinity. */
    heed_sample(t, IN(HEED_SHAPE(4, 2), 2000, 0, 0, 2000, -2000, -1000, -1000, -2000), &drawn);
    assert_memory_equal(drawn, ((const int32_t[]){0, 1, 1, 0}), 4 * sizeof *drawn);
    heed_tape_reset(t);
    refused(heed_sample(t, heed_input(t, HEED_SHAPE(2, 0), NULL), &drawn),
            "sample: log_p is (2,0), expected (N,C) with 1 <= C < 2^31");
}

/* Catches: a crash on tensors that have no elements. */
static void nothing_at_all(void **state)
{
    (void)state;
    heed_tensor *x = heed_variable(t, HEED_SHAPE(0, 3), NULL);
    heed_tensor *y = heed_tanh(t, heed_add(t, x, heed_variable(t, HEED_SHAPE(3), NULL)));
    y = heed_concat_rows(t, (heed_tensor *[]){y, heed_slice_rows(t, y, 0, 0)}, 2);
    y = heed_gather_rows(t, heed_transpose_last(t, y), (const int32_t[]){1}, 1);
    heed_tensor *s = heed_sum(t, y, HEED_ALL);
    IS(s, HEED_SHAPE(1), 0);
    assert_int_equal(heed_backward(t, s), HEED_OK);
    IS(heed_sum(t, x, HEED_ROWS), HEED_SHAPE(1, 3), 0, 0, 0);
    IS(heed_logsumexp(t, x, HEED_ALL), HEED_SHAPE(1), -INFINITY);
    heed_tape_reset(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broadcast_values),
        cmocka_unit_test(broadcast_gradients_of_many_rows),
        cmocka_unit_test(reductions),
        cmocka_unit_test(logsumexp_of_masked_numbers),
        cmocka_unit_test(a_long_reduction),
        cmocka_unit_test(segments),
        cmocka_unit_test(gather_and_scatter),
        cmocka_unit_test(shapes),
        cmocka_unit_test(choices),
        cmocka_unit_test(sampling),
        cmocka_unit_test(nothing_at_all),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
