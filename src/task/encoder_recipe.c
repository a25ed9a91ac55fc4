/* encoder_recipe.c: the options of an encoder's run: presets, what stands for those that were not
 * given, which of them are refused. */
#include "model/model_class.h"
#include "task/encoder_task.h"

#include <string.h>

static const char *const defaults[] = {HEED_ENCODER_DEFAULTS, NULL};
static const heed_option fields[] = {
    HEED_ENCODER_OPTIONS(heed_encoder_recipe, train),
    HEED_MODEL_OPTIONS(heed_encoder_recipe, model),
};
const heed_option_set heed__encoder_set = {
    .command = "heed train --arch encoder",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = heed_encoder_presets,
    .defaults = defaults,
    .without = HEED_ENCODER_WITHOUT,
};

#define SIZES(layers, width, hidden, n)                                                            \
    "encoder-layers", layers, "d", width, "ff", hidden, "heads", n, NULL
static const char *const bert_tiny[] = {SIZES("2", "128", "512", "2")};
static const char *const bert_mini[] = {SIZES("4", "256", "1024", "4")};
static const char *const bert_small[] = {SIZES("4", "512", "2048", "8")};
static const char *const bert_medium[] = {SIZES("8", "512", "2048", "8")};
static const char *const bert_base[] = {SIZES("12", "768", "3072", "12")};

/* Devlin et al. 2019, and the small ones of Turc et al. 2019. */
const heed_option_bundle *heed_encoder_presets(void)
{
    static const heed_option_bundle presets[] = {
        {"bert-tiny", "2 layers, d 128, ff 512, 2 heads: for small data", bert_tiny},
        {"bert-mini", "4 layers, d 256, ff 1024, 4 heads", bert_mini},
        {"bert-small", "4 layers, d 512, ff 2048, 8 heads", bert_small},
        {"bert-medium", "8 layers, d 512, ff 2048, 8 heads", bert_medium},
        {"bert-base", "12 layers, d 768, ff 3072, 12 heads: the paper's base", bert_base},
        {NULL, NULL, NULL},
    };
    return presets;
}

heed_status heed_encoder_recipe_parse(heed_encoder_recipe *recipe, int count,
                                      const char *const *words, heed_arena *arena, heed_error *err)
{
    if (!recipe)
        return heed__missing(err, "recipe");
    heed_option_result result;
    *recipe = (heed_encoder_recipe){0};
    heed_status status =
        heed_option_parse(&heed__encoder_set, count, words, recipe, arena, &result, err);
    recipe->origins = result.origins;
    return status;
}

heed_status heed__encoder_absolute(heed_encoder_recipe *r, heed_arena *arena, heed_error *err)
{
    static const char *const files[] = {"text",        "tsv",  "conll", "valid-text", "valid-tsv",
                                        "valid-conll", "from", "vocab", NULL};
    return heed__options_absolute(&heed__encoder_set, r, files, arena, err);
}

void heed__encoder_resolve(heed_encoder_recipe *r)
{
    heed__loop_resolve(&r->train.loop);
    if (!r->train.vocab_size && r->train.tokens == HEED_ENCODER_WORDPIECE)
        r->train.vocab_size = 8000;
}

/* ---- files ---- */

/* What each task reads, in the order of HEED_ENCODER_TASK_WORDS. */
static const struct {
    const char *option, *valid_option;
    size_t files, valid_files; /* in heed_encoder_options */
} reads[] = {
    {"--text", "--valid-text", offsetof(heed_encoder_options, text),
     offsetof(heed_encoder_options, valid_text)},
    {"--tsv", "--valid-tsv", offsetof(heed_encoder_options, tsv),
     offsetof(heed_encoder_options, valid_tsv)},
    {"--conll", "--valid-conll", offsetof(heed_encoder_options, conll),
     offsetof(heed_encoder_options, valid_conll)},
    {"--tsv", "--valid-tsv", offsetof(heed_encoder_options, tsv),
     offsetof(heed_encoder_options, valid_tsv)},
};
#define TASKS ((int)(sizeof reads / sizeof *reads))
static const char *const task_words[] = {HEED_ENCODER_TASK_WORDS};

static const heed_option_list *list_at(const heed_encoder_options *o, size_t offset)
{
    return (const heed_option_list *)((const char *)o + offset);
}

const heed_option_list *heed__encoder_files(const heed_encoder_options *o)
{
    return list_at(o, reads[o->task].files);
}

