/* encoder_from.c: starting from a model: an encoder that heed trained, or BERT as it was found. */
#include "base/file.h"
#include "encoder/encoder.h"
#include "engine/found_model.h"
#include "engine/model_directory.h"
#include "engine/packed_weights.h"
#include "model/model_class.h"
#include "task/encoder_task.h"

#include <string.h>

heed_status heed__encoder_start_from(heed__encoding *t, heed_error *err)
{
    const char *from = t->recipe.train.from;
    heed_model_config own = t->recipe.model, c;
    heed_text_config text;
    heed_status status = heed_model_read_config(from, t->arena, &c, &text, err);
    if (status)
        return status;
    if (c.arch != HEED_ARCH_ENCODER || c.features)
        return heed__fail(err, HEED_ARGUMENT,
                          "'%.300s' is no encoder of text: --from cannot take it", from);
    t->recipe.model = c;
    heed_model_config *m = &t->recipe.model;
    m->dropout = own.dropout;
    m->attention.dropout = own.attention.dropout;
    m->transformer.ff_dropout = own.transformer.ff_dropout;
    m->label_smoothing = own.label_smoothing;
    t->text.bpe_joiner = text.bpe_joiner;
    t->recipe.train.vocab_size = 0;
    return HEED_OK;
}

static heed_status copy_found(const char *from, const char *path, heed_error *err)
{
    heed__found_model m;
    heed_error own = {0};
    if (!heed__found_open(&m, from, NULL, &own)) {
        if (m.lists != HEED__FOUND_FILE)
            heed__fail(&own, HEED_ARGUMENT, "'%.300s' has no vocabulary that can be taken along",
                       from);
        else
            heed__file_copy(m.vocabulary[0], path, NULL, &own);
    }
    heed__found_close(&m);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

heed_status heed__encoder_copy_vocabulary(const heed__encoding *t, const char *path,
                                          heed_error *err)
{
    const char *from = t->recipe.train.from;
    heed__pathname files[2];
    if (heed__is_found(from))
        return copy_found(from, path, err);
    heed_status status = heed__vocabs_find(from, files, err);
    return status ? status : heed__file_copy(files[0], path, NULL, err);
}

/* ---- weights ---- */

static heed_model *open_found(const char *from, const heed_allocator *a, heed_error *err)
{
    heed__found_model f;
    heed_model *m = NULL;
    heed_error own = {0};
    if (!heed__found_open(&f, from, a, &own))
        m = heed__model_new_zero(&f.config, a, &own);
    if (m)
        heed__found_fill(&f, heed_model_params(m), &own);
    heed__found_close(&f);
    if (own.status)
        heed__fail(err, own.status, "%s", own.text);
    return m;
}

static heed_model *open_own(const heed__encoding *t, heed_error *err)
{
    heed__pathname path;
    heed_model_config c;
    heed_text_config text;
    const char *from = t->recipe.train.from;
    if (heed_model_read_config(from, t->arena, &c, &text, err) ||
        heed__pathname_in(path, from, "model.safetensors", err))
        return NULL;
    heed_model *m = heed__model_new_zero(&c, &t->allocator, err);
    if (m)
        heed__weights_read(m, path, err);
    return m;
}

/* The head goes along where it answers the same: words, or labels of the same names. */
static heed_status same_head(const heed__encoding *t, const heed_model *other, bool *same,
                             heed_error *err)
{
    const char *const *labels;
    int64_t count;
    *same = false;
    if (heed_model_configuration(other)->labels != t->recipe.model.labels)
        return HEED_OK;
    *same = true;
    if (!t->recipe.model.labels)
        return HEED_OK;
    heed_status status = heed__labels_read(t->recipe.train.from, t->arena, &labels, &count, err);
    *same = !status && count == t->label_count;
    for (int64_t i = 0; *same && i < count; i++)
        *same = strcmp(labels[i], t->labels[i]) == 0;
    return status;
}

static heed_status copy_params(heed_params *to, const heed_params *from, bool head,
                               const char *name, heed_error *err)
{
    for (int i = 0; i < heed_params_count(to); i++) {
        const heed_param_info e = heed_params_entry(to, i);
        const bool of_head = strncmp(e.name, "output.", 7) == 0;
        heed_tensor *x = of_head && !head ? NULL : heed_params_find(from, e.name);
        const int64_t n = heed_tensor_count(e.tensor);
        if (x && heed_tensor_count(x) == n)
            memcpy(heed_tensor_data(e.tensor), heed_tensor_data(x), (size_t)n * sizeof(heed_real));
        else if (!of_head)
            return heed__fail(err, HEED_FORMAT, "'%.300s' has no weights that fit '%s'", name,
                              e.name);
    }
    return HEED_OK;
}

heed_status heed__encoder_take_weights(heed__encoding *t, heed_error *err)
{
    const char *from = t->recipe.train.from;
    heed_error own = {0};
    bool head = false;
    heed_model *m =
        heed__is_found(from) ? open_found(from, &t->allocator, &own) : open_own(t, &own);
    if (!own.status && m && !same_head(t, m, &head, &own))
        copy_params(heed_model_params(t->model), heed_model_params(m), head, from, &own);
    heed_model_free(m);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
