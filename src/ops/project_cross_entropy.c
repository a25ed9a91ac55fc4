/* Output projection, softmax and cross-entropy in one, in chunks of rows:
 *   loss = weight sum_n - sum_i q_i log softmax(h_n W^T + bias)_i   (q as in cross_entropy.c)
 * h (N,D), W (V,D), bias (V) or NULL -> (1).  The (N,V) logits are never stored as a whole: a chunk
 * of at most CHUNK_BYTES is computed, replaced by its own gradient, and used by the two products
 * that need it.  So the gradients of W and bias are written during forward, for a loss gradient of
 * 1; if it is another, backward corrects them by recomputing the chunks.
 *
 * With a teacher (Hinton, Vinyals, Dean 2015), q of some rows is softmax of the teacher's logits,
 * which are made in the same chunks. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>
#include <string.h>

#define CHUNK_BYTES ((int64_t)51 << 20)
#define WORK 24  /* elementary operations per logit */
#define GRAIN 16 /* columns: no two threads write one cache line */

enum { H, W, BIAS };

struct attributes {
    const int32_t *targets;
    double smoothing, weight;
    double *nll;
    heed_teacher teacher; /* h is NULL: none */
};

struct saved {
    int64_t chunk;      /* rows */
    heed__entropy *row; /* (N) */
    real *dh;           /* (N,D) for a loss gradient of 1; NULL if h needs none */
    bool spent;         /* a backward pass has used the gradients written during forward */
};

/* What one pass over the chunks computes. */
struct pass {
    heed_opcall *c;
    real *logits; /* (rows of the chunk, V) */
    real *taught; /* the teacher's */
    int64_t first, rows;
    double scale; /* of the gradients, if grads */
    bool grads;
    real *dh, *dw, *dbias; /* NULL: not needed */
};

static heed_status check_teacher(heed_opcall *c, const heed_teacher *teacher)
{
    const heed_tensor *h = c->in[H], *w = c->in[W], *bias = teacher->bias;
    if (teacher->h->rows != h->rows || teacher->h->cols != h->cols)
        return heed__op_shape_fail(c, "the teacher's h", teacher->h, "(%lld,%lld)",
                                   (long long)h->rows, (long long)h->cols);
    if (teacher->w->rows != w->rows || teacher->w->cols != w->cols)
        return heed__op_shape_fail(c, "the teacher's w", teacher->w, "(%lld,%lld)",
                                   (long long)w->rows, (long long)w->cols);
    if (bias && (bias->rows != 1 || bias->cols != w->rows))
        return heed__op_shape_fail(c, "the teacher's bias", bias, "(%lld)", (long long)w->rows);
    return HEED_OK;
}

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
    return a->teacher.h ? check_teacher(c, &a->teacher) : HEED_OK;
}

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *h = c->in[H], *w = c->in[W];
    const struct attributes *a = c->attributes;
    heed_status status = check(c);
    if (status || (status = heed__out(c, HEED_SHAPE(1))) ||
        (status = heed__save(c, sizeof(struct saved))))
        return status;
    struct saved *s = c->saved;
    *s = (struct saved){0};
    /* As few chunks as possible, of equal size (the last is at most a few rows shorter). */
    const int64_t sides = a->teacher.h ? 2 : 1;
    int64_t most = CHUNK_BYTES / (sides * w->rows * (int64_t)sizeof(real));
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
    if ((status = heed__want_panels(c, s->chunk, w->rows, w->cols)))
        return status;
    /* One block over all threads' scratch. */
    const int64_t threads = heed__threads(c);
    return heed__want_scratch(c, (size_t)(sides * s->chunk * w->rows / threads + 1) * sizeof(real));
}

