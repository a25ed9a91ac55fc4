/* language_task.c: a language model as a task: every token of a text from those before it (Radford
 * et al. 2018, 2019).
 *
 * A batch is stretches ("blocks") of --context tokens; the right answers are the same tokens one
 * further on.  In each epoch the blocks begin at another place, drawn from the seed, and come in an
 * order that is drawn: so every token is learned once an epoch, and blocks need not be stored. */
#include "task/language_task.h"
#include "base/min_max.h"
#include "model/model_class.h"
#include "nn/init.h"
#include "train/trainer.h"
#include "vocab/vocabulary.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Above this loss in nats a token, training has diverged. */
#define EXPLODED 100.0

void heed__language_say(const heed__language_run *t, heed_log_level level, const char *format, ...)
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

/* ---- blocks ---- */

enum purpose { FOR_START, FOR_ORDER };

static heed_rng numbers(const heed__language_run *t, enum purpose purpose, int64_t epoch)
{
    return heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)t->recipe.train.loop.seed,
                                           .step = (uint64_t)epoch,
                                           .node = (uint64_t)purpose});
}

/* Where the blocks of an epoch begin: less than a block from the beginning of the text. */
static int64_t start_of(const heed__language_run *t, int64_t epoch)
{
    const int64_t spare = heed__min(t->block, t->train.count - t->block);
    const heed_rng rng = numbers(t, FOR_START, epoch);
    return spare > 0 ? heed_rng_below(&rng, 0, spare) : 0;
}

/* Whole blocks of an epoch, each with the token behind it; at least one. */
static int64_t blocks_of(const heed__language_run *t, int64_t epoch)
{
    return (t->train.count - 1 - start_of(t, epoch)) / t->block;
}

/* Fisher and Yates. */
static void order_epoch(heed__language_run *t, int64_t epoch)
{
    const int64_t n = blocks_of(t, epoch);
    const heed_rng rng = numbers(t, FOR_ORDER, epoch);
    if (t->ordered == epoch)
        return;
    for (int64_t i = 0; i < n; i++)
        t->order[i] = (uint32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = heed_rng_below(&rng, (uint64_t)i, i + 1);
        const uint32_t swap = t->order[i];
        t->order[i] = t->order[j];
        t->order[j] = swap;
    }
    t->ordered = epoch;
}

/* Blocks in a batch. */
static int64_t blocks_a_batch(const heed__language_run *t)
{
    return heed__max(t->recipe.train.batch_tokens / t->block, 1);
}

/* The batch of n blocks that begin at these tokens of a text; length (n) are theirs. */
static heed_status make_batch(heed_arena *arena, const heed__token_stream *s, const int64_t *begin,
                              const int64_t *length, int64_t n, heed_batch *b, heed_error *err)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < n; i++)
        rows += length[i];
    const heed_segments *segments = heed_segments_new(arena, (int)n, length);
    int32_t *id = heed_arena_allocate(arena, (size_t)rows * sizeof *id);
    int32_t *wanted = heed_arena_allocate(arena, (size_t)rows * sizeof *wanted);
    if (!segments || !id || !wanted)
        return heed__fail(err, HEED_MEMORY, "out of memory for a batch of %lld tokens",
                          (long long)rows);
    for (int64_t i = 0, at = 0; i < n; at += length[i++]) {
        memcpy(id + at, s->id + begin[i], (size_t)length[i] * sizeof *id);
        memcpy(wanted + at, s->id + begin[i] + 1, (size_t)length[i] * sizeof *wanted);
    }
    *b = (heed_batch){.examples = n,
                      .target = {.rows = segments, .ids = id},
                      .wanted = wanted,
                      .wanted_count = rows};
    return HEED_OK;
}

