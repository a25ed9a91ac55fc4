/* rows_extend.c: tokens appended to rows.
 *
 * The tokens of all rows go through the decoder HEED__PASS_ROWS at a time, in the order of rows and
 * positions.  In every layer the keys and values of a pass stand in their cells before its queries
 * look at them, and a query looks at the cells up to its own: so n tokens at once give what n
 * single ones give, bit for bit, and memory grows with n alone.  Where every sublayer looks back
 * over a window, or keeps a state, it does not grow beyond that. */
#include "base/error.h"
#include "base/memory.h"
#include "base/min_max.h"
#include "engine/session_rows.h"

#include <string.h>

/* Cells that are out of every window are given back once a row has this number of them. */
#define OUT_OF_WINDOW 32

/* ---- checks ---- */

static heed_status check_token(const heed__rows *r, int64_t row, int32_t token, heed_error *err)
{
    const int64_t words = r->w->output.n;
    if (token >= 0 && token < words)
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT, "row %lld takes token %ld, expected 0 to %lld",
                      (long long)row, (long)token, (long long)words - 1);
}

static heed_status check_extension(const heed__rows *r, const heed_extension *x, int64_t least,
                                   heed_error *err)
{
    if (x->row < least || x->row >= r->rows)
        return heed__fail(err, HEED_ARGUMENT, "row %lld is extended, expected %lld to %lld",
                          (long long)x->row, (long long)least, (long long)r->rows - 1);
    if (x->tokens.count < 1)
        return heed__fail(err, HEED_ARGUMENT, "row %lld takes %lld tokens, expected at least 1",
                          (long long)x->row, (long long)x->tokens.count);
    const int64_t length = r->row[x->row].length, longest = r->w->config.longest;
    if (x->tokens.count > longest - length)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot decode token %lld: expected at most %lld, as '--longest' says",
                          (long long)(length + x->tokens.count), (long long)longest);
    heed_status status = HEED_OK;
    for (int64_t i = 0; !status && i < x->tokens.count; i++) {
        status = check_token(r, x->row, x->tokens.id[i], err);
        if (!status && x->wanted)
            status = check_token(r, x->row, x->wanted[i], err);
    }
    return status;
}

static heed_status check(const heed__rows *r, const heed_extension *x, int64_t count,
                         heed_error *err)
{
    heed_status status = HEED_OK;
    if (r->broken || r->rows < 1)
        return heed__fail(err, HEED_STATE, "cannot decode a token: there are no rows");
    for (int64_t i = 0; !status && i < count; i++)
        status = check_extension(r, &x[i], i ? x[i - 1].row + 1 : 0, err);
    return status;
}

/* ---- memory ---- */

static heed_status reserve_queries(heed__rows *r, int64_t count, heed_error *err)
{
    if (count <= r->queries)
        return HEED_OK;
    heed__release(&r->allocator, r->query, (size_t)r->queries, sizeof *r->query);
    r->queries = 0;
    r->query = heed__allocate(&r->allocator, (size_t)count, sizeof *r->query);
    if (!r->query)
        return heed__rows_short_of_memory(count, err);
    r->queries = count;
    return HEED_OK;
}

/* Cells that a row has at most while n tokens come; behind the last `longest` long. */
static int64_t most_cells(const heed__rows *r, int64_t longest, int64_t tokens)
{
    const heed__packed_stack *s = r->w->decoder;
    if (!r->own.size)
        return 0;
    if (s->reach >= longest)
        return longest;
    return heed__min(longest, s->pinned + s->reach + OUT_OF_WINDOW + tokens);
}

