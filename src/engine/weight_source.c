/* weight_source.c: see weight_source.h.  What is read from a plain file is packed, and its
 * pages are given back as it goes. */
#include "engine/weight_source.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "engine/packed_weights.h"
#include "io/safetensors.h"
#include "kernel/kernels.h"
#include "tensor/tensor_fields.h"

#include <stdio.h>
#include <string.h>

/* Values of a table that are converted at a time. */
#define PORTION ((int64_t)1 << 20)

static heed_status short_of_memory(const heed__weight_source *s)
{
    return heed__fail(s->err, HEED_MEMORY, "out of memory for a model's weights");
}

void *heed__source_take(const heed__weight_source *s, int64_t count, size_t size)
{
    int64_t bytes;
    void *memory = heed__multiply(count, (int64_t)size, &bytes)
                       ? heed_arena_allocate(s->arena, (size_t)bytes)
                       : NULL;
    if (!memory)
        short_of_memory(s);
    return memory;
}

heed_status heed__source_bits(heed__weight_source *s)
{
    const char *layout = heed_safetensors_metadata(s->file, HEED_LAYOUT_KEY);
    const char *bits = heed_safetensors_metadata(s->file, HEED_BITS_KEY);
    if (!layout)
        return HEED_OK;
    if (strcmp(layout, HEED_LAYOUT) != 0 || !bits || strcmp(bits, HEED_BITS) != 0) {
        char shown[HEED_SHOWN];
        return heed__fail(
            s->err, HEED_FORMAT,
            "cannot load '%.255s': its matrices are laid out as '%s' of '%.32s' bits, expected "
            "'%s' of " HEED_BITS ": convert the model it was made of with this version of heed",
            s->path, heed__shown(layout, shown), bits ? bits : "no", HEED_LAYOUT);
    }
    s->bits = 8;
    return HEED_OK;
}

/* ---- tensors of the file ---- */

