/* test_loss.c: softmax, cross-entropy (alone and fused with the output projection), embedding. */
#include "kernel/kernels.h"
#include "tensor/tape.h"

#include <heed/ops.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-12
#else
#define CLOSE 3e-6 /* a few roundings of float, relative to the largest */
#endif
/* Of a sum of n terms, one after the other, as the plainest BLAS adds them. */
#define CLOSE_SUM(n) fmax(CLOSE, CLOSE / 12 * sqrt((double)(n)))
#define MASKED ((heed_real)-INFINITY)

static heed_tape *new_tape(int threads)
{
    heed_error err = {0};
    heed_tape *t = heed_tape_new(&(heed_tape_options){.seed = 1, .threads = threads}, &err);
    assert_non_null(t);
    return t;
}

static void assert_within(const heed_real *found, const double *wanted, int64_t n, double close)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(wanted[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - wanted[i]) <= close * largest))
            fail_msg("element %d is %.9g, expected %.9g", (int)i, (double)found[i], wanted[i]);
}

static void assert_close(const heed_real *found, const double *wanted, int64_t n)
{
    assert_within(found, wanted, n, CLOSE);
}

static void waves(heed_real *x, int64_t n, double amplitude, double step, double start)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (heed_real)(amplitude * sin(step * (double)i + start));
}

/* ---- kernels ---- */

/* Catches a wrong tail, a lane behind the end that is counted, an overflow of exp: every set, odd
 * sizes, some masked, shifted far from zero. */
static void softmax_on_every_set(void **state)
{
    enum { MOST = 77 };
    heed_real x[MOST], y[MOST], dy[MOST], dx[MOST];
    double want[MOST], back[MOST];
    const heed_kernels *k;
    (void)state;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t n = 1; n <= MOST; n += n < 20 ? 1 : 19)
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                waves(x, n, 3, 1.7, 0.1);
                waves(dy, n, 1, 0.6, 0.3);
                double sum = 0, inner = 0;
                for (int64_t i = 0; i < n; i++) {
                    x[i] = i % 5 == 3 ? MASKED : x[i] + 512;
                    sum += exp((double)x[i] - 512);
                }
                for (int64_t i = 0; i < n; i++) {
                    want[i] = exp((double)x[i] - 512) / sum;
                    inner += (double)dy[i] * (logarithm ? 1 : want[i]);
                }
                for (int64_t i = 0; i < n; i++)
                    back[i] = logarithm ? (double)dy[i] - want[i] * inner
                                        : want[i] * ((double)dy[i] - inner);
                (logarithm ? k->log_softmax_rows : k->softmax_rows)(y, x, n, 1, n);
                for (int assign = 1; assign >= 0; assign--) {
                    (logarithm ? k->log_softmax_backward : k->softmax_backward)(dx, n, dy, y, 1, n,
                                                                                assign);
                    /* 1: the softmax of one column has no gradient to be relative to */
                    for (int64_t i = 0; i < n; i++)
                        assert_true(fabs((double)dx[i] - (2 - assign) * back[i]) <= 8 * CLOSE);
                }
                for (int64_t i = 0; logarithm && i < n; i++)
                    y[i] = (heed_real)exp((double)y[i]);
                for (int64_t i = 0; i < n; i++)
                    assert_true(fabs((double)y[i] - want[i]) <= CLOSE);
            }
}

/* Catches NaN from (-inf) - (-inf), in the values and in the gradient, forward and back. */
static void masked_rows(void **state)
{
    heed_tape *t = new_tape(1);
    heed_real values[3 * 9];
    const heed_real seeds[3 * 9] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    (void)state;
    for (int i = 0; i < 27; i++)
        values[i] = i < 9 || i == 20 ? MASKED : (heed_real)(i % 4);
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        heed_tape_reset(t);
        heed_tensor *x = heed_variable(t, HEED_SHAPE(3, 9), values);
        heed_tensor *y = logarithm ? heed_log_softmax(t, x) : heed_softmax(t, x);
        assert_non_null(y);
        const heed_real *w = seeds;
        assert_int_equal(heed__backward_from(t, &y, &w, 1), HEED_OK);
        for (int i = 0; i < 27; i++) {
            heed_real v = heed_tensor_data(y)[i], g = heed_tensor_grad(x)[i];
            if (i < 9) {
                assert_true(v == (logarithm ? MASKED : 0));
                assert_true(g == 0);
            }
            assert_true(i == 20 || (logarithm && i < 9) || isfinite(v));
            assert_true(isfinite(g));
        }
    }
    heed_tape_free(t);
}

