/* test_curves.c: training curves as SVG. */
#include "failing_allocator.h"
#include "picture_check.h"

#include <math.h>

static const char *draw_curve(const double *x, const double *y, int64_t n, bool logarithmic)
{
    heed_curve curve = {"a & b", x, y, n};
    heed_curve_panel panel = {"<loss>", &curve, 1, logarithmic};
    const char *svg;
    heed_error err = {0};
    assert_int_equal(heed_curves_svg("title", "updates", &panel, 1, arena, &svg, &err), HEED_OK);
    check_xml(svg);
    return svg;
}

/* Catches data that breaks the picture: nothing, one point, gaps, constants, huge and tiny numbers,
 * numbers that a logarithm does not take. */
static void odd_curves(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5, 6};
    static const double y[][6] = {
        {1, 2, 3, 4, 5, 6},
        {7, 7, 7, 7, 7, 7},
        {0, 0, 0, 0, 0, 0},
        {NAN, NAN, NAN, NAN, NAN, NAN},
        {1, NAN, 2, INFINITY, -INFINITY, 3},
        {1e308, -1e308, 0, 1, 2, 3},
        {1e-300, 1e-310, 0, 3e-300, 2e-300, 1e-300},
        {-3, -2, -1, 0, 1, 2},
        {1e-7, 2e-7, 1e-6, 1e-5, 1e-3, 1},
        {1 + 1e-16, 1, 1, 1, 1, 1},
        {1e12, 2e12, 3e15, 1e14, 1, 1e99},
    };
    for (size_t i = 0; i < sizeof y / sizeof *y; i++)
        for (int64_t n = 0; n <= 6; n++)
            for (int logarithmic = 0; logarithmic < 2; logarithmic++)
                draw_curve(x, y[i], n, logarithmic);
    static const double wild[] = {3, NAN, 1, 1, INFINITY, -1e300};
    draw_curve(wild, y[0], 6, false);
    assert_non_null(strstr(draw_curve(x, y[3], 6, false), "nothing to show yet"));
    /* Three stretches: a point, a point, a point. */
    assert_int_equal(occurrences(draw_curve(x, y[4], 6, false), "<polyline"), 0);
    assert_int_equal(occurrences(draw_curve(x, y[0], 6, false), "<polyline"), 1);
    assert_non_null(strstr(draw_curve(x, y[0], 6, false), "&lt;loss&gt;"));
    assert_non_null(strstr(draw_curve(x, y[0], 6, false), "a &amp; b"));
}

/* Catches a picture that grows with the run, and thinning that loses a spike. */
static void many_points(void **state)
{
    (void)state;
    enum { N = 200000 };
    double *x = malloc(sizeof *x * N), *y = malloc(sizeof *y * N);
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = i % 7 * 0.1;
    }
    y[N / 3] = 10;
    const char *svg = draw_curve(x, y, N, false);
    assert_true(strlen(svg) < 100000);
    const char *line = strstr(svg, "<polyline");
    assert_non_null(line);
    const char *end = strchr(line, '/');
    const char *spike = strstr(line, ",84 "); /* the top of the panel */
    assert_true(spike && spike < end);
    free(x);
    free(y);
}

/* Catches ticks that are not round. */
static void ticks(void **state)
{
    (void)state;
    static const double x[] = {0, 20000}, loss[] = {9.3, 1.7}, rate[] = {1e-7, 7e-4};
    const char *svg = draw_curve(x, loss, 2, false);
    for (const char *const *t = (const char *const[]){">0<", ">2<", ">4<", ">6<", ">8<", ">10<",
                                                      ">4k<", ">20k<", NULL};
         *t; t++)
        assert_non_null(strstr(svg, *t));
    svg = draw_curve(x, rate, 2, true);
    for (const char *const *t = (const char *const[]){">10⁻⁷<", ">10⁻⁶<", ">10⁻⁴<", NULL}; *t; t++)
        assert_non_null(strstr(svg, *t));
    assert_non_null(strstr(draw_curve(x, rate, 2, false), ">0.0002<"));
    heed_error err = {0};
    assert_int_equal(heed_curves_svg("t", "x", NULL, 0, arena, &svg, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "curves: 0 panels, expected at least 1");
}

/* Catches a crash or a cut picture when memory runs out at any point. */
static void memory_runs_out(void **state)
{
    (void)state;
    static double x[3000], y[3000];
    for (int i = 0; i < 3000; i++)
        x[i] = i, y[i] = i % 17;
    const heed_curve curve = {"c", x, y, 3000};
    const heed_curve_panel panel = {"p", &curve, 1, false};
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_arena *own = heed_arena_new(&a, &err);
        const char *svg = NULL;
        if (own)
            heed_curves_svg("t", "x", &panel, 1, own, &svg, &err);
        failed = f.calls >= n;
        assert_int_equal(err.status, failed ? HEED_MEMORY : HEED_OK);
        assert_int_equal(svg != NULL, !failed);
        heed_arena_free(own);
        assert_int_equal(f.held, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(odd_curves),
        WITH_ARENA(many_points),
        WITH_ARENA(ticks),
        WITH_ARENA(memory_runs_out),
    };
    return cmocka_run_group_tests_name("curves", tests, NULL, NULL);
}
