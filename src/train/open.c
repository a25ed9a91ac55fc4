/* open.c: everything before the first update: the folder, the task's data and parameters,
 * optimisers.
 *
 * A new folder is prepared under another name beside its own and renamed when it is complete, first
 * save included.  So a folder of the right name always loads and resumes, and wrong options or bad
 * data leave nothing behind. */
#include "train/trainer.h"
#include <heed/io.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void heed__trainer_say(const heed_trainer *t, heed_log_level level, const char *format, ...)
{
    char line[1024];
    va_list args;
    if (!t->hooks.log.write)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    t->hooks.log.write(t->hooks.log.context, level, line);
}

const char *heed__trainer_keep_text(heed_trainer *t, const char *text, heed_error *err)
{
    size_t n = strlen(text) + 1;
    char *copy = heed_arena_allocate(t->arena, n);
    if (!copy)
        heed__fail(err, HEED_MEMORY, "out of memory for a path");
    return copy ? memcpy(copy, text, n) : NULL;
}

/* ---- parameters and what moves them ---- */

static heed_status open_set(heed_trainer *t, int k, heed_error *err)
{
    const heed_loop_options *o = &t->loop;
    heed__trained_set *s = &t->set[k];
    /* In heed_optimizer_options 0 stands for the default and a negative number for 0. */
    const heed_optimizer_options options = {.kind = (heed_optimizer_kind)o->optimizer,
                                            .momentum = o->momentum,
                                            .beta1 = o->beta1 == 0 ? -1 : o->beta1,
                                            .beta2 = o->beta2 == 0 ? -1 : o->beta2,
                                            .eps = o->eps == 0 ? -1 : o->eps,
                                            .weight_decay = o->weight_decay};
    s->optimizer =
        heed__optimizer_of_parts(s->params, &options, heed__parts(t), &t->allocator, err);
    if (s->optimizer && heed__parts(t) && heed__ranks_lead(t->ranks) &&
        heed__optimizer_whole(s->optimizer, err)) /* to be loaded, or saved as it is */
        return err->status;
    const bool averages = o->ema > 0 && heed__ranks_lead(t->ranks);
    if (s->optimizer && averages)
        s->ema = heed_ema_new(s->params, o->ema, &t->allocator, err);
    return !s->optimizer || (averages && !s->ema) ? err->status : HEED_OK;
}

static heed_status open_task(heed_trainer *t, bool new_folder, heed_error *err)
{
    const heed_loop_options *o = &t->loop;
    const heed_tape_options tape = {.allocator = &t->allocator,
                                    .threads = (int)o->threads,
                                    .seed = (uint64_t)o->seed,
                                    .log = t->hooks.log};
    heed_status status =
        t->task.open ? t->task.open(t->task.self, t->place, new_folder, err) : HEED_OK;
    if (status || !(t->tape = heed_tape_new(&tape, err)))
        return err->status;
    t->portion = heed__allocate_zeroed(&t->allocator, (size_t)o->accumulate, sizeof *t->portion);
    if (!t->portion)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld batches",
                          (long long)o->accumulate);
    for (int k = 0; k < t->sets; k++)
        t->set[k].params = t->task.params(t->task.self, k);
    status = heed__gradients_open(t, err);
    for (int k = 0; !status && k < t->sets; k++)
        status = open_set(t, k, err);
    t->schedule = (heed_schedule){.kind = (heed_schedule_kind)o->schedule,
                                  .rate = o->rate,
                                  .warmup = o->warmup,
                                  .total = o->max_updates,
                                  .floor = o->rate_floor,
                                  .d = t->task.width};
    return status;
}

/* ---- the folder ---- */

static heed_status open_logs(heed_trainer *t, heed_error *err)
{
    heed__pathname path;
    heed__trainer_path(t, path, "training/log.jsonl");
    t->log = heed__log_open(path, t->state.log_bytes, &t->allocator, err);
    heed__trainer_path(t, path, "training");
    if (t->log)
        t->events = heed__events_open(path, &t->allocator, err);
    return t->events ? HEED_OK : err->status;
}

/* A kill may have left unfinished files, a link to an older save, and saves that nothing needed any
 * more.  Newer ones than the one that was loaded are damaged, and stay until they are replaced. */
static heed_status clear_leftovers(heed_trainer *t, heed_error *err)
{
    heed_status status = heed__prune_unfinished(t, err);
    if (!status)
        status = heed__checkpoint_point_latest(t, err);
    return status ? status : heed__prune_unneeded(t, t->state.update, err);
}

heed_status heed__trainer_save_models(heed_trainer *t, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int k = 0; !status && k < t->sets; k++) {
        heed__pathname path;
        heed__set_path(t, k, "model", path);
        status = heed_params_save(t->set[k].params, path, err);
    }
    return status;
}

heed_status heed__trainer_settle(heed_trainer *t, heed_error *err)
{
    const bool new = t->place != t->folder;
    heed_status status = HEED_OK;
    if (!new)
        status = clear_leftovers(t, err);
    else if (t->task.describe)
        status = t->task.describe(t->task.self, t->place, err);
    if (status || open_logs(t, err))
        return err->status;
    status = heed__options_write(t, err);
    if (status || !new)
        return status;
    if (!(status = heed__trainer_save_models(t, err)) && !(status = heed__whole_zero(t, err)))
        status = heed__checkpoint_save(t, true, err);
    heed__whole_forget(t);
    if (!status)
        status = heed__folder_sync(t->place, err);
    if (!status)
        status = heed__folder_rename(t->place, t->folder, err);
    if (!status)
        t->place = t->folder;
    return status;
}

/* ---- new, resumed, free ---- */

