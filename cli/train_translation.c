/* train_translation.c: `heed train` for pairs of sentences. */
#include "cmd_models.h"
#include "option_groups.h"
#include "train_kinds.h"

#include <heed/task.h>
#include <stdio.h>

struct settings {
    struct train_common common;
    heed_recipe recipe;
};
static const heed_option fields[] = {
    TRAIN_COMMON_OPTIONS(struct settings, common),
    HEED_TRAIN_OPTIONS(struct settings, recipe.train),
    HEED_MODEL_OPTIONS(struct settings, recipe.model),
};
static const char *const examples[] = {
    "heed train --model m --source train.en --target train.de",
    "heed train --model m --tsv pairs.tsv.gz --valid-tsv dev.tsv --max-minutes 30",
    "heed train --model m --tsv pairs.tsv --preset tiny --dry-run",
    "heed train --model mine --from en-de --tsv mine.tsv",
    "heed train --resume m",
    NULL,
};
#define OTHERS_ROW(name) &train_##name##_options,
static const heed_option_set *const others[] = {TRAIN_OTHERS_LIST(OTHERS_ROW) NULL};
const heed_option_set train_options = {
    .command = "heed train",
    .summary = "Train a translator; with --arch a language model, an encoder, a model of pictures",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = heed_model_presets,
    .examples = examples,
    .groups = train_groups,
    .parts = others,
};

static void take(struct settings *s, const invocation *in)
{
    const char **from = &s->recipe.train.from;
    if (*from)
        *from = find_model(*from, NULL, in->arena);
    s->recipe.origins = in->origins;
}

static heed_trainer *open_translation(void *settings, const invocation *in,
                                      const heed_train_hooks *hooks, heed_error *err)
{
    struct settings *s = settings;
    take(s, in);
    return s->common.resume ? heed_trainer_resume(s->common.resume, &s->recipe, hooks, NULL, err)
                            : heed_trainer_new(s->common.folder, &s->recipe, hooks, NULL, err);
}

static heed_status choose(void *settings, const invocation *in, const heed_log_sink *log,
                          heed_error *err)
{
    struct settings *s = settings;
    if (!s->recipe.train.source.count && !s->recipe.train.tsv.count)
        return HEED_OK;
    take(s, in);
    return heed_recipe_choose(&s->recipe, log, NULL, err);
}

static void report(const heed_trainer *t, bool json)
{
    const heed_text_report text = heed_trainer_text(t);
    if (json) {
        printf("\"pairs\": %lld, \"validation_pairs\": %lld, \"left_out\": %lld, "
               "\"source_vocabulary\": %lld, \"target_vocabulary\": %lld, ",
               (long long)text.pairs, (long long)text.valid_pairs, (long long)text.left_out,
               (long long)text.source_vocabulary, (long long)text.target_vocabulary);
        return;
    }
    printf("pairs            %lld to train, %lld to validate\n", (long long)text.pairs,
           (long long)text.valid_pairs);
    if (text.left_out)
        printf("left out         %lld pairs that are too long\n", (long long)text.left_out);
    printf("vocabulary       %lld source, %lld target\n", (long long)text.source_vocabulary,
           (long long)text.target_vocabulary);
}

const train_kind train_kind_translation = {
    .archs = (const char *const[]){"transformer", "rnn", NULL},
    .options = &train_options,
    .settings = sizeof(struct settings),
    .open = open_translation,
    .choose = choose,
    .report = report,
    .speed = "tokens/s, source and target",
    .then = "echo 'A sentence.' | heed translate --model",
};
