/* Convolutions: the kernels against plain loops, every geometry against a plain convolution in
 * double, threads, and what is refused.  Values of another toolkit: test_vision.c. */
#include "kernel/kernels.h"

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
#define CLOSE 1e-5 /* sums of some hundred products */
#endif

#include "kernel_check.h"

/* ---- kernels ---- */

enum { TAPS = 3, N = 13, MOST = 37, LD = MOST + 2 };

/* Catches: a tail of rows or columns wrong or written beyond, a tap that reads another's weights,
 * sums that are not added to what is there, a bias added once for each group of taps. */
static void rows_against_loops(void **state)
{
    static const int32_t tap[TAPS] = {2, 0, 3};
    static heed_real w[4 * MOST * MOST], x[TAPS * N * MOST], y[N * LD], before[N * LD], bias[MOST];
    static heed_real panels[HEED_CONV_PANELS(4, MOST, MOST)];
    const heed_kernels *k;
    const heed_real *from[TAPS * N];
    heed_real *to[N];
    (void)state;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t in = 1; in <= MOST; in += in < 4 ? 1 : 11)
            for (int64_t out = 1; out <= MOST; out += out < 18 ? 1 : 5)
                for (int64_t n = 1; n <= N; n += n < 7 ? 1 : 6) {
                    const bool add = (in + out) % 2, biased = out % 3;
                    fill(w, 4 * in * out, 0.1);
                    fill(x, TAPS * N * in, 0.4);
                    fill(before, N * LD, 0.9);
                    fill(bias, MOST, 2.2);
                    memcpy(y, before, sizeof y);
                    for (int64_t p = 0; p < n; p++)
                        to[p] = y + p * LD;
                    for (int64_t i = 0; i < TAPS * n; i++)
                        from[i] = x + (i * 7) % (TAPS * N) * in;
                    k->conv_pack(panels, w, in * out, out, 1, 4, in, out, 0, k->conv_strips(out));
                    k->conv_rows(&(heed__conv_rows){.to = to,
                                                    .from = from,
                                                    .tap = tap,
                                                    .panels = panels,
                                                    .bias = biased ? bias : NULL,
                                                    .n = n,
                                                    .ld = n,
                                                    .taps = TAPS,
                                                    .in = in,
                                                    .out = out,
                                                    .packed = 4,
                                                    .add = add});
                    for (int64_t p = 0; p < n; p++)
                        for (int64_t j = 0; j < LD; j++) {
                            double wanted = add || j >= out ? (double)before[p * LD + j] : 0;
                            wanted += biased && j < out ? (double)bias[j] : 0;
                            for (int64_t t = 0; t < TAPS && j < out; t++)
                                for (int64_t i = 0; i < in; i++)
                                    wanted += (double)from[t * n + p][i] *
                                              (double)w[(tap[t] * in + i) * out + j];
                            expect("conv_rows", p * LD + j, (double)y[p * LD + j], wanted);
                        }
                }
}

/* Catches: a tile of another height wrong, columns beyond `out` touched. */
static void pairs_against_loops(void **state)
{
    static heed_real a[N * MOST], b[N * MOST], w[MOST * LD], before[MOST * LD];
    const heed_kernels *k;
    const heed_real *left[N], *right[N];
    (void)state;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t in = 1; in <= MOST; in += in < 8 ? 1 : 9)
            for (int64_t out = 1; out <= MOST; out += out < 18 ? 1 : 7)
                for (int64_t n = 0; n <= N; n += 13) {
                    fill(a, N * MOST, 0.4);
                    fill(b, N * MOST, 1.4);
                    fill(before, MOST * LD, 0.9);
                    memcpy(w, before, sizeof w);
                    for (int64_t p = 0; p < n; p++) {
                        left[p] = a + (p * 5) % N * MOST;
                        right[p] = b + (p * 3) % N * MOST;
                    }
                    k->conv_pairs(w, LD, left, right, n, in, out);
                    for (int64_t i = 0; i < MOST; i++)
                        for (int64_t j = 0; j < LD; j++) {
                            double wanted = (double)before[i * LD + j];
                            for (int64_t p = 0; p < n && i < in && j < out; p++)
                                wanted += (double)left[p][i] * (double)right[p][j];
                            expect("conv_pairs", i * LD + j, (double)w[i * LD + j], wanted);
                        }
                }
}

/* ---- operators ---- */

/* One convolution: pictures or, with lengths, segments. */
struct trial {
    const char *what;
    heed_conv2d_options o;
    int64_t images, in, out;
    bool up;
};

struct numbers {
    heed_real *y, *dx, *dw, *db;
    int64_t rows, rows_in, taps;
};