const heed_option_list *heed__encoder_valid_files(const heed_encoder_options *o)
{
    return list_at(o, reads[o->task].valid_files);
}

static heed_status check_files(const heed_encoder_options *o, heed_error *err)
{
    const int task = o->task;
    for (int i = 0; i < TASKS; i++) {
        if (reads[i].files == reads[task].files)
            continue;
        const bool train = list_at(o, reads[i].files)->count;
        if (train || list_at(o, reads[i].valid_files)->count)
            return heed__fail(err, HEED_ARGUMENT, "--task %s reads %s and %s, not %s",
                              task_words[task], reads[task].option, reads[task].valid_option,
                              train ? reads[i].option : reads[i].valid_option);
    }
    if (!heed__encoder_files(o)->count)
        return heed__fail(err, HEED_ARGUMENT, "nothing to learn from: --task %s needs %s",
                          task_words[task], reads[task].option);
    return HEED_OK;
}

/* ---- what would have no effect ---- */

static bool masks(const heed_encoder_recipe *r)
{
    return r->train.task == HEED_ENCODER_MLM;
}

static bool tags(const heed_encoder_recipe *r)
{
    return r->train.task == HEED_ENCODER_TAG;
}

static bool embeds(const heed_encoder_recipe *r)
{
    return r->train.task == HEED_ENCODER_EMBED;
}

static bool learns(const heed_encoder_recipe *r)
{
    return !r->train.vocab && !r->train.from;
}

static bool learns_words(const heed_encoder_recipe *r)
{
    return learns(r) && r->train.tokens == HEED_ENCODER_WORDS;
}

static bool learns_wordpiece(const heed_encoder_recipe *r)
{
    return learns(r) && r->train.tokens == HEED_ENCODER_WORDPIECE;
}

static bool holds_out(const heed_encoder_recipe *r)
{
    return !heed__encoder_valid_files(&r->train)->count;
}

static bool from_nothing(const heed_encoder_recipe *r)
{
    return !r->train.from;
}

#define FROM "is the model's: not with --from"
static const struct {
    const char *name;
    bool (*heard)(const heed_encoder_recipe *r);
    const char *otherwise;
} needs[] = {
    {"mask-share", masks, "needs --task mlm"},
    {"next-sentence", masks, "needs --task mlm"},
    {"tag-column", tags, "needs --task tag"},
    {"temperature", embeds, "needs --task embed"},
    {"vocab-size", learns, "is for a vocabulary that is learned: not with --vocab or --from"},
    {"vocab-min-count", learns_words, "needs --tokens whitespace, and a vocabulary to learn"},
    {"cased", learns_wordpiece, "needs --tokens wordpiece, and a vocabulary to learn"},
    {"vocab", from_nothing, FROM},
    {"tokens", from_nothing, FROM},
    {"encoder-layers", from_nothing, FROM},
    {"d", from_nothing, FROM},
    {"ff", from_nothing, FROM},
    {"heads", from_nothing, FROM},
    {"hold-out", holds_out, "is for training without validation files"},
};

static heed_status check_heard(const heed_encoder_recipe *r, heed_error *err)
{
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (heed__option_typed(&r->origins, needs[i].name) && !needs[i].heard(r))
            return heed__fail(err, HEED_ARGUMENT, "--%s %s", needs[i].name, needs[i].otherwise);
    return heed__check_heard(&r->origins, &r->model, &r->train.loop, err);
}

#define LEAST_LONGEST 8

heed_status heed__encoder_check(const heed_encoder_recipe *r, heed_error *err)
{
    heed_model_config c = r->model;
    heed_status status = check_files(&r->train, err);
    if (!status && c.arch != HEED_ARCH_ENCODER)
        status = heed__fail(err, HEED_ARGUMENT, "--task %s needs --arch encoder",
                            task_words[r->train.task]);
    if (!status && c.longest < LEAST_LONGEST)
        status = heed__fail(err, HEED_ARGUMENT, "--longest is %lld, expected at least %d",
                            (long long)c.longest, LEAST_LONGEST);
    if (!status)
        status = heed__options_check_names(&heed__encoder_set, r, err);
    if (!status)
        status = heed__loop_check(&r->train.loop, err);
    if (!status)
        status = check_heard(r, err);
    if (status)
        return status;
    c.source_vocabulary = r->train.vocab_size > 8 ? r->train.vocab_size : 8;
    return heed__model_check(&c, err);
}
