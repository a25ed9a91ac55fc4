/* lab.c: from a system to a model directory with figures. */
#include "lab.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

heed_status lab_fail(heed_error *err, heed_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!err->status) {
        err->status = status;
        vsnprintf(err->text, sizeof err->text, format, args);
    }
    va_end(args);
    return err->status;
}

/* ---- figures ---- */

void lab_report(lab_session *r, double value, lab_relation relation, double target,
                const char *format, ...)
{
    if (r->count == r->room) {
        int room = r->room ? 2 * r->room : 64;
        lab_figure *more = heed_arena_allocate(r->arena, sizeof *more * (size_t)room);
        if (!more)
            return;
        if (r->count)
            memcpy(more, r->figures, sizeof *more * (size_t)r->count);
        r->figures = more;
        r->room = room;
    }
    lab_figure *f = &r->figures[r->count++];
    int n = 0;
    *f = (lab_figure){.value = value};
    if (r->options->seeds > 1)
        n = snprintf(f->name, sizeof f->name, "seed %llu, ", (unsigned long long)r->seed);
    va_list args;
    va_start(args, format);
    vsnprintf(f->name + n, sizeof f->name - (size_t)n, format, args);
    va_end(args);
    if (r->chosen) {
        f->relation = relation;
        f->target = target;
    }
}

bool lab_figure_met(const lab_figure *f)
{
    return f->relation == LAB_NO_TARGET ||
           (f->relation == LAB_AT_MOST ? f->value <= f->target : f->value >= f->target);
}

static json_t *figure_object(const lab_figure *f)
{
    static const char *const relations[] = {[LAB_AT_MOST] = "at most", [LAB_AT_LEAST] = "at least"};
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(f->name));
    json_object_set_new(o, "value", isfinite(f->value) ? json_real(f->value) : json_null());
    if (f->relation != LAB_NO_TARGET) {
        json_object_set_new(o, relations[f->relation], json_real(f->target));
        json_object_set_new(o, "met", json_boolean(lab_figure_met(f)));
    }
    return o;
}

static const char *today(char text[16])
{
    time_t seconds = time(NULL);
    struct tm utc;
    strftime(text, 16, "%Y-%m-%d", gmtime_r(&seconds, &utc));
    return text;
}

const char *lab_results(const lab_session *r, const lab *l, const void *settings)
{
    char date[16];
    const char *config = heed_option_config(l->options, settings, r->arena);
    json_t *root = json_object(), *figures = json_array();
    json_object_set_new(root, "lab", json_string(l->name));
    json_object_set_new(root, "heed", json_string(heed_version()));
    json_object_set_new(root, "date", json_string(today(date)));
    json_object_set_new(root, "seconds", json_real(round(r->seconds * 10) / 10));
    json_object_set_new(root, "finished", json_boolean(!r->stopped));
    for (int i = 0; i < r->count; i++)
        json_array_append_new(figures, figure_object(&r->figures[i]));
    json_object_set_new(root, "figures", figures);
    json_object_set_new(root, "settings", config ? json_loads(config, 0, NULL) : json_null());
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    size_t n = text ? strlen(text) : 0;
    char *kept = text ? heed_arena_allocate(r->arena, n + 2) : NULL;
    if (kept) {
        memcpy(kept, text, n);
        memcpy(kept + n, "\n", 2);
    }
    free(text);
    json_decref(root);
    return kept;
}

/* ---- files ---- */

static const char *path_of(const lab_session *r, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s/%s", r->options->folder, name);
    return path;
}

heed_status lab_write(lab_session *r, const char *name, const char *text, heed_error *err)
{
    char path[4096];
    if (!text)
        return lab_fail(err, HEED_MEMORY, "out of memory for '%s'", name);
    return heed_text_save(path_of(r, name, path), text, err);
}

static heed_status make_folder(const lab_session *r, heed_error *err)
{
    const char *folder = r->options->folder;
    if (!folder)
        return lab_fail(err, HEED_ARGUMENT, "missing option '--model': the directory to make");
    if (strlen(folder) > 4000)
        return lab_fail(err, HEED_ARGUMENT, "the name given to '--model' is too long");
    if (mkdir(folder, 0777) != 0)
        return lab_fail(err, HEED_IO, "cannot make the directory '%s': %s", folder,
                        errno == EEXIST ? "it is there already, choose another name"
                                        : strerror(errno));
    return HEED_OK;
}

static heed_status write_folder(lab_session *r, const lab *l, const void *settings,
                                const heed_params *params, heed_error *err)
{
    char path[4096];
    heed_status status = heed_params_save(params, path_of(r, "model.safetensors", path), err);
    if (status || (status = lab_write(r, "config.json",
                                      heed_option_config(l->options, settings, r->arena), err)))
        return status;
    return lab_write(r, "results.json", lab_results(r, l, settings), err);
}

