/* products.c: our few-row products and the linear operator against the bare CBLAS.
 *
 * The reference is the raw time of the same products, without bias, activation or anything else;
 * with several threads the better of the library's own threading and one serial call a thread. */
#include "measure.h"
#include "reference.h"

#include "kernel/gemm.h"

#include <math.h>
#include <stdio.h>

static const char *which(const bench_run *r, const double best[3])
{
    return r->threads == 1     ? NULL
           : best[1] < best[2] ? "against the library's own threads"
                               : "against one serial call a thread";
}

/* ---- few rows ---- */

struct product {
    bench_run *run;
    heed__product p[2]; /* the second only for a backward: both gradients */
    int n, repeat;
};

static double timed(const struct product *x, void (*call)(const heed__product *, int))
{
    double start = heed_clock_seconds();
    for (int i = 0; i < x->repeat; i++)
        for (int j = 0; j < x->n; j++)
            call(&x->p[j], x->run->threads);
    return (heed_clock_seconds() - start) / x->repeat;
}

static void ours(const heed__product *p, int threads)
{
    heed__gemm(p, threads, NULL, NULL);
}

static double few(void *context)
{
    return timed(context, ours);
}

static double own(void *context)
{
    return timed(context, bench_cblas_own);
}

static double parts(void *context)
{
    return timed(context, bench_cblas_parts);
}

void bench_few_rows(bench_run *r)
{
    static const char *const bench = "few-row product";
    static const int64_t rows[] = {1, 4, 16}, out[] = {512, 2048}, in = 512;
    if (!bench_wanted(r, bench))
        return;
    for (int i = 0; i < 6; i++) {
        int64_t m = rows[i % 3], n = out[i / 3];
        heed_tensor *a = bench_random(r, HEED_SHAPE(m, in), 1, BENCH_INPUT),
                    *b = bench_random(r, HEED_SHAPE(in, n), 1, BENCH_INPUT),
                    *c = bench_random(r, HEED_SHAPE(m, n), 1, BENCH_INPUT);
        if (bench_check(r, bench, r->hold))
            return;
        struct product x = {r,
                            {{.c = heed_tensor_data(c),
                              .a = heed_tensor_data(a),
                              .b = heed_tensor_data(b),
                              .ldc = n,
                              .lda = in,
                              .ldb = n,
                              .m = m,
                              .n = n,
                              .k = in}},
                            1,
                            100};
        double best[3] = {0, INFINITY, INFINITY};
        bench_alternate((bench_subject *[]){few, own, parts}, (void *[]){&x, &x, &x},
                        r->threads > 1 ? 3 : 2, r->budget / 2, best);
        double raw = fmin(best[1], best[2]);
        bench_line line = {bench,         "",  best[0] * 1e6, "us", raw * 1e6,
                           raw / best[0], NAN, which(r, best)};
        snprintf(line.shape, sizeof line.shape, "%lldx%lldx%lld", (long long)m, (long long)in,
                 (long long)n);
        bench_report(r, &line);
        heed_tape_reset(r->hold);
    }
}

/* ---- linear ---- */

struct linear {
    bench_run *run;
    heed_tensor *x, *w, *b;
    heed_activation activation;
};

static double linear_forward(void *context)
{
    struct linear *l = context;
    heed_tape_reset(l->run->work);
    double start = heed_clock_seconds();
    heed_linear(l->run->work, l->x, l->w, l->b, l->activation);
    return heed_clock_seconds() - start;
}

static double linear_backward(void *context)
{
    struct linear *l = context;
    heed_tape_reset(l->run->work);
    return bench_backward(l->run, heed_linear(l->run->work, l->x, l->w, l->b, l->activation));
}

static void measure_linear(bench_run *r, const char *bench, double target, struct linear *l,
                           struct product *raw, bench_subject *subject, const char *shape)
{
    if (!bench_wanted(r, bench))
        return;
    double best[3] = {0, INFINITY, INFINITY};
    bench_alternate((bench_subject *[]){subject, own, parts}, (void *[]){l, raw, raw},
                    r->threads > 1 ? 3 : 2, r->budget, best);
    if (bench_check(r, bench, r->work))
        return;
    double reference = fmin(best[1], best[2]);
    bench_line line = {
        bench,         "", best[0] * 1e3, "ms", reference * 1e3, reference / best[0], target,
        which(r, best)};
    snprintf(line.shape, sizeof line.shape, "%s", shape);
    bench_report(r, &line);
}

static void one_linear(bench_run *r, int64_t n, int64_t in, int64_t out)
{
    static const struct {
        const char *forward, *backward;
        heed_activation activation;
        double target;
    } kinds[] = {
        {"linear relu forward", "linear relu backward", HEED_RELU, 0.95},
        {"linear gelu forward", "linear gelu backward", HEED_GELU, NAN},
        {"linear silu forward", "linear silu backward", HEED_SILU, NAN},
    };
    struct linear l = {r, bench_random(r, HEED_SHAPE(n, in), 1, BENCH_ACTIVATION),
                       bench_random(r, HEED_SHAPE(in, out), 0.05, BENCH_PARAMETER),
                       bench_random(r, HEED_SHAPE(out), 1, BENCH_PARAMETER), HEED_RELU};
    /* What the raw products read and write besides x and w. */
    heed_tensor *y = bench_random(r, HEED_SHAPE(n, out), 1e-3, BENCH_INPUT),
                *gx = bench_random(r, HEED_SHAPE(n, in), 0, BENCH_INPUT),
                *gw = bench_random(r, HEED_SHAPE(in, out), 0, BENCH_INPUT);
    if (bench_check(r, "linear", r->hold))
        return;
    heed_real *x = heed_tensor_data(l.x), *w = heed_tensor_data(l.w), *dy = heed_tensor_data(y);
    heed_real *dx = heed_tensor_data(gx), *dw = heed_tensor_data(gw);
    const heed__product y_of = {dy, x, w, out, in, out, n, out, in, .trans_a = false};
    const heed__product dx_of = {dx, dy, w, in, out, out, n, in, out, .trans_b = true};
    const heed__product dw_of = {dw, x, dy, out, in, out, in, out, n, .trans_a = true, .beta = 1};
    struct product forward = {r, {y_of}, 1, 1}, backward = {r, {dx_of, dw_of}, 2, 1};
    char shape[64];
    snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)n, (long long)in, (long long)out);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        l.activation = kinds[i].activation;
        measure_linear(r, kinds[i].forward, kinds[i].target, &l, &forward, linear_forward, shape);
        measure_linear(r, kinds[i].backward, kinds[i].target, &l, &backward, linear_backward,
                       shape);
    }
    heed_tape_reset(r->hold);
    heed_tape_reset(r->work);
}

void bench_linear(bench_run *r)
{
    static const int64_t shapes[][2] = {{512, 512}, {512, 2048}, {2048, 512}, {256, 1024}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !r->failed; i++)
        one_linear(r, 2048, shapes[i][0], shapes[i][1]);
}
