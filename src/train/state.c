/* state.c: state.json of a save: where the run stands, and the sizes and checksums of the save's
 * files.  A number that is not there yet (the best score before the first validation) is null. */
#include "base/json.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1 knew translations only. */
#define FORMAT_NUMBER 2

/* The fields of the state by name: one list for writing and reading. */
#define INTEGERS(X)                                                                                \
    X(update)                                                                                      \
    X(position.epoch)                                                                              \
    X(position.at[0])                                                                              \
    X(position.at[1])                                                                              \
    X(position.at[2])                                                                              \
    X(rollbacks)                                                                                   \
    X(best_update)                                                                                 \
    X(stale)                                                                                       \
    X(valid_update)                                                                                \
    X(log_bytes)
#define REALS(X)                                                                                   \
    X(seconds)                                                                                     \
    X(valid_seconds)                                                                               \
    X(best_first)                                                                                  \
    X(terms)

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* What there is no memory for must not be left out: `whole` goes false. */
static void put(json_t *object, const char *name, json_t *value, bool *whole)
{
    *whole = json_object_set_new(object, name, value) == 0 && *whole;
}

static void append(json_t *array, json_t *value, bool *whole)
{
    *whole = json_array_append_new(array, value) == 0 && *whole;
}

static json_t *measure_object(const heed_measure *m)
{
    return json_pack("{s:s, s:o, s:b}", "name", m->name, "value", real_or_null(m->value), "larger",
                     m->larger_is_better);
}

static void put_measures(json_t *root, const heed__train_state *s, bool *whole)
{
    json_t *measures = json_array(), *data = json_array();
    for (int i = 0; i < s->measures; i++)
        append(measures, measure_object(&s->measure[i]), whole);
    for (int i = 0; i < s->n_data; i++)
        append(
            data,
            json_pack("{s:s, s:I}", "name", s->data[i].name, "value", (json_int_t)s->data[i].value),
            whole);
    put(root, "measures", measures, whole);
    put(root, "best", s->best.name ? measure_object(&s->best) : json_null(), whole);
    put(root, "data", data, whole);
}

static void put_sets(json_t *root, const heed__train_state *s, const heed__save_parts *parts,
                     bool *whole)
{
    json_t *sets = json_array();
    for (int k = 0; k < parts->sets; k++)
        append(sets,
               json_pack("{s:I, s:I, s:o}", "optimizer_updates", (json_int_t)parts->optimizer[k],
                         "ema_updates", (json_int_t)parts->ema[k], "loss_sum",
                         real_or_null(s->sum[k])),
               whole);
    put(root, "sets", sets, whole);
}

static void put_lists(json_t *root, const heed__train_state *s, bool *whole)
{
    json_t *candidates = json_array(), *saves = json_array();
    for (int i = 0; i < s->n_candidates; i++)
        append(candidates,
               json_pack("[Io]", (json_int_t)s->candidates[i].update,
                         real_or_null(s->candidates[i].score)),
               whole);
    for (int i = 0; i < s->n_saves; i++)
        append(saves, json_integer(s->saves[i]), whole);
    put(root, "candidates", candidates, whole);
    put(root, "saves", saves, whole);
}

static void put_files(json_t *root, const heed__save_parts *parts, bool *whole)
{
    json_t *array = json_array();
    for (int i = 0; i < parts->n_files; i++) {
        const heed__save_file *f = &parts->files[i];
        append(array,
               json_pack("{s:s, s:I, s:I}", "name", f->name, "bytes", (json_int_t)f->sum.bytes,
                         "crc32", (json_int_t)f->sum.crc),
               whole);
    }
    put(root, "files", array, whole);
}

heed_status heed__state_write(const char *path, const heed__train_state *s,
                              const heed__save_parts *parts, heed_error *err)
{
    heed_error own = {0};
    json_t *root = json_object();
    bool whole = true;
    put(root, "format", json_integer(FORMAT_NUMBER), &whole);
#define PUT(field) put(root, #field, json_integer(s->field), &whole);
    INTEGERS(PUT)
#undef PUT
#define PUT(field) put(root, #field, real_or_null(s->field), &whole);
    REALS(PUT)
#undef PUT
    put_sets(root, s, parts, &whole);
    put_measures(root, s, &whole);
    put_lists(root, s, &whole);
    put_files(root, parts, &whole);
    char *text =
        whole ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17) | JSON_SORT_KEYS) : NULL;
    if (!text)
        heed__fail(&own, HEED_MEMORY, "out of memory for '%.400s'", path);
    else
        heed_text_save(path, text, &own);
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    json_decref(root);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

/* ---- reading: one flag for everything that can be wrong ---- */

struct reading {
    const json_t *root;
    heed_arena *arena;
    const char *wrong; /* the first field that is missing or of another kind */
    bool full;         /* there was no memory for a name */
};

static int64_t integer_at(struct reading *r, const char *name)
{
    const json_t *v = json_object_get(r->root, name);
    if (!json_is_integer(v) && !r->wrong)
        r->wrong = name;
    return json_integer_value(v);
}