/* ---- cross-entropy ---- */

/* Catches the other forms of label smoothing (eps/(V-1) gives .761938): the published scalars. */
static void golden_smoothing(void **state)
{
    static const heed_real logits[] = {2, 1, 0, -1, (heed_real)0.5};
    const int32_t target = 0;
    heed_tape *t = new_tape(1);
    (void)state;
    heed_tensor *x = heed_input(t, HEED_SHAPE(1, 5), logits);
    heed_real nll = *heed_tensor_data(heed_cross_entropy(t, x, &target, 0));
    heed_real smoothed = *heed_tensor_data(heed_cross_entropy(t, x, &target, 0.1));
    assert_true(fabs((double)nll - 0.574438) < 1e-6);
    assert_true(fabs((double)smoothed - 0.724438) < 1e-6);
    /* The same through the projection: W = logits as a column, h = 1. */
    heed_tensor *w = heed_input(t, HEED_SHAPE(5, 1), logits);
    heed_tensor *h = heed_input(t, HEED_SHAPE(1, 1), (heed_real[]){1});
    double unsmoothed = 0;
    heed_tensor *y = heed_project_cross_entropy(t, h, w, NULL, &target, 0.1, 2, &unsmoothed);
    assert_non_null(y);
    assert_true(fabs((double)*heed_tensor_data(y) - 2 * 0.724438) < 2e-6);
    assert_true(fabs(unsmoothed - 0.574438) < 1e-6);
    heed_tape_free(t);
}

/* Catches a masked logit that poisons the loss, a dropped row that counts. */
static void cross_entropy_of_masks(void **state)
{
    static const heed_real logits[] = {0, 0, -INFINITY, 9, 9, 9, 1, 1, -INFINITY};
    static const int32_t targets[] = {1, -1, 0};
    heed_tape *t = new_tape(1);
    (void)state;
    heed_tensor *x = heed_variable(t, HEED_SHAPE(3, 3), logits);
    heed_tensor *y = heed_cross_entropy(t, x, targets, 0);
    assert_true(fabs((double)*heed_tensor_data(y) - 2 * log(2)) < 1e-6);
    assert_int_equal(heed_backward(t, y), HEED_OK);
    static const double want[] = {0.5, -0.5, 0, 0, 0, 0, -0.5, 0.5, 0};
    assert_close(heed_tensor_grad(x), want, 9);
    heed_tape_free(t);
}

/* Catches reading past a row or a table for an id that is too large; the text names it. */
static void refusals(void **state)
{
    static const int32_t ids[] = {0, 7};
    heed_tape *t = new_tape(1);
    (void)state;
    assert_null(heed_cross_entropy(t, heed_input(t, HEED_SHAPE(2, 7), NULL), ids, 0));
    assert_string_equal(heed_tape_error(t)->text,
                        "cross_entropy: target 1 is 7, expected less than 7");
    heed_tape_reset(t);
    assert_null(heed_embedding(t, heed_input(t, HEED_SHAPE(7, 2), NULL), ids, 2, NULL));
    assert_string_equal(heed_tape_error(t)->text, "embedding: id 1 is 7, expected less than 7");
    heed_tape_reset(t);
    assert_null(heed_project_cross_entropy(t, heed_input(t, HEED_SHAPE(2, 3), NULL),
                                           heed_input(t, HEED_SHAPE(7, 2), NULL), NULL, ids, 0, 1,
                                           NULL));
    assert_string_equal(heed_tape_error(t)->text,
                        "project_cross_entropy: h is (2,3), expected (N,2)");
    heed_tape_reset(t);
    const heed_teacher narrow = {heed_input(t, HEED_SHAPE(2, 2), NULL),
                                 heed_input(t, HEED_SHAPE(6, 2), NULL), NULL};
    assert_null(heed_project_distil(t, heed_input(t, HEED_SHAPE(2, 2), NULL),
                                    heed_input(t, HEED_SHAPE(7, 2), NULL), NULL, &narrow,
                                    (const int32_t[]){0, HEED_FROM_TEACHER}, 0, 1, NULL));
    assert_string_equal(heed_tape_error(t)->text,
                        "project_cross_entropy: the teacher's w is (6,2), expected (7,2)");
    heed_tape_free(t);
}

/* ---- the fused projection ---- */

