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

heed_status lab_write(lab_session *r, const char *name, const char *text, heed_error *err)
{
    char path[4096];
    if (!text)
        return lab_fail(err, HEED_MEMORY, "out of memory for '%s'", name);
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    return heed_text_save(path, text, err);
}

/* Where the model of a seed is trained. */
static const char *seed_folder(const lab_session *r, uint64_t seed)
{
    const size_t n = strlen(r->folder) + 32;
    char *path = r->options->seeds > 1 ? heed_arena_allocate(r->arena, n) : NULL;
    if (r->options->seeds == 1)
        return r->folder;
    if (path)
        snprintf(path, n, "%s/seed-%llu", r->folder, (unsigned long long)seed);
    return path;
}

static bool is_there(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Of several processes, one has the folder and all that is made of the training. */
static bool leads(const lab_session *r)
{
    return heed_ranks_rank(r->hooks.ranks) == 0;
}

static heed_status choose_folder(lab_session *r, heed_error *err)
{
    const lab_common *o = r->options;
    r->folder = o->resume ? o->resume : o->folder;
    if (!r->folder)
        return lab_fail(err, HEED_ARGUMENT, "missing option '--model': the directory to make");
    if (strlen(r->folder) > 4000)
        return lab_fail(err, HEED_ARGUMENT, "the name given to '%s' is too long",
                        o->resume ? "--resume" : "--model");
    if (o->resume && leads(r) && !is_there(r->folder, "config.json"))
        return lab_fail(err, HEED_IO, "cannot resume '%s': there is no lab in it", r->folder);
    return HEED_OK;
}

/* The folder around those of several seeds; config.json says with which options to resume. */
static heed_status make_outer_folder(lab_session *r, const lab *l, const void *settings,
                                     heed_error *err)
{
    if (r->options->seeds == 1 || r->options->resume || !leads(r))
        return HEED_OK; /* the trainer makes it, or it is there */
    if (mkdir(r->folder, 0777) != 0)
        return lab_fail(err, HEED_IO, "cannot make the directory '%s': %s", r->folder,
                        errno == EEXIST ? "it is there already, choose another name"
                                        : strerror(errno));
    return lab_write(r, "config.json", heed_option_config(l->options, settings, r->arena), err);
}

/* ---- a system as a task ---- */

struct model {
    lab_session *run;
    const lab *lab;
    const void *settings;
    const lab_system *system;
    heed_params *params[HEED_MAX_SETS];
};

static int sets_of(const lab_system *system)
{
    return system->sets > 1 ? system->sets : 1;
}

static void free_sets(struct model *m)
{
    for (int k = 0; k < sets_of(m->system); k++) {
        heed_params_free(m->params[k]);
        m->params[k] = NULL;
    }
}

/* Sets draw their first weights from seeds of their own: names may be alike. */
static heed_status build_sets(struct model *m, heed_error *err)
{
    for (int k = 0; k < sets_of(m->system); k++) {
        if (!(m->params[k] = heed_params_new(NULL, err)))
            return err->status;
        m->system->build(m->system->context, k, heed_params_scope(m->params[k]));
        if (heed_params_finish(m->params[k], m->run->seed + 1000003 * (uint64_t)k, err))
            return err->status;
    }
    return HEED_OK;
}

static heed_status open_model(void *self, const char *folder, bool new_folder, heed_error *err)
{
    struct model *m = self;
    const char *weights = m->run->options->weights;
    heed_status status = build_sets(m, err);
    (void)folder;
    return !status && new_folder && weights ? heed_params_load(m->params[0], weights, err) : status;
}

static heed_params *params_of(void *self, int set)
{
    return ((struct model *)self)->params[set];
}

static heed_status describe(void *self, const char *folder, heed_error *err)
{
    const struct model *m = self;
    const char *config = heed_option_config(m->lab->options, m->settings, m->run->arena);
    char path[4096 + 16];
    snprintf(path, sizeof path, "%s/config.json", folder);
    return config ? heed_text_save(path, config, err)
                  : lab_fail(err, HEED_MEMORY, "out of memory for '%s'", path);
}

static heed_status next(void *self, int64_t update, int micros, heed_portion *portion,
                        heed_error *err)
{
    const lab_system *s = ((struct model *)self)->system;
    return s->next(s->context, update, micros, portion, err);
}

static heed_tensor *loss(void *self, heed_tape *t, const heed_pass *pass, double *sum)
{
    const lab_system *s = ((struct model *)self)->system;
    return s->loss(s->context, t, pass, sum);
}

static int data(void *self, heed_fingerprint *out)
{
    const lab_system *s = ((struct model *)self)->system;
    return s->data(s->context, out);
}

static heed_status validate(void *self, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    const lab_system *s = ((struct model *)self)->system;
    return s->validate(s->context, t, out, count, err);
}

/* ---- training ---- */

enum { CURVE_POINTS = 400, MAY_CHANGE = 32 };

static heed_loop_options loop_of(const lab_session *r, const lab_system *system)
{
    static const double usual[2] = {0.9, 0.999};
    const double *betas = system->betas ? system->betas : usual;
    const lab_common *o = r->options;
    return (heed_loop_options){
        .accumulate = o->accumulate,
        .max_updates = o->updates ? o->updates : HEED_NO_UPDATES,
        .optimizer = o->optimizer,
        .beta1 = betas[0],
        .beta2 = betas[1],
        .eps = 1e-8,
        .momentum = o->momentum,
        .schedule = o->rate_end > 0 ? HEED_SCHEDULE_COSINE : HEED_SCHEDULE_CONSTANT,
        .rate = o->rate,
        .rate_floor = o->rate_end,
        .clip = o->clip_norm,
        .clip_value = o->clip_value,
        .valid_every = o->valid_every,
        .save_every = o->save_every,
        .save_minutes = o->save_minutes,
        .keep = 2,
        .log_every = o->updates / CURVE_POINTS + 1,
        .threads = o->threads,
        .seed = (int64_t)r->seed,
    };
}

/* On resume: what says how a run is shown, when it ends, and what is tested. */
static void list_changes(const lab_session *r, const lab_system *system,
                         const char *names[MAY_CHANGE])
{
    static const char *const all[] = {"model", "resume", "weights", "quick",
                                      "json",  "seeds",  "updates", NULL};
    int n = 0;
    for (int i = 0; all[i]; i++)
        if (strcmp(all[i], "updates") != 0 || !(r->options->rate_end > 0))
            names[n++] = all[i];
    for (int i = 0; system->may_change && system->may_change[i] && n + 1 < MAY_CHANGE; i++)
        names[n++] = system->may_change[i];
    names[n] = NULL;
}

/* The best measure, with a name that outlives the trainer. */
static heed_measure keep_measure(const lab_session *r, heed_measure best)
{
    const size_t n = best.name ? strlen(best.name) + 1 : 0;
    char *name = n ? heed_arena_allocate(r->arena, n) : NULL;
    best.name = name ? memcpy(name, best.name, n) : NULL;
    return best;
}

static void say_seed(const lab_session *r)
{
    char line[64];
    if (r->options->seeds == 1 || !r->hooks.log.write)
        return;
    snprintf(line, sizeof line, "seed %llu, %lld of %lld", (unsigned long long)r->seed,
             (long long)((int64_t)r->seed - r->options->seed + 1), (long long)r->options->seeds);
    r->hooks.log.write(r->hooks.log.context, HEED_LOG_INFO, line);
}

/* Trains the model of r->seed, or goes on with that, to its end or until somebody asks to stop. */
static heed_status train(struct model *m, heed_measure *best, heed_error *err)
{
    lab_session *r = m->run;
    const lab_system *s = m->system;
    const char *folder =
        leads(r) ? seed_folder(r, r->seed) : heed_ranks_folder(r->hooks.ranks, err);
    const char *names[MAY_CHANGE];
    const heed_loop_options loop = loop_of(r, s);
    list_changes(r, s, names);
    say_seed(r);
    const heed_task task = {.self = m,
                            .loop = &loop,
                            .options = m->lab->options,
                            .values = m->settings,
                            .values_size = m->lab->settings,
                            .may_change = names,
                            .unit = s->unit,
                            .sets = s->sets,
                            .set_names = s->set_names,
                            .best = s->best,
                            .open = open_model,
                            .params = params_of,
                            .describe = describe,
                            .data = s->data ? data : NULL,
                            .next = s->next ? next : NULL,
                            .loss = loss,
                            .validate = validate};
    if (!folder)
        return lab_fail(err, HEED_MEMORY, "out of memory for a path");
    const bool resume =
        r->options->resume && (r->options->seeds == 1 || is_there(folder, "training"));
    heed_trainer *t = heed_trainer_open(folder, &task, resume, &r->hooks, NULL, err);
    heed_train_result result;
    if (t && resume && leads(r)) /* other options, where they are allowed */
        describe(m, r->folder, err);
    if (t && !err->status && !heed_trainer_run(t, &result, err)) {
        r->stopped = result.reason == HEED_TRAIN_ASKED;
        r->seconds += result.last.seconds;
        *best = keep_measure(r, result.last.best);
    }
    heed_trainer_free(t);
    free_sets(m);
    return err->status;
}

/* ---- measuring ---- */

/* The best weights of the model of r->seed, in layers built anew. */
static heed_status load_model(struct model *m, heed_error *err)
{
    const char *folder = seed_folder(m->run, m->run->seed);
    heed_status status = folder ? build_sets(m, err) : HEED_MEMORY;
    for (int k = 0; !status && k < sets_of(m->system); k++) {
        char path[4096 + 128];
        snprintf(path, sizeof path, "%s/model%s%s.safetensors", folder, k ? "-" : "",
                 k ? m->system->set_names[k] : "");
        status = heed_params_load(m->params[k], path, err);
    }
    return status;
}

static heed_status copy_model(const struct model *m, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int k = 0; !status && m->run->options->seeds > 1 && k < sets_of(m->system); k++) {
        char path[4096 + 128];
        snprintf(path, sizeof path, "%s/model%s%s.safetensors", m->run->folder, k ? "-" : "",
                 k ? m->system->set_names[k] : "");
        status = heed_params_save(m->params[k], path, err);
    }
    return status;
}

