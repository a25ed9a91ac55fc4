/* geometry.c: exact solvers for the pointer network's tasks.  Plain and quadratic or worse: n is
 * small, and what the network learns from must be right. */
#include "geometry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double x_of(const heed_real *points, int32_t i)
{
    return (double)points[2 * i];
}

static double y_of(const heed_real *points, int32_t i)
{
    return (double)points[2 * i + 1];
}

double geometry_turn(const heed_real *points, int32_t a, int32_t b, int32_t c)
{
    double ux = x_of(points, b) - x_of(points, a), uy = y_of(points, b) - y_of(points, a);
    double vx = x_of(points, c) - x_of(points, a), vy = y_of(points, c) - y_of(points, a);
    return ux * vy - uy * vx;
}

static double distance(const heed_real *points, int32_t a, int32_t b)
{
    return hypot(x_of(points, a) - x_of(points, b), y_of(points, a) - y_of(points, b));
}

/* ---- convex hull ---- */

static void sort_by_x(const heed_real *points, int64_t n, int32_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        double x = x_of(points, (int32_t)i), y = y_of(points, (int32_t)i);
        for (; j > 0; j--) {
            double bx = x_of(points, order[j - 1]), by = y_of(points, order[j - 1]);
            if (bx < x || (bx == x && by <= y))
                break;
            order[j] = order[j - 1];
        }
        order[j] = (int32_t)i;
    }
}

static void reverse(int32_t *x, int64_t n)
{
    for (int64_t i = 0; i < n / 2; i++) {
        int32_t kept = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = kept;
    }
}

/* Brings the lowest index to the front of a cycle. */
static void lowest_first(int32_t *cycle, int64_t n, int32_t *room)
{
    int64_t low = 0;
    for (int64_t i = 1; i < n; i++)
        low = cycle[i] < cycle[low] ? i : low;
    for (int64_t i = 0; i < n; i++)
        room[i] = cycle[(low + i) % n];
    memcpy(cycle, room, (size_t)n * sizeof *cycle);
}

/* The points in this order, without those where the chain would not turn left; returns how many. */
static int64_t left_turns(const heed_real *points, const int32_t *order, int64_t n, int32_t *chain)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        while (k > 1 && geometry_turn(points, chain[k - 2], chain[k - 1], order[i]) <= 0)
            k--;
        chain[k++] = order[i];
    }
    return k;
}

/* Andrew's monotone chain: the lower half from left to right, then the upper one back; each ends
 * where the other begins. */
int64_t geometry_hull(const heed_real *points, int64_t n, int32_t *hull)
{
    int32_t *order = malloc((size_t)(3 * n) * sizeof *order), *chain = order + n;
    int64_t k = 0;
    if (order && n >= 3) {
        sort_by_x(points, n, order);
        k = left_turns(points, order, n, chain) - 1;
        reverse(order, n);
        k += left_turns(points, order, n, chain + k) - 1;
        memcpy(hull, chain, (size_t)k * sizeof *hull);
        lowest_first(hull, k, chain);
    }
    free(order);
    return k;
}

/* ---- Delaunay ---- */

/* Whether d lies inside the circle through a, b, c, which run counter-clockwise. */
static bool in_circle(const heed_real *p, int32_t a, int32_t b, int32_t c, int32_t d)
{
    const int32_t corner[] = {a, b, c};
    double m[3][3];
    for (int i = 0; i < 3; i++) {
        double x = x_of(p, corner[i]) - x_of(p, d), y = y_of(p, corner[i]) - y_of(p, d);
        m[i][0] = x;
        m[i][1] = y;
        m[i][2] = x * x + y * y;
    }
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
               m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
               m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]) >
           0;
}

static bool is_delaunay(const heed_real *p, int64_t n, int32_t a, int32_t b, int32_t c)
{
    double turn = geometry_turn(p, a, b, c);
    if (turn == 0)
        return false;
    for (int32_t d = 0; d < n; d++)
        if (d != a && d != b && d != c &&
            (turn > 0 ? in_circle(p, a, b, c, d) : in_circle(p, a, c, b, d)))
            return false;
    return true;
}

/* Corners weighted by the lengths of the opposite sides. */
static void incentre(const heed_real *p, const int32_t t[3], double centre[2])
{
    double side[3], sum = 0;
    centre[0] = centre[1] = 0;
    for (int i = 0; i < 3; i++) {
        side[i] = distance(p, t[(i + 1) % 3], t[(i + 2) % 3]);
        sum += side[i];
    }
    for (int i = 0; i < 3; i++) {
        centre[0] += side[i] / sum * x_of(p, t[i]);
        centre[1] += side[i] / sum * y_of(p, t[i]);
    }
}