struct problem {
    int64_t n, d, v;
    double smoothing, weight;
    heed_real *h, *w, *bias;
    heed_real *taught_h, *taught_w, *taught_bias; /* the teacher's */
    int32_t *targets;
    double loss, nll, *dh, *dw, *dbias; /* the answers, for an upstream gradient of 1 */
};

static void *room(int64_t n, size_t size)
{
    void *memory = calloc((size_t)n, size);
    assert_non_null(memory);
    return memory;
}

/* x (v) = log softmax(h W^T + bias) of one row. */
static void log_p(double *x, const heed_real *h, const heed_real *w, const heed_real *bias,
                  int64_t d, int64_t v)
{
    double sum = 0;
    for (int64_t j = 0; j < v; j++) {
        x[j] = (double)bias[j];
        for (int64_t k = 0; k < d; k++)
            x[j] += (double)h[k] * (double)w[j * d + k];
        sum += exp(x[j]);
    }
    for (int64_t j = 0; j < v; j++)
        x[j] -= log(sum);
}

/* Row by row in double. */
static void solve(struct problem *p)
{
    double *x = room(p->v, sizeof *x), *q = room(p->v, sizeof *q);
    for (int64_t i = 0; i < p->n; i++) {
        const int32_t target = p->targets[i];
        if (target == -1)
            continue;
        log_p(x, p->h + i * p->d, p->w, p->bias, p->d, p->v);
        if (target == HEED_FROM_TEACHER)
            log_p(q, p->taught_h + i * p->d, p->taught_w, p->taught_bias, p->d, p->v);
        for (int64_t j = 0; j < p->v; j++) {
            if (target == HEED_FROM_TEACHER)
                q[j] = exp(q[j]);
            else
                q[j] = p->smoothing / (double)p->v + (j == target ? 1 - p->smoothing : 0);
            p->loss -= p->weight * q[j] * x[j];
            if (target == HEED_FROM_TEACHER || j == target)
                p->nll -= (j == target ? 1 : q[j]) * x[j];
        }
        for (int64_t j = 0; j < p->v; j++) {
            const double g = p->weight * (exp(x[j]) - q[j]);
            p->dbias[j] += g;
            for (int64_t k = 0; k < p->d; k++) {
                p->dh[i * p->d + k] += g * (double)p->w[j * p->d + k];
                p->dw[j * p->d + k] += g * (double)p->h[i * p->d + k];
            }
        }
    }
    free(x);
    free(q);
}

static struct problem problem_new(int64_t n, int64_t d, int64_t v)
{
    struct problem p = {.n = n, .d = d, .v = v, .smoothing = 0.1, .weight = 0.25};
    p.h = room(n * d, sizeof *p.h);
    p.w = room(v * d, sizeof *p.w);
    p.bias = room(v, sizeof *p.bias);
    p.targets = room(n, sizeof *p.targets);
    p.dh = room(n * d, sizeof *p.dh);
    p.dw = room(v * d, sizeof *p.dw);
    p.dbias = room(v, sizeof *p.dbias);
    waves(p.h, n * d, 1, 1.3, 0.2);
    waves(p.w, v * d, 2, 0.7, 0.4);
    waves(p.bias, v, 1, 2.9, 0.1);
    p.taught_h = room(n * d, sizeof *p.taught_h);
    p.taught_w = room(v * d, sizeof *p.taught_w);
    p.taught_bias = room(v, sizeof *p.taught_bias);
    waves(p.taught_h, n * d, 1, 0.9, 0.5);
    waves(p.taught_w, v * d, 2, 1.1, 0.3);
    waves(p.taught_bias, v, 1, 1.7, 0.6);
    for (int64_t i = 0; i < n; i++)
        p.targets[i] = i % 6 == 4 ? -1 : i % 4 == 1 ? HEED_FROM_TEACHER : (int32_t)(i * 7919 % v);
    solve(&p);
    return p;
}

static void problem_free(struct problem *p)
{
    free(p->h);
    free(p->w);
    free(p->bias);
    free(p->taught_h);
    free(p->taught_w);
    free(p->taught_bias);
    free(p->targets);
    free(p->dh);
    free(p->dw);
    free(p->dbias);
}

static void assert_times(const heed_real *found, const double *wanted, int64_t n, double times,
                         double close)
{
    double *scaled = room(n, sizeof *scaled);
    for (int64_t i = 0; i < n; i++)
        scaled[i] = times * wanted[i];
    assert_within(found, scaled, n, close);
    free(scaled);
}

