/* convert.c: a model directory written anew: matrices quantised to int8, laid out as decoding reads
 * them (packed_weights.h), or everything in fp16.  What is not a matrix stays fp32 beside int8: it
 * is small, and gains and biases need their digits. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/names.h"
#include "engine/fold_score.h"
#include "engine/found_model.h"
#include "engine/model_directory.h"
#include "engine/packed_weights.h"
#include "engine/shortlist.h"
#include "engine/weight_source.h"
#include "io/safetensors.h"
#include "tensor/tensor_fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct conversion {
    heed_number_kind kind;
    heed_model *model;
    const heed__found_model *found; /* NULL: one of heed's */
    heed_safetensors_writer *writer;
    heed_arena *arena; /* what the writer borrows */
    heed_error *err;
};

static void *take(const struct conversion *c, int64_t count, size_t size)
{
    void *memory = heed_arena_allocate(c->arena, (size_t)count * size);
    if (!memory)
        heed__fail(c->err, HEED_MEMORY, "out of memory for a model's weights");
    return memory;
}

static void add(const struct conversion *c, const char *name, const char *ending, heed_dtype dtype,
                int rank, const int64_t *dim, const void *data)
{
    char text[512];
    heed_stored s = {.name = text, .dtype = dtype, .rank = rank, .data = data};
    snprintf(text, sizeof text, "%s%s", name, ending);
    memcpy(s.dim, dim, (size_t)rank * sizeof *dim);
    if (heed__stored_bytes(&s, &s.bytes))
        heed_safetensors_writer_add(c->writer, &s, c->err);
}

static void add_int8(const struct conversion *c, const heed_tensor *x, bool table)
{
    heed__panel_weights p = {
        .k = table ? x->cols : x->rows, .n = table ? x->rows : x->cols, .bits = 8};
    const bool given = c->found && heed__found_int8(c->found, x, table, &p, c->arena, c->err);
    if (!given && !heed__make_int8(&p, x, table, c->arena)) {
        heed__fail(c->err, HEED_MEMORY, "out of memory for a model's weights");
        return;
    }
    const int64_t columns = heed__panels(p.n) * HEED_PANEL;
    const int64_t dim[] = {heed__panels(p.n), heed__panel_groups(p.k), HEED_PANEL, 4};
    add(c, x->name, ".panels", HEED_I8, 4, dim, p.bytes);
    add(c, x->name, ".scale", HEED_F32, 1, &columns, p.scale);
    add(c, x->name, ".sum", HEED_I32, 1, &columns, p.sum);
    float *multiplier = given ? take(c, 1, sizeof *multiplier) : NULL;
    if (!multiplier)
        return;
    *multiplier = p.multiplier;
    add(c, x->name, ".multiplier", HEED_F32, 1, &(int64_t){1}, multiplier);
}

static void add_plain(const struct conversion *c, const heed_tensor *x)
{
    const int64_t count = heed_tensor_count(x);
    const bool half = c->kind == HEED_NUMBERS_FP16;
    float *whole = half ? NULL : take(c, count, sizeof *whole);
    uint16_t *halves = half ? take(c, count, sizeof *halves) : NULL;
    for (int64_t i = 0; whole && i < count; i++)
        whole[i] = (float)x->data[i];
    for (int64_t i = 0; halves && i < count; i++)
        halves[i] = heed__to_f16((float)x->data[i]);
    if (whole || halves)
        add(c, x->name, "", half ? HEED_F16 : HEED_F32, x->shape.rank, x->shape.dim,
            half ? (const void *)halves : whole);
}

/* In int8, what is not finite would be a value like any other; fp16 ends at 65504. */
static heed_status check_numbers(const struct conversion *c, const heed_tensor *x)
{
    const bool half = c->kind == HEED_NUMBERS_FP16;
    const int64_t count = heed_tensor_count(x);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)x->data[i]) < (half ? 65520 : (double)INFINITY)))
            return heed__fail(c->err, HEED_NUMERIC,
                              "tensor '%s' holds %g at place %lld, expected %s", x->name,
                              (double)x->data[i], (long long)i,
                              half ? "numbers that fit 16 bits" : "finite numbers");
    return HEED_OK;
}

static void add_all(const struct conversion *c)
{
    const bool int8 = c->kind == HEED_NUMBERS_INT8;
    const heed_params *p = heed_model_params(c->model);
    for (int i = 0; i < heed_params_count(p) && !c->err->status; i++) {
        const heed_param_info info = heed_params_entry(p, i);
        if (check_numbers(c, info.tensor))
            return;
        if (!int8 || info.role == HEED_ROLE_PLAIN)
            add_plain(c, info.tensor);
        else
            add_int8(c, info.tensor, info.role == HEED_ROLE_TABLE);
    }
    if (int8) {
        heed_safetensors_writer_metadata(c->writer, HEED_LAYOUT_KEY, HEED_LAYOUT, c->err);
        heed_safetensors_writer_metadata(c->writer, HEED_BITS_KEY, HEED_BITS, c->err);
    }
}

/* The values of the model. */
static heed_status load(const struct conversion *c, const char *from)
{
    heed__pathname source;
    if (c->found)
        return heed__found_fill(c->found, heed_model_params(c->model), c->err);
    heed_status status = heed__pathname_in(source, from, "model.safetensors", c->err);
    return status ? status : heed_params_load(heed_model_params(c->model), source, c->err);
}