static heed_real *copy(const heed_real *from, int64_t n)
{
    heed_real *to = malloc((size_t)(n + 1) * sizeof *to);
    assert_non_null(to);
    memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

static void numbers_free(struct numbers *n)
{
    free(n->y);
    free(n->dx);
    free(n->dw);
    free(n->db);
}

static heed_tensor *some(heed_tape *t, int64_t rows, int64_t cols, double start)
{
    heed_tensor *x = heed_variable(t, HEED_SHAPE(rows, cols), NULL);
    assert_non_null(x);
    fill(heed_tensor_data(x), rows * cols, start);
    return x;
}

static struct numbers by_heed(const struct trial *c, int threads)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads}, NULL);
    const int64_t taps = c->o.kernel.y * c->o.kernel.x;
    struct numbers n = {.rows_in = c->images * c->o.image.y * c->o.image.x, .taps = taps};
    heed_tensor *x = some(t, n.rows_in, c->in, 0.1), *w = some(t, taps * c->in, c->out, 0.5),
                *b = some(t, 1, c->out, 0.9);
    heed_tensor *y =
        c->up ? heed_conv2d_transposed(t, x, w, b, &c->o) : heed_conv2d(t, x, w, b, &c->o);
    n.rows = heed_tensor_rows(y);
    if (y)
        n.y = copy(heed_tensor_data(y), heed_tensor_count(y));
    heed_tensor *g = some(t, n.rows, c->out, 0.7);
    if (heed_backward(t, heed_sum(t, heed_mul(t, y, g), HEED_ALL)))
        fail_msg("%s: %s", c->what, heed_tape_error(t)->text);
    n.dx = copy(heed_tensor_grad(x), heed_tensor_count(x));
    n.dw = copy(heed_tensor_grad(w), heed_tensor_count(w));
    n.db = copy(heed_tensor_grad(b), heed_tensor_count(b));
    heed_tape_free(t);
    return n;
}

/* The same by the definition, all in double, rounded at the end. */
static struct numbers by_definition(const struct trial *c)
{
    const heed_conv2d_options *o = &c->o;
    const heed_image_size small = c->up ? o->image : heed_conv2d_size(o),
                          large = c->up ? heed_conv2d_transposed_size(o) : o->image,
                          result = c->up ? large : small;
    const int64_t taps = o->kernel.y * o->kernel.x, sy = o->stride.y ? o->stride.y : 1,
                  sx = o->stride.x ? o->stride.x : 1, dy = o->dilation.y ? o->dilation.y : 1,
                  dx = o->dilation.x ? o->dilation.x : 1;
    struct numbers n = {.rows = c->images * result.y * result.x,
                        .rows_in = c->images * o->image.y * o->image.x,
                        .taps = taps};
    const int64_t sizes[] = {n.rows * c->out, n.rows_in * c->in, taps * c->in * c->out, c->out};
    double *sums[4];
    for (int i = 0; i < 4; i++)
        assert_non_null(sums[i] = calloc((size_t)sizes[i] + 1, sizeof(double)));
    heed_real *x = calloc((size_t)(n.rows_in * c->in), sizeof *x),
              *w = calloc((size_t)(taps * c->in * c->out), sizeof *w),
              *b = calloc((size_t)c->out, sizeof *b),
              *g = calloc((size_t)(n.rows * c->out), sizeof *g);
    fill(x, n.rows_in * c->in, 0.1);
    fill(w, taps * c->in * c->out, 0.5);
    fill(b, c->out, 0.9);
    fill(g, n.rows * c->out, 0.7);
    for (int64_t r = 0; r < n.rows; r++)
        for (int64_t f = 0; f < c->out; f++) {
            sums[0][r * c->out + f] += (double)b[f];
            sums[3][f] += (double)g[r * c->out + f];
        }
    for (int64_t i = 0; i < c->images; i++)
        for (int64_t oy = 0; oy < small.y; oy++)
            for (int64_t ox = 0; ox < small.x; ox++)
                for (int64_t t = 0; t < taps; t++) {
                    const int64_t y = oy * sy - o->padding.y + t / o->kernel.x * dy,
                                  u = ox * sx - o->padding.x + t % o->kernel.x * dx;
                    if (y < 0 || u < 0 || y >= large.y || u >= large.x)
                        continue;
                    const int64_t coarse = (i * small.y + oy) * small.x + ox,
                                  fine = (i * large.y + y) * large.x + u,
                                  from = c->up ? coarse : fine, to = c->up ? fine : coarse;
                    for (int64_t k = 0; k < c->in; k++)
                        for (int64_t f = 0; f < c->out; f++) {
                            const int64_t at = (t * c->in + k) * c->out + f;
                            const double v = (double)x[from * c->in + k];
                            sums[0][to * c->out + f] += v * (double)w[at];
                            sums[1][from * c->in + k] += (double)g[to * c->out + f] * (double)w[at];
                            sums[2][at] += (double)g[to * c->out + f] * v;
                        }
                }
    heed_real **out[] = {&n.y, &n.dx, &n.dw, &n.db};
    for (int i = 0; i < 4; i++) {
        *out[i] = malloc((size_t)(sizes[i] + 1) * sizeof(heed_real));
        for (int64_t j = 0; j < sizes[i]; j++)
            (*out[i])[j] = (heed_real)sums[i][j];
        free(sums[i]);
    }
    free(x);
    free(w);
    free(b);
    free(g);
    return n;
}

