/* session_rows.c: the rows of a packed model: their memory, and add, extend, rewind and reorder as
 * a stepper.  A row is a list of cells; a reorder copies lists, a rewind shortens one. */
#include "engine/session_rows.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

static size_t mark_words(const heed__rows *r)
{
    return ((size_t)r->w->output.n + 63) / 64;
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
    heed__cells_init(&r->own, w->decoder ? w->decoder->own_cell : 0, a);
    heed__cells_init(&r->memory, w->decoder ? w->decoder->memory_cell : 0, a);
    heed__cells_init(&r->states, w->decoder ? w->decoder->state_cell : 0, a);
    r->shortlist = shortlist;
    if (!shortlist || (r->marks = heed__allocate_zeroed(&a, mark_words(r), sizeof *r->marks)))
        return r;
    heed__rows_free(r);
    heed__fail(err, HEED_MEMORY, "out of memory for a session");
    return NULL;
}

static void release_rows(heed__rows *r)
{
    const size_t capacity = (size_t)r->capacity, list = capacity * (size_t)r->list;
    heed__release(&r->allocator, r->row, capacity, sizeof *r->row);
    heed__release(&r->allocator, r->other, capacity, sizeof *r->other);
    heed__release(&r->allocator, r->cell, list, sizeof *r->cell);
    heed__release(&r->allocator, r->others, list, sizeof *r->others);
}

void heed__rows_free(heed__rows *r)
{
    if (!r)
        return;
    heed_allocator a = r->allocator;
    heed__pass_deinit(&r->pass);
    heed__cells_deinit(&r->own);
    heed__cells_deinit(&r->memory);
    heed__cells_deinit(&r->states);
    for (int64_t i = 0; i < r->sources; i++) {
        heed__release(&a, r->source[i].cell, (size_t)r->source[i].capacity, sizeof *r->cell);
        heed__choice_free(&r->source[i].choice, &r->w->output, &a);
    }
    heed__release(&a, r->marks, mark_words(r), sizeof *r->marks);
    heed__release(&a, r->source, (size_t)r->sources, sizeof *r->source);
    release_rows(r);
    heed__rows_release_logits(r, &r->last);
    heed__rows_release_logits(r, &r->given);
    heed__rows_release_best(r);
    heed__release(&a, r->encoded, (size_t)r->encoded_size, sizeof *r->encoded);
    heed__release(&a, r->query, (size_t)r->queries, sizeof *r->query);
    heed__release(&a, r->span, (size_t)r->spans, sizeof *r->span);
    const heed__packed_stack *const stack[2] = {r->w->encoder, r->w->decoder};
    for (int i = 0; i < 2; i++)
        if (stack[i])
            heed__positions_release(&r->positions[i], stack[i]->d, &a);
    heed__release(&a, r, 1, sizeof *r);
}

heed_status heed__rows_short_of_memory(int64_t rows, heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for decoding %lld rows", (long long)rows);
}

int64_t heed__rows_cells(const heed__rows *r, const heed__session_row *row)
{
    return r->own.size ? row->length - row->gone : 0;
}

heed_status heed__rows_reserve(heed__rows *r, int64_t rows, int64_t tokens, heed_error *err)
{
    if (rows <= r->capacity && tokens <= r->list)
        return HEED_OK;
    const int64_t capacity = rows > r->capacity ? rows + rows / 4 : r->capacity;
    const int64_t list = tokens > r->list ? 2 * tokens : r->list;
    const heed_allocator *a = &r->allocator;
    heed__rows grown = *r;
    grown.capacity = capacity;
    grown.list = list;
    grown.row = heed__allocate(a, (size_t)capacity, sizeof *grown.row);
    grown.other = heed__allocate(a, (size_t)capacity, sizeof *grown.other);
    grown.cell = heed__allocate(a, (size_t)(capacity * list), sizeof *grown.cell);
    grown.others = heed__allocate(a, (size_t)(capacity * list), sizeof *grown.others);
    if (!grown.row || !grown.other || !grown.cell || !grown.others) {
        release_rows(&grown);
        return heed__rows_short_of_memory(rows, err);
    }
    for (int64_t i = 0; i < r->rows; i++) {
        grown.row[i] = r->row[i];
        memcpy(grown.cell + i * list, r->cell + i * r->list,
               (size_t)heed__rows_cells(r, &r->row[i]) * sizeof *r->cell);
    }
    release_rows(r);
    *r = grown;
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
            return heed__fail(err, HEED_ARGUMENT, "row %lld continues row %ld, expected 0 to %lld",
                              (long long)i, (long)parent[i], (long long)r->rows - 1);
    return HEED_OK;
}

