/* convolutions.c: conv2d with its gradients against the peak of multiply-adds.
 *
 * Forward and backward together: 2 N K C F operations, and twice that for both gradients. */
#include "measure.h"

#include <math.h>
#include <stdio.h>

struct convolution {
    bench_run *run;
    heed_conv2d_options o;
    heed_tensor *x, *w, *b;
    double peak; /* the best so far */
};

static double step(void *context)
{
    struct convolution *c = context;
    heed_tape_reset(c->run->work);
    const double start = heed_clock_seconds();
    heed_tensor *y = heed_conv2d(c->run->work, c->x, c->w, c->b, &c->o);
    const double seconds = heed_clock_seconds() - start;
    return seconds + bench_backward(c->run, y);
}

static double peak(void *context)
{
    struct convolution *c = context;
    c->peak = fmax(c->peak, bench_peak(c->run->threads));
    return 1 / c->peak;
}

static const struct {
    int64_t batch, side, in, out, kernel, stride, padding;
    double target;
} shapes[] = {
    {32, 32, 64, 64, 3, 1, 1, 0.6},
    {32, 32, 64, 128, 3, 2, 1, NAN},
    {32, 8, 256, 256, 3, 1, 1, NAN},
    {32, 28, 1, 64, 3, 1, 1, NAN},
};

void bench_convolution(bench_run *r)
{
    static const char *const bench = "conv2d step";
    if (!bench_wanted(r, bench))
        return;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !r->failed; i++) {
        const int64_t side = shapes[i].side, k = shapes[i].kernel, in = shapes[i].in,
                      out = shapes[i].out;
        struct convolution c = {.run = r,
                                .o = {.image = {side, side},
                                      .kernel = {k, k},
                                      .stride = {shapes[i].stride, shapes[i].stride},
                                      .padding = {shapes[i].padding, shapes[i].padding}}};
        c.x = bench_random(r, HEED_SHAPE(shapes[i].batch * side * side, in), 1, BENCH_ACTIVATION);
        c.w = bench_random(r, HEED_SHAPE(k * k * in, out), 0.05, BENCH_PARAMETER);
        c.b = bench_random(r, HEED_SHAPE(out), 1, BENCH_PARAMETER);
        if (bench_check(r, bench, r->hold))
            return;
        double best[2];
        bench_alternate((bench_subject *[]){step, peak}, (void *[]){&c, &c}, 2, r->budget, best);
        if (bench_check(r, bench, r->work))
            return;
        const heed_image_size size = heed_conv2d_size(&c.o);
        const double flops = 6.0 * (double)(shapes[i].batch * size.y * size.x) * (double)(k * k) *
                             (double)(in * out);
        bench_line line = {bench,
                           "",
                           best[0] * 1e3,
                           "ms",
                           flops / c.peak * 1e3,
                           flops / c.peak / best[0],
                           shapes[i].target,
                           "against the peak with 256 bits"};
        snprintf(line.shape, sizeof line.shape, "%lldx%lldx%lldx%lld to %lld, %lldx%lld /%lld",
                 (long long)shapes[i].batch, (long long)side, (long long)side, (long long)in,
                 (long long)out, (long long)k, (long long)k, (long long)shapes[i].stride);
        bench_report(r, &line);
        heed_tape_reset(r->hold);
        heed_tape_reset(r->work);
    }
}
