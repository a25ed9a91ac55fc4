/* rows.c: add, step and reorder of a packed Transformer.
 *
 * Adding encodes sources, some hundred tokens at a time, and leaves the keys and values that every
 * decoder layer will look at in cells.  A step gives each row a new cell for its token; a reorder
 * copies the rows' lists of cells. */
#include "decode/rows.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* Source tokens that are encoded at once: enough rows for fast products, few enough for memory. */
#define ENCODED 160

static size_t mark_words(const heed__rows *r)
{
    return ((size_t)r->w->config.target_vocabulary + 63) / 64;
}

heed__rows *heed__rows_new(const heed__weights *w, const heed__shortlist *shortlist, int threads,
                           const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__rows *r = heed__allocate_zeroed(&a, 1, sizeof *r);
    if (!r) {
        heed__fail(err, HEED_MEMORY, "out of memory for a session");
        return NULL;
    }
    r->w = w;
    r->allocator = a;
    heed__pass_init(&r->pass, w, threads, a);
    heed__cells_init(&r->cells, w->decoder_layers * w->heads * (w->d_k + w->d_v), a);
    r->shortlist = shortlist;
    if (!shortlist || (r->marks = heed__allocate_zeroed(&a, mark_words(r), sizeof *r->marks)))
        return r;
    heed__rows_free(r);
    heed__fail(err, HEED_MEMORY, "out of memory for a session");
    return NULL;
}

static void release_rows(heed__rows *r)
{
    const size_t room = (size_t)r->room, list = room * (size_t)r->list;
    heed__release(&r->allocator, r->row, room, sizeof *r->row);
    heed__release(&r->allocator, r->other, room, sizeof *r->other);
    heed__release(&r->allocator, r->cell, list, sizeof *r->cell);
    heed__release(&r->allocator, r->others, list, sizeof *r->others);
}

void heed__rows_free(heed__rows *r)
{
    if (!r)
        return;
    heed_allocator a = r->allocator;
    heed__pass_deinit(&r->pass);
    heed__cells_deinit(&r->cells);
    for (int64_t i = 0; i < r->sources; i++) {
        heed__release(&a, r->source[i].cell, (size_t)r->source[i].room, sizeof *r->cell);
        heed__choice_free(&r->source[i].choice, &r->w->output, &a);
    }
    heed__release(&a, r->marks, mark_words(r), sizeof *r->marks);
    heed__release(&a, r->source, (size_t)r->sources, sizeof *r->source);
    release_rows(r);
    heed__rows_release_output(r);
    heed__rows_release_best(r);
    heed__release(&a, r->span, (size_t)r->spans, sizeof *r->span);
    heed__release(&a, r->positions, (size_t)r->known, (size_t)r->w->d * sizeof *r->positions);
    heed__release(&a, r, 1, sizeof *r);
}

static heed_status short_of_memory(heed_error *err, int64_t rows)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for decoding %lld rows", (long long)rows);
}

/* Room for so many rows of so many tokens; what is there is kept. */
static heed_status reserve(heed__rows *r, int64_t rows, int64_t tokens, heed_error *err)
{
    if (rows <= r->room && tokens <= r->list)
        return HEED_OK;
    const int64_t room = rows > r->room ? rows + rows / 4 : r->room;
    const int64_t list = tokens > r->list ? 2 * tokens : r->list;
    const heed_allocator *a = &r->allocator;
    heed__rows grown = *r;
    grown.room = room;
    grown.list = list;
    grown.row = heed__allocate(a, (size_t)room, sizeof *grown.row);
    grown.other = heed__allocate(a, (size_t)room, sizeof *grown.other);
    grown.cell = heed__allocate(a, (size_t)(room * list), sizeof *grown.cell);
    grown.others = heed__allocate(a, (size_t)(room * list), sizeof *grown.others);
    if (!grown.row || !grown.other || !grown.cell || !grown.others) {
        release_rows(&grown);
        return short_of_memory(err, rows);
    }
    for (int64_t i = 0; i < r->rows; i++) {
        grown.row[i] = r->row[i];
        memcpy(grown.cell + i * list, r->cell + i * r->list,
               (size_t)r->row[i].length * sizeof *r->cell);
    }
    release_rows(r);
    *r = grown;
    return HEED_OK;
}

/* ---- add ---- */

/* A free place for a source of `length` tokens, its cells taken; -1 when memory is short. */
static int32_t place_source(heed__rows *r, int64_t length)
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
    if (length > s->room) {
        heed__release(&r->allocator, s->cell, (size_t)s->room, sizeof *s->cell);
        s->room = 0;
        s->cell = heed__allocate(&r->allocator, (size_t)length, sizeof *s->cell);
        if (!s->cell)
            return -1;
        s->room = length;
    }
    if (!heed__cells_reserve(&r->cells, length))
        return -1;
    for (int64_t i = 0; i < length; i++)
        s->cell[i] = heed__cells_take(&r->cells);
    s->length = length;
    s->rows = 1;
    return (int32_t)at;
}

