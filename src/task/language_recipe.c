/* language_recipe.c: the options of a language model's run: presets, what stands for those that
 * were not given, which of them are refused. */
#include "model/model_class.h"
#include "task/language_task.h"

static const char *const defaults[] = {HEED_LANGUAGE_DEFAULTS, NULL};
static const heed_option fields[] = {
    HEED_LANGUAGE_OPTIONS(heed_language_recipe, train, model),
    HEED_MODEL_OPTIONS(heed_language_recipe, model),
};
const heed_option_set heed__language_set = {
    .command = "heed train --arch decoder",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = heed_language_presets,
    .defaults = defaults,
    .without = HEED_LANGUAGE_WITHOUT,
};

/* nanoGPT's setting for a processor: train_shakespeare_char with the README's arguments. */
static const char *const character[] = {"tokens",
                                        "characters",
                                        "context",
                                        "64",
                                        "batch-tokens",
                                        "768",
                                        "decoder-layers",
                                        "4",
                                        "d",
                                        "128",
                                        "ff",
                                        "512",
                                        "heads",
                                        "4",
                                        "dropout",
                                        "0",
                                        "attention-bias",
                                        "false",
                                        "ff-bias",
                                        "false",
                                        "activation",
                                        "gelu",
                                        "max-updates",
                                        "2000",
                                        "rate",
                                        "0.001",
                                        "rate-floor",
                                        "0.0001",
                                        "warmup",
                                        "100",
                                        "beta2",
                                        "0.99",
                                        "weight-decay",
                                        "0.1",
                                        "valid-every",
                                        "250",
                                        "average",
                                        "0",
                                        NULL};
/* Radford et al. 2019; the options' own defaults. */
static const char *const gpt2[] = {"tokens",
                                   "bytes",
                                   "vocab-size",
                                   "50257",
                                   "context",
                                   "1024",
                                   "decoder-layers",
                                   "12",
                                   "d",
                                   "768",
                                   "ff",
                                   "3072",
                                   "heads",
                                   "12",
                                   "positions",
                                   "learned",
                                   "activation",
                                   "gelu-tanh",
                                   "pre-norm",
                                   "true",
                                   "norm",
                                   "layer",
                                   "attention-bias",
                                   "true",
                                   NULL};
/* Touvron et al. 2023, in the size of stories15M, with two heads of keys and values. */
static const char *const llama[] = {"tokens",
                                    "sentencepiece",
                                    "context",
                                    "256",
                                    "decoder-layers",
                                    "6",
                                    "d",
                                    "288",
                                    "ff",
                                    "768",
                                    "heads",
                                    "6",
                                    "kv-heads",
                                    "2",
                                    "positions",
                                    "rotary",
                                    "activation",
                                    "silu",
                                    "ff-gated",
                                    "true",
                                    "pre-norm",
                                    "true",
                                    "norm",
                                    "rms",
                                    "attention-bias",
                                    "false",
                                    "ff-bias",
                                    "false",
                                    NULL};

const heed_option_bundle *heed_language_presets(void)
{
    static const heed_option_bundle presets[] = {
        {"char", "4 layers, d 128, 4 heads, characters, 64 at once: nanoGPT's on a processor",
         character},
        {"gpt2", "12 layers, d 768, 12 heads, learned positions, 1024 at once: GPT-2's smallest",
         gpt2},
        {"llama",
         "6 layers, d 288, 6 heads that share 2 of keys, rotary, RMSNorm, gated SiLU, 256 at once",
         llama},
        {NULL, NULL, NULL},
    };
    return presets;
}

heed_status heed_language_recipe_parse(heed_language_recipe *recipe, int count,
                                       const char *const *words, heed_arena *arena, heed_error *err)
{
    if (!recipe)
        return heed__missing(err, "recipe");
    heed_option_result result;
    *recipe = (heed_language_recipe){0};
    heed_status status =
        heed_option_parse(&heed__language_set, count, words, recipe, arena, &result, err);
    recipe->origins = result.origins;
    return status;
}

heed_status heed__language_absolute(heed_language_recipe *r, heed_arena *arena, heed_error *err)
{
    static const char *const files[] = {"text", "valid-text", "from", "vocab", NULL};
    return heed__options_absolute(&heed__language_set, r, files, arena, err);
}

