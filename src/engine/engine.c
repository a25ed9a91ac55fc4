/* engine.c: a model ready to decode, shared by any number of sessions. */
#include "engine/engine.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/found_model.h"
#include "engine/model_directory.h"
#include "model/model_class.h"

#include <heed/io.h>

#include <unistd.h>

static heed_engine *begin(const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_engine *e = heed__allocate_zeroed(&a, 1, sizeof *e);
    if (e)
        e->allocator = a;
    else
        heed__fail(err, HEED_MEMORY, "out of memory for an engine");
    return e;
}

static heed_engine *complete(heed_engine *e)
{
    if (e && (e->weights || e->model)) {
        e->begin = e->weights ? heed__session_rows : heed__session_decoder;
        return e;
    }
    heed_engine_free(e);
    return NULL;
}

heed_engine *heed__engine_given(const heed_model *m, const heed__given_int8 *given,
                                const heed_allocator *allocator, heed_error *err)
{
    heed_engine *e = begin(allocator, err);
    if (e && heed__weights_fit(m))
        e->weights = heed__weights_given(m, given, &e->allocator, err);
    else if (e)
        e->model = m;
    return complete(e);
}

heed_engine *heed_engine_new(const heed_model *m, const heed_allocator *allocator, heed_error *err)
{
    if (!m)
        return heed__missing(err, "model"), NULL;
    return heed__engine_given(m, NULL, allocator, err);
}

heed_engine *heed__engine_open(const heed_model_config *config, const char *folder,
                               const heed_allocator *allocator, heed_error *err)
{
    heed__pathname weights;
    if (heed__is_found(folder))
        return heed__found_engine(folder, config, allocator, err);
    if (heed__pathname_in(weights, folder, "model.safetensors", err))
        return NULL;
    heed_engine *e = begin(allocator, err);
    heed_model *outline = e ? heed_model_outline(config, &e->allocator, err) : NULL;
    if (outline && heed__weights_fit(outline)) {
        e->weights = heed__weights_open(outline, weights, &e->allocator, err);
    } else if (outline) {
        e->own_model = heed__model_new_zero(config, &e->allocator, err);
        if (e->own_model && !heed_params_load(heed_model_params(e->own_model), weights, err))
            e->model = e->own_model;
    }
    heed_model_free(outline);
    return complete(e);
}

heed_engine *heed_engine_open(const char *folder, const heed_allocator *allocator, heed_error *err)
{
    heed_model_config config;
    heed_text_config text;
    heed_arena *arena = heed_arena_new(allocator, err);
    const char *found = arena ? heed_model_find(folder, arena, err) : NULL;
    heed_engine *e = NULL;
    if (found && !heed_model_read_config(found, arena, &config, &text, err))
        e = heed__engine_open(&config, found, allocator, err);
    heed_arena_free(arena);
    return e;
}

heed_status heed_engine_open_shortlist(heed_engine *e, const char *folder, heed_error *err)
{
    if (!e)
        return heed__missing(err, "engine");
    const heed_model_config *c = heed_engine_configuration(e);
    heed__pathname path;
    if (!e->weights)
        return heed__fail(err, HEED_ARGUMENT, "only a packed Transformer uses a shortlist");
    heed__shortlist_close(&e->shortlist);
    if (heed__is_found(folder))
        return heed__found_shortlist(folder, c, &e->shortlist, &e->allocator, err);
    heed_status status = heed__pathname_in(path, folder, HEED_SHORTLIST_FILE, err);
    if (!status && access(path, F_OK) != 0)
        return heed__fail(err, HEED_IO, "there is no '%.255s': 'heed shortlist' makes one", path);
    return status ? status
                  : heed__shortlist_open(&e->shortlist, path, c->source_vocabulary,
                                         c->target_vocabulary, &e->allocator, err);
}

void heed_engine_free(heed_engine *e)
{
    if (!e)
        return;
    heed_allocator a = e->allocator;
    heed__shortlist_close(&e->shortlist);
    heed__weights_free(e->weights);
    heed_model_free(e->own_model);
    heed__release(&a, e, 1, sizeof *e);
}

const heed_model_config *heed_engine_configuration(const heed_engine *e)
{
    if (!e)
        return NULL;
    return e->weights ? &e->weights->config : heed_model_configuration(e->model);
}

int heed_engine_weight_bits(const heed_engine *e)
{
    if (!e)
        return 0;
    return e->weights ? e->weights->bits : 0;
}