/* The tokens of some sources, one after the other. */
struct encoding {
    heed__rows *r;
    int64_t first, count; /* the rows that are new */
    int64_t tokens;
};

static int64_t source_keys(void *context, int layer, int64_t row, const heed_real **key)
{
    const heed__rows *r = context;
    const heed__weights *w = r->w;
    const int64_t ld = w->encoder[layer].self.in.n;
    const heed__row_span span = r->span[row];
    const heed_real *at = r->pass.wide + span.begin * ld + w->heads * w->d_k;
    for (int64_t i = 0; i < span.length; i++)
        key[i] = at + i * ld;
    return span.length;
}

/* Keys and values for each decoder layer, from the encoder's result to the cells. */
static void keep_source(const struct encoding *e)
{
    heed__rows *r = e->r;
    heed__pass *p = &r->pass;
    const int64_t width = r->w->heads * (r->w->d_k + r->w->d_v);
    for (int l = 0; l < r->w->decoder_layers; l++) {
        const heed__panel_weights *kv = &r->w->decoder[l].cross.kv;
        if (l == 0)
            heed__pass_prepare(p, kv, p->x, e->tokens);
        heed__pass_product(p, kv, p->wide, p->x, e->tokens);
        heed__pass_unit(p, p->wide, width, r->w->heads, e->tokens);
        int64_t t = 0;
        for (int64_t i = e->first; i < e->first + e->count; i++) {
            const heed__row_source *s = &r->source[r->row[i].source];
            for (int64_t k = 0; k < s->length; k++, t++)
                memcpy(heed__cell(&r->cells, s->cell[k]) + l * width, p->wide + t * width,
                       (size_t)width * sizeof(heed_real));
        }
    }
}

/* Memory for encoding so many tokens, of sentences with at most `longest`. */
static heed_status prepare_encoding(heed__rows *r, int64_t tokens, int64_t longest, heed_error *err)
{
    heed_status status = heed__pass_reserve(&r->pass, tokens, longest, err);
    if (!status)
        status = heed__rows_positions(r, longest, err);
    if (status || tokens <= r->spans)
        return status;
    heed__release(&r->allocator, r->span, (size_t)r->spans, sizeof *r->span);
    r->spans = 0;
    r->span = heed__allocate(&r->allocator, (size_t)tokens, sizeof *r->span);
    if (!r->span)
        return short_of_memory(err, tokens);
    r->spans = tokens;
    return HEED_OK;
}

/* The new rows' sources, EOS not among their tokens. */
static heed_status encode(const struct encoding *e, const heed_tokens *source,
                          const heed_tokens *wanted, heed_error *err)
{
    heed__rows *r = e->r;
    heed__pass *p = &r->pass;
    int64_t longest = 0, t = 0;
    for (int64_t i = 0; i < e->count; i++)
        longest = source[i].count + 1 > longest ? source[i].count + 1 : longest;
    heed_status status = prepare_encoding(r, e->tokens, longest, err);
    if (status)
        return status;
    for (int64_t i = 0; i < e->count; i++) {
        const heed__row_span span = {(int32_t)t, (int32_t)source[i].count + 1};
        for (int64_t k = 0; k < span.length; k++, t++) {
            r->span[t] = span;
            heed__rows_embed(r, &r->w->source, t, k < source[i].count ? source[i].id[k] : HEED_EOS,
                             k);
        }
    }
    const heed__pass_keys keys = {.context = r, .self = source_keys};
    for (int l = 0; l < r->w->encoder_layers; l++)
        heed__pass_encoder_layer(p, l, e->tokens, &keys);
    if (r->w->config.transformer.pre_norm)
        heed__pass_norm(p, &r->w->encoder_norm, p->x, p->x, NULL, e->tokens);
    keep_source(e);
    for (int64_t i = 0; r->shortlist && !status && i < e->count; i++)
        status = heed__shortlist_choose(
            r->shortlist, &source[i], wanted ? &wanted[i] : NULL, &r->w->output, r->marks,
            &r->source[r->row[e->first + i].source].choice, &r->allocator, err);
    return status;
}

static heed_status check_source(const heed__rows *r, const heed_tokens *source, heed_error *err)
{
    const heed_model_config *c = &r->w->config;
    if (source->count + 1 > c->longest)
        return heed__fail(
            err, HEED_ARGUMENT,
            "a source sentence has %lld tokens, expected at most %lld, as '--longest' says",
            (long long)source->count + 1, (long long)c->longest);
    for (int64_t i = 0; i < source->count; i++)
        if (source->id[i] < 0 || source->id[i] >= c->source_vocabulary)
            return heed__fail(err, HEED_ARGUMENT, "source token %lld is %ld, expected 0 to %lld",
                              (long long)i, (long)source->id[i],
                              (long long)c->source_vocabulary - 1);
    return HEED_OK;
}

