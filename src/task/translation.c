/* translation.c: translation as a task: a recipe's model, its batches and losses.  All that is
 * particular to it ends here; the loop is src/train. */
#include "task/translation.h"
#include "base/error.h"
#include "data/batches.h"
#include "dist/ranks.h"
#include "engine/packed_weights.h"
#include "model/model_class.h"
#include "task/defaults.h"
#include "train/trainer.h"
#include "vocab/vocabulary.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void heed__translation_say(const heed__translation *t, heed_log_level level, const char *format,
                           ...)
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

/* ---- pairs that are too long ---- */

int64_t heed__max_tokens(const heed__translation *t)
{
    int64_t asked = t->recipe.train.max_tokens, longest = t->recipe.model.longest;
    return asked < longest ? asked : longest;
}

static const char *max_tokens_option(const heed__translation *t)
{
    return t->recipe.train.max_tokens <= t->recipe.model.longest ? "--max-tokens" : "--longest";
}

/* Of the pairs, those that have more, reckoned from as many as were drawn. */
static int64_t left_out(const heed__translation *t)
{
    heed_batches_report r = heed_batches_describe(t->batches);
    double share = r.drawn ? (double)r.left_out / (double)r.drawn : 0;
    return (int64_t)(share * (double)heed_corpus_describe(t->corpus).epoch_pairs + 0.5);
}

/* Once, when as many pairs were drawn as there are. */
static void tell_long(heed__translation *t)
{
    const int64_t pairs = heed_corpus_describe(t->corpus).epoch_pairs;
    if (t->told_long || heed_batches_describe(t->batches).drawn < pairs)
        return;
    t->told_long = true;
    const int64_t n = left_out(t);
    if (n)
        heed__translation_say(t, HEED_LOG_WARNING,
                              "%lld of %lld pairs are left out: more than %lld tokens (%s) on a "
                              "side",
                              (long long)n, (long long)pairs, (long long)heed__max_tokens(t),
                              max_tokens_option(t));
}

/* ---- model and batches ---- */

/* The learned vocabularies come later; their sizes cannot be wrong, the rest of the model can. */
static heed_status check_model(const heed_recipe *r, heed_error *err)
{
    heed_model_config c = r->model;
    const int64_t size = r->train.vocab_size ? r->train.vocab_size : HEED__SPECIALS + 1;
    heed__model_reads_text(&c, size, size);
    return heed__model_check(&c, err);
}

static heed_status check_recipe(heed_recipe *r, heed_error *err)
{
    heed__recipe_resolve(r);
    heed_status status = heed__recipe_check(r, err);
    return status ? status : check_model(r, err);
}

static heed_status make_batches(heed__translation *t, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    heed_batches_options options = {
        .batch_tokens = o->batch_tokens,
        .max_tokens = heed__max_tokens(t),
        .seed = (uint64_t)o->loop.seed,
        .source_sampling = o->sampling_sides == HEED_SIDES_TARGET ? 0 : o->subword_sampling,
        .target_sampling = o->sampling_sides == HEED_SIDES_SOURCE ? 0 : o->subword_sampling,
        .augment = o->augment};
    const size_t micros = (size_t)o->loop.accumulate;
    t->batches = heed_batches_new(t->corpus, t->source, t->target, &options, &t->allocator, err);
    t->micro = heed__allocate_zeroed(&t->allocator, micros, sizeof *t->micro);
    if (t->batches && !t->micro)
        heed__fail(err, HEED_MEMORY, "out of memory for %zu batches", micros);
    return t->batches && t->micro ? HEED_OK : err->status;
}

/* A corpus of which nothing is short enough shows when the first batch is made; better before there
 * is a directory. */