/* ---- training ---- */

/* A curve of at most POINTS points: when it is full, every other one goes. */
#define POINTS 400
struct curve {
    double x[POINTS], y[POINTS];
    int64_t count;
};

static void add_point(struct curve *c, double x, double y)
{
    if (c->count == POINTS) {
        c->count /= 2;
        for (int64_t i = 0; i < c->count; i++) {
            c->x[i] = c->x[2 * i + 1];
            c->y[i] = c->y[2 * i + 1];
        }
    }
    c->x[c->count] = x;
    c->y[c->count++] = y;
}

/* One model in training. */
struct training {
    lab_session *run;
    const lab_system *system;
    heed_params *params;
    heed_tape *tape;
    heed_optimizer *optimizer;
    heed_real *best;   /* weights */
    double best_score; /* and their validation */
    double begun;
    struct curve *loss, *valid;
};

static void show(const struct training *k, lab_progress *p)
{
    p->seed = k->run->seed;
    p->updates = k->run->options->updates;
    p->seconds = k->run->hooks.now() - k->begun;
    p->measure = k->system->measure;
    k->run->hooks.progress(k->run->hooks.context, p);
}

static void keep(struct training *k)
{
    memcpy(k->best, heed_params_values(k->params),
           (size_t)heed_params_size(k->params) * sizeof *k->best);
}

static void validate(struct training *k, int64_t update)
{
    heed_tape_set_recording(k->tape, false);
    heed_tape_set_training(k->tape, false);
    double score = k->system->validate(k->system->context, k->tape);
    heed_tape_set_recording(k->tape, true);
    heed_tape_set_training(k->tape, true);
    bool best = score < k->best_score;
    if (best) {
        k->best_score = score;
        keep(k);
    }
    add_point(k->valid, (double)update, score);
    show(k, &(lab_progress){.update = update, .validated = true, .score = score, .best = best});
}

static heed_status update(struct training *k, const heed_schedule *schedule, int64_t step,
                          double *loss, heed_error *err)
{
    const lab_common *o = k->run->options;
    heed_rng rng =
        heed_rng_stream(&(heed_rng_key){.seed = k->run->seed, .step = (uint64_t)step, .node = 1});
    heed_tape_reset(k->tape);
    heed_tape_step(k->tape, (uint64_t)step, 0, 0);
    heed_tensor *y = k->system->loss(k->system->context, k->tape, &rng);
    if (heed_backward(k->tape, y))
        return lab_fail(err, heed_tape_error(k->tape)->status, "%s",
                        heed_tape_error(k->tape)->text);
    *loss = (double)heed_tensor_data(y)[0];
    int threads = heed_tape_threads(k->tape);
    if (!isfinite(heed_grad_norm(k->params, threads)))
        return lab_fail(err, HEED_NUMERIC, "update %lld: the gradient is not finite",
                        (long long)step);
    if (o->clip_value > 0)
        heed_clip_value(k->params, o->clip_value, threads);
    if (o->clip_norm > 0)
        heed_clip_norm(k->params, o->clip_norm, threads);
    heed_optimizer_step(k->optimizer, heed_schedule_rate(schedule, step), threads);
    return HEED_OK;
}

static heed_status train_loop(struct training *k, heed_error *err)
{
    const lab_common *o = k->run->options;
    heed_schedule_kind kind = o->rate_end > 0 ? HEED_SCHEDULE_COSINE : HEED_SCHEDULE_CONSTANT;
    heed_schedule schedule = {
        .kind = kind, .rate = o->rate, .total = o->updates, .floor = o->rate_end};
    int64_t every = o->updates / POINTS + 1, done = 0;
    double sum = 0;
    k->begun = k->run->hooks.now();
    while (done < o->updates && !(k->run->stopped = k->run->hooks.stop(k->run->hooks.context))) {
        double loss = 0;
        if (update(k, &schedule, ++done, &loss, err))
            return err->status;
        sum += loss / (double)every;
        if (done % every == 0) {
            add_point(k->loss, (double)done, sum);
            sum = 0;
        }
        show(k, &(lab_progress){.update = done, .loss = loss});
        if (done % o->valid_every == 0)
            validate(k, done);
    }
    if (done == 0 || done % o->valid_every)
        validate(k, done);
    k->run->seconds += k->run->hooks.now() - k->begun;
    return HEED_OK;
}

static heed_status draw_curves(const struct training *k, heed_error *err)
{
    lab_session *r = k->run;
    char name[64] = "curves.svg", title[64];
    const char *svg;
    heed_curve loss = {"training", k->loss->x, k->loss->y, k->loss->count};
    heed_curve valid = {"validation", k->valid->x, k->valid->y, k->valid->count};
    heed_curve_panel panels[] = {{"loss", &loss, 1, true}, {k->system->measure, &valid, 1, true}};
    snprintf(title, sizeof title, "seed %llu", (unsigned long long)r->seed);
    if (r->options->seeds > 1)
        snprintf(name, sizeof name, "curves-%llu.svg", (unsigned long long)r->seed);
    heed_status status = heed_curves_svg(title, "updates", panels, 2, r->arena, &svg, err);
    return status ? status : lab_write(r, name, svg, err);
}

