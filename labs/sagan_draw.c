/* sagan_draw.c: see sagan_draw.h. */
#include "sagan_draw.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* ---- samples ---- */

static heed_image_cell cell_of(const heed_real *pixels, int64_t side, int64_t channels)
{
    return (heed_image_cell){.pixels = pixels,
                             .height = side,
                             .width = side,
                             .channels = channels,
                             .low = -1,
                             .high = 1};
}

/* A line of real pictures, then made ones; with classes, one a column. */
static heed_status draw_samples(const sagan_game *g, lab_session *r, heed_tape *t, heed_error *err)
{
    enum { ACROSS = 10, LINES = 7, MOST_PASSED = 10000 };
    const int64_t side = g->data.side, size = side * side;
    heed_image_cell cells[ACROSS * LINES];
    int32_t asked[ACROSS * (LINES - 1)];
    const char *svg;
    heed_tape_reset(t);
    heed_real *real = heed_arena_allocate(r->arena, (size_t)(ACROSS * size) * sizeof *real);
    if (!real)
        return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
    for (int64_t i = 0, at = 0; i < ACROSS; at++) /* those of other classes are passed over */
        if (sagan_data_take(&g->data, PICTURES_TEST, at, NULL, real + i * size, NULL) ==
                i % g->data.classes ||
            at >= MOST_PASSED)
            i++;
    for (int i = 0; i < ACROSS * (LINES - 1); i++)
        asked[i] = i % ACROSS % (int)g->data.classes;
    heed_tensor *made = sagan_game_make(t, g, 0, ACROSS * (LINES - 1), asked, NULL);
    if (!made)
        return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
    for (int i = 0; i < ACROSS * LINES; i++) {
        const heed_real *pixels =
            i < ACROSS ? real + i * size : heed_tensor_data(made) + (i - ACROSS) * size;
        cells[i] = cell_of(pixels, side, 1);
        cells[i].title = i == 0 ? "real" : i == ACROSS ? "made" : NULL;
    }
    if (heed_images_svg("Real pictures, and below them made ones", cells, ACROSS * LINES, ACROSS,
                        72, r->arena, &svg, err))
        return err->status;
    return lab_write(r, "samples.svg", svg, err);
}

/* ---- where pixels look ---- */

enum { QUERIES = 3, SHOWN = 6 };
static const struct query {
    const char *name;
    double at[SAGAN_FASHION + 1][2]; /* in each task's pictures: down, to the right */
    heed_real colour[3];
} queries[QUERIES] = {
    {"red", {{.11, .11}, {.5, .5}}, {1, -.6, -.6}},
    {"green", {{.89, .89}, {.25, .4}}, {-.6, 1, -.6}},
    {"blue", {{.5, .5}, {.7, .65}}, {-.4, -.2, 1}},
};

static int64_t place(const sagan_game *g, int query, int64_t side)
{
    const double *at = queries[query].at[g->data.task];
    return (int64_t)(at[0] * (double)side) * side + (int64_t)(at[1] * (double)side);
}

