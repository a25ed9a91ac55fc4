/* pointer_lab.c: `heed lab pointer`: trains a Pointer Network on random points with exact answers,
 * tests it also on more points than it has seen, and draws what it found. */
#include "geometry.h"
#include "lab.h"
#include "pointer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct settings {
    lab_common shared;
    int task; /* pointer_task */
    int64_t least, most, units, beam, test_examples;
};
static const char *const task_names[] = {"sort", "hull", "delaunay", "tsp", NULL};
static const heed_option fields[] = {
    LAB_OPTIONS(struct settings, shared),
    LAB_TRAINING(struct settings, shared, "8000", "128", "500", "adam", "0.001", NULL, "2", NULL),
    HEED_OPTION_CHOICE(struct settings, task, "task", "hull", task_names, "what to point at"),
    HEED_OPTION_INT(struct settings, least, "least", "5", 3, 1000, "N",
                    "fewest points in training"),
    HEED_OPTION_INT(struct settings, most, "most", "10", 3, 1000, "N", "most points in training"),
    HEED_OPTION_INT(struct settings, units, "units", "256", 1, 4096, "N",
                    "of the encoder and of the decoder"),
    HEED_OPTION_INT(struct settings, beam, "beam", "1", 1, 1000, "N",
                    "hypotheses kept while pointing; 1 is greedy"),
    HEED_OPTION_INT(struct settings, test_examples, "test-examples", "1000", 1, 1000000, "N",
                    "examples of each size in the test"),
};

static const char *const quick[] = {"task",  "sort",  "least",    "3",      "most",    "5",
                                    "units", "64",    "batch",    "64",     "updates", "4000",
                                    "rate",  "0.003", "rate-end", "0.0001", NULL};
/* 256 units learn ten numbers as well, and fail on fifteen. */
static const char *const sort[] = {"task",  "sort", "units", "64",       "updates",
                                   "10000", "rate", "0.002", "rate-end", "0.00001",
                                   "beam",  "4",    NULL};
static const char *const hull[] = {"task",  "hull", "units", "128",      "updates",
                                   "28000", "rate", "0.002", "rate-end", "0.00001",
                                   "beam",  "4",    NULL};
/* Small batches: at equal time they find more triangles than large ones. */
static const char *const delaunay[] = {
    "task",   "delaunay", "most",   "5",        "beam",    "4",           "batch", "32", "updates",
    "100000", "rate",     "0.0015", "rate-end", "0.00001", "valid-every", "3000",  NULL};
static const char *const tsp[] = {"task", "tsp",      "units",   "128", "beam",
                                  "8",    "rate-end", "0.00001", NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "sort up to 5 numbers, in seconds", quick},
        {"sort", "sort 5 to 10 numbers, test on 15", sort},
        {"hull", "convex hull of 5 to 10 points, test on 50", hull},
        {"delaunay", "Delaunay triangles of 5 points", delaunay},
        {"tsp", "shortest tour through 5 to 10 points", tsp},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {"heed lab pointer --quick --model m",
                                       "heed lab pointer --preset hull --model m", NULL};
static const heed_option_set options = {
    .command = "heed lab pointer",
    .summary = "Pointer Network: answers are places in the input (Vinyals et al. 2015)",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

struct system {
    const struct settings *settings;
    pointer_net net;
};

static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    (void)set;
    pointer_build(&y->net, s, (pointer_task)y->settings->task, y->settings->units);
}

/* ---- batches ---- */

/* count examples of least to most points, on the tape. */
static bool draw_batch(const struct system *y, heed_tape *t, int64_t least, int64_t most,
                       int64_t count, const heed_rng *rng, pointer_batch *b)
{
    heed_arena *arena = heed_tape_arena(t);
    pointer_task task = (pointer_task)y->settings->task;
    pointer_example *e = heed_arena_allocate(arena, (size_t)count * sizeof *e);
    uint64_t next = 0;
    for (int64_t i = 0; e && i < count; i++) {
        int64_t n = least + heed_rng_below(rng, next++, most - least + 1);
        if (!pointer_draw(task, n, rng, &next, arena, &e[i]))
            e = NULL;
    }
    if (e && pointer_pack(t, task, e, count, b))
        return true;
    heed_tape_fail(t, HEED_MEMORY, "out of memory for examples");
    return false;
}

