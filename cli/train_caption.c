/* train_caption.c: `heed train --arch caption`: captions for pictures (Show, Attend and Tell). */
#include "train_kinds.h"

#include <stdio.h>

struct settings {
    struct train_common common;
    heed_caption_recipe recipe;
};
static const heed_option fields[] = {
    TRAIN_COMMON_OPTIONS(struct settings, common),
    HEED_CAPTION_OPTIONS(struct settings, recipe.train),
    HEED_CAPTION_MODEL_OPTIONS(struct settings, recipe.model),
};
static const char *const defaults[] = {HEED_CAPTION_DEFAULTS, NULL};
static const char *const examples[] = {
    "heed train --model m --arch caption --captions photos.tsv --images photos",
    "heed train --model m --arch caption --captions train.tsv --images train.tar.gz --look hard",
    NULL,
};
static const heed_option_group groups[] = {
    {"model and pictures", "model resume captions images mirror dry-run json", true},
    {"validation", "valid-captions valid-images hold-out valid-every valid-minutes", true},
    {"limits", "max-minutes max-updates max-epochs patience threads seed", true},
    {"words and batches", "vocab-size vocab-min-count batch accumulate", false},
    {"the model",
     "arch side channels stages filters look embedding d gate doubly reward entropy expectation "
     "dropout",
     false},
    {"optimiser",
     "optimizer beta1 beta2 eps momentum weight-decay schedule rate rate-floor warmup clip "
     "clip-value ema",
     false},
    {"saves and logs", "average average-kind save-every save-minutes keep log-every", false},
    {NULL, NULL, false},
};
const heed_option_set train_caption_options = {
    .command = "heed train --arch caption",
    .summary = "Train a captioner: a sentence for a picture, and where each word looks",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
    .groups = groups,
    .defaults = defaults,
};

static heed_trainer *open_caption(void *settings, const invocation *in,
                                  const heed_train_hooks *hooks, heed_error *err)
{
    struct settings *s = settings;
    (void)in;
    return s->common.resume
               ? heed_caption_trainer_resume(s->common.resume, &s->recipe, hooks, NULL, err)
               : heed_caption_trainer_new(s->common.folder, &s->recipe, hooks, NULL, err);
}

void train_report_captions(heed_caption_report r, bool json)
{
    if (json) {
        printf("\"pictures\": %lld, \"validation_pictures\": %lld, \"captions\": %lld, "
               "\"vocabulary\": %lld, ",
               (long long)r.pictures, (long long)r.valid_pictures, (long long)r.captions,
               (long long)r.vocabulary);
        return;
    }
    printf("pictures         %lld to train, %lld to validate\n", (long long)r.pictures,
           (long long)r.valid_pictures);
    printf("captions         %lld\n", (long long)r.captions);
    printf("vocabulary       %lld\n", (long long)r.vocabulary);
}

static void report(const heed_trainer *t, bool json)
{
    train_report_captions(heed_caption_trainer_report(t), json);
}

const train_kind train_kind_caption = {
    .archs = (const char *const[]){"caption", NULL},
    .options = &train_caption_options,
    .settings = sizeof(struct settings),
    .open = open_caption,
    .report = report,
    .speed = "words/s",
    .then = "heed caption --model",
};
