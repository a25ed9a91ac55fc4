/* export.c: models that heed trained, written for other programs.
 *
 * The tables of names that open another program's files are read the other way round: a parameter
 * becomes the tensors that a rule names, side by side along its columns. */
#include "engine/export.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "engine/model_directory.h"
#include "engine/packed_weights.h"
#include "model/model_class.h"
#include "tensor/tensor_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *heed__export_take(const heed__export *x, int64_t count, size_t size)
{
    void *memory = heed_arena_allocate(x->arena, (size_t)(count > 0 ? count : 1) * size);
    if (!memory)
        heed__fail(x->err, HEED_MEMORY, "out of memory for writing '%.255s'", x->to);
    return memory;
}

/* ---- tensors ---- */

static heed__export_tensor *add(heed__export *x, const char *name, int64_t rows, int64_t cols,
                                const heed_tensor *of)
{
    if (x->err->status)
        return NULL;
    if (x->count == x->capacity) {
        const int64_t capacity = x->capacity ? 2 * x->capacity : 256;
        heed__export_tensor *grown = heed__export_take(x, capacity, sizeof *grown);
        if (!grown)
            return NULL;
        if (x->count)
            memcpy(grown, x->tensor, (size_t)x->count * sizeof *grown);
        x->tensor = grown;
        x->capacity = capacity;
    }
    char *copy = heed__export_take(x, (int64_t)strlen(name) + 1, 1);
    float *value = heed__export_take(x, (rows ? rows : 1) * cols, sizeof *value);
    if (!copy || !value)
        return NULL;
    memcpy(copy, name, strlen(name) + 1);
    heed__export_tensor *t = &x->tensor[x->count++];
    *t = (heed__export_tensor){.name = copy, .rows = rows, .cols = cols, .value = value, .of = of};
    return t;
}

bool heed__export_has(const heed__export *x, const char *name)
{
    for (int64_t i = 0; i < x->count; i++)
        if (strcmp(x->tensor[i].name, name) == 0)
            return true;
    return false;
}

void heed__export_zeros(heed__export *x, const char *name, int64_t count)
{
    heed__export_tensor *t = heed__export_has(x, name) ? NULL : add(x, name, 0, count, NULL);
    if (t)
        memset(t->value, 0, (size_t)count * sizeof *t->value);
}

/* "encoder.%d.self" and 3 make "encoder.3.self". */
static void with_number(const char *from, size_t length, int number, char *out, size_t capacity)
{
    const char *mark = memmem(from, length, "%d", 2);
    if (mark)
        snprintf(out, capacity, "%.*s%d%.*s", (int)(mark - from), from, number,
                 (int)(length - (size_t)(mark - from) - 2), mark + 2);
    else
        snprintf(out, capacity, "%.*s", (int)length, from);
}

/* The rule of a parameter, and its layer. */
static const heed__name_rule *rule_of(const heed__name_rule *rules, size_t count, const char *name,
                                      int *layer)
{
    const char *digit = strpbrk(name, "0123456789");
    *layer = digit ? atoi(digit) : 0;
    for (size_t i = 0; i < count; i++) {
        char full[256];
        with_number(rules[i].to, strlen(rules[i].to), *layer, full, sizeof full);
        if (strcmp(full, name) == 0)
            return &rules[i];
    }
    return NULL;
}

