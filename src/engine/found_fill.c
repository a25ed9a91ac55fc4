/* found_fill.c: parameters from the tensors of a found model.  Matrices of other programs are
 * mostly (out, in), heed's (in, out); sinusoids of any formula become a table of positions. */
#include "base/error.h"
#include "engine/found_model.h"
#include "nn/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct filling {
    const heed__found_model *m;
    heed_arena *arena; /* of one parameter */
    heed_error *err;
};

const heed__found_tensor *heed__found_named(const heed__found_model *m, const char *name)
{
    char renamed[512];
    if (!m->rename)
        return heed__found_find(m->found, name);
    m->rename(m, name, renamed, sizeof renamed);
    return heed__found_find(m->found, renamed);
}

/* "encoder.12.self" -> "encoder.%d.self" and 12; without a number: the name, and -1. */
static int layer_of(const char *name, char *pattern, size_t capacity)
{
    const char *digit = name;
    while (*digit && !(digit > name && digit[-1] == '.' && *digit >= '0' && *digit <= '9'))
        digit++;
    const size_t digits = strspn(digit, "0123456789");
    if (!digits || digits > 6) {
        snprintf(pattern, capacity, "%s", name);
        return -1;
    }
    snprintf(pattern, capacity, "%.*s%%d%s", (int)(digit - name), name, digit + digits);
    return atoi(digit);
}

/* The name of a rule with the layer's number for %d. */
static void with_layer(const char *from, size_t length, int layer, char *out, size_t capacity)
{
    const char *mark = NULL;
    for (size_t i = 0; i + 1 < length && !mark; i++)
        mark = from[i] == '%' && from[i + 1] == 'd' ? from + i : NULL;
    if (mark)
        snprintf(out, capacity, "%.*s%d%.*s", (int)(mark - from), from, layer,
                 (int)(length - (size_t)(mark - from) - 2), mark + 2);
    else
        snprintf(out, capacity, "%.*s", (int)length, from);
}

/* The tensors of a rule; 0 after an error. */
static int find_parts(const heed__found_model *m, const heed__name_rule *rule, int layer,
                      const heed__found_tensor *part[HEED__FOUND_PARTS], heed_error *err)
{
    int n = 0;
    for (const char *from = rule->from; from && n < HEED__FOUND_PARTS; n++) {
        char name[512];
        const char *bar = strchr(from, '|');
        with_layer(from, bar ? (size_t)(bar - from) : strlen(from), layer + m->first_layer, name,
                   sizeof name);
        part[n] = heed__found_named(m, name);
        if (!part[n]) {
            heed__found_fail(m->found, err, "tensor '%.200s' is missing", name);
            return 0;
        }
        from = bar ? bar + 1 : NULL;
    }
    return n;
}

static const heed__name_rule *find_rule(const heed__found_model *m, const char *name, int *layer)
{
    char pattern[256];
    *layer = layer_of(name, pattern, sizeof pattern);
    for (size_t i = 0; i < m->rule_count; i++)
        if (strcmp(m->rules[i].to, pattern) == 0)
            return &m->rules[i];
    return NULL;
}

int heed__found_parts(const heed__found_model *m, const char *name,
                      const heed__found_tensor *part[HEED__FOUND_PARTS], heed_error *err)
{
    int layer;
    const heed__name_rule *rule = find_rule(m, name, &layer);
    return rule ? find_parts(m, rule, layer, part, err) : 0;
}

static heed_status wrong_shape(const struct filling *f, const char *to,
                               const heed__found_tensor *part, int64_t rows, int64_t cols)
{
    return heed__found_fail(
        f->m->found, f->err,
        "tensor '%.100s' has %lld values%s, which does not fit '%.60s' (%lld,%lld)", part->name,
        (long long)part->count, part->rank == 2 ? " in another shape" : "", to, (long long)rows,
        (long long)cols);
}

static float *values_of(const struct filling *f, const heed__found_tensor *t)
{
    float *out = heed_arena_allocate(f->arena, (size_t)t->count * sizeof *out);
    if (!out)
        heed__found_no_memory(f->m->found, f->err);
    return out && !heed__found_values(t, 0, t->count, out, f->err) ? out : NULL;
}

/* Whether a matrix lies as heed's do; the reader of ONNX names them so. */
static bool is_in_out(const heed__found_model *m, const heed__found_tensor *t)
{
    const size_t n = strlen(t->name);
    return m->in_out || (n > 2 && strcmp(t->name + n - 2, ".T") == 0);
}

