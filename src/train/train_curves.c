/* train_curves.c: training/curves.svg from training/log.jsonl, so that the picture of a resumed
 * run shows all of it. */
#include "base/line_reader.h"
#include "train/trainer.h"
#include <heed/io.h>
#include <heed/show.h>

#include <jansson.h>
#include <string.h>

/* One curve being collected; grows by doubling in the arena. */
struct series {
    const char *event, *field; /* of the log's lines */
    const char *name;
    double *x, *y;
    int64_t count, room;
};

static bool append(struct series *s, double x, double y, heed_arena *arena)
{
    if (s->count == s->room) {
        int64_t room = s->room ? 2 * s->room : 256;
        double *nx = heed_arena_allocate(arena, sizeof *nx * (size_t)room);
        double *ny = heed_arena_allocate(arena, sizeof *ny * (size_t)room);
        if (!nx || !ny)
            return false;
        if (s->count) {
            memcpy(nx, s->x, sizeof *nx * (size_t)s->count);
            memcpy(ny, s->y, sizeof *ny * (size_t)s->count);
        }
        s->x = nx;
        s->y = ny;
        s->room = room;
    }
    s->x[s->count] = x;
    s->y[s->count++] = y;
    return true;
}

/* What follows a rollback replaces what it took back. */
static void cut_after(struct series *s, double x)
{
    while (s->count && s->x[s->count - 1] > x)
        s->count--;
}

static bool take_line(struct series *all, int count, const json_t *line, heed_arena *arena)
{
    const char *event = json_string_value(json_object_get(line, "event"));
    double update = json_number_value(json_object_get(line, "update"));
    bool fits = true;
    for (int i = 0; event && fits && i < count; i++) {
        const json_t *value = json_object_get(line, all[i].field);
        if (strcmp(event, "rollback") == 0)
            cut_after(&all[i], json_number_value(json_object_get(line, "to")));
        else if (strcmp(event, all[i].event) == 0 && json_is_number(value))
            fits = append(&all[i], update, json_number_value(value), arena);
    }
    return fits;
}

static heed_status read_log(const char *path, struct series *all, int count, heed_arena *arena,
                            heed_error *err)
{
    heed__lines *lines = heed__lines_open(path, HEED_LINE_LIMIT, NULL, err);
    heed_status status = lines ? HEED_OK : err->status;
    while (!status) {
        const char *text;
        size_t length;
        if ((status = heed__lines_next(lines, &text, &length, err)) || !text)
            break;
        json_t *line = json_loadb(text, length, 0, NULL);
        if (line && !take_line(all, count, line, arena))
            status = heed__fail(err, HEED_MEMORY, "out of memory for the curves");
        json_decref(line);
    }
    heed__lines_close(lines);
    return status;
}

static heed_status draw(const heed_trainer *t, heed_arena *arena, heed_error *err)
{
    struct series s[] = {
        {.event = "update", .field = "loss", .name = "training"},
        {.event = "validation", .field = "loss", .name = "validation"},
        {.event = "validation", .field = "bleu", .name = "BLEU"},
        {.event = "validation", .field = "chrf", .name = "chrF"},
        {.event = "update", .field = "rate", .name = "learning rate"},
        {.event = "update", .field = "norm", .name = "gradient norm"},
    };
    enum { N = sizeof s / sizeof *s };
    heed__pathname log, picture;
    heed_curve c[N];
    if (heed__pathname_format(log, err, "%s/training/log.jsonl", t->place) ||
        heed__pathname_format(picture, err, "%s/training/curves.svg", t->place) ||
        read_log(log, s, N, arena, err))
        return err->status;
    for (int i = 0; i < N; i++)
        c[i] = (heed_curve){s[i].name, s[i].x, s[i].y, s[i].count};
    const heed_curve_panel panels[] = {
        {.title = "loss, nats a token", .curves = c, .count = 2},
        {.title = "translations of the validation set", .curves = c + 2, .count = 2},
        {.title = "learning rate", .curves = c + 4, .count = 1},
        {.title = "gradient norm", .curves = c + 5, .count = 1, .logarithmic = true},
    };
    const char *svg;
    heed_status status = heed_curves_svg(t->folder, "update", panels,
                                         sizeof panels / sizeof *panels, arena, &svg, err);
    return status ? status : heed_text_save(picture, svg, err);
}

heed_status heed__curves_write(const heed_trainer *t, heed_error *err)
{
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    heed_status status = arena ? draw(t, arena, err) : err->status;
    heed_arena_free(arena);
    return status;
}
