/* match_task.c: how pictures and texts learn to find each other: pictures, each with one of its
 * captions, told from the others of the batch; how often partners find each other among pictures
 * held out. */
#include "see/match_task.h"

#include "base/error.h"
#include "base/memory.h"
#include "task/run_options.h"
#include "train/trainer.h"

#include <math.h>
#include <string.h>

#define CANDIDATES 200 /* pictures, with their texts, of a validation */

static const char *const defaults[] = {HEED_MATCH_DEFAULTS, NULL};
static const heed_option fields[] = {
    HEED_CAPTION_OPTIONS(heed_match_recipe, train),
    HEED_MATCH_MODEL_OPTIONS(heed_match_recipe, model),
};
static const heed_option_set set = {
    .command = "heed train --arch retrieve",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .defaults = defaults,
};

/* Text i belongs to picture i. */
struct pairs {
    const heed_real *pixels;
    const int32_t *ids;
    const heed_segments *rows;
};
struct matching {
    heed__captioned base;
    heed_match_recipe recipe;
    heed_match_net net;
    struct pairs *batch; /* (accumulate) */
};

/* ---- batches ---- */

/* One caption for each picture, any of its own, or, without dice, the first.  A caption without a
 * word is the unknown one. */
static heed_status pack(const heed__captioned *t, const heed__captions *d, const int64_t *picture,
                        int64_t count, const heed_rng *rng, heed_arena *arena, struct pairs *b,
                        heed_error *err)
{
    const int32_t unknown = heed_vocab_special(t->vocab).unk;
    const heed_tokens **chosen = heed_arena_allocate(arena, (size_t)count * sizeof *chosen);
    int64_t *lengths = heed_arena_allocate(arena, (size_t)count * sizeof *lengths), rows = 0;
    if (!chosen || !lengths)
        return heed__fail(err, HEED_MEMORY, "out of memory for a batch");
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = d->first[picture[i]], n = d->first[picture[i] + 1] - first;
        chosen[i] = &d->tokens[first + (rng ? heed_rng_below(rng, (uint64_t)i, n) : 0)];
        lengths[i] = chosen[i]->count ? chosen[i]->count : 1;
        rows += lengths[i];
    }
    int32_t *ids = heed_arena_allocate(arena, (size_t)rows * sizeof *ids);
    b->ids = ids;
    b->rows = heed_segments_new(arena, count, lengths);
    if (!ids || !b->rows)
        return heed__fail(err, HEED_MEMORY, "out of memory for a batch");
    for (int64_t i = 0; i < count; ids += lengths[i++]) {
        ids[0] = unknown;
        memcpy(ids, chosen[i]->id, (size_t)chosen[i]->count * sizeof *ids);
    }
    return HEED_OK;
}

static heed_status next(void *self, int64_t update, int micros, heed_portion *portion,
                        heed_error *err)
{
    struct matching *t = self;
    heed_arena_reset(t->base.update);
    for (int i = 0; i < micros; i++) {
        const heed_rng rng =
            heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)t->recipe.train.loop.seed,
                                            .step = (uint64_t)update,
                                            .micro_batch = (uint32_t)i,
                                            .node = HEED_TASK_NODE});
        heed_picture_batch p;
        if (heed__captioned_take(&t->base, &p, err) ||
            pack(&t->base, &t->base.train, p.example, p.count, &rng, t->base.update, &t->batch[i],
                 err))
            return err->status;
        t->batch[i].pixels = p.features;
        portion[i] = (heed_portion){.terms = 2 * (double)p.count,
                                    .items = (double)p.count,
                                    .share = (double)p.count / (double)t->base.train.count,
                                    .epoch = p.epoch};
    }
    return HEED_OK;
}

static heed_tensor *loss(void *self, heed_tape *tape, const heed_pass *pass, double *sum)
{
    struct matching *t = self;
    const struct pairs *b = &t->batch[pass->micro];
    (void)sum;
    return heed_match_loss(tape, &t->net, b->pixels, b->ids, b->rows, pass->weight);
}

/* ---- validation ---- */

