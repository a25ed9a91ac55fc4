/* found_int8.c: int8 matrices of Marian's files in heed's panels, values and scales as they are.
 *
 * A matrix may be several side by side (q, k and v).  NAME_QuantMultA is the multiplier of what
 * NAME is multiplied with; where those of several differ they are no one matrix, and fp32 stands
 * for what they hold. */
#include "base/error.h"
#include "engine/found_model.h"
#include "tensor/tensor_fields.h"

#include <stdio.h>
#include <string.h>

/* 0: it has none, and rows are quantised as heed's own. */
static float multiplier_of(const heed__found_model *m, const heed__found_tensor *t)
{
    char name[512];
    float value = 0;
    snprintf(name, sizeof name, "%.400s_QuantMultA", t->name);
    const heed__found_tensor *of = heed__found_find(m->found, name);
    if (!of && strcmp(t->name, "Wemb") == 0) /* of the output that is tied to it */
        of = heed__found_find(m->found, "none_QuantMultA");
    const bool fits = of && of->count == 1 && !heed__found_values(of, 0, 1, &value, NULL);
    return fits && value > 0 && value < 1e30f ? value : 0;
}

static bool is_int8(const heed__found_tensor *t)
{
    return t->type == HEED__FOUND_I8 && t->rank == 2 && t->scales == 1 && t->divides && !t->zero;
}

/* Columns of all parts; 0 if they cannot be one int8 matrix. */
static int64_t columns_of(const heed__found_model *m, const heed__found_tensor *const *part,
                          int parts, const heed_tensor *x, bool table)
{
    int64_t columns = 0;
    const float first = parts ? multiplier_of(m, part[0]) : 0;
    for (int i = 0; i < parts; i++) {
        const float other = multiplier_of(m, part[i]);
        const int64_t rows = part[i]->dim[table];
        if (!is_int8(part[i]) || rows != (table ? x->cols : x->rows) || other < first ||
            other > first)
            return 0;
        columns += part[i]->dim[!table];
    }
    return columns;
}

/* Values of all parts side by side, (K,N). */
static void lay_side_by_side(int8_t *to, const heed__found_tensor *const *part, int parts,
                             bool table, int64_t k, int64_t n)
{
    for (int i = 0; i < parts; i++) {
        const int64_t cols = part[i]->dim[!table];
        const int8_t *from = (const int8_t *)part[i]->data;
        for (int64_t r = 0; r < k; r++)
            for (int64_t c = 0; c < cols; c++)
                to[r * n + c] = table ? from[c * k + r] : from[r * cols + c];
        to += cols;
    }
}

bool heed__found_int8(const void *model, const heed_tensor *x, bool table, heed__panel_weights *p,
                      heed_arena *arena, heed_error *err)
{
    const heed__found_model *m = model;
    const heed__found_tensor *part[HEED__FOUND_PARTS];
    const int parts = m->own_int8 ? heed__found_parts(m, x->name, part, NULL) : 0;
    if (!parts || columns_of(m, part, parts, x, table) != p->n)
        return false;
    const size_t columns = (size_t)(heed__panels(p->n) * HEED_PANEL);
    int8_t *values = heed_arena_allocate(arena, (size_t)(p->k * p->n));
    int8_t *bytes = heed_arena_allocate(arena, (size_t)heed__panel_bytes(p->k, p->n));
    float *scale = heed_arena_allocate(arena, columns * sizeof *scale);
    int32_t *sum = heed_arena_allocate(arena, columns * sizeof *sum);
    if (!values || !bytes || !scale || !sum) {
        heed__fail(err, HEED_MEMORY, "out of memory for a model's weights");
        return false;
    }
    lay_side_by_side(values, part, parts, table, p->k, p->n);
    p->multiplier = multiplier_of(m, part[0]);
    p->wide = heed__panel_keep_int8(bytes, scale, sum, values, p->n, 1, p->k, p->n,
                                    1 / *part[0]->scale, heed__panel_most(p)) > 0;
    int64_t column = 0;
    for (int i = 0; i < parts; i++)
        for (int64_t c = 0; c < part[i]->dim[!table]; c++)
            scale[column++] = 1 / *part[i]->scale;
    p->bytes = bytes;
    p->scale = scale;
    p->sum = sum;
    return true;
}
