/* R-Drop (Liang et al. 2021) over the output projection, in chunks as project_cross_entropy.c:
 * h (2N,D) has each token twice, in rows n and N+n, under different dropout; W (V,D) -> (1).
 *   z = h_n W^T, z' = h_{N+n} W^T, p and p' their softmax, ce as in cross_entropy.c
 *   loss = weight sum_n (ce(z) + ce(z')) / 2 + strength (KL(p|p') + KL(p'|p)) / 4
 * which is half of the paper's, whose alpha is `strength`.  The two divergences together are
 * sum_i (p_i - p'_i) (z_i - z'_i): the logarithms' normalisers cancel. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>
#include <string.h>

#define CHUNK_BYTES ((int64_t)51 << 20)
#define WORK 80 /* elementary operations for a pair of logits */

enum { H, W };

struct attributes {
    const int32_t *targets; /* (N) */
    double smoothing, strength, weight;
    double *nll;
};

struct pair {
    double loss, nll;
};

struct saved {
    int64_t chunk;    /* pairs of rows */
    struct pair *row; /* (N) */
    real *dh;         /* (2N,D) for a loss gradient of 1; NULL if h wants none */
    bool spent;       /* the share written during forward has been claimed by a backward */
};

/* One pass over the chunks. */
struct pass {
    heed_opcall *c;
    real *logits[2], *apart; /* (rows,V) each: z, z', z - z' */
    int64_t first, rows;
    double scale;  /* of the gradients */
    real *dh, *dw; /* NULL: not wanted */
};

static heed_status check(heed_opcall *c)
{
    const heed_tensor *h = c->in[H], *w = c->in[W];
    const struct attributes *a = c->attributes;
    if (w->shape.rank != 2 || w->rows < 1)
        return heed__op_shape_fail(c, "w", w, "(V,D)");
    if (h->cols != w->cols || h->rows % 2 != 0)
        return heed__op_shape_fail(c, "h", h, "(2N,%lld)", (long long)w->cols);
    if (!a->targets && h->rows > 0)
        return heed__op_fail(c, HEED_ARGUMENT, "targets is NULL");
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return heed__op_fail(c, HEED_ARGUMENT, "smoothing is %g, expected 0 to 1", a->smoothing);
    if (!(a->strength >= 0))
        return heed__op_fail(c, HEED_ARGUMENT, "strength is %g, expected 0 or more", a->strength);
    for (int64_t i = 0; i < h->rows / 2; i++)
        if (a->targets[i] >= w->rows)
            return heed__op_fail(c, HEED_ARGUMENT, "target %lld is %ld, expected less than %lld",
                                 (long long)i, (long)a->targets[i], (long long)w->rows);
    return HEED_OK;
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
    const int64_t n = h->rows / 2;
    int64_t most = CHUNK_BYTES / (3 * w->rows * (int64_t)sizeof(real));
    most = most < 1 ? 1 : most;
    int64_t chunks = (n + most - 1) / most;
    s->chunk = chunks ? (n + chunks - 1) / chunks : 0;
    s->row = heed__keep(c, (size_t)n * sizeof *s->row);
    if (!s->row)
        return HEED_MEMORY;
    if (c->recorded) {
        if (heed__wants(c, H) &&
            !(s->dh = heed__keep(c, (size_t)(h->rows * h->cols) * sizeof(real))))
            return HEED_MEMORY;
        if (heed__wants(c, W) && (status = heed__grad_early(c, W)))
            return status;
    }
    if ((status = heed__want_panels(c, s->chunk, w->rows, w->cols)))
        return status;
    /* One block over all threads' scratch. */
    const int64_t threads = heed__threads(c);
    return heed__want_scratch(c, (size_t)(3 * s->chunk * w->rows / threads + 1) * sizeof(real));
}

/* x and y hold g (p - u) and g (p' - u), u the uniform part of the target; d is z - z'.  Adds k
 * times the gradient of S = sum (p - p') d, which is (p_i - p'_i) + p_i (d_i - sum p d) for z and
 * (p'_i - p_i) - p'_i (d_i - sum p' d) for z'.  Returns S. */
static double agree(real *x, real *y, const real *d, int64_t v, double g, double u, double k)
{
    const real inverse = (real)(1 / g), uniform = (real)u, by = (real)k;
    double m = 0, n = 0;
    for (int64_t begin = 0; begin < v; begin += 1024) { /* blocks, for the digits of the sums */
        const int64_t end = v - begin < 1024 ? v : begin + 1024;
        real bm = 0, bn = 0;
#pragma omp simd reduction(+ : bm, bn)
        for (int64_t i = begin; i < end; i++) {
            bm += (x[i] * inverse + uniform) * d[i];
            bn += (y[i] * inverse + uniform) * d[i];
        }
        m += (double)bm;
        n += (double)bn;
    }
    const real mean = (real)m, other = (real)n;
#pragma omp simd
    for (int64_t i = 0; i < v; i++) {
        const real p = x[i] * inverse + uniform, q = y[i] * inverse + uniform;
        x[i] += by * (p - q + p * (d[i] - mean));
        y[i] += by * (q - p - q * (d[i] - other));
    }
    return m - n;
}

