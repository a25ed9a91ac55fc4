/* model_directory.c: what lies in a model directory beside the weights: config.json, whose
 * lines come from the same option table as the command line's options, and the vocabularies. */
#include "engine/model_directory.h"
#include "base/error.h"
#include "engine/found_model.h"
#include "model/model_class.h"
#include "text/special_ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- config.json ---- */

struct description {
    heed_model_config model;
    heed_text_config text;
    const char *source_ids, *target_ids; /* NULL: those of heed's own vocabularies */
    int64_t format;
    /* Names of format 0 alone. */
    int window, choice;
    int64_t distance;
};

/* Fields by which a later format differs get a row in `later`: an older file has not got them, and
 * they take the value that makes the model as it was. */
#define FORMAT 4
static const struct {
    const char *name;
    int from, before; /* formats that have it */
} later[] = {

    {"attention-pattern", 1, FORMAT + 1}, {"attention-normaliser", 1, FORMAT + 1},
    {"attention-window", 0, 1},           {"window", 0, 1},
    {"attention-choice", 0, 1},           {"decoder-unit", 2, FORMAT + 1},
    {"zero-start", 2, FORMAT + 1},        {"adaptive-span", 3, FORMAT + 1},
    {"span-penalty", 3, FORMAT + 1},      {"attention-queries", 4, FORMAT + 1},
};
#define OLD_FIELDS 3
static const heed_option fields[] = {
    HEED_OPTION_INT(struct description, format, "format", NULL, 0, FORMAT, "N",
                    "of this file; without it, 0"),
    HEED_MODEL_OPTIONS(struct description, model),
    HEED_OPTION_INT(struct description, model.source_vocabulary, "source-vocabulary", NULL, 0,
                    INT32_MAX, "N", "pieces of the source vocabulary"),
    HEED_OPTION_INT(struct description, model.target_vocabulary, "target-vocabulary", NULL, 0,
                    INT32_MAX, "N", "pieces of the target vocabulary"),
    HEED_OPTION_INT(struct description, model.features, "features", NULL, 0, INT32_MAX, "N",
                    "columns of what is read instead of tokens"),
    HEED_OPTION_INT(struct description, model.labels, "labels", NULL, 0, INT32_MAX, "N",
                    "what is answered instead of pieces"),
    HEED_OPTION_CHOICE(
        struct description, text.tokens, "tokens", "unigram",
        HEED_WORDS("unigram", "bpe", "whitespace", "characters", "bytes", "wordpiece"),
        "how lines become tokens"),
    HEED_OPTION_TEXT(struct description, text.bpe_joiner, "bpe-joiner", NULL, "TEXT",
                     "whitespace tokens: ends a piece that goes on in the next"),
    HEED_OPTION_INT(struct description, text.trained_length, "trained-length", NULL, 0, INT32_MAX,
                    "N", "source tokens of 90 in 100 sentences of the training, at most"),
    HEED_OPTION_INT(struct description, text.trained_longest, "trained-longest", NULL, 0, INT32_MAX,
                    "N", "source tokens of the longest"),
    HEED_OPTION_BOOL(struct description, text.protects, "protects", NULL,
                     "placeholders stand for what must not be changed"),
    HEED_OPTION_TEXT(struct description, text.task, "task", NULL, "NAME",
                     "what an encoder was trained for"),
    HEED_OPTION_TEXT(struct description, source_ids, "source-ids", NULL, "NAME=ID...",
                     "special tokens of the source vocabulary; null: heed's own"),
    HEED_OPTION_TEXT(struct description, target_ids, "target-ids", NULL, "NAME=ID...",
                     "special tokens of the target vocabulary; null: heed's own"),
    HEED_OPTION_CHOICE(struct description, window, "attention-window", "global",
                       HEED_WORDS("global", "local-m", "local-p"), "format 0: attention-pattern"),
    HEED_OPTION_INT(struct description, distance, "window", "10", 0, 1000000, "N",
                    "format 0: D of local-m and local-p; 0: 10"),
    HEED_OPTION_CHOICE(struct description, choice, "attention-choice", "soft",
                       HEED_WORDS("soft", "hard"), "format 0: attention-normaliser"),
};
#define N_FIELDS ((int)(sizeof fields / sizeof *fields))
/* What is written: all but the old names; and what is read. */
static const heed_option_set written_set = {
    .command = "config.json", .fields = fields, .count = N_FIELDS - OLD_FIELDS};
static const heed_option_set read_set = {
    .command = "config.json", .fields = fields, .count = N_FIELDS};

