/* vit_task.c: how a Vision Transformer is trained: batches that a thread makes, pictures moved
 * anew in each epoch; the loss and the share of right answers on pictures held out. */
#include "see/vit_task.h"

#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/path.h"
#include "task/run_options.h"
#include "train/trainer.h"

#include <math.h>
#include <string.h>

static const char *const defaults[] = {HEED_VIT_DEFAULTS, NULL};
static const heed_option fields[] = {
    HEED_VIT_OPTIONS(heed_vit_recipe, train),
    HEED_VIT_MODEL_OPTIONS(heed_vit_recipe, model),
};
const heed_option_set heed__vit_set = {
    .command = "heed train --arch vit",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .defaults = defaults,
};

/* ---- what goes together ---- */

static heed_status check_pictures(const heed_vit_train_options *o, heed_error *err)
{
    const heed_option_list *idx[] = {&o->idx, &o->valid_idx};
    const char *const images[] = {o->images, o->valid_images}, *const before[] = {"", "valid-"};
    if (!o->images && !o->idx.count)
        return heed__fail(err, HEED_ARGUMENT,
                          "missing option '--images': a folder with a folder for each class, or "
                          "'--idx' and two files, IMAGES LABELS");
    for (int i = 0; i < 2; i++) {
        if (images[i] && idx[i]->count)
            return heed__fail(err, HEED_ARGUMENT,
                              "options '--%simages' and '--%sidx' exclude each other", before[i],
                              before[i]);
        if (idx[i]->count && idx[i]->count != 2)
            return heed__fail(err, HEED_ARGUMENT,
                              "option '--%sidx' has %d files, expected two: IMAGES LABELS",
                              before[i], idx[i]->count);
    }
    return HEED_OK;
}

heed_status heed__vit_check(const heed_vit_recipe *r, heed_error *err)
{
    const heed_vit_config *m = &r->model;
    const heed_vit_train_options *o = &r->train;
    heed_status status = check_pictures(o, err);
    if (status)
        return status;
    if ((o->valid_images || o->valid_idx.count) && heed__option_typed(&r->origins, "hold-out"))
        return heed__fail(err, HEED_ARGUMENT,
                          "--hold-out is for training without --valid-images or --valid-idx");
    if (m->channels == 2)
        return heed__fail(err, HEED_ARGUMENT, "--channels is 2, expected 1 or 3");
    if (m->side && m->patch && m->side % m->patch)
        return heed__fail(err, HEED_ARGUMENT,
                          "--patch is %lld, expected a divisor of the pictures' %lld pixels",
                          (long long)m->patch, (long long)m->side);
    if (m->d % m->heads)
        return heed__fail(err, HEED_ARGUMENT, "--heads is %lld, expected a divisor of --d, %lld",
                          (long long)m->heads, (long long)m->d);
    status = heed__options_check_names(&heed__vit_set, r, err);
    if (!status)
        status = heed__check_heard(&r->origins, &(heed_model_config){0}, &o->loop, err);
    return status ? status : heed__loop_check(&o->loop, err);
}

/* ---- batches ---- */

static heed_picture_batches *stream(const heed__vit_training *t, const heed__vit_part *part,
                                    bool train, heed_error *err)
{
    const heed_vit_train_options *o = &t->recipe.train;
    heed_picture_batches_options b = {.batch = o->batch,
                                      .only = part->only,
                                      .count = part->count,
                                      .in_order = !train,
                                      .seed = (uint64_t)o->loop.seed,
                                      .mean = 0.5,
                                      .deviation = 0.5};
    if (train)
        b.augment = (heed_picture_augment){o->turn, o->zoom, o->shift, o->mirror};
    return heed_picture_batches_new(part->set, &b, &t->allocator, err);
}