static void release_state(heed__rows *r, heed__session_row *row)
{
    if (row->state >= 0)
        heed__cells_release(&r->states, &row->state, 1);
    row->state = -1;
}

static void release_all_rows(heed__rows *r)
{
    for (int64_t i = 0; i < r->rows; i++) {
        heed__row_source *s = r->row[i].source < 0 ? NULL : &r->source[r->row[i].source];
        heed__cells_release(&r->own, r->cell + i * r->list, heed__rows_cells(r, &r->row[i]));
        release_state(r, &r->row[i]);
        if (s && --s->rows == 0)
            heed__cells_release(&r->memory, s->cell, s->length);
    }
    r->rows = 0;
}

/* The new lists are retained before the old ones are released: a cell that stays is never free in
 * between. */
static heed_status reorder(void *self, const int32_t *parent, int64_t rows, heed_error *err)
{
    heed__rows *r = self;
    heed_status status = check_order(r, parent, rows, err);
    if (!status)
        status = heed__rows_reserve(r, rows, 1, err);
    if (status)
        return status;
    for (int64_t i = 0; i < rows; i++) {
        const heed__session_row *from = &r->row[parent[i]];
        const int32_t *cell = r->cell + parent[i] * r->list;
        const int64_t cells = heed__rows_cells(r, from);
        r->other[i] = *from;
        memcpy(r->others + i * r->list, cell, (size_t)cells * sizeof *cell);
        heed__cells_retain(&r->own, cell, cells);
        if (from->state >= 0)
            heed__cells_retain(&r->states, &from->state, 1);
        if (from->source >= 0)
            r->source[from->source].rows++;
    }
    release_all_rows(r);
    heed__session_row *row = r->row;
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
    release_all_rows(r);
    r->broken = false;
}

/* A state cannot be taken back, and cells that a shorter row would look at again may be gone. */
static heed_status check_rewind(const heed__rows *r, const heed__session_row *row, int64_t length,
                                heed_error *err)
{
    const heed__packed_stack *s = r->w->decoder;
    if (length == 0 || length == row->length)
        return HEED_OK;
    if (row->state >= 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot rewind to %lld tokens what keeps a state of %ld: expected 0 or "
                          "%ld",
                          (long long)length, (long)row->length, (long)row->length);
    if (row->gone && length < s->pinned + row->gone + s->reach)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot rewind to %lld tokens: what they look back at is gone, expected "
                          "0, or %lld to %ld",
                          (long long)length, (long long)(s->pinned + row->gone + s->reach),
                          (long)row->length);
    return HEED_OK;
}

static heed_status rewind_row(void *self, int64_t row, int64_t length, heed_error *err)
{
    heed__rows *r = self;
    if (r->broken || row < 0 || row >= r->rows)
        return heed__fail(err, HEED_ARGUMENT, "cannot rewind row %lld, expected 0 to %lld",
                          (long long)row, (long long)r->rows - 1);
    const int64_t is = r->row[row].length;
    if (length < 0 || length > is)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot rewind row %lld to %lld tokens, expected 0 to %lld",
                          (long long)row, (long long)length, (long long)is);
    heed__session_row *one = &r->row[row];
    heed_status status = check_rewind(r, one, length, err);
    if (status)
        return status;
    const int64_t cells = heed__rows_cells(r, one), stay = length ? cells - (is - length) : 0;
    if (cells)
        heed__cells_release(&r->own, r->cell + row * r->list + stay, cells - stay);
    one->length = (int32_t)length;
    if (!length) {
        one->gone = 0;
        release_state(r, one);
    }
    return HEED_OK;
}

static int64_t count_rows(const void *self)
{
    return ((const heed__rows *)self)->rows;
}

heed__stepper heed__rows_stepper(heed__rows *r)
{
    return (heed__stepper){.self = r,
                           .vocabulary = r->w->output.n,
                           .longest = r->w->config.longest,
                           .ids = r->w->config.ids,
                           .joins = true,
                           .sources = r->w->encoder,
                           .add = heed__rows_add,
                           .rows = count_rows,
                           .extend = heed__rows_extend,
                           .rewind = rewind_row,
                           .reorder = reorder,
                           .clear = clear,
                           .best_only = heed__rows_best_only};
}
