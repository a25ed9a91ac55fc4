/* caption_task.c: how a captioner is trained: pictures with all their captions, in batches that a
 * thread makes; the loss of a word on pictures held out. */
#include "see/caption_task.h"

#include "base/error.h"
#include "base/memory.h"
#include "task/run_options.h"
#include "train/trainer.h"

#include <string.h>

static const char *const defaults[] = {HEED_CAPTION_DEFAULTS, NULL};
static const heed_option fields[] = {
    HEED_CAPTION_OPTIONS(heed_caption_recipe, train),
    HEED_CAPTION_MODEL_OPTIONS(heed_caption_recipe, model),
};
static const heed_option_set set = {
    .command = "heed train --arch caption",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .defaults = defaults,
};

struct captioning {
    heed__captioned base;
    heed_caption_recipe recipe;
    heed_caption_net net;
    heed_caption_batch *batch; /* (accumulate) */
};

/* ---- batches ---- */

/* All captions of the pictures of a batch, packed; in the arena. */
static heed_status pack(const heed__captioned *t, const heed__captions *d,
                        const heed_picture_batch *pictures, heed_arena *arena,
                        heed_caption_batch *b, heed_error *err)
{
    const heed_special_ids ids = heed_vocab_special(t->vocab);
    int64_t captions = 0, rows = 0, n = 0, at = 0;
    for (int64_t i = 0; i < pictures->count; i++) {
        const int64_t p = pictures->example[i] - d->begin;
        for (int64_t k = d->first[p]; k < d->first[p + 1]; k++, captions++)
            rows += d->tokens[k].count + 1;
    }
    int64_t *lengths = heed_arena_allocate(arena, (size_t)captions * sizeof *lengths);
    int32_t *of = heed_arena_allocate(arena, (size_t)captions * sizeof *of),
            *read = heed_arena_allocate(arena, 2 * (size_t)rows * sizeof *read),
            *wanted = read + rows;
    if (!lengths || !of || !read)
        return heed__fail(err, HEED_MEMORY, "out of memory for a batch");
    for (int64_t i = 0; i < pictures->count; i++) {
        const int64_t p = pictures->example[i] - d->begin;
        for (int64_t k = d->first[p]; k < d->first[p + 1]; k++, n++) {
            const heed_tokens *w = &d->tokens[k];
            read[at] = ids.bos;
            memcpy(read + at + 1, w->id, (size_t)w->count * sizeof *read);
            memcpy(wanted + at, w->id, (size_t)w->count * sizeof *wanted);
            wanted[at + w->count] = ids.eos;
            lengths[n] = w->count + 1;
            of[n] = (int32_t)i;
            at += lengths[n];
        }
    }
    *b = (heed_caption_batch){.pixels = pictures->features,
                              .pictures = pictures->count,
                              .rows = heed_segments_new(arena, captions, lengths),
                              .picture = of,
                              .read = read,
                              .wanted = wanted};
    return b->rows ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for a batch");
}

/* Which captions are trained with the mean: drawn with the batch. */
static heed_status draw_expected(const struct captioning *t, int64_t update, int micro,
                                 heed_caption_batch *b, heed_error *err)
{
    const heed_caption_config *c = &t->recipe.model;
    if (c->look != HEED_LOOK_HARD || c->expectation <= 0)
        return HEED_OK;
    const heed_rng rng =
        heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)t->recipe.train.loop.seed,
                                        .step = (uint64_t)update,
                                        .micro_batch = (uint32_t)micro,
                                        .node = HEED_TASK_NODE});
    uint8_t *expect = heed_arena_allocate(t->base.update, (size_t)b->rows->count);
    if (!expect)
        return heed__fail(err, HEED_MEMORY, "out of memory for a batch");
    for (int64_t i = 0; i < b->rows->count; i++)
        expect[i] = heed_rng_uniform(&rng, (uint64_t)i) < c->expectation;
    b->expect = expect;
    return HEED_OK;
}

static heed_status next(void *self, int64_t update, int micros, heed_portion *portion,
                        heed_error *err)
{
    struct captioning *t = self;
    heed_arena_reset(t->base.update);
    for (int i = 0; i < micros; i++) {
        heed_picture_batch p;
        if (heed__captioned_take(&t->base, &p, err) ||
            pack(&t->base, &t->base.train, &p, t->base.update, &t->batch[i], err) ||
            draw_expected(t, update, i, &t->batch[i], err))
            return err->status;
        const double words = (double)t->batch[i].rows->rows;
        portion[i] = (heed_portion){.terms = words,
                                    .items = words,
                                    .share = (double)p.count / (double)t->base.train.count,
                                    .epoch = p.epoch};
    }
    return HEED_OK;
}