/* The stored tensor called like x with an ending, of this shape and, if it is given, dtype. */
static const heed_stored *find(const heed__weight_source *s, const heed_tensor *x,
                               const char *ending, const int64_t *dim, int rank,
                               const heed_dtype *dtype)
{
    char name[512], shown[HEED_SHOWN];
    snprintf(name, sizeof name, "%s%s", x->name, ending);
    heed__shown(name, shown);
    const heed_stored *found = heed_safetensors_find(s->file, name);
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

static const heed_stored *find_plain(const heed__weight_source *s, const heed_tensor *x)
{
    return find(s, x, "", x->shape.dim, x->shape.rank, NULL);
}

void heed__source_read(const heed__weight_source *s, heed_tensor *x)
{
    const heed_stored *stored = find_plain(s, x);
    if (stored)
        heed_stored_read(stored, x->data, 0, heed_tensor_count(x), s->err);
}

heed_real *heed__source_copy(const heed__weight_source *s, const heed_tensor *x)
{
    if (!x)
        return NULL;
    const int64_t count = heed_tensor_count(x);
    heed_real *to = heed__source_take(s, count, sizeof *to);
    const heed_stored *stored = to && s->file ? find_plain(s, x) : NULL;
    if (stored)
        heed_stored_read(stored, to, 0, count, s->err);
    else if (to && !s->file)
        memcpy(to, x->data, (size_t)count * sizeof *to);
    return to;
}

/* ---- matrices ---- */

static const heed_real *portion(heed__weight_source *s, const heed_stored *from, int64_t begin,
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
static void pack_table(heed__weight_source *s, heed_real *panels, const heed_stored *from,
                       int64_t k, int64_t n)
{
    const size_t row = from->bytes / (size_t)n;
    int64_t rows = PORTION / k / HEED_PANEL * HEED_PANEL;
    rows = rows < HEED_PANEL ? HEED_PANEL : rows;
    for (int64_t j = 0; j < n; j += rows) {
        int64_t count = n - j < rows ? n - j : rows;
        const heed_real *values = portion(s, from, j * k, count * k);
        if (!values)
            return;
        heed__panel_pack(panels + heed__panel_reals(k, j), values, 1, k, k, count);
        heed__file_forget((const char *)from->data + (size_t)j * row, (size_t)count * row);
    }
}

static void pack_stored(heed__weight_source *s, heed_real *panels, const heed_tensor *x, bool table,
                        int64_t k, int64_t n)
{
    const heed_stored *from = find_plain(s, x);
    if (!from)
        return;
    if (table) {
        pack_table(s, panels, from, k, n);
        return;
    }
    const heed_real *values = portion(s, from, 0, k * n);
    if (values)
        heed__panel_pack(panels, values, n, 1, k, n);
    heed__file_forget(from->data, from->bytes);
}

/* Weights that another program has quantised say so by the multiplier of their rows, and are not
 * bounded as heed's are. */
static void use_multiplier(const heed__weight_source *s, heed__panel_weights *p,
                           const heed_tensor *x)
{
    char name[512];
    snprintf(name, sizeof name, "%s.multiplier", x->name);
    const heed_stored *stored = heed_safetensors_find(s->file, name);
    if (!stored)
        return;
    heed_real multiplier = 0;
    if (stored->rank == 1 && stored->dim[0] == 1)
        heed_stored_read(stored, &multiplier, 0, 1, s->err);
    if (!(multiplier >= 0 && multiplier < 1e30f)) {
        heed__fail(s->err, HEED_FORMAT, "cannot load '%.255s': '%.200s' is no multiplier", s->path,
                   name);
        return;
    }
    p->multiplier = (float)multiplier;
    p->wide = heed__panel_exceeding(p->bytes, p->k, p->n, heed__panel_most(p)) > 0;
}

/* The three tensors of an int8 matrix, where they lie; a fourth where it has a multiplier. */
static void use_int8(const heed__weight_source *s, heed__panel_weights *p, const heed_tensor *x)
{
    const heed_dtype int8 = HEED_I8, fp32 = HEED_F32, int32 = HEED_I32;
    const int64_t columns = heed__panels(p->n) * HEED_PANEL;
    const int64_t dim[] = {heed__panels(p->n), heed__panel_groups(p->k), HEED_PANEL, 4};
    const heed_stored *panels = find(s, x, ".panels", dim, 4, &int8);
    const heed_stored *scale = panels ? find(s, x, ".scale", &columns, 1, &fp32) : NULL;
    const heed_stored *sum = scale ? find(s, x, ".sum", &columns, 1, &int32) : NULL;
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
    use_multiplier(s, p, x);
}

bool heed__make_int8(heed__panel_weights *p, const heed_tensor *x, bool table, heed_arena *arena)
{
    *p = (heed__panel_weights){
        .k = table ? x->cols : x->rows, .n = table ? x->rows : x->cols, .bits = 8};
    const size_t columns = (size_t)(heed__panels(p->n) * HEED_PANEL);
    int8_t *bytes = heed_arena_allocate(arena, (size_t)heed__panel_bytes(p->k, p->n));
    float *scale = heed_arena_allocate(arena, columns * sizeof *scale);
    int32_t *sum = heed_arena_allocate(arena, columns * sizeof *sum);
    if (!bytes || !scale || !sum)
        return false;
    heed__panel_pack_int8(bytes, scale, sum, x->data, table ? 1 : p->n, table ? p->k : 1, p->k,
                          p->n);
    p->bytes = bytes;
    p->scale = scale;
    p->sum = sum;
    return true;
}

heed__panel_weights heed__source_matrix(heed__weight_source *s, const heed_tensor *x, bool table,
                                        const heed_tensor *bias, heed_activation activation)
{
    heed__panel_weights p = {
        .k = table ? x->cols : x->rows, .n = table ? x->rows : x->cols, .bits = s->bits};
    if (s->err->status)
        return p;
    if (s->given && s->given->fill(s->given->context, x, table, &p, s->arena, s->err)) {
        p.bits = 8;
        s->mixed = true;
    } else if (p.bits && s->file)
        use_int8(s, &p, x);
    else if (p.bits && !heed__make_int8(&p, x, table, s->arena))
        short_of_memory(s);
    p.bias = heed__source_copy(s, bias);
    p.activation = activation;
    if (p.bits)
        return p;
    p.from_memory = s->from_memory;
    heed_real *panels = heed__source_take(s, heed__panel_reals(p.k, p.n), sizeof *panels);
    p.real = panels;
    if (panels && s->file)
        pack_stored(s, panels, x, table, p.k, p.n);
    else if (panels)
        heed__panel_pack(panels, x->data, table ? 1 : p.n, table ? p.k : 1, p.k, p.n);
    return p;
}

void heed__source_unpack(const heed__weight_source *s, heed_tensor *x, bool table)
{
    heed__panel_weights p = {
        .k = table ? x->cols : x->rows, .n = table ? x->rows : x->cols, .bits = s->bits};
    heed_real *column = heed_arena_allocate(s->passing, (size_t)p.k * sizeof *column);
    if (!column)
        short_of_memory(s);
    else
        use_int8(s, &p, x);
    for (int64_t j = 0; p.bytes && j < p.n; j++) {
        heed__kernels()->panel_column(column, &p, j, 1);
        for (int64_t k = 0; k < p.k; k++)
            x->data[table ? j * p.k + k : k * p.n + j] = column[k];
    }
}