static bool by_default(const heed_language_recipe *r, const char *name)
{
    return heed_option_origin_of(&r->origins, name) <= HEED_OPTION_BY_BUNDLE;
}

/* Defaults of the options give way to what was asked for. */
void heed__language_resolve(heed_language_recipe *r)
{
    heed_language_options *o = &r->train;
    heed_loop_options *l = &o->loop;
    const bool all = o->tokens == HEED_LANGUAGE_WORDS || o->tokens == HEED_LANGUAGE_CHARACTERS;
    const bool falls = l->schedule == HEED_SCHEDULE_COSINE || l->schedule == HEED_SCHEDULE_LINEAR;
    if (by_default(r, "rate-floor") && (!falls || l->rate_floor > l->rate))
        l->rate_floor = 0;
    if (by_default(r, "weight-decay") && l->optimizer != HEED_ADAMW)
        l->weight_decay = 0;
    heed__loop_resolve(l);
    if (!o->vocab_size && !all)
        o->vocab_size = 8000;
}

/* ---- what would have no effect ---- */

static bool learns(const heed_language_recipe *r)
{
    return !r->train.vocab && !r->train.from;
}

static bool learns_subwords(const heed_language_recipe *r)
{
    return learns(r) && r->train.tokens == HEED_LANGUAGE_SENTENCEPIECE;
}

static bool learns_words(const heed_language_recipe *r)
{
    return learns(r) && r->train.tokens == HEED_LANGUAGE_WORDS;
}

static bool learns_wordpiece(const heed_language_recipe *r)
{
    return learns(r) && r->train.tokens == HEED_LANGUAGE_WORDPIECE;
}

static bool has_words(const heed_language_recipe *r)
{
    return r->train.tokens == HEED_LANGUAGE_WORDS;
}

static bool from_nothing(const heed_language_recipe *r)
{
    return !r->train.from;
}

static bool holds_out(const heed_language_recipe *r)
{
    return !r->train.valid_text.count;
}

#define LEARNED "is for a vocabulary that is learned: not with --vocab or --from"
#define FROM "is the model's: not with --from"
static const struct {
    const char *name;
    bool (*heard)(const heed_language_recipe *r);
    const char *otherwise;
} needs[] = {
    {"vocab-size", learns, LEARNED},
    {"vocab-coverage", learns, LEARNED},
    {"vocab-type", learns_subwords, "needs --tokens sentencepiece, and a vocabulary to learn"},
    {"vocab-min-count", learns_words, "needs --tokens whitespace, and a vocabulary to learn"},
    {"cased", learns_wordpiece, "needs --tokens wordpiece, and a vocabulary to learn"},
    {"bpe-joiner", has_words, "needs --tokens whitespace"},
    {"vocab", from_nothing, FROM},
    {"tokens", from_nothing, FROM},
    {"init", from_nothing, FROM},
    {"decoder-layers", from_nothing, FROM},
    {"d", from_nothing, FROM},
    {"ff", from_nothing, FROM},
    {"heads", from_nothing, FROM},
    {"kv-heads", from_nothing, FROM},
    {"positions", from_nothing, FROM},
    {"activation", from_nothing, FROM},
    {"norm", from_nothing, FROM},
    {"pre-norm", from_nothing, FROM},
    {"hold-out", holds_out, "is for training without --valid-text"},
};

heed_status heed__language_check(const heed_language_recipe *r, heed_error *err)
{
    const heed_language_options *o = &r->train;
    if (r->model.arch != HEED_ARCH_DECODER)
        return heed__fail(err, HEED_ARGUMENT, "a language model needs --arch decoder");
    if (!o->text.count)
        return heed__fail(err, HEED_ARGUMENT, "nothing to learn from: give --text");
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (heed__option_typed(&r->origins, needs[i].name) && !needs[i].heard(r))
            return heed__fail(err, HEED_ARGUMENT, "--%s %s", needs[i].name, needs[i].otherwise);
    heed_status status = heed__check_heard(&r->origins, &r->model, &o->loop, err);
    if (!status)
        status = heed__options_check_names(&heed__language_set, r, err);
    if (!status)
        status = heed__loop_check(&o->loop, err);
    heed_model_config c = r->model; /* a learned vocabulary comes later */
    c.source_vocabulary = 0;
    c.target_vocabulary = c.target_vocabulary ? c.target_vocabulary : 300;
    return status ? status : heed__model_check(&c, err);
}