static heed_tensor *fused(heed_tape *t, heed_tensor *h, heed_tensor *w, heed_tensor *bias,
                          const struct problem *p, double *nll)
{
    const heed_teacher teacher = {heed_input(t, HEED_SHAPE(p->n, p->d), p->taught_h),
                                  heed_input(t, HEED_SHAPE(p->v, p->d), p->taught_w),
                                  heed_input(t, HEED_SHAPE(p->v), p->taught_bias)};
    return heed_project_distil(t, h, w, bias, &teacher, p->targets, p->smoothing, p->weight, nll);
}

static void check_problem(struct problem *p, int threads)
{
    heed_tape *t = new_tape(threads);
    heed_tensor *h = heed_variable(t, HEED_SHAPE(p->n, p->d), p->h);
    heed_tensor *w = heed_variable(t, HEED_SHAPE(p->v, p->d), p->w);
    heed_tensor *bias = heed_variable(t, HEED_SHAPE(p->v), p->bias);
    double nll = 0;
    heed_tensor *loss = fused(t, h, w, bias, p, &nll);
    assert_non_null(loss);
    assert_true(fabs((double)*heed_tensor_data(loss) - p->loss) <= CLOSE * p->loss);
    assert_true(fabs(nll - p->nll) <= CLOSE * p->nll);
    /* The whole share at once, then .37 of another, then one more whole. */
    static const heed_real seeds[] = {1, (heed_real)0.37, 1};
    double times = 0;
    for (int walk = 0; walk < 3; walk++) {
        const heed_real *seed = &seeds[walk];
        assert_int_equal(heed__backward_from(t, &loss, &seed, 1), HEED_OK);
        times += (double)*seed;
        assert_times(heed_tensor_grad(h), p->dh, p->n * p->d, times, CLOSE_SUM(p->v));
        assert_times(heed_tensor_grad(w), p->dw, p->v * p->d, times, CLOSE);
        assert_times(heed_tensor_grad(bias), p->dbias, p->v, times, CLOSE);
    }
    /* A first gradient that is not 1: the share written on the way is corrected. */
    heed_tape_reset(t);
    h = heed_variable(t, HEED_SHAPE(p->n, p->d), p->h);
    w = heed_variable(t, HEED_SHAPE(p->v, p->d), p->w);
    heed_tensor *fixed = heed_input(t, HEED_SHAPE(p->v), p->bias);
    loss = fused(t, h, w, fixed, p, NULL);
    const heed_real *seed = &seeds[1];
    assert_int_equal(heed__backward_from(t, &loss, &seed, 1), HEED_OK);
    assert_times(heed_tensor_grad(h), p->dh, p->n * p->d, (double)*seed, CLOSE_SUM(p->v));
    assert_times(heed_tensor_grad(w), p->dw, p->v * p->d, (double)*seed, CLOSE);
    /* Frozen weights: only h's. */
    heed_tape_reset(t);
    h = heed_variable(t, HEED_SHAPE(p->n, p->d), p->h);
    w = heed_input(t, HEED_SHAPE(p->v, p->d), p->w);
    fixed = heed_input(t, HEED_SHAPE(p->v), p->bias);
    loss = fused(t, h, w, fixed, p, NULL);
    assert_int_equal(heed_backward(t, loss), HEED_OK);
    assert_times(heed_tensor_grad(h), p->dh, p->n * p->d, 1, CLOSE_SUM(p->v));
    heed_tape_free(t);
}

/* Catches a wrong formula for the fused loss, a share of W's gradient counted twice or lost. */
static void projection_small(void **state)
{
    struct problem p = problem_new(13, 5, 37);
    (void)state;
    check_problem(&p, 1);
    check_problem(&p, 3);
    problem_free(&p);
}

/* Catches a panel that ends short, and dh that comes back untransposed: sizes that take the ways of
 * long chunks and wide models. */
static void projection_in_panels(void **state)
{
    struct problem p = problem_new(131, 7, 203), wide = problem_new(70, 513, 101);
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        check_problem(&p, threads);
        check_problem(&wide, threads);
    }
    problem_free(&p);
    problem_free(&wide);
}

/* Catches rows lost or doubled where a chunk ends: three chunks or more of 53 rows. */
static void projection_in_chunks(void **state)
{
    struct problem p = problem_new(53, 2, 300007);
    (void)state;
    check_problem(&p, 2);
    problem_free(&p);
}

/* Catches a chunk's rows lost or taken twice (13 of them in float), a bias that is lost, a negative
 * target that reads before its row, and targets beyond the vocabulary. */
