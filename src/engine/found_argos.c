/* found_argos.c: packages of Argos Translate, packed (NAME.argosmodel) or unpacked: a model of
 * CTranslate2's in model/, pieces of sentencepiece.model for both languages, whose ids are those of
 * the model's lists, and metadata.json. */
#include "base/file.h"
#include "base/json.h"
#include "engine/found_model.h"

#include <string.h>

/* A text of metadata.json, for people. */
static heed_status say(const heed__found_model *m, const json_t *metadata, const char *key,
                       heed_error *err)
{
    const char *text = json_string_value(json_object_get(metadata, key));
    return text ? heed__found_say(m->found, key, json_string(text), err) : HEED_OK;
}

static heed_status read_metadata(const heed__found_model *m, const char *package, heed_error *err)
{
    heed__pathname path;
    heed_status status = heed__pathname_in(path, package, "metadata.json", err);
    json_t *metadata = status ? NULL : heed__json_open(path, err);
    if (!metadata)
        return HEED_FORMAT;
    static const char *const keys[] = {"from_code", "to_code", "package_version"};
    for (size_t i = 0; !status && i < sizeof keys / sizeof *keys; i++)
        status = say(m, metadata, keys[i], err);
    const char *prefix = json_string_value(json_object_get(metadata, "target_prefix"));
    if (!status && prefix && *prefix)
        status = heed__found_fail(m->found, err,
                                  "its metadata.json asks for '%.60s' before a translation, which "
                                  "heed does not do",
                                  prefix);
    json_decref(metadata);
    return status;
}

static heed_status find_pieces(const heed__found_model *m, const char *package,
                               heed__pathname pieces, heed_error *err)
{
    heed__pathname other;
    heed_status status = heed__pathname_in(pieces, package, "sentencepiece.model", err);
    if (!status)
        status = heed__pathname_in(other, package, "bpe.model", err);
    if (status || heed__file_is_there(pieces))
        return status;
    return heed__found_fail(m->found, err,
                            heed__file_is_there(other)
                                ? "its words are cut by bpe.model, expected sentencepiece.model"
                                : "there is no sentencepiece.model in its package");
}

heed_status heed__describe_argos(heed__found_model *m, heed_error *err)
{
    heed__pathname package, pieces;
    heed_status status = heed__pathname_split(m->where.folder, package, NULL, err);
    if (!status)
        status = read_metadata(m, package, err);
    if (!status)
        status = find_pieces(m, package, pieces, err);
    if (!status)
        status = heed__describe_ct2(m, err);
    for (int side = 0; !status && side < 2; side++) {
        memcpy(m->pieces[side], m->vocabulary[side], sizeof m->pieces[side]);
        memcpy(m->vocabulary[side], pieces, sizeof pieces);
    }
    m->lists = HEED__FOUND_MAPPED;
    m->text.tokens = HEED_UNIGRAM;
    return status;
}
