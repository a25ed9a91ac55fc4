/* recipe.c: the options of a run: which go together, how they are stored in training/options.json,
 * and which of them may change when a run is resumed. */
#include "base/file.h"
#include "decode/folder.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const heed_option fields[] = {
    HEED_TRAIN_OPTIONS(heed_recipe, train),
    HEED_MODEL_OPTIONS(heed_recipe, model),
};
static const heed_option_set set = {
    .command = "heed train",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = heed_model_presets,
};

heed_status heed_recipe_parse(heed_recipe *recipe, int count, const char *const *words,
                              heed_arena *arena, heed_error *err)
{
    heed_option_result result;
    *recipe = (heed_recipe){0};
    return heed_option_parse(&set, count, words, recipe, arena, &result, err);
}

/* ---- checks ---- */

static heed_status check_files(const heed_train_options *o, heed_error *err)
{
    if (!o->source.count && !o->target.count && !o->tsv.count)
        return heed__fail(err, HEED_ARGUMENT,
                          "nothing to learn from: give --source and --target, or --tsv");
    if (o->source.count != o->target.count)
        return heed__fail(err, HEED_ARGUMENT,
                          "%d files with --source and %d with --target, expected as many",
                          o->source.count, o->target.count);
    if (o->valid_source.count != o->valid_target.count)
        return heed__fail(err, HEED_ARGUMENT,
                          "%d files with --valid-source and %d with --valid-target, expected as "
                          "many",
                          o->valid_source.count, o->valid_target.count);
    return HEED_OK;
}

static heed_status check_vocabularies(const heed_recipe *r, heed_error *err)
{
    const heed_train_options *o = &r->train;
    if (o->vocab && (o->source_vocab || o->target_vocab))
        return heed__fail(err, HEED_ARGUMENT,
                          "--vocab is for both languages: it cannot stand beside --source-vocab or "
                          "--target-vocab");
    if (!o->source_vocab != !o->target_vocab)
        return heed__fail(err, HEED_ARGUMENT,
                          "--source-vocab and --target-vocab must be given together");
    bool separate = !o->joint || o->source_vocab;
    if (o->vocab && !o->joint)
        return heed__fail(err, HEED_ARGUMENT, "--vocab is for both languages: not with --no-joint");
    if (separate && r->model.tying == HEED_TIE_ALL)
        return heed__fail(err, HEED_ARGUMENT,
                          "two vocabularies cannot share one matrix: with --no-joint or "
                          "--source-vocab use --tying target or --tying none");
    if (o->vocab_size && o->vocab_size <= HEED_PLACEHOLDER + HEED_PLACEHOLDERS)
        return heed__fail(err, HEED_ARGUMENT,
                          "--vocab-size is %lld, expected at least %d: %d pieces are special",
                          (long long)o->vocab_size, HEED_PLACEHOLDER + HEED_PLACEHOLDERS + 1,
                          HEED_PLACEHOLDER + HEED_PLACEHOLDERS);
    return HEED_OK;
}

/* What one kind of tokens has and the other would ignore in silence. */
static heed_status check_tokens(const heed_train_options *o, heed_error *err)
{
    bool words = o->tokens == HEED_TOKENS_WHITESPACE;
    if (words && o->vocab_type == HEED_BPE)
        return heed__fail(
            err, HEED_ARGUMENT,
            "--vocab-type bpe learns to cut words, --tokens whitespace does not: leave "
            "--tokens out, or, if the text is cut already, --vocab-type");
    if (words && o->vocab_coverage < 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "--vocab-coverage needs --tokens sentencepiece: for words there is "
                          "--vocab-min-count");
    if (!words && o->vocab_min_count > 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "--vocab-min-count needs --tokens whitespace: for subwords there is "
                          "--vocab-size");
    if (o->bpe_joiner && !words)
        return heed__fail(err, HEED_ARGUMENT, "--bpe-joiner needs --tokens whitespace");
    if (o->bpe_joiner && !*o->bpe_joiner)
        return heed__fail(err, HEED_ARGUMENT, "--bpe-joiner is empty");
    if (o->subword_sampling > 0 && words)
        return heed__fail(err, HEED_ARGUMENT,
                          "--subword-sampling needs --tokens sentencepiece: words are not cut");
    if ((o->augment.protect > 0 || o->augment.invent > 0 || o->augment.vary > 0) && words)
        return heed__fail(err, HEED_ARGUMENT,
                          "--protect, --invent and --vary need --tokens sentencepiece: a word more "
                          "or less is unknown to --tokens whitespace");
    return HEED_OK;
}

