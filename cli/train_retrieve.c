/* train_retrieve.c: `heed train --arch retrieve`: pictures and texts that find each other. */
#include "train_kinds.h"

struct settings {
    struct train_common common;
    heed_match_recipe recipe;
};
static const heed_option fields[] = {
    TRAIN_COMMON_OPTIONS(struct settings, common),
    HEED_CAPTION_OPTIONS(struct settings, recipe.train),
    HEED_MATCH_MODEL_OPTIONS(struct settings, recipe.model),
};
static const char *const defaults[] = {HEED_MATCH_DEFAULTS, NULL};
static const char *const examples[] = {
    "heed train --model m --arch retrieve --captions photos.tsv --images photos",
    NULL,
};
static const heed_option_group groups[] = {
    {"model and pictures", "model resume captions images mirror dry-run json", true},
    {"validation", "valid-captions valid-images hold-out valid-every valid-minutes", true},
    {"limits", "max-minutes max-updates max-epochs patience threads seed", true},
    {"words and batches", "vocab-size vocab-min-count batch accumulate", false},
    {"the model", "arch side channels stages filters embedding d sharpness contrast dropout",
     false},
    {"optimiser",
     "optimizer beta1 beta2 eps momentum weight-decay schedule rate rate-floor warmup clip "
     "clip-value ema",
     false},
    {"saves and logs", "average average-kind save-every save-minutes keep log-every", false},
    {NULL, NULL, false},
};
const heed_option_set train_retrieve_options = {
    .command = "heed train --arch retrieve",
    .summary = "Train a model with which texts and pictures find each other",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
    .groups = groups,
    .defaults = defaults,
};

static heed_trainer *open_retrieve(void *settings, const invocation *in,
                                   const heed_train_hooks *hooks, heed_error *err)
{
    struct settings *s = settings;
    (void)in;
    return s->common.resume
               ? heed_match_trainer_resume(s->common.resume, &s->recipe, hooks, NULL, err)
               : heed_match_trainer_new(s->common.folder, &s->recipe, hooks, NULL, err);
}

static void report(const heed_trainer *t, bool json)
{
    train_report_captions(heed_match_trainer_report(t), json);
}

const train_kind train_kind_retrieve = {
    .archs = (const char *const[]){"retrieve", NULL},
    .options = &train_retrieve_options,
    .settings = sizeof(struct settings),
    .open = open_retrieve,
    .report = report,
    .speed = "pictures/s",
    .then = "heed retrieve --images DIR 'a text' --model",
};