static heed_status evaluate(struct model *m, const heed_measure *best, heed_tape *t,
                            heed_error *err)
{
    lab_session *r = m->run;
    const lab_system *s = m->system;
    if (load_model(m, err))
        return err->status;
    lab_report(r, best->value, LAB_NO_TARGET, 0, "validation, %s", best->name ? best->name : "");
    if (s->evaluate(s->context, r, t, err))
        return err->status;
    if (r->chosen && (copy_model(m, err) || s->draw(s->context, r, t, err)))
        return err->status;
    return heed_tape_error(t)->status
               ? lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text)
               : HEED_OK;
}

static bool is_better(const heed_measure *a, const heed_measure *b)
{
    return a->larger_is_better ? a->value > b->value : a->value < b->value;
}

static heed_status evaluate_all(struct model *m, const heed_measure *best, heed_error *err)
{
    lab_session *r = m->run;
    int64_t chosen = 0;
    heed_tape *tape = heed_tape_new(
        &(heed_tape_options){.threads = (int)r->options->threads, .log = r->hooks.log}, err);
    if (!tape)
        return err->status;
    for (int64_t i = 1; i < r->options->seeds; i++)
        chosen = is_better(&best[i], &best[chosen]) ? i : chosen;
    heed_tape_set_recording(tape, false);
    heed_tape_set_training(tape, false);
    for (int64_t i = 0; i < r->options->seeds && !err->status; i++) {
        r->seed = (uint64_t)(r->options->seed + i);
        r->chosen = i == chosen;
        evaluate(m, &best[i], tape, err);
        free_sets(m);
    }
    heed_tape_free(tape);
    return err->status;
}

heed_status lab_experiment(lab_session *r, const lab *l, const void *settings,
                           const lab_system *system, heed_error *err)
{
    const int64_t seeds = r->options->seeds;
    struct model m = {.run = r, .lab = l, .settings = settings, .system = system};
    heed_measure *best = heed_arena_allocate(r->arena, sizeof *best * (size_t)seeds);
    if (!best)
        return lab_fail(err, HEED_MEMORY, "out of memory for the scores of %lld seeds",
                        (long long)seeds);
    if (choose_folder(r, err) || make_outer_folder(r, l, settings, err))
        return err->status;
    for (int64_t i = 0; i < seeds && !r->stopped; i++) {
        r->seed = (uint64_t)(r->options->seed + i);
        if (train(&m, &best[i], err))
            return err->status;
    }
    if (r->stopped || !leads(r) || evaluate_all(&m, best, err))
        return err->status;
    return lab_write(r, "results.json", lab_results(r, l, settings), err);
}