static void expect_all(const char *what, const char *part, const heed_real *found,
                       const heed_real *wanted, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - (double)wanted[i]) <=
              4 * CLOSE * fmax(1, fabs((double)wanted[i]))))
            fail_msg("%s: %s %d is %.9g, expected %.9g", what, part, (int)i, (double)found[i],
                     (double)wanted[i]);
}

/* More rows than a block of pointers, more pixels than a chain of dW, more products than a group of
 * taps, strides that leave rows and columns over. */
static const struct trial trials[] = {
    {"3x3", {.image = {11, 13}, .kernel = {3, 3}, .padding = {1, 1}}, 3, 5, 19, false},
    {"a long sum", {.image = {4, 5}, .kernel = {3, 3}, .padding = {1, 1}}, 2, 100, 7, false},
    /* Many channels and no stride: fewer products; odd sizes, so that tiles stand over edges; more
     * tiles than are taken at once. */
    {"3x3, 24 to 25", {.image = {5, 7}, .kernel = {3, 3}, .padding = {1, 1}}, 2, 24, 25, false},
    {"3x3, 40 to 24, no padding", {.image = {6, 3}, .kernel = {3, 3}}, 3, 40, 24, false},
    {"3x3, paddings 2 and 0",
     {.image = {23, 20}, .kernel = {3, 3}, .padding = {2, 0}},
     2,
     33,
     31,
     false},
    {"3x3 transposed, 26 to 24",
     {.image = {6, 5}, .kernel = {3, 3}, .padding = {1, 2}},
     2,
     26,
     24,
     true},
    {"stride 2",
     {.image = {12, 9}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
     3,
     4,
     17,
     false},
    {"stride 3 by 2, dilated",
     {.image = {13, 16}, .kernel = {3, 2}, .stride = {3, 2}, .padding = {2, 3}, .dilation = {2, 3}},
     2,
     3,
     5,
     false},
    {"7x7, stride 4, much padding",
     {.image = {9, 9}, .kernel = {7, 7}, .stride = {4, 4}, .padding = {6, 6}},
     2,
     1,
     33,
     false},
    {"patches of 4", {.image = {28, 28}, .kernel = {4, 4}, .stride = {4, 4}}, 2, 1, 12, false},
    {"doubled",
     {.image = {7, 6}, .kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}},
     3,
     6,
     5,
     true},
    {"tripled, extra",
     {.image = {5, 4}, .kernel = {5, 4}, .stride = {3, 3}, .padding = {2, 1}, .extra = {2, 0}},
     2,
     5,
     3,
     true},
    {"up by a stride beyond the kernel",
     {.image = {3, 3}, .kernel = {1, 2}, .stride = {3, 3}},
     2,
     2,
     2,
     true},
};

/* Catches: a pixel, tap or edge missed or met twice in any of the four results. */
static void operators_against_the_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const struct trial *c = &trials[i];
        struct numbers a = by_heed(c, 1), b = by_definition(c);
        assert_int_equal(a.rows, b.rows);
        expect_all(c->what, "y", a.y, b.y, a.rows * c->out);
        expect_all(c->what, "dx", a.dx, b.dx, a.rows_in * c->in);
        expect_all(c->what, "dw", a.dw, b.dw, a.taps * c->in * c->out);
        expect_all(c->what, "db", a.db, b.db, c->out);
        numbers_free(&a);
        numbers_free(&b);
    }
}

/* Catches: a sum that is cut where a thread's share ends. */
static void same_bits_with_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const struct trial *c = &trials[i];
        struct numbers a = by_heed(c, 1);
        for (int threads = 2; threads <= 5; threads++) {
            struct numbers b = by_heed(c, threads);
            assert_memory_equal(a.y, b.y, (size_t)(a.rows * c->out) * sizeof *a.y);
            assert_memory_equal(a.dx, b.dx, (size_t)(a.rows_in * c->in) * sizeof *a.dx);
            assert_memory_equal(a.dw, b.dw, (size_t)(a.taps * c->in * c->out) * sizeof *a.dw);
            assert_memory_equal(a.db, b.db, (size_t)c->out * sizeof *a.db);
            numbers_free(&b);
        }
        numbers_free(&a);
    }
}

