/* test_geometry.c: the exact solvers against definitions and enumeration. */
#include "labs/geometry.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 12, ROUNDS = 200 };

static void draw(heed_real *points, int64_t n, uint64_t round)
{
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 4, .step = round});
    for (int64_t i = 0; i < 2 * n; i++)
        points[i] = (heed_real)heed_rng_uniform(&rng, (uint64_t)i);
}

/* Catches a corner that is left out or does not belong there: every point lies left of every side,
 * sides run counter-clockwise, and the lowest index comes first. */
static void hull_holds_everything(void **state)
{
    heed_real p[2 * MOST];
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int64_t n = 3 + (int64_t)round % (MOST - 2);
        int32_t hull[MOST];
        draw(p, n, round);
        int64_t k = geometry_hull(p, n, hull);
        assert_in_range(k, 3, n);
        for (int64_t i = 0; i < k; i++) {
            assert_true(hull[i] >= hull[0]);
            for (int32_t j = 0; j < n; j++) {
                int32_t a = hull[i], b = hull[(i + 1) % k];
                if (j != a && j != b)
                    assert_true(geometry_turn(p, a, b, j) > 0);
            }
        }
        assert_true(geometry_simple(p, hull, k));
        assert_true(geometry_area(p, hull, k) > 0);
    }
}

/* Catches a loop that loses the ends of the chain: points in a line on two sides of a square. */
static void hull_of_a_square(void **state)
{
    (void)state;
    static const heed_real p[] = {
        1, 1, 0, 0, 1, 0, 0, 1, (heed_real).5, (heed_real).5, (heed_real).5, 0, 0, (heed_real).5};
    int32_t hull[7];
    assert_int_equal(geometry_hull(p, 7, hull), 4);
    assert_memory_equal(hull, ((int32_t[]){0, 3, 1, 2}), sizeof(int32_t[4]));
    assert_true(geometry_area(p, hull, 4) == 1);
    assert_int_equal(geometry_hull(p, 2, hull), 0);
}

/* Catches triangles that overlap or leave a hole: their areas add up to the hull's, there are
 * 2n - 2 - k of them for k corners of the hull, and they come in order. */
static void delaunay_fills_the_hull(void **state)
{
    heed_real p[2 * MOST];
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int64_t n = 3 + (int64_t)round % (MOST - 2);
        int32_t hull[MOST], triangles[GEOMETRY_TRIANGLES(MOST)][3];
        draw(p, n, round);
        int64_t corners = geometry_hull(p, n, hull);
        int64_t count = geometry_delaunay(p, n, triangles);
        assert_int_equal(count, 2 * n - 2 - corners);
        double area = 0;
        for (int64_t i = 0; i < count; i++) {
            const int32_t *t = triangles[i];
            assert_true(t[0] < t[1] && t[1] < t[2]);
            area += fabs(geometry_turn(p, t[0], t[1], t[2])) / 2;
        }
        assert_true(fabs(area - geometry_area(p, hull, corners)) < 1e-9);
    }
}

/* Catches a circle test with the wrong sign: of the two ways to cut these four points in two, the
 * short diagonal is right.  The left triangle comes first. */
static void delaunay_takes_the_short_diagonal(void **state)
{
    (void)state;
    static const heed_real p[] = {0,
                                  (heed_real).5,
                                  1,
                                  (heed_real).5,
                                  (heed_real).5,
                                  (heed_real).6,
                                  (heed_real).5,
                                  (heed_real).4};
    int32_t triangles[8][3];
    assert_int_equal(geometry_delaunay(p, 4, triangles), 2);
    assert_memory_equal(triangles, ((int32_t[2][3]){{0, 2, 3}, {1, 2, 3}}), sizeof(int32_t[2][3]));
}

/* The length of the best tour by trying all orders of the points behind `done`. */
static double enumerate(const heed_real *p, int32_t *tour, int64_t done, int64_t n)
{
    if (done == n)
        return geometry_length(p, tour, n);
    double best = INFINITY;
    for (int64_t i = done; i < n; i++) {
        int32_t kept = tour[done];
        tour[done] = tour[i];
        tour[i] = kept;
        best = fmin(best, enumerate(p, tour, done + 1, n));
        tour[i] = tour[done];
        tour[done] = kept;
    }
    return best;
}

/* Catches a path that is cut short or forgets where it came from. */
static void tour_is_the_shortest(void **state)
{
    heed_real p[2 * 8];
    (void)state;
    for (uint64_t round = 0; round < 60; round++) {
        int64_t n = 3 + (int64_t)round % 6;
        int32_t tour[8], order[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        unsigned seen = 0;
        draw(p, n, round);
        double length = geometry_tour(p, n, tour);
        for (int64_t i = 0; i < n; i++)
            seen |= 1u << tour[i];
        assert_int_equal(seen, (1u << n) - 1);
        assert_int_equal(tour[0], 0);
        assert_true(fabs(length - geometry_length(p, tour, n)) < 1e-9);
        assert_true(fabs(length - enumerate(p, order, 1, n)) < 1e-9);
        assert_true(geometry_area(p, tour, n) >= 0);
    }
    int32_t none[1];
    assert_true(geometry_tour(p, 2, none) == -1);
    assert_true(geometry_tour(p, GEOMETRY_TOUR + 1, none) == -1);
}

/* Catches a bow tie that passes for a polygon, and a polygon that is refused. */
static void simple_polygons(void **state)
{
    (void)state;
    static const heed_real p[] = {0, 0, 1, 0, 1, 1, 0, 1, (heed_real).5, (heed_real).25};
    assert_true(geometry_simple(p, (int32_t[]){0, 1, 2, 3}, 4));
    assert_true(geometry_simple(p, (int32_t[]){3, 2, 1, 0}, 4));
    assert_true(geometry_simple(p, (int32_t[]){0, 4, 1, 2, 3}, 5)); /* not convex */
    assert_false(geometry_simple(p, (int32_t[]){0, 2, 1, 3}, 4));
    assert_false(geometry_simple(p, (int32_t[]){0, 1}, 2));
    assert_false(geometry_simple(p, (int32_t[]){0, 1, 2, 1}, 4)); /* a corner twice */
    assert_true(geometry_area(p, (int32_t[]){3, 2, 1, 0}, 4) == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hull_holds_everything),
        cmocka_unit_test(hull_of_a_square),
        cmocka_unit_test(delaunay_fills_the_hull),
        cmocka_unit_test(delaunay_takes_the_short_diagonal),
        cmocka_unit_test(tour_is_the_shortest),
        cmocka_unit_test(simple_polygons),
    };
    return cmocka_run_group_tests_name("geometry", tests, NULL, NULL);
}
