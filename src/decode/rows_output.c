/* rows_output.c: section 3.4, the output projection: logits = h W^T, and log sum_j exp(logit_j) of
 * each row, made chunk by chunk of the columns while its logits are in cache.  A row's chunks are
 * put together in their order, whoever made them.  Where only the best token of a row is wanted,
 * its largest logit takes the place of that sum.  With a shortlist the rows of a sentence meet its
 * own columns. */
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "decode/rows.h"
#include "kernel/kernels.h"

#include <math.h>

_Static_assert(HEED_LSE_CHUNK == HEED_PEAK_COLUMNS, "the peaks of chunks are handed out");

static int64_t chunks_of(int64_t n)
{
    return (n + HEED_LSE_CHUNK - 1) / HEED_LSE_CHUNK;
}

void heed__rows_release_output(heed__rows *r)
{
    const heed_allocator *a = &r->allocator;
    const size_t rows = (size_t)r->logits, chunks = (size_t)chunks_of(r->columns);
    heed__release(a, r->logit, rows, (size_t)r->columns * sizeof *r->logit);
    heed__release(a, r->log_z, rows, sizeof *r->log_z);
    heed__release(a, r->peak, rows, chunks * sizeof *r->peak);
    heed__release(a, r->sum, rows, chunks * sizeof *r->sum);
    heed__release(a, r->choice, rows, sizeof *r->choice);
    r->logit = r->log_z = r->peak = r->sum = NULL;
    r->choice = NULL;
    r->logits = r->columns = 0;
}

static heed_status reserve(heed__rows *r, int64_t columns, heed_error *err)
{
    if (r->rows <= r->logits && columns <= r->columns)
        return HEED_OK;
    const int64_t logits = r->rows > r->logits ? r->rows : r->logits;
    columns = columns > r->columns ? columns : r->columns;
    heed__rows_release_output(r);
    const heed_allocator *a = &r->allocator;
    const size_t rows = (size_t)logits, chunks = (size_t)chunks_of(columns);
    r->logits = logits;
    r->columns = columns;
    r->logit = heed__allocate(a, rows, (size_t)columns * sizeof *r->logit);
    r->log_z = heed__allocate(a, rows, sizeof *r->log_z);
    r->peak = heed__allocate(a, rows, chunks * sizeof *r->peak);
    r->sum = heed__allocate(a, rows, chunks * sizeof *r->sum);
    r->choice = heed__allocate(a, rows, sizeof *r->choice);
    if (r->logit && r->log_z && r->peak && r->sum && r->choice)
        return HEED_OK;
    heed__rows_release_output(r);
    return heed__fail(err, HEED_MEMORY, "out of memory for the logits of %lld rows",
                      (long long)r->rows);
}

/* Rows that meet the same columns. */
struct output {
    heed__rows *r;
    const heed__panel_weights *w;
    int64_t first, rows;
};

/* Chunks [begin,end): the product, then maximum and sum of each row. */
static void make_chunks(void *context, int64_t begin, int64_t end, int thread)
{
    const struct output *o = context;
    heed__rows *r = o->r;
    const int64_t n = o->w->n, panels = heed__panels(n), each = HEED_LSE_CHUNK / HEED_PANEL;
    const int64_t chunks = chunks_of(r->columns);
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        const int64_t last = (c + 1) * each < panels ? (c + 1) * each : panels;
        const int64_t at = c * HEED_LSE_CHUNK, rest = n - at;
        heed__pass_columns(&r->pass, o->w, r->logit, r->columns, r->pass.x, o->first, o->rows,
                           c * each, last);
        for (int64_t i = o->first; i < o->first + o->rows; i++)
            heed__kernels()->log_sum_exp_part(
                &r->peak[i * chunks + c], r->best_only ? NULL : &r->sum[i * chunks + c],
                r->logit + i * r->columns + at, rest < HEED_LSE_CHUNK ? rest : HEED_LSE_CHUNK);
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

static void project(heed__rows *r, const heed__panel_weights *w, int64_t first, int64_t rows)
{
    struct output o = {r, w, first, rows};
    const int64_t chunks = chunks_of(w->n), ld = chunks_of(r->columns);
    heed__parallel(r->pass.threads, chunks, 1, rows * w->k * HEED_LSE_CHUNK, make_chunks, &o);
    for (int64_t i = first; i < first + rows; i++)
        r->log_z[i] = r->best_only ? largest(r->peak + i * ld, chunks)
                                   : put_together(r->peak + i * ld, r->sum + i * ld, chunks);
}

/* The rows of each sentence stand together. */
static void project_choices(heed__rows *r)
{
    for (int64_t i = 0, end; i < r->rows; i = end) {
        const heed__choice *c = &r->source[r->row[i].source].choice;
        for (end = i; end < r->rows && r->row[end].source == r->row[i].source; end++)
            r->choice[end] = (heed_tokens){c->id, c->count};
        project(r, &c->columns, i, end - i);
    }
}

heed_status heed__rows_output(heed__rows *r, heed_scores *out, heed_error *err)
{
    const heed__panel_weights *w = &r->w->output;
    int64_t columns = r->shortlist ? 0 : w->n;
    for (int64_t i = 0; r->shortlist && i < r->rows; i++) {
        const int64_t count = r->source[r->row[i].source].choice.count;
        columns = count > columns ? count : columns;
    }
    heed_status status = reserve(r, columns, err);
    if (status)
        return status;
    const bool best = heed__rows_screened(r);
    if (best) {
        heed__rows_output_best(r);
    } else {
        heed__pass_prepare(&r->pass, w, r->pass.x, r->rows);
        if (r->shortlist)
            project_choices(r);
        else
            project(r, w, 0, r->rows);
    }
    *out = (heed_scores){.logit = r->logit,
                         .log_z = r->log_z,
                         .columns = r->columns,
                         .choice = r->shortlist || best ? r->choice : NULL,
                         .peak = best ? NULL : r->peak};
    return HEED_OK;
}