/* The logits of some pairs of rows become, in place, scale times their gradients. */
static void finish_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct pass *p = context;
    const struct attributes *a = p->c->attributes;
    const struct saved *s = p->c->saved;
    const heed_kernels *k = heed__kernels();
    const int64_t v = p->c->in[W]->rows;
    const double g = p->scale / 2, spike = g * (1 - a->smoothing);
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        real *x = p->logits[0] + i * v, *y = p->logits[1] + i * v, *d = p->apart + i * v;
        const int32_t target = a->targets[p->first + i];
        if (target < 0) {
            memset(x, 0, (size_t)v * sizeof(real));
            memset(y, 0, (size_t)v * sizeof(real));
            continue;
        }
        k->masked_add(d, x, y, NULL, -1, v);
        heed__entropy first = k->cross_entropy_both(x, v, target, a->smoothing, g);
        heed__entropy second = k->cross_entropy_both(y, v, target, a->smoothing, g);
        x[target] += (real)spike;
        y[target] += (real)spike;
        double apart = agree(x, y, d, v, g, a->smoothing / (double)v, a->strength * p->scale / 4);
        x[target] -= (real)spike;
        y[target] -= (real)spike;
        s->row[p->first + i] = (struct pair){
            (first.loss + second.loss) / 2 + a->strength * apart / 4, (first.nll + second.nll) / 2};
    }
}

/* z of the chunk's rows, or z' for side 1. */
static void make_logits(struct pass *p, int side)
{
    const heed_tensor *h = p->c->in[H], *w = p->c->in[W];
    heed__op_gemm(p->c,
                  &(heed__product){.c = p->logits[side],
                                   .ldc = w->rows,
                                   .a = heed__row(h, p->first + side * (h->rows / 2)),
                                   .lda = h->ld,
                                   .b = w->data,
                                   .ldb = w->ld,
                                   .trans_b = true,
                                   .m = p->rows,
                                   .n = w->rows,
                                   .k = w->cols},
                  NULL, NULL);
}

static void use_gradient(struct pass *p, int side)
{
    const heed_tensor *h = p->c->in[H], *w = p->c->in[W];
    const int64_t v = w->rows, d = w->cols, row = p->first + side * (h->rows / 2);
    if (p->dh)
        heed__op_gemm(p->c,
                      &(heed__product){.c = p->dh + row * d,
                                       .ldc = d,
                                       .a = p->logits[side],
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
                                       .a = p->logits[side],
                                       .lda = v,
                                       .trans_a = true,
                                       .b = heed__row(h, row),
                                       .ldb = h->ld,
                                       .m = v,
                                       .n = d,
                                       .k = p->rows,
                                       .beta = 1},
                      NULL, NULL);
}

static void run_chunks(struct pass *p)
{
    const struct saved *s = p->c->saved;
    const int64_t n = p->c->in[H]->rows / 2, v = p->c->in[W]->rows;
    for (int i = 0; i < 2; i++)
        p->logits[i] = (real *)heed__scratch(p->c, 0) + i * s->chunk * v;
    p->apart = p->logits[1] + s->chunk * v;
    for (p->first = 0; p->first < n; p->first += s->chunk) {
        p->rows = n - p->first < s->chunk ? n - p->first : s->chunk;
        for (int side = 0; side < 2; side++)
            make_logits(p, side);
        heed__parallel(heed__threads(p->c), p->rows, 1, v * WORK, finish_rows, p);
        for (int side = 0; side < 2; side++)
            use_gradient(p, side);
    }
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const struct saved *s = c->saved;
    /* Without a weight there is nothing to divide by, and nothing to learn. */
    struct pass p = {.c = c, .scale = a->weight == 0 ? 1 : a->weight, .dh = s->dh};
    if (c->recorded && heed__wants(c, W) && a->weight != 0)
        p.dw = heed__grad(c, W);
    run_chunks(&p);
    double loss = 0, nll = 0;
    for (int64_t i = 0; i < c->in[H]->rows / 2; i++)
        if (a->targets[i] >= 0) {
            loss += s->row[i].loss;
            nll += s->row[i].nll;
        }
    c->out[0]->data[0] = (real)(a->weight * loss);
    if (a->nll)
        *a->nll = nll;
}

/* With g = dloss: what forward made for g = 1, times g.  W has its share of g = 1 already, the
 * first time. */
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
        const real by = a->weight == 0 ? 0 : (real)g;
        for (int64_t i = 0; i < h->rows; i++) {
            real *to = dh + i * h->ld;
            heed__kernels()->masked_add(to, beta == 0 ? NULL : to, s->dh + i * h->cols, NULL, by,
                                        h->cols);
        }
    }
    struct pass p = {.c = c, .scale = a->weight * missing};
    if (p.scale != 0 && heed__wants(c, W)) {
        p.dw = heed__grad(c, W);
        run_chunks(&p);
    }
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    static const int32_t targets[] = {1, 0, -1, 2};
    out[0] = heed_project_agreement(t, in[H], in[W], targets, c->r[0], c->r[1], c->r[2], NULL);
}

static const heed_opcase cases[] = {
    {.what = "one pair, one column", .in = {HEED_DIMS2(2, 1), HEED_DIMS2(2, 1)}, .r = {0, 1, 1}},
    {.what = "smoothed, a dropped pair",
     .in = {HEED_DIMS2(8, 3), HEED_DIMS2(7, 3)},
     .r = {0.1, 5, 0.5}},
    {.what = "no divergence", .in = {HEED_DIMS2(4, 4), HEED_DIMS2(19, 4)}, .r = {0.2, 0, 1}},
};

HEED_OP(project_agreement, "y = weight (cross_entropy + strength/4 (KL(p|p') + KL(p'|p))) of h W^T",
        shape, forward, backward, cases, run);

heed_tensor *heed_project_agreement(heed_tape *t, heed_tensor *h, heed_tensor *w,
                                    const int32_t *targets, double smoothing, double strength,
                                    double weight, double *nll)
{
    heed_tensor *in[] = {[H] = h, [W] = w};
    struct attributes a = {targets, smoothing, strength, weight, nll};
    return heed__first(heed__apply(t, &heed__op_project_agreement, in, 2, 0, &a, sizeof a));
}