/* One row of x against softmax(y), which takes the place of y. */
static heed__entropy match(real *x, real *y, int64_t v, double scale, bool grads)
{
    const heed_kernels *k = heed__kernels();
    k->softmax_rows(y, y, v, 1, v);
    heed__entropy row = {.nll = (double)k->row_logsumexp(x, v) - (double)k->row_dot(x, y, v)};
    row.loss = row.nll;
    if (grads) {
        k->softmax_rows(x, x, v, 1, v);
        k->accumulate(x, y, -1, v);
        k->masked_add(x, NULL, x, NULL, (real)scale, v);
    }
    return row;
}

/* Replaces the logits of some rows by scale times their gradient. */
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
        const bool taught = a->teacher.h && target == HEED_FROM_TEACHER;
        if (target < 0 && !taught) {
            memset(x, 0, (size_t)v * sizeof(real));
            continue;
        }
        if (bias)
            k->masked_add(x, x, bias->data, NULL, 1, v);
        if (taught && a->teacher.bias)
            k->masked_add(p->taught + i * v, p->taught + i * v, a->teacher.bias->data, NULL, 1, v);
        if (taught)
            *row = match(x, p->taught + i * v, v, p->scale, p->grads);
        else if (p->grads)
            *row = k->cross_entropy_both(x, v, target, a->smoothing, p->scale);
        else
            *row = k->cross_entropy_row(x, v, target, a->smoothing);
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

/* What a case gives besides tensors. */
struct arguments {
    double smoothing, weight;
    bool taught;
};

/* to = h W^T, of the chunk's rows. */
static void project(const struct pass *p, real *to, const heed_tensor *h, const heed_tensor *w)
{
    heed__op_gemm(p->c,
                  &(heed__product){.c = to,
                                   .ldc = w->rows,
                                   .a = heed__row(h, p->first),
                                   .lda = h->ld,
                                   .b = w->data,
                                   .ldb = w->ld,
                                   .trans_b = true,
                                   .m = p->rows,
                                   .n = w->rows,
                                   .k = w->cols},
                  NULL, NULL);
}

static void run_chunk(struct pass *p)
{
    const heed_tensor *h = p->c->in[H], *w = p->c->in[W];
    const struct attributes *a = p->c->attributes;
    const int threads = heed__threads(p->c);
    const int64_t v = w->rows, d = w->cols;
    const real *rows = heed__row(h, p->first);
    project(p, p->logits, h, w);
    if (a->teacher.h)
        project(p, p->taught, a->teacher.h, a->teacher.w);
    heed__parallel(threads, p->rows, 1, v * WORK, finish_rows, p);
    if (p->dh)
        heed__op_gemm(p->c,
                      &(heed__product){.c = p->dh + p->first * d,
                                       .ldc = d,
                                       .a = p->logits,
                                       .lda = v,
                                       .b = w->data,
                                       .ldb = w->ld,
                                       .m = p->rows,
                                       .n = d,
                                       .k = v},
                      NULL, NULL);
    if (p->dw)
        heed__op_gemm(p->c,
                      &(heed__product){.c = p->dw,
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
                      NULL, NULL);
    if (p->dbias)
        heed__parallel(threads, v, GRAIN, p->rows, bias_columns, p);
}

static void run_chunks(struct pass *p)
{
    const struct saved *s = p->c->saved;
    const int64_t n = p->c->in[H]->rows;
    p->logits = heed__scratch(p->c, 0);
    p->taught = p->logits + s->chunk * p->c->in[W]->rows;
    for (p->first = 0; p->first < n; p->first += s->chunk) {
        p->rows = n - p->first < s->chunk ? n - p->first : s->chunk;
        run_chunk(p);
    }
}

/* Adds scale times the gradients of W and bias; h's goes where `p` says. */
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
    struct pass p = {.c = c, .scale = a->weight, .dh = s->dh};
    if (c->recorded)
        want_weights(&p);
    run_chunks(&p);
    double loss = 0, nll = 0;
    for (int64_t i = 0; i < c->in[H]->rows; i++)
        if (a->targets[i] >= 0 || (a->teacher.h && a->targets[i] == HEED_FROM_TEACHER)) {
            loss += s->row[i].loss;
            nll += s->row[i].nll;
        }
    c->out[0]->data[0] = (real)(a->weight * loss);
    if (a->nll)
        *a->nll = nll;
}

