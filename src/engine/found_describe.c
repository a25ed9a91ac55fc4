/* found_describe.c: what a found model is, for people: format, architecture, sizes. */
#include "base/error.h"
#include "engine/found_model.h"
#include "files/found.h"
#include "model/model_class.h"
#include "tensor/tensor_fields.h"

#include <string.h>

bool heed_found_is(const char *path)
{
    return heed__is_found(path);
}

/* Values of each type, and all of them. */
static void count_types(const heed__found *f, json_t *to)
{
    json_t *types = json_object();
    json_int_t all = 0;
    for (int64_t i = 0; i < f->count; i++) {
        const heed__found_tensor *t = &f->tensor[i];
        const char *name = heed__found_type_name(t->type);
        const json_int_t before = json_integer_value(json_object_get(types, name));
        json_object_set_new(types, name, json_integer(before + (json_int_t)t->count));
        all += (json_int_t)t->count;
    }
    json_object_set_new(to, "tensors", json_integer((json_int_t)f->count));
    json_object_set_new(to, "values", json_integer(all));
    json_object_set_new(to, "types", types);
}

/* Sizes under the names that the publishers give them. */
static void take_sizes(const heed__found *f, json_t *to)
{
    static const char *const keys[] = {
        "model_type",
        "general.architecture",
        "name",
        "from_code",
        "to_code",
        "package_version",
        "d_model",
        "hidden_size",
        "n_embd",
        "dim",
        "num_hidden_layers",
        "encoder_layers",
        "decoder_layers",
        "n_layer",
        "layers",
        "num_attention_heads",
        "encoder_attention_heads",
        "n_head",
        "heads",
        "num_key_value_heads",
        "kv_heads",
        "intermediate_size",
        "encoder_ffn_dim",
        "hidden",
        "vocab_size",
        "vocabulary",
        "tokens",
        "max_position_embeddings",
        "longest",
        "source pieces",
        "always",
        "best of each piece",
        "entries",
    };
    json_t *sizes = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(f->about, keys[i]);
        if (value)
            json_object_set(sizes, keys[i], value);
    }
    const char *key,
        *architecture = json_string_value(json_object_get(sizes, "general.architecture"));
    json_t *value;
    const size_t length = architecture ? strlen(architecture) : 0;
    json_object_foreach(f->about, key,
                        value) if (length && strncmp(key, architecture, length) == 0 &&
                                   key[length] == '.') json_object_set(sizes, key, value);
    json_object_set_new(to, "about", sizes);
}

/* Columns of matrices that are computed as int8, and those whose sums need 32 bits. */
static void count_columns(const heed__found_model *m, const heed_model *outline, json_t *to)
{
    const heed_params *p = heed_model_params(outline);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    int64_t all = 0, wide = 0;
    for (int i = 0; arena && m->own_int8 && i < heed_params_count(p); i++) {
        const heed_param_info info = heed_params_entry(p, i);
        const heed_tensor *x = info.tensor;
        const bool table = info.role == HEED_ROLE_TABLE;
        heed__panel_weights w = {.k = table ? x->cols : x->rows, .n = table ? x->rows : x->cols};
        heed_arena_reset(arena);
        if (info.role == HEED_ROLE_PLAIN || !heed__found_int8(m, x, table, &w, arena, NULL))
            continue;
        all += w.n;
        wide += heed__panel_exceeding(w.bytes, w.k, w.n, heed__panel_most(&w));
    }
    heed_arena_free(arena);
    if (!all)
        return;
    json_object_set_new(to, "int8_columns", json_integer((json_int_t)all));
    json_object_set_new(to, "wide_columns", json_integer((json_int_t)wide));
}

static heed_status write_json(json_t *all, const char *path, heed_arena *arena, const char **json,
                              heed_error *err)
{
    const size_t size = json_dumpb(all, NULL, 0, JSON_INDENT(1));
    char *text = size ? heed_arena_allocate(arena, size + 1) : NULL;
    if (!text)
        return heed__fail(err, HEED_MEMORY, "out of memory for '%.200s'", path);
    json_dumpb(all, text, size, JSON_INDENT(1));
    text[size] = '\0';
    *json = text;
    return HEED_OK;
}

heed_status heed_found_describe(const char *path, heed_arena *arena, const char **json,
                                heed_error *err)
{
    heed__found_model m;
    heed_error failed = {0}, why = {0};
    heed_status status = heed__found_read(&m, path, NULL, &failed);
    json_t *all = status ? NULL : json_object();
    if (all) {
        char summary[HEED_MODEL_SUMMARY];
        heed__found_understand(&m, &why);
        heed_model *outline = why.status ? NULL : heed_model_outline(&m.config, NULL, &why);
        json_object_set_new(all, "format", json_string(m.found->format));
        json_object_set_new(all, "publisher", json_string(heed__publisher_name(m.where.publisher)));
        if (outline)
            json_object_set_new(all, "summary", json_string(heed_model_summary(outline, summary)));
        else
            json_object_set_new(all, "not_opened", json_string(why.text));
        if (outline)
            count_columns(&m, outline, all);
        take_sizes(m.found, all);
        count_types(m.found, all);
        heed_model_free(outline);
        status = write_json(all, path, arena, json, &failed);
        json_decref(all);
    }
    heed__found_close(&m);
    return failed.status ? heed__fail(err, failed.status, "%s", failed.text) : status;
}
