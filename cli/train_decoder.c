/* train_decoder.c: `heed train --arch decoder`: language models. */
#include "cmd_models.h"
#include "option_groups.h"
#include "train_kinds.h"

#include <heed/language.h>
#include <stdio.h>

struct settings {
    struct train_common common;
    heed_language_recipe recipe;
};
static const heed_option fields[] = {
    TRAIN_COMMON_OPTIONS(struct settings, common),
    HEED_LANGUAGE_OPTIONS(struct settings, recipe.train, recipe.model),
    HEED_MODEL_OPTIONS(struct settings, recipe.model),
};
static const char *const defaults[] = {HEED_LANGUAGE_DEFAULTS, NULL};
static const char *const examples[] = {
    "heed train --arch decoder --model m --text book.txt --max-minutes 30",
    "heed train --arch decoder --model m --preset char --text shakespeare.txt",
    "heed train --arch decoder --model m --preset llama --text a.txt b.txt.gz",
    "heed train --arch decoder --model mine --from m --text mine.txt",
    "heed train --resume m",
    NULL,
};
static const heed_option_group groups[] = {
    {"what people need",
     "model text valid-text from resume recipe dry-run tokens context max-minutes max-updates "
     "vocab-size threads seed json",
     true},
    {"data and vocabulary",
     "hold-out vocab-type vocab-min-count vocab-coverage cased vocab bpe-joiner valid-tokens",
     false},
    {"model",
     "arch decoder-layers d ff heads d-k d-v kv-heads dropout ff-dropout activation ff-gated "
     "head-transform ff-bias output-bias pre-norm norm norm-eps residual positions tying "
     "label-smoothing embedding-norm embedding-scale decoder-unit init",
     false},
    TRAIN_GROUP_ATTENTION,
    TRAIN_GROUP_OPTIMISER,
    TRAIN_GROUP_LIMITS,
    TRAIN_GROUP_SAVES,
    {NULL, NULL, false},
};
const heed_option_set train_decoder_options = {
    .command = "heed train --arch decoder",
    .summary = "Train a language model on text",
    .arguments = "[FILE...]",
    .most = -1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = heed_language_presets,
    .examples = examples,
    .groups = groups,
    .defaults = defaults,
    .without = HEED_LANGUAGE_WITHOUT,
};

/* The words behind the options are further files of text: `--text *.txt`. */
static void take_words(heed_option_list *text, const invocation *in)
{
    const int n = text->count + in->words.count;
    const char **items = heed_arena_allocate(in->arena, (size_t)n * sizeof *items);
    for (int i = 0; items && i < n; i++)
        items[i] = i < text->count ? text->items[i] : in->words.items[i - text->count];
    if (items)
        *text = (heed_option_list){items, n};
}

static void take(struct settings *s, const invocation *in)
{
    const char **from = &s->recipe.train.from;
    if (*from)
        *from = find_model(*from, NULL, in->arena);
    take_words(&s->recipe.train.text, in);
    s->recipe.origins = in->origins;
}

static heed_trainer *open_language(void *settings, const invocation *in,
                                   const heed_train_hooks *hooks, heed_error *err)
{
    struct settings *s = settings;
    take(s, in);
    return s->common.resume
               ? heed_language_trainer_resume(s->common.resume, &s->recipe, hooks, NULL, err)
               : heed_language_trainer_new(s->common.folder, &s->recipe, hooks, NULL, err);
}

static heed_status choose(void *settings, const invocation *in, const heed_log_sink *log,
                          heed_error *err)
{
    struct settings *s = settings;
    take(s, in);
    if (!s->recipe.train.text.count)
        return HEED_OK;
    return heed_language_recipe_choose(&s->recipe, log, NULL, err);
}

static void report(const heed_trainer *t, bool json)
{
    const heed_language_report r = heed_language_trainer_report(t);
    if (json) {
        printf("\"bytes\": %lld, \"tokens\": %lld, \"unknown\": %lld, \"validation_bytes\": %lld, "
               "\"validation_tokens\": %lld, \"vocabulary\": %lld, ",
               (long long)r.bytes, (long long)r.tokens, (long long)r.unknown,
               (long long)r.valid_bytes, (long long)r.valid_tokens, (long long)r.vocabulary);
        return;
    }
    printf("text             %lld bytes, %lld tokens to learn; %lld tokens to validate\n",
           (long long)r.bytes, (long long)r.tokens, (long long)r.valid_tokens);
    if (r.unknown)
        printf("unknown          %lld tokens\n", (long long)r.unknown);
    printf("vocabulary       %lld pieces\n", (long long)r.vocabulary);
}

const train_kind train_kind_decoder = {
    .archs = (const char *const[]){"decoder", NULL},
    .options = &train_decoder_options,
    .settings = sizeof(struct settings),
    .open = open_language,
    .choose = choose,
    .report = report,
    .speed = "tokens/s",
    .then = "heed generate --prompt 'The' --model",
};
