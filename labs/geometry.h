/* geometry.h: exact answers to small questions about points of the plane: convex hull, Delaunay
 * triangles, shortest tour; and how good an answer is.  Points are (n,2); answers are indices. */
#ifndef HEED_LABS_GEOMETRY_H
#define HEED_LABS_GEOMETRY_H

#include <heed/base.h>

/* Twice the signed area of the triangle a b c: above 0 if it runs counter-clockwise. */
double geometry_turn(const heed_real *points, int32_t a, int32_t b, int32_t c);

/* Counter-clockwise from the corner with the lowest index; returns how many.  hull has room for n.
 */
int64_t geometry_hull(const heed_real *points, int64_t n, int32_t *hull);

/* The triangles whose circumcircle holds no other point, corners by ascending index, ordered by the
 * coordinates of their incentres (x, then y).  Returns how many; triangles has room for
 * GEOMETRY_TRIANGLES(n). */
#define GEOMETRY_TRIANGLES(n) (2 * (n))
int64_t geometry_delaunay(const heed_real *points, int64_t n, int32_t (*triangles)[3]);

/* The shortest closed tour (Held and Karp 1962: 2^n n^2 steps), from point 0, counter-clockwise;
 * its length, or -1 if n is not in 3 .. GEOMETRY_TOUR or memory is short. */
#define GEOMETRY_TOUR 16
double geometry_tour(const heed_real *points, int64_t n, int32_t *tour);
double geometry_length(const heed_real *points, const int32_t *tour, int64_t n);

/* Of a polygon: its signed area, and whether no two of its sides meet (and it has at least three).
 */
double geometry_area(const heed_real *points, const int32_t *polygon, int64_t n);
bool geometry_simple(const heed_real *points, const int32_t *polygon, int64_t n);

#endif
