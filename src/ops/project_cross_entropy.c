/* Output projection, softmax and cross-entropy in one, in chunks of rows:
 *   loss = weight sum_n - sum_i q_i log softmax(h_n W^T + bias)_i   (q as in cross_entropy.c)
 * h (N,D), W (V,D), bias (V) or NULL -> (1).  The (N,V) logits never exist whole: a chunk of at
 * most CHUNK_BYTES is made, turned into its own gradient in place, and used up by the two products
 * that need it.  So W's and the bias' gradients are written during forward, as if the loss's
 * gradient were 1; backward corrects them where it is not, by making the chunks again. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>
#include <string.h>

#define CHUNK_BYTES ((int64_t)48 << 20)
/* BLIS takes other kernels for a C of fewer rows than this, a third slower for products as long as
 * these (measured: 60 and 52 GFLOP/s instead of 85), and a chunk has fewer.  So the logits are made
 * with our own kernel, from panels of so many columns, and dh as its transpose. */
#define LIBRARY_ROWS 512
#define PANEL 64
#define STRIP 16      /* columns transposed together: a cache line of the panel */
#define PANEL_ROWS 64 /* fewer do not repay transposing W */
#define WORK 24       /* elementary operations a logit */
#define GRAIN 16      /* columns: no two threads write one cache line */

enum { H, W, BIAS };

struct attributes {
    const int32_t *targets;
    double smoothing, weight;
    double *nll;
};

struct saved {
    int64_t chunk;      /* rows */
    heed__entropy *row; /* (N) */
    real *dh;           /* (N,D) for a loss gradient of 1; NULL if h wants none */
    bool spent;         /* the share written during forward has been claimed by a backward */
};

/* What is wanted of one pass over the chunks. */
struct pass {
    heed_opcall *c;
    real *logits; /* (rows of the chunk, V) */
    real *turned; /* (D, rows of the chunk): dh transposed */
    real *panels; /* (D, PANEL) for each thread */
    int64_t first, rows;
    bool forward; /* the losses are not known yet */
    double scale; /* of the gradients; with grads false they are not wanted */
    bool grads;
    real *dh, *dw, *dbias; /* NULL: not wanted */
};

static heed_status check(heed_opcall *c)
{
    const heed_tensor *h = c->in[H], *w = c->in[W], *bias = c->in[BIAS];
    const struct attributes *a = c->attributes;
    if (w->shape.rank != 2 || w->rows < 1)
        return heed__op_shape_fail(c, "w", w, "(V,D)");
    if (h->cols != w->cols)
        return heed__op_shape_fail(c, "h", h, "(N,%lld)", (long long)w->cols);
    if (bias && (bias->rows != 1 || bias->cols != w->rows))
        return heed__op_shape_fail(c, "bias", bias, "(%lld)", (long long)w->rows);
    if (!a->targets && h->rows > 0)
        return heed__op_fail(c, HEED_ARGUMENT, "targets is NULL");
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return heed__op_fail(c, HEED_ARGUMENT, "smoothing is %g, expected 0 to 1", a->smoothing);
    for (int64_t i = 0; i < h->rows; i++)
        if (a->targets[i] >= w->rows)
            return heed__op_fail(c, HEED_ARGUMENT, "target %lld is %ld, expected less than %lld",
                                 (long long)i, (long)a->targets[i], (long long)w->rows);
    return HEED_OK;
}

/* Rows of a chunk for which `turned` is used: fewer than LIBRARY_ROWS, see make_dh.  With few
 * classes a chunk has many more. */
static int64_t turned_most(const struct saved *s)
{
    return s->chunk < LIBRARY_ROWS ? s->chunk : LIBRARY_ROWS;
}

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *h = c->in[H], *w = c->in[W];
    heed_status status = check(c);
    if (status || (status = heed__out(c, HEED_SHAPE(1))) ||
        (status = heed__save(c, sizeof(struct saved))))
        return status;
    struct saved *s = c->saved;
    *s = (struct saved){0};
    /* As few chunks as fit, and all of one size (the last is at most a few rows shorter). */
    int64_t most = CHUNK_BYTES / (w->rows * (int64_t)sizeof(real));
    most = most < 1 ? 1 : most;
    int64_t chunks = (h->rows + most - 1) / most;
    s->chunk = chunks ? (h->rows + chunks - 1) / chunks : 0;
    s->row = heed__keep(c, (size_t)h->rows * sizeof *s->row);
    if (!s->row)
        return HEED_MEMORY;
    if (c->recorded) {
        if (heed__wants(c, H) &&
            !(s->dh = heed__keep(c, (size_t)(h->rows * h->cols) * sizeof(real))))
            return HEED_MEMORY;
        for (int i = W; i <= BIAS; i++)
            if (heed__wants(c, i) && (status = heed__grad_early(c, i)))
                return status;
    }
    /* One block over all threads' scratch: logits, turned, panels. */
    const int64_t threads = heed__threads(c);
    int64_t count = s->chunk * w->rows + turned_most(s) * w->cols + threads * w->cols * PANEL;
    return heed__want_scratch(c, (size_t)(count / threads + 1) * sizeof(real));
}

