/* Output projection, and of its log-softmax the targets' places only, in chunks of rows:
 *   y_n = log softmax(h_n W^T + bias)[target_n]
 * h (N,D), W (V,D), bias (V) or NULL -> (N,1); a negative target gives 0.  The (N,V) logits never
 * exist whole.  It gives scores, not losses, and has no gradient: heed_project_cross_entropy has.
 */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>

#define CHUNK_BYTES ((int64_t)16 << 20)
#define WORK 24 /* elementary operations per logit */

enum { H, W, BIAS };

static int64_t chunk_rows(const heed_opcall *c)
{
    const int64_t most = CHUNK_BYTES / (c->in[W]->rows * (int64_t)sizeof(real));
    const int64_t rows = c->in[H]->rows;
    return most < 1 ? 1 : most < rows ? most : rows;
}

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *h = c->in[H], *w = c->in[W], *bias = c->in[BIAS];
    const int32_t *targets = *(const int32_t *const *)c->attributes;
    if (w->shape.rank != 2 || w->rows < 1)
        return heed__op_shape_fail(c, "w", w, "(V,D)");
    if (h->cols != w->cols)
        return heed__op_shape_fail(c, "h", h, "(N,%lld)", (long long)w->cols);
    if (bias && (bias->rows != 1 || bias->cols != w->rows))
        return heed__op_shape_fail(c, "bias", bias, "(%lld)", (long long)w->rows);
    if (!targets && h->rows > 0)
        return heed__op_fail(c, HEED_ARGUMENT, "targets is NULL");
    for (int64_t i = 0; i < h->rows; i++)
        if (targets[i] >= w->rows)
            return heed__op_fail(c, HEED_ARGUMENT, "target %lld is %ld, expected less than %lld",
                                 (long long)i, (long)targets[i], (long long)w->rows);
    heed_status status = heed__out(c, HEED_SHAPE(h->rows, 1));
    if (status || (status = heed__want_panels(c, chunk_rows(c), w->rows, w->cols)))
        return status;
    /* One block over all threads' scratch. */
    const int64_t count = chunk_rows(c) * w->rows / heed__threads(c) + 1;
    return heed__want_scratch(c, (size_t)count * sizeof(real));
}

struct chunk {
    const heed_opcall *c;
    const real *logits; /* (rows,V) */
    int64_t first, rows;
};

static void finish_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct chunk *k = context;
    const int32_t *targets = *(const int32_t *const *)k->c->attributes;
    const int64_t v = k->c->in[W]->rows;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int32_t target = targets[k->first + i];
        double nll = 0;
        if (target >= 0)
            nll = heed__kernels()->cross_entropy_row(k->logits + i * v, v, target, 0).nll;
        k->c->out[0]->data[k->first + i] = (real)-nll;
    }
}

static void forward(heed_opcall *c)
{
    const heed_tensor *h = c->in[H], *w = c->in[W], *bias = c->in[BIAS];
    const int threads = heed__threads(c);
    const int64_t most = chunk_rows(c);
    real *logits = heed__scratch(c, 0);
    for (int64_t first = 0; first < h->rows; first += most) {
        struct chunk k = {c, logits, first, h->rows - first < most ? h->rows - first : most};
        heed__op_gemm(c,
                      &(heed__product){.c = logits,
                                       .ldc = w->rows,
                                       .a = heed__row(h, first),
                                       .lda = h->ld,
                                       .b = w->data,
                                       .ldb = w->ld,
                                       .trans_b = true,
                                       .bias = bias ? bias->data : NULL,
                                       .m = k.rows,
                                       .n = w->rows,
                                       .k = w->cols},
                      NULL, NULL);
        heed__parallel(threads, k.rows, 1, w->rows * WORK, finish_rows, &k);
    }
}

HEED_OP_NO_GRADIENT(project_log_p, "y = log softmax(h W^T + bias)[target], in chunks of rows",
                    shape, forward);

heed_tensor *heed_project_log_p(heed_tape *t, heed_tensor *h, heed_tensor *w, heed_tensor *bias,
                                const int32_t *targets)
{
    heed_tensor *in[] = {[H] = h, [W] = w, [BIAS] = bias};
    return heed__first(
        heed__apply(t, &heed__op_project_log_p, in, 3, 1u << BIAS, &targets, sizeof targets));
}
