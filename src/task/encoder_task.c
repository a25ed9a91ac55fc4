/* encoder_task.c: what encoders are trained to do, as a task of the training loop: to say what is
 * masked, to label texts or words, to bring the vectors of pairs together.
 *
 * The first three are the model's own loss over wanted rows.  Vectors of pairs (a_i, b_i), means
 * over the tokens scaled to length 1, learn
 *
 *     without scores  -log softmax_j(a_i.b_j / temperature) at j = i, and the same from b to a
 *     with scores     (a_i.b_i - score_i)^2, scores from 0 to 1
 *
 * where the other pairs of the batch are what a pair is told apart from (Henderson et al. 2017). */
#include "task/encoder_task.h"
#include "encoder/encoder.h"
#include "train/trainer.h"
#include "vocab/vocabulary.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define EXPLODED 100.0
#define UNIT_EPS 1e-9

void heed__encoding_say(const heed__encoding *t, heed_log_level level, const char *format, ...)
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

/* ---- losses ---- */

/* a (B,D) and b (B,D), of length 1. */
static void vectors(const heed_model *m, heed_tape *t, const heed_batch *batch, heed_tensor **a,
                    heed_tensor **b)
{
    const int64_t pairs = batch->examples;
    heed_tensor *h = heed_model_hidden(m, t, batch); /* (N,D) */
    h = heed_unit(t, heed_segment_mean(t, h, batch->source.rows), 1, UNIT_EPS);
    *a = heed_slice_rows(t, h, 0, pairs);
    *b = heed_slice_rows(t, h, pairs, 2 * pairs);
}

heed_tensor *heed__encoder_cosines(const heed_model *m, heed_tape *t, const heed_batch *batch,
                                   bool scored)
{
    heed_tensor *a, *b;
    vectors(m, t, batch, &a, &b);
    return scored ? heed_sum(t, heed_mul(t, a, b), HEED_COLS) : heed_matmul(t, a, b, HEED_NT);
}

static heed_tensor *contrast(const heed__encoding *e, heed_tape *t, const heed_batch *batch,
                             double weight)
{
    const double scale = 1 / e->recipe.train.temperature;
    const int64_t pairs = batch->examples;
    heed_tensor *a, *b;
    vectors(e->model, t, batch, &a, &b);
    int32_t *own = heed_arena_allocate(heed_tape_arena(t), (size_t)pairs * sizeof *own);
    if (!own)
        return heed_tape_fail(t, HEED_MEMORY, "no memory for %lld pairs", (long long)pairs);
    for (int64_t i = 0; i < pairs; i++)
        own[i] = (int32_t)i;
    heed_tensor *there = heed_scale(t, heed_matmul(t, a, b, HEED_NT), scale, 0);
    heed_tensor *back = heed_scale(t, heed_matmul(t, b, a, HEED_NT), scale, 0);
    heed_tensor *sum =
        heed_add(t, heed_cross_entropy(t, there, own, 0), heed_cross_entropy(t, back, own, 0));
    return heed_scale(t, sum, weight / 2, 0);
}

static heed_tensor *distance(const heed__encoding *e, heed_tape *t, const heed_batch *batch,
                             const double *score, double weight)
{
    heed_tensor *cosine = heed__encoder_cosines(e->model, t, batch, true); /* (B,1) */
    heed_real *wanted =
        heed_arena_allocate(heed_tape_arena(t), (size_t)batch->examples * sizeof *wanted);
    if (!wanted)
        return heed_tape_fail(t, HEED_MEMORY, "no memory for scores");
    for (int64_t i = 0; i < batch->examples; i++)
        wanted[i] = (heed_real)score[i];
    heed_tensor *off = heed_sub(t, cosine, heed_input(t, HEED_SHAPE(batch->examples, 1), wanted));
    return heed_scale(t, heed_sum(t, heed_square(t, off), HEED_ALL), weight, 0);
}

static heed_tensor *loss(void *self, heed_tape *tape, const heed_pass *pass, double *sum)
{
    heed__encoding *t = self;
    const heed_batch *batch = &t->micro[pass->micro];
    const double *score = t->score[pass->micro];
    if (t->recipe.train.task != HEED_ENCODER_EMBED)
        return heed_model_loss(t->model, tape, batch, pass->weight, sum);
    return score ? distance(t, tape, batch, score, pass->weight)
                 : contrast(t, tape, batch, pass->weight);
}

/* ---- the task ---- */