/* All that the extensions need but cells, before anything changes. */
static heed_status prepare(heed__rows *r, const heed_extension *x, int64_t count, heed_error *err)
{
    int64_t tokens = 0, longest = 0, keys = 0, last = 0, given = 0;
    for (int64_t i = 0; i < count; i++) {
        const heed__session_row *row = &r->row[x[i].row];
        const int64_t n = row->length + x[i].tokens.count;
        const int64_t source = row->source < 0 ? 0 : r->source[row->source].length;
        tokens += x[i].tokens.count;
        longest = n > longest ? n : longest;
        keys = source > keys ? source : keys;
        last += x[i].last;
        given += x[i].wanted ? x[i].tokens.count : 0;
    }
    const int64_t queries = tokens < HEED__PASS_ROWS ? tokens : HEED__PASS_ROWS;
    const int64_t cells = most_cells(r, longest, queries);
    keys = heed__max(keys, r->pass.recorder ? longest : cells);
    heed_status status = heed__rows_reserve(r, r->rows, heed__max(cells, 1), err);
    if (!status)
        status = reserve_queries(r, queries, err);
    if (!status)
        status = heed__pass_reserve(&r->pass, queries, keys, err);
    if (!status)
        status = heed__rows_positions(r, r->w->decoder, longest, err);
    if (!status && last)
        status = heed__rows_reserve_logits(r, &r->last, last, err);
    if (!status && given)
        status = heed__rows_reserve_logits(
            r, &r->given, given < HEED__LOG_P_ROWS ? given : HEED__LOG_P_ROWS, err);
    return status;
}

/* ---- keys ---- */

static heed__pass_place place_of(void *context, int64_t query)
{
    const int64_t position = ((const heed__rows *)context)->query[query].position;
    return (heed__pass_place){position, position + 1};
}

/* The cells of a row's pinned tokens come first, then those of its last ones. */
static void own_keys(void *context, const heed__packed_attention *a, int64_t query,
                     heed_key_range range, const heed_real **key)
{
    const heed__rows *r = context;
    const int64_t row = r->query[query].row, pinned = r->w->decoder->pinned;
    const int64_t gone = r->row[row].gone;
    const int32_t *cell = r->cell + row * r->list;
    int64_t i = range.begin;
    for (; i < range.end && i < pinned; i += range.step)
        *key++ = heed__cell_at(&r->own, cell[i]) + a->at;
    for (; i < range.end; i += range.step)
        *key++ = heed__cell_at(&r->own, cell[i - gone]) + a->at;
}

static int64_t memory_keys(void *context, const heed__packed_attention *a, int64_t query,
                           const heed_real **key)
{
    const heed__rows *r = context;
    const heed__row_source *s = &r->source[r->row[r->query[query].row].source];
    for (int64_t i = 0; i < s->length; i++)
        key[i] = heed__cell_at(&r->memory, s->cell[i]) + a->at;
    return s->length;
}

/* To the cells of the queries' own tokens. */
static void cache_own(void *context, const heed__packed_attention *a, int64_t queries,
                      const heed_real *kv, int64_t ld)
{
    heed__rows *r = context;
    for (int64_t i = 0; i < queries; i++) {
        const int64_t row = r->query[i].row;
        const int32_t cell = r->cell[row * r->list + r->query[i].position - r->row[row].gone];
        memcpy(heed__cell_at(&r->own, cell) + a->at, kv + i * ld, (size_t)a->cached * sizeof *kv);
    }
}

static heed_real *state_of(void *context, int64_t at, int64_t query)
{
    const heed__rows *r = context;
    return heed__cell_at(&r->states, r->row[r->query[query].row].state) + at;
}

/* ---- a pass ---- */

/* Which token comes next: `token` of *x; `left` in all. */
struct cursor {
    const heed_extension *x;
    int64_t token, left;
};

/* Gives back the cells that no later query of a row will look at, some at a time. */
static void forget_old(heed__rows *r, int64_t at)
{
    const heed__packed_stack *s = r->w->decoder;
    heed__session_row *row = &r->row[at];
    const int64_t first = s->pinned + row->gone, old = row->length - s->reach - first;
    int32_t *cell = r->cell + at * r->list + s->pinned;
    if (!r->own.size || old < OUT_OF_WINDOW)
        return;
    heed__cells_release(&r->own, cell, old);
    memmove(cell, cell + old, (size_t)(row->length - first - old) * sizeof *cell);
    row->gone += (int32_t)old;
}

/* The next n queries, embedded, their cells taken. */
static void take_queries(heed__rows *r, struct cursor *c, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const heed_extension *x = c->x;
        heed__session_row *row = &r->row[x->row];
        r->query[i] = (heed__row_query){(int32_t)x->row, row->length, x, c->token};
        if (i == 0 || r->query[i - 1].row != x->row)
            forget_old(r, x->row);
        heed__rows_embed(r, r->w->decoder, i, x->tokens.id[c->token], 0, row->length);
        if (r->own.size)
            r->cell[x->row * r->list + row->length - row->gone] = heed__cells_take(&r->own);
        row->length++;
        if (++c->token == x->tokens.count) {
            c->x++;
            c->token = 0;
        }
    }
    c->left -= n;
}