/* A file has every field of its format, and no others.  Format 0 was never held to it. */
static heed_status check_format(const struct description *d, const heed_option_origins *origins,
                                const char *path, heed_error *err)
{
    for (int i = 0; i < N_FIELDS; i++) {
        const char *name = fields[i].name;
        const bool there = heed_option_origin_of(origins, name) != HEED_OPTION_BY_DEFAULT;
        int from = 0, before = FORMAT + 1;
        for (size_t k = 0; k < sizeof later / sizeof *later; k++)
            if (strcmp(later[k].name, name) == 0) {
                from = later[k].from;
                before = later[k].before;
            }
        const bool wanted = d->format >= from && d->format < before;
        if (there && !wanted)
            return heed__fail(err, HEED_FORMAT, "'%s': '%s' is no field of format %lld", path, name,
                              (long long)d->format);
        const bool may_be_null = fields[i].type == HEED_OPTION_TYPE_TEXT;
        if (!there && wanted && d->format > 0 && !may_be_null)
            return heed__fail(err, HEED_FORMAT, "'%s' lacks '%s', which format %lld has", path,
                              name, (long long)d->format);
    }
    return HEED_OK;
}

static void take_old_names(struct description *d)
{
    static const int patterns[] = {HEED_PATTERN_GLOBAL, HEED_PATTERN_LOCAL_M, HEED_PATTERN_LOCAL_P};
    static const int normalisers[] = {HEED_NORMALISE_SOFT, HEED_NORMALISE_HARD};
    heed_attention_config *a = &d->model.attention;
    a->pattern = (heed_slot_spec)HEED_ONE(patterns[d->window], {d->window ? d->distance : 0});
    a->normaliser = (heed_slot_spec)HEED_ONE(normalisers[d->choice], {0});
}

static const struct special {
    const char *name;
    size_t offset;
} specials[] = {
    {"unk", offsetof(heed_special_ids, unk)},
    {"bos", offsetof(heed_special_ids, bos)},
    {"eos", offsetof(heed_special_ids, eos)},
    {"pad", offsetof(heed_special_ids, pad)},
    {"mask", offsetof(heed_special_ids, mask)},
    {"cls", offsetof(heed_special_ids, cls)},
    {"sep", offsetof(heed_special_ids, sep)},
    {"start", offsetof(heed_special_ids, start)},
    {"placeholder", offsetof(heed_special_ids, placeholder)},
};
#define SPECIALS (sizeof specials / sizeof *specials)

static int32_t *id_at(heed_special_ids *ids, size_t i)
{
    return (int32_t *)((char *)ids + specials[i].offset);
}

/* "unk=1 eos=0 ...": those that there are; NULL for heed's own.  False when memory is short. */
static bool write_ids(const heed_special_ids *from, heed_arena *arena, const char **text)
{
    heed_special_ids own = HEED_OWN_IDS, ids = heed__ids_or_own(from);
    bool same = true;
    size_t n = 0;
    char *to = heed_arena_allocate(arena, SPECIALS * 32);
    for (size_t i = 0; to && i < SPECIALS; i++) {
        same &= *id_at(&ids, i) == *id_at(&own, i);
        if (*id_at(&ids, i) >= 0)
            n += (size_t)snprintf(to + n, SPECIALS * 32 - n, "%s%s=%d", n ? " " : "",
                                  specials[i].name, (int)*id_at(&ids, i));
    }
    *text = same ? NULL : to;
    return to;
}

static heed_status read_ids(const char *text, int64_t vocabulary, const char *path,
                            heed_special_ids *ids, heed_error *err)
{
    *ids = HEED_OWN_IDS;
    for (size_t i = 0; text && i < SPECIALS; i++)
        *id_at(ids, i) = -1;
    while (text && *text) {
        char name[16];
        int32_t id;
        int length = 0;
        size_t i = 0;
        if (sscanf(text, "%15[a-z]=%" SCNd32 "%n", name, &id, &length) != 2 || !length)
            return heed__fail(err, HEED_FORMAT,
                              "'%s': special tokens '%.40s', expected as in 'unk=0 eos=2'", path,
                              text);
        while (i < SPECIALS && strcmp(name, specials[i].name) != 0)
            i++;
        if (i == SPECIALS)
            return heed__fail(err, HEED_FORMAT, "'%s': special token '%s' is not known", path,
                              name);
        if (id < 0 || id >= vocabulary)
            return heed__fail(err, HEED_FORMAT,
                              "'%s': special token '%s' is %d, expected 0 to %lld", path, name,
                              (int)id, (long long)vocabulary - 1);
        *id_at(ids, i) = id;
        text += length;
        text += strspn(text, " ");
    }
    ids->placeholders = ids->placeholder < 0 ? 0 : HEED_PLACEHOLDERS;
    return HEED_OK;
}

