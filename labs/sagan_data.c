/* sagan_data.c: see sagan_data.h. */
#include "sagan_data.h"

#include <math.h>
#include <string.h>

/* Shapes of 5 x 5 pixels, one pixel from the edges of a corner of 7 x 7, in three shades of grey on
 * dark ground. */
enum { BOX = 5, CORNER = 7, SHAPES = 6, SHADES = 3 };
static const char *const shapes[SHAPES] = {
    "..#....#..#####..#....#..", /* plus */
    "#...#.#.#...#...#.#.#...#", /* cross */
    "######...##...##...######", /* square */
    "#####..#....#....#....#..", /* T */
    "#....#....#....#....#####", /* L */
    "..#...###.#####.###...#..", /* diamond */
};
static const double ground = -0.6, shade[SHADES] = {-0.1, 0.35, 0.8};

/* Numbers of rng from which on picture `at` draws. */
static uint64_t first_of(int64_t at)
{
    return (uint64_t)at << 13;
}

heed_status sagan_data_open(sagan_data *d, sagan_task task, const char *folder, int64_t side,
                            double grain, heed_arena *arena, heed_error *err)
{
    *d = (sagan_data){.task = task,
                      .grain = grain,
                      .side = side,
                      .classes = 1,
                      .looks = 2,
                      .look_side = CORNER,
                      .kinds = SHAPES * SHADES,
                      .has_none = true};
    if (task == SAGAN_CORNERS || picture_data_open(&d->pictures, folder, side, arena, err))
        return err->status;
    for (d->side = 16; d->side < d->pictures.side;)
        d->side *= 2;
    d->classes = d->kinds = d->pictures.classes;
    d->looks = 1;
    d->look_side = d->side;
    d->has_none = false;
    return HEED_OK;
}

void sagan_data_close(sagan_data *d)
{
    picture_data_close(&d->pictures);
}

/* ---- corners ---- */

/* At most one shape a call: strength of its ink, where it is. */
static void put_glyph(heed_real *out, int64_t side, int64_t y, int64_t x, int kind, double strength)
{
    const char *shape = shapes[kind / SHADES];
    for (int i = 0; i < BOX * BOX; i++)
        if (shape[i] == '#')
            out[(y + i / BOX) * side + x + i % BOX] +=
                (heed_real)(strength * (shade[kind % SHADES] - ground));
}

/* Noise on dark ground, after what was put there. */
static void put_grain(heed_real *out, int64_t n, double grain, const heed_rng *rng, uint64_t first)
{
    for (int64_t i = 0; i < n; i++) {
        const double v =
            (double)out[i] + ground + grain * heed_rng_normal(rng, first + (uint64_t)i);
        out[i] = (heed_real)fmin(fmax(v, -1), 1);
    }
}

static int draw_corners(const sagan_data *d, const heed_rng *rng, uint64_t first, heed_real *out)
{
    const int64_t n = d->side * d->side, far = d->side - 1 - BOX;
    const int kind = (int)heed_rng_below(rng, first, SHAPES * SHADES);
    memset(out, 0, (size_t)n * sizeof *out);
    put_glyph(out, d->side, 1, 1, kind, 1);
    put_glyph(out, d->side, far, far, kind, 1);
    put_grain(out, n, d->grain, rng, first + 1);
    return kind;
}

/* A corner with a glyph; one in six is none: empty, or two glyphs at half strength each. */
static int draw_corner_lesson(const sagan_data *d, const heed_rng *rng, uint64_t first,
                              heed_real *out)
{
    const int kind = (int)heed_rng_below(rng, first, SHAPES * SHADES);
    const int shape = kind / SHADES,
              other = (shape + 1 + (int)heed_rng_below(rng, first + 1, SHAPES - 1)) % SHAPES;
    const double fate = heed_rng_uniform(rng, first + 2);
    memset(out, 0, CORNER * CORNER * sizeof *out);
    if (fate >= 1. / 6) {
        put_glyph(out, CORNER, 1, 1, kind, 1);
    } else if (fate >= 1. / 18) {
        put_glyph(out, CORNER, 1, 1, kind, 0.5);
        put_glyph(out, CORNER, 1, 1, other * SHADES + (int)heed_rng_below(rng, first + 3, SHADES),
                  0.5);
    }
    put_grain(out, CORNER * CORNER, d->grain, rng, first + 4);
    return fate >= 1. / 6 ? kind : SHAPES * SHADES;
}

/* ---- both ---- */

/* The set's pictures in the middle of larger black ones. */
static int take_fashion(const sagan_data *d, picture_part part, int64_t at, heed_real *out)
{
    const int64_t side = d->pictures.side, edge = (d->side - side) / 2;
    drawing_dice none = {NULL, 0};
    const int label = picture_data_take(&d->pictures, part, at, 0, &none, out);
    /* From the last line on: what is written lies behind what is still to be read. */
    for (int64_t y = d->side - 1; y >= 0; y--)
        for (int64_t x = d->side - 1; x >= 0; x--) {
            const int64_t v = y - edge, u = x - edge;
            const bool inside = v >= 0 && u >= 0 && v < side && u < side;
            out[y * d->side + x] = inside ? 2 * out[v * side + u] - 1 : -1;
        }
    return label;
}

int sagan_data_take(const sagan_data *d, picture_part part, int64_t at, const heed_rng *rng,
                    heed_real *out, int *kind)
{
    const heed_rng own = heed_rng_stream(&(heed_rng_key){.seed = 2000003, .step = (uint64_t)part});
    if (d->task == SAGAN_CORNERS) {
        const int drawn = draw_corners(d, part == PICTURES_TRAIN ? rng : &own, first_of(at), out);
        if (kind)
            *kind = drawn;
        return 0;
    }
    if (part == PICTURES_TRAIN)
        at = heed_rng_below(rng, first_of(at), d->pictures.count[PICTURES_TRAIN]);
    const int label = take_fashion(d, part, at % d->pictures.count[part], out);
    if (kind)
        *kind = label;
    return label;
}

void sagan_data_look(const sagan_data *d, const heed_real *picture, int64_t look, heed_real *out)
{
    const int64_t n = d->look_side, from = look ? d->side - n : 0;
    for (int64_t y = 0; y < n; y++)
        memcpy(out + y * n, picture + (from + y) * d->side + from, (size_t)n * sizeof *out);
}

int sagan_data_lesson(const sagan_data *d, int64_t at, const heed_rng *rng, heed_real *out)
{
    if (d->task == SAGAN_CORNERS)
        return draw_corner_lesson(d, rng, first_of(at), out);
    return sagan_data_take(d, PICTURES_TRAIN, at, rng, out, NULL);
}