/* Nats an answer. */
static heed_tensor *mean_loss(struct system *y, heed_tape *t, const pointer_batch *b)
{
    return heed_scale(t, pointer_loss(t, &y->net, b), 1 / (double)b->answered->rows, 0);
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct system *y = context;
    const struct settings *s = y->settings;
    pointer_batch b;
    (void)sum;
    if (!draw_batch(y, t, s->least, s->most, s->shared.batch, &pass->rng, &b))
        return NULL;
    return heed_scale(t, mean_loss(y, t, &b), pass->weight, 0);
}

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    enum { EXAMPLES = 500 };
    struct system *y = context;
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1000003});
    pointer_batch b;
    heed_tape_reset(t);
    (void)err; /* the tape has it */
    if (!draw_batch(y, t, y->settings->least, y->settings->most, EXAMPLES, &rng, &b))
        return HEED_OK;
    heed_tensor *nats = mean_loss(y, t, &b);
    out[0] = (heed_measure){"loss", nats ? (double)heed_tensor_data(nats)[0] : NAN, false};
    *count = 1;
    return HEED_OK;
}

/* ---- testing ---- */

/* Draws examples of n points and points; what it finds lives until the tape's reset. */
static heed_status point(struct system *y, heed_tape *t, int64_t n, int64_t count, uint64_t seed,
                         pointer_batch *b, pointer_found **found, heed_error *err)
{
    const struct settings *s = y->settings;
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed, .step = (uint64_t)n});
    heed_tape_reset(t);
    *found = heed_arena_allocate(heed_tape_arena(t), (size_t)count * sizeof **found);
    if (!*found)
        return lab_fail(err, HEED_MEMORY, "out of memory for answers");
    if (draw_batch(y, t, n, n, count, &rng, b) &&
        !pointer_search(t, &y->net, (pointer_task)s->task, b, s->beam,
                        !pointer_ends((pointer_task)s->task), *found))
        return HEED_OK;
    return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
}

static heed_status test(struct system *y, heed_tape *t, int64_t n, pointer_score *score,
                        heed_error *err)
{
    enum { AT_ONCE = 100 };
    *score = (pointer_score){0};
    for (int64_t done = 0; done < y->settings->test_examples; done += AT_ONCE) {
        int64_t left = y->settings->test_examples - done, count = left < AT_ONCE ? left : AT_ONCE;
        pointer_batch b;
        pointer_found *found;
        if (point(y, t, n, count, (uint64_t)(2000003 + done), &b, &found, err))
            return err->status;
        for (int64_t i = 0; i < count; i++)
            pointer_judge((pointer_task)y->settings->task, &b.examples[i], found[i].answer,
                          found[i].answers, score);
    }
    return HEED_OK;
}

/* What is to be reached with n points: per cent exact, per cent covered, tour over optimum. */
static const struct {
    int64_t n;
    double exact, covered, ratio; /* 0: no target */
} targets[][5] = {
    [POINTER_SORT] = {{5, 0, 97, 0}, {10, 0, 0, 0}, {15, 0, 80, 0}},
    [POINTER_HULL] = {{5, 85, 0, 0}, {10, 70, 0, 0}, {20, 0, 98, 0}, {50, 0, 0, 0}},
    [POINTER_DELAUNAY] = {{5, 0, 85, 0}, {10, 0, 0, 0}},
    [POINTER_TSP] = {{5, 0, 0, 1.01}, {10, 0, 0, 1.06}, {12, 0, 0, 0}},
};

static void report(const struct system *y, lab_session *r, int i, const pointer_score *s)
{
    static const char *const covers[] = {"elements in place", "area covered", "triangles found"};
    int task = y->settings->task;
    long long n = targets[task][i].n;
    double all = (double)s->examples, exact = targets[task][i].exact;
    double covered = targets[task][i].covered, ratio = targets[task][i].ratio;
    if (task == POINTER_TSP) {
        lab_report(r, s->length / all, LAB_NO_TARGET, 0, "n = %lld, mean length of the tour", n);
        lab_report(r, s->optimum / all, LAB_NO_TARGET, 0, "n = %lld, mean length of the best", n);
        lab_report(r, s->length / s->optimum, ratio > 0 ? LAB_AT_MOST : LAB_NO_TARGET, ratio,
                   "n = %lld, ratio of the two", n);
    }
    lab_report(r, 100 * s->exact / all, exact > 0 ? LAB_AT_LEAST : LAB_NO_TARGET, exact,
               "n = %lld, answers that are right, %%", n);
    if (task == POINTER_HULL)
        lab_report(r, 100 * s->simple / all, LAB_NO_TARGET, 0,
                   "n = %lld, answers that are simple polygons, %%", n);
    if (task != POINTER_TSP)
        lab_report(r, 100 * s->covered / (task == POINTER_HULL ? s->simple : all),
                   covered > 0 ? LAB_AT_LEAST : LAB_NO_TARGET, covered, "n = %lld, %s, %%", n,
                   covers[task]);
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    for (int i = 0; i < 5 && targets[y->settings->task][i].n; i++) {
        pointer_score score;
        if (test(y, t, targets[y->settings->task][i].n, &score, err))
            return err->status;
        report(y, r, i, &score);
    }
    return HEED_OK;
}

