/* weights.c: a Transformer's weights for decoding, out of a model in memory or a file.
 *
 * The model is built without memory for its numbers: its parts say which parameter stands where,
 * and a parameter's name finds its tensor in the file.  What is read from a plain file is packed,
 * and its pages are given back as it goes. */
#include "decode/weights.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/safetensors.h"
#include "kernel/kernels.h"
#include "tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of a table that are converted at a time. */
#define PORTION ((int64_t)1 << 20)
/* What a core can hope for of the last cache, in bytes.  Virtual machines do not know theirs. */
#define LAST_CACHE ((int64_t)32 << 20)

struct supply {
    heed__weights *w;
    const char *path; /* of the file; NULL: the tensors have their numbers */
    heed_error *err;
    bool from_memory;    /* more numbers than the last cache holds */
    heed_real *portion;  /* (PORTION), made when it is needed */
    heed_arena *passing; /* what is not kept */
};

static heed_status short_of_memory(const struct supply *s)
{
    return heed__fail(s->err, HEED_MEMORY, "out of memory for a model's weights");
}

static void *take(const struct supply *s, int64_t count, size_t size)
{
    int64_t bytes;
    void *memory = heed__multiply(count, (int64_t)size, &bytes)
                       ? heed_arena_allocate(s->w->arena, (size_t)bytes)
                       : NULL;
    if (!memory)
        short_of_memory(s);
    return memory;
}

/* ---- tensors of the file ---- */

/* The stored tensor called like x with an ending, of this shape and, if it is given, dtype. */
static const heed_stored *find(const struct supply *s, const heed_tensor *x, const char *ending,
                               const int64_t *dim, int rank, const heed_dtype *dtype)
{
    char name[512], shown[HEED_SHOWN];
    snprintf(name, sizeof name, "%s%s", x->name, ending);
    heed__shown(name, shown);
    const heed_stored *found = heed_safetensors_find(s->w->file, name);
    if (!found) {
        heed__fail(s->err, HEED_FORMAT, "cannot load '%.255s': tensor '%s' is missing", s->path,
                   shown);
        return NULL;
    }
    bool fits = found->rank == rank && (!dtype || found->dtype == *dtype);
    for (int i = 0; fits && i < rank; i++)
        fits = found->dim[i] == dim[i];
    if (!fits) {
        char is[HEED_DIMS_SHOWN], expected[HEED_DIMS_SHOWN];
        heed__fail(s->err, HEED_FORMAT,
                   "cannot load '%.255s': tensor '%s' is %s %s, expected %s%s%s", s->path, shown,
                   heed__dtype_name(found->dtype), heed__dims_shown(found->dim, found->rank, is),
                   dtype ? heed__dtype_name(*dtype) : "", dtype ? " " : "",
                   heed__dims_shown(dim, rank, expected));
        return NULL;
    }
    return found;
}

static const heed_stored *find_plain(const struct supply *s, const heed_tensor *x)
{
    return find(s, x, "", x->shape.dim, x->shape.rank, NULL);
}

/* A copy of a vector or a small table; NULL for none. */
static const heed_real *copy(const struct supply *s, const heed_tensor *x)
{
    if (!x)
        return NULL;
    const int64_t count = heed_tensor_count(x);
    heed_real *to = take(s, count, sizeof *to);
    const heed_stored *stored = to && s->path ? find_plain(s, x) : NULL;
    if (stored)
        heed_stored_read(stored, to, 0, count, s->err);
    else if (to && !s->path)
        memcpy(to, x->data, (size_t)count * sizeof *to);
    return to;
}

/* ---- matrices ---- */

static const heed_real *portion(struct supply *s, const heed_stored *from, int64_t begin,
                                int64_t count)
{
    if (!s->portion)
        s->portion = heed_arena_allocate(s->passing, (size_t)PORTION * sizeof *s->portion);
    heed_real *to = s->portion;
    if (count > PORTION) /* a wide matrix that is no table: as a whole */
        to = heed_arena_allocate(s->passing, (size_t)count * sizeof *to);
    if (!to)
        short_of_memory(s);
    else if (heed_stored_read(from, to, begin, count, s->err))
        to = NULL;
    return to;
}