static heed_status allocate_batches(heed__encoding *t, heed_error *err)
{
    const size_t micros = (size_t)t->recipe.train.loop.accumulate;
    t->micro = heed__allocate_zeroed(&t->allocator, micros, sizeof *t->micro);
    t->score = heed__allocate_zeroed(&t->allocator, micros, sizeof *t->score);
    t->order = heed__allocate(&t->allocator, (size_t)t->train.count, sizeof *t->order);
    t->ordered = -1;
    t->passing = heed_arena_new(&t->allocator, err);
    if (!t->micro || !t->score || !t->order)
        return heed__fail(err, HEED_MEMORY, "out of memory for batches");
    return t->passing ? HEED_OK : HEED_MEMORY;
}

static heed_status open_encoding(void *self, const char *folder, bool new_folder, heed_error *err)
{
    heed__encoding *t = self;
    t->folder = folder;
    heed_status status = heed__encoder_open_vocabulary(t, new_folder, err);
    if (!status)
        status = heed__encoder_make_items(t, err);
    if (!status)
        status = allocate_batches(t, err);
    if (!status) {
        t->model = heed_model_new(&t->recipe.model, (uint64_t)t->recipe.train.loop.seed,
                                  &t->allocator, err);
        status = t->model ? HEED_OK : err->status;
    }
    if (!status && new_folder && t->recipe.train.from)
        status = heed__encoder_take_weights(t, err);
    t->folder = NULL;
    return status;
}

static heed_params *params_of(void *self, int set)
{
    (void)set;
    return heed_model_params(((heed__encoding *)self)->model);
}

static heed_status describe(void *self, const char *folder, heed_error *err)
{
    static const char *const words[] = {HEED_ENCODER_TASK_WORDS};
    heed__encoding *t = self;
    heed_text_config text = t->text;
    text.task = words[t->recipe.train.task];
    heed_status status = heed__encoder_absolute(&t->recipe, t->arena, err);
    if (!status)
        status = heed_model_describe(folder, &t->recipe.model, &text, err);
    if (!status && t->label_count)
        status = heed__labels_write(folder, t->labels, t->label_count, err);
    return status;
}

static int data(void *self, heed_fingerprint *out)
{
    const heed__encoding *t = self;
    out[0] = (heed_fingerprint){"training examples", t->train.count};
    out[1] = (heed_fingerprint){"training tokens", t->train.tokens};
    out[2] = (heed_fingerprint){"training checksum", t->train.checksum};
    out[3] = (heed_fingerprint){"validation examples", t->valid.count};
    out[4] = (heed_fingerprint){"validation tokens", t->valid.tokens};
    out[5] = (heed_fingerprint){"validation checksum", t->valid.checksum};
    return 6;
}

static void close_encoding(void *self)
{
    heed__encoding *t = self;
    const heed_allocator a = t->allocator;
    const size_t micros = (size_t)t->recipe.train.loop.accumulate;
    heed__release(&a, t->micro, micros, sizeof *t->micro);
    heed__release(&a, t->score, micros, sizeof *t->score);
    heed__release(&a, t->order, (size_t)t->train.count, sizeof *t->order);
    heed_model_free(t->model);
    heed_vocab_free(t->vocab);
    heed_examples_free(t->train.examples);
    heed_examples_free(t->valid.examples);
    heed_arena_free(t->passing);
    heed_arena_free(t->arena);
    heed__release(&a, t, 1, sizeof *t);
}

/* ---- from a recipe ---- */

/* What does not go together shows before files are read. */
static heed_status check_first(const heed__encoding *t, const char *folder, heed_error *err)
{
    heed_encoder_recipe draft = t->recipe;
    heed_loop_options *o = &draft.train.loop;
    heed__encoder_resolve(&draft);
    if (!o->max_updates)
        o->max_updates = o->warmup + 1000;
    heed_status status = heed__encoder_check(&draft, err);
    return status || !folder ? status : heed__folder_is_free(folder, err);
}

static heed_status prepare_new(heed__encoding *t, const char *folder, heed_error *err)
{
    heed_status status = t->recipe.train.from ? heed__encoder_start_from(t, err) : HEED_OK;
    if (!status)
        status = check_first(t, folder, err);
    if (!status)
        status = heed__encoder_open_examples(t, err);
    if (!status)
        status = heed__encoder_choose(t, err);
    if (status)
        return status;
    heed__encoder_resolve(&t->recipe);
    return heed__encoder_check(&t->recipe, err);
}