/* The batch outlives the stream's next one; its labels are the model's. */
static heed_status take(const heed__vit_training *t, const heed__vit_part *part,
                        heed_picture_batches *from, heed_arena *arena, heed__vit_batch *b,
                        int64_t *epoch, heed_error *err)
{
    const heed_vit_config *c = &t->recipe.model;
    heed_picture_batch p;
    if (heed_picture_batches_next(from, &p, err))
        return err->status;
    const size_t bytes = (size_t)(p.count * c->side * c->side * c->channels) * sizeof *p.features;
    *b =
        (heed__vit_batch){heed_arena_allocate(arena, bytes),
                          heed_arena_allocate(arena, (size_t)p.count * sizeof *b->labels), p.count};
    if (!b->pixels || !b->labels)
        return heed__fail(err, HEED_MEMORY, "out of memory for a batch");
    memcpy(b->pixels, p.features, bytes);
    for (int64_t i = 0; i < p.count; i++)
        b->labels[i] = part->label[p.labels[i]];
    *epoch = p.epoch;
    return HEED_OK;
}

static heed_status next(void *self, int64_t update, int micros, heed_portion *portion,
                        heed_error *err)
{
    heed__vit_training *t = self;
    (void)update;
    heed_arena_reset(t->update);
    for (int i = 0; i < micros; i++) {
        int64_t epoch = 0;
        if (take(t, &t->train, t->train_batches, t->update, &t->batch[i], &epoch, err))
            return err->status;
        const double n = (double)t->batch[i].count;
        portion[i] = (heed_portion){
            .terms = n, .items = n, .share = n / (double)t->train.count, .epoch = epoch};
    }
    return HEED_OK;
}

static heed_position tell(void *self)
{
    const heed_picture_position p =
        heed_picture_batches_tell(((heed__vit_training *)self)->train_batches);
    return (heed_position){.epoch = p.epoch, .at = {p.batch}};
}

static heed_status seek(void *self, heed_position p, heed_error *err)
{
    return heed_picture_batches_seek(((heed__vit_training *)self)->train_batches,
                                     (heed_picture_position){p.epoch, p.at[0]}, err);
}

/* ---- the loss ---- */

/* The sum of - log p of the right classes, and how often they are the likeliest. */
static double surprise(const heed_tensor *logits, const int32_t *label, int64_t *right)
{
    const int64_t n = heed_tensor_cols(logits);
    double sum = 0;
    for (int64_t i = 0; i < heed_tensor_rows(logits); i++) {
        const heed_real *x = heed_tensor_data(logits) + i * n;
        int64_t best = 0;
        double z = 0;
        for (int64_t k = 1; k < n; k++)
            best = x[k] > x[best] ? k : best;
        for (int64_t k = 0; k < n; k++)
            z += exp((double)x[k] - (double)x[best]);
        sum += (double)x[best] + log(z) - (double)x[label[i]];
        *right += best == label[i];
    }
    return sum;
}

static heed_tensor *logits_of(heed_tape *tape, const heed__vit_training *t,
                              const heed__vit_batch *b)
{
    const heed_vit_config *c = &t->recipe.model;
    heed_tensor *pixels =
        heed_input(tape, HEED_SHAPE(b->count * c->side * c->side, c->channels), b->pixels);
    return heed_vit_logits(tape, &t->net, pixels, NULL);
}

static heed_tensor *loss(void *self, heed_tape *tape, const heed_pass *pass, double *sum)
{
    heed__vit_training *t = self;
    const heed__vit_batch *b = &t->batch[pass->micro];
    heed_tensor *logits = logits_of(tape, t, b);
    int64_t right = 0;
    if (logits)
        *sum = surprise(logits, b->labels, &right);
    return heed_scale(tape,
                      heed_cross_entropy(tape, logits, b->labels, t->recipe.train.label_smoothing),
                      pass->weight, 0);
}

static heed_status validate(void *self, heed_tape *tape, heed_measure *out, int *count,
                            heed_error *err)
{
    heed__vit_training *t = self;
    const double n = (double)t->valid.count;
    double nats = 0;
    int64_t right = 0, epoch = 0;
    if (heed_picture_batches_seek(t->valid_batches, (heed_picture_position){0, 0}, err))
        return err->status;
    for (int64_t done = 0; done < t->valid.count;) {
        heed__vit_batch b = {0};
        heed_tape_reset(tape);
        if (take(t, &t->valid, t->valid_batches, heed_tape_arena(tape), &b, &epoch, err))
            return err->status;
        const heed_tensor *logits = logits_of(tape, t, &b);
        if (!logits)
            return heed__fail(err, heed_tape_error(tape)->status, "%s",
                              heed_tape_error(tape)->text);
        nats += surprise(logits, b.labels, &right);
        done += b.count;
    }
    out[0] = (heed_measure){"loss", nats / n, false};
    out[1] = (heed_measure){"accuracy", 100 * (double)right / n, true};
    *count = 2;
    return HEED_OK;
}

