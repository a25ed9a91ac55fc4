/* caption_task.c: how a captioner is trained: pictures with all their captions, in batches that a
 * thread makes; words between blanks, in small letters; the loss of a word on pictures held out. */
#include "see/caption_task.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
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

/* Pictures begin .. begin + count of a set, and their captions as numbers. */
struct told {
    heed_pictures *set;
    bool owned;
    int64_t begin, count, captions;
    heed_tokens *tokens; /* (captions) */
    int64_t *first;      /* (count + 1) of each picture */
};

struct captioning {
    heed_allocator allocator;
    heed_arena *arena, *update; /* update: of the batches at hand */
    heed_train_hooks hooks;
    heed_caption_recipe recipe;
    struct told train, valid;
    heed_vocab *vocab;
    heed_params *params;
    heed_caption_net net;
    heed_picture_batches *train_batches, *valid_batches;
    heed_caption_batch *batch; /* (accumulate) */
};

/* ---- data ---- */

static heed_pictures *open_set(const struct captioning *t, const char *captions, const char *images,
                               heed_error *err)
{
    const heed_caption_config *c = &t->recipe.model;
    return heed_pictures_captions(
        captions, images,
        &(heed_pictures_options){.height = c->side, .width = c->side, .channels = c->channels},
        &t->allocator, err);
}

/* A twentieth, or --hold-out, if there is no set of its own. */
static heed_status open_pictures(struct captioning *t, heed_error *err)
{
    const heed_caption_train_options *o = &t->recipe.train;
    if (!(t->train.set = open_set(t, o->captions, o->images, err)))
        return err->status;
    t->train.owned = true;
    t->train.count = heed_pictures_describe(t->train.set).count;
    if (o->valid_captions) {
        t->valid.set =
            open_set(t, o->valid_captions, o->valid_images ? o->valid_images : o->images, err);
        if (!t->valid.set)
            return err->status;
        t->valid.owned = true;
        t->valid.count = heed_pictures_describe(t->valid.set).count;
        return HEED_OK;
    }
    const int64_t held = o->hold_out ? o->hold_out : (t->train.count + 19) / 20;
    if (held >= t->train.count)
        return heed__fail(err, HEED_ARGUMENT,
                          "of %lld pictures, %lld cannot be held out to validate with",
                          (long long)t->train.count, (long long)held);
    t->train.count -= held;
    t->valid = (struct told){.set = t->train.set, .begin = t->train.count, .count = held};
    return HEED_OK;
}

/* ---- words ---- */

struct caption_lines {
    struct captioning *t;
    int64_t picture, caption;
    heed_arena *line; /* of the one returned last */
};

static heed_status next_line(void *context, const char **text, size_t *length, heed_error *err)
{
    struct caption_lines *l = context;
    const struct told *d = &l->t->train;
    while (l->picture < d->count &&
           l->caption == heed_pictures_captions_of(d->set, d->begin + l->picture)) {
        l->picture++;
        l->caption = 0;
    }
    *text = NULL;
    if (l->picture == d->count)
        return HEED_OK;
    heed_arena_reset(l->line);
    *text = heed__small_letters(heed_pictures_caption(d->set, d->begin + l->picture, l->caption++),
                                l->line);
    if (!*text)
        return heed__fail(err, HEED_MEMORY, "out of memory for a caption");
    *length = strlen(*text);
    return HEED_OK;
}

static heed_status learn_words(struct captioning *t, const char *path, heed_error *err)
{
    struct caption_lines lines = {.t = t, .line = heed_arena_new(&t->allocator, err)};
    const heed_line_source source = {next_line, &lines};
    const heed_vocab_options o = {.kind = HEED_WHITESPACE,
                                  .size = t->recipe.train.vocab_size,
                                  .min_count = t->recipe.train.vocab_min_count};
    const heed_status status =
        lines.line ? heed_vocab_train(&o, &source, path, &t->hooks.log, err) : err->status;
    heed_arena_free(lines.line);
    return status;
}