static void log_p_in_chunks(void **state)
{
    enum { N = 30, D = 2, V = 300007 };
    heed_real h[N * D], *w = room(V * D, sizeof *w);
    int32_t targets[N];
    (void)state;
    waves(h, N * D, 1, 1.1, 0);
    waves(w, V * D, 1, 0.7, 0);
    for (int i = 0; i < N; i++)
        targets[i] = i % 7 == 3 ? -1 : i * 10007 % V;
    heed_tape *t = new_tape(2);
    heed_tensor *x = heed_input(t, HEED_SHAPE(N, D), h), *y = heed_input(t, HEED_SHAPE(V, D), w);
    heed_tensor *logits = heed_matmul(t, x, y, HEED_NT);
    for (int with_bias = 0; with_bias < 2; with_bias++) {
        heed_tensor *bias = with_bias ? heed_input(t, HEED_SHAPE(V), w) : NULL;
        const heed_real *found = heed_tensor_data(heed_project_log_p(t, x, y, bias, targets));
        const heed_real *all =
            heed_tensor_data(heed_log_softmax(t, bias ? heed_add(t, logits, bias) : logits));
        assert_non_null(found);
        for (int i = 0; i < N; i++) {
            double want = targets[i] < 0 ? 0 : (double)all[(int64_t)i * V + targets[i]];
            assert_true(fabs((double)found[i] - want) <= 20 * CLOSE);
        }
    }
    targets[4] = V;
    assert_null(heed_project_log_p(t, x, y, NULL, targets));
    assert_string_equal(heed_tape_error(t)->text,
                        "project_log_p: target 4 is 300007, expected less than 300007");
    heed_tape_free(t);
    free(w);
}

/* ---- embedding ---- */

/* Catches a negative id that reads the table or lacks its position, a scale on the position, and a
 * gradient that depends on the number of threads. */
static void embedding_rows(void **state)
{
    enum { V = 11, D = 70, N = 403 };
    heed_real table[V * D], positions[5 * D], first[V * D];
    int32_t ids[N], places[N];
    heed_real *seeds = room(N * D, sizeof *seeds);
    (void)state;
    waves(table, V * D, 1, 1.1, 0);
    waves(positions, 5 * D, 1, 1.9, 0);
    waves(seeds, N * D, 1, 0.3, 0);
    for (int i = 0; i < N; i++) {
        ids[i] = i * 5 % 13 - 2;
        places[i] = i % 5;
    }
    heed_tape *t = new_tape(1);
    for (int threads = 1; threads <= 4; threads++) {
        heed_tape_set_threads(t, threads);
        heed_tape_reset(t);
        heed_tensor *e = heed_variable(t, HEED_SHAPE(V, D), table);
        heed_tensor *y = heed_embedding(t, e, ids, N,
                                        &(heed_embedding_options){
                                            .scale = 3,
                                            .positions = heed_input(t, HEED_SHAPE(5, D), positions),
                                            .position_ids = places,
                                        });
        assert_non_null(y);
        for (int i = 0; i < N * D; i++) {
            int id = ids[i / D], j = i % D;
            double want = (id < 0 ? 0 : 3 * (double)table[id * D + j]) +
                          (double)positions[places[i / D] * D + j];
            assert_true(fabs((double)heed_tensor_data(y)[i] - want) <= 4 * CLOSE);
        }
        const heed_real *seed = seeds;
        assert_int_equal(heed__backward_from(t, &y, &seed, 1), HEED_OK);
        if (threads == 1)
            memcpy(first, heed_tensor_grad(e), sizeof first);
        assert_memory_equal(first, heed_tensor_grad(e), sizeof first);
    }
    double *want = room(V * D, sizeof *want);
    for (int i = 0; i < N * D; i++)
        if (ids[i / D] >= 0)
            want[ids[i / D] * D + i % D] += 3 * (double)seeds[i];
    assert_close(first, want, V * D);
    heed_tape_free(t);
    free(want);
    free(seeds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_on_every_set),
        cmocka_unit_test(masked_rows),
        cmocka_unit_test(golden_smoothing),
        cmocka_unit_test(cross_entropy_of_masks),
        cmocka_unit_test(refusals),
        cmocka_unit_test(projection_small),
        cmocka_unit_test(projection_in_panels),
        cmocka_unit_test(projection_in_chunks),
        cmocka_unit_test(log_p_in_chunks),
        cmocka_unit_test(embedding_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
