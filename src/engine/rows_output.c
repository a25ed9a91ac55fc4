/* rows_output.c: section 3.4, the output projection: logits = h W^T, and log sum_j exp(logit_j) of
 * each row, made chunk by chunk of the columns while its logits are in cache.  A row's chunks are
 * put together in their order, whoever made them.  Where only the best token of a row is wanted,
 * its largest logit takes the place of that sum.  With a shortlist the rows of a sentence meet its
 * own columns. */
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "engine/session_rows.h"
#include "kernel/kernels.h"

#include <math.h>

_Static_assert(HEED_LSE_CHUNK == HEED_PEAK_COLUMNS, "the peaks of chunks are handed out");

static int64_t chunks_of(int64_t n)
{
    return (n + HEED_LSE_CHUNK - 1) / HEED_LSE_CHUNK;
}

void heed__rows_release_logits(heed__rows *r, heed__row_logits *l)
{
    const heed_allocator *a = &r->allocator;
    const size_t rows = (size_t)l->rows, chunks = (size_t)chunks_of(l->columns);
    heed__release(a, l->logit, rows, (size_t)l->columns * sizeof *l->logit);
    heed__release(a, l->log_z, rows, sizeof *l->log_z);
    heed__release(a, l->peak, rows, chunks * sizeof *l->peak);
    heed__release(a, l->sum, rows, chunks * sizeof *l->sum);
    heed__release(a, l->choice, rows, sizeof *l->choice);
    *l = (heed__row_logits){0};
}

/* Columns of the widest row. */
static int64_t columns_of(const heed__rows *r)
{
    int64_t columns = r->shortlist ? 0 : r->w->output.n;
    for (int64_t i = 0; r->shortlist && i < r->rows; i++) {
        const int64_t count = r->source[r->row[i].source].choice.count;
        columns = count > columns ? count : columns;
    }
    return columns;
}

heed_status heed__rows_reserve_logits(heed__rows *r, heed__row_logits *l, int64_t rows,
                                      heed_error *err)
{
    int64_t columns = columns_of(r);
    if (rows <= l->rows && columns <= l->columns)
        return HEED_OK;
    rows = rows > l->rows ? rows : l->rows;
    columns = columns > l->columns ? columns : l->columns;
    heed__rows_release_logits(r, l);
    const heed_allocator *a = &r->allocator;
    const size_t n = (size_t)rows, chunks = (size_t)chunks_of(columns);
    *l = (heed__row_logits){
        .rows = rows,
        .columns = columns,
        .logit = heed__allocate(a, n, (size_t)columns * sizeof *l->logit),
        .log_z = heed__allocate(a, n, sizeof *l->log_z),
        .peak = heed__allocate(a, n, chunks * sizeof *l->peak),
        .sum = heed__allocate(a, n, chunks * sizeof *l->sum),
        .choice = heed__allocate(a, n, sizeof *l->choice),
    };
    if (l->logit && l->log_z && l->peak && l->sum && l->choice)
        return HEED_OK;
    heed__rows_release_logits(r, l);
    return heed__fail(err, HEED_MEMORY, "out of memory for the logits of %lld rows",
                      (long long)rows);
}

/* Rows [first, first+rows) of x, which meet the same columns, to as many rows of l from `at` on. */
struct output {
    const heed__rows *r;
    heed__row_logits *l;
    const heed__panel_weights *w;
    const heed_real *x;
    int64_t first, rows, at;
    bool best; /* the largest logit will do */
};

/* Chunks [begin,end): the product, then maximum and sum of each row. */
static void make_chunks(void *context, int64_t begin, int64_t end, int thread)
{
    const struct output *o = context;
    const heed__row_logits *l = o->l;
    const int64_t n = o->w->n, panels = heed__panels(n), each = HEED_LSE_CHUNK / HEED_PANEL;
    const int64_t chunks = chunks_of(l->columns);
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        const int64_t last = (c + 1) * each < panels ? (c + 1) * each : panels;
        const int64_t left = c * HEED_LSE_CHUNK, rest = n - left;
        heed__pass_columns(&o->r->pass, o->w, l->logit + o->at * l->columns, l->columns, o->x,
                           o->first, o->rows, c * each, last);
        for (int64_t i = o->at + o->first; i < o->at + o->first + o->rows; i++)
            heed__kernels()->log_sum_exp_part(
                &l->peak[i * chunks + c], o->best ? NULL : &l->sum[i * chunks + c],
                l->logit + i * l->columns + left, rest < HEED_LSE_CHUNK ? rest : HEED_LSE_CHUNK);
    }
}

