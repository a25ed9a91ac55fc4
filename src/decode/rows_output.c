/* rows_output.c: section 3.4, the output projection: logits = h W^T, and log sum_j exp(logit_j) of
 * each row, made chunk by chunk of the vocabulary while its logits are in cache.  A row's chunks are
 * put together in their order, whoever made them. */
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "decode/rows.h"
#include "kernel/kernels.h"

#include <math.h>

static int64_t chunks_of(int64_t n)
{
    return (n + HEED_LSE_CHUNK - 1) / HEED_LSE_CHUNK;
}

void heed__rows_release_output(heed__rows *r)
{
    const int64_t n = r->w->config.target_vocabulary, chunks = chunks_of(n);
    heed__release(&r->allocator, r->logit, (size_t)r->logits, (size_t)n * sizeof *r->logit);
    heed__release(&r->allocator, r->log_z, (size_t)r->logits, sizeof *r->log_z);
    heed__release(&r->allocator, r->part, (size_t)r->logits, 2 * (size_t)chunks * sizeof *r->part);
    r->logit = r->log_z = r->part = NULL;
    r->logits = 0;
}

static heed_status reserve(heed__rows *r, heed_error *err)
{
    const int64_t n = r->w->config.target_vocabulary, chunks = chunks_of(n);
    if (r->rows <= r->logits)
        return HEED_OK;
    heed__rows_release_output(r);
    r->logits = r->rows;
    r->logit = heed__allocate(&r->allocator, (size_t)r->rows, (size_t)n * sizeof *r->logit);
    r->log_z = heed__allocate(&r->allocator, (size_t)r->rows, sizeof *r->log_z);
    r->part = heed__allocate(&r->allocator, (size_t)r->rows, 2 * (size_t)chunks * sizeof *r->part);
    if (r->logit && r->log_z && r->part)
        return HEED_OK;
    heed__rows_release_output(r);
    return heed__fail(err, HEED_MEMORY, "out of memory for the logits of %lld rows",
                      (long long)r->rows);
}

/* Chunks [begin,end) of all rows: the product, then maximum and sum of each. */
static void make_chunks(void *context, int64_t begin, int64_t end, int thread)
{
    heed__rows *r = context;
    const heed__panel_weights *w = &r->w->output;
    const int64_t n = w->n, panels = heed__panels(n), chunks = chunks_of(n);
    const int64_t each = HEED_LSE_CHUNK / HEED_PANEL;
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        const int64_t first = c * each, last = (c + 1) * each < panels ? (c + 1) * each : panels;
        const int64_t at = c * HEED_LSE_CHUNK,
                      count = n - at < HEED_LSE_CHUNK ? n - at : HEED_LSE_CHUNK;
        heed__pass_columns(&r->pass, w, r->logit, r->pass.x, r->rows, first, last);
        for (int64_t i = 0; i < r->rows; i++) {
            heed_real *part = r->part + 2 * (i * chunks + c);
            heed__kernels()->log_sum_exp_part(&part[0], &part[1], r->logit + i * n + at, count);
        }
    }
}

/* max and sum of exp(x - max) of all chunks. */
static heed_real put_together(const heed_real *part, int64_t chunks)
{
    double max = (double)part[0], sum = 0;
    for (int64_t c = 1; c < chunks; c++)
        max = (double)part[2 * c] > max ? (double)part[2 * c] : max;
    for (int64_t c = 0; c < chunks; c++)
        sum += (double)part[2 * c + 1] * exp((double)part[2 * c] - max);
    return (heed_real)(max + log(sum));
}

heed_status heed__rows_output(heed__rows *r, heed_scores *out, heed_error *err)
{
    const heed__panel_weights *w = &r->w->output;
    const int64_t chunks = chunks_of(w->n);
    heed_status status = reserve(r, err);
    if (status)
        return status;
    heed__pass_prepare(&r->pass, w, r->pass.x, r->rows);
    heed__parallel(r->pass.threads, chunks, 1, r->rows * w->k * HEED_LSE_CHUNK, make_chunks, r);
    for (int64_t i = 0; i < r->rows; i++)
        r->log_z[i] = put_together(r->part + 2 * i * chunks, chunks);
    *out = (heed_scores){.logit = r->logit, .log_z = r->log_z, .count = w->n};
    return HEED_OK;
}