/* Trains params, whose layers the system's context has.  *weights, in the arena, are the best on
 * validation; *score is how good they are. */
static heed_status train(lab_session *r, const lab_system *system, heed_params *params,
                         heed_tape *tape, heed_real **weights, double *score, heed_error *err)
{
    const lab_common *o = r->options;
    heed_optimizer_options options = {.kind = (heed_optimizer_kind)o->optimizer,
                                      .momentum = o->momentum,
                                      .beta2 = 0.999,
                                      .eps = 1e-8};
    struct training k = {
        .run = r, .system = system, .params = params, .tape = tape, .best_score = INFINITY};
    k.loss = heed_arena_allocate(r->arena, sizeof *k.loss);
    k.valid = heed_arena_allocate(r->arena, sizeof *k.valid);
    k.best = heed_arena_allocate(r->arena, (size_t)heed_params_size(params) * sizeof *k.best);
    k.optimizer = heed_optimizer_new(params, &options, NULL, err);
    if (!k.loss || !k.valid || !k.best || !k.optimizer) {
        heed_optimizer_free(k.optimizer);
        return lab_fail(err, HEED_MEMORY, "out of memory for training");
    }
    k.loss->count = k.valid->count = 0;
    keep(&k);
    if (!train_loop(&k, err))
        draw_curves(&k, err);
    *weights = k.best;
    *score = k.best_score;
    heed_optimizer_free(k.optimizer);
    return err->status;
}

/* ---- the whole ---- */

/* What has been trained, a model for each seed. */
enum { SEEDS = 100 };
struct models {
    heed_params *params; /* the set built last, whose layers the system's context has */
    heed_real *weights[SEEDS];
    double scores[SEEDS];
    int64_t count, best;
};

static heed_params *build(const lab_session *r, const lab_system *system, heed_error *err)
{
    heed_params *p = heed_params_new(NULL, err);
    if (!p)
        return NULL;
    system->build(system->context, heed_params_scope(p));
    if (!heed_params_finish(p, r->seed, err) &&
        (!r->options->weights || !heed_params_load(p, r->options->weights, err)))
        return p;
    heed_params_free(p);
    return NULL;
}

static heed_status train_all(lab_session *r, const lab_system *system, heed_tape *tape,
                             struct models *m, heed_error *err)
{
    for (; m->count < r->options->seeds && !r->stopped; m->count++) {
        int64_t i = m->count;
        r->seed = (uint64_t)(r->options->seed + i);
        heed_params_free(m->params);
        if (!(m->params = build(r, system, err)) ||
            train(r, system, m->params, tape, &m->weights[i], &m->scores[i], err))
            return err->status;
        m->best = m->scores[i] < m->scores[m->best] ? i : m->best;
    }
    return HEED_OK;
}

/* Puts the weights of model i into the layers. */
static void take_weights(const struct models *m, int64_t i)
{
    memcpy(heed_params_values(m->params), m->weights[i],
           (size_t)heed_params_size(m->params) * sizeof *m->weights[i]);
}

static heed_status evaluate_all(lab_session *r, const lab_system *system, heed_tape *tape,
                                const struct models *m, heed_error *err)
{
    heed_tape_set_recording(tape, false);
    heed_tape_set_training(tape, false);
    for (int64_t i = 0; i < m->count; i++) {
        r->seed = (uint64_t)(r->options->seed + i);
        r->chosen = i == m->best;
        take_weights(m, i);
        lab_report(r, m->scores[i], LAB_NO_TARGET, 0, "%s", system->measure);
        if (system->evaluate(system->context, r, tape, err) ||
            (r->chosen && system->draw(system->context, r, tape, err)))
            return err->status;
    }
    return HEED_OK;
}

heed_status lab_experiment(lab_session *r, const lab *l, const void *settings,
                           const lab_system *system, heed_error *err)
{
    struct models m = {0};
    if (make_folder(r, err))
        return err->status;
    heed_tape *tape = heed_tape_new(
        &(heed_tape_options){.threads = (int)r->options->threads, .log = r->hooks.log}, err);
    if (tape && !train_all(r, system, tape, &m, err) &&
        (r->stopped || !evaluate_all(r, system, tape, &m, err))) {
        take_weights(&m, m.best);
        write_folder(r, l, settings, m.params, err);
    }
    heed_tape_free(tape);
    heed_params_free(m.params);
    if (err->status)
        rmdir(r->options->folder); /* if nothing is in it yet */
    return err->status;
}
