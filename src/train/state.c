/* state.c: state.json of a save: where the run stands, and the sizes and checksums of the save's
 * files.  A number that is not there yet (the best score before the first validation) is null. */
#include "base/json.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_NUMBER 1

/* The fields of the state by name: one list for writing and reading. */
#define INTEGERS(X)                                                                                \
    X(update)                                                                                      \
    X(position.epoch)                                                                              \
    X(position.window)                                                                             \
    X(position.batch)                                                                              \
    X(rollbacks)                                                                                   \
    X(best_update)                                                                                 \
    X(stale)                                                                                       \
    X(valid_update)                                                                                \
    X(tokens)                                                                                      \
    X(log_bytes)                                                                                   \
    X(pairs)                                                                                       \
    X(source_bytes)                                                                                \
    X(target_bytes)
/* Not in saves of old: -1 then. */
#define LATER_INTEGERS(X)                                                                          \
    X(checksum)                                                                                    \
    X(valid_pairs)                                                                                 \
    X(valid_source_bytes)                                                                          \
    X(valid_target_bytes)                                                                          \
    X(valid_checksum)
#define REALS(X)                                                                                   \
    X(seconds)                                                                                     \
    X(valid_seconds)                                                                               \
    X(valid_loss)                                                                                  \
    X(bleu)                                                                                        \
    X(chrf)                                                                                        \
    X(best)                                                                                        \
    X(best_loss)                                                                                   \
    X(nll)

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

static void put_files(json_t *root, const heed__save_file *files, int count, bool *whole)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        append(array,
               json_pack("{s:s, s:I, s:I}", "name", files[i].name, "bytes",
                         (json_int_t)files[i].sum.bytes, "crc32", (json_int_t)files[i].sum.crc),
               whole);
    put(root, "files", array, whole);
}

heed_status heed__state_write(const char *path, const heed__train_state *s, int64_t optimizer,
                              int64_t ema, const heed__save_file *files, int count, heed_error *err)
{
    heed_error own = {0};
    json_t *root = json_object();
    bool whole = true;
    put(root, "format", json_integer(FORMAT_NUMBER), &whole);
#define PUT(field) put(root, #field, json_integer(s->field), &whole);
    INTEGERS(PUT)
    LATER_INTEGERS(PUT)
#undef PUT
#define PUT(field) put(root, #field, real_or_null(s->field), &whole);
    REALS(PUT)
#undef PUT
    put(root, "optimizer_updates", json_integer(optimizer), &whole);
    put(root, "ema_updates", json_integer(ema), &whole);
    put_lists(root, s, &whole);
    put_files(root, files, count, &whole);
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
    const char *wrong; /* the first field that is missing or of another kind */
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

static void read_files(struct reading *r, heed__save_file *files, int *count)
{
    const json_t *array;
    *count = array_at(r, "files", HEED_SAVE_FILES, &array);
    for (int i = 0; i < *count; i++) {
        const json_t *file = json_array_get(array, (size_t)i);
        const char *name = json_string_value(json_object_get(file, "name"));
        if (!name || strlen(name) >= sizeof files[i].name || strchr(name, '/')) {
            r->wrong = "files";
            *count = 0;
            return;
        }
        snprintf(files[i].name, sizeof files[i].name, "%s", name);
        files[i].sum.bytes = json_integer_value(json_object_get(file, "bytes"));
        files[i].sum.crc = (uint32_t)json_integer_value(json_object_get(file, "crc32"));
    }
}

heed_status heed__state_read(const char *path, heed__train_state *s, int64_t *optimizer,
                             int64_t *ema, heed__save_file files[HEED_SAVE_FILES], int *count,
                             heed_error *err)
{
    heed_error own = {0};
    struct reading r = {heed__json_open(path, &own), NULL};
    if (!r.root)
        return heed__fail(err, own.status, "%s", own.text);
    heed_status status = HEED_OK;
    *s = (heed__train_state){0};
#define GET(field) s->field = integer_at(&r, #field);
    INTEGERS(GET)
#undef GET
#define GET(field) s->field = json_object_get(r.root, #field) ? integer_at(&r, #field) : -1;
    LATER_INTEGERS(GET)
#undef GET
#define GET(field) s->field = real_at(&r, #field);
    REALS(GET)
#undef GET
    *optimizer = integer_at(&r, "optimizer_updates");
    *ema = integer_at(&r, "ema_updates");
    read_lists(&r, s);
    read_files(&r, files, count);
    if (!r.wrong && integer_at(&r, "format") != FORMAT_NUMBER)
        r.wrong = "format";
    if (r.wrong)
        status = heed__fail(err, HEED_FORMAT, "cannot read '%.300s': '%s' is missing or wrong",
                            path, r.wrong);
    json_decref((json_t *)r.root);
    return status;
}