heed_status heed_model_describe(const char *folder, const heed_model_config *model,
                                const heed_text_config *text, heed_error *err)
{
    heed__pathname path;
    heed_status status = heed__pathname_in(path, folder, "config.json", err);
    if (status)
        return status;
    struct description d = {.model = *model, .text = *text, .format = FORMAT};
    heed_error failed = {0};
    heed_arena *arena = heed_arena_new(NULL, &failed);
    /* A side without a vocabulary has no special tokens. */
    const bool ids =
        arena &&
        (!model->source_vocabulary || write_ids(&model->ids.source, arena, &d.source_ids)) &&
        (!model->target_vocabulary || write_ids(&model->ids.target, arena, &d.target_ids));
    const char *json = ids ? heed_option_config(&written_set, &d, arena) : NULL;
    if (!json)
        heed__fail(&failed, HEED_MEMORY, "out of memory for writing '%s'", path);
    else
        heed_text_save(path, json, &failed);
    heed_arena_free(arena);
    return failed.status ? heed__fail(err, failed.status, "%s", failed.text) : HEED_OK;
}

heed_status heed_model_read_config(const char *folder, heed_arena *arena, heed_model_config *model,
                                   heed_text_config *text, heed_error *err)
{
    heed__pathname path, option;
    struct stat st;
    if (heed__is_found(folder))
        return heed__found_read_config(folder, model, text, err);
    heed_status status = heed__pathname_in(path, folder, "config.json", err);
    if (status)
        return status;
    if (stat(folder, &st) != 0)
        return heed__fail(err, HEED_IO, "cannot open the model '%s': %s", folder, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return heed__fail(err, HEED_IO,
                          "cannot open the model '%s': expected a directory with config.json, "
                          "model.safetensors and a vocabulary",
                          folder);
    int n = snprintf(option, sizeof option, "--config=%s", path);
    if (n < 0 || (size_t)n >= sizeof option)
        return heed__fail(err, HEED_ARGUMENT, "the name of '%.40s...' is too long", path);
    struct description d;
    heed_option_result result;
    const char *const argv[] = {option};
    status = heed_option_parse(&read_set, 1, argv, &d, arena, &result, err);
    if (!status)
        status = check_format(&d, &result.origins, path, err);
    if (status)
        return status;
    if (d.format == 0)
        take_old_names(&d);
    const heed_side sides = heed__model_class_of(d.model.arch)->sides;
    const bool source = !(sides & HEED_SOURCE) || d.model.source_vocabulary || d.model.features;
    if (!source || (sides & HEED_TARGET && !d.model.target_vocabulary))
        return heed__fail(err, HEED_FORMAT, "'%s' lacks '%s-vocabulary': is it a model's?", path,
                          source ? "target" : "source");
    *model = d.model;
    *text = d.text;
    status = read_ids(d.source_ids, model->source_vocabulary, path, &model->ids.source, err);
    return status ? status
                  : read_ids(d.target_ids, model->target_vocabulary, path, &model->ids.target, err);
}

/* ---- vocabularies ---- */

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

heed_status heed__vocabs_find(const char *folder, heed__pathname path[2], heed_error *err)
{
    static const char *const names[][2] = {
        {"shared.spm", "shared.spm"},     {"source.spm", "target.spm"},
        {"shared.vocab", "shared.vocab"}, {"source.vocab", "target.vocab"},
        {"shared.yml", "shared.yml"},     {"source.yml", "target.yml"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int side = 0; side < 2; side++) {
            heed_status status = heed__pathname_in(path[side], folder, names[i][side], err);
            if (status)
                return status;
        }
        if (is_there(path[0]) || is_there(path[1]))
            return HEED_OK;
    }
    return heed__fail(
        err, HEED_IO,
        "no vocabulary in '%s', expected shared.spm, or source.spm and target.spm, or "
        "the same names ending in .vocab or .yml",
        folder);
}

static heed_status open_found_vocabs(const char *folder, const heed_allocator *allocator,
                                     heed_vocab **source, heed_vocab **target, heed_error *err)
{
    heed__found_model m;
    heed_error failed = {0};
    if (!heed__found_open(&m, folder, allocator, &failed))
        heed__found_vocabs(&m, allocator, source, target, &failed);
    heed__found_close(&m);
    return failed.status ? heed__fail(err, failed.status, "%s", failed.text) : HEED_OK;
}

heed_status heed_vocabs_open(const char *folder, const char *joiner,
                             const heed_allocator *allocator, heed_vocab **source,
                             heed_vocab **target, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder");
    heed_error failed = {0};
    heed__pathname path[2];
    *source = *target = NULL;
    if (heed__is_found(folder))
        return open_found_vocabs(folder, allocator, source, target, err);
    if (!heed__vocabs_find(folder, path, &failed))
        *source = heed_vocab_open(path[0], joiner, allocator, &failed);
    if (*source)
        *target = strcmp(path[0], path[1]) == 0
                      ? *source
                      : heed_vocab_open(path[1], joiner, allocator, &failed);
    if (*target)
        return HEED_OK;
    heed_vocab_free(*source);
    *source = NULL;
    return heed__fail(err, failed.status, "%s", failed.text);
}

void heed_vocabs_free(heed_vocab *source, heed_vocab *target)
{
    if (target != source)
        heed_vocab_free(target);
    heed_vocab_free(source);
}
