/* translation_new.c: everything before the first update: corpora, vocabularies, model, optimiser.
 *
 * A new model directory is prepared under another name beside its own and renamed when it is
 * complete, first save included.  So a directory of the right name always loads and resumes, and
 * wrong options or bad data leave nothing behind. */
#include "engine/packed_weights.h"
#include "model/model_class.h"
#include "train/trainer.h"
#include "vocab/vocabulary.h"
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

/* ---- model, optimiser, batches ---- */

/* The learned vocabularies come later; their sizes cannot be wrong, the rest of the model can. */
static heed_status check_model(const heed_trainer *t, heed_error *err)
{
    heed_model_config c = t->recipe.model;
    const int64_t size =
        t->recipe.train.vocab_size ? t->recipe.train.vocab_size : HEED__SPECIALS + 1;
    heed__model_reads_text(&c, size, size);
    return heed__model_check(&c, err);
}

static heed_status make_optimizer(heed_trainer *t, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    /* In heed_optimizer_options 0 stands for the default and a negative number for 0. */
    heed_optimizer_options options = {.kind = (heed_optimizer_kind)o->optimizer,
                                      .momentum = o->momentum,
                                      .beta1 = o->beta1 == 0 ? -1 : o->beta1,
                                      .beta2 = o->beta2 == 0 ? -1 : o->beta2,
                                      .eps = o->eps == 0 ? -1 : o->eps,
                                      .weight_decay = o->weight_decay};
    t->optimizer = heed_optimizer_new(t->params, &options, &t->allocator, err);
    if (t->optimizer && o->ema > 0)
        t->ema = heed_ema_new(t->params, o->ema, &t->allocator, err);
    t->schedule = (heed_schedule){.kind = (heed_schedule_kind)o->schedule,
                                  .rate = o->rate,
                                  .warmup = o->warmup,
                                  .total = o->max_updates,
                                  .floor = o->rate_floor,
                                  .d = t->recipe.model.d};
    return !t->optimizer || (o->ema > 0 && !t->ema) ? err->status : HEED_OK;
}

int64_t heed__trainer_max_tokens(const heed_trainer *t)
{
    int64_t asked = t->recipe.train.max_tokens, longest = t->recipe.model.longest;
    return asked < longest ? asked : longest;
}

const char *heed__trainer_max_tokens_option(const heed_trainer *t)
{
    return t->recipe.train.max_tokens <= t->recipe.model.longest ? "--max-tokens" : "--longest";
}

int64_t heed__trainer_left_out(const heed_trainer *t)
{
    heed_batches_report r = heed_batches_describe(t->batches);
    double share = r.drawn ? (double)r.left_out / (double)r.drawn : 0;
    return (int64_t)(share * (double)heed_corpus_describe(t->corpus).pairs + 0.5);
}

static heed_status make_batches(heed_trainer *t, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    heed_batches_options options = {
        .batch_tokens = o->batch_tokens,
        .max_tokens = heed__trainer_max_tokens(t),
        .seed = (uint64_t)o->seed,
        .source_sampling = o->sampling_sides == HEED_SIDES_TARGET ? 0 : o->subword_sampling,
        .target_sampling = o->sampling_sides == HEED_SIDES_SOURCE ? 0 : o->subword_sampling,
        .augment = o->augment};
    t->batches = heed_batches_new(t->corpus, t->source, t->target, &options, &t->allocator, err);
    t->micro = heed__allocate_zeroed(&t->allocator, (size_t)o->accumulate, sizeof *t->micro);
    if (t->batches && !t->micro)
        heed__fail(err, HEED_MEMORY, "out of memory for %lld batches", (long long)o->accumulate);
    return t->batches && t->micro ? HEED_OK : err->status;
}

/* A corpus of which nothing is short enough shows when the first batch is made; better before there
 * is a directory. */