/* ---- the task ---- */

static heed_status open_task(void *self, const char *folder, bool new_folder, heed_error *err)
{
    struct captioning *t = self;
    if (heed__captioned_words(&t->base, folder, new_folder, err))
        return err->status;
    t->recipe.model.vocabulary = heed_vocab_size(t->base.vocab);
    heed_caption_build(&t->net, heed_params_scope(t->base.params), &t->recipe.model);
    if (heed__captioned_start(&t->base, err))
        return err->status;
    t->batch = heed_arena_allocate(t->base.arena,
                                   (size_t)t->recipe.train.loop.accumulate * sizeof *t->batch);
    return t->batch ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for batches");
}

static heed_status describe(void *self, const char *folder, heed_error *err)
{
    struct captioning *t = self;
    return heed__caption_config_write(folder, &t->recipe.model, t->base.arena, err);
}

static heed_tensor *loss(void *self, heed_tape *tape, const heed_pass *pass, double *sum)
{
    struct captioning *t = self;
    return heed_caption_loss(tape, &t->net, &t->batch[pass->micro], pass->weight, sum, NULL);
}

static heed_status validate(void *self, heed_tape *tape, heed_measure *out, int *count,
                            heed_error *err)
{
    struct captioning *t = self;
    double nats = 0, words = 0;
    heed_arena_reset(t->base.update);
    if (heed_picture_batches_seek(t->base.valid_batches, (heed_picture_position){0, 0}, err))
        return err->status;
    for (int64_t done = 0; done < t->base.valid.count;) {
        heed_picture_batch p;
        heed_caption_batch b;
        double nll = 0;
        heed_tape_reset(tape);
        if (heed_picture_batches_next(t->base.valid_batches, &p, err) ||
            pack(&t->base, &t->base.valid, &p, heed_tape_arena(tape), &b, err))
            return err->status;
        if (!heed_caption_loss(tape, &t->net, &b, 1, &nll, NULL))
            return heed__fail(err, heed_tape_error(tape)->status, "%s",
                              heed_tape_error(tape)->text);
        nats += nll;
        words += (double)b.rows->rows;
        done += p.count;
    }
    out[0] = (heed_measure){"loss", nats / words, false};
    *count = 1;
    return HEED_OK;
}

static void close_task(void *self)
{
    struct captioning *t = self;
    const heed_allocator a = t->base.allocator;
    heed__captioned_end(&t->base);
    heed__release(&a, t, 1, sizeof *t);
}

/* ---- trainers ---- */

static heed_status prepare(struct captioning *t, const char *folder, bool resume,
                           const heed_caption_recipe *recipe, const heed_train_hooks *hooks,
                           const heed_allocator *a, heed_error *err)
{
    const heed_caption_config *c = &t->recipe.model;
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
    return heed__captioned_open(&t->base, &set, &t->recipe, err);
}

static heed_trainer *train(const char *folder, const heed_caption_recipe *recipe, bool resume,
                           const heed_train_hooks *hooks, const heed_allocator *allocator,
                           heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    struct captioning *t = heed__allocate_zeroed(&a, 1, sizeof *t);
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
                            .unit = "nats a word",
                            .items = "words",
                            .perplexity = true,
                            .width = t->recipe.model.d,
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

heed_trainer *heed_caption_trainer_new(const char *folder, const heed_caption_recipe *recipe,
                                       const heed_train_hooks *hooks,
                                       const heed_allocator *allocator, heed_error *err)
{
    if (!folder || !recipe)
        return heed__missing(err, folder ? "recipe" : "folder"), NULL;
    return train(folder, recipe, false, hooks, allocator, err);
}

heed_trainer *heed_caption_trainer_resume(const char *folder, const heed_caption_recipe *recipe,
                                          const heed_train_hooks *hooks,
                                          const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    return train(folder, recipe, true, hooks, allocator, err);
}

heed_caption_report heed_caption_trainer_report(const heed_trainer *trainer)
{
    if (!trainer || trainer->task.loss != loss)
        return (heed_caption_report){0};
    const struct captioning *t = trainer->task.self;
    return (heed_caption_report){.pictures = t->base.train.count,
                                 .valid_pictures = t->base.valid.count,
                                 .captions = t->base.train.captions,
                                 .vocabulary = t->recipe.model.vocabulary};
}
