/* pointer_tasks.c: random points, exact answers, and what an answer is worth (section 4). */
#include "geometry.h"
#include "pointer.h"

#include <math.h>
#include <string.h>

int64_t pointer_channels(pointer_task task)
{
    return task == POINTER_SORT ? 1 : 2;
}

bool pointer_ends(pointer_task task)
{
    return task == POINTER_HULL || task == POINTER_DELAUNAY;
}

int64_t pointer_longest(pointer_task task, int64_t n)
{
    return task == POINTER_DELAUNAY ? 3 * GEOMETRY_TRIANGLES(n) + 1 : n + pointer_ends(task);
}

/* ---- exact answers ---- */

static int64_t sort(const heed_real *x, int64_t n, int32_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (; j > 0 && x[order[j - 1]] > x[i]; j--)
            order[j] = order[j - 1];
        order[j] = (int32_t)i;
    }
    return n;
}

/* Indices, without an end; pointer_longest of them at most. */
static int64_t solve(pointer_task task, const heed_real *points, int64_t n, int32_t *answer)
{
    switch (task) {
    case POINTER_SORT:
        return sort(points, n, answer);
    case POINTER_HULL:
        return geometry_hull(points, n, answer);
    case POINTER_DELAUNAY:
        return 3 * geometry_delaunay(points, n, (int32_t(*)[3])answer);
    case POINTER_TSP:
        return geometry_tour(points, n, answer) < 0 ? 0 : n;
    }
    return 0;
}

bool pointer_draw(pointer_task task, int64_t n, const heed_rng *rng, uint64_t *next,
                  heed_arena *arena, pointer_example *e)
{
    int64_t numbers = n * pointer_channels(task);
    heed_real *points = heed_arena_allocate(arena, (size_t)numbers * sizeof *points);
    int32_t *answer = heed_arena_allocate(arena, (size_t)pointer_longest(task, n) * sizeof *answer);
    if (!points || !answer)
        return false;
    for (int64_t i = 0; i < numbers; i++)
        points[i] = (heed_real)heed_rng_uniform(rng, (*next)++);
    int64_t answers = solve(task, points, n, answer);
    if (answers == 0)
        return false;
    if (pointer_ends(task))
        answer[answers++] = (int32_t)n;
    *e = (pointer_example){n, answers, points, answer};
    return true;
}

/* ---- judging ---- */

/* Whether two cycles are the same, whichever way round and wherever they begin. */
static bool same_cycle(const int32_t *a, const int32_t *b, int64_t n)
{
    for (int64_t from = 0; from < n; from++)
        for (int way = -1; way <= 1; way += 2) {
            int64_t i = 0;
            while (i < n && a[i] == b[((from + way * i) % n + n) % n])
                i++;
            if (i == n)
                return true;
        }
    return false;
}

static void judge_hull(const pointer_example *e, const int32_t *answer, int64_t answers,
                       pointer_score *score)
{
    int64_t corners = e->answers - 1;
    score->exact += answers == corners && same_cycle(answer, e->answer, corners);
    if (geometry_simple(e->points, answer, answers)) {
        score->simple++;
        score->covered += fabs(geometry_area(e->points, answer, answers)) /
                          geometry_area(e->points, e->answer, corners);
    }
}

static void order_corners(const int32_t from[3], int32_t to[3])
{
    memcpy(to, from, 3 * sizeof *to);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2 - i; j++)
            if (to[j] > to[j + 1]) {
                int32_t kept = to[j];
                to[j] = to[j + 1];
                to[j + 1] = kept;
            }
}

static void judge_triangles(const pointer_example *e, const int32_t *answer, int64_t answers,
                            pointer_score *score)
{
    int64_t wanted = (e->answers - 1) / 3, found = 0;
    for (int64_t i = 0; i < wanted; i++) {
        bool there = false;
        for (int64_t j = 0; j + 3 <= answers && !there; j += 3) {
            int32_t corners[3];
            order_corners(answer + j, corners);
            there = memcmp(corners, e->answer + 3 * i, sizeof corners) == 0;
        }
        found += there;
    }
    score->covered += (double)found / (double)wanted;
    score->exact += found == wanted && answers == 3 * wanted;
}

static void judge_order(const pointer_example *e, const int32_t *answer, int64_t answers,
                        pointer_score *score)
{
    int64_t right = 0;
    for (int64_t i = 0; i < answers && i < e->answers; i++)
        right += answer[i] == e->answer[i];
    score->covered += (double)right / (double)e->answers;
    score->exact += right == e->answers;
}

void pointer_judge(pointer_task task, const pointer_example *e, const int32_t *answer,
                   int64_t answers, pointer_score *score)
{
    score->examples++;
    switch (task) {
    case POINTER_SORT:
        judge_order(e, answer, answers, score);
        break;
    case POINTER_HULL:
        judge_hull(e, answer, answers, score);
        break;
    case POINTER_DELAUNAY:
        judge_triangles(e, answer, answers, score);
        break;
    case POINTER_TSP:
        score->exact += same_cycle(answer, e->answer, e->n);
        score->length += geometry_length(e->points, answer, answers);
        score->optimum += geometry_length(e->points, e->answer, e->n);
        break;
    }
}