static heed_status check_training(const heed_train_options *o, heed_error *err)
{
    bool total = o->schedule == HEED_SCHEDULE_COSINE || o->schedule == HEED_SCHEDULE_LINEAR;
    if (total && !o->max_updates)
        return heed__fail(err, HEED_ARGUMENT, "--schedule %s needs --max-updates to end at",
                          o->schedule == HEED_SCHEDULE_COSINE ? "cosine" : "linear");
    if (total && o->warmup >= o->max_updates)
        return heed__fail(err, HEED_ARGUMENT,
                          "--warmup is %lld, expected less than the %lld of --max-updates",
                          (long long)o->warmup, (long long)o->max_updates);
    if ((o->schedule == HEED_SCHEDULE_NOAM || o->schedule == HEED_SCHEDULE_INVERSE_SQRT) &&
        !o->warmup)
        return heed__fail(err, HEED_ARGUMENT, "this --schedule needs a --warmup of at least 1");
    if (o->weight_decay > 0 && o->optimizer != HEED_ADAMW)
        return heed__fail(err, HEED_ARGUMENT, "--weight-decay needs --optimizer adamw");
    if (o->momentum > 0 && (o->optimizer == HEED_ADAM || o->optimizer == HEED_ADAMW))
        return heed__fail(err, HEED_ARGUMENT, "--momentum needs --optimizer sgd or rmsprop");
    if (o->rate_floor > 0 && !total)
        return heed__fail(err, HEED_ARGUMENT, "--rate-floor needs --schedule cosine or linear");
    if (o->valid_metric != HEED_VALID_LOSS && !o->valid_lines)
        return heed__fail(err, HEED_ARGUMENT,
                          "--valid-lines 0 translates nothing: it needs --valid-metric loss");
    if (!o->valid_every && o->valid_minutes == 0 && !o->max_updates && !o->max_epochs &&
        o->max_minutes == 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "nothing would ever stop this run: give --max-updates, --max-epochs, "
                          "--max-minutes or --valid-every");
    return HEED_OK;
}

heed_status heed__recipe_check(const heed_recipe *r, heed_error *err)
{
    heed_status status = check_files(&r->train, err);
    if (!status)
        status = check_vocabularies(r, err);
    if (!status)
        status = check_tokens(&r->train, err);
    return status ? status : check_training(&r->train, err);
}

/* ---- what was not given ---- */

/* A name that does not exist stays as it is: whoever opens it says so. */
static const char *absolute(const char *path, heed_arena *arena)
{
    heed__pathname full;
    if (!path || !realpath(path, full))
        return path;
    size_t n = strlen(full) + 1;
    char *copy = heed_arena_allocate(arena, n);
    return copy ? memcpy(copy, full, n) : NULL;
}

static heed_status absolute_list(heed_option_list *list, heed_arena *arena, heed_error *err)
{
    const char **items = heed_arena_allocate(arena, sizeof *items * (size_t)(list->count + 1));
    for (int i = 0; items && i < list->count; i++)
        if (!(items[i] = absolute(list->items[i], arena)))
            items = NULL;
    if (!items)
        return heed__fail(err, HEED_MEMORY, "out of memory for options");
    list->items = items;
    return HEED_OK;
}

heed_status heed__recipe_absolute(heed_recipe *r, heed_arena *arena, heed_error *err)
{
    heed_train_options *o = &r->train;
    heed_option_list *lists[] = {&o->source,       &o->target,       &o->tsv,
                                 &o->valid_source, &o->valid_target, &o->valid_tsv};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (absolute_list(lists[i], arena, err))
            return HEED_MEMORY;
    o->from = absolute(o->from, arena);
    o->vocab = absolute(o->vocab, arena);
    o->source_vocab = absolute(o->source_vocab, arena);
    o->target_vocab = absolute(o->target_vocab, arena);
    return HEED_OK;
}

