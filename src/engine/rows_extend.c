/* rows_extend.c: tokens appended to rows.
 *
 * The tokens of all rows go through the decoder HEED__PASS_ROWS at a time, in the order of rows and
 * positions.  In every layer the keys and values of a pass stand in their cells before its queries
 * look at them, and a query looks at the cells up to its own: so n tokens at once give what n
 * single ones give, bit for bit, and memory grows with n alone. */
#include "base/error.h"
#include "base/memory.h"
#include "engine/session_rows.h"

#include <string.h>

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
    keys = longest > keys ? longest : keys;
    const int64_t queries = tokens < HEED__PASS_ROWS ? tokens : HEED__PASS_ROWS;
    heed_status status = heed__rows_reserve(r, r->rows, longest, err);
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

static int64_t own_keys(void *context, const heed__packed_attention *a, int64_t query,
                        const heed_real **key)
{
    const heed__rows *r = context;
    const heed__row_query *q = &r->query[query];
    const int32_t *cell = r->cell + q->row * r->list;
    for (int64_t i = 0; i <= q->position; i++)
        key[i] = heed__cell_at(&r->own, cell[i]) + a->at;
    return q->position + 1;
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
        const int32_t cell = r->cell[r->query[i].row * r->list + r->query[i].position];
        memcpy(heed__cell_at(&r->own, cell) + a->at, kv + i * ld, (size_t)a->cached * sizeof *kv);
    }
}

static int64_t position_of(void *context, int64_t query)
{
    return ((const heed__rows *)context)->query[query].position;
}

/* ---- a pass ---- */

/* Which token comes next: `token` of *x; `left` in all. */
struct cursor {
    const heed_extension *x;
    int64_t token, left;
};

/* The next n queries, embedded, their cells taken. */
static void take_queries(heed__rows *r, struct cursor *c, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const heed_extension *x = c->x;
        heed__session_row *row = &r->row[x->row];
        r->query[i] = (heed__row_query){(int32_t)x->row, row->length, x, c->token};
        heed__rows_embed(r, r->w->decoder, i, x->tokens.id[c->token], 0, row->length);
        r->cell[x->row * r->list + row->length++] = heed__cells_take(&r->own);
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
                                        .position = position_of});
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

heed_status heed__rows_extend(void *self, const heed_extension *x, int64_t count, heed_scores *last,
                              heed_error *err)
{
    heed__rows *r = self;
    struct cursor c = {.x = x};
    heed_status status = check(r, x, count, err);
    if (!status)
        status = prepare(r, x, count, err);
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
        if (!heed__cells_reserve(&r->own, n)) {
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