static bool before(const heed_real *p, const int32_t a[3], const int32_t b[3])
{
    double ca[2], cb[2];
    incentre(p, a, ca);
    incentre(p, b, cb);
    return ca[0] < cb[0] || (ca[0] == cb[0] && ca[1] < cb[1]);
}

int64_t geometry_delaunay(const heed_real *points, int64_t n, int32_t (*triangles)[3])
{
    int64_t count = 0;
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = a + 1; b < n; b++)
            for (int32_t c = b + 1; c < n; c++) {
                if (count == GEOMETRY_TRIANGLES(n) || !is_delaunay(points, n, a, b, c))
                    continue;
                const int32_t found[3] = {a, b, c};
                int64_t i = count++;
                for (; i > 0 && before(points, found, triangles[i - 1]); i--)
                    memcpy(triangles[i], triangles[i - 1], sizeof *triangles);
                memcpy(triangles[i], found, sizeof found);
            }
    return count;
}

/* ---- the shortest tour ---- */

double geometry_length(const heed_real *points, const int32_t *tour, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += distance(points, tour[i], tour[(i + 1) % n]);
    return sum;
}

/* Paths from point 0 through a set of the other points, whose bits are numbered from 0. */
struct paths {
    const heed_real *points;
    int32_t others; /* n - 1 */
    double *best;   /* (sets,others): the shortest through the set that ends in j */
    int8_t *from;   /* (sets,others): the point before j on it */
};

static size_t cell(const struct paths *p, size_t set, int32_t j)
{
    return set * (size_t)p->others + (size_t)j;
}

/* The shortest path through `set` to j, by those through the set without j. */
static void extend(const struct paths *p, size_t set, int32_t j)
{
    size_t rest = set & ~((size_t)1 << j), at = cell(p, set, j);
    p->best[at] = rest ? INFINITY : distance(p->points, 0, j + 1);
    for (int32_t k = 0; k < p->others; k++)
        if (rest >> k & 1) {
            double length = p->best[cell(p, rest, k)] + distance(p->points, k + 1, j + 1);
            if (length < p->best[at]) {
                p->best[at] = length;
                p->from[at] = (int8_t)k;
            }
        }
}

/* The best end of a path through all, and the tour back from there. */
static double trace(const struct paths *p, int32_t *tour)
{
    size_t set = ((size_t)1 << p->others) - 1;
    double length = INFINITY;
    int32_t end = 0;
    for (int32_t j = 0; j < p->others; j++) {
        double closed = p->best[cell(p, set, j)] + distance(p->points, j + 1, 0);
        end = closed < length ? j : end;
        length = fmin(closed, length);
    }
    tour[0] = 0;
    for (int32_t i = p->others; i > 0; i--) {
        int32_t before = i > 1 ? p->from[cell(p, set, end)] : 0;
        tour[i] = end + 1;
        set &= ~((size_t)1 << end);
        end = before;
    }
    return length;
}

double geometry_tour(const heed_real *points, int64_t n, int32_t *tour)
{
    if (n < 3 || n > GEOMETRY_TOUR)
        return -1;
    size_t sets = (size_t)1 << (n - 1), cells = sets * (size_t)(n - 1);
    struct paths p = {points, (int32_t)n - 1, malloc(cells * sizeof *p.best), malloc(cells)};
    double length = -1;
    if (p.best && p.from) {
        for (size_t set = 1; set < sets; set++)
            for (int32_t j = 0; j < p.others; j++)
                if (set >> j & 1)
                    extend(&p, set, j);
        length = trace(&p, tour);
        if (geometry_area(points, tour, n) < 0)
            reverse(tour + 1, n - 1);
    }
    free(p.best);
    free(p.from);
    return length;
}

/* ---- polygons ---- */

double geometry_area(const heed_real *points, const int32_t *polygon, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t a = polygon[i], b = polygon[(i + 1) % n];
        sum += x_of(points, a) * y_of(points, b) - x_of(points, b) * y_of(points, a);
    }
    return sum / 2;
}

/* Whether the sides a b and c d, which share no corner, meet. */
static bool sides_meet(const heed_real *p, int32_t a, int32_t b, int32_t c, int32_t d)
{
    double abc = geometry_turn(p, a, b, c), abd = geometry_turn(p, a, b, d);
    double cda = geometry_turn(p, c, d, a), cdb = geometry_turn(p, c, d, b);
    return abc * abd <= 0 && cda * cdb <= 0;
}

bool geometry_simple(const heed_real *points, const int32_t *polygon, int64_t n)
{
    if (n < 3)
        return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            if (polygon[i] == polygon[j])
                return false;
            bool neighbours = j == i + 1 || (i == 0 && j == n - 1);
            if (!neighbours &&
                sides_meet(points, polygon[i], polygon[i + 1], polygon[j], polygon[(j + 1) % n]))
                return false;
        }
    return true;
}