static heed_status check_batches(heed__translation *t, heed_error *err)
{
    heed_error own = {0};
    heed_status status = heed_batches_next(t->batches, t->micro, 1, &own);
    if (status == HEED_FORMAT)
        return heed__fail(err, status, "%s: raise %s", own.text, max_tokens_option(t));
    if (status)
        return heed__fail(err, status, "%s", own.text);
    return heed_batches_seek(t->batches, (heed_batches_position){0}, err);
}

static heed_status gather(void *self, const void *mine, void *all, size_t bytes, heed_error *err)
{
    return heed__ranks_gather(self, mine, all, bytes, err);
}

/* Each rank cuts into tokens what it trains on. */
static heed_status share_batches(heed__translation *t, heed_error *err)
{
    heed_ranks *ranks = t->hooks.ranks;
    const heed__sharing sharing = {.rank = heed_ranks_rank(ranks),
                                   .size = heed_ranks_size(ranks),
                                   .gather = gather,
                                   .self = ranks};
    return heed__batches_share(t->batches, &sharing, err);
}

/* The weights of the model to start from. */
static heed_status take_weights(heed__translation *t, heed_error *err)
{
    heed__pathname path;
    heed_status status =
        heed__pathname_format(path, err, "%s/model.safetensors", t->recipe.train.from);
    return status ? status : heed__weights_read(t->model, path, err);
}

static heed_status make_model(heed__translation *t, bool new_folder, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    t->model = heed_model_new(&t->recipe.model, (uint64_t)o->loop.seed, &t->allocator, err);
    if (!t->model)
        return err->status;
    if (new_folder && o->from && take_weights(t, err))
        return err->status;
    heed_status status = heed__open_teacher(t, err);
    return status ? status : make_batches(t, err);
}

/* ---- the task ---- */

static heed_status open_translation(void *self, const char *folder, bool new_folder,
                                    heed_error *err)
{
    heed__translation *t = self;
    t->folder = folder;
    if ((new_folder ? heed__keep_sample(t, err)
                    : heed__open_corpora(t, err) || heed__rehearse(t, folder, true, err)) ||
        heed__open_vocabularies(t, new_folder, err) || heed__open_names(t, new_folder, err) ||
        heed__measure_text(t, err) || make_model(t, new_folder, err))
        return err->status;
    heed_status status = HEED_OK;
    if (new_folder && !(status = check_batches(t, err)))
        status = heed__check_valid(t, err);
    t->folder = NULL;
    return status ? status : share_batches(t, err);
}

static heed_params *params_of(void *self, int set)
{
    (void)set;
    return heed_model_params(((heed__translation *)self)->model);
}

/* From here on the files of the recipe have their whole names. */
static heed_status describe(void *self, const char *folder, heed_error *err)
{
    heed__translation *t = self;
    heed_status status = heed__recipe_absolute(&t->recipe, t->arena, err);
    return status ? status : heed_model_describe(folder, &t->recipe.model, &t->text, err);
}

static int data(void *self, heed_fingerprint *out)
{
    const heed__translation *t = self;
    const heed_corpus_report r = heed_corpus_describe(t->corpus),
                             v = heed_corpus_describe(t->valid);
    const heed_fingerprint all[] = {
        {"training pairs", r.pairs},
        {"training source bytes", r.source_bytes},
        {"training target bytes", r.target_bytes},
        {"training checksum", r.checksum},
        {"validation pairs", v.pairs},
        {"validation source bytes", v.source_bytes},
        {"validation target bytes", v.target_bytes},
        {"validation checksum", v.checksum},
    };
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof *all;
}

static heed_status next(void *self, int64_t update, int micros, heed_portion *portion,
                        heed_error *err)
{
    heed__translation *t = self;
    const double all = (double)heed_corpus_describe(t->corpus).epoch_target_bytes;
    heed_status status = heed_batches_next(t->batches, t->micro, micros, err);
    (void)update;
    for (int i = 0; !status && i < micros; i++) {
        const heed_batch *b = &t->micro[i];
        int64_t bytes = 0;
        if (!b->examples)
            continue;
        for (int64_t k = 0; k < b->examples; k++)
            bytes += (int64_t)heed_corpus_pair(t->corpus, b->example[k]).target_length;
        portion[i] = (heed_portion){.terms = (double)b->target.rows->rows,
                                    .items = (double)(b->source.rows->rows + b->target.rows->rows),
                                    .share = (double)bytes / all,
                                    .epoch = b->epoch};
    }
    tell_long(t);
    return status;
}

