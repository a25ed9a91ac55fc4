/* decode_products.c: see decode_products.h.  A source's tokens meet the encoder's matrices and
 * those of the memory's keys and values at once; each step, a row a hypothesis meets the rest.
 * Weights lie side by side in the order of the model, so they come from the cache or from memory as
 * they do in decoding. */
#include "decode_products.h"

#include "base/error.h"
#include "kernel/kernels.h"
#include "kernel/panels.h"

#include <stdlib.h>
#include <string.h>

struct product {
    heed__panel_weights w;
    bool once; /* a sentence, not a step */
};
struct bench_products {
    bench_products_form form;
    heed_arena *arena;
    struct product *item;
    int count;
    heed_real *a, *c;
    heed__panel_rows rows;
};

static void *room(const bench_products *p, int64_t count, size_t size, heed_error *err)
{
    void *memory = heed_arena_allocate(p->arena, (size_t)count * size);
    if (!memory)
        heed__fail(err, HEED_MEMORY, "out of memory for the products of decoding");
    return memory;
}

/* Whether the table of this parameter is the output's, too. */
static bool is_output(const heed_model_config *c, const char *name)
{
    return (c->tying == HEED_TIE_ALL && strcmp(name, "embedding.table") == 0) ||
           (c->tying == HEED_TIE_TARGET && strcmp(name, "decoder.embedding.table") == 0);
}

/* The product with a parameter, or one without columns. */
static struct product product_of(const bench_products_form *f, const heed_param_info *info)
{
    const int64_t rows = heed_tensor_rows(info->tensor), cols = heed_tensor_cols(info->tensor);
    const bool table = info->role == HEED_ROLE_TABLE, matrix = info->role == HEED_ROLE_MATRIX;
    const bool output =
        table ? is_output(f->model, info->name) : strcmp(info->name, "output.weight") == 0;
    struct product x = {.w = {.bits = f->bytes ? 8 : 0}};
    if (!matrix && !output)
        return x;
    x.once = strncmp(info->name, "encoder.", 8) == 0 || strstr(info->name, ".cross.kv.");
    x.w.k = table ? cols : rows;
    x.w.n = table ? rows : cols;
    if (output && f->shortlist && f->shortlist < x.w.n)
        x.w.n = f->shortlist;
    return x;
}

static void fill(bench_products *p, heed__panel_weights *w, uint64_t seed, heed_error *err)
{
    const int64_t n = w->k * w->n, columns = heed__panels(w->n) * HEED_PANEL;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    heed_real *x = malloc((size_t)n * sizeof *x);
    heed_real *real = room(p, w->bits ? 1 : heed__panel_reals(w->k, w->n), sizeof *real, err);
    int8_t *bytes = room(p, w->bits ? heed__panel_bytes(w->k, w->n) : 1, sizeof *bytes, err);
    float *scale = room(p, columns, sizeof *scale, err);
    int32_t *sum = room(p, columns, sizeof *sum, err);
    if (!x)
        heed__fail(err, HEED_MEMORY, "out of memory for the products of decoding");
    for (int64_t i = 0; !err->status && i < n; i++)
        x[i] = (heed_real)(0.1 * heed_rng_uniform(&rng, (uint64_t)i) - 0.05);
    if (!err->status && w->bits)
        heed__panel_pack_int8(bytes, scale, sum, x, w->n, 1, w->k, w->n);
    else if (!err->status)
        heed__panel_pack(real, x, w->n, 1, w->k, w->n);
    w->real = real;
    w->bytes = bytes;
    w->scale = scale;
    w->sum = sum;
    free(x);
}

static int64_t rows_of(const bench_products_form *f, const struct product *x)
{
    return x->once ? f->batch * f->tokens_in : f->batch * f->beam;
}

/* Room for the largest product's rows. */
static void make_rows(bench_products *p, heed_error *err)
{
    int64_t most_in = 1, most_out = 1, most_bytes = 1, most_rows = 1;
    for (int i = 0; i < p->count; i++) {
        const heed__panel_weights *w = &p->item[i].w;
        const int64_t rows = rows_of(&p->form, &p->item[i]);
        most_in = rows * w->k > most_in ? rows * w->k : most_in;
        most_out = rows * w->n > most_out ? rows * w->n : most_out;
        const int64_t bytes = 4 * rows * heed__panel_groups(w->k);
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
        most_rows = rows > most_rows ? rows : most_rows;
    }
    p->a = room(p, most_in, sizeof *p->a, err);
    p->c = room(p, most_out, sizeof *p->c, err);
    p->rows.bytes = room(p, most_bytes, sizeof *p->rows.bytes, err);
    p->rows.step = room(p, most_rows, sizeof *p->rows.step, err);
    p->rows.low = room(p, most_rows, sizeof *p->rows.low, err);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 7});
    for (int64_t i = 0; !err->status && i < most_in; i++)
        p->a[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
}

/* All of them, from an outline of the model. */
static void make_products(bench_products *p, heed_model *outline, heed_error *err)
{
    const heed_params *all = heed_model_params(outline);
    p->item = room(p, heed_params_count(all), sizeof *p->item, err);
    for (int i = 0; !err->status && i < heed_params_count(all); i++) {
        const heed_param_info info = heed_params_entry(all, i);
        const struct product x = product_of(&p->form, &info);
        if (!x.w.n)
            continue;
        p->item[p->count] = x;
        fill(p, &p->item[p->count++].w, (uint64_t)i, err);
    }
    if (!err->status)
        make_rows(p, err);
}

bench_products *bench_products_new(const bench_products_form *form, heed_error *err)
{
    heed_error own = {0};
    heed_model *outline = heed_model_outline(form->model, NULL, &own);
    bench_products *p = outline ? calloc(1, sizeof *p) : NULL;
    if (outline && !p)
        heed__fail(&own, HEED_MEMORY, "out of memory for the products of decoding");
    if (p) {
        p->form = *form;
        p->arena = heed_arena_new(NULL, &own);
        if (p->arena)
            make_products(p, outline, &own);
    }
    heed_model_free(outline);
    if (!own.status)
        return p;
    bench_products_free(p);
    heed__fail(err, own.status, "%s", own.text);
    return NULL;
}

void bench_products_free(bench_products *p)
{
    if (!p)
        return;
    heed_arena_free(p->arena);
    free(p);
}

/* The first step of a search has one row a line. */
double bench_products_operations(const bench_products *p)
{
    const bench_products_form *f = &p->form;
    double all = 0;
    for (int i = 0; i < p->count; i++) {
        const double rows = (double)(p->item[i].once ? f->batch * f->tokens_in
                                                     : f->batch * (1 + (f->out - 1) * f->beam));
        all += 2 * rows * (double)p->item[i].w.k * (double)p->item[i].w.n;
    }
    return all;
}

static void multiply(const bench_products *p, const heed__panel_weights *w, int64_t rows)
{
    if (w->bits)
        heed__kernels()->panel_quantise(&p->rows, p->a, w->k, rows, w->k);
    heed__kernels()->panel_product(p->c, w->n, p->a, w->k, &p->rows, rows, w, 0,
                                   heed__panels(w->n));
}

double bench_products_turn(bench_products *p)
{
    const bench_products_form *f = &p->form;
    const double start = heed_clock_seconds();
    for (int64_t step = -1; step < f->out; step++)
        for (int i = 0; i < p->count; i++)
            if (p->item[i].once == (step < 0))
                multiply(p, &p->item[i].w,
                         step < 0 ? rows_of(f, &p->item[i]) : f->batch * (step ? f->beam : 1));
    return heed_clock_seconds() - start;
}