static heed_status check_batches(heed_trainer *t, heed_error *err)
{
    heed_error own = {0};
    heed_status status = heed_batches_next(t->batches, t->micro, 1, &own);
    if (status == HEED_FORMAT)
        return heed__fail(err, status, "%s: raise %s", own.text,
                          heed__trainer_max_tokens_option(t));
    if (status)
        return heed__fail(err, status, "%s", own.text);
    return heed_batches_seek(t->batches, (heed_batches_position){0}, err);
}

/* The weights of the model to start from. */
static heed_status take_weights(heed_trainer *t, heed_error *err)
{
    heed__pathname path;
    heed_status status =
        heed__pathname_format(path, err, "%s/model.safetensors", t->recipe.train.from);
    return status ? status : heed__weights_read(t->model, path, err);
}

static heed_status make_model(heed_trainer *t, bool new_folder, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    heed_tape_options tape = {.allocator = &t->allocator,
                              .threads = (int)o->threads,
                              .seed = (uint64_t)o->seed,
                              .log = t->hooks.log};
    t->model = heed_model_new(&t->recipe.model, (uint64_t)o->seed, &t->allocator, err);
    if (!t->model)
        return err->status;
    t->params = heed_model_params(t->model);
    if (new_folder && o->from && take_weights(t, err))
        return err->status;
    t->tape = heed_tape_new(&tape, err);
    if (!t->tape || make_optimizer(t, err))
        return err->status;
    return make_batches(t, err);
}

/* ---- the folder ---- */

