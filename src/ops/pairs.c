/* pairs.c: see pairs.h. */
#include "ops/pairs.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "ops/overlap.h"

/* ---- checks ---- */

static heed_status check_windows(heed_opcall *c, const heed_pairs *p)
{
    if (!p->begin != !p->end)
        return heed__op_fail(c, HEED_ARGUMENT, "the windows have no %s", p->end ? "begin" : "end");
    for (int64_t b = 0; p->begin && b < p->queries->count; b++)
        for (int64_t i = p->queries->offset[b] * p->heads; i < p->queries->offset[b + 1] * p->heads;
             i++)
            if (p->begin[i] < 0 || p->end[i] < p->begin[i] || p->end[i] > heed__length(p->keys, b))
                return heed__op_fail(c, HEED_ARGUMENT,
                                     "query %lld sees keys %ld to %ld, expected a part of 0 to "
                                     "%lld",
                                     (long long)(i / p->heads), (long)p->begin[i], (long)p->end[i],
                                     (long long)heed__length(p->keys, b));
    return HEED_OK;
}

int64_t heed__pairs_count(const heed_pairs *p)
{
    int64_t count = 0;
    for (int64_t b = 0; b < p->queries->count; b++)
        count += heed__length(p->queries, b) * heed__length(p->keys, b);
    return p->heads * count;
}

heed_status heed__pairs_check(heed_opcall *c, const heed_pairs *p, int64_t *count)
{
    int64_t bytes;
    if (p->heads < 1)
        return heed__op_fail(c, HEED_ARGUMENT, "heads is %d, expected at least 1", p->heads);
    if (!p->queries || !p->keys)
        return heed__op_fail(c, HEED_ARGUMENT, "segments of the %s are NULL",
                             p->queries ? "keys" : "queries");
    if (p->queries->count != p->keys->count)
        return heed__op_fail(c, HEED_SHAPE_ERROR, "keys have %lld segments, expected %lld",
                             (long long)p->keys->count, (long long)p->queries->count);
    /* In all fewer than 2^31 queries and keys. */
    *count = heed__pairs_count(&(heed_pairs){p->queries, p->keys, 1, NULL, NULL});
    if (!heed__multiply(*count, p->heads, count) ||
        !heed__multiply(*count, 2 * (int64_t)sizeof(real), &bytes))
        return heed__op_fail(c, HEED_SHAPE_ERROR, "the pairs of %lld queries do not fit in memory",
                             (long long)p->queries->rows);
    return check_windows(c, p);
}

heed_status heed__pairs_check_rows(heed_opcall *c, const char *name, const heed_tensor *x,
                                   const heed_segments *s, int heads, const char *columns)
{
    if (x->rows != s->rows || x->cols % heads || x->cols == 0)
        return heed__op_shape_fail(c, name, x, "(%lld,H*%s) with %d heads", (long long)s->rows,
                                   columns, heads);
    return HEED_OK;
}

heed_status heed__pairs_check_flat(heed_opcall *c, const char *name, const heed_tensor *x,
                                   int64_t count)
{
    if (x->rows != 1 || x->cols != count)
        return heed__op_shape_fail(c, name, x, "(%lld), a number for each pair", (long long)count);
    return HEED_OK;
}

/* ---- the walk ---- */

struct walk {
    const heed_pairs *p;
    heed__pairs_body *body;
    void *context;
};

static void walk_segments(void *context, int64_t begin, int64_t end, int thread)
{
    const struct walk *w = context;
    const heed_pairs *p = w->p;
    int64_t at = 0;
    for (int64_t b = 0; b < begin; b++)
        at += p->heads * heed__length(p->queries, b) * heed__length(p->keys, b);
    for (int64_t b = begin; b < end; b++) {
        const int64_t queries = heed__length(p->queries, b), keys = heed__length(p->keys, b);
        for (int64_t n = 0; n < p->heads * queries; n++, at += keys) {
            heed__pairs_row r = {.query = p->queries->offset[b] + n % queries,
                                 .head = n / queries,
                                 .seen = keys,
                                 .keys = keys,
                                 .at = at};
            if (p->begin) {
                const int64_t i = r.query * p->heads + r.head;
                r.first = p->begin[i];
                r.seen = p->end[i] - p->begin[i];
            }
            r.key = p->keys->offset[b] + r.first;
            w->body(w->context, &r, thread);
        }
    }
}

void heed__pairs_each(const heed_pairs *p, int threads, int64_t work, heed__pairs_body *body,
                      void *context)
{
    struct walk w = {p, body, context};
    const int64_t n = p->queries->count;
    const int64_t each = n ? p->heads * p->queries->rows * p->keys->rows / n / n + 1 : 1;
    heed__parallel(threads, n, 1, each * work, walk_segments, &w);
}

int heed__pairs_threads(const heed_opcall *c, const heed_pairs *p, int x, int y)
{
    const heed_tensor *q = c->in[x], *k = c->in[y];
    return heed__meet(q, k) && !heed__cut_alike(q, k, p->queries, p->keys) ? 1 : heed__threads(c);
}

/* ---- cases ---- */

heed_pairs heed__case_pairs(heed_tape *t, const heed_opcase *c)
{
    heed_pairs p = {.queries = heed__case_segments(t, c->lengths),
                    .keys = heed__case_segments(t, c->more_lengths),
                    .heads = (int)c->i[0]};
    if (!c->i[1] || !p.queries || !p.keys)
        return p;
    const size_t bytes = (size_t)(p.queries->rows * p.heads) * sizeof(int32_t);
    int32_t *begin = heed_arena_allocate(heed_tape_arena(t), bytes);
    int32_t *end = heed_arena_allocate(heed_tape_arena(t), bytes);
    for (int64_t b = 0; begin && end && b < p.queries->count; b++)
        for (int64_t i = p.queries->offset[b] * p.heads; i < p.queries->offset[b + 1] * p.heads;
             i++) {
            const int64_t keys = heed__length(p.keys, b);
            begin[i] = (int32_t)(i % 3 < keys ? i % 3 : keys);
            end[i] = (int32_t)(begin[i] + 2 < keys && i != 1 ? begin[i] + 2 : keys);
            if (i == 0)
                end[i] = begin[i];
        }
    p.begin = begin;
    p.end = end;
    return p;
}