/* ---- the task ---- */

static heed_status open_task(void *self, const char *folder, bool new_folder, heed_error *err)
{
    heed__vit_training *t = self;
    (void)folder, (void)new_folder;
    if (!(t->params = heed_params_new(&t->allocator, err)))
        return err->status;
    heed_vit_build(&t->net, heed_params_scope(t->params), &t->recipe.model, t->arena);
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
    return ((heed__vit_training *)self)->params;
}

static heed_status describe(void *self, const char *folder, heed_error *err)
{
    heed__vit_training *t = self;
    return heed__vit_write(folder, &t->recipe.model, t->labels, t->arena, err);
}

static int data(void *self, heed_fingerprint *out)
{
    const heed__vit_training *t = self;
    const heed_pictures_report r = heed_pictures_describe(t->train.set),
                               v = heed_pictures_describe(t->valid.set);
    out[0] = (heed_fingerprint){"training pictures", t->train.count};
    out[1] = (heed_fingerprint){"checksum of the training pictures", r.checksum};
    out[2] = (heed_fingerprint){"validation pictures", t->valid.count};
    out[3] = (heed_fingerprint){"checksum of the validation pictures", v.checksum};
    return 4;
}

/* positions.svg: what the model takes for neighbours. */
static heed_status finish(void *self, heed_tape *tape, const char *folder, heed_error *err)
{
    heed__vit_training *t = self;
    heed__pathname path;
    const char *svg;
    (void)tape;
    if (!t->net.positions)
        return HEED_OK;
    if (heed__pathname_format(path, err, "%s/positions.svg", folder) ||
        heed_vit_positions_svg(&t->net, t->arena, &svg, err))
        return err->status;
    return heed_text_save(path, svg, err);
}

static void close_task(void *self)
{
    heed__vit_training *t = self;
    const heed_allocator a = t->allocator;
    heed_picture_batches_free(t->train_batches);
    heed_picture_batches_free(t->valid_batches);
    heed_params_free(t->params);
    if (t->valid.owned)
        heed_pictures_free(t->valid.set);
    if (t->train.owned)
        heed_pictures_free(t->train.set);
    heed_arena_free(t->update);
    heed_arena_free(t->arena);
    heed__release(&a, t, 1, sizeof *t);
}

/* ---- trainers ---- */

/* What does not go together shows before files are read. */
static heed_status prepare_new(heed__vit_training *t, const char *folder, heed_error *err)
{
    static const char *const files[] = {"images", "idx", "valid-images", "valid-idx", NULL};
    heed_vit_recipe draft = t->recipe;
    heed__loop_resolve(&t->recipe.train.loop);
    heed__loop_resolve(&draft.train.loop);
    if (heed_option_origin_of(&draft.origins, "warmup") == HEED_OPTION_BY_DEFAULT)
        draft.train.loop.warmup = 0;
    if (!draft.train.loop.max_updates)
        draft.train.loop.max_updates = draft.train.loop.warmup + 1000;
    if (heed__vit_check(&draft, err) || (folder && heed__folder_is_free(folder, err)) ||
        heed__options_absolute(&heed__vit_set, &t->recipe, files, t->arena, err) ||
        heed__vit_open_pictures(t, err) || heed__vit_choose(t, err))
        return err->status;
    return heed__vit_check(&t->recipe, err);
}

static heed_status prepare_resumed(heed__vit_training *t, const char *folder,
                                   const heed_vit_recipe *recipe, heed_error *err)
{
    const char *words[2];
    heed_option_result result;
    if (heed__stored_options(folder, t->arena, words, err) ||
        heed_option_parse(&heed__vit_set, 2, words, &t->recipe, t->arena, &result, err))
        return err->status;
    if (recipe)
        t->recipe = *recipe;
    heed__loop_resolve(&t->recipe.train.loop);
    return heed__vit_check(&t->recipe, err) ? err->status : heed__vit_open_pictures(t, err);
}