static heed_status number_captions(struct captioning *t, struct told *d, heed_error *err)
{
    int64_t all = 0;
    d->first = heed_arena_allocate(t->arena, (size_t)(d->count + 1) * sizeof *d->first);
    for (int64_t i = 0; d->first && i <= d->count; i++) {
        d->first[i] = all;
        all += i < d->count ? heed_pictures_captions_of(d->set, d->begin + i) : 0;
    }
    d->tokens = heed_arena_allocate(t->arena, (size_t)all * sizeof *d->tokens);
    d->captions = all;
    if (!d->first || !d->tokens)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld captions", (long long)all);
    for (int64_t i = 0, k = 0; i < d->count; i++)
        for (int64_t n = 0; k < d->first[i + 1]; n++, k++)
            if (heed__caption_encode(t->vocab, heed_pictures_caption(d->set, d->begin + i, n),
                                     t->arena, &d->tokens[k], err))
                return err->status;
    return HEED_OK;
}

/* ---- batches ---- */

static heed_picture_batches *stream(const struct captioning *t, const struct told *d, bool train,
                                    heed_error *err)
{
    return heed_picture_batches_new(
        d->set,
        &(heed_picture_batches_options){.batch = t->recipe.train.batch,
                                        .begin = d->begin,
                                        .count = d->count,
                                        .in_order = !train,
                                        .seed = (uint64_t)t->recipe.train.loop.seed,
                                        .mean = 0.5,
                                        .deviation = 0.5,
                                        .augment.mirror = train && t->recipe.train.mirror},
        &t->allocator, err);
}

/* All captions of the pictures of a batch, packed; in the arena. */
static heed_status pack(const struct captioning *t, const struct told *d,
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
    uint8_t *expect = heed_arena_allocate(t->update, (size_t)b->rows->count);
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
    const heed_caption_config *c = &t->recipe.model;
    heed_arena_reset(t->update);
    for (int i = 0; i < micros; i++) {
        heed_picture_batch p;
        if (heed_picture_batches_next(t->train_batches, &p, err))
            return err->status;
        const size_t bytes =
            (size_t)(p.count * c->side * c->side * c->channels) * sizeof *p.features;
        heed_real *kept = heed_arena_allocate(t->update, bytes);
        if (!kept)
            return heed__fail(err, HEED_MEMORY, "out of memory for a batch");
        p.features = memcpy(kept, p.features, bytes);
        if (pack(t, &t->train, &p, t->update, &t->batch[i], err) ||
            draw_expected(t, update, i, &t->batch[i], err))
            return err->status;
        const double words = (double)t->batch[i].rows->rows;
        portion[i] = (heed_portion){.terms = words,
                                    .items = words,
                                    .share = (double)p.count / (double)t->train.count,
                                    .epoch = p.epoch};
    }
    return HEED_OK;
}

static heed_position tell(void *self)
{
    const heed_picture_position p =
        heed_picture_batches_tell(((struct captioning *)self)->train_batches);
    return (heed_position){.epoch = p.epoch, .at = {p.batch}};
}

static heed_status seek(void *self, heed_position p, heed_error *err)
{
    return heed_picture_batches_seek(((struct captioning *)self)->train_batches,
                                     (heed_picture_position){p.epoch, p.at[0]}, err);
}

/* ---- the task ---- */

static heed_status open_task(void *self, const char *folder, bool new_folder, heed_error *err)
{
    struct captioning *t = self;
    heed__pathname path;
    if (heed__pathname_format(path, err, "%s/" HEED__CAPTION_WORDS, folder) ||
        (new_folder && learn_words(t, path, err)) ||
        !(t->vocab = heed_vocab_open(path, NULL, &t->allocator, err)) ||
        number_captions(t, &t->train, err) || number_captions(t, &t->valid, err) ||
        !(t->params = heed_params_new(&t->allocator, err)))
        return err->status;
    t->recipe.model.vocabulary = heed_vocab_size(t->vocab);
    heed_caption_build(&t->net, heed_params_scope(t->params), &t->recipe.model);
    if (heed_params_finish(t->params, (uint64_t)t->recipe.train.loop.seed, err) ||
        !(t->train_batches = stream(t, &t->train, true, err)) ||
        !(t->valid_batches = stream(t, &t->valid, false, err)))
        return err->status;
    t->batch =
        heed_arena_allocate(t->arena, (size_t)t->recipe.train.loop.accumulate * sizeof *t->batch);
    return t->batch ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for batches");
}

static heed_params *params_of(void *self, int set_number)
{
    (void)set_number;
    return ((struct captioning *)self)->params;
}

static heed_status describe(void *self, const char *folder, heed_error *err)
{
    struct captioning *t = self;
    return heed__caption_config_write(folder, &t->recipe.model, t->arena, err);
}