/* The next batch; at the end of an epoch it has the blocks that are left. */
static heed_status next_batch(heed__language_run *t, heed_batch *b, heed_error *err)
{
    if (t->position.at[0] >= blocks_of(t, t->position.epoch))
        t->position = (heed_position){.epoch = t->position.epoch + 1};
    const int64_t epoch = t->position.epoch, start = start_of(t, epoch);
    const int64_t n = heed__min(blocks_a_batch(t), blocks_of(t, epoch) - t->position.at[0]);
    int64_t *begin = heed_arena_allocate(t->passing, (size_t)n * sizeof *begin);
    int64_t *length = heed_arena_allocate(t->passing, (size_t)n * sizeof *length);
    if (!begin || !length)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld blocks", (long long)n);
    order_epoch(t, epoch);
    for (int64_t i = 0; i < n; i++) {
        begin[i] = start + (int64_t)t->order[t->position.at[0] + i] * t->block;
        length[i] = t->block;
    }
    t->position.at[0] += n;
    heed_status status = make_batch(t->passing, &t->train, begin, length, n, b, err);
    b->epoch = epoch;
    return status;
}

static heed_status prepare_blocks(heed__language_run *t, heed_error *err)
{
    t->block = heed__min(t->recipe.model.longest, t->train.count - 1);
    t->capacity = t->train.count / t->block + 1;
    t->ordered = -1;
    if (t->capacity > UINT32_MAX)
        return heed__fail(err, HEED_ARGUMENT,
                          "the text has %lld blocks of %lld tokens, expected "
                          "at most %lld: raise --context",
                          (long long)t->capacity, (long long)t->block, (long long)UINT32_MAX);
    t->order = heed__allocate(&t->allocator, (size_t)t->capacity, sizeof *t->order);
    t->passing = heed_arena_new(&t->allocator, err);
    t->micro = heed__allocate_zeroed(&t->allocator, (size_t)t->recipe.train.loop.accumulate,
                                     sizeof *t->micro);
    if (!t->order || !t->passing || !t->micro)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld blocks",
                          (long long)t->capacity);
    return HEED_OK;
}

/* ---- the model ---- */

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* GPT-2 (2.3): N(0, .02), "we scale the weights of residual layers at initialization by a factor of
 * 1/sqrt(N) where N is the number of residual layers": two a layer. */
static heed_status draw_gpt2(const heed__language_run *t, heed_error *err)
{
    const heed_params *p = heed_model_params(t->model);
    const double residual = 1 / sqrt(2 * (double)t->recipe.model.decoder_layers);
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < heed_params_count(p); i++) {
        const heed_param_info e = heed_params_entry(p, i);
        const bool ends =
            ends_with(e.name, ".self.out.weight") || ends_with(e.name, ".ffn.out.weight");
        if (e.is_state || (e.role == HEED_ROLE_PLAIN && !ends_with(e.name, "embedding.positions")))
            continue;
        const heed_rng rng = heed_rng_stream(&(heed_rng_key){
            .seed = (uint64_t)t->recipe.train.loop.seed, .step = UINT64_MAX, .node = (uint64_t)i});
        const heed_init init = {HEED_INIT_NORMAL, ends ? 0.02 * residual : 0.02};
        status = heed__init_draw(heed_tensor_data(e.tensor), 1, heed_tensor_count(e.tensor), init,
                                 &rng, &t->allocator);
    }
    return status ? heed__fail(err, status, "out of memory for first weights") : HEED_OK;
}

/* Weight decay is for what is multiplied with: not for biases, gains and positions. */
static heed_status spare_plain(const heed__language_run *t, heed_error *err)
{
    heed_params *p = heed_model_params(t->model);
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < heed_params_count(p); i++) {
        const heed_param_info e = heed_params_entry(p, i);
        if (!e.is_state && e.role == HEED_ROLE_PLAIN)
            status = heed_params_set_group(p, e.name, (heed_group){.rate_factor = 1}, err);
    }
    return status;
}

