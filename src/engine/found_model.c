/* found_model.c: opening a model of another program: recognised, read, described. */
#include "engine/found_model.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/engine.h"
#include "engine/weight_source.h"
#include "model/model_class.h"
#include "vocab/mapped_vocab.h"
#include "vocab/token_list.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static const struct {
    heed__publisher publisher;
    const char *name;
    heed_status (*describe)(heed__found_model *m, heed_error *err); /* NULL: not computed */
} publishers[] = {
    {HEED__CTRANSLATE2, "CTranslate2", heed__describe_ct2},
    {HEED__ARGOS, "Argos Translate", heed__describe_argos},
    {HEED__HUGGING_FACE, "Hugging Face", heed__describe_hugging_face},
    {HEED__GGUF_FILE, "llama.cpp", heed__describe_gguf},
    {HEED__LLAMA2C, "llama2.c", heed__describe_llama2c},
    {HEED__MARIAN, "Marian", heed__describe_marian},
    {HEED__WEIGHTS_ALONE, "weights alone", NULL},
};
#define PUBLISHERS (sizeof publishers / sizeof *publishers)

bool heed__is_found(const char *path)
{
    heed__recognised r;
    return heed__recognise(path, &r, NULL) == HEED_OK && r.publisher != HEED__NOT_FOUND_AS_SUCH;
}

const char *heed__publisher_name(heed__publisher publisher)
{
    for (size_t i = 0; i < PUBLISHERS; i++)
        if (publishers[i].publisher == publisher)
            return publishers[i].name;
    return "unknown";
}

static heed_status read_weights(heed__found_model *m, heed_error *err)
{
    const void *bytes;
    size_t size;
    heed_status status = heed__found_map(m->found, m->where.weights, &bytes, &size, err);
    return status ? status : m->where.read(m->found, bytes, size, err);
}

/* config.json is what is known about a model of Hugging Face. */
static heed_status read_directory(heed__found_model *m, heed_error *err)
{
    json_t *config = heed__json_open(m->where.weights, err);
    if (!config)
        return HEED_FORMAT;
    json_object_update(m->found->about, config);
    json_decref(config);
    return heed__hugging_face_weights(m, err);
}

heed_status heed__found_read(heed__found_model *m, const char *path,
                             const heed_allocator *allocator, heed_error *err)
{
    *m = (heed__found_model){0};
    heed_status status = heed__recognise(path, &m->where, err);
    if (status)
        return status;
    m->found = heed__found_new(m->where.weights, allocator, err);
    if (!m->found)
        return HEED_MEMORY;
    return m->where.read ? read_weights(m, err) : read_directory(m, err);
}

heed_status heed__found_understand(heed__found_model *m, heed_error *err)
{
    heed_status status = heed_model_defaults(&m->config, err);
    m->start = -1;
    for (size_t i = 0; !status && i < PUBLISHERS; i++)
        if (publishers[i].publisher == m->where.publisher && publishers[i].describe)
            return publishers[i].describe(m, err);
    return status ? status
                  : heed__found_fail(m->found, err,
                                     "its weights can be read, but heed does not compute this kind "
                                     "of model; it computes CTranslate2's, Argos's and Marian's "
                                     "Transformers, Hugging Face's marian, bert, gpt2 and llama, "
                                     "llama2.c's and GGUF's llama");
}

heed_status heed__found_open(heed__found_model *m, const char *path,
                             const heed_allocator *allocator, heed_error *err)
{
    heed_status status = heed__found_read(m, path, allocator, err);
    return status ? status : heed__found_understand(m, err);
}

void heed__found_close(heed__found_model *m)
{
    heed__found_free(m->found);
    m->found = NULL;
}

/* ---- vocabularies ---- */