static int data(void *self, heed_fingerprint *out)
{
    const struct captioning *t = self;
    const heed_pictures_report r = heed_pictures_describe(t->train.set),
                               v = heed_pictures_describe(t->valid.set);
    out[0] = (heed_fingerprint){"training pictures", t->train.count};
    out[1] = (heed_fingerprint){"checksum of the training captions", r.checksum};
    out[2] = (heed_fingerprint){"validation pictures", t->valid.count};
    out[3] = (heed_fingerprint){"checksum of the validation captions", v.checksum};
    return 4;
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
    heed_arena_reset(t->update);
    if (heed_picture_batches_seek(t->valid_batches, (heed_picture_position){0, 0}, err))
        return err->status;
    for (int64_t done = 0; done < t->valid.count;) {
        heed_picture_batch p;
        heed_caption_batch b;
        double nll = 0;
        heed_tape_reset(tape);
        if (heed_picture_batches_next(t->valid_batches, &p, err) ||
            pack(t, &t->valid, &p, heed_tape_arena(tape), &b, err))
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
    const heed_allocator a = t->allocator;
    heed_picture_batches_free(t->train_batches);
    heed_picture_batches_free(t->valid_batches);
    heed_params_free(t->params);
    heed_vocab_free(t->vocab);
    if (t->valid.owned)
        heed_pictures_free(t->valid.set);
    if (t->train.owned)
        heed_pictures_free(t->train.set);
    heed_arena_free(t->update);
    heed_arena_free(t->arena);
    heed__release(&a, t, 1, sizeof *t);
}

/* ---- trainers ---- */

static heed_status check(const heed_caption_recipe *r, heed_error *err)
{
    const heed_caption_train_options *o = &r->train;
    if (!o->captions || !o->images)
        return heed__fail(
            err, HEED_ARGUMENT, "missing option '--%s': %s", o->captions ? "images" : "captions",
            o->captions ? "the folder or .tar.gz of the pictures" : "lines FILE TAB CAPTION");
    if (o->valid_images && !o->valid_captions)
        return heed__fail(err, HEED_ARGUMENT, "--valid-images needs --valid-captions");
    if (o->hold_out && o->valid_captions)
        return heed__fail(err, HEED_ARGUMENT,
                          "--hold-out is for training without --valid-captions");
    if (r->model.channels == 2)
        return heed__fail(err, HEED_ARGUMENT, "--channels is 2, expected 1 or 3");
    if (r->model.side >> r->model.stages < 2)
        return heed__fail(err, HEED_ARGUMENT,
                          "--stages %lld leaves nothing of %lld pixels to look at",
                          (long long)r->model.stages, (long long)r->model.side);
    const heed_status status = heed__options_check_names(&set, r, err);
    return status ? status : heed__loop_check(&o->loop, err);
}

static heed_status prepare(struct captioning *t, const char *folder, bool resume,
                           const heed_caption_recipe *recipe, heed_error *err)
{
    static const char *const files[] = {"captions", "images", "valid-captions", "valid-images",
                                        NULL};
    const char *words[2];
    heed_option_result result;
    if (!(t->arena = heed_arena_new(&t->allocator, err)) ||
        !(t->update = heed_arena_new(&t->allocator, err)) ||
        (resume && (heed__stored_options(folder, t->arena, words, err) ||
                    heed_option_parse(&set, 2, words, &t->recipe, t->arena, &result, err))))
        return err->status;
    if (recipe)
        t->recipe = *recipe;
    heed__loop_resolve(&t->recipe.train.loop);
    if (check(&t->recipe, err) || heed__options_absolute(&set, &t->recipe, files, t->arena, err))
        return err->status;
    return open_pictures(t, err);
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
    t->allocator = a;
    t->hooks = hooks ? *hooks : (heed_train_hooks){.progress = NULL};
    if (prepare(t, folder, resume, recipe, &own)) {
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
                            .params = params_of,
                            .describe = describe,
                            .data = data,
                            .next = next,
                            .loss = loss,
                            .tell = tell,
                            .seek = seek,
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
    return (heed_caption_report){.pictures = t->train.count,
                                 .valid_pictures = t->valid.count,
                                 .captions = t->train.captions,
                                 .vocabulary = t->recipe.model.vocabulary};
}