static heed__vit_training *training_of(const heed_vit_recipe *recipe, const char *folder,
                                       bool resume, const heed_train_hooks *hooks,
                                       const heed_allocator *allocator, heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed__vit_training *t = heed__allocate_zeroed(&a, 1, sizeof *t);
    if (!t) {
        heed__fail(err, HEED_MEMORY, "out of memory for a training");
        return NULL;
    }
    t->allocator = a;
    t->hooks = hooks ? *hooks : (heed_train_hooks){.progress = NULL};
    if (!resume)
        t->recipe = *recipe;
    if ((t->arena = heed_arena_new(&a, err)) && (t->update = heed_arena_new(&a, err)) &&
        !(resume ? prepare_resumed(t, folder, recipe, err) : prepare_new(t, folder, err)))
        return t;
    close_task(t);
    return NULL;
}

static heed_trainer *train(const char *folder, const heed_vit_recipe *recipe, bool resume,
                           const heed_train_hooks *hooks, const heed_allocator *allocator,
                           heed_error *err)
{
    heed_error own = {0};
    heed__vit_training *t = training_of(recipe, folder, resume, hooks, allocator, &own);
    if (!t) {
        heed__fail(err, own.status, "%s", own.text);
        return NULL;
    }
    const heed_task task = {.self = t,
                            .loop = &t->recipe.train.loop,
                            .options = &heed__vit_set,
                            .values = &t->recipe,
                            .values_size = sizeof t->recipe,
                            .unit = "nats a picture",
                            .items = "pictures",
                            .width = t->recipe.model.d,
                            .best = "accuracy",
                            .open = open_task,
                            .params = params_of,
                            .describe = describe,
                            .data = data,
                            .next = next,
                            .loss = loss,
                            .tell = tell,
                            .seek = seek,
                            .validate = validate,
                            .finish = finish,
                            .close = close_task};
    return heed_trainer_open(folder, &task, resume, hooks, allocator, err);
}

heed_trainer *heed_vit_trainer_new(const char *folder, const heed_vit_recipe *recipe,
                                   const heed_train_hooks *hooks, const heed_allocator *allocator,
                                   heed_error *err)
{
    if (!folder || !recipe)
        return heed__missing(err, folder ? "recipe" : "folder"), NULL;
    return train(folder, recipe, false, hooks, allocator, err);
}

heed_trainer *heed_vit_trainer_resume(const char *folder, const heed_vit_recipe *recipe,
                                      const heed_train_hooks *hooks,
                                      const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    return train(folder, recipe, true, hooks, allocator, err);
}

heed_status heed_vit_recipe_choose(heed_vit_recipe *recipe, const heed_log_sink *log,
                                   const heed_allocator *allocator, heed_error *err)
{
    if (!recipe)
        return heed__missing(err, "recipe");
    heed_error own = {0};
    const heed_train_hooks hooks = {.log = log ? *log : (heed_log_sink){NULL, NULL}};
    heed__vit_training *t = training_of(recipe, NULL, false, &hooks, allocator, &own);
    if (!t)
        return heed__fail(err, own.status, "%s", own.text);
    /* The files' full names are the training's. */
    const heed_vit_train_options *o = &recipe->train;
    t->recipe.train.images = o->images;
    t->recipe.train.valid_images = o->valid_images;
    t->recipe.train.idx = o->idx;
    t->recipe.train.valid_idx = o->valid_idx;
    *recipe = t->recipe;
    close_task(t);
    return HEED_OK;
}

heed_vit_report heed_vit_trainer_report(const heed_trainer *trainer)
{
    if (!trainer || trainer->task.loss != loss)
        return (heed_vit_report){0};
    const heed__vit_training *t = trainer->task.self;
    return (heed_vit_report){.pictures = t->train.count,
                             .valid_pictures = t->valid.count,
                             .classes = t->recipe.model.classes,
                             .side = t->recipe.model.side,
                             .channels = t->recipe.model.channels};
}