/* Panels of a table (N,K), some rows at a time: whole panels. */
static void pack_table(struct supply *s, heed_real *panels, const heed_stored *from, int64_t k,
                       int64_t n)
{
    const size_t row = from->bytes / (size_t)n;
    int64_t rows = PORTION / k / HEED_PANEL * HEED_PANEL;
    rows = rows < HEED_PANEL ? HEED_PANEL : rows;
    for (int64_t j = 0; j < n; j += rows) {
        int64_t count = n - j < rows ? n - j : rows;
        const heed_real *numbers = portion(s, from, j * k, count * k);
        if (!numbers)
            return;
        heed__panel_pack(panels + heed__panel_reals(k, j), numbers, 1, k, k, count);
        heed__file_forget((const char *)from->data + (size_t)j * row, (size_t)count * row);
    }
}

static void pack_stored(struct supply *s, heed_real *panels, const heed_tensor *x, bool table,
                        int64_t k, int64_t n)
{
    const heed_stored *from = find_plain(s, x);
    if (!from)
        return;
    if (table) {
        pack_table(s, panels, from, k, n);
        return;
    }
    const heed_real *numbers = portion(s, from, 0, k * n);
    if (numbers)
        heed__panel_pack(panels, numbers, n, 1, k, n);
    heed__file_forget(from->data, from->bytes);
}

/* The three tensors of a matrix of bytes, where they lie. */
static void use_bytes(const struct supply *s, heed__panel_weights *p, const heed_tensor *x)
{
    const heed_dtype bytes = HEED_I8, number = HEED_F32, whole = HEED_I32;
    const int64_t columns = heed__panels(p->n) * HEED_PANEL;
    const int64_t dim[] = {heed__panels(p->n), heed__panel_groups(p->k), HEED_PANEL, 4};
    const heed_stored *panels = find(s, x, ".panels", dim, 4, &bytes);
    const heed_stored *scale = panels ? find(s, x, ".scale", &columns, 1, &number) : NULL;
    const heed_stored *sum = scale ? find(s, x, ".sum", &columns, 1, &whole) : NULL;
    if (!sum)
        return;
    if ((uintptr_t)scale->data % sizeof *p->scale || (uintptr_t)sum->data % sizeof *p->sum) {
        heed__fail(
            s->err, HEED_FORMAT,
            "cannot load '%.255s': the scales of '%.200s' do not begin at a multiple of 4 bytes",
            s->path, x->name);
        return;
    }
    p->bytes = panels->data;
    p->scale = scale->data;
    p->sum = sum->data;
}

bool heed__make_bytes(heed__panel_weights *p, const heed_tensor *x, bool table, heed_arena *arena)
{
    *p = (heed__panel_weights){
        .k = table ? x->cols : x->rows, .n = table ? x->rows : x->cols, .bits = 8};
    const size_t columns = (size_t)(heed__panels(p->n) * HEED_PANEL);
    int8_t *bytes = heed_arena_allocate(arena, (size_t)heed__panel_bytes(p->k, p->n));
    float *scale = heed_arena_allocate(arena, columns * sizeof *scale);
    int32_t *sum = heed_arena_allocate(arena, columns * sizeof *sum);
    if (!bytes || !scale || !sum)
        return false;
    heed__panel_pack_bytes(bytes, scale, sum, x->data, table ? 1 : p->n, table ? p->k : 1, p->k,
                           p->n);
    p->bytes = bytes;
    p->scale = scale;
    p->sum = sum;
    return true;
}

static heed__panel_weights matrix(struct supply *s, const heed_tensor *x, bool table,
                                  const heed_tensor *bias, heed_activation activation)
{
    heed__panel_weights p = {
        .k = table ? x->cols : x->rows, .n = table ? x->rows : x->cols, .bits = s->w->bits};
    if (s->err->status)
        return p;
    if (p.bits && s->path)
        use_bytes(s, &p, x);
    else if (p.bits && !heed__make_bytes(&p, x, table, s->w->arena))
        short_of_memory(s);
    p.bias = copy(s, bias);
    p.activation = activation;
    if (p.bits)
        return p;
    p.from_memory = s->from_memory;
    heed_real *panels = take(s, heed__panel_reals(p.k, p.n), sizeof *panels);
    p.real = panels;
    if (panels && s->path)
        pack_stored(s, panels, x, table, p.k, p.n);
    else if (panels)
        heed__panel_pack(panels, x->data, table ? 1 : p.n, table ? p.k : 1, p.k, p.n);
    return p;
}

