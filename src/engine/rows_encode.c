/* rows_encode.c: sequences through a stack, some hundred tokens at a time.  Of sources the keys and
 * values that every cross-attention will look at stay in cells. */
#include "base/error.h"
#include "base/memory.h"
#include "base/min_max.h"
#include "engine/session_rows.h"

#include <string.h>

/* ---- the encoder ---- */

static heed__pass_place place_in_span(void *context, int64_t row)
{
    const heed__row_span span = ((const heed__rows *)context)->span[row];
    return (heed__pass_place){row - span.begin, span.length};
}

static void span_keys(void *context, const heed__packed_attention *a, int64_t row,
                      heed_key_range range, const heed_real **key)
{
    const heed__rows *r = context;
    const heed_real *at = r->pass.wide + r->span[row].begin * a->in.n + a->form.heads * a->form.d_k;
    for (int64_t i = range.begin; i < range.end; i += range.step)
        *key++ = at + i * a->in.n;
}

static heed_status reserve(heed__rows *r, const heed__packed_stack *s, int64_t rows,
                           int64_t longest, heed_error *err)
{
    heed_status status = heed__pass_reserve(&r->pass, rows, longest, err);
    if (!status)
        status = heed__rows_positions(r, s, longest, err);
    if (status || rows <= r->spans)
        return status;
    heed__release(&r->allocator, r->span, (size_t)r->spans, sizeof *r->span);
    r->spans = 0;
    r->span = heed__allocate(&r->allocator, (size_t)rows, sizeof *r->span);
    if (!r->span)
        return heed__rows_short_of_memory(rows, err);
    r->spans = rows;
    return HEED_OK;
}

heed_status heed__rows_encode(heed__rows *r, const heed__packed_stack *s, const heed__sequence *q,
                              int64_t count, heed_error *err)
{
    int64_t rows = 0, longest = 0, t = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t length = q[i].count + q[i].ended;
        rows += length;
        longest = heed__max(longest, length);
    }
    heed_status status = reserve(r, s, rows, longest, err);
    for (int64_t i = 0; !status && i < count; i++) {
        const heed__row_span span = {(int32_t)t, (int32_t)(q[i].count + q[i].ended)};
        if (q[i].feature)
            heed__rows_embed_features(r, s, t, &q[i]);
        for (int64_t k = 0; k < span.length; k++, t++) {
            r->span[t] = span;
            if (!q[i].feature)
                heed__rows_embed(r, s, t, k < q[i].count ? q[i].id[k] : r->w->config.ids.source.eos,
                                 q[i].type ? q[i].type[k] : 0, k);
        }
    }
    if (status)
        return status;
    heed__rows_embed_norm(r, s, rows);
    heed__pass_stack(&r->pass, s, rows,
                     &(heed__pass_keys){.context = r, .own = span_keys, .place = place_in_span});
    return HEED_OK;
}

/* ---- sources ---- */

/* A free slot for a source of `length` tokens, its cells taken; -1 when memory is short. */
static int32_t take_source(heed__rows *r, int64_t length)
{
    int64_t at = 0;
    while (at < r->sources && r->source[at].rows)
        at++;
    if (at == r->sources) {
        const int64_t more = r->sources ? 2 * r->sources : 32;
        heed__row_source *grown = heed__allocate_zeroed(&r->allocator, (size_t)more, sizeof *grown);
        if (!grown)
            return -1;
        if (at)
            memcpy(grown, r->source, (size_t)at * sizeof *grown);
        heed__release(&r->allocator, r->source, (size_t)at, sizeof *grown);
        r->source = grown;
        r->sources = more;
    }
    heed__row_source *s = &r->source[at];
    if (length > s->capacity) {
        heed__release(&r->allocator, s->cell, (size_t)s->capacity, sizeof *s->cell);
        s->capacity = 0;
        s->cell = heed__allocate(&r->allocator, (size_t)length, sizeof *s->cell);
        if (!s->cell)
            return -1;
        s->capacity = length;
    }
    if (!heed__cells_reserve(&r->memory, length))
        return -1;
    for (int64_t i = 0; i < length; i++)
        s->cell[i] = heed__cells_take(&r->memory);
    s->length = length;
    s->rows = 1;
    return (int32_t)at;
}

/* Rows whose sources are encoded together. */
struct sources {
    int64_t first, count;
    heed__sequence sequence[HEED__ENCODED_ROWS];
};