/* The weights of one directory to another's. */
static void convert_weights(struct conversion *c, const heed_model_config *config, const char *from,
                            const char *to)
{
    heed__pathname target;
    if (heed__pathname_in(target, to, "model.safetensors", c->err))
        return;
    c->model = heed__model_new_zero(config, NULL, c->err);
    c->writer = c->model ? heed_safetensors_writer_new(NULL, c->err) : NULL;
    c->arena = c->writer ? heed_arena_new(NULL, c->err) : NULL;
    if (c->arena && !load(c, from)) {
        if (c->kind == HEED_NUMBERS_INT8 && !heed__fold_scores(c->model, c->arena))
            heed__fail(c->err, HEED_MEMORY, "out of memory for a model's weights");
        add_all(c);
    }
    if (!c->err->status)
        heed_safetensors_writer_write(c->writer, target, c->err);
    heed_arena_free(c->arena);
    heed_safetensors_writer_free(c->writer);
    heed_model_free(c->model);
}

/* What belongs to the text is copied as it is. */
static void copy_file(const char *from, const char *to, const char *name, heed_error *err)
{
    heed__pathname source, target;
    struct stat st;
    if (heed__pathname_in(source, from, name, err) || heed__pathname_in(target, to, name, err) ||
        stat(source, &st) != 0)
        return;
    heed__file_copy(source, target, NULL, err);
}

static heed_status check_kind(const heed_model_config *config, heed_number_kind kind,
                              const char *from, heed_error *err)
{
    heed_model *outline = heed_model_outline(config, NULL, err);
    const bool fits = outline && heed__weights_fit(outline);
    heed_model_free(outline);
    if (!outline)
        return err->status;
    if (kind == HEED_NUMBERS_INT8 && !fits)
        return heed__fail(
            err, HEED_ARGUMENT,
            "'%s' cannot be quantised: only a Transformer with dot, scaled-dot, cosine "
            "or (without rotary positions) general scores can; fp16 works for every "
            "model",
            from);
    return HEED_OK;
}

static heed_status check(const heed_model_config *config, heed_number_kind kind, const char *from,
                         heed_error *err)
{
    heed__pathname path;
    if (check_kind(config, kind, from, err) ||
        heed__pathname_in(path, from, "model.safetensors", err))
        return err->status;
    heed_safetensors *f = heed_safetensors_open(path, NULL, err);
    if (f && heed_safetensors_metadata(f, HEED_LAYOUT_KEY))
        heed__fail(err, HEED_ARGUMENT,
                   "'%s' is converted already, and its numbers cannot be had back: convert the "
                   "model that it was made of",
                   from);
    heed_safetensors_close(f);
    return err->status;
}

static heed_status make_folder(const char *to, heed_error *err)
{
    heed__pathname config;
    struct stat st;
    if (mkdir(to, 0777) != 0 && errno != EEXIST)
        return heed__fail(err, HEED_IO, "cannot make '%s': %s", to, strerror(errno));
    heed_status status = heed__pathname_in(config, to, "config.json", err);
    if (!status && stat(config, &st) == 0)
        return heed__fail(err, HEED_ARGUMENT, "'%s' holds a model already: choose another name",
                          to);
    return status;
}

/* A model of another program, with its vocabulary and shortlist. */
static void convert_found(struct conversion *c, const char *from, const char *to)
{
    heed__found_model m;
    heed_model_config config;
    heed_text_config text;
    if (!heed__found_open(&m, from, NULL, c->err) &&
        !heed__found_read_config(from, &config, &text, c->err) &&
        !check_kind(&config, c->kind, from, c->err) && !make_folder(to, c->err)) {
        c->found = &m;
        convert_weights(c, &config, from, to);
        if (!c->err->status && !heed__found_write_text(&m, &config, to, c->err))
            heed_model_describe(to, &config, &text, c->err);
    }
    heed__found_close(&m);
}

/* One of heed's. */
static void convert_own(struct conversion *c, const char *from, const char *to)
{
    static const char *const text_files[] = {
        "shared.spm",        "source.spm",      "target.spm", "shared.vocab", "source.vocab",
        "target.vocab",      "shared.yml",      "source.yml", "target.yml",   HEED__NAMES_FILE,
        HEED_SHORTLIST_FILE, HEED__SAMPLE_FILE, "labels.txt"};
    heed_model_config config;
    heed_text_config text;
    heed_arena *arena = heed_arena_new(NULL, c->err);
    if (arena && !heed_model_read_config(from, arena, &config, &text, c->err) &&
        !check(&config, c->kind, from, c->err) && !make_folder(to, c->err)) {
        convert_weights(c, &config, from, to);
        for (size_t i = 0; !c->err->status && i < sizeof text_files / sizeof *text_files; i++)
            copy_file(from, to, text_files[i], c->err);
        if (!c->err->status) /* last: a directory with a config.json is a model */
            heed_model_describe(to, &config, &text, c->err);
    }
    heed_arena_free(arena);
}

heed_status heed_convert(const char *from, const char *to, heed_number_kind kind, heed_error *err)
{
    if (!from || !to)
        return heed__missing(err, from ? "directory to write" : "model");
    heed_error own = {0};
    struct conversion c = {.kind = kind, .err = &own};
    (heed__is_found(from) ? convert_found : convert_own)(&c, from, to);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
