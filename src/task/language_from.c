/* language_from.c: starting from a language model: heed's own, or one as it was found. */
#include "engine/found_model.h"
#include "engine/model_directory.h"
#include "engine/packed_weights.h"
#include "task/language_task.h"

heed_status heed__language_start_from(heed__language_run *t, heed_error *err)
{
    heed_language_recipe *r = &t->recipe;
    const heed_model_config own = r->model;
    heed_text_config text;
    heed_status status = heed_model_read_config(r->train.from, t->arena, &r->model, &text, err);
    if (status)
        return status;
    if (r->model.arch != HEED_ARCH_DECODER)
        return heed__fail(err, HEED_ARGUMENT,
                          "'%.300s' is no language model: --from cannot take it", r->train.from);
    const bool given = heed_option_origin_of(&r->origins, "context") != HEED_OPTION_BY_DEFAULT;
    const bool learned = r->model.transformer.positions == HEED_POSITIONS_LEARNED;
    if (given && learned && own.longest > r->model.longest)
        return heed__fail(err, HEED_ARGUMENT,
                          "--context is %lld, expected at most the %lld positions that the model "
                          "has learned",
                          (long long)own.longest, (long long)r->model.longest);
    if (given && !learned)
        r->model.longest = own.longest;
    r->model.dropout = own.dropout;
    r->model.attention.dropout = own.attention.dropout;
    r->model.transformer.ff_dropout = own.transformer.ff_dropout;
    r->model.label_smoothing = own.label_smoothing;
    r->train.bpe_joiner = text.bpe_joiner;
    return HEED_OK;
}

heed_status heed__language_find_vocabulary(const heed__language_run *t, heed__pathname path,
                                           heed_error *err)
{
    const char *from = t->recipe.train.from;
    heed__pathname files[2];
    heed__found_model m;
    if (!heed__is_found(from)) {
        heed_status status = heed__vocabs_find(from, files, err);
        return status ? status : heed__pathname_format(path, err, "%s", files[0]);
    }
    heed_error own = {0};
    if (!heed__found_open(&m, from, &t->allocator, &own)) {
        if (m.lists != HEED__FOUND_FILE)
            heed__fail(&own, HEED_ARGUMENT, "'%.300s' has no vocabulary that can be taken along",
                       from);
        else
            heed__pathname_format(path, &own, "%s", m.vocabulary[0]);
    }
    heed__found_close(&m);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

heed_status heed__language_take_weights(heed__language_run *t, heed_error *err)
{
    const char *from = t->recipe.train.from;
    heed__pathname path;
    heed__found_model m;
    heed_error own = {0};
    if (!heed__is_found(from)) {
        heed_status status = heed__pathname_format(path, err, "%s/model.safetensors", from);
        return status ? status : heed__weights_read(t->model, path, err);
    }
    if (!heed__found_open(&m, from, &t->allocator, &own))
        heed__found_fill(&m, heed_model_params(t->model), &own);
    heed__found_close(&m);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