/* The picture in colour, with a dot of 2 x 2 at each query. */
static heed_real *dotted(const sagan_game *g, const heed_real *pixels, heed_arena *arena)
{
    const int64_t side = g->data.side;
    heed_real *out = heed_arena_allocate(arena, (size_t)(3 * side * side) * sizeof *out);
    for (int64_t i = 0; out && i < side * side; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = pixels[i];
    for (int q = 0; out && q < QUERIES; q++)
        for (int k = 0; k < 4; k++)
            memcpy(out + 3 * (place(g, q, side) + k / 2 * side + k % 2), queries[q].colour,
                   sizeof queries[q].colour);
    return out;
}

/* Each picture in a line: with its dots, then once for each, bright where that pixel looks.  look
 * (SHOWN*at*at, keys). */
static heed_status draw_looks(const sagan_game *g, lab_session *r, const heed_real *pixels,
                              const heed_tensor *look, const char *title, const char *name,
                              heed_error *err)
{
    heed_image_cell cells[SHOWN * (QUERIES + 1)];
    const int64_t side = g->data.side, at = g->sizes.at, keys = g->sizes.pool ? at / 2 : at;
    const char *svg;
    for (int i = 0; i < SHOWN; i++) {
        const heed_real *picture = pixels + i * side * side;
        heed_real *colour = dotted(g, picture, r->arena);
        heed_image_cell *line = cells + (int64_t)i * (QUERIES + 1);
        if (!colour)
            return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
        line[0] = cell_of(colour, side, 3);
        for (int q = 0; q < QUERIES; q++) {
            line[1 + q] = cell_of(picture, side, 1);
            line[1 + q].title = queries[q].name;
            line[1 + q].weights =
                heed_tensor_data(look) + (i * at * at + place(g, q, at)) * keys * keys;
            line[1 + q].rows = line[1 + q].cols = keys;
        }
    }
    if (heed_images_svg(title, cells, SHOWN * (int64_t)(QUERIES + 1), 2 * (QUERIES + 1), 96,
                        r->arena, &svg, err))
        return err->status;
    return lab_write(r, name, svg, err);
}

static heed_status draw_attention(const sagan_game *g, lab_session *r, heed_tape *t,
                                  heed_error *err)
{
    const int64_t size = g->data.side * g->data.side;
    heed_tensor *look = NULL;
    int32_t classes[SHOWN];
    if (g->sizes.middle != SAGAN_ATTENTION)
        return HEED_OK;
    for (int i = 0; i < SHOWN; i++)
        classes[i] = -1;
    heed_tape_reset(t);
    heed_tensor *made = sagan_game_make(t, g, 0, SHOWN, classes, &look);
    if (!made)
        return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
    if (draw_looks(g, r, heed_tensor_data(made), look, "Where pixels of made pictures look",
                   "attention.svg", err))
        return err->status;
    heed_tape_reset(t);
    heed_tensor *real = heed_input(t, HEED_SHAPE(SHOWN * size, 1), NULL);
    for (int i = 0; real && i < SHOWN; i++)
        classes[i] = sagan_data_take(&g->data, PICTURES_TEST, i, NULL,
                                     heed_tensor_data(real) + i * size, NULL);
    if (!sagan_discriminate(t, &g->discriminator, real, classes, false, &look))
        return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
    return draw_looks(g, r, heed_tensor_data(real), look,
                      "Where the discriminator looks in real pictures",
                      "attention-discriminator.svg", err);
}

/* ---- gamma ---- */

enum { MOST_POINTS = 4000 };
struct track {
    double x[MOST_POINTS], y[SAGAN_SETS][MOST_POINTS];
    int64_t count;
};

static void take_point(struct track *k, const json_t *line)
{
    const char *event = json_string_value(json_object_get(line, "event"));
    const json_t *g = json_object_get(line, "gamma"),
                 *d = json_object_get(line, "gamma_of_the_discriminator");
    const double update = json_number_value(json_object_get(line, "update"));
    if (!event || strcmp(event, "validation") != 0 || !json_is_number(g) || !json_is_number(d))
        return;
    while (k->count && k->x[k->count - 1] >= update) /* taken back by a rollback, or a crash */
        k->count--;
    if (k->count < MOST_POINTS) {
        k->x[k->count] = update;
        k->y[SAGAN_GENERATOR][k->count] = json_number_value(g);
        k->y[SAGAN_DISCRIMINATOR][k->count++] = json_number_value(d);
    }
}

/* From the log, so that a resumed run shows all of it; at the start both are 0. */
static heed_status draw_gamma(const sagan_game *g, lab_session *r, heed_error *err)
{
    char path[4096 + 64], text[4096];
    const char *svg;
    if (g->sizes.middle == SAGAN_NOTHING)
        return HEED_OK;
    if (r->options->seeds > 1)
        snprintf(path, sizeof path, "%s/seed-%llu/training/log.jsonl", r->folder,
                 (unsigned long long)r->seed);
    else
        snprintf(path, sizeof path, "%s/training/log.jsonl", r->folder);
    struct track *k = heed_arena_allocate(r->arena, sizeof *k);
    FILE *log = k ? fopen(path, "r") : NULL;
    if (!log)
        return lab_fail(err, HEED_IO, "cannot read '%.300s'", path);
    *k = (struct track){.count = 1};
    while (fgets(text, sizeof text, log)) {
        json_t *line = json_loads(text, 0, NULL);
        take_point(k, line);
        json_decref(line);
    }
    fclose(log);
    const heed_curve curves[] = {{"generator", k->x, k->y[SAGAN_GENERATOR], k->count},
                                 {"discriminator", k->x, k->y[SAGAN_DISCRIMINATOR], k->count}};
    const heed_curve_panel panel = {"gamma", curves, SAGAN_SETS, false};
    if (heed_curves_svg("How much attention is let in", "update", &panel, 1, r->arena, &svg, err))
        return err->status;
    return lab_write(r, "gamma.svg", svg, err);
}

heed_status sagan_draw(const sagan_game *g, lab_session *r, heed_tape *t, heed_error *err)
{
    if (draw_samples(g, r, t, err) || draw_attention(g, r, t, err))
        return err->status;
    return draw_gamma(g, r, err);
}