/* ---- pictures ---- */

enum { SQUARES = 4 }; /* for each size */

/* Numbers have a place beside each other for the picture. */
static const heed_real *plane(const struct system *y, const pointer_example *e, heed_arena *arena)
{
    if (y->settings->task != POINTER_SORT)
        return e->points;
    heed_real *xy = heed_arena_allocate(arena, (size_t)(2 * e->n) * sizeof *xy);
    for (int64_t i = 0; xy && i < e->n; i++) {
        xy[2 * i] = (heed_real)((double)i / (double)(e->n - 1));
        xy[2 * i + 1] = e->points[i];
    }
    return xy;
}

/* An answer as lines: one, or one for each triangle.  Returns how many; line has room for them. */
static int lines_of(int task, const int32_t *answer, int64_t answers, bool found,
                    heed_points_line *line)
{
    if (task != POINTER_DELAUNAY) {
        *line = (heed_points_line){answer, answers, task != POINTER_SORT, found};
        return 1;
    }
    int n = 0;
    for (int64_t i = 0; i + 3 <= answers; i += 3)
        line[n++] = (heed_points_line){answer + i, 3, true, found};
    return n;
}

static bool draw_square(const struct system *y, const pointer_example *e,
                        const pointer_found *found, heed_arena *arena, heed_points_square *square)
{
    int task = y->settings->task;
    int64_t wanted = e->answers - pointer_ends((pointer_task)task);
    char *title = heed_arena_allocate(arena, 32);
    heed_points_line *line =
        heed_arena_allocate(arena, (size_t)(wanted + found->answers + 2) * sizeof *line);
    const heed_real *points = plane(y, e, arena);
    if (!title || !line || !points)
        return false;
    int n = lines_of(task, e->answer, wanted, false, line);
    n += lines_of(task, found->answer, found->answers, true, line + n);
    snprintf(title, 32, "n = %lld", (long long)e->n);
    *square = (heed_points_square){title, points, e->n, line, n};
    return true;
}

static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    char title[64], name[64];
    const char *svg;
    snprintf(title, sizeof title, "%s: right and found", task_names[y->settings->task]);
    for (int i = 0; i < 5 && targets[y->settings->task][i].n; i++) {
        heed_points_square squares[SQUARES];
        pointer_batch b;
        pointer_found *found;
        if (point(y, t, targets[y->settings->task][i].n, SQUARES, 3000017, &b, &found, err))
            return err->status;
        for (int k = 0; k < SQUARES; k++)
            if (!draw_square(y, &b.examples[k], &found[k], heed_tape_arena(t), &squares[k]))
                return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
        snprintf(name, sizeof name, "points-%lld.svg", (long long)targets[y->settings->task][i].n);
        if (heed_points_svg(title, squares, SQUARES, r->arena, &svg, err) ||
            lab_write(r, name, svg, err))
            return err->status;
    }
    return HEED_OK;
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    struct system y = {.settings = settings};
    if (y.settings->least > y.settings->most)
        return lab_fail(err, HEED_ARGUMENT, "option '--least' is %lld, more than '--most', %lld",
                        (long long)y.settings->least, (long long)y.settings->most);
    if (y.settings->task == POINTER_TSP && y.settings->most > GEOMETRY_TOUR)
        return lab_fail(err, HEED_ARGUMENT,
                        "option '--most' is %lld, expected at most %d: shortest tours through more "
                        "points take too long to find",
                        (long long)y.settings->most, GEOMETRY_TOUR);
    static const char *const tests[] = {"test-examples", "beam", NULL};
    lab_system system = {.context = &y,
                         .build = build,
                         .loss = loss,
                         .validate = validate,
                         .unit = "nats an answer",
                         .may_change = tests,
                         .evaluate = evaluate,
                         .draw = draw};
    return lab_experiment(r, &lab_pointer, settings, &system, err);
}

const lab lab_pointer = {
    .name = "pointer", .options = &options, .settings = sizeof(struct settings), .run = run};
