/* pass.c: a stack for decoding: the sublayers of model/stack.c on packed weights and plain rows. */
#include "engine/pass.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/min_max.h"
#include "base/parallel.h"
#include "kernel/rotary_rows.h"

#include <string.h>

/* ---- memory ---- */

void heed__pass_init(heed__pass *p, const heed__weights *w, int threads, heed_allocator allocator)
{
    *p = (heed__pass){.w = w, .allocator = allocator, .threads = threads < 1 ? 1 : threads};
}

/* Bytes of a row of the widest input. */
static int64_t row_bytes(const heed__weights *w)
{
    return 4 * heed__panel_groups(w->reads);
}

int64_t heed__pass_key_room(const heed__pass *p, int64_t keys)
{
    return keys + p->w->shared;
}

static int64_t ranges_of(const heed__packed_stack *s, int64_t keys)
{
    int64_t most = 1;
    for (int i = 0; s && i < s->count; i++)
        if (s->sublayer[i].kind == HEED__PACKED_SELF)
            most = heed__max(most, heed__pattern_most(&s->sublayer[i].as.attention.pattern, keys));
    return most;
}

int64_t heed__pass_ranges(const heed__pass *p, int64_t keys)
{
    return heed__max(ranges_of(p->w->encoder, keys), ranges_of(p->w->decoder, keys));
}

/* Probabilities of all heads, once more for a recorder; what a norm needs; a key of a state. */
int64_t heed__pass_scratch(const heed__pass *p, int64_t keys)
{
    const heed__weights *w = p->w;
    const int64_t probabilities = 2 * w->heads * heed__pass_key_room(p, keys);
    return heed__max(heed__max(probabilities, HEED_NORM_SCRATCH(w->d)), w->room);
}

struct buffer {
    void **at;
    int64_t count;
    size_t size;
};
#define BUFFERS 14

/* Every buffer with its size for this many rows and keys. */
static void list_buffers(heed__pass *p, int64_t rows, int64_t keys, struct buffer b[BUFFERS])
{
    const heed__weights *w = p->w;
    const bool bytes = w->bits || w->screen;
    const int64_t lists = p->threads * 2 * heed__pass_key_room(p, keys);
    const struct buffer all[BUFFERS] = {
        {(void **)&p->x, rows * w->d, sizeof *p->x},
        {(void **)&p->y, rows * w->d, sizeof *p->y},
        {(void **)&p->wide, rows * w->widest, sizeof *p->wide},
        {(void **)&p->mixed, rows * w->mixed, sizeof *p->mixed},
        {(void **)&p->bytes.bytes, bytes ? rows * row_bytes(w) : 0, 1},
        {(void **)&p->bytes.step, bytes ? rows : 0, sizeof *p->bytes.step},
        {(void **)&p->bytes.low, bytes ? rows : 0, sizeof *p->bytes.low},
        {(void **)&p->scratch, p->threads * heed__pass_scratch(p, keys), sizeof *p->scratch},
        {(void **)&p->key, lists, sizeof *p->key},
        {(void **)&p->key_position, lists, sizeof *p->key_position},
        {(void **)&p->column, lists, sizeof *p->column},
        {(void **)&p->distance, lists, sizeof *p->distance},
        {(void **)&p->ranges, p->threads * heed__pass_ranges(p, keys), sizeof *p->ranges},
        {(void **)&p->state, w->state, sizeof *p->state},
    };
    memcpy(b, all, sizeof all);
}

static void angle_rows(heed_real *to, int64_t first, int64_t count, int64_t d, const void *context)
{
    const heed__packed_rotary *r = context;
    heed__rotary_angles(to, first, count, d, r->base);
}

heed_status heed__pass_positions(heed__pass *p, int64_t count, heed_error *err)
{
    const heed__weights *w = p->w;
    heed_status status = HEED_OK;
    if (w->rotaries && !p->angles)
        p->angles = heed__allocate_zeroed(&p->allocator, (size_t)w->rotaries, sizeof *p->angles);
    if (w->rotaries && !p->angles)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld positions", (long long)count);
    for (int i = 0; !status && i < w->rotaries; i++)
        status = heed__positions_reserve(&p->angles[i], count, w->rotary[i].d, angle_rows,
                                         &w->rotary[i], &p->allocator, err);
    return status;
}

static void release_buffers(heed__pass *p)
{
    struct buffer b[BUFFERS];
    list_buffers(p, p->capacity, p->keys, b);
    for (int i = 0; i < BUFFERS; i++) {
        heed__release(&p->allocator, *b[i].at, (size_t)b[i].count, b[i].size);
        *b[i].at = NULL;
    }
    p->capacity = p->keys = 0;
}