/* Of a row's chunks; NaN if that is among them. */
static heed_real largest(const heed_real *peak, int64_t chunks)
{
    heed_real max = peak[0];
    for (int64_t c = 1; c < chunks && !isnan(max); c++)
        max = peak[c] <= max ? max : peak[c];
    return max;
}

/* log sum exp of a row from its chunks. */
static heed_real put_together(const heed_real *peak, const heed_real *sums, int64_t chunks)
{
    const double max = (double)largest(peak, chunks);
    double sum = 0;
    for (int64_t c = 0; c < chunks; c++)
        sum += (double)sums[c] * exp((double)peak[c] - max);
    return (heed_real)(max + log(sum));
}

static void project(const struct output *o)
{
    heed__row_logits *l = o->l;
    const int64_t chunks = chunks_of(o->w->n), ld = chunks_of(l->columns);
    heed__parallel(o->r->pass.threads, chunks, 1, o->rows * o->w->k * HEED_LSE_CHUNK, make_chunks,
                   (void *)o);
    for (int64_t i = o->at + o->first; i < o->at + o->first + o->rows; i++)
        l->log_z[i] = o->best ? largest(l->peak + i * ld, chunks)
                              : put_together(l->peak + i * ld, l->sum + i * ld, chunks);
}

const heed_real *heed__rows_head(heed__rows *r, const heed_real *x, int64_t count)
{
    const heed__weights *w = r->w;
    if (!w->transform.k)
        return x;
    heed__pass_linear(&r->pass, &w->transform, r->pass.y, x, count);
    if (w->head_norm.gain)
        heed__pass_norm(&r->pass, &w->head_norm, r->pass.y, r->pass.y, NULL, count);
    return r->pass.y;
}

void heed__rows_project(heed__rows *r, heed__row_logits *l, int64_t at, const heed_real *x,
                        const heed__row_query *query, int64_t count)
{
    struct output o = {.r = r,
                       .l = l,
                       .w = &r->w->output,
                       .rows = count,
                       .at = at,
                       .best = r->best_only && l == &r->last};
    o.x = heed__rows_head(r, x, count);
    heed__pass_prepare(&r->pass, o.w, o.x, count);
    if (!r->shortlist) {
        project(&o);
        return;
    }
    for (int64_t end; o.first < count; o.first = end) { /* rows of a sentence stand together */
        const int32_t source = r->row[query[o.first].row].source;
        const heed__choice *c = &r->source[source].choice;
        for (end = o.first; end < count && r->row[query[end].row].source == source; end++)
            l->choice[at + end] = (heed_tokens){c->id, c->count};
        o.w = &c->columns;
        o.rows = end - o.first;
        project(&o);
    }
}

heed_real heed__rows_log_p(const heed__rows *r, const heed__row_logits *l, int64_t row,
                           int32_t token)
{
    int64_t low = token;
    if (r->shortlist) {
        const heed_tokens *c = &l->choice[row];
        low = 0;
        for (int64_t high = c->count; low < high;) {
            const int64_t middle = low + (high - low) / 2;
            if (c->id[middle] < token)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == c->count || c->id[low] != token)
            return -(heed_real)INFINITY;
    }
    return l->logit[row * l->columns + low] - l->log_z[row];
}

heed_scores heed__rows_scores(const heed__rows *r)
{
    const heed__row_logits *l = &r->last;
    return (heed_scores){.logit = l->logit,
                         .log_z = l->log_z,
                         .columns = l->columns,
                         .choice = r->shortlist || r->screened ? l->choice : NULL,
                         .peak = r->screened ? NULL : l->peak};
}