/* Columns [begin,end) of the chunk's logits, PANEL at a time: their rows of W are transposed into a
 * panel that stays in cache for all rows of h. */
static void logits_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const struct pass *p = context;
    const heed_tensor *h = p->c->in[H], *w = p->c->in[W];
    const int64_t d = w->cols;
    real *panel = p->panels + thread * d * PANEL;
    for (int64_t left = begin; left < end; left += PANEL) {
        const int64_t n = end - left < PANEL ? end - left : PANEL;
        for (int64_t j = 0; j < n; j += STRIP) {
            const real *from = heed__row(w, left + j);
            const int64_t wide = n - j < STRIP ? n - j : STRIP;
            for (int64_t k = 0; k < d; k++)
                for (int64_t i = 0; i < wide; i++)
                    panel[k * PANEL + j + i] = from[i * w->ld + k];
        }
        heed__kernels()->gemm_few(p->logits + left, w->rows, heed__row(h, p->first), h->ld, 1,
                                  panel, PANEL, p->rows, n, d, 0);
    }
}

static void make_logits(struct pass *p)
{
    const heed_tensor *h = p->c->in[H], *w = p->c->in[W];
    const int threads = heed__threads(p->c);
    const int64_t v = w->rows, d = w->cols;
    if (p->rows < PANEL_ROWS || p->rows >= LIBRARY_ROWS)
        heed__gemm(&(heed__product){.c = p->logits,
                                    .ldc = v,
                                    .a = heed__row(h, p->first),
                                    .lda = h->ld,
                                    .b = w->data,
                                    .ldb = w->ld,
                                    .trans_b = true,
                                    .m = p->rows,
                                    .n = v,
                                    .k = d},
                   threads, NULL, NULL);
    else
        heed__parallel(threads, v, PANEL, p->rows * d, logits_columns, p);
}

/* Rows [begin,end) of the chunk's dh = dlogits W, as W^T dlogits^T. */
static void turned_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct pass *p = context;
    const heed_tensor *w = p->c->in[W];
    const int64_t v = w->rows, d = w->cols, n = end - begin;
    real *turned = p->turned + begin * d, *dh = p->dh + (p->first + begin) * d;
    (void)thread;
    heed__gemm(&(heed__product){.c = turned,
                                .ldc = n,
                                .a = w->data,
                                .lda = w->ld,
                                .trans_a = true,
                                .b = p->logits + begin * v,
                                .ldb = v,
                                .trans_b = true,
                                .m = d,
                                .n = n,
                                .k = v},
               1, NULL, NULL);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++)
            dh[i * d + j] = turned[j * n + i];
}

static void make_dh(struct pass *p)
{
    const heed_tensor *w = p->c->in[W];
    const int threads = heed__threads(p->c);
    const int64_t v = w->rows, d = w->cols;
    if (p->rows >= PANEL_ROWS && p->rows < LIBRARY_ROWS && d >= LIBRARY_ROWS)
        heed__parallel(threads, p->rows, 1, v * d, turned_rows, p);
    else
        heed__gemm(&(heed__product){.c = p->dh + p->first * d,
                                    .ldc = d,
                                    .a = p->logits,
                                    .lda = v,
                                    .b = w->data,
                                    .ldb = w->ld,
                                    .m = p->rows,
                                    .n = d,
                                    .k = v},
                   threads, NULL, NULL);
}

/* Logits of some rows become, in place, scale times their gradient. */
static void finish_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct pass *p = context;
    const struct attributes *a = p->c->attributes;
    const struct saved *s = p->c->saved;
    const heed_tensor *bias = p->c->in[BIAS];
    const heed_kernels *k = heed__kernels();
    const int64_t v = p->c->in[W]->rows;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        real *x = p->logits + i * v;
        const int32_t target = a->targets[p->first + i];
        heed__entropy *row = &s->row[p->first + i];
        if (target < 0) {
            memset(x, 0, (size_t)v * sizeof(real));
            continue;
        }
        if (bias)
            k->masked_add(x, x, bias->data, NULL, 1, v);
        if (p->forward)
            *row = k->cross_entropy_row(x, v, target, a->smoothing);
        if (p->grads)
            k->cross_entropy_grad(x, x, row, v, target, a->smoothing, p->scale, true);
    }
}

/* dbias += the chunk's rows, columns [begin,end). */
static void bias_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const struct pass *p = context;
    const int64_t v = p->c->in[W]->rows;
    (void)thread;
    for (int64_t i = 0; i < p->rows; i++)
        heed__kernels()->masked_add(p->dbias + begin, p->dbias + begin, p->logits + i * v + begin,
                                    NULL, 1, end - begin);
}