void heed__pass_deinit(heed__pass *p)
{
    release_buffers(p);
    for (int i = 0; p->angles && i < p->w->rotaries; i++)
        heed__positions_release(&p->angles[i], p->w->rotary[i].d, &p->allocator);
    heed__release(&p->allocator, p->angles, (size_t)p->w->rotaries, sizeof *p->angles);
    p->angles = NULL;
}

heed_status heed__pass_reserve(heed__pass *p, int64_t rows, int64_t keys, heed_error *err)
{
    if (rows <= p->capacity && keys <= p->keys)
        return HEED_OK;
    rows = heed__max(rows, p->capacity);
    keys = keys <= p->keys ? p->keys : heed__max(keys, 2 * p->keys);
    release_buffers(p);
    p->capacity = rows;
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
    release_buffers(p);
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
    int activation;
};

/* The int8 values of rows from `first` on. */
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
    if (j->w->multiplier > 0)
        heed__kernels()->panel_quantise_fixed(&mine, j->x + begin * k, k, end - begin, k,
                                              j->w->multiplier);
    else
        heed__kernels()->panel_quantise(&mine, j->x + begin * k, k, end - begin, k);
}

void heed__pass_prepare(heed__pass *p, const heed__panel_weights *w, const heed_real *x,
                        int64_t rows)
{
    struct rows_job j = {.p = p, .w = w, .x = x};
    if (p->watch)
        p->watch->see(p->watch->context, w, x, rows);
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

void heed__pass_linear(heed__pass *p, const heed__panel_weights *w, heed_real *y,
                       const heed_real *x, int64_t rows)
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
    const int64_t d = n->d;
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
        k->norm_forward(&how, begin, end,
                        j->p->scratch + thread * heed__pass_scratch(j->p, j->p->keys));
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
    heed__parallel(p->threads, rows, 1, 8 * n->d, norm_range, &j);
}

/* What a sublayer f reads: x, or norm(x). */
static const heed_real *before(const heed__pass *p, const heed__packed_sublayer *s, int64_t rows)
{
    if (s->place != HEED_NORM_BEFORE)
        return p->x;
    heed__pass_norm(p, &s->norm, p->y, p->x, NULL, rows);
    return p->y;
}

/* What becomes of f's result y: norm(x + y), x + y, norm(y) or y. */
static void after(heed__pass *p, const heed__packed_sublayer *s, int64_t d, int64_t rows)
{
    if (s->place == HEED_NORM_AFTER && s->residual)
        heed__pass_norm(p, &s->norm, p->x, p->x, p->y, rows);
    else if (s->place == HEED_NORM_AFTER)
        heed__pass_norm(p, &s->norm, p->x, p->y, NULL, rows);
    else if (s->residual)
        heed__kernels()->arith(HEED__ADD, p->x, p->x, p->y, rows * d);
    else
        memcpy(p->x, p->y, (size_t)(rows * d) * sizeof *p->x);
}

/* ---- the feed-forward network ---- */

static void gate_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct rows_job *j = context;
    const heed_kernels *k = heed__kernels();
    const int64_t f = j->w->k;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        k->unary(j->activation, j->y + i * f, j->x + i * 2 * f, f);
        k->arith(HEED__MUL, j->y + i * f, j->y + i * f, j->x + (2 * i + 1) * f, f);
    }
}

static void feed_forward(heed__pass *p, const heed__packed_ffn *l, const heed_real *x, int64_t rows)
{
    heed__pass_linear(p, &l->in, p->wide, x, rows);
    const heed_real *hidden = p->wide;
    if (l->gated) { /* activation(gate) * up */
        struct rows_job j = {
            .p = p, .w = &l->out, .y = p->mixed, .x = p->wide, .activation = l->activation};
        heed__parallel(p->threads, rows, 1, 16 * l->out.k, gate_range, &j);
        hidden = p->mixed;
    }
    heed__pass_linear(p, &l->out, p->y, hidden, rows);
}

/* ---- the stack ---- */

void heed__pass_stack(heed__pass *p, const heed__packed_stack *s, int64_t rows,
                      const heed__pass_keys *k)
{
    for (int i = 0; i < s->count; i++) {
        const heed__packed_sublayer *one = &s->sublayer[i];
        const heed_real *x = before(p, one, rows);
        if (one->kind == HEED__PACKED_FFN)
            feed_forward(p, &one->as.ffn, x, rows);
        else if (one->kind == HEED__PACKED_SSRU)
            heed__pass_ssru(p, &one->as.ssru, x, rows, k);
        else
            heed__pass_attention(p, &one->as.attention, x, rows, k);
        after(p, one, s->d, rows);
    }
    if (s->norm.gain)
        heed__pass_norm(p, &s->norm, p->x, p->x, NULL, rows);
}