/* Through the decoder. */
static void decode(heed__rows *r, int64_t queries)
{
    heed__rows_embed_norm(r, r->w->decoder, queries);
    heed__pass_stack(&r->pass, r->w->decoder, queries,
                     &(heed__pass_keys){.context = r,
                                        .own = own_keys,
                                        .memory = memory_keys,
                                        .cache = cache_own,
                                        .place = place_of,
                                        .state = state_of});
}

/* Log P of given tokens, HEED__LOG_P_ROWS at a time. */
static void give_log_p(heed__rows *r, int64_t queries)
{
    for (int64_t i = 0, end; i < queries; i = end) {
        for (end = i; end < queries && end < i + HEED__LOG_P_ROWS && r->query[end].of->wanted;)
            end++;
        if (end == i) {
            end++;
            continue;
        }
        heed__rows_project(r, &r->given, 0, r->pass.x + i * r->w->decoder->d, r->query + i,
                           end - i);
        for (int64_t k = i; k < end; k++) {
            const heed__row_query *q = &r->query[k];
            q->of->log_p[q->token] = heed__rows_log_p(r, &r->given, k - i, q->of->wanted[q->token]);
        }
    }
}

/* Scores of what follows the last tokens, behind the first `done` rows of r->last; how many. */
static int64_t give_last(heed__rows *r, int64_t queries, int64_t done)
{
    const int64_t d = r->w->decoder->d;
    int64_t n = 0;
    for (int64_t i = 0; i < queries; i++) {
        const heed__row_query q = r->query[i];
        if (!q.of->last || q.token + 1 < q.of->tokens.count)
            continue;
        if (n < i) {
            memcpy(r->pass.x + n * d, r->pass.x + i * d, (size_t)d * sizeof *r->pass.x);
            r->query[n] = q;
        }
        n++;
    }
    if (n && r->screened)
        heed__rows_project_best(r, done, n);
    else if (n)
        heed__rows_project(r, &r->last, done, r->pass.x, r->query, n);
    return n;
}

/* Each row that is extended gets a state of its own: empty, or a copy of the one it shared. */
static heed_status take_states(heed__rows *r, const heed_extension *x, int64_t count,
                               heed_error *err)
{
    const size_t bytes = (size_t)r->states.size * sizeof(heed_real);
    if (!bytes)
        return HEED_OK;
    if (!heed__cells_reserve(&r->states, count))
        return heed__rows_short_of_memory(count, err);
    for (int64_t i = 0; i < count; i++) {
        int32_t *state = &r->row[x[i].row].state;
        const int32_t before = *state;
        if (before >= 0 && r->states.slot[before].uses == 1)
            continue;
        *state = heed__cells_take(&r->states);
        heed_real *to = heed__cell_at(&r->states, *state);
        if (before < 0) {
            memset(to, 0, bytes);
        } else {
            memcpy(to, heed__cell_at(&r->states, before), bytes);
            heed__cells_release(&r->states, &before, 1);
        }
    }
    return HEED_OK;
}

heed_status heed__rows_extend(void *self, const heed_extension *x, int64_t count, heed_scores *last,
                              heed_error *err)
{
    heed__rows *r = self;
    struct cursor c = {.x = x};
    heed_status status = check(r, x, count, err);
    if (!status)
        status = prepare(r, x, count, err);
    if (!status)
        status = take_states(r, x, count, err);
    if (status)
        return status;
    int64_t rows = 0, done = 0;
    for (int64_t i = 0; i < count; i++) {
        c.left += x[i].tokens.count;
        rows += x[i].last;
    }
    r->screened = rows && heed__rows_screened(r, rows);
    for (bool first = true; c.left; first = false) {
        const int64_t n = c.left < HEED__PASS_ROWS ? c.left : HEED__PASS_ROWS;
        if (r->own.size && !heed__cells_reserve(&r->own, n)) {
            r->broken = !first; /* some rows have taken their tokens */
            return heed__rows_short_of_memory(n, err);
        }
        take_queries(r, &c, n);
        decode(r, n);
        give_log_p(r, n);
        done += give_last(r, n, done);
    }
    if (last)
        *last = heed__rows_scores(r);
    return HEED_OK;
}