/* The model that it started from may be gone: what it brought is in the folder. */
static heed_status prepare_resumed(heed__encoding *t, const char *folder,
                                   const heed_encoder_recipe *recipe, heed_error *err)
{
    const char *words[2];
    heed_model_config model;
    if (heed__stored_options(folder, t->arena, words, err) ||
        heed_encoder_recipe_parse(&t->recipe, 2, words, t->arena, err) ||
        heed_model_read_config(folder, t->arena, &model, &t->text, err))
        return err->status;
    if (recipe)
        t->recipe = *recipe;
    heed__encoder_resolve(&t->recipe);
    if (t->recipe.train.from)
        t->recipe.model.source_vocabulary = model.source_vocabulary;
    heed_status status = heed__encoder_absolute(&t->recipe, t->arena, err);
    if (!status)
        status = heed__encoder_check(&t->recipe, err);
    return status ? status : heed__encoder_open_examples(t, err);
}

static heed__encoding *encoding_of(const heed_encoder_recipe *recipe, const char *folder,
                                   bool resume, const heed_train_hooks *hooks,
                                   const heed_allocator *allocator, heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed__encoding *t = heed__allocate_zeroed(&a, 1, sizeof *t);
    if (!t) {
        heed__fail(err, HEED_MEMORY, "out of memory for a training");
        return NULL;
    }
    t->allocator = a;
    t->hooks = hooks ? *hooks : (heed_train_hooks){.progress = NULL};
    t->arena = heed_arena_new(&a, err);
    if (t->arena && !resume)
        t->recipe = *recipe;
    if (t->arena &&
        !(resume ? prepare_resumed(t, folder, recipe, err) : prepare_new(t, folder, err)))
        return t;
    close_encoding(t);
    return NULL;
}

static heed_trainer *train(const char *folder, const heed_encoder_recipe *recipe, bool resume,
                           const heed_train_hooks *hooks, const heed_allocator *allocator,
                           heed_error *err)
{
    static const char *const units[] = {"nats a masked token", "nats a label", "nats a tag",
                                        "a pair"};
    heed_error own = {0};
    heed__encoding *t = encoding_of(recipe, folder, resume, hooks, allocator, &own);
    if (!t) {
        heed__fail(err, own.status, "%s", own.text);
        return NULL;
    }
    const heed_task task = {.self = t,
                            .loop = &t->recipe.train.loop,
                            .options = &heed__encoder_set,
                            .values = &t->recipe,
                            .values_size = sizeof t->recipe,
                            .unit = units[t->recipe.train.task],
                            .items = "tokens",
                            .perplexity = t->recipe.train.task == HEED_ENCODER_MLM,
                            .largest_loss = EXPLODED,
                            .width = t->recipe.model.d,
                            .best = heed__encoder_best(t),
                            .open = open_encoding,
                            .params = params_of,
                            .describe = describe,
                            .data = data,
                            .next = heed__encoder_next,
                            .loss = loss,
                            .tell = heed__encoder_tell,
                            .seek = heed__encoder_seek,
                            .validate = heed__encoder_validate,
                            .close = close_encoding};
    return heed_trainer_open(folder, &task, resume, hooks, allocator, err);
}

heed_trainer *heed_encoder_trainer_new(const char *folder, const heed_encoder_recipe *recipe,
                                       const heed_train_hooks *hooks,
                                       const heed_allocator *allocator, heed_error *err)
{
    if (!folder || !recipe)
        return heed__missing(err, folder ? "recipe" : "folder"), NULL;
    return train(folder, recipe, false, hooks, allocator, err);
}

heed_trainer *heed_encoder_trainer_resume(const char *folder, const heed_encoder_recipe *recipe,
                                          const heed_train_hooks *hooks,
                                          const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    return train(folder, recipe, true, hooks, allocator, err);
}

heed_status heed_encoder_recipe_choose(heed_encoder_recipe *recipe, const heed_log_sink *log,
                                       const heed_allocator *allocator, heed_error *err)
{
    if (!recipe)
        return heed__missing(err, "recipe");
    heed_error own = {0};
    const heed_train_hooks hooks = {.log = log ? *log : (heed_log_sink){NULL, NULL}};
    heed__encoding *t = encoding_of(recipe, NULL, false, &hooks, allocator, &own);
    if (!t)
        return heed__fail(err, own.status, "%s", own.text);
    *recipe = t->recipe;
    close_encoding(t);
    return HEED_OK;
}

heed_encoder_report heed_encoder_trainer_report(const heed_trainer *trainer)
{
    if (!trainer || trainer->task.loss != loss)
        return (heed_encoder_report){0};
    const heed__encoding *t = trainer->task.self;
    return (heed_encoder_report){.examples = t->train.count,
                                 .valid_examples = t->valid.count,
                                 .tokens = t->train.tokens,
                                 .cut = t->train.cut,
                                 .vocabulary = heed_vocab_size(t->vocab),
                                 .labels = t->label_count};
}