static void run_chunk(struct pass *p)
{
    const heed_tensor *h = p->c->in[H], *w = p->c->in[W];
    const int threads = heed__threads(p->c);
    const int64_t v = w->rows, d = w->cols;
    const real *rows = heed__row(h, p->first);
    make_logits(p);
    heed__parallel(threads, p->rows, 1, v * WORK, finish_rows, p);
    if (p->dh)
        make_dh(p);
    if (p->dw)
        heed__gemm(&(heed__product){.c = p->dw,
                                    .ldc = w->ld,
                                    .a = p->logits,
                                    .lda = v,
                                    .trans_a = true,
                                    .b = rows,
                                    .ldb = h->ld,
                                    .m = v,
                                    .n = d,
                                    .k = p->rows,
                                    .beta = 1},
                   threads, NULL, NULL);
    if (p->dbias)
        heed__parallel(threads, v, GRAIN, p->rows, bias_columns, p);
}

static void run_chunks(struct pass *p)
{
    const struct saved *s = p->c->saved;
    const int64_t n = p->c->in[H]->rows;
    p->logits = heed__scratch(p->c, 0);
    p->turned = p->logits + s->chunk * p->c->in[W]->rows;
    p->panels = p->turned + turned_most(s) * p->c->in[W]->cols;
    for (p->first = 0; p->first < n; p->first += s->chunk) {
        p->rows = n - p->first < s->chunk ? n - p->first : s->chunk;
        run_chunk(p);
    }
}

/* Adds scale times the gradients of W and bias; what is wanted of h's goes where `p` says. */
static void want_weights(struct pass *p)
{
    if (heed__wants(p->c, W))
        p->dw = heed__grad(p->c, W);
    if (heed__wants(p->c, BIAS))
        p->dbias = heed__grad(p->c, BIAS);
    p->grads = p->dh || p->dw || p->dbias;
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const struct saved *s = c->saved;
    struct pass p = {.c = c, .forward = true, .scale = a->weight, .dh = s->dh};
    if (c->recorded)
        want_weights(&p);
    run_chunks(&p);
    double loss = 0, nll = 0;
    for (int64_t i = 0; i < c->in[H]->rows; i++)
        if (a->targets[i] >= 0) {
            loss += s->row[i].loss;
            nll += s->row[i].nll;
        }
    c->out[0]->data[0] = (real)(a->weight * loss);
    if (a->nll)
        *a->nll = nll;
}

/* With g = dloss and d = weight (p - q): dh = g d W, dW = g d^T h, dbias = g sum_n d.  W and bias
 * have the share of g = 1 already, the first time. */
static void backward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *h = c->in[H];
    struct saved *s = c->saved;
    const double g = (double)*heed__out_grad(c, 0);
    const double missing = s->spent ? g : g - 1;
    s->spent = true;
    if (heed__wants(c, H)) {
        real beta, *dh = heed__grad_beta(c, H, &beta);
        for (int64_t i = 0; i < h->rows; i++) {
            real *to = dh + i * h->ld;
            heed__kernels()->masked_add(to, beta == 0 ? NULL : to, s->dh + i * h->cols, NULL,
                                        (real)g, h->cols);
        }
    }
    struct pass p = {.c = c, .scale = a->weight * missing};
    if (missing != 0)
        want_weights(&p);
    if (p.grads)
        run_chunks(&p);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    static const int32_t targets[] = {1, 0, -1, 2, 1};
    out[0] = heed_project_cross_entropy(t, in[H], in[W], in[BIAS], targets, c->r[0], c->r[1], NULL);
}

static const heed_opcase cases[] = {
    {.what = "one row, one column", .in = {HEED_DIMS2(1, 1), HEED_DIMS2(2, 1)}, .r = {0, 1}},
    {.what = "smoothed, a dropped row",
     .in = {HEED_DIMS2(5, 3), HEED_DIMS2(7, 3)},
     .r = {0.1, 0.5}},
    {.what = "bias, odd",
     .in = {HEED_DIMS2(5, 4), HEED_DIMS2(19, 4), HEED_DIMS1(19)},
     .r = {0.2, 1}},
};

HEED_OP(project_cross_entropy, "y = weight cross_entropy(h W^T + bias), in chunks of rows", shape,
        forward, backward, cases, run);

heed_tensor *heed_project_cross_entropy(heed_tape *t, heed_tensor *h, heed_tensor *w,
                                        heed_tensor *bias, const int32_t *targets, double smoothing,
                                        double weight, double *nll)
{
    heed_tensor *in[] = {[H] = h, [W] = w, [BIAS] = bias};
    struct attributes a = {targets, smoothing, weight, nll};
    return heed__first(
        heed__apply(t, &heed__op_project_cross_entropy, in, 3, 1u << BIAS, &a, sizeof a));
}