static heed_status add(void *self, const heed_tokens *source, const heed_tokens *wanted,
                       int64_t count, heed_error *err)
{
    heed__rows *r = self;
    heed_status status = r->broken ? heed__fail(err, HEED_STATE, "a step failed: clear the rows")
                                   : reserve(r, r->rows + count, 1, err);
    for (int64_t i = 0; !status && i < count; i++)
        status = check_source(r, &source[i], err);
    for (int64_t begin = 0, end; !status && begin < count; begin = end) {
        struct encoding e = {.r = r, .first = r->rows};
        for (end = begin; end < count; end++) {
            const int64_t length = source[end].count + 1;
            if (end > begin && e.tokens + length > ENCODED)
                break;
            int32_t at = place_source(r, length);
            if (at < 0) {
                r->broken = true; /* rows before this one have not been encoded */
                return short_of_memory(err, r->rows);
            }
            r->row[r->rows++] = (heed__row){.source = at};
            e.tokens += length;
            e.count++;
        }
        status = encode(&e, source + begin, wanted ? wanted + begin : NULL, err);
        r->broken = status;
    }
    return status;
}

/* ---- step ---- */

static int64_t own_keys(void *context, int layer, int64_t row, const heed_real **key)
{
    const heed__rows *r = context;
    const int64_t at = layer * r->w->heads * (r->w->d_k + r->w->d_v), n = r->row[row].length;
    const int32_t *cell = r->cell + row * r->list;
    for (int64_t i = 0; i < n; i++)
        key[i] = heed__cell(&r->cells, cell[i]) + at;
    return n;
}

static int64_t cross_keys(void *context, int layer, int64_t row, const heed_real **key)
{
    const heed__rows *r = context;
    const heed__row_source *s = &r->source[r->row[row].source];
    const int64_t at = layer * r->w->heads * (r->w->d_k + r->w->d_v);
    for (int64_t i = 0; i < s->length; i++)
        key[i] = heed__cell(&r->cells, s->cell[i]) + at;
    return s->length;
}

/* The newest cell of each row. */
static void keep_own(void *context, int layer, const heed_real *kv, int64_t ld)
{
    heed__rows *r = context;
    const int64_t width = r->w->heads * (r->w->d_k + r->w->d_v);
    for (int64_t i = 0; i < r->rows; i++) {
        const int32_t cell = r->cell[i * r->list + r->row[i].length - 1];
        memcpy(heed__cell(&r->cells, cell) + layer * width, kv + i * ld,
               (size_t)width * sizeof *kv);
    }
}

static heed_status too_long(const heed__rows *r, int64_t tokens, heed_error *err)
{
    return heed__fail(err, HEED_ARGUMENT,
                      "cannot decode token %lld: expected at most %lld, as '--longest' says",
                      (long long)tokens, (long long)r->w->config.longest);
}

static heed_status check_token(const heed__rows *r, int64_t row, int32_t token, heed_error *err)
{
    const int64_t words = r->w->config.target_vocabulary;
    if (token >= 0 && token < words)
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT, "row %lld takes token %ld, expected 0 to %lld",
                      (long long)row, (long)token, (long long)words - 1);
}

static heed_status check_step(const heed__rows *r, const int32_t *token, heed_error *err)
{
    heed_status status = HEED_OK;
    if (r->broken || r->rows < 1)
        return heed__fail(err, HEED_STATE, "cannot decode a token: there are no rows");
    for (int64_t i = 0; !status && i < r->rows; i++)
        status = r->row[i].length >= r->w->config.longest ? too_long(r, r->row[i].length + 1, err)
                                                          : check_token(r, i, token[i], err);
    return status;
}

/* Memory for one token more in every row, before anything changes. */
static heed_status prepare_step(heed__rows *r, heed_error *err)
{
    int64_t longest = 0, keys = 0;
    for (int64_t i = 0; i < r->rows; i++) {
        const int64_t tokens = r->row[i].length + 1, length = r->source[r->row[i].source].length;
        longest = tokens > longest ? tokens : longest;
        keys = length > keys ? length : keys;
    }
    heed_status status = reserve(r, r->rows, longest, err);
    if (!status)
        status = heed__pass_reserve(&r->pass, r->rows, longest > keys ? longest : keys, err);
    if (!status)
        status = heed__rows_positions(r, longest, err);
    if (!status && !heed__cells_reserve(&r->cells, r->rows))
        status = short_of_memory(err, r->rows);
    return status;
}

