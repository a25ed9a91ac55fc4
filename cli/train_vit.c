/* train_vit.c: `heed train --arch vit`: which class a picture is of (Vision Transformer). */
#include "train_kinds.h"

#include <heed/vit.h>
#include <stdio.h>

struct settings {
    struct train_common common;
    heed_vit_recipe recipe;
};
static const heed_option fields[] = {
    TRAIN_COMMON_OPTIONS(struct settings, common),
    HEED_VIT_OPTIONS(struct settings, recipe.train),
    HEED_VIT_MODEL_OPTIONS(struct settings, recipe.model),
};
static const char *const defaults[] = {HEED_VIT_DEFAULTS, NULL};
static const char *const examples[] = {
    "heed train --model m --arch vit --images photos",
    "heed train --model m --arch vit --images photos --side 64 --max-minutes 20",
    "heed train --model m --arch vit --idx train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz",
    NULL,
};
static const heed_option_group groups[] = {
    {"model and pictures", "model resume images idx dry-run json", true},
    {"validation", "valid-images valid-idx hold-out valid-every valid-minutes", true},
    {"limits", "max-minutes max-updates max-epochs patience threads seed", true},
    {"pictures and batches", "turn zoom shift mirror batch accumulate label-smoothing", false},
    {"the model", "arch side channels patch d ff layers heads positions dropout", false},
    {"optimiser",
     "optimizer beta1 beta2 eps momentum weight-decay schedule rate rate-floor warmup clip "
     "clip-value ema",
     false},
    {"saves and logs", "average average-kind save-every save-minutes keep log-every", false},
    {NULL, NULL, false},
};
const heed_option_set train_vit_options = {
    .command = "heed train --arch vit",
    .summary = "Train a picture classifier, the Vision Transformer: a folder of pictures a class",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
    .groups = groups,
    .defaults = defaults,
};

static heed_trainer *open_vit(void *settings, const invocation *in, const heed_train_hooks *hooks,
                              heed_error *err)
{
    struct settings *s = settings;
    s->recipe.origins = in->origins;
    return s->common.resume
               ? heed_vit_trainer_resume(s->common.resume, &s->recipe, hooks, NULL, err)
               : heed_vit_trainer_new(s->common.folder, &s->recipe, hooks, NULL, err);
}

static heed_status choose(void *settings, const invocation *in, const heed_log_sink *log,
                          heed_error *err)
{
    struct settings *s = settings;
    if (!s->recipe.train.images && !s->recipe.train.idx.count)
        return HEED_OK;
    s->recipe.origins = in->origins;
    return heed_vit_recipe_choose(&s->recipe, log, NULL, err);
}

static void report(const heed_trainer *t, bool json)
{
    const heed_vit_report r = heed_vit_trainer_report(t);
    if (json) {
        printf("\"pictures\": %lld, \"validation_pictures\": %lld, \"classes\": %lld, \"side\": "
               "%lld, \"channels\": %lld, ",
               (long long)r.pictures, (long long)r.valid_pictures, (long long)r.classes,
               (long long)r.side, (long long)r.channels);
        return;
    }
    printf("pictures         %lld to train, %lld to validate\n", (long long)r.pictures,
           (long long)r.valid_pictures);
    printf("classes          %lld\n", (long long)r.classes);
    printf("size             %lld x %lld pixels, %lld channel%s\n", (long long)r.side,
           (long long)r.side, (long long)r.channels, r.channels > 1 ? "s" : "");
}

const train_kind train_kind_vit = {
    .archs = (const char *const[]){"vit", NULL},
    .options = &train_vit_options,
    .settings = sizeof(struct settings),
    .open = open_vit,
    .choose = choose,
    .report = report,
    .speed = "pictures/s",
    .then = "heed classify --model",
};