void heed__recipe_resolve(heed_recipe *r)
{
    heed_train_options *o = &r->train;
    if (!o->threads) {
        heed_machine m;
        heed_machine_describe(&m);
        o->threads = m.threads;
    }
    if (o->rate == 0)
        o->rate = o->schedule == HEED_SCHEDULE_NOAM ? 1 : 0.001;
    if (!o->vocab_size && o->tokens == HEED_TOKENS_SENTENCEPIECE)
        o->vocab_size = 8000;
}

/* ---- on disk ---- */

heed_status heed__recipe_write(const heed_recipe *r, const char *path, heed_error *err)
{
    heed_error own = {0};
    heed_arena *arena = heed_arena_new(NULL, &own);
    const char *text = arena ? heed_option_config(&set, r, arena) : NULL;
    if (arena && !text)
        heed__fail(&own, HEED_MEMORY, "out of memory for options");
    heed__atomic_file *f = text ? heed__atomic_open(path, NULL, &own) : NULL;
    if (f && heed__atomic_write(f, text, strlen(text), &own))
        heed__atomic_abandon(f);
    else if (f)
        heed__atomic_commit(f, &own);
    heed_arena_free(arena);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

heed_status heed_recipe_open(const char *folder, heed_recipe *recipe, heed_arena *arena,
                             heed_error *err)
{
    heed__pathname path;
    heed_status status = heed__pathname_format(path, err, "%s/training/options.json", folder);
    if (status)
        return status;
    if (!heed__folder_exists(path))
        return heed__fail(err, HEED_IO, "cannot resume '%.400s': there is no training in it",
                          folder);
    const char *const words[] = {"--config", path};
    return heed_recipe_parse(recipe, 2, words, arena, err);
}

/* ---- on resume ---- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

static bool same_value(const heed_option *o, const void *a, const void *b)
{
    const heed_option_list *la = a, *lb = b;
    bool same = true;
    switch (o->type) {
    case HEED_OPTION_TYPE_BOOL:
        return *(const bool *)a == *(const bool *)b;
    case HEED_OPTION_TYPE_INT:
        return *(const int64_t *)a == *(const int64_t *)b;
    case HEED_OPTION_TYPE_REAL:
        return *(const double *)a == *(const double *)b;
    case HEED_OPTION_TYPE_CHOICE:
        return *(const int *)a == *(const int *)b;
    case HEED_OPTION_TYPE_TEXT:
        return same_text(*(const char *const *)a, *(const char *const *)b);
    case HEED_OPTION_TYPE_LIST:
        same = la->count == lb->count;
        for (int i = 0; same && i < la->count; i++)
            same = same_text(la->items[i], lb->items[i]);
        break;
    }
    return same;
}

/* What a run may change on the way: when it ends, looks at itself, saves and speaks.  Another
 * validation set or metric would make the best score so far meaningless. */
static bool may_change(const char *name)
{
    static const char *const names[] = {
        "max-updates",  "max-epochs",  "max-minutes",   "patience",    "average",
        "average-kind", "valid-every", "valid-minutes", "valid-beam",  "save-every",
        "save-minutes", "keep",        "log-every",     "valid-lines", "threads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

heed_status heed__recipe_may_become(const heed_recipe *from, const heed_recipe *to,
                                    const char *folder, bool *new_bits, heed_error *err)
{
    int schedule = from->train.schedule;
    bool total = schedule == HEED_SCHEDULE_COSINE || schedule == HEED_SCHEDULE_LINEAR;
    *new_bits = from->train.threads != to->train.threads;
    for (int i = 0; i < set.count; i++) {
        const heed_option *o = &fields[i];
        if (same_value(o, (const char *)from + o->offset, (const char *)to + o->offset))
            continue;
        if (total && strcmp(o->name, "max-updates") == 0)
            return heed__fail(
                err, HEED_ARGUMENT,
                "--max-updates cannot change on resume: the learning rate of '%.200s' "
                "depends on it",
                folder);
        if (!may_change(o->name))
            return heed__fail(err, HEED_ARGUMENT,
                              "--%s cannot change on resume; leave it out, or train '%.200s' anew",
                              o->name, folder);
    }
    return HEED_OK;
}

/* ---- the metric that decides ---- */

bool heed__metric_better(int metric, double score, double than)
{
    return isfinite(score) &&
           (!isfinite(than) || (metric == HEED_VALID_LOSS ? score < than : score > than));
}

const char *heed__metric_name(int metric)
{
    static const char *const names[] = {"bleu", "chrf", "loss"};
    return names[metric];
}

/* ---- from another model ---- */

/* Of a run that starts from a model, where no other schedule is asked for. */
#define FROM_RATE 0.0002
#define FROM_WARMUP 20

/* Whether an option is of the model, and more than how it is trained. */
static bool of_shape(const heed_option *o)
{
    static const char *const training[] = {"dropout", "attention-dropout", "ff-dropout",
                                           "label-smoothing"};
    for (size_t i = 0; i < sizeof training / sizeof *training; i++)
        if (strcmp(training[i], o->name) == 0)
            return false;
    return o->offset < offsetof(heed_recipe, train); /* the model stands before it */
}

/* Nothing that was asked for may differ from what the other model is. */
static heed_status check_shape(const heed_recipe *r, const heed_recipe *from, heed_arena *arena,
                               heed_error *err)
{
    heed_recipe defaults;
    heed_status status = heed_recipe_parse(&defaults, 0, NULL, arena, err);
    for (int i = 0; !status && i < set.count; i++) {
        const heed_option *o = &fields[i];
        const char *asked = (const char *)r + o->offset;
        if (of_shape(o) && !same_value(o, asked, (const char *)&defaults + o->offset) &&
            !same_value(o, asked, (const char *)from + o->offset))
            status = heed__fail(err, HEED_ARGUMENT,
                                "--%s is not what the model '%.300s' has: with --from, leave it "
                                "out",
                                o->name, r->train.from);
    }
    return status;
}

heed_status heed__recipe_start_from(heed_recipe *r, heed_text_config *text, heed_arena *arena,
                                    heed_error *err)
{
    heed_train_options *o = &r->train;
    heed_recipe from = *r;
    heed__path *path = heed_arena_allocate(arena, 2 * sizeof *path);
    if (!path)
        return heed__fail(err, HEED_MEMORY, "out of memory for a path");
    if (o->vocab || o->source_vocab || o->target_vocab || o->vocab_size)
        return heed__fail(err, HEED_ARGUMENT,
                          "--from brings its own vocabulary: leave out --vocab, --source-vocab, "
                          "--target-vocab and --vocab-size");
    if (heed_model_read_config(o->from, arena, &from.model, text, err) ||
        heed__vocabs_find(o->from, path, err) || check_shape(r, &from, arena, err))
        return err->status;
    from.model.dropout = r->model.dropout;
    from.model.attention.dropout = r->model.attention.dropout;
    from.model.transformer.ff_dropout = r->model.transformer.ff_dropout;
    from.model.label_smoothing = r->model.label_smoothing;
    r->model = from.model;
    if (o->schedule == HEED_SCHEDULE_NOAM &&
        o->rate == 0) { /* made for weights that know nothing */
        o->schedule = HEED_SCHEDULE_CONSTANT;
        o->rate = FROM_RATE;
        o->warmup = FROM_WARMUP;
    }
    const bool words = text->tokens == HEED_WHITESPACE;
    o->tokens = words ? HEED_TOKENS_WHITESPACE : HEED_TOKENS_SENTENCEPIECE;
    o->vocab_type = words ? HEED_UNIGRAM : text->tokens;
    o->bpe_joiner = text->bpe_joiner;
    o->joint = strcmp(path[0].text, path[1].text) == 0;
    o->vocab = o->joint ? path[0].text : NULL;
    o->source_vocab = o->joint ? NULL : path[0].text;
    o->target_vocab = o->joint ? NULL : path[1].text;
    return HEED_OK;
}