static heed_status make_model(heed__language_run *t, bool new_folder, heed_error *err)
{
    const heed_language_options *o = &t->recipe.train;
    heed_status status = HEED_OK;
    t->model = heed_model_new(&t->recipe.model, (uint64_t)o->loop.seed, &t->allocator, err);
    if (!t->model)
        return err->status;
    if (new_folder && o->from)
        status = heed__language_take_weights(t, err);
    else if (new_folder && o->init == HEED_LANGUAGE_GPT2)
        status = draw_gpt2(t, err);
    return status || o->loop.weight_decay == 0 ? status : spare_plain(t, err);
}

/* ---- the task ---- */

static heed_status open_language(void *self, const char *folder, bool new_folder, heed_error *err)
{
    heed__language_run *t = self;
    t->folder = folder;
    heed_status status = new_folder ? HEED_OK : heed__language_open_files(t, err);
    if (!status)
        status = heed__language_open_vocabulary(t, new_folder, err);
    if (!status)
        status = heed__language_read_text(t, err);
    if (!status)
        status = prepare_blocks(t, err);
    if (!status)
        status = make_model(t, new_folder, err);
    t->folder = NULL;
    return status;
}

static heed_params *params_of(void *self, int set)
{
    (void)set;
    return heed_model_params(((heed__language_run *)self)->model);
}

/* From here on the files of the recipe have their whole names. */
static heed_status describe(void *self, const char *folder, heed_error *err)
{
    heed__language_run *t = self;
    const heed_text_config text = {.tokens = t->vocab->kind,
                                   .bpe_joiner = t->recipe.train.bpe_joiner};
    heed_status status = heed__language_absolute(&t->recipe, t->arena, err);
    return status ? status : heed_model_describe(folder, &t->recipe.model, &text, err);
}

static int data(void *self, heed_fingerprint *out)
{
    const heed__language_run *t = self;
    const heed_fingerprint all[] = {
        {"text bytes", t->train.bytes},        {"text tokens", t->train.count},
        {"text checksum", t->train.checksum},  {"validation bytes", t->valid.bytes},
        {"validation tokens", t->valid.count}, {"validation checksum", t->valid.checksum},
    };
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof *all;
}

static heed_status next(void *self, int64_t update, int micros, heed_portion *portion,
                        heed_error *err)
{
    heed__language_run *t = self;
    heed_status status = HEED_OK;
    (void)update;
    heed_arena_reset(t->passing);
    for (int i = 0; !status && i < micros; i++) {
        heed_batch *b = &t->micro[i];
        if ((status = next_batch(t, b, err)))
            break;
        const double rows = (double)b->wanted_count;
        portion[i] = (heed_portion){.terms = rows,
                                    .items = rows,
                                    .share = rows / (double)t->train.count,
                                    .epoch = b->epoch};
    }
    return status;
}

static heed_tensor *loss(void *self, heed_tape *tape, const heed_pass *pass, double *sum)
{
    heed__language_run *t = self;
    return heed_model_loss(t->model, tape, &t->micro[pass->micro], pass->weight, sum);
}

static heed_position tell(void *self)
{
    return ((heed__language_run *)self)->position;
}

static heed_status seek(void *self, heed_position p, heed_error *err)
{
    heed__language_run *t = self;
    if (p.epoch < 0 || p.at[0] < 0 || p.at[0] > blocks_of(t, p.epoch))
        return heed__fail(err, HEED_ARGUMENT, "there is no block %lld in epoch %lld",
                          (long long)p.at[0], (long long)p.epoch);
    t->position = p;
    return HEED_OK;
}

/* ---- validation ---- */

static bool stop_asked(const heed__language_run *t)
{
    return t->hooks.stop && t->hooks.stop(t->hooks.context);
}

/* The text from its beginning in blocks that do not overlap: each token has what stands before it
 * in its block.  `heed score` gives every token at least half a context. */