static heed__panel_weights linear(struct supply *s, const heed_linear_layer *l)
{
    return matrix(s, l->weight, false, l->bias, l->activation);
}

static heed__panel_weights table(struct supply *s, const heed_tensor *x)
{
    return matrix(s, x, true, NULL, HEED_IDENTITY);
}

heed__matrix_kind heed__matrix_kind_of(const heed_model *m, const heed_tensor *x)
{
    const heed__transformer *t = m->parts;
    if (x == m->output || x == t->source.table || x == t->target.table)
        return HEED__TABLE;
    if (x->shape.rank != 2 || x == t->source.positions || x == t->target.positions)
        return HEED__NO_MATRIX;
    return HEED__MATRIX;
}

/* ---- norms ---- */

/* gain (x - mean) rstd + bias = x a + b. */
static heed__row_norm fold(const struct supply *s, const heed_norm_layer *l)
{
    const int64_t d = heed_tensor_count(l->gain);
    heed_real *gain = (heed_real *)copy(s, l->gain), *bias = (heed_real *)copy(s, l->bias);
    const heed_real *mean = copy(s, l->running_mean), *variance = copy(s, l->running_variance);
    for (int64_t j = 0; gain && bias && mean && variance && j < d; j++) {
        gain[j] = (heed_real)((double)gain[j] / sqrt((double)variance[j] + l->eps));
        bias[j] -= mean[j] * gain[j];
    }
    return (heed__row_norm){.gain = gain, .bias = bias, .fixed = true};
}

static heed__row_norm norm(const struct supply *s, const heed_norm_layer *l)
{
    if (s->err->status)
        return (heed__row_norm){0};
    if (l->kind == HEED_NORM_BATCH)
        return fold(s, l);
    return (heed__row_norm){.gain = copy(s, l->gain),
                            .bias = copy(s, l->bias),
                            .eps = l->eps,
                            .centred = l->kind == HEED_NORM_LAYER};
}

/* ---- the whole ---- */

/* What the products of queries and keys are multiplied with. */
static heed_real score_scale(const struct supply *s, const heed_attend_layer *l, int64_t d_k)
{
    if (l->options.score == HEED_SCORE_SCALED_DOT)
        return (heed_real)(1 / sqrt((double)d_k));
    if (l->options.score == HEED_SCORE_DOT)
        return 1;
    if (!l->beta)
        return (heed_real)l->options.beta;
    const heed_real *beta = copy(s, l->beta);
    return beta ? (heed_real)log1p(exp((double)*beta)) : 0;
}

static heed__attention_weights self_attention(struct supply *s, const heed_mha_layer *l,
                                              const heed_norm_layer *n)
{
    return (heed__attention_weights){.in = linear(s, &l->qkv),
                                     .out = linear(s, &l->out),
                                     .norm = norm(s, n),
                                     .scale = score_scale(s, &l->attend, l->options.d_k)};
}

static void fill_encoder_layer(struct supply *s, heed__layer_weights *to,
                               const heed__encoder_layer *l)
{
    *to = (heed__layer_weights){
        .self = self_attention(s, &l->self, &l->around_self.norm),
        .ffn_in = linear(s, &l->ffn.in),
        .ffn_out = linear(s, &l->ffn.out),
        .ffn_norm = norm(s, &l->around_ffn.norm),
    };
}

static void fill_decoder_layer(struct supply *s, heed__layer_weights *to,
                               const heed__decoder_layer *l)
{
    *to = (heed__layer_weights){
        .self = self_attention(s, &l->self, &l->around_self.norm),
        .cross = {.in = linear(s, &l->cross.q),
                  .kv = linear(s, &l->cross.kv),
                  .out = linear(s, &l->cross.out),
                  .norm = norm(s, &l->around_cross.norm),
                  .scale = score_scale(s, &l->cross.attend, l->cross.options.d_k)},
        .ffn_in = linear(s, &l->ffn.in),
        .ffn_out = linear(s, &l->ffn.out),
        .ffn_norm = norm(s, &l->around_ffn.norm),
    };
}