static double real_value(const json_t *v)
{
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static double real_at(struct reading *r, const char *name)
{
    const json_t *v = json_object_get(r->root, name);
    if (!json_is_number(v) && !json_is_null(v) && !r->wrong)
        r->wrong = name;
    return real_value(v);
}

static int array_at(struct reading *r, const char *name, int most, const json_t **array)
{
    *array = json_object_get(r->root, name);
    size_t n = json_array_size(*array);
    if ((!json_is_array(*array) || n > (size_t)most) && !r->wrong)
        r->wrong = name;
    return n > (size_t)most ? 0 : (int)n;
}

static void read_lists(struct reading *r, heed__train_state *s)
{
    const json_t *array;
    s->n_candidates = array_at(r, "candidates", HEED_MAX_AVERAGE, &array);
    for (int i = 0; i < s->n_candidates; i++) {
        const json_t *pair = json_array_get(array, (size_t)i);
        s->candidates[i] = (heed__ranked_save){json_integer_value(json_array_get(pair, 0)),
                                               real_value(json_array_get(pair, 1))};
    }
    s->n_saves = array_at(r, "saves", HEED_MAX_KEEP, &array);
    for (int i = 0; i < s->n_saves; i++)
        s->saves[i] = json_integer_value(json_array_get(array, (size_t)i));
}

static void read_files(struct reading *r, heed__save_parts *parts)
{
    const json_t *array;
    parts->n_files = array_at(r, "files", HEED_SAVE_FILES, &array);
    for (int i = 0; i < parts->n_files; i++) {
        const json_t *file = json_array_get(array, (size_t)i);
        const char *name = json_string_value(json_object_get(file, "name"));
        heed__save_file *f = &parts->files[i];
        if (!name || strlen(name) >= sizeof f->name || strchr(name, '/')) {
            r->wrong = "files";
            parts->n_files = 0;
            return;
        }
        snprintf(f->name, sizeof f->name, "%s", name);
        f->sum.bytes = json_integer_value(json_object_get(file, "bytes"));
        f->sum.crc = (uint32_t)json_integer_value(json_object_get(file, "crc32"));
    }
}

/* A name, in the arena; "" where there is none. */
static const char *name_at(struct reading *r, const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    if (!name) {
        r->wrong = r->wrong ? r->wrong : "name";
        return "";
    }
    char *copy = heed_arena_allocate(r->arena, strlen(name) + 1);
    r->full = r->full || !copy;
    return copy ? memcpy(copy, name, strlen(name) + 1) : "";
}

static heed_measure measure_at(struct reading *r, const json_t *object)
{
    return (heed_measure){name_at(r, object), real_value(json_object_get(object, "value")),
                          json_is_true(json_object_get(object, "larger"))};
}

static void read_measures(struct reading *r, heed__train_state *s)
{
    const json_t *array, *best = json_object_get(r->root, "best");
    s->measures = array_at(r, "measures", HEED_MAX_MEASURES, &array);
    for (int i = 0; i < s->measures; i++)
        s->measure[i] = measure_at(r, json_array_get(array, (size_t)i));
    s->best = json_is_object(best) ? measure_at(r, best) : (heed_measure){.value = NAN};
    s->n_data = array_at(r, "data", HEED_MAX_FINGERPRINTS, &array);
    for (int i = 0; i < s->n_data; i++) {
        const json_t *object = json_array_get(array, (size_t)i);
        s->data[i] = (heed_fingerprint){name_at(r, object),
                                        json_integer_value(json_object_get(object, "value"))};
    }
}

static void read_sets(struct reading *r, heed__train_state *s, heed__save_parts *parts)
{
    const json_t *array;
    parts->sets = array_at(r, "sets", HEED_MAX_SETS, &array);
    for (int k = 0; k < parts->sets; k++) {
        const json_t *set = json_array_get(array, (size_t)k);
        parts->optimizer[k] = json_integer_value(json_object_get(set, "optimizer_updates"));
        parts->ema[k] = json_integer_value(json_object_get(set, "ema_updates"));
        s->sum[k] = real_value(json_object_get(set, "loss_sum"));
    }
}

static void read_all(struct reading *r, heed__train_state *s, heed__save_parts *parts)
{
#define GET(field) s->field = integer_at(r, #field);
    INTEGERS(GET)
#undef GET
#define GET(field) s->field = real_at(r, #field);
    REALS(GET)
#undef GET
    read_sets(r, s, parts);
    read_measures(r, s);
    read_lists(r, s);
    read_files(r, parts);
}

heed_status heed__state_read(const char *path, heed__train_state *s, heed__save_parts *parts,
                             heed_arena *arena, heed_error *err)
{
    heed_error own = {0};
    struct reading r = {.root = heed__json_open(path, &own), .arena = arena};
    heed_status status = HEED_OK;
    if (!r.root)
        return heed__fail(err, own.status, "%s", own.text);
    *s = (heed__train_state){0};
    *parts = (heed__save_parts){0};
    const int64_t format = integer_at(&r, "format");
    if (!r.wrong && format != FORMAT_NUMBER)
        status = heed__fail(err, HEED_STATE,
                            "'%.300s' is of format %lld, expected %d: end this training with the "
                            "version of heed that began it",
                            path, (long long)format, FORMAT_NUMBER);
    if (!status)
        read_all(&r, s, parts);
    if (!status && r.full)
        status = heed__fail(err, HEED_MEMORY, "cannot read '%.300s': out of memory", path);
    if (!status && r.wrong)
        status = heed__fail(err, HEED_FORMAT, "cannot read '%.300s': '%s' is missing or wrong",
                            path, r.wrong);
    json_decref((json_t *)r.root);
    return status;
}