/* Catches: a causal convolution that sees the future or a neighbour, wrong lengths with strides. */
static void along_segments(void **state)
{
    static const int64_t lengths[] = {9, 0, 1, 20, 4};
    enum { C = 3, F = 4, ROWS = 34, B = 5 };
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 3}, NULL);
    (void)state;
    for (int stride = 1; stride <= 3; stride++)
        for (int dilation = 1; dilation <= 4; dilation++)
            for (int how = 0; how < 3; how++) {
                const heed_conv1d_options o = {.kernel = 1 + how % 2 * 2,
                                               .stride = stride,
                                               .dilation = dilation,
                                               .padding = how == 0   ? 0
                                                          : how == 1 ? 0
                                                                     : 1,
                                               .causal = how == 1};
                heed_tape_reset(t);
                const heed_segments *s = heed_segments_new(heed_tape_arena(t), B, lengths),
                                    *to = NULL;
                heed_tensor *x = some(t, ROWS, C, 0.1), *w = some(t, o.kernel * C, F, 0.3);
                heed_tensor *y = heed_conv1d(t, x, w, NULL, s, &o, &to);
                assert_non_null(y);
                assert_int_equal(to->rows, heed_tensor_rows(y));
                for (int b = 0; b < B; b++) {
                    const int64_t reach = dilation * (o.kernel - 1),
                                  before = o.causal ? reach : o.padding,
                                  room =
                                      lengths[b] + before + (o.causal ? 0 : o.padding) - reach - 1,
                                  n = lengths[b] && room >= 0 ? room / stride + 1 : 0;
                    assert_int_equal(to->offset[b + 1] - to->offset[b], n);
                    for (int64_t p = 0; p < n; p++)
                        for (int64_t f = 0; f < F; f++) {
                            double wanted = 0;
                            for (int64_t k = 0; k < o.kernel; k++)
                                for (int64_t c = 0; c < C; c++) {
                                    const int64_t at = p * stride - before + k * dilation;
                                    if (at >= 0 && at < lengths[b])
                                        wanted += (double)heed_tensor_data(
                                                      x)[(s->offset[b] + at) * C + c] *
                                                  (double)heed_tensor_data(w)[(k * C + c) * F + f];
                                }
                            expect("conv1d", p,
                                   (double)heed_tensor_data(y)[(to->offset[b] + p) * F + f],
                                   wanted);
                        }
                }
            }
    heed_tape_free(t);
}

/* Catches: a refusal without a reason, or none. */
static void what_is_refused(void **state)
{
    heed_tape *t = heed_tape_new(NULL, NULL);
    (void)state;
    static const struct {
        heed_conv2d_options o;
        const char *text;
    } bad[] = {
        {{.image = {4, 4}, .kernel = {5, 3}},
         "conv2d: a kernel of 5 x 3 gives pictures of 0 x 2 from 4 x 4"},
        {{.image = {4, 4}, .kernel = {3, 0}}, "conv2d: kernel is 3 x 0, expected 1 to 1048576"},
        {{.image = {4, 4}, .kernel = {3, 3}, .padding = {-1, 0}},
         "conv2d: padding is -1 x 0, expected 0 to 1048576"},
        {{.image = {3, 4}, .kernel = {3, 3}}, "conv2d: x is (32,2), expected (B*3*4,C)"},
        {{.image = {4, 4}, .kernel = {2, 2}}, "conv2d: weight is (18,3), expected (4*2,F)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        heed_tape_reset(t);
        assert_null(heed_conv2d(t, some(t, 32, 2, 0), some(t, 18, 3, 0), NULL, &bad[i].o));
        assert_string_equal(heed_tape_error(t)->text, bad[i].text);
    }
    heed_tape_reset(t);
    assert_null(heed_conv2d_transposed(
        t, some(t, 32, 2, 0), some(t, 18, 3, 0), NULL,
        &(heed_conv2d_options){.image = {4, 4}, .kernel = {3, 3}, .extra = {1, 0}}));
    assert_string_equal(heed_tape_error(t)->text,
                        "conv2d_transposed: extra is 1 x 0, expected less than the stride 1 x 1");
    heed_tape_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_against_loops),
        cmocka_unit_test(pairs_against_loops),
        cmocka_unit_test(operators_against_the_definition),
        cmocka_unit_test(same_bits_with_any_number_of_threads),
        cmocka_unit_test(along_segments),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