/* loss = weight sum_n - sum_i q_i log p_i, p = softmax(h W^T + bias), so with g = dloss and
 * d = weight (p - q):  dh = g d W,  dW = g d^T h,  dbias = g sum_n d
 * The first time W and bias already have those of g = 1. */
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
    const struct arguments *a = c->arguments;
    static const int32_t targets[] = {1, 0, -1, 2, 1};
    static const int32_t some[] = {1, HEED_FROM_TEACHER, -1, HEED_FROM_TEACHER, 0};
    static const heed_real states[] = {0.3, -1,  0.5,  2,   0.1, -0.7, 1, 0,
                                       -2,  0.4, -0.2, 0.9, 1,   1,    1};
    static const heed_real table[] = {1, -1, 0.5, 0.2, 0.8, -0.3, -1, 0.6, 0, 0.1, 0.7, -0.9};
    static const heed_real bias[] = {0.1, -0.4, 0, 0.3};
    const heed_teacher teacher = {heed_input(t, HEED_SHAPE(5, 3), states),
                                  heed_input(t, HEED_SHAPE(4, 3), table),
                                  heed_input(t, HEED_SHAPE(4), bias)};
    out[0] = a->taught ? heed_project_distil(t, in[H], in[W], in[BIAS], &teacher, some,
                                             a->smoothing, a->weight, NULL)
                       : heed_project_cross_entropy(t, in[H], in[W], in[BIAS], targets,
                                                    a->smoothing, a->weight, NULL);
}

static const heed_opcase cases[] = {
    {.what = "one row, one column",
     .in = {HEED_DIMS2(1, 1), HEED_DIMS2(2, 1)},
     HEED_WITH(.smoothing = 0, .weight = 1)},
    {.what = "smoothed, a skipped row",
     .in = {HEED_DIMS2(5, 3), HEED_DIMS2(7, 3)},
     HEED_WITH(.smoothing = 0.1, .weight = 0.5)},
    {.what = "bias, odd",
     .in = {HEED_DIMS2(5, 4), HEED_DIMS2(19, 4), HEED_DIMS1(19)},
     HEED_WITH(.smoothing = 0.2, .weight = 1)},
    {.what = "two rows of a teacher",
     .in = {HEED_DIMS2(5, 3), HEED_DIMS2(4, 3), HEED_DIMS1(4)},
     HEED_WITH(.smoothing = 0.1, .weight = 0.5, .taught = true)},
};

HEED_OP(project_cross_entropy, "y = weight cross_entropy(h W^T + bias), in chunks of rows", shape,
        forward, backward, cases, run);

heed_tensor *heed_project_cross_entropy(heed_tape *t, heed_tensor *h, heed_tensor *w,
                                        heed_tensor *bias, const int32_t *targets, double smoothing,
                                        double weight, double *nll)
{
    return heed_project_distil(t, h, w, bias, NULL, targets, smoothing, weight, nll);
}

heed_tensor *heed_project_distil(heed_tape *t, heed_tensor *h, heed_tensor *w, heed_tensor *bias,
                                 const heed_teacher *teacher, const int32_t *targets,
                                 double smoothing, double weight, double *nll)
{
    heed_tensor *in[] = {[H] = h, [W] = w, [BIAS] = bias};
    struct attributes a = {targets, smoothing, weight, nll, {NULL, NULL, NULL}};
    if (teacher)
        a.teacher = *teacher;
    if (teacher && !(teacher->h && teacher->w)) /* an error of the tape has left them out */
        return NULL;
    return heed__first(
        heed__apply(t, &heed__op_project_cross_entropy, in, 3, 1u << BIAS, &a, sizeof a));
}