static heed_tensor *loss(void *self, heed_tape *tape, const heed_pass *pass, double *sum)
{
    heed__translation *t = self;
    return heed__rehearsed_loss(t, tape, &t->micro[pass->micro], pass->weight, sum);
}

static heed_position tell(void *self)
{
    const heed_batches_position p = heed_batches_tell(((heed__translation *)self)->batches);
    return (heed_position){p.epoch, {p.window, p.batch, 0}};
}

static heed_status seek(void *self, heed_position p, heed_error *err)
{
    return heed_batches_seek(((heed__translation *)self)->batches,
                             (heed_batches_position){p.epoch, p.at[0], p.at[1]}, err);
}

static void close_translation(void *self)
{
    heed__translation *t = self;
    heed_batches_free(t->batches);
    heed__release(&t->allocator, t->micro, (size_t)t->recipe.train.loop.accumulate,
                  sizeof *t->micro);
    heed_model_free(t->model);
    heed_model_free(t->teacher);
    if (t->target != t->source)
        heed_vocab_free(t->target);
    heed_vocab_free(t->source);
    heed__names_free(t->names);
    heed_corpus_free(t->valid);
    heed_corpus_free(t->corpus);
    heed_corpus_free(t->rehearsal);
    heed__string_deinit(&t->own_sample);
    heed_arena_free(t->arena);
    heed_allocator a = t->allocator;
    heed__release(&a, t, 1, sizeof *t);
}

/* ---- from a recipe ---- */

static heed_status prepare_new(heed__translation *t, const char *folder, heed_error *err)
{
    if (t->recipe.train.from && heed__recipe_start_from(&t->recipe, &t->from, t->arena, err))
        return err->status;
    heed_recipe draft = t->recipe; /* what does not go together shows before files are read */
    if (heed__recipe_draft(&draft, &t->allocator, err) || check_recipe(&draft, err) ||
        (folder && heed__folder_is_free(folder, err)) || heed__open_corpora(t, err) ||
        (t->recipe.train.from && heed__rehearse(t, t->recipe.train.from, false, err)) ||
        heed__recipe_choose(&t->recipe, t->corpus, t->rehearsal != NULL,
                            heed_ranks_size(t->hooks.ranks), &t->hooks.log, &t->allocator, err))
        return err->status;
    return check_recipe(&t->recipe, err);
}

/* What the model that it started from knew is written in the folder: that one may be gone. */
static heed_status prepare_resumed(heed__translation *t, const char *folder,
                                   const heed_recipe *recipe, heed_error *err)
{
    heed_model_config model;
    if (heed_recipe_open(folder, &t->recipe, t->arena, err) ||
        heed_model_read_config(folder, t->arena, &model, &t->from, err))
        return err->status;
    if (recipe)
        t->recipe = *recipe;
    heed__recipe_resolve(&t->recipe);
    heed_status status = heed__recipe_absolute(&t->recipe, t->arena, err);
    return status ? status : heed__recipe_check(&t->recipe, err);
}

static heed__translation *translation_of(const heed_recipe *recipe, const char *folder, bool resume,
                                         const heed_train_hooks *hooks,
                                         const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__translation *t = heed__allocate_zeroed(&a, 1, sizeof *t);
    if (!t) {
        heed__fail(err, HEED_MEMORY, "out of memory for a translation");
        return NULL;
    }
    t->allocator = a;
    heed__string_init(&t->own_sample, &t->allocator);
    t->hooks = hooks ? *hooks : (heed_train_hooks){.progress = NULL};
    t->recipe.train.loop.accumulate = 0;
    if ((t->arena = heed_arena_new(&a, err))) {
        if (!resume)
            t->recipe = *recipe;
        if (!(resume ? prepare_resumed(t, folder, recipe, err) : prepare_new(t, folder, err)))
            return t;
    }
    close_translation(t);
    return NULL;
}