static heed_status validate(void *self, heed_tape *tape, heed_measure *out, int *count,
                            heed_error *err)
{
    heed__language_run *t = self;
    const heed__token_stream *s = &t->valid;
    const int64_t most = heed__min(s->count - 1, t->recipe.train.valid_tokens);
    const int64_t blocks = blocks_a_batch(t);
    double nll = 0;
    int64_t at = 0;
    heed_status status = HEED_OK;
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    if (!arena)
        return HEED_MEMORY;
    while (!status && at < most && !stop_asked(t)) {
        heed_arena_reset(arena);
        int64_t *begin = heed_arena_allocate(arena, (size_t)blocks * sizeof *begin);
        int64_t *length = heed_arena_allocate(arena, (size_t)blocks * sizeof *length), n = 0;
        for (; begin && length && n < blocks && at < most; n++) {
            begin[n] = at;
            length[n] = heed__min(t->recipe.model.longest, most - at);
            at += length[n];
        }
        heed_batch b;
        double sum = 0;
        status = begin && length ? make_batch(arena, s, begin, length, n, &b, err)
                                 : heed__fail(err, HEED_MEMORY, "out of memory to validate");
        if (status)
            break;
        heed_tape_reset(tape);
        heed_model_loss(t->model, tape, &b, 1, &sum);
        const heed_error *wrong = heed_tape_error(tape);
        if (wrong->status)
            status = heed__fail(err, wrong->status, "%s", wrong->text);
        nll += sum;
    }
    heed_arena_free(arena);
    heed_tape_reset(tape);
    const double mean = nll / (double)at;
    const double bytes = (double)s->bytes / (double)s->count; /* a token */
    out[0] = (heed_measure){"loss", mean, false};
    out[1] = (heed_measure){"bits/byte", mean / (log(2) * bytes), false};
    *count = 2;
    return status;
}

static void close_language(void *self)
{
    heed__language_run *t = self;
    heed_model_free(t->model);
    heed__release(&t->allocator, t->micro, (size_t)t->recipe.train.loop.accumulate,
                  sizeof *t->micro);
    heed__release(&t->allocator, t->order, (size_t)t->capacity, sizeof *t->order);
    heed_arena_free(t->passing);
    heed__token_stream_close(&t->train);
    heed__token_stream_close(&t->valid);
    heed_vocab_free(t->vocab);
    heed__text_files_close(&t->files);
    heed__text_files_close(&t->valid_files);
    heed_arena_free(t->arena);
    heed_allocator a = t->allocator;
    heed__release(&a, t, 1, sizeof *t);
}

/* ---- from a recipe ---- */

static heed_status check_recipe(heed__language_run *t, heed_error *err)
{
    heed__language_resolve(&t->recipe);
    return heed__language_check(&t->recipe, err);
}

/* What does not go together shows before files are read, and before anything is chosen for them. */
static heed_status prepare_new(heed__language_run *t, const char *folder, heed_error *err)
{
    const heed_language_recipe given = t->recipe;
    heed_status status = heed__language_choose(t, 0, err);
    if (!status)
        status = check_recipe(t, err);
    t->recipe = given;
    if (!status && folder)
        status = heed__folder_is_free(folder, err);
    if (!status && given.train.from)
        status = heed__language_start_from(t, err);
    if (!status)
        status = heed__language_open_files(t, err);
    if (!status)
        status = heed__language_choose(t, t->files.bytes, err);
    return status ? status : check_recipe(t, err);
}

static heed_status prepare_resumed(heed__language_run *t, const char *folder,
                                   const heed_language_recipe *recipe, heed_error *err)
{
    const char *words[2];
    heed_model_config model;
    heed_text_config text;
    heed_status status = heed__stored_options(folder, t->arena, words, err);
    if (!status)
        status = heed_language_recipe_parse(&t->recipe, 2, words, t->arena, err);
    if (!status)
        status = heed_model_read_config(folder, t->arena, &model, &text, err);
    if (status)
        return status;
    if (recipe)
        t->recipe = *recipe;
    if (t->recipe.train.from) { /* what it was is in the folder: the other model may be gone */
        const heed_model_config own = t->recipe.model;
        t->recipe.model = model;
        t->recipe.model.dropout = own.dropout;
    }
    heed__language_resolve(&t->recipe);
    status = heed__language_absolute(&t->recipe, t->arena, err);
    return status ? status : heed__language_check(&t->recipe, err);
}