/* Keys and values for each cross-attention, from the encoder's result to the cells. */
static void cache_memory(heed__rows *r, const struct sources *e)
{
    heed__pass *p = &r->pass;
    const heed__packed_stack *decoder = r->w->decoder;
    const heed__panel_weights *prepared = NULL;
    int64_t tokens = 0;
    for (int64_t i = 0; i < e->count; i++)
        tokens += e->sequence[i].count + e->sequence[i].ended;
    for (int l = 0; l < decoder->count; l++) {
        const heed__packed_attention *a = &decoder->sublayer[l].as.attention;
        if (decoder->sublayer[l].kind != HEED__PACKED_CROSS)
            continue;
        if (!prepared || !heed__pass_read_alike(prepared, &a->kv))
            heed__pass_prepare(p, &a->kv, p->x, tokens);
        prepared = &a->kv;
        heed__pass_memory(p, a, p->x, tokens);
        int64_t t = 0;
        for (int64_t i = e->first; i < e->first + e->count; i++) {
            const heed__row_source *s = &r->source[r->row[i].source];
            for (int64_t k = 0; k < s->length; k++, t++)
                memcpy(heed__cell_at(&r->memory, s->cell[k]) + a->at, p->wide + t * a->cached,
                       (size_t)a->cached * sizeof(heed_real));
        }
    }
}

static heed_status encode(heed__rows *r, const struct sources *e, const heed_tokens *source,
                          const heed_tokens *wanted, heed_error *err)
{
    heed_status status = heed__rows_encode(r, r->w->encoder, e->sequence, e->count, err);
    if (!status)
        cache_memory(r, e);
    for (int64_t i = 0; r->shortlist && !status && i < e->count; i++)
        status = heed__shortlist_choose(
            r->shortlist, &r->w->config.ids, &source[i], wanted ? &wanted[i] : NULL, &r->w->output,
            r->marks, &r->source[r->row[e->first + i].source].choice, &r->allocator, err);
    return status;
}

static heed_status check_source(const heed__rows *r, const heed_tokens *source, heed_error *err)
{
    const heed_model_config *c = &r->w->config;
    const int64_t length = source->count + (c->ids.source.eos >= 0);
    if (length > c->longest)
        return heed__fail(
            err, HEED_ARGUMENT,
            "a source sentence has %lld tokens, expected at most %lld, as '--longest' says",
            (long long)length, (long long)c->longest);
    for (int64_t i = 0; i < source->count; i++)
        if (source->id[i] < 0 || source->id[i] >= c->source_vocabulary)
            return heed__fail(err, HEED_ARGUMENT, "source token %lld is %ld, expected 0 to %lld",
                              (long long)i, (long)source->id[i],
                              (long long)c->source_vocabulary - 1);
    return HEED_OK;
}

static heed_status check(const heed__rows *r, const heed_tokens *source, int64_t count,
                         heed_error *err)
{
    heed_status status = HEED_OK;
    if (r->broken)
        return heed__fail(err, HEED_STATE, "an extension failed: clear the rows");
    if (!r->w->decoder)
        return heed__fail(err, HEED_ARGUMENT,
                          "an encoder alone writes nothing: expected a model with a decoder");
    if (!source == !!r->w->encoder)
        return heed__fail(err, HEED_ARGUMENT,
                          "this model has %s encoder: rows are added with%s sources",
                          r->w->encoder ? "an" : "no", r->w->encoder ? "" : "out");
    for (int64_t i = 0; source && !status && i < count; i++)
        status = check_source(r, &source[i], err);
    return status;
}

heed_status heed__rows_add(void *self, const heed_tokens *source, const heed_tokens *wanted,
                           int64_t count, heed_error *err)
{
    heed__rows *r = self;
    const bool ended = r->w->config.ids.source.eos >= 0;
    heed_status status = check(r, source, count, err);
    if (!status)
        status = heed__rows_reserve(r, r->rows + count, 1, err);
    for (int64_t i = 0; !source && !status && i < count; i++)
        r->row[r->rows++] = (heed__session_row){.source = -1, .state = -1};
    for (int64_t begin = 0, end; source && !status && begin < count; begin = end) {
        struct sources e = {.first = r->rows};
        int64_t tokens = 0;
        for (end = begin; end < count; end++) {
            const int64_t length = source[end].count + ended;
            if (end > begin &&
                (e.count == HEED__ENCODED_ROWS || tokens + length > HEED__ENCODED_ROWS))
                break;
            int32_t at = take_source(r, length);
            if (at < 0) {
                r->broken = true; /* rows before this one have not been encoded */
                return heed__rows_short_of_memory(r->rows, err);
            }
            r->row[r->rows++] = (heed__session_row){.source = at, .state = -1};
            e.sequence[e.count++] =
                (heed__sequence){.id = source[end].id, .count = source[end].count, .ended = ended};
            tokens += length;
        }
        status = encode(r, &e, source + begin, wanted ? wanted + begin : NULL, err);
        r->broken = status;
    }
    return status;
}