static heed_status open_logs(heed_trainer *t, heed_error *err)
{
    heed__pathname path;
    if (heed__pathname_format(path, err, "%s/training/log.jsonl", t->place))
        return err->status;
    t->log = heed__log_open(path, t->state.log_bytes, &t->allocator, err);
    if (t->log && !heed__pathname_format(path, err, "%s/training", t->place))
        t->events = heed__events_open(path, &t->allocator, err);
    return t->log && t->events ? HEED_OK : err->status;
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

heed_status heed__trainer_settle(heed_trainer *t, heed_error *err)
{
    heed__pathname path;
    bool new = t->place != t->folder;
    heed_status status = new ? heed_model_describe(t->place, &t->recipe.model, &t->text, err)
                             : clear_leftovers(t, err);
    if (status || open_logs(t, err))
        return err->status;
    status = heed__pathname_format(path, err, "%s/training/options.json", t->place);
    if (!status)
        status = heed__recipe_write(&t->recipe, path, err);
    if (status || !new)
        return status;
    if (!(status = heed__pathname_format(path, err, "%s/model.safetensors", t->place)))
        status = heed_params_save(t->params, path, err);
    if (!status)
        status = heed__checkpoint_save(t, true, err);
    if (!status)
        status = heed__folder_sync(t->place, err);
    if (!status)
        status = heed__folder_rename(t->place, t->folder, err);
    if (!status)
        t->place = t->folder;
    return status;
}

/* ---- new, resume, free ---- */

static heed_trainer *blank(const char *folder, const heed_train_hooks *hooks,
                           const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_trainer *t = heed__allocate_zeroed(&a, 1, sizeof *t);
    if (!t) {
        heed__fail(err, HEED_MEMORY, "out of memory for a trainer");
        return NULL;
    }
    t->allocator = a;
    t->lock = -1;
    t->saved_update = -1;
    t->state.best_update = -1;
    t->state.best = t->state.best_loss = t->state.valid_loss = t->state.bleu = t->state.chrf = NAN;
    t->state.valid_update = -1;
    if (hooks)
        t->hooks = *hooks;
    t->arena = heed_arena_new(&a, err);
    if (t->arena)
        t->folder = heed__trainer_keep_text(t, folder, err);
    if (!t->folder) {
        heed_trainer_free(t);
        return NULL;
    }
    return t;
}

static heed_status prepare_new(heed_trainer *t, heed_error *err)
{
    if (t->recipe.train.from && heed__recipe_start_from(&t->recipe, &t->from, t->arena, err))
        return err->status;
    heed__recipe_resolve(&t->recipe);
    if (heed__recipe_check(&t->recipe, err) || check_model(t, err))
        return err->status;
    if (!heed__folder_empty(t->folder)) {
        heed__pathname training;
        bool resumable = !heed__pathname_format(training, err, "%s/training", t->folder) &&
                         heed__folder_exists(training);
        return heed__fail(err, HEED_ARGUMENT,
                          resumable ? "'%.300s' is there already: go on with --resume, or remove it"
                                    : "'%.300s' is there already, and no training: choose another "
                                      "name for the model",
                          t->folder);
    }
    if (heed__trainer_open_corpora(t, err) || heed__trainer_stage(t, err) ||
        heed__trainer_open_vocabularies(t, true, err) || heed__trainer_open_names(t, true, err))
        return err->status;
    if (heed__trainer_measure_text(t, err) || make_model(t, true, err) || check_batches(t, err) ||
        heed__trainer_check_valid(t, err))
        return err->status;
    return heed__recipe_absolute(&t->recipe, t->arena, err);
}

heed_trainer *heed_trainer_new(const char *folder, const heed_recipe *recipe,
                               const heed_train_hooks *hooks, const heed_allocator *allocator,
                               heed_error *err)
{
    heed_error own = {0};
    heed_trainer *t = blank(folder, hooks, allocator, &own);
    if (t) {
        t->recipe = *recipe;
        if (prepare_new(t, &own) == HEED_OK)
            return t;
    }
    heed_trainer_free(t);
    heed__fail(err, own.status, "%s", own.text);
    return NULL;
}

static heed_status prepare_resume(heed_trainer *t, const heed_recipe *recipe, heed_error *err)
{
    heed_recipe stored;
    heed_model_config model;
    bool new_bits = false;
    t->place = t->folder;
    /* What the model that it started from knew is written there: that one may be gone. */
    if (heed_recipe_open(t->folder, &stored, t->arena, err) ||
        heed_model_read_config(t->folder, t->arena, &model, &t->from, err))
        return err->status;
    t->recipe = recipe ? *recipe : stored;
    heed__recipe_resolve(&t->recipe);
    if (heed__recipe_absolute(&t->recipe, t->arena, err) ||
        heed__recipe_may_become(&stored, &t->recipe, t->folder, &new_bits, err) ||
        heed__recipe_check(&t->recipe, err) || heed__trainer_lock(t, err) ||
        heed__trainer_open_corpora(t, err) || heed__trainer_open_vocabularies(t, false, err) ||
        heed__trainer_open_names(t, false, err) || heed__trainer_measure_text(t, err) ||
        make_model(t, false, err))
        return err->status;
    if (new_bits)
        heed__trainer_say(t, HEED_LOG_WARNING,
                          "%lld threads instead of %lld: from here on the numbers may differ in "
                          "their last digits from a run without the change",
                          (long long)t->recipe.train.threads, (long long)stored.train.threads);
    return heed__checkpoint_load_newest(t, err);
}

heed_trainer *heed_trainer_resume(const char *folder, const heed_recipe *recipe,
                                  const heed_train_hooks *hooks, const heed_allocator *allocator,
                                  heed_error *err)
{
    heed_error own = {0};
    heed_trainer *t = blank(folder, hooks, allocator, &own);
    if (t && prepare_resume(t, recipe, &own) == HEED_OK)
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
    heed_batches_free(t->batches);
    heed__release(&t->allocator, t->micro, (size_t)t->recipe.train.accumulate, sizeof *t->micro);
    heed_tape_free(t->tape);
    heed_ema_free(t->ema);
    heed_optimizer_free(t->optimizer);
    heed_model_free(t->model);
    if (t->target != t->source)
        heed_vocab_free(t->target);
    heed_vocab_free(t->source);
    heed__names_free(t->names);
    heed_corpus_free(t->valid);
    heed_corpus_free(t->corpus);
    if (t->lock >= 0)
        close(t->lock);
    if (t->place && t->place != t->folder)
        heed__folder_remove(t->place, NULL);
    heed_arena_free(t->arena);
    heed_allocator a = t->allocator;
    heed__release(&a, t, 1, sizeof *t);
}