static heed_vocab *open_side(const heed__found_model *m, int side, const heed_allocator *allocator,
                             heed_error *err)
{
    const int64_t expected = side ? m->config.target_vocabulary : m->config.source_vocabulary;
    switch (m->lists) {
    case HEED__FOUND_FILE:
        return heed_vocab_open(m->vocabulary[side], NULL, allocator, err);
    case HEED__FOUND_MAPPED:
        return heed__mapped_vocab_open(m->vocabulary[side], m->pieces[side], expected, allocator,
                                       err);
    default:
        return heed__token_list_open(m->vocabulary[side], expected, allocator, err);
    }
}

bool heed__found_shared(const heed__found_model *m)
{
    return strcmp(m->vocabulary[0], m->vocabulary[1]) == 0 &&
           strcmp(m->pieces[0], m->pieces[1]) == 0;
}

heed_status heed__found_vocabs(const heed__found_model *m, const heed_allocator *allocator,
                               heed_vocab **source, heed_vocab **target, heed_error *err)
{
    heed_error failed = {0};
    *target = NULL;
    *source = open_side(m, 0, allocator, &failed);
    if (*source)
        *target = heed__found_shared(m) ? *source : open_side(m, 1, allocator, &failed);
    if (*target)
        return HEED_OK;
    heed_vocab_free(*source);
    *source = NULL;
    return heed__fail(err, failed.status, "%s", failed.text);
}

/* Special tokens are the vocabularies'; what ends a source, the model's. */
heed_status heed__found_read_config(const char *path, heed_model_config *config,
                                    heed_text_config *text, heed_error *err)
{
    heed__found_model m;
    heed_vocab *source = NULL, *target = NULL;
    heed_error failed = {0};
    if (!heed__found_open(&m, path, NULL, &failed) &&
        !heed__found_vocabs(&m, NULL, &source, &target, &failed)) {
        *config = m.config;
        *text = m.text;
        config->ids.source = heed_vocab_special(source);
        config->ids.target = heed_vocab_special(target);
        if (!m.source_ends)
            config->ids.source.eos = -1;
        if (m.start >= 0)
            config->ids.target.start = m.start;
    }
    heed_vocabs_free(source, target);
    heed__found_close(&m);
    return failed.status ? heed__fail(err, failed.status, "%s", failed.text) : HEED_OK;
}

/* ---- engines ---- */

heed_status heed__found_shortlist(const char *path, const heed_model_config *config,
                                  heed__shortlist *s, const heed_allocator *allocator,
                                  heed_error *err)
{
    heed__recognised where;
    heed__pathname file = "";
    heed_status status = heed__recognise(path, &where, err);
    DIR *d = status ? NULL : opendir(where.folder);
    for (struct dirent *e; d && !status && !*file && (e = readdir(d));)
        if (strncmp(e->d_name, "lex.", 4) == 0)
            status = heed__pathname_in(file, where.folder, e->d_name, err);
    if (d)
        closedir(d);
    if (!status && !*file)
        return heed__fail(err, HEED_IO, "there is no lex.*.bin in '%.255s'", where.folder);
    return status ? status
                  : heed__shortlist_open_lex(s, file, config->source_vocabulary,
                                             config->target_vocabulary,
                                             config->tying == HEED_TIE_ALL, allocator, err);
}

heed_engine *heed__found_engine(const char *path, const heed_model_config *config,
                                const heed_allocator *allocator, heed_error *err)
{
    heed__found_model m;
    heed_error failed = {0};
    heed_model *model = NULL;
    heed_engine *e = NULL;
    if (!heed__found_open(&m, path, allocator, &failed))
        model = heed__model_new_zero(config, allocator, &failed);
    if (model && !heed__found_fill(&m, heed_model_params(model), &failed))
        e = heed__engine_given(model, &(heed__given_int8){&m, heed__found_int8}, allocator,
                               &failed);
    if (e && e->model) { /* it is not packed and stays */
        e->own_model = model;
        model = NULL;
    }
    heed_model_free(model);
    heed__found_close(&m);
    if (failed.status)
        heed__fail(err, failed.status, "%s", failed.text);
    return e;
}
