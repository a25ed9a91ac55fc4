/* bench_machine.c: what this machine gives at best: multiply-adds in fp32 and int8, triad,
 * reading, and a 512^3 product by CBLAS.  Everything else is measured against one of them.
 *
 * Bytes are counted as a program sees them: the triad reads two numbers and writes one.  That a
 * write first fetches its cache line is the same for it and for what is compared with it. */
#include "measure.h"
#include "reference.h"

#include "base/parallel.h"
#include "kernel/kernels.h"

#include <math.h>
#include <stdio.h>

#define ROUNDS (1 << 20)
#define ELEMENTS BENCH_TRIAD_ELEMENTS

struct probe {
    const bench_run *run;
    double peak, int8;            /* the best so far */
    double got[HEED_MAX_THREADS]; /* operations, or a sum: what keeps the work from being dropped */
};

static void fma_part(void *context, int64_t begin, int64_t end, int thread)
{
    struct probe *p = context;
    heed_real sink[3] = {(heed_real)0.9999, (heed_real)0.0001, 0};
    (void)begin;
    (void)end;
    p->got[thread] = heed__kernels()->probe_fma(sink, ROUNDS);
}

static void int8_part(void *context, int64_t begin, int64_t end, int thread)
{
    struct probe *p = context;
    int32_t sink[3] = {1, 1, 0};
    (void)begin;
    (void)end;
    p->got[thread] = heed__kernels()->probe_int8(sink, ROUNDS);
}

/* Operations a second of one turn of a probe. */
static double rate(int threads, heed__range *part)
{
    struct probe p = {0};
    double sum = 0, start = heed_clock_seconds();
    heed__parallel(threads, threads, 1, 1 << 30, part, &p);
    double seconds = heed_clock_seconds() - start;
    for (int i = 0; i < threads; i++)
        sum += p.got[i];
    return sum / seconds;
}

double bench_peak(int threads)
{
    return rate(threads, fma_part);
}

double bench_int8_peak(int threads)
{
    return rate(threads, int8_part);
}

static double fma_all(void *context)
{
    struct probe *p = context;
    p->peak = fmax(p->peak, bench_peak(p->run->threads));
    return 1 / p->peak;
}

static double int8_all(void *context)
{
    struct probe *p = context;
    p->int8 = fmax(p->int8, bench_int8_peak(p->run->threads));
    return 1 / p->int8;
}

static void triad_part(void *context, int64_t begin, int64_t end, int thread)
{
    heed_real *const *x = ((const bench_run *)context)->triad;
    (void)thread;
    heed__kernels()->probe_triad(x[0] + begin, x[1] + begin, x[2] + begin, (heed_real)0.5,
                                 end - begin);
}

double bench_triad(void *run)
{
    double start = heed_clock_seconds();
    heed__parallel(((const bench_run *)run)->threads, ELEMENTS, 1024, 1, triad_part, run);
    return heed_clock_seconds() - start;
}

static void read_part(void *context, int64_t begin, int64_t end, int thread)
{
    struct probe *p = context;
    p->got[thread] = (double)heed__kernels()->probe_read(p->run->triad[0] + begin, end - begin);
}

static double read_all(void *context)
{
    struct probe *p = context;
    double start = heed_clock_seconds();
    heed__parallel(p->run->threads, ELEMENTS, 1024, 1, read_part, p);
    return heed_clock_seconds() - start;
}

double bench_read(const heed_real *x, int64_t n)
{
    volatile heed_real sum; /* keeps the work from being dropped */
    double start = heed_clock_seconds();
    sum = heed__kernels()->probe_read(x, n);
    (void)sum;
    return heed_clock_seconds() - start;
}

static double product_by(const bench_run *r, void (*call)(const heed__product *, int))
{
    heed__product p = {.c = r->product[0],
                       .a = r->product[1],
                       .b = r->product[2],
                       .ldc = BENCH_EDGE,
                       .lda = BENCH_EDGE,
                       .ldb = BENCH_EDGE,
                       .m = BENCH_EDGE,
                       .n = BENCH_EDGE,
                       .k = BENCH_EDGE};
    double start = heed_clock_seconds();
    call(&p, r->threads);
    return heed_clock_seconds() - start;
}

static double product_own(void *run)
{
    return product_by(run, bench_cblas_own);
}

static double product_parts(void *run)
{
    return product_by(run, bench_cblas_parts);
}

double bench_product(void *run)
{
    return ((const bench_run *)run)->own_threads ? product_own(run) : product_parts(run);
}

static bool prepare(bench_run *r)
{
    const struct {
        heed_real **array;
        int64_t count;
    } rows[] = {{r->triad, ELEMENTS}, {r->product, BENCH_EDGE * BENCH_EDGE}};
    for (int i = 0; i < 6; i++) {
        int64_t n = rows[i / 3].count;
        heed_real *x = heed_arena_allocate(heed_tape_arena(r->yard), (size_t)n * sizeof *x);
        if (!x) {
            heed_tape_fail(r->yard, HEED_MEMORY, "out of memory for arrays of %lld numbers",
                           (long long)n);
            return !bench_check(r, "triad", r->yard);
        }
        for (int64_t j = 0; j < n; j++)
            x[j] = (heed_real)(1.0 / (double)(1 + j % 7));
        rows[i / 3].array[i % 3] = x;
    }
    return true;
}

static void report(bench_run *r, const char *bench, const char *shape, double value,
                   const char *unit, double reference, const char *note)
{
    bench_line line = {.bench = bench,
                       .value = value * 1e-9,
                       .unit = unit,
                       .reference = reference * 1e-9,
                       .ratio = value / reference,
                       .target = NAN,
                       .note = note};
    snprintf(line.shape, sizeof line.shape, "%s", shape);
    if (bench_wanted(r, bench))
        bench_report(r, &line);
}

void bench_machine(bench_run *r)
{
    if (!prepare(r))
        return;
    struct probe p = {.run = r};
    double best[6];
    bench_alternate((bench_subject *[]){product_own, product_parts, fma_all, int8_all},
                    (void *[]){r, r, &p, &p}, 4, 2 * r->budget, best);
    bench_alternate((bench_subject *[]){bench_triad, read_all}, (void *[]){r, &p}, 2, 2 * r->budget,
                    best + 4);
    r->own_threads = best[0] < best[1];
    report(r, "multiply-add peak", "in registers", p.peak, "GFLOP/s", NAN, NULL);
    report(r, "int8 peak", "in registers", p.int8, "GOP/s", NAN, NULL);
    report(r, "cblas product", "512x512x512",
           BENCH_PRODUCT_FLOPS / (r->own_threads ? best[0] : best[1]), "GFLOP/s", p.peak,
           r->threads == 1  ? NULL
           : r->own_threads ? "by the library's own threads"
                            : "by one serial call a thread");
    report(r, "triad", "3 arrays of 2^25", BENCH_TRIAD_BYTES / best[4], "GB/s", NAN, NULL);
    report(r, "read", "2^25", BENCH_TRIAD_BYTES / 3 / best[5], "GB/s", NAN, NULL);
}
