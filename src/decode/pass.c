/* pass.c: section 3.1 and 3.2 of the paper, for decoding: the same layers as model/transformer.c,
 * on packed weights and plain rows. */
#include "decode/pass.h"
#include "attention/attend.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernel/unit.h"

#include <string.h>

/* ---- memory ---- */

void heed__pass_init(heed__pass *p, const heed__weights *w, int threads, heed_allocator allocator)
{
    *p = (heed__pass){.w = w, .allocator = allocator, .threads = threads < 1 ? 1 : threads};
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Bytes of a row of the widest input. */
static int64_t row_bytes(const heed__weights *w)
{
    return 4 *
           heed__panel_groups(larger(larger(w->d, w->heads * w->d_v), w->config.transformer.ff));
}

static int64_t scratch_count(const heed__pass *p, int64_t keys)
{
    return larger(p->w->heads * keys, HEED_NORM_SCRATCH(p->w->d));
}

struct buffer {
    void **at;
    int64_t count;
    size_t size;
};
#define BUFFERS 9

/* Every buffer with its size for so many rows and keys. */
static void list_buffers(heed__pass *p, int64_t rows, int64_t keys, struct buffer b[BUFFERS])
{
    const heed__weights *w = p->w;
    const bool bytes = w->bits || w->screen;
    const struct buffer all[BUFFERS] = {
        {(void **)&p->x, rows * w->d, sizeof *p->x},
        {(void **)&p->y, rows * w->d, sizeof *p->y},
        {(void **)&p->wide, rows * w->widest, sizeof *p->wide},
        {(void **)&p->mixed, rows * w->heads * w->d_v, sizeof *p->mixed},
        {(void **)&p->bytes.bytes, bytes ? rows * row_bytes(w) : 0, 1},
        {(void **)&p->bytes.step, bytes ? rows : 0, sizeof *p->bytes.step},
        {(void **)&p->bytes.low, bytes ? rows : 0, sizeof *p->bytes.low},
        {(void **)&p->scratch, p->threads * scratch_count(p, keys), sizeof *p->scratch},
        {(void **)&p->key, p->threads * 2 * keys, sizeof *p->key},
    };
    memcpy(b, all, sizeof all);
}

void heed__pass_deinit(heed__pass *p)
{
    struct buffer b[BUFFERS];
    list_buffers(p, p->room, p->keys, b);
    for (int i = 0; i < BUFFERS; i++) {
        heed__release(&p->allocator, *b[i].at, (size_t)b[i].count, b[i].size);
        *b[i].at = NULL;
    }
    p->room = p->keys = 0;
}

heed_status heed__pass_reserve(heed__pass *p, int64_t rows, int64_t keys, heed_error *err)
{
    if (rows <= p->room && keys <= p->keys)
        return HEED_OK;
    rows = larger(rows, p->room);
    keys = keys <= p->keys ? p->keys : larger(keys, 2 * p->keys);
    heed__pass_deinit(p);
    p->room = rows;
    p->keys = keys;
    struct buffer b[BUFFERS];
    list_buffers(p, rows, keys, b);
    bool good = true;
    for (int i = 0; i < BUFFERS; i++) {
        *b[i].at = heed__allocate(&p->allocator, (size_t)b[i].count, b[i].size);
        good = good && *b[i].at;
    }
    if (good)
        return HEED_OK;
    heed__pass_deinit(p);
    return heed__fail(err, HEED_MEMORY, "out of memory for decoding %lld rows", (long long)rows);
}

/* ---- products ---- */

struct rows_job {
    const heed__pass *p;
    const heed__panel_weights *w;
    const heed__row_norm *norm;
    heed_real *y;
    const heed_real *x, *r;
    int64_t rows;
};

/* The bytes of rows from `first` on. */
static heed__panel_rows rows_from(const heed__panel_rows *r, int64_t first, int64_t k)
{
    if (!r->bytes)
        return *r;
    return (heed__panel_rows){r->bytes + first * 4 * heed__panel_groups(k), r->step + first,
                              r->low + first};
}

static void quantise_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct rows_job *j = context;
    const int64_t k = j->w->k;
    const heed__panel_rows mine = rows_from(&j->p->bytes, begin, k);
    (void)thread;
    heed__kernels()->panel_quantise(&mine, j->x + begin * k, k, end - begin, k);
}

void heed__pass_prepare(heed__pass *p, const heed__panel_weights *w, const heed_real *x,
                        int64_t rows)
{
    struct rows_job j = {.p = p, .w = w, .x = x};
    if (w->bits)
        heed__parallel(p->threads, rows, 1, 4 * w->k, quantise_range, &j);
}

