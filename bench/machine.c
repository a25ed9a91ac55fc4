/* machine.c: what this machine gives at best: multiply-adds, triad, reading, and a 512^3 product by
 * CBLAS.  Everything else is measured against these.
 *
 * Bytes are counted as a program sees them: the triad reads two numbers and writes one.  That a
 * write first fetches its cache line is the same for it and for what is compared with it. */
#include "measure.h"
#include "reference.h"

#include "base/parallel.h"
#include "kernel/kernels.h"

#include <math.h>
#include <stdio.h>

/* 128 MB an array in float: four times the third-level cache of the machines at hand. */
#define ELEMENTS ((int64_t)1 << 25)
#define EDGE 512

struct probe {
    const bench_run *run;
    heed_real *a, *b, *c;
    int64_t rounds;
    double flops[HEED_MAX_THREADS];
};

static void fma_part(void *context, int64_t begin, int64_t end, int thread)
{
    struct probe *p = context;
    heed_real sink[3] = {(heed_real)0.9999, (heed_real)0.0001, 0};
    (void)begin;
    (void)end;
    p->flops[thread] = heed__kernels()->probe_fma(sink, p->rounds) + 0 * (double)sink[2];
}

static double fma_all(void *context)
{
    struct probe *p = context;
    double start = bench_seconds();
    heed__parallel(p->run->threads, p->run->threads, 1, 1 << 30, fma_part, p);
    return bench_seconds() - start;
}

static void triad_part(void *context, int64_t begin, int64_t end, int thread)
{
    struct probe *p = context;
    (void)thread;
    heed__kernels()->probe_triad(p->a + begin, p->b + begin, p->c + begin, (heed_real)0.5,
                                 end - begin);
}

static double triad_all(void *context)
{
    struct probe *p = context;
    double start = bench_seconds();
    heed__parallel(p->run->threads, ELEMENTS, 1024, 1, triad_part, p);
    return bench_seconds() - start;
}

static void read_part(void *context, int64_t begin, int64_t end, int thread)
{
    struct probe *p = context;
    p->flops[thread] = (double)heed__kernels()->probe_read(p->a + begin, end - begin);
}

static double read_all(void *context)
{
    struct probe *p = context;
    double start = bench_seconds();
    heed__parallel(p->run->threads, ELEMENTS, 1024, 1, read_part, p);
    return bench_seconds() - start;
}

struct edge {
    const bench_run *run;
    heed__product product;
};

static double own(void *context)
{
    const struct edge *e = context;
    double start = bench_seconds();
    bench_cblas_own(&e->product, e->run->threads);
    return bench_seconds() - start;
}

static double parts(void *context)
{
    const struct edge *e = context;
    double start = bench_seconds();
    bench_cblas_parts(&e->product, e->run->threads);
    return bench_seconds() - start;
}

static void report(const bench_run *r, const char *bench, int64_t elements, double value,
                   const char *unit, double reference, const char *note)
{
    bench_line line = {.bench = bench,
                       .value = value,
                       .unit = unit,
                       .reference = reference,
                       .ratio = value / reference,
                       .target = NAN,
                       .note = note};
    if (elements)
        snprintf(line.shape, sizeof line.shape, "%lld", (long long)elements);
    else
        snprintf(line.shape, sizeof line.shape, "%dx%dx%d", EDGE, EDGE, EDGE);
    if (bench_wanted(r, bench))
        bench_report(r, &line);
}

static void measure_product(bench_run *r)
{
    heed_tensor *a = bench_random(r, HEED_SHAPE(EDGE, EDGE), 1, BENCH_INPUT),
                *b = bench_random(r, HEED_SHAPE(EDGE, EDGE), 1, BENCH_INPUT),
                *c = bench_random(r, HEED_SHAPE(EDGE, EDGE), 1, BENCH_INPUT);
    if (bench_check(r, "cblas product", r->hold))
        return;
    struct edge e = {r,
                     {heed_tensor_data(c), heed_tensor_data(a), heed_tensor_data(b), EDGE, EDGE,
                      EDGE, EDGE, EDGE, EDGE, false, false, 0}};
    double best[2] = {INFINITY, INFINITY};
    bench_alternate((bench_subject *[]){own, parts}, (void *[]){&e, &e}, r->threads > 1 ? 2 : 1,
                    r->budget, best);
    r->product = 2.0 * EDGE * EDGE * EDGE / fmin(best[0], best[1]);
    report(r, "cblas product", 0, r->product * 1e-9, "GFLOP/s", r->fma * 1e-9,
           r->threads == 1     ? NULL
           : best[0] < best[1] ? "the library's own threads"
                               : "one serial call a thread");
    heed_tape_reset(r->hold);
}

void bench_machine(bench_run *r)
{
    struct probe p = {.run = r, .rounds = 1 << 20};
    double best;
    bench_alternate((bench_subject *[]){fma_all}, (void *[]){&p}, 1, r->budget, &best);
    for (int i = 0; i < r->threads; i++)
        r->fma += p.flops[i] / best;
    report(r, "multiply-add peak", p.rounds, r->fma * 1e-9, "GFLOP/s", NAN, NULL);

    size_t bytes = (size_t)ELEMENTS * sizeof *p.a;
    heed_real **arrays[] = {&p.a, &p.b, &p.c};
    for (int i = 0; i < 3; i++) {
        *arrays[i] = heed_arena_allocate(heed_tape_arena(r->hold), bytes);
        if (!*arrays[i]) {
            heed_tape_fail(r->hold, HEED_MEMORY, "out of memory for three arrays of %zu bytes",
                           bytes);
            bench_check(r, "triad", r->hold);
            return;
        }
        for (int64_t j = 0; j < ELEMENTS; j++)
            (*arrays[i])[j] = 1;
    }
    double two[2];
    bench_alternate((bench_subject *[]){triad_all, read_all}, (void *[]){&p, &p}, 2, 2 * r->budget,
                    two);
    r->triad = 3.0 * (double)bytes / two[0];
    report(r, "triad", ELEMENTS, r->triad * 1e-9, "GB/s", NAN, NULL);
    report(r, "read", ELEMENTS, (double)bytes / two[1] * 1e-9, "GB/s", NAN, NULL);
    heed_tape_reset(r->hold);
    measure_product(r);
}