/* Of the first n pictures held out with their first captions: (n,n). */
static heed_status scores_of(struct matching *t, heed_tape *tape, int64_t n, heed_real *scores,
                             heed_error *err)
{
    heed__captioned *b = &t->base;
    const int64_t each = t->net.grid.size.y * t->net.grid.size.x * t->recipe.model.d;
    int64_t *picture = heed_arena_allocate(b->update, (size_t)n * sizeof *picture);
    heed_real *places = heed_arena_allocate(b->update, (size_t)(n * each) * sizeof *places);
    struct pairs texts;
    if (!picture || !places)
        return heed__fail(err, HEED_MEMORY, "out of memory for a validation");
    if (heed_picture_batches_seek(b->valid_batches, (heed_picture_position){0, 0}, err))
        return err->status;
    for (int64_t done = 0; done < n;) {
        heed_picture_batch p = {0};
        if (heed_picture_batches_next(b->valid_batches, &p, err))
            return err->status;
        const int64_t some = n - done < p.count ? n - done : p.count;
        if (heed__match_see(tape, &t->net, p.features, some, places + done * each, err))
            return err->status;
        for (int64_t i = 0; i < some; i++)
            picture[done + i] = p.example[i] - b->valid.begin;
        done += some;
    }
    if (pack(b, &b->valid, picture, n, NULL, b->update, &texts, err))
        return err->status;
    heed_real *words = heed_arena_allocate(
        b->update, (size_t)(texts.rows->rows * t->recipe.model.d) * sizeof *words);
    if (!words)
        return heed__fail(err, HEED_MEMORY, "out of memory for a validation");
    if (heed__match_read(tape, &t->net, texts.ids, texts.rows, words, err))
        return err->status;
    return heed__match_all(tape, &t->net, places, n, words, texts.rows, scores, err);
}

/* - log of the softmax of row or column i at its partner. */
static double surprise(const heed_real *scores, int64_t n, int64_t i, bool column, double contrast)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += exp(contrast *
                   ((double)scores[column ? k * n + i : i * n + k] - (double)scores[i * n + i]));
    return log(sum);
}

static heed_status validate(void *self, heed_tape *tape, heed_measure *out, int *count,
                            heed_error *err)
{
    static const int64_t within[] = {1, 5, 10};
    static const char *const names[] = {"recall@1", "recall@5", "recall@10"};
    struct matching *t = self;
    const double contrast = t->recipe.model.contrast > 0 ? t->recipe.model.contrast : 20;
    const int64_t all = t->base.valid.count, n = all < CANDIDATES ? all : CANDIDATES;
    double nats = 0, mean = 0;
    heed_arena_reset(t->base.update);
    heed_real *scores = heed_arena_allocate(t->base.update, (size_t)(n * n) * sizeof *scores);
    if (!scores)
        return heed__fail(err, HEED_MEMORY, "out of memory for a validation");
    if (scores_of(t, tape, n, scores, err))
        return err->status;
    for (int64_t i = 0; i < n; i++)
        nats += surprise(scores, n, i, false, contrast) + surprise(scores, n, i, true, contrast);
    out[0] = (heed_measure){"loss", nats / (double)(2 * n), false};
    for (int k = 0; k < 3; k++) {
        const double recall = (heed_match_recall(scores, n, true, within[k]) +
                               heed_match_recall(scores, n, false, within[k])) /
                              2;
        out[2 + k] = (heed_measure){names[k], recall, true};
        mean += recall / 3;
    }
    out[1] = (heed_measure){"recall", mean, true};
    *count = 5;
    return HEED_OK;
}

/* ---- the task ---- */

static heed_status open_task(void *self, const char *folder, bool new_folder, heed_error *err)
{
    struct matching *t = self;
    if (heed__captioned_words(&t->base, folder, new_folder, err))
        return err->status;
    t->recipe.model.vocabulary = heed_vocab_size(t->base.vocab);
    heed_match_build(&t->net, heed_params_scope(t->base.params), &t->recipe.model);
    if (heed__captioned_start(&t->base, err))
        return err->status;
    t->batch = heed_arena_allocate(t->base.arena,
                                   (size_t)t->recipe.train.loop.accumulate * sizeof *t->batch);
    return t->batch ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for batches");
}

