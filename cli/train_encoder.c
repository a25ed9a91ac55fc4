/* train_encoder.c: `heed train --arch encoder`: models that label texts and words, make vectors of
 * them, or say what is masked. */
#include "cmd_models.h"
#include "option_groups.h"
#include "train_kinds.h"

#include <heed/encoder.h>
#include <stdio.h>

struct settings {
    struct train_common common;
    heed_encoder_recipe recipe;
};
static const heed_option fields[] = {
    TRAIN_COMMON_OPTIONS(struct settings, common),
    HEED_ENCODER_OPTIONS(struct settings, recipe.train),
    HEED_MODEL_OPTIONS(struct settings, recipe.model),
};
static const char *const defaults[] = {HEED_ENCODER_DEFAULTS, NULL};
static const char *const examples[] = {
    "heed train --model m --arch encoder --task classify --tsv train.tsv --max-minutes 15",
    "heed train --model m --arch encoder --task tag --conll train.conll --valid-conll dev.conll",
    "heed train --model bert --arch encoder --task mlm --text corpus.txt",
    "heed train --model m --arch encoder --task classify --tsv few.tsv --from bert",
    "heed train --model m --arch encoder --task embed --tsv pairs.tsv --from all-MiniLM-L6-v2",
    NULL,
};
static const heed_option_group groups[] = {
    {"model and text",
     "model resume task text tsv conll tag-column from preset recipe dry-run json", true},
    {"validation", "valid-text valid-tsv valid-conll hold-out valid-every valid-minutes", true},
    {"limits", "max-minutes max-updates max-epochs patience threads seed", true},
    {"tokens and batches",
     "tokens vocab-size vocab-min-count cased vocab batch-tokens accumulate word-dropout "
     "mask-share next-sentence temperature",
     false},
    {"the model",
     "arch encoder-layers d ff heads kv-heads d-k d-v dropout ff-dropout label-smoothing "
     "activation ff-gated ff-bias pre-norm norm norm-eps residual positions rope-base "
     "embedding-scale embedding-norm types head-transform output-bias tying longest",
     false},
    {"attention",
     "attention-score attention-pattern attention-normaliser attention-queries attention-memory "
     "position-bias adaptive-span span-penalty attention-beta attention-dropout attention-bias "
     "scale-scores rope-base",
     false},
    {"optimiser",
     "optimizer beta1 beta2 eps momentum weight-decay schedule rate rate-floor warmup clip "
     "clip-value ema",
     false},
    {"saves and logs", "average average-kind save-every save-minutes keep log-every", false},
    {NULL, NULL, false},
};
const heed_option_set train_encoder_options = {
    .command = "heed train --arch encoder",
    .summary = "Train an encoder: a classifier, a tagger, sentence vectors, masked words",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = heed_encoder_presets,
    .examples = examples,
    .groups = groups,
    .defaults = defaults,
    .without = HEED_ENCODER_WITHOUT,
};

static void take(struct settings *s, const invocation *in)
{
    const char **from = &s->recipe.train.from;
    if (*from)
        *from = find_model(*from, NULL, in->arena);
    s->recipe.origins = in->origins;
}

static heed_trainer *open_encoder(void *settings, const invocation *in,
                                  const heed_train_hooks *hooks, heed_error *err)
{
    struct settings *s = settings;
    take(s, in);
    return s->common.resume
               ? heed_encoder_trainer_resume(s->common.resume, &s->recipe, hooks, NULL, err)
               : heed_encoder_trainer_new(s->common.folder, &s->recipe, hooks, NULL, err);
}

static heed_status choose(void *settings, const invocation *in, const heed_log_sink *log,
                          heed_error *err)
{
    struct settings *s = settings;
    const heed_encoder_options *o = &s->recipe.train;
    if (!o->text.count && !o->tsv.count && !o->conll.count)
        return HEED_OK;
    take(s, in);
    return heed_encoder_recipe_choose(&s->recipe, log, NULL, err);
}

static void report(const heed_trainer *t, bool json)
{
    const heed_encoder_report r = heed_encoder_trainer_report(t);
    if (json) {
        printf("\"examples\": %lld, \"validation_examples\": %lld, \"tokens\": %lld, \"cut\": "
               "%lld, \"vocabulary\": %lld, \"labels\": %lld, ",
               (long long)r.examples, (long long)r.valid_examples, (long long)r.tokens,
               (long long)r.cut, (long long)r.vocabulary, (long long)r.labels);
        return;
    }
    printf("examples         %lld to train, %lld to validate\n", (long long)r.examples,
           (long long)r.valid_examples);
    printf("tokens           %lld\n", (long long)r.tokens);
    if (r.cut)
        printf("cut              %lld examples that are too long\n", (long long)r.cut);
    printf("vocabulary       %lld\n", (long long)r.vocabulary);
    if (r.labels)
        printf("labels           %lld\n", (long long)r.labels);
}

const train_kind train_kind_encoder = {
    .archs = (const char *const[]){"encoder", NULL},
    .tasks = (const char *const[]){HEED_ENCODER_TASK_WORDS, NULL},
    .options = &train_encoder_options,
    .settings = sizeof(struct settings),
    .open = open_encoder,
    .choose = choose,
    .report = report,
    .speed = "tokens/s",
    .then = "heed evaluate --model",
};