static heed_trainer *blank(const char *folder, const heed_task *task, const heed_train_hooks *hooks,
                           const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_trainer *t = heed__allocate_zeroed(&a, 1, sizeof *t);
    if (!t) {
        heed__fail(err, HEED_MEMORY, "out of memory for a trainer");
        if (task->close)
            task->close(task->self);
        return NULL;
    }
    t->allocator = a;
    t->task = *task;
    t->loop = *task->loop;
    t->sets = task->sets < 1 ? 1 : task->sets > HEED_MAX_SETS ? HEED_MAX_SETS : task->sets;
    t->lock = -1;
    t->saved_update = -1;
    t->state.best_update = t->state.valid_update = -1;
    t->state.best.value = t->state.best_first = NAN;
    if (hooks) {
        t->hooks = *hooks;
        t->ranks = hooks->ranks;
    }
    t->arena = heed_arena_new(&a, err);
    if (t->arena)
        t->folder = heed__trainer_keep_text(t, folder, err);
    if (!t->folder) {
        heed_trainer_free(t);
        return NULL;
    }
    return t;
}

static heed_status check(const heed_trainer *t, heed_error *err)
{
    const heed_loop_options *o = &t->loop;
    if (heed__folder_leaves_room(t->folder, err))
        return err->status;
    if (!t->task.params || !t->task.loss)
        return heed__fail(err, HEED_ARGUMENT, "a task needs params and loss");
    if (t->task.sets > HEED_MAX_SETS || (t->sets > 1 && !t->task.set_names))
        return heed__fail(err, HEED_ARGUMENT,
                          "a task with %d sets of parameters: expected %d at most, with names",
                          t->task.sets, HEED_MAX_SETS);
    if (o->accumulate < 1 || o->log_every < 1 || o->keep < 1 || o->average > HEED_MAX_AVERAGE)
        return heed__fail(err, HEED_ARGUMENT,
                          "options of the loop: accumulate, log_every and keep are %lld, %lld and "
                          "%lld, expected at least 1; average is %lld, expected at most %d",
                          (long long)o->accumulate, (long long)o->log_every, (long long)o->keep,
                          (long long)o->average, HEED_MAX_AVERAGE);
    return HEED_OK;
}

heed_status heed__folder_is_free(const char *folder, heed_error *err)
{
    if (heed__folder_empty(folder))
        return HEED_OK;
    heed__pathname training;
    heed__pathname_format(training, NULL, "%s/training", folder);
    const bool resumable = heed__folder_exists(training);
    return heed__fail(err, HEED_ARGUMENT,
                      resumable ? "'%.300s' is there already: go on with --resume, or remove it"
                                : "'%.300s' is there already, and no training: choose another "
                                  "name for the model",
                      folder);
}

static heed_status prepare_new(heed_trainer *t, heed_error *err)
{
    heed_status status = heed__folder_is_free(t->folder, err);
    if (!status)
        status = heed__trainer_stage(t, err);
    return status ? status : open_task(t, true, err);
}

static heed_status prepare_resume(heed_trainer *t, heed_error *err)
{
    heed__pathname path;
    t->place = t->folder;
    heed_status status = HEED_OK;
    heed__trainer_path(t, path, "training");
    if (!heed__folder_exists(path))
        status = heed__fail(err, HEED_IO, "cannot resume '%.400s': there is no training in it",
                            t->folder);
    if (!status)
        status = heed__options_check(t, err);
    if (!status)
        status = heed__trainer_lock(t, err);
    if (!status)
        status = open_task(t, false, err);
    return status ? status : heed__checkpoint_load_newest(t, err);
}

/* A rank that does not lead owns no directory: what its task reads of one is in `folder`. */
static heed_status prepare(heed_trainer *t, bool resume, heed_error *err)
{
    heed_status status;
    if (heed__ranks_lead(t->ranks)) {
        status = resume ? prepare_resume(t, err) : prepare_new(t, err);
        if (!status)
            status = heed__together_give(t, err);
    } else {
        t->place = t->folder;
        status = open_task(t, false, err);
    }
    return status ? status : heed__together_meet(t, err);
}

heed_trainer *heed_trainer_open(const char *folder, const heed_task *task, bool resume,
                                const heed_train_hooks *hooks, const heed_allocator *allocator,
                                heed_error *err)
{
    heed_error own = {0};
    if (!folder || !task || !task->loop) {
        heed__fail(err, HEED_ARGUMENT, "a trainer needs a folder, a task and the task's loop");
        if (task && task->close)
            task->close(task->self);
        return NULL;
    }
    heed_trainer *t = blank(folder, task, hooks, allocator, &own);
    if (t && !check(t, &own) && !prepare(t, resume, &own))
        return t;
    heed_trainer_free(t);
    heed__fail(err, own.status, "%s", own.text);
    return NULL;
}

void heed_trainer_free(heed_trainer *t)
{
    if (!t)
        return;
    heed__events_close(t->events);
    heed__log_close(t->log);
    heed__overlap_free(t->overlap);
    heed__exact_sum_free(t->sum);
    heed_tape_free(t->tape);
    for (int k = 0; k < t->sets; k++) {
        heed_ema_free(t->set[k].ema);
        heed_optimizer_free(t->set[k].optimizer);
    }
    heed__release(&t->allocator, t->portion, (size_t)t->loop.accumulate, sizeof *t->portion);
    if (t->task.close)
        t->task.close(t->task.self);
    if (t->lock >= 0)
        close(t->lock);
    if (t->place && t->place != t->folder)
        heed__folder_remove(t->place, NULL);
    heed_arena_free(t->arena);
    heed_allocator a = t->allocator;
    heed__release(&a, t, 1, sizeof *t);
}

const heed_loop_options *heed_trainer_options(const heed_trainer *t)
{
    return &t->loop;
}