static heed_status describe(void *self, const char *folder, heed_error *err)
{
    struct matching *t = self;
    return heed__match_config_write(folder, &t->recipe.model, t->base.arena, err);
}

static void close_task(void *self)
{
    struct matching *t = self;
    const heed_allocator a = t->base.allocator;
    heed__captioned_end(&t->base);
    heed__release(&a, t, 1, sizeof *t);
}

/* ---- trainers ---- */

static heed_status prepare(struct matching *t, const char *folder, bool resume,
                           const heed_match_recipe *recipe, const heed_train_hooks *hooks,
                           const heed_allocator *a, heed_error *err)
{
    const heed_match_config *c = &t->recipe.model;
    if (heed__captioned_begin(&t->base, folder, resume, &set, &t->recipe, hooks, a, err))
        return err->status;
    if (recipe)
        t->recipe = *recipe;
    t->base.o = &t->recipe.train;
    t->base.side = &c->side;
    t->base.channels = &c->channels;
    heed__loop_resolve(&t->recipe.train.loop);
    if (heed__captioned_check(t->base.o, c->side, c->channels, c->stages, err))
        return err->status;
    if (t->base.o->batch < 2)
        return heed__fail(err, HEED_ARGUMENT,
                          "--batch is 1, expected at least 2: a picture is told from the others of "
                          "its batch");
    if (c->d % 2)
        return heed__fail(err, HEED_ARGUMENT, "--d is %lld, expected an even number",
                          (long long)c->d);
    return heed__captioned_open(&t->base, &set, &t->recipe, err);
}

static heed_trainer *train(const char *folder, const heed_match_recipe *recipe, bool resume,
                           const heed_train_hooks *hooks, const heed_allocator *allocator,
                           heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    struct matching *t = heed__allocate_zeroed(&a, 1, sizeof *t);
    heed_error own = {0};
    if (!t) {
        heed__fail(err, HEED_MEMORY, "out of memory for a training");
        return NULL;
    }
    if (prepare(t, folder, resume, recipe, hooks, &a, &own)) {
        heed__fail(err, own.status, "%s", own.text);
        close_task(t);
        return NULL;
    }
    const heed_task task = {.self = t,
                            .loop = &t->recipe.train.loop,
                            .options = &set,
                            .values = &t->recipe,
                            .values_size = sizeof t->recipe,
                            .unit = "nats a choice",
                            .items = "pictures",
                            .width = t->recipe.model.d,
                            .best = "recall",
                            .open = open_task,
                            .params = heed__captioned_params,
                            .describe = describe,
                            .data = heed__captioned_data,
                            .next = next,
                            .loss = loss,
                            .tell = heed__captioned_tell,
                            .seek = heed__captioned_seek,
                            .validate = validate,
                            .close = close_task};
    return heed_trainer_open(folder, &task, resume, hooks, allocator, err);
}

heed_trainer *heed_match_trainer_new(const char *folder, const heed_match_recipe *recipe,
                                     const heed_train_hooks *hooks, const heed_allocator *allocator,
                                     heed_error *err)
{
    if (!folder || !recipe)
        return heed__missing(err, folder ? "recipe" : "folder"), NULL;
    return train(folder, recipe, false, hooks, allocator, err);
}

heed_trainer *heed_match_trainer_resume(const char *folder, const heed_match_recipe *recipe,
                                        const heed_train_hooks *hooks,
                                        const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    return train(folder, recipe, true, hooks, allocator, err);
}

heed_caption_report heed_match_trainer_report(const heed_trainer *trainer)
{
    if (!trainer || trainer->task.loss != loss)
        return (heed_caption_report){0};
    const struct matching *t = trainer->task.self;
    return (heed_caption_report){.pictures = t->base.train.count,
                                 .valid_pictures = t->base.valid.count,
                                 .captions = t->base.train.captions,
                                 .vocabulary = t->recipe.model.vocabulary};
}
