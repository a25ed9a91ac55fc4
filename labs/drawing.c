/* drawing.c: see drawing.h.  A figure is some strokes, polylines in the unit square (y down), moved
 * by an affine map; a pixel's ink is what of the pen's width covers it. */
#include "drawing.h"

#include <math.h>
#include <string.h>

enum { MOST_STROKES = 4, MOST_POINTS = 12 };
typedef struct stroke {
    double at[MOST_POINTS][2];
    int points;
} stroke;

/* Seven segments would be too alike: rounded digits, as they are written. */
static const stroke digits[10][2] = {
    [0] = {{{{.5, .1},
             {.28, .2},
             {.2, .5},
             {.28, .8},
             {.5, .9},
             {.72, .8},
             {.8, .5},
             {.72, .2},
             {.5, .1}},
            9}},
    [1] = {{{{.35, .25}, {.55, .1}, {.55, .9}}, 3}},
    [2] = {{{{.22, .3}, {.3, .14}, {.52, .1}, {.74, .2}, {.74, .4}, {.5, .64}, {.2, .9}, {.8, .9}},
            8}},
    [3] = {{{{.25, .18},
             {.5, .1},
             {.74, .22},
             {.7, .4},
             {.46, .48},
             {.74, .58},
             {.78, .76},
             {.5, .9},
             {.22, .8}},
            9}},
    [4] = {{{{.62, .1}, {.18, .62}, {.84, .62}}, 3}, {{{.64, .35}, {.64, .9}}, 2}},
    [5] =
        {{{{.76, .1}, {.3, .1}, {.26, .46}, {.52, .4}, {.76, .54}, {.76, .76}, {.5, .9}, {.22, .8}},
          8}},
    [6] = {{{{.68, .12},
             {.4, .26},
             {.24, .56},
             {.3, .82},
             {.52, .9},
             {.74, .8},
             {.74, .6},
             {.52, .5},
             {.28, .62}},
            9}},
    [7] = {{{{.2, .1}, {.8, .1}, {.42, .9}}, 3}},
    [8] = {{{{.5, .48},
             {.27, .36},
             {.3, .16},
             {.5, .1},
             {.7, .16},
             {.73, .36},
             {.5, .48},
             {.24, .66},
             {.28, .84},
             {.5, .9},
             {.72, .84},
             {.76, .66}},
            12},
           {{{.76, .66}, {.5, .48}}, 2}},
    [9] = {{{{.74, .38},
             {.5, .5},
             {.27, .4},
             {.26, .2},
             {.48, .1},
             {.72, .18},
             {.74, .38},
             {.68, .7},
             {.46, .9}},
            9}},
};

static double draw(drawing_dice *d)
{
    return heed_rng_uniform(d->rng, d->next++);
}

/* Between -most and most. */
static double around(drawing_dice *d, double most)
{
    return most * (2 * draw(d) - 1);
}

static double distance(const double *p, const double *a, const double *b)
{
    const double dx = b[0] - a[0], dy = b[1] - a[1], length = dx * dx + dy * dy;
    double t = length > 0 ? ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / length : 0;
    t = fmin(fmax(t, 0), 1);
    return hypot(p[0] - a[0] - t * dx, p[1] - a[1] - t * dy);
}

/* Puts the strokes on paper, `loose` by how much the affine map may differ from none. */
static void ink(heed_real *out, int64_t side, stroke *s, int strokes, double loose, drawing_dice *d)
{
    const double turn = around(d, 0.25 * loose), slant = around(d, 0.25 * loose),
                 wide = 0.72 * exp(around(d, 0.18 * loose)),
                 tall = 0.8 * exp(around(d, 0.12 * loose)), right = 0.5 + around(d, 0.07 * loose),
                 down = 0.5 + around(d, 0.07 * loose), pen = 0.035 + 0.03 * draw(d);
    for (int k = 0; k < strokes; k++)
        for (int i = 0; i < s[k].points; i++) {
            double *p = s[k].at[i];
            const double x = wide * (p[0] - 0.5) + slant * (0.5 - p[1]), y = tall * (p[1] - 0.5);
            p[0] = right + cos(turn) * x - sin(turn) * y;
            p[1] = down + sin(turn) * x + cos(turn) * y;
        }
    for (int64_t v = 0; v < side; v++)
        for (int64_t u = 0; u < side; u++) {
            const double p[2] = {((double)u + 0.5) / (double)side,
                                 ((double)v + 0.5) / (double)side};
            double nearest = 1;
            for (int k = 0; k < strokes; k++)
                for (int i = 0; i + 1 < s[k].points; i++)
                    nearest = fmin(nearest, distance(p, s[k].at[i], s[k].at[i + 1]));
            out[v * side + u] = (heed_real)fmin(fmax((pen - nearest) * (double)side + 0.5, 0), 1);
        }
}

void drawing_digit(heed_real *out, int64_t side, int digit, drawing_dice *dice)
{
    stroke s[MOST_STROKES];
    int strokes = 0;
    for (; strokes < 2 && digits[digit][strokes].points; strokes++) {
        s[strokes] = digits[digit][strokes];
        for (int i = 0; i < s[strokes].points; i++)
            for (int k = 0; k < 2; k++)
                s[strokes].at[i][k] += around(dice, 0.025);
    }
    ink(out, side, s, strokes, 1, dice);
}

/* A curve through three points that pulls towards the middle one. */
static stroke curve(const double a[2], const double b[2], const double c[2])
{
    stroke s = {.points = MOST_POINTS};
    for (int i = 0; i < MOST_POINTS; i++) {
        const double t = (double)i / (MOST_POINTS - 1);
        for (int k = 0; k < 2; k++)
            s.at[i][k] = (1 - t) * (1 - t) * a[k] + 2 * t * (1 - t) * b[k] + t * t * c[k];
    }
    return s;
}

void drawing_character(heed_real *out, int64_t side, uint64_t character, drawing_dice *dice)
{
    const heed_rng own = heed_rng_stream(&(heed_rng_key){.seed = character, .node = 77});
    drawing_dice shape = {&own, 0};
    stroke s[MOST_STROKES];
    const int strokes = 2 + (int)heed_rng_below(&own, shape.next++, MOST_STROKES - 1);
    double last[2] = {0.5, 0.5};
    for (int k = 0; k < strokes; k++) {
        double p[3][2];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 2; j++)
                p[i][j] = 0.08 + 0.84 * draw(&shape);
        /* Half of the strokes begin where the last one ended. */
        if (k && draw(&shape) < 0.5)
            memcpy(p[0], last, sizeof last);
        memcpy(last, p[2], sizeof last);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 2; j++)
                p[i][j] += around(dice, 0.04);
        s[k] = curve(p[0], p[1], p[2]);
    }
    ink(out, side, s, strokes, 0.7, dice);
}