static heed__language_run *language_of(const heed_language_recipe *recipe, const char *folder,
                                       bool resume, const heed_train_hooks *hooks,
                                       const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__language_run *t = heed__allocate_zeroed(&a, 1, sizeof *t);
    if (!t) {
        heed__fail(err, HEED_MEMORY, "out of memory for a language model");
        return NULL;
    }
    t->allocator = a;
    t->hooks = hooks ? *hooks : (heed_train_hooks){.progress = NULL};
    if ((t->arena = heed_arena_new(&a, err))) {
        if (!resume)
            t->recipe = *recipe;
        if (!(resume ? prepare_resumed(t, folder, recipe, err) : prepare_new(t, folder, err)))
            return t;
    }
    close_language(t);
    return NULL;
}

static heed_trainer *train(const char *folder, const heed_language_recipe *recipe, bool resume,
                           const heed_train_hooks *hooks, const heed_allocator *allocator,
                           heed_error *err)
{
    heed_error own = {0};
    heed__language_run *t = language_of(recipe, folder, resume, hooks, allocator, &own);
    if (!t) {
        heed__fail(err, own.status, "%s", own.text);
        return NULL;
    }
    const heed_task task = {.self = t,
                            .loop = &t->recipe.train.loop,
                            .options = &heed__language_set,
                            .values = &t->recipe,
                            .values_size = sizeof t->recipe,
                            .unit = "nats a token",
                            .items = "tokens",
                            .perplexity = true,
                            .largest_loss = EXPLODED,
                            .width = t->recipe.model.d,
                            .open = open_language,
                            .params = params_of,
                            .describe = describe,
                            .data = data,
                            .next = next,
                            .loss = loss,
                            .tell = tell,
                            .seek = seek,
                            .validate = validate,
                            .close = close_language};
    return heed_trainer_open(folder, &task, resume, hooks, allocator, err);
}

heed_trainer *heed_language_trainer_new(const char *folder, const heed_language_recipe *recipe,
                                        const heed_train_hooks *hooks,
                                        const heed_allocator *allocator, heed_error *err)
{
    if (!folder || !recipe)
        return heed__missing(err, folder ? "recipe" : "folder"), NULL;
    return train(folder, recipe, false, hooks, allocator, err);
}

heed_trainer *heed_language_trainer_resume(const char *folder, const heed_language_recipe *recipe,
                                           const heed_train_hooks *hooks,
                                           const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    return train(folder, recipe, true, hooks, allocator, err);
}

heed_status heed_language_recipe_choose(heed_language_recipe *recipe, const heed_log_sink *log,
                                        const heed_allocator *allocator, heed_error *err)
{
    if (!recipe)
        return heed__missing(err, "recipe");
    heed_error own = {0};
    const heed_train_hooks hooks = {.log = log ? *log : (heed_log_sink){NULL, NULL}};
    const char *joiner = recipe->train.bpe_joiner;
    heed__language_run *t = language_of(recipe, NULL, false, &hooks, allocator, &own);
    if (!t)
        return heed__fail(err, own.status, "%s", own.text);
    *recipe = t->recipe;
    recipe->train.bpe_joiner = joiner; /* of another model, it lives as long as t */
    close_language(t);
    return HEED_OK;
}

heed_language_report heed_language_trainer_report(const heed_trainer *trainer)
{
    if (!trainer || trainer->task.loss != loss)
        return (heed_language_report){0};
    const heed__language_run *t = trainer->task.self;
    return (heed_language_report){.bytes = t->train.bytes,
                                  .tokens = t->train.count,
                                  .unknown = t->train.unknown,
                                  .valid_bytes = t->valid.bytes,
                                  .valid_tokens = t->valid.count,
                                  .vocabulary = heed_vocab_size(t->vocab)};
}
