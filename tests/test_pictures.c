/* test_pictures.c: rows over time and sets of points as SVG. */
#include "failing_allocator.h"
#include "picture_check.h"

#include <math.h>

static const char *heat(const heed_heat_panel *panels, int count)
{
    const char *svg;
    heed_error err = {0};
    if (heed_heat_svg("a <title>", "step & time", panels, count, arena, &svg, &err))
        fail_msg("%s", err.text);
    check_xml(svg);
    return svg;
}

/* Catches cells in the wrong place or of the wrong shade, and runs that are not merged. */
static void cells(void **state)
{
    (void)state;
    static const heed_real weights[] = {0, 1, 1, 0, (heed_real).25, 0};
    heed_heat_panel panel = {"w", weights, 2, 3, 0, 1};
    const char *svg = heat(&panel, 1);
    assert_non_null(strstr(svg, "<path class=\"w15\" d=\"M1 0h2v1h-2z\"/>"));
    assert_non_null(strstr(svg, "<path class=\"w8\" d=\"M1 1h1v1h-1z\"/>")); /* root of .25 */
    assert_int_equal(occurrences(svg, "<path"), 2);
    assert_non_null(strstr(svg, "a &lt;title&gt;"));
    assert_non_null(strstr(svg, "step &amp; time"));
    /* Numbers of both signs are not rooted: 0 is in the middle. */
    static const heed_real both[] = {-1, 0, 1};
    svg = heat(&(heed_heat_panel){"a", both, 1, 3, -1, 1}, 1);
    assert_non_null(strstr(svg, "<path class=\"w8\" d=\"M1 0h1v1h-1z\"/>"));
    assert_non_null(strstr(svg, "<path class=\"w15\" d=\"M2 0h1v1h-1z\"/>"));
}

/* Catches numbers that break the picture, and what is out of range or not a number shown as if it
 * were a weight. */
static void odd_numbers(void **state)
{
    (void)state;
    static const heed_real odd[] = {NAN, INFINITY, -INFINITY, -5, 7, (heed_real)1e30};
    const char *svg = heat(&(heed_heat_panel){"w", odd, 1, 6, 0, 1}, 1);
    assert_non_null(strstr(svg, "<path class=\"nan\" d=\"M0 0h3v1h-3z\"/>"));
    assert_non_null(strstr(svg, "<path class=\"w15\" d=\"M4 0h2v1h-2z\"/>"));
    static heed_real many[200 * 700];
    heat((heed_heat_panel[]){{"n", many, 200, 700, 0, 1}, {"m", many, 1, 700, 0, 0}}, 2);
    heat(&(heed_heat_panel){"one", many, 1, 1, 0, 1}, 1);
}