void heed__pass_columns(const heed__pass *p, const heed__panel_weights *w, heed_real *y, int64_t ld,
                        const heed_real *x, int64_t first, int64_t rows, int64_t begin, int64_t end)
{
    const heed__panel_rows bytes = rows_from(&p->bytes, first, w->k);
    heed__kernels()->panel_product(y + first * ld, ld, x + first * w->k, w->k, &bytes, rows, w,
                                   begin, end);
}

static void product_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct rows_job *j = context;
    (void)thread;
    heed__pass_columns(j->p, j->w, j->y, j->w->n, j->x, 0, j->rows, begin, end);
}

void heed__pass_product(const heed__pass *p, const heed__panel_weights *w, heed_real *y,
                        const heed_real *x, int64_t rows)
{
    struct rows_job j = {.p = p, .w = w, .y = y, .x = x, .rows = rows};
    heed__parallel(p->threads, heed__panels(w->n), 1, rows * w->k * HEED_PANEL, product_range, &j);
}

static void product(heed__pass *p, const heed__panel_weights *w, heed_real *y, const heed_real *x,
                    int64_t rows)
{
    heed__pass_prepare(p, w, x, rows);
    heed__pass_product(p, w, y, x, rows);
}

/* ---- norms and residuals ---- */

static void norm_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct rows_job *j = context;
    const heed__row_norm *n = j->norm;
    const heed_kernels *k = heed__kernels();
    const int64_t d = j->p->w->d;
    if (!n->fixed) {
        const heed__norm how = {.x = j->x,
                                .r = j->r,
                                .gain = n->gain,
                                .bias = n->bias,
                                .d = d,
                                .ldx = d,
                                .ldr = d,
                                .centred = n->centred,
                                .eps = n->eps,
                                .y = j->y};
        k->norm_forward(&how, begin, end, j->p->scratch + thread * scratch_count(j->p, j->p->keys));
        return;
    }
    for (int64_t i = begin * d; i < end * d; i += d) {
        const heed_real *from = j->x + i;
        if (j->r) {
            k->arith(HEED__ADD, j->y + i, from, j->r + i, d);
            from = j->y + i;
        }
        k->arith(HEED__MUL, j->y + i, from, n->gain, d);
        k->arith(HEED__ADD, j->y + i, j->y + i, n->bias, d);
    }
}

void heed__pass_norm(const heed__pass *p, const heed__row_norm *n, heed_real *y, const heed_real *x,
                     const heed_real *r, int64_t rows)
{
    struct rows_job j = {.p = p, .norm = n, .y = y, .x = x, .r = r};
    heed__parallel(p->threads, rows, 1, 8 * p->w->d, norm_range, &j);
}

/* What a sublayer reads: the stream, or its norm. */
static const heed_real *before(const heed__pass *p, const heed__row_norm *n, int64_t rows)
{
    if (!p->w->config.transformer.pre_norm)
        return p->x;
    heed__pass_norm(p, n, p->y, p->x, NULL, rows);
    return p->y;
}

/* What becomes of its result, which is in y. */
static void after(heed__pass *p, const heed__row_norm *n, int64_t rows)
{
    const heed_transformer_config *c = &p->w->config.transformer;
    const int64_t count = rows * p->w->d;
    if (!c->pre_norm && c->residual)
        heed__pass_norm(p, n, p->x, p->x, p->y, rows);
    else if (!c->pre_norm)
        heed__pass_norm(p, n, p->x, p->y, NULL, rows);
    else if (c->residual)
        heed__kernels()->arith(HEED__ADD, p->x, p->x, p->y, count);
    else
        memcpy(p->x, p->y, (size_t)count * sizeof *p->x);
}

/* ---- attention ---- */

struct unit_job {
    heed_real *x;
    int64_t ld, parts, d;
};

static void unit_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct unit_job *j = context;
    (void)thread;
    for (int64_t i = begin * j->parts; i < end * j->parts; i++) {
        heed_real *x = j->x + i / j->parts * j->ld + i % j->parts * j->d;
        heed__make_unit(x, x, (heed_real)HEED__COSINE_EPS, j->d);
    }
}

void heed__pass_unit(const heed__pass *p, heed_real *x, int64_t ld, int64_t vectors, int64_t rows)
{
    struct unit_job j = {x, ld, vectors, p->w->d_k};
    if (p->w->cosine)
        heed__parallel(p->threads, rows, 1, 4 * vectors * j.d, unit_range, &j);
}

