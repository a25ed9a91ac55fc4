/* recipe.c: the options of a run: what stands for those that were not given, which of them may
 * change when a run is resumed, and which another model brings. */
#include "base/error.h"
#include "base/option_parse.h"
#include "engine/model_directory.h"
#include "task/run_options.h"
#include "task/translation.h"

#include <string.h>

static const heed_option fields[] = {
    HEED_TRAIN_OPTIONS(heed_recipe, train),
    HEED_MODEL_OPTIONS(heed_recipe, model),
};
const heed_option_set heed__recipe_set = {
    .command = "heed train",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = heed_model_presets,
};

heed_status heed_recipe_parse(heed_recipe *recipe, int count, const char *const *words,
                              heed_arena *arena, heed_error *err)
{
    if (!recipe)
        return heed__missing(err, "recipe");
    heed_option_result result;
    *recipe = (heed_recipe){0};
    heed_status status =
        heed_option_parse(&heed__recipe_set, count, words, recipe, arena, &result, err);
    recipe->origins = result.origins;
    return status;
}

/* ---- what was not given ---- */

heed_status heed__recipe_absolute(heed_recipe *r, heed_arena *arena, heed_error *err)
{
    static const char *const files[] = {"source",       "target",       "tsv",  "valid-source",
                                        "valid-target", "valid-tsv",    "from", "vocab",
                                        "source-vocab", "target-vocab", NULL};
    return heed__options_absolute(&heed__recipe_set, r, files, arena, err);
}

void heed__recipe_resolve(heed_recipe *r)
{
    heed_train_options *o = &r->train;
    heed__loop_resolve(&o->loop);
    if (!o->vocab_size && o->tokens == HEED_TOKENS_SENTENCEPIECE)
        o->vocab_size = 8000;
}

bool heed__recipe_given(const heed_recipe *r, const heed_recipe *plain, const char *name)
{
    return heed__option_given(&heed__recipe_set, &r->origins, r, plain, name);
}

/* ---- on disk ---- */

heed_status heed_recipe_open(const char *folder, heed_recipe *recipe, heed_arena *arena,
                             heed_error *err)
{
    const char *words[2];
    heed_status status = heed__stored_options(folder, arena, words, err);
    return status ? status : heed_recipe_parse(recipe, 2, words, arena, err);
}

/* ---- on resume ---- */

/* Another validation set or metric would make the best score so far meaningless, and so would other
 * translations of the set where these are what is scored. */
const char *const *heed__recipe_may_change(const heed_recipe *r)
{
    static const char *const names[] = {"valid-beam", "valid-lines", NULL};
    return r->train.valid_metric == HEED_VALID_LOSS ? names : NULL;
}

/* ---- from another model ---- */

static bool is_given(const heed_recipe *r, const char *name)
{
    return heed_option_origin_of(&r->origins, name) != HEED_OPTION_BY_DEFAULT;
}

/* Nothing that was asked for may differ from what the other model is. */
static heed_status check_same(const heed_recipe *r, const heed_recipe *from, heed_error *err)
{
    for (int i = 0; i < heed__recipe_set.count; i++) {
        const heed_option *o = &fields[i];
        if (is_given(r, o->name) &&
            !heed__option_same(o, (const char *)r + o->offset, (const char *)from + o->offset))
            return heed__fail(err, HEED_ARGUMENT,
                              "--%s is not what the model '%.300s' has: with --from, leave it out",
                              o->name, r->train.from);
    }
    return HEED_OK;
}

static void take_text(heed_train_options *o, const heed_text_config *text, heed__pathname path[2])
{
    const bool words = text->tokens == HEED_WHITESPACE;
    o->tokens = words ? HEED_TOKENS_WHITESPACE : HEED_TOKENS_SENTENCEPIECE;
    o->vocab_type = words ? HEED_UNIGRAM : text->tokens;
    o->bpe_joiner = text->bpe_joiner;
    o->joint = strcmp(path[0], path[1]) == 0;
    o->vocab = o->joint ? path[0] : NULL;
    o->source_vocab = o->joint ? NULL : path[0];
    o->target_vocab = o->joint ? NULL : path[1];
}

/* A config file may name them with the values that stand for nothing. */
static bool asks_for_vocabulary(const heed_recipe *r)
{
    static const char *const names[] = {"vocab",      "source-vocab",    "target-vocab",
                                        "vocab-size", "vocab-min-count", "vocab-coverage"};
    const heed_train_options *o = &r->train;
    bool asks = o->vocab || o->source_vocab || o->target_vocab || o->vocab_size ||
                o->vocab_min_count > 1 || o->vocab_coverage < 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        asks |= heed_option_origin_of(&r->origins, names[i]) == HEED_OPTION_BY_COMMAND_LINE;
    return asks;
}

heed_status heed__recipe_start_from(heed_recipe *r, heed_text_config *text, heed_arena *arena,
                                    heed_error *err)
{
    const heed_train_options *o = &r->train;
    heed_recipe from = *r;
    heed__pathname *path = heed_arena_allocate(arena, 2 * sizeof *path);
    if (!path)
        return heed__fail(err, HEED_MEMORY, "out of memory for a path");
    if (asks_for_vocabulary(r))
        return heed__fail(err, HEED_ARGUMENT,
                          "--from brings its own vocabulary: leave out --vocab, --source-vocab, "
                          "--target-vocab, --vocab-size, --vocab-min-count and --vocab-coverage");
    if (heed_model_read_config(o->from, arena, &from.model, text, err) ||
        heed__vocabs_find(o->from, path, err))
        return err->status;
    take_text(&from.train, text, path);
    /* Of the model, but no more than how it is trained. */
    from.model.dropout = r->model.dropout;
    from.model.attention.dropout = r->model.attention.dropout;
    from.model.transformer.ff_dropout = r->model.transformer.ff_dropout;
    from.model.label_smoothing = r->model.label_smoothing;
    if (check_same(r, &from, err))
        return err->status;
    *r = from;
    return HEED_OK;
}