/* Parts of a matrix (in,out) side by side. */
static heed_status fill_matrix(const struct filling *f, const heed_param_info *info,
                               const heed__found_tensor *const *part, int parts)
{
    const int64_t in = heed_tensor_rows(info->tensor), out = heed_tensor_cols(info->tensor);
    heed_real *to = heed_tensor_data(info->tensor);
    int64_t column = 0;
    for (int i = 0; i < parts; i++) {
        const heed__found_tensor *t = part[i];
        const int64_t cols = in > 0 ? t->count / in : 0;
        const bool in_out = is_in_out(f->m, t);
        const int64_t has = t->rank == 2 ? t->dim[in_out ? 0 : 1] : 0;
        if (t->rank != 2 || has != in || cols > out - column)
            return wrong_shape(f, info->name, t, in, out);
        const float *from = values_of(f, t);
        if (!from)
            return HEED_MEMORY;
        for (int64_t r = 0; r < in; r++)
            for (int64_t c = 0; c < cols; c++)
                to[r * out + column + c] =
                    (heed_real)(in_out ? from[r * cols + c] : from[c * in + r]);
        column += cols;
    }
    return column == out ? HEED_OK : wrong_shape(f, info->name, part[0], in, out);
}

/* A table that is stored as the matrix of its transpose. */
static heed_status fill_turned(const struct filling *f, heed_tensor *x, const heed__found_tensor *t)
{
    const int64_t rows = heed_tensor_rows(x), cols = heed_tensor_cols(x);
    heed_real *to = heed_tensor_data(x);
    const float *from = values_of(f, t);
    for (int64_t r = 0; from && r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            to[r * cols + c] = (heed_real)from[c * rows + r];
    return from ? HEED_OK : HEED_MEMORY;
}

/* Vectors and tables, one behind the other. */
static heed_status fill_plain(const struct filling *f, const heed_param_info *info,
                              const heed__found_tensor *const *part, int parts)
{
    const int64_t count = heed_tensor_count(info->tensor);
    heed_real *to = heed_tensor_data(info->tensor);
    int64_t at = 0;
    const bool turned = f->m->in_out && parts == 1 && info->role == HEED_ROLE_TABLE &&
                        part[0]->rank == 2 && part[0]->dim[1] != heed_tensor_cols(info->tensor) &&
                        part[0]->dim[0] == heed_tensor_cols(info->tensor) &&
                        part[0]->dim[1] == heed_tensor_rows(info->tensor);
    if (turned)
        return fill_turned(f, info->tensor, part[0]);
    for (int i = 0; i < parts; i++) {
        const heed__found_tensor *t = part[i];
        const bool table = info->role == HEED_ROLE_TABLE;
        if (t->count > count - at ||
            (table && (t->rank != 2 || t->dim[1] != heed_tensor_cols(info->tensor))))
            return wrong_shape(f, info->name, t, heed_tensor_rows(info->tensor),
                               heed_tensor_cols(info->tensor));
        const float *from = values_of(f, t);
        if (!from)
            return HEED_MEMORY;
        for (int64_t k = 0; k < t->count; k++)
            to[at + k] = (heed_real)from[k];
        at += t->count;
    }
    return at == count ? HEED_OK
                       : wrong_shape(f, info->name, part[0], heed_tensor_rows(info->tensor),
                                     heed_tensor_cols(info->tensor));
}

/* Sines, then cosines: exponents i/(d/2), or i/(d/2 - 1) where the last is 1. */
static void fill_sinusoids(const heed__found_model *m, heed_tensor *x)
{
    const int64_t rows = heed_tensor_rows(x), d = heed_tensor_cols(x), half = d / 2;
    const double steps = (double)(m->ends_at_10000 ? half - 1 : half);
    heed_real *to = heed_tensor_data(x);
    for (int64_t i = 0; i < half; i++) {
        const double frequency = pow(10000, steps > 0 ? -(double)i / steps : 0);
        for (int64_t r = 0; r < rows; r++) {
            const double angle = (double)(r + m->first) * frequency;
            to[r * d + i] = (heed_real)sin(angle);
            to[r * d + half + i] = (heed_real)cos(angle);
        }
    }
}

static heed_status fill_one(struct filling *f, const heed_param_info *info)
{
    int layer;
    const heed__found_tensor *part[HEED__FOUND_PARTS];
    const heed__name_rule *rule = find_rule(f->m, info->name, &layer);
    if (!rule && !strstr(info->name, "positions"))
        return heed__fail(f->err, HEED_FORMAT, "nothing in the files gives '%.200s'", info->name);
    if (!rule) {
        fill_sinusoids(f->m, info->tensor);
        return HEED_OK;
    }
    const int parts = find_parts(f->m, rule, layer, part, f->err);
    if (!parts)
        return HEED_FORMAT;
    return info->role == HEED_ROLE_MATRIX ? fill_matrix(f, info, part, parts)
                                          : fill_plain(f, info, part, parts);
}

heed_status heed__found_fill(const heed__found_model *m, heed_params *p, heed_error *err)
{
    struct filling f = {m, heed_arena_new(NULL, err), err};
    heed_status status = f.arena ? HEED_OK : HEED_MEMORY;
    for (int i = 0; !status && i < heed_params_count(p); i++) {
        const heed_param_info info = heed_params_entry(p, i);
        heed_arena_reset(f.arena);
        status = fill_one(&f, &info);
    }
    heed_arena_free(f.arena);
    return status;
}