static void fill_embeddings(struct supply *s, const heed_model *model, const heed__transformer *m)
{
    heed__weights *w = s->w;
    const bool learned = w->config.transformer.positions == HEED_POSITIONS_LEARNED;
    const heed_tensor *source = m->source.table, *target = m->target.table, *out = model->output;
    w->output = table(s, out);
    w->target.table = target == out ? w->output : table(s, target);
    w->source.table = source == target ? w->target.table : table(s, source);
    if (learned) {
        w->source.learned = copy(s, m->source.positions);
        w->target.learned = m->target.positions == m->source.positions
                                ? w->source.learned
                                : copy(s, m->target.positions);
    }
    w->embedding_scale = (heed_real)m->target.scale;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void fill(struct supply *s, const heed_model *model)
{
    const heed__transformer *m = model->parts;
    heed__weights *w = s->w;
    const heed_mha_options *o = &m->decoder[0].self.options;
    w->config = model->config;
    w->d = o->d;
    w->heads = o->heads;
    w->d_k = o->d_k;
    w->d_v = o->d_v;
    w->cosine = o->score == HEED_SCORE_COSINE;
    w->widest = larger(w->config.transformer.ff, w->heads * (2 * w->d_k + w->d_v));
    w->encoder_layers = m->encoder_layers;
    w->decoder_layers = m->decoder_layers;
    w->encoder = take(s, m->encoder_layers, sizeof *w->encoder);
    w->decoder = take(s, m->decoder_layers, sizeof *w->decoder);
    if (!w->encoder || !w->decoder)
        return;
    fill_embeddings(s, model, m);
    for (int i = 0; i < m->encoder_layers && !s->err->status; i++)
        fill_encoder_layer(s, &w->encoder[i], &m->encoder[i]);
    for (int i = 0; i < m->decoder_layers && !s->err->status; i++)
        fill_decoder_layer(s, &w->decoder[i], &m->decoder[i]);
    if (m->final_norms && !s->err->status) {
        w->encoder_norm = norm(s, &m->encoder_norm);
        w->decoder_norm = norm(s, &m->decoder_norm);
    }
}

static heed__weights *begin(const heed_allocator *allocator, heed_error *err)
{
    heed_arena *arena = heed_arena_new(allocator, err);
    heed__weights *w = arena ? heed_arena_allocate(arena, sizeof *w) : NULL;
    if (!w) {
        heed_arena_free(arena);
        heed__fail(err, HEED_MEMORY, "out of memory for a model's weights");
        return NULL;
    }
    *w = (heed__weights){.arena = arena};
    return w;
}

/* Whether the numbers, gone through for every token, have left the last cache by then. */
static bool exceed_cache(const heed_model *m)
{
    return heed_params_trainable(heed_model_params(m)) > LAST_CACHE / (int64_t)sizeof(heed_real);
}

/* Fills w, or frees it. */
static heed__weights *complete(heed__weights *w, const heed_model *m, const char *path,
                               const heed_allocator *allocator, heed_error *err)
{
    heed_error own = {0}; /* the status must be known even when the caller wants no text */
    struct supply s = {.w = w, .path = path, .err = &own, .from_memory = exceed_cache(m)};
    s.passing = heed_arena_new(allocator, &own);
    if (s.passing)
        fill(&s, m);
    heed_arena_free(s.passing);
    if (!own.status && heed__screen_pays(&w->output)) {
        w->screen = heed__screen_new(&w->output, w->arena, allocator);
        if (!w->screen)
            short_of_memory(&s);
    }
    if (!own.status)
        return w;
    heed__weights_free(w);
    heed__fail(err, own.status, "%s", own.text);
    return NULL;
}

bool heed__weights_fit(const heed_model_config *config)
{
    const heed_attention_config *a = &config->attention;
    return config->arch == HEED_ARCH_TRANSFORMER &&
           (a->score == HEED_SCORE_SCALED_DOT || a->score == HEED_SCORE_DOT ||
            a->score == HEED_SCORE_COSINE) &&
           a->pattern == HEED_PATTERN_GLOBAL && a->normaliser == HEED_NORMALISE_SOFT;
}

heed__weights *heed__weights_of(const heed_model *m, int bits, const heed_allocator *allocator,
                                heed_error *err)
{
    heed__weights *w = begin(allocator, err);
    if (!w)
        return NULL;
    w->bits = bits;
    return complete(w, m, NULL, allocator, err);
}

/* What the file's metadata say of its matrices; 0 where they say nothing. */
static heed_status read_bits(heed__weights *w, const char *path, heed_error *err)
{
    const char *layout = heed_safetensors_metadata(w->file, HEED_LAYOUT_KEY);
    const char *bits = heed_safetensors_metadata(w->file, HEED_BITS_KEY);
    if (!layout)
        return HEED_OK;
    if (strcmp(layout, HEED_LAYOUT) != 0 || !bits || strcmp(bits, HEED_BITS) != 0) {
        char shown[HEED_SHOWN];
        return heed__fail(
            err, HEED_FORMAT,
            "cannot load '%.255s': its matrices are laid out as '%s' of '%.32s' bits, expected "
            "'%s' of " HEED_BITS ": convert the model it was made of with this version of heed",
            path, heed__shown(layout, shown), bits ? bits : "no", HEED_LAYOUT);
    }
    w->bits = 8;
    return HEED_OK;
}

heed__weights *heed__weights_open(const heed_model_config *config, const char *path,
                                  const heed_allocator *allocator, heed_error *err)
{
    heed_model *m = heed_model_outline(config, allocator, err);
    heed__weights *w = m ? begin(allocator, err) : NULL;
    if (w) {
        w->file = heed_safetensors_open(path, allocator, err);
        if (w->file && !read_bits(w, path, err)) {
            w = complete(w, m, path, allocator, err);
        } else {
            heed__weights_free(w);
            w = NULL;
        }
    }
    heed_model_free(m);
    if (w && !w->bits) { /* all of it was packed */
        heed_safetensors_close(w->file);
        w->file = NULL;
    }
    return w;
}

/* ---- back into a model ---- */

/* A matrix of bytes as the numbers that it stands for. */
static void unpack(const struct supply *s, heed_tensor *x, bool table)
{
    heed__panel_weights p = {
        .k = table ? x->cols : x->rows, .n = table ? x->rows : x->cols, .bits = s->w->bits};
    heed_real *column = heed_arena_allocate(s->passing, (size_t)p.k * sizeof *column);
    if (!column)
        short_of_memory(s);
    else
        use_bytes(s, &p, x);
    for (int64_t j = 0; p.bytes && j < p.n; j++) {
        heed__kernels()->panel_column(column, &p, j, 1);
        for (int64_t k = 0; k < p.k; k++)
            x->data[table ? j * p.k + k : k * p.n + j] = column[k];
    }
}

static void unpack_all(const struct supply *s, heed_model *m)
{
    heed_params *params = heed_model_params(m);
    for (int i = 0; i < heed_params_count(params) && !s->err->status; i++) {
        heed_tensor *x = heed_params_entry(params, i).tensor;
        heed__matrix_kind matrix = heed__matrix_kind_of(m, x);
        if (matrix != HEED__NO_MATRIX) {
            unpack(s, x, matrix == HEED__TABLE);
            continue;
        }
        const heed_stored *stored = find_plain(s, x);
        if (stored)
            heed_stored_read(stored, x->data, 0, heed_tensor_count(x), s->err);
    }
}

heed_status heed__weights_read(heed_model *m, const char *path, heed_error *err)
{
    heed_error own = {0};
    heed__weights *w = begin(NULL, &own);
    struct supply s = {.w = w, .path = path, .err = &own, .passing = w ? w->arena : NULL};
    if (w)
        w->file = heed_safetensors_open(path, NULL, &own);
    if (w && w->file && !read_bits(w, path, &own)) {
        if (!w->bits)
            heed_params_load(heed_model_params(m), path, &own);
        else if (!heed__weights_fit(heed_model_configuration(m)))
            heed__fail(&own, HEED_FORMAT, "cannot load '%.255s': it is not of this model", path);
        else
            unpack_all(&s, m);
    }
    heed__weights_free(w);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

void heed__weights_free(heed__weights *w)
{
    if (!w)
        return;
    heed__screen_free(w->screen);
    heed_safetensors_close(w->file);
    heed_arena_free(w->arena);
}