struct attention_job {
    const heed__pass *p;
    const heed__attention_weights *a;
    const heed__pass_keys *k;
    heed_attention_kind kind;
    int layer;
    int64_t ld; /* from query to query, in wide */
};

/* The keys that a row looks at, none behind the last row. */
static int64_t keys_of(const struct attention_job *j, int64_t row, int64_t end,
                       const heed_real **key)
{
    if (row >= end)
        return 0;
    return (j->kind == HEED_CROSS ? j->k->cross : j->k->self)(j->k->context, j->layer, row, key);
}

static void attend_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct attention_job *j = context;
    const heed__pass *p = j->p;
    const heed__weights *w = p->w;
    heed_real *weights = p->scratch + thread * scratch_count(p, p->keys);
    const heed_real **key = p->key + thread * 2 * p->keys, **next = key + p->keys;
    int64_t n = keys_of(j, begin, end, key);
    for (int64_t r = begin; r < end; r++) {
        const int64_t soon = keys_of(j, r + 1, end, next);
        int64_t same = 0; /* hypotheses of a sentence have their first keys in common */
        while (same < n && same < soon && next[same] == key[same])
            same++;
        heed__kernels()->attend_row(p->mixed + r * w->heads * w->d_v, weights, p->wide + r * j->ld,
                                    key, n, next + same, soon - same, w->heads, w->d_k, w->d_v,
                                    j->a->scale);
        if (p->watch)
            p->watch(p->watching, j->kind, j->layer, r, weights, n);
        const heed_real **done = key;
        key = next;
        next = done;
        n = soon;
    }
}

static void attend(const heed__pass *p, const heed__attention_weights *a, const heed__pass_keys *k,
                   heed_attention_kind kind, int layer, int64_t rows)
{
    struct attention_job j = {p, a, k, kind, layer, a->in.n};
    /* As many keys as there is memory for is a guess at the work; who watches sees rows in order.
     * */
    int threads = p->watch ? 1 : p->threads;
    heed__parallel(threads, rows, 1, p->keys * p->w->heads * (p->w->d_k + p->w->d_v), attend_range,
                   &j);
}

static void self_attention(heed__pass *p, const heed__attention_weights *a,
                           const heed__pass_keys *k, heed_attention_kind kind, int layer,
                           int64_t rows)
{
    const int64_t ld = a->in.n;
    product(p, &a->in, p->wide, before(p, &a->norm, rows), rows); /* (rows, H*(2 Dk+Dv)) */
    heed__pass_unit(p, p->wide, ld, 2 * p->w->heads, rows);
    if (kind == HEED_DECODER_SELF)
        k->keep(k->context, layer, p->wide + p->w->heads * p->w->d_k, ld);
    attend(p, a, k, kind, layer, rows);
    product(p, &a->out, p->y, p->mixed, rows);
    after(p, &a->norm, rows);
}

static void cross_attention(heed__pass *p, const heed__attention_weights *a,
                            const heed__pass_keys *k, int layer, int64_t rows)
{
    product(p, &a->in, p->wide, before(p, &a->norm, rows), rows); /* (rows, H*Dk) */
    heed__pass_unit(p, p->wide, a->in.n, p->w->heads, rows);
    attend(p, a, k, HEED_CROSS, layer, rows);
    product(p, &a->out, p->y, p->mixed, rows);
    after(p, &a->norm, rows);
}

static void feed_forward(heed__pass *p, const heed__layer_weights *l, int64_t rows)
{
    product(p, &l->ffn_in, p->wide, before(p, &l->ffn_norm, rows), rows);
    product(p, &l->ffn_out, p->y, p->wide, rows);
    after(p, &l->ffn_norm, rows);
}

/* ---- layers ---- */

void heed__pass_encoder_layer(heed__pass *p, int layer, int64_t rows, const heed__pass_keys *k)
{
    const heed__layer_weights *l = &p->w->encoder[layer];
    self_attention(p, &l->self, k, HEED_ENCODER_SELF, layer, rows);
    feed_forward(p, l, rows);
}

void heed__pass_decoder_layer(heed__pass *p, int layer, int64_t rows, const heed__pass_keys *k)
{
    const heed__layer_weights *l = &p->w->decoder[layer];
    self_attention(p, &l->self, k, HEED_DECODER_SELF, layer, rows);
    cross_attention(p, &l->cross, k, layer, rows);
    feed_forward(p, l, rows);
}
