/* bench_panels.c: products with packed weights, as decoding makes them, against the peak of
 * multiply-adds in fp32 or int8 (vpmaddubsw, vpmaddwd, vpaddd), which products that need
 * fewer of these exceed.
 *
 * The weights of the smaller shapes stay in the caches here; in a model they come from memory,
 * which one to four rows then wait for. */
#include "measure.h"

#include "base/parallel.h"
#include "kernel/kernels.h"

#include <math.h>
#include <stdio.h>

/* Operations that one turn takes at least: about half a millisecond. */
#define TURN 1e8

struct panels {
    bench_run *run;
    heed__panel_weights w;
    heed__panel_rows rows;
    heed_real *a, *c;
    int64_t m;
    int repeat;
    double peak; /* the best so far */
};

static void product_part(void *context, int64_t begin, int64_t end, int thread)
{
    const struct panels *p = context;
    (void)thread;
    heed__kernels()->panel_product(p->c, p->w.n, p->a, p->w.k, &p->rows, p->m, &p->w, begin, end);
}

static double product(void *context)
{
    const struct panels *p = context;
    double start = heed_clock_seconds();
    for (int i = 0; i < p->repeat; i++)
        heed__parallel(p->run->threads, heed__panels(p->w.n), 1, p->m * p->w.k * HEED_PANEL,
                       product_part, context);
    return (heed_clock_seconds() - start) / p->repeat;
}

static double peak(void *context)
{
    struct panels *p = context;
    int threads = p->run->threads;
    p->peak = fmax(p->peak, p->w.bits ? bench_int8_peak(threads) : bench_peak(threads));
    return 1 / p->peak;
}

static void *room(bench_run *r, int64_t count, size_t size)
{
    void *p = heed_arena_allocate(heed_tape_arena(r->hold), (size_t)count * size);
    if (!p)
        heed_tape_fail(r->hold, HEED_MEMORY, "out of memory for packed weights");
    return p;
}

/* The weights, and rows for the largest product. */
static bool prepare(struct panels *p, int64_t k, int64_t n, int bits, int64_t most)
{
    bench_run *r = p->run;
    const int64_t columns = heed__panels(n) * HEED_PANEL;
    heed_tensor *a = bench_random(r, HEED_SHAPE(most, k), 1, BENCH_INPUT);
    heed_tensor *w = bench_random(r, HEED_SHAPE(k, n), 0.05, BENCH_INPUT);
    p->c = room(r, most * n, sizeof *p->c);
    p->w = (heed__panel_weights){.k = k, .n = n, .bits = bits};
    heed_real *real = room(r, bits ? 0 : heed__panel_reals(k, n), sizeof *real);
    int8_t *bytes = room(r, bits ? heed__panel_bytes(k, n) : 0, sizeof *bytes);
    float *scale = room(r, columns, sizeof *scale);
    int32_t *sum = room(r, columns, sizeof *sum);
    p->rows.bytes = room(r, most * 4 * heed__panel_groups(k), sizeof *p->rows.bytes);
    p->rows.step = room(r, most, sizeof *p->rows.step);
    p->rows.low = room(r, most, sizeof *p->rows.low);
    if (bench_check(r, "panel product", r->hold))
        return false;
    p->a = heed_tensor_data(a);
    if (bits)
        heed__panel_pack_int8(bytes, scale, sum, heed_tensor_data(w), n, 1, k, n);
    else
        heed__panel_pack(real, heed_tensor_data(w), n, 1, k, n);
    p->w.real = real;
    p->w.bytes = bytes;
    p->w.scale = scale;
    p->w.sum = sum;
    heed__kernels()->panel_quantise(&p->rows, p->a, k, most, k);
    return true;
}

static void measure(const char *bench, struct panels *p)
{
    double best[2], flops = 2 * (double)p->m * (double)p->w.k * (double)p->w.n;
    p->repeat = (int)(TURN / flops) + 1;
    bench_alternate((bench_subject *[]){product, peak}, (void *[]){p, p}, 2, p->run->budget / 8,
                    best);
    bench_line line = {
        bench, "",  best[0] * 1e6, "us", flops / p->peak * 1e6, flops / p->peak / best[0],
        NAN,   NULL};
    snprintf(line.shape, sizeof line.shape, "%lldx%lldx%lld", (long long)p->m, (long long)p->w.k,
             (long long)p->w.n);
    bench_report(p->run, &line);
}

void bench_panels(bench_run *r)
{
    static const struct {
        const char *bench;
        int bits;
    } kinds[] = {{"panel product", 0}, {"panel product int8", 8}};
    static const int64_t shapes[][2] = {{512, 512},   {512, 2048}, {2048, 512},
                                        {512, 32000}, {256, 1024}, {256, 8000}};
    static const int64_t rows[] = {1, 4, 32, 128};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 6 && bench_wanted(r, kinds[i].bench); j++) {
            struct panels p = {.run = r};
            if (prepare(&p, shapes[j][0], shapes[j][1], kinds[i].bits, rows[3]))
                for (int k = 0; k < 4; k++) {
                    p.m = rows[k];
                    measure(kinds[i].bench, &p);
                }
            heed_tape_reset(r->hold);
        }
}