/* Catches panels that do not share their axis drawn as if they did. */
static void refuses(void **state)
{
    (void)state;
    static const heed_real x[6];
    const heed_heat_panel panels[] = {{"a", x, 2, 3, 0, 1}, {"b", x, 3, 2, 0, 1}};
    const char *svg;
    heed_error err = {0};
    assert_int_equal(heed_heat_svg("t", "x", panels, 2, arena, &svg, &err), HEED_SHAPE_ERROR);
    assert_string_equal(err.text, "heat: 'b' is (3,2), expected (N,3)");
    err = (heed_error){0};
    assert_int_equal(heed_heat_svg("t", "x", panels, 0, arena, &svg, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "heat: 0 panels, expected at least 1");
    static const int32_t index[] = {0, 3};
    const heed_points_line line = {index, 2, false, true};
    const heed_points_square square = {"s", x, 3, &line, 1};
    err = (heed_error){0};
    assert_int_equal(heed_points_svg("t", &square, 1, arena, &svg, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "points: a line of 's' goes through point 3 of 3");
    err = (heed_error){0};
    assert_int_equal(heed_points_svg("t", &square, 0, arena, &svg, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "points: 0 squares, expected at least 1");
    const heed_pattern_square squares[] = {{"p", HEED_ONE(HEED_PATTERN_LOCAL_P), false},
                                           {"w", HEED_ONE(HEED_PATTERN_BAND, {-2}), false}};
    static const char *const why[] = {
        "what 'p' sees depends on more than positions: there is no picture of it",
        "the number of band:W is -2, expected 1 to 2147483647"};
    for (int i = 0; i < 2; i++) {
        err = (heed_error){0};
        assert_int_equal(heed_patterns_svg("t", &squares[i], 1, 9, 4, arena, &svg, &err),
                         HEED_ARGUMENT);
        assert_string_equal(err.text, why[i]);
    }
    err = (heed_error){0};
    assert_int_equal(heed_patterns_svg("t", squares, 1, 0, 4, arena, &svg, &err), HEED_ARGUMENT);
    assert_int_equal(heed_patterns_svg("t", squares, 1, 9, 4, NULL, &svg, NULL), HEED_ARGUMENT);
}

/* Catches a picture whose pairs are others than those that a query sees: rows and columns that have
 * changed places, what is causal and drawn above the diagonal, light where it is dark. */
static void patterns(void **state)
{
    (void)state;
    const heed_pattern_square squares[] = {
        {"block", HEED_ONE(HEED_PATTERN_BLOCK, {2}), false},
        {"causal", HEED_ONE(HEED_PATTERN_BLOCK, {2}), true},
        {"first", HEED_ONE(HEED_PATTERN_GLOBAL, {1}), true},
        {"turns", HEED_ONE(HEED_PATTERN_AXIAL, {2}), false},
    };
    const char *svg;
    assert_int_equal(heed_patterns_svg("t", squares, 4, 4, 3, arena, &svg, NULL), HEED_OK);
    check_xml(svg);
    assert_int_equal(occurrences(svg, "class=\"frame\""), 4);
    assert_int_equal(occurrences(svg, "d=\"M0 0h2v1h-2zM0 1h2v1h-2zM2 2h2v1h-2zM2 3h2v1h-2z\""), 2);
    assert_int_equal(occurrences(svg, "d=\"M0 0h1v1h-1zM0 1h2v1h-2zM2 2h1v1h-1zM2 3h2v1h-2z\""), 1);
    assert_int_equal(occurrences(svg, "d=\"M0 0h1v1h-1zM0 1h1v1h-1zM0 2h1v1h-1zM0 3h1v1h-1z\""), 1);
    /* Of the last, the columns are of the second layer. */
    assert_int_equal(occurrences(svg, "class=\"w4\" d=\"M2 0h1v1h-1zM3 1h1v1h-1zM0 2h1v1h-1zM1 3h"),
                     1);
}

static const heed_real corners[] = {0, 0, 1, 0, 0, 1};
static const int32_t all[] = {0, 1, 2};
static const heed_points_line lines[] = {{all, 3, true, true}, {all, 2, false, false}};
static const heed_points_square square = {"n = 3", corners, 3, lines, 2};

/* Catches points upside down, lines that are not closed, and what is right drawn over what was
 * found. */
static void points(void **state)
{
    (void)state;
    const char *svg;
    assert_int_equal(heed_points_svg("t", &square, 1, arena, &svg, NULL), HEED_OK);
    check_xml(svg);
    assert_int_equal(occurrences(svg, "<circle"), 3);
    const char *found = strstr(svg, "<path class=\"found\" d=\"M40 308L226 308L40 122z\"/>");
    const char *right = strstr(svg, "<path class=\"right\" d=\"M40 308L226 308\"/>");
    assert_non_null(found);
    assert_non_null(right);
    assert_true(right < found);
    heed_points_square many[9];
    for (int i = 0; i < 9; i++)
        many[i] = square;
    assert_int_equal(heed_points_svg("t", many, 9, arena, &svg, NULL), HEED_OK);
    check_xml(svg);
    assert_int_equal(occurrences(svg, "n = 3"), 9);
}

/* Catches a crash or a cut picture when memory runs out at any point. */
static void memory_runs_out(void **state)
{
    (void)state;
    static heed_real x[40 * 40];
    for (int i = 0; i < 40 * 40; i++)
        x[i] = (heed_real)(i % 7 / 7.0);
    const heed_heat_panel panel = {"p", x, 40, 40, 0, 1};
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_arena *own = heed_arena_new(&a, &err);
        const char *first = NULL, *second = NULL;
        if (own && !heed_heat_svg("t", "x", &panel, 1, own, &first, &err))
            heed_points_svg("t", &square, 1, own, &second, &err);
        const heed_pattern_square band = {"b", HEED_ONE(HEED_PATTERN_BAND, {3}), true};
        if (second && heed_patterns_svg("t", &band, 1, 40, 1, own, &second, &err))
            second = NULL;
        failed = f.calls >= n;
        assert_int_equal(err.status, failed ? HEED_MEMORY : HEED_OK);
        assert_int_equal(first && second, !failed);
        heed_arena_free(own);
        assert_int_equal(f.held, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(cells),  WITH_ARENA(odd_numbers), WITH_ARENA(refuses),
        WITH_ARENA(points), WITH_ARENA(patterns),    WITH_ARENA(memory_runs_out),
    };
    return cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
}
