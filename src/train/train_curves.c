/* train_curves.c: training/curves.svg from training/log.jsonl, so that the picture of a resumed
 * run shows all of it. */
#include "base/line_reader.h"
#include "train/trainer.h"
#include <heed/io.h>
#include <heed/show.h>

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
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

static heed_status read_log(const heed_trainer *t, struct series *all, int count, heed_arena *arena,
                            heed_error *err)
{
    heed__pathname path;
    heed__trainer_path(t, path, "training/log.jsonl");
    heed__lines *lines = heed__lines_open(path, HEED_LINE_LIMIT, &t->allocator, err);
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

/* Curves of one panel, beside each other in a list of all. */
struct panel {
    char title[96];
    int first, count;
    bool logarithmic;
};
enum { MOST_SERIES = 3 * HEED_MAX_SETS + HEED_MAX_MEASURES, MOST_PANELS = 5 };
struct picture {
    heed_arena *arena;
    struct series series[MOST_SERIES];
    heed__log_key key[MOST_SERIES];
    int count;
    struct panel panel[MOST_PANELS];
    int panels;
};

HEED_PRINTF(3, 4)
static void begin_panel(struct picture *p, bool logarithmic, const char *format, ...)
{
    struct panel *k = &p->panel[p->panels++];
    va_list args;
    va_start(args, format);
    vsnprintf(k->title, sizeof k->title, format, args);
    va_end(args);
    k->first = p->count;
    k->count = 0;
    k->logarithmic = logarithmic;
}

static void add_curve(struct picture *p, const char *event, const char *key, const char *name)
{
    snprintf(p->key[p->count], sizeof *p->key, "%s", key);
    p->series[p->count] = (struct series){.event = event, .field = p->key[p->count], .name = name};
    p->count++;
    p->panel[p->panels - 1].count++;
}

/* One curve for each set of parameters. */
static void add_sets(struct picture *p, const heed_task *task, const char *what, const char *name)
{
    for (int k = 0; k < (task->sets > 1 ? task->sets : 1); k++) {
        heed__log_key key;
        heed__set_key(task, what, k, key);
        add_curve(p, "update", key, task->sets > 1 ? task->set_names[k] : name);
    }
}

/* Those that are better large, or small; the loss stands beside that of training. */
static void add_measures(struct picture *p, const heed__train_state *s, bool larger)
{
    const int before = p->panels;
    for (int i = 0; i < s->measures; i++) {
        const heed_measure *m = &s->measure[i];
        heed__log_key key;
        if (m->larger_is_better != larger || strcmp(m->name, "loss") == 0)
            continue;
        if (p->panels == before)
            begin_panel(p, !larger, "validation: %s is better", larger ? "more" : "less");
        heed__measure_key(m->name, key);
        add_curve(p, "validation", key, m->name);
    }
}

static void plan(struct picture *p, const heed_trainer *t)
{
    begin_panel(p, false, "loss%s%s", t->task.unit ? ", " : "", t->task.unit ? t->task.unit : "");
    add_sets(p, &t->task, "loss", "training");
    for (int i = 0; i < t->state.measures; i++)
        if (strcmp(t->state.measure[i].name, "loss") == 0)
            add_curve(p, "validation", "loss", "validation");
    add_measures(p, &t->state, true);
    add_measures(p, &t->state, false);
    begin_panel(p, false, "learning rate");
    add_curve(p, "update", "rate", "learning rate");
    begin_panel(p, true, "gradient norm");
    add_sets(p, &t->task, "norm", "gradient norm");
}

static heed_status draw(const heed_trainer *t, heed_arena *arena, heed_error *err)
{
    struct picture *p = heed_arena_allocate(arena, sizeof *p);
    heed_curve curve[MOST_SERIES];
    heed_curve_panel panel[MOST_PANELS];
    heed__pathname picture;
    const char *svg;
    if (!p)
        return heed__fail(err, HEED_MEMORY, "out of memory for the curves");
    memset(p, 0, sizeof *p);
    plan(p, t);
    heed__trainer_path(t, picture, "training/curves.svg");
    heed_status status = read_log(t, p->series, p->count, arena, err);
    if (status)
        return status;
    for (int i = 0; i < p->count; i++)
        curve[i] =
            (heed_curve){p->series[i].name, p->series[i].x, p->series[i].y, p->series[i].count};
    for (int i = 0; i < p->panels; i++)
        panel[i] = (heed_curve_panel){p->panel[i].title, curve + p->panel[i].first,
                                      p->panel[i].count, p->panel[i].logarithmic};
    status = heed_curves_svg(t->folder, "update", panel, p->panels, arena, &svg, err);
    return status ? status : heed_text_save(picture, svg, err);
}

heed_status heed__curves_write(const heed_trainer *t, heed_error *err)
{
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    heed_status status = arena ? draw(t, arena, err) : err->status;
    heed_arena_free(arena);
    return status;
}