static heed_trainer *train(const char *folder, const heed_recipe *recipe, bool resume,
                           const heed_train_hooks *hooks, const heed_allocator *allocator,
                           heed_error *err)
{
    heed_error own = {0};
    heed__translation *t = translation_of(recipe, folder, resume, hooks, allocator, &own);
    if (!t) {
        heed__fail(err, own.status, "%s", own.text);
        return NULL;
    }
    t->threads = (int)t->recipe.train.loop.threads;
    const heed_task task = {.self = t,
                            .loop = &t->recipe.train.loop,
                            .options = &heed__recipe_set,
                            .values = &t->recipe,
                            .values_size = sizeof t->recipe,
                            .may_change = heed__recipe_may_change(&t->recipe),
                            .unit = "nats a token",
                            .items = "tokens",
                            .perplexity = true,
                            .largest_loss = HEED_EXPLODED,
                            .width = t->recipe.model.d,
                            .best = heed__metric_name(t->recipe.train.valid_metric),
                            .open = open_translation,
                            .params = params_of,
                            .describe = describe,
                            .data = data,
                            .next = next,
                            .loss = loss,
                            .tell = tell,
                            .seek = seek,
                            .validate = heed__translation_validate,
                            .close = close_translation};
    return heed_trainer_open(folder, &task, resume, hooks, allocator, err);
}

heed_trainer *heed_trainer_new(const char *folder, const heed_recipe *recipe,
                               const heed_train_hooks *hooks, const heed_allocator *allocator,
                               heed_error *err)
{
    if (!folder || !recipe)
        return heed__missing(err, folder ? "recipe" : "folder"), NULL;
    return train(folder, recipe, false, hooks, allocator, err);
}

heed_trainer *heed_trainer_resume(const char *folder, const heed_recipe *recipe,
                                  const heed_train_hooks *hooks, const heed_allocator *allocator,
                                  heed_error *err)
{
    return train(folder, recipe, true, hooks, allocator, err);
}

heed_status heed_recipe_choose(heed_recipe *recipe, const heed_log_sink *log,
                               const heed_allocator *allocator, heed_error *err)
{
    if (!recipe)
        return heed__missing(err, "recipe");
    heed_error own = {0};
    const heed_train_hooks hooks = {.log = log ? *log : (heed_log_sink){NULL, NULL}};
    const heed_train_options given = recipe->train;
    heed__translation *t = translation_of(recipe, NULL, false, &hooks, allocator, &own);
    if (!t)
        return heed__fail(err, own.status, "%s", own.text);
    *recipe = t->recipe;
    /* Texts of another model live as long as t. */
    recipe->train.vocab = given.vocab;
    recipe->train.source_vocab = given.source_vocab;
    recipe->train.target_vocab = given.target_vocab;
    recipe->train.bpe_joiner = given.bpe_joiner;
    if (given.from)
        recipe->train.vocab_size = given.vocab_size;
    close_translation(t);
    return HEED_OK;
}

heed_text_report heed_trainer_text(const heed_trainer *trainer)
{
    if (!trainer || trainer->task.loss != loss)
        return (heed_text_report){0};
    const heed__translation *t = trainer->task.self;
    return (heed_text_report){.pairs = heed_corpus_describe(t->corpus).epoch_pairs,
                              .valid_pairs = heed_corpus_describe(t->valid).pairs,
                              .left_out = left_out(t),
                              .source_vocabulary = heed_vocab_size(t->source),
                              .target_vocabulary = heed_vocab_size(t->target)};
}