/* Columns [first, first+cols) of a matrix (in,out). */
static void add_columns(heed__export *x, const char *name, const heed_param_info *p, int64_t first,
                        int64_t cols, bool in_out)
{
    const heed_tensor *from = p->tensor;
    const int64_t rows = from->rows;
    heed__export_tensor *t =
        in_out ? add(x, name, rows, cols, from) : add(x, name, cols, rows, from);
    for (int64_t r = 0; t && r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            t->value[in_out ? r * cols + c : c * rows + r] =
                (float)from->data[r * from->cols + first + c];
    if (t)
        t->matrix = true;
}

static void add_vector(heed__export *x, const char *name, const heed_tensor *from, int64_t first,
                       int64_t count)
{
    heed__export_tensor *t = add(x, name, 0, count, from);
    for (int64_t i = 0; t && i < count; i++)
        t->value[i] = (float)from->data[first + i];
}

/* Rows of a table, or elements of the output's bias, as the vocabulary has them. */
static void add_pieces(heed__export *x, const char *name, const heed_tensor *from, int side,
                       bool table, float pad)
{
    const heed__export_vocab *v = &x->vocab[x->shared ? 0 : side];
    const int64_t cols = table ? from->cols : 1;
    heed__export_tensor *t =
        table ? add(x, name, v->count, cols, from) : add(x, name, 0, v->count, from);
    for (int32_t i = 0; t && i < v->count; i++)
        for (int64_t c = 0; c < cols; c++)
            t->value[i * cols + c] =
                v->entry[i].from >= 0 ? (float)from->data[v->entry[i].from * cols + c] : pad;
    if (t)
        t->table = table;
}

static void add_parameter(heed__export *x, const heed_param_info *p, const heed__name_rule *rule,
                          int layer, bool in_out, float pad)
{
    int parts = 1, i = 0;
    for (const char *bar = strchr(rule->from, '|'); bar; bar = strchr(bar + 1, '|'))
        parts++;
    for (const char *from = rule->from; from; i++) {
        char name[256];
        const char *bar = strchr(from, '|');
        const int64_t each = p->tensor->cols / parts;
        with_number(from, bar ? (size_t)(bar - from) : strlen(from), layer, name, sizeof name);
        if (p->role == HEED_ROLE_TABLE)
            add_pieces(x, name, p->tensor, strncmp(p->name, "encoder", 7) != 0, true, 0);
        else if (strcmp(p->name, "output.bias") == 0)
            add_pieces(x, name, p->tensor, 1, false, pad);
        else if (p->role == HEED_ROLE_MATRIX)
            add_columns(x, name, p, i * each, each, in_out);
        else
            add_vector(x, name, p->tensor, i * each, each);
        from = bar ? bar + 1 : NULL;
    }
}

void heed__export_tensors(heed__export *x, const heed__name_rule *rules, size_t rule_count,
                          int first_layer, bool in_out, float pad)
{
    const heed_params *p = heed_model_params(x->model);
    for (int i = 0; i < heed_params_count(p) && !x->err->status; i++) {
        const heed_param_info info = heed_params_entry(p, i);
        int layer;
        const heed__name_rule *rule = rule_of(rules, rule_count, info.name, &layer);
        if (rule)
            add_parameter(x, &info, rule, layer + first_layer, in_out, pad);
        else
            heed__fail(x->err, HEED_ARGUMENT,
                       "'%.200s' cannot be written for that program: it has nothing for '%.100s'",
                       x->from, info.name);
    }
}

/* ---- files ---- */

void heed__export_text(const heed__export *x, const char *name, const char *text)
{
    heed__pathname path;
    if (!x->err->status && !heed__pathname_in(path, x->to, name, x->err))
        heed__file_save(path, text, strlen(text), NULL, x->err);
}

void heed__export_vocabulary(const heed__export *x, int side, const char *name)
{
    const heed__export_vocab *v = &x->vocab[side];
    const void *bytes, *made;
    size_t size, made_size;
    heed__pathname path;
    int32_t unk = 0, eos = 0;
    if (x->err->status || heed__pathname_in(path, x->to, name, x->err) ||
        heed__file_map_unpacked(v->path, &bytes, &size, x->err))
        return;
    for (int32_t i = 0; i < v->count; i++) {
        unk = v->entry[i].from == v->ids.unk ? i : unk;
        eos = v->entry[i].from == v->ids.eos ? i : eos;
    }
    if (!heed__spm_order(bytes, size, v->path, v->entry, v->count, unk, eos, x->arena, &made,
                         &made_size, x->err))
        heed__file_save(path, made, made_size, NULL, x->err);
    heed__file_unmap(bytes, size);
}

/* ---- the whole ---- */

static bool read_vocabularies(heed__export *x)
{
    heed__pathname path[2];
    heed_vocab *v[2];
    if (heed__vocabs_find(x->from, path, x->err))
        return false;
    x->shared = strcmp(path[0], path[1]) == 0;
    if (heed_vocabs_open(x->from, x->text.bpe_joiner, NULL, &v[0], &v[1], x->err))
        return false;
    for (int side = 0; side < 2; side++) {
        memcpy(x->vocab[side].path, path[side], sizeof path[side]);
        x->vocab[side].ids = heed_vocab_special(v[side]);
        x->vocab[side].count = heed_vocab_size(v[side]);
    }
    heed_vocabs_free(v[0], v[1]);
    if (x->text.tokens != HEED_UNIGRAM && x->text.tokens != HEED_BPE)
        heed__fail(x->err, HEED_ARGUMENT,
                   "the vocabulary of '%.255s' is no SentencePiece model, which other programs' "
                   "translators have: train with --tokens unigram or bpe",
                   x->from);
    return !x->err->status;
}

static void write_form(heed__export *x, heed_export_form form, const char *sample)
{
    heed__pathname weights;
    if (heed_model_read_config(x->from, x->arena, &x->config, &x->text, x->err))
        return;
    if (x->config.arch != HEED_ARCH_TRANSFORMER) {
        heed__fail(x->err, HEED_ARGUMENT,
                   "'%.255s' cannot be written for other programs: only the Transformer with an "
                   "encoder and a decoder can",
                   x->from);
        return;
    }
    if (!read_vocabularies(x) || heed__pathname_in(weights, x->from, "model.safetensors", x->err))
        return;
    x->model = heed__model_new_zero(&x->config, NULL, x->err);
    if (!x->model || heed__weights_read(x->model, weights, x->err) ||
        heed__folder_make(x->to, x->err))
        return;
    if (form == HEED_EXPORT_HUGGING_FACE)
        heed__export_hugging_face(x);
    else
        heed__export_marian(x, form == HEED_EXPORT_FIREFOX, sample);
}

heed_status heed_export(const char *from, const char *to, heed_export_form form, const char *sample,
                        heed_error *err)
{
    if (!from || !to)
        return heed__missing(err, from ? "directory to write" : "model");
    heed_error own = {0};
    heed__export x = {.from = from, .to = to, .err = &own};
    if (heed__is_found(from))
        return heed__fail(err, HEED_ARGUMENT,
                          "'%.255s' is a model of another program already; convert it to heed's "
                          "form first",
                          from);
    if (!heed__folder_empty(to))
        return heed__fail(err, HEED_ARGUMENT, "'%.255s' is not empty: choose another name", to);
    x.arena = heed_arena_new(NULL, &own);
    if (x.arena)
        write_form(&x, form, sample);
    heed_model_free(x.model);
    heed_arena_free(x.arena);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