/* Every row's newest token through the decoder's layers. */
static void decode(heed__rows *r)
{
    heed__pass *p = &r->pass;
    const heed__pass_keys keys = {
        .context = r, .self = own_keys, .cross = cross_keys, .keep = keep_own};
    for (int l = 0; l < r->w->decoder_layers; l++)
        heed__pass_decoder_layer(p, l, r->rows, &keys);
    if (r->w->config.transformer.pre_norm)
        heed__pass_norm(p, &r->w->decoder_norm, p->x, p->x, NULL, r->rows);
}

static heed_status step(void *self, const int32_t *token, heed_scores *out, heed_error *err)
{
    heed__rows *r = self;
    heed_status status = check_step(r, token, err);
    if (!status)
        status = prepare_step(r, err);
    if (status)
        return status;
    for (int64_t i = 0; i < r->rows; i++) {
        heed__rows_embed(r, &r->w->target, i, token[i], r->row[i].length);
        r->cell[i * r->list + r->row[i].length++] = heed__cells_take(&r->cells);
    }
    decode(r);
    status = heed__rows_output(r, out, err);
    r->broken = status;
    return status;
}

heed_status heed__rows_force(heed__rows *r, const heed_tokens *target, heed_error *err)
{
    const int64_t n = target->count + 1, sources = r->source[r->row[0].source].length;
    heed_status status = n <= r->w->config.longest ? reserve(r, n, n, err) : too_long(r, n, err);
    for (int64_t i = 0; !status && i < target->count; i++)
        status = check_token(r, i, target->id[i], err);
    if (!status)
        status = heed__pass_reserve(&r->pass, n, n > sources ? n : sources, err);
    if (!status)
        status = heed__rows_positions(r, n, err);
    if (!status && !heed__cells_reserve(&r->cells, n))
        status = short_of_memory(err, n);
    if (status)
        return status;
    for (int64_t i = 0; i < n; i++) {
        int32_t *cell = r->cell + i * r->list;
        r->row[i] = (heed__row){r->row[0].source, (int32_t)i + 1};
        if (i)
            memcpy(cell, cell - r->list, (size_t)i * sizeof *cell);
        heed__cells_keep(&r->cells, cell, i);
        cell[i] = heed__cells_take(&r->cells);
        heed__rows_embed(r, &r->w->target, i, i ? target->id[i - 1] : HEED_BOS, i);
    }
    r->source[r->row[0].source].rows = r->rows = n;
    decode(r);
    return HEED_OK;
}

/* ---- reorder ---- */

static heed_status check_order(const heed__rows *r, const int32_t *parent, int64_t rows,
                               heed_error *err)
{
    if (rows < 0)
        return heed__fail(err, HEED_ARGUMENT, "cannot reorder to %lld rows", (long long)rows);
    for (int64_t i = 0; i < rows; i++)
        if (parent[i] < 0 || parent[i] >= r->rows)
            return heed__fail(err, HEED_ARGUMENT,
                              "row %lld goes on from row %ld, expected 0 to %lld", (long long)i,
                              (long)parent[i], (long long)r->rows - 1);
    return HEED_OK;
}

static void drop_rows(heed__rows *r)
{
    for (int64_t i = 0; i < r->rows; i++) {
        heed__row_source *s = &r->source[r->row[i].source];
        heed__cells_drop(&r->cells, r->cell + i * r->list, r->row[i].length);
        if (--s->rows == 0)
            heed__cells_drop(&r->cells, s->cell, s->length);
    }
    r->rows = 0;
}

/* The new lists are kept before the old ones are dropped: a cell that stays is never free between.
 * */
static heed_status reorder(void *self, const int32_t *parent, int64_t rows, heed_error *err)
{
    heed__rows *r = self;
    heed_status status = check_order(r, parent, rows, err);
    if (!status)
        status = reserve(r, rows, 1, err);
    if (status)
        return status;
    for (int64_t i = 0; i < rows; i++) {
        const heed__row *from = &r->row[parent[i]];
        const int32_t *cell = r->cell + parent[i] * r->list;
        r->other[i] = *from;
        memcpy(r->others + i * r->list, cell, (size_t)from->length * sizeof *cell);
        heed__cells_keep(&r->cells, cell, from->length);
        r->source[from->source].rows++;
    }
    drop_rows(r);
    heed__row *row = r->row;
    int32_t *cell = r->cell;
    r->row = r->other;
    r->cell = r->others;
    r->other = row;
    r->others = cell;
    r->rows = rows;
    return HEED_OK;
}

static void clear(void *self)
{
    heed__rows *r = self;
    drop_rows(r);
    r->broken = false;
}

heed__stepper heed__rows_stepper(heed__rows *r)
{
    return (heed__stepper){.self = r,
                           .vocabulary = r->w->config.target_vocabulary,
                           .longest = r->w->config.longest,
                           .joins = true,
                           .add = add,
                           .step = step,
                           .reorder = reorder,
                           .clear = clear,
                           .best_only = heed__rows_best_only};
}
