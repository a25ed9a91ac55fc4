/* conv_grid.c: see conv_grid.h.
 *
 * Going down (to the coarse side) every pixel has the same taps.  Going up with a stride, only
 * every stride-th tap falls on a coarse pixel, which ones depends on the pixel's remainder: its
 * phase.  So pixels go phase by phase, those of a phase together with the taps they share; no
 * product is with a zero but at the edges.  Threads share the rows written (or the rows of dW),
 * never a sum. */
#include "ops/conv_grid.h"

#include "base/min_max.h"
#include "base/parallel.h"
#include "ops/conv_winograd.h"

#include <string.h>

#define BLOCK 96      /* rows whose pointers are made together: whole tiles */
#define PAIRS 128     /* pixels summed in one chain of dW */
#define GRAIN_ROWS 12 /* whole tiles */
#define CHUNK_BYTES (512 << 10)

/* ---- pictures ---- */

typedef struct picture {
    int64_t fine_first, coarse_first; /* rows */
    heed_image_size fine, coarse;
} picture;

static picture picture_at(const heed__conv_grid *g, int64_t b)
{
    if (!g->fine_rows)
        return (picture){b * g->fine.y * g->fine.x, b * g->coarse.y * g->coarse.x, g->fine,
                         g->coarse};
    const int64_t *fine = g->fine_rows->offset + b, *coarse = g->coarse_rows->offset + b;
    return (picture){
        fine[0], coarse[0], {1, fine[1] - fine[0]}, {coarse[1] > coarse[0], coarse[1] - coarse[0]}};
}

/* The picture that coarse row `row` belongs to. */
static int64_t picture_of(const heed__conv_grid *g, int64_t row)
{
    if (!g->coarse_rows)
        return row / (g->coarse.y * g->coarse.x);
    int64_t low = 0, high = g->images - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (g->coarse_rows->offset[middle + 1] > row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- scratch ---- */

/* One block for all threads: packed weights and a row of zeros; then a part for each thread. */
typedef struct layout {
    size_t zeros, own, own_bytes; /* bytes from the start; the weights stand at 0 */
} layout;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static layout layout_of(const heed__conv_grid *g, int64_t in, int64_t out)
{
    const int64_t taps = heed__conv_taps(g);
    const int64_t panels =
        heed__max(HEED_CONV_PANELS(taps, in, out), HEED_CONV_PANELS(taps, out, in));
    layout l;
    l.zeros = aligned((size_t)panels * sizeof(real));
    l.own = l.zeros + aligned((size_t)heed__max(in, out) * sizeof(real));
    l.own_bytes = aligned((size_t)(heed__max(taps, 2) + 1) * PAIRS * sizeof(real *)) +
                  aligned((size_t)taps * sizeof(int32_t));
    return l;
}

heed_status heed__conv_want_scratch(heed_opcall *c, const heed__conv_grid *g, int64_t in,
                                    int64_t out)
{
    const layout l = layout_of(g, in, out);
    const size_t threads = (size_t)heed__threads(c);
    const size_t bytes = (l.own + threads - 1) / threads + l.own_bytes;
    const size_t fewer =
        heed__winograd_fits(g, in, out) ? heed__winograd_scratch((int)threads, in, out) : 0;
    return heed__want_scratch(c, heed__max(bytes, fewer));
}

static char *own(const heed_opcall *c, const layout *l, int thread)
{
    return (char *)heed__scratch(c, 0) + l->own + (size_t)thread * l->own_bytes;
}

/* ---- gathering ---- */

/* What one thread is collecting: pixels to write that share their taps. */
typedef struct block {
    const heed__conv_grid *g;
    const heed__conv_gather *job;
    const real *zeros;
    heed__conv_rows rows;
    real **to;         /* (BLOCK) */
    const real **from; /* (taps, BLOCK) */
    int32_t *tap;
} block;

static void flush(block *k)
{
    if (k->rows.n)
        heed__kernels()->conv_rows(&k->rows);
    k->rows.n = 0;
}

static int64_t remainder_of(int64_t a, int64_t m)
{
    const int64_t r = a % m;
    return r < 0 ? r + m : r;
}

/* Along one axis: the place on the side read that pixel `at` of the side written meets at tap k. */
static int64_t meets(const block *k, int64_t at, int64_t tap, int64_t stride, int64_t padding,
                     int64_t dilation)
{
    return k->job->up ? (at + padding - tap * dilation) / stride
                      : at * stride - padding + tap * dilation;
}

/* The taps of a phase: all of them going down. */
static void phase_taps(block *k, int64_t py, int64_t px)
{
    const heed__conv_grid *g = k->g;
    k->rows.taps = 0;
    for (int64_t ky = 0; ky < g->kernel.y; ky++)
        for (int64_t kx = 0; kx < g->kernel.x; kx++)
            if (!k->job->up ||
                (remainder_of(py + g->padding.y - ky * g->dilation.y, g->stride.y) == 0 &&
                 remainder_of(px + g->padding.x - kx * g->dilation.x, g->stride.x) == 0))
                k->tap[k->rows.taps++] = (int32_t)(ky * g->kernel.x + kx);
}

/* Adds pixels x, x + step, ... (n of them, which fit) of line y of a picture. */
static void add_pixels(block *k, const picture *p, int64_t y, int64_t x, int64_t step, int64_t n)
{
    const heed__conv_grid *g = k->g;
    const heed__conv_gather *j = k->job;
    const bool up = j->up;
    const heed_image_size wrote = up ? p->fine : p->coarse, read = up ? p->coarse : p->fine;
    const int64_t first = (up ? p->fine_first : p->coarse_first) + y * wrote.x + x;
    const int64_t along = up ? step / g->stride.x : step * g->stride.x;
    for (int64_t i = 0; i < n; i++)
        k->to[k->rows.n + i] = j->to + (first + i * step) * j->ld_to;
    for (int64_t t = 0; t < k->rows.taps; t++) {
        const int64_t ky = k->tap[t] / g->kernel.x, kx = k->tap[t] % g->kernel.x;
        const int64_t v = meets(k, y, ky, g->stride.y, g->padding.y, g->dilation.y);
        /* The phase divides evenly, so rounding towards zero is never seen. */
        const int64_t u = meets(k, x, kx, g->stride.x, g->padding.x, g->dilation.x);
        const bool inside = v >= 0 && v < read.y;
        const real *line =
            j->from.data +
            ((up ? p->coarse_first : p->fine_first) + (inside ? v : 0) * read.x) * j->from.ld;
        const real **from = k->from + t * BLOCK + k->rows.n;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = u + i * along;
            from[i] = inside && at >= 0 && at < read.x ? line + at * j->from.ld : k->zeros;
        }
    }
    k->rows.n += n;
}

/* Pixels of one phase among rows [begin,end) of the side written. */
static void run_phase(block *k, int64_t begin, int64_t end, int64_t py, int64_t px,
                      heed_image_size step)
{
    const heed__conv_grid *g = k->g;
    phase_taps(k, py, px);
    for (int64_t b = 0; b < g->images; b++) {
        const picture p = picture_at(g, b);
        const heed_image_size size = k->job->up ? p.fine : p.coarse;
        const int64_t first = k->job->up ? p.fine_first : p.coarse_first;
        if (first >= end || first + size.y * size.x <= begin)
            continue;
        for (int64_t y = py; y < size.y; y += step.y) {
            const int64_t line = first + y * size.x;
            int64_t x = heed__max(begin - line, 0);
            const int64_t stop = heed__min(end - line, size.x);
            x += remainder_of(px - x, step.x);
            while (x < stop) {
                const int64_t left = (stop - x + step.x - 1) / step.x;
                const int64_t n = heed__min(left, BLOCK - k->rows.n);
                add_pixels(k, &p, y, x, step.x, n);
                x += n * step.x;
                if (k->rows.n == BLOCK)
                    flush(k);
            }
        }
    }
    flush(k);
}

typedef struct work {
    const heed_opcall *c;
    const heed__conv_grid *g;
    const heed__conv_gather *job;
    layout l;
    /* of dW */
    real *dw;
    int64_t ld;
    heed__conv_side a, b;
    bool up;
} work;

static void gather_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    const heed__conv_gather *j = w->job;
    const char *shared = heed__scratch(w->c, 0);
    char *mine = own(w->c, &w->l, thread);
    const int64_t taps = heed__conv_taps(w->g);
    block k = {.g = w->g, .job = j, .zeros = (const real *)(shared + w->l.zeros)};
    k.to = (real **)mine;
    k.from = (const real **)(k.to + BLOCK);
    k.tap = (int32_t *)(mine + w->l.own_bytes - aligned((size_t)taps * sizeof(int32_t)));
    k.rows = (heed__conv_rows){.to = k.to,
                               .from = k.from,
                               .tap = k.tap,
                               .panels = (const real *)shared,
                               .bias = j->bias,
                               .ld = BLOCK,
                               .in = j->from.cols,
                               .out = j->cols_to,
                               .packed = taps,
                               .add = j->add};
    const heed_image_size step = j->up ? w->g->stride : (heed_image_size){1, 1};
    for (int64_t py = 0; py < step.y; py++)
        for (int64_t px = 0; px < step.x; px++)
            run_phase(&k, begin, end, py, px, step);
}

static void pack(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    const heed__conv_gather *j = w->job;
    (void)thread;
    heed__kernels()->conv_pack(heed__scratch(w->c, 0), j->weight, j->tap, j->row, j->col,
                               heed__conv_taps(w->g), j->from.cols, j->cols_to, begin, end);
}

static int64_t rows_of(const heed__conv_grid *g, bool fine)
{
    if (g->fine_rows)
        return (fine ? g->fine_rows : g->coarse_rows)->rows;
    return g->images * (fine ? g->fine.y * g->fine.x : g->coarse.y * g->coarse.x);
}

void heed__conv_run(const heed_opcall *c, const heed__conv_grid *g, const heed__conv_gather *job)
{
    const int64_t in = job->from.cols, out = job->cols_to, taps = heed__conv_taps(g);
    if (heed__winograd_fits(g, in, out)) {
        heed__winograd_run(c, g, job);
        return;
    }
    work w = {.c = c, .g = g, .job = job, .l = layout_of(g, in, out)};
    const int threads = heed__threads(c);
    memset((char *)heed__scratch(c, 0) + w.l.zeros, 0, (size_t)in * sizeof(real));
    heed__parallel(threads, heed__kernels()->conv_strips(out), 1, taps * in * 16, pack, &w);
    heed__parallel(threads, rows_of(g, job->up), GRAIN_ROWS, taps * in * out, gather_rows, &w);
}

/* ---- the gradient of the weights ---- */

/* The first and the end of the coarse pixels along one axis whose tap lies on the fine side. */
static void reach(int64_t *begin, int64_t *end, int64_t fine, int64_t coarse, int64_t tap,
                  int64_t stride, int64_t padding, int64_t dilation)
{
    const int64_t before = padding - tap * dilation; /* o * stride >= before */
    const int64_t room = fine - 1 + before;          /* o * stride <= room */
    *begin = before > 0 ? (before + stride - 1) / stride : 0;
    *end = room < 0 ? 0 : heed__min(coarse, room / stride + 1);
}

/* Rows [top,bottom) of dW of one tap, from coarse rows [first,end): pixels in their order, PAIRS at
 * a time. */
static void tap_grad(const work *w, int64_t tap, int64_t top, int64_t bottom, int64_t first,
                     int64_t end, const real **a, const real **b)
{
    const heed__conv_grid *g = w->g;
    const int64_t ky = tap / g->kernel.x, kx = tap % g->kernel.x;
    real *dw = w->dw + (tap * w->a.cols + top) * w->ld;
    int64_t n = 0;
    for (int64_t i = picture_of(g, first); i < g->images; i++) {
        const picture p = picture_at(g, i);
        if (p.coarse_first >= end)
            break;
        int64_t y, y_end, x_begin, x_end;
        reach(&y, &y_end, p.fine.y, p.coarse.y, ky, g->stride.y, g->padding.y, g->dilation.y);
        reach(&x_begin, &x_end, p.fine.x, p.coarse.x, kx, g->stride.x, g->padding.x, g->dilation.x);
        for (; y < y_end; y++) {
            const int64_t line = p.coarse_first + y * p.coarse.x;
            int64_t x = heed__max(x_begin, first - line);
            const int64_t stop = heed__min(x_end, end - line);
            const int64_t v = y * g->stride.y - g->padding.y + ky * g->dilation.y;
            const int64_t u = p.fine_first + v * p.fine.x + kx * g->dilation.x - g->padding.x;
            for (; x < stop; x++) {
                const int64_t fine = u + x * g->stride.x, coarse = line + x;
                a[n] = w->a.data + (w->up ? coarse : fine) * w->a.ld + top;
                b[n] = w->b.data + (w->up ? fine : coarse) * w->b.ld;
                if (++n == PAIRS) {
                    heed__kernels()->conv_pairs(dw, w->ld, a, b, n, bottom - top, w->b.cols);
                    n = 0;
                }
            }
        }
    }
    if (n)
        heed__kernels()->conv_pairs(dw, w->ld, a, b, n, bottom - top, w->b.cols);
}

/* Pixels whose rows of both sides stay in the second cache while all taps pass over them. */
static int64_t chunk_of(const work *w)
{
    const int64_t row = (w->a.cols + w->b.cols) * (int64_t)sizeof(real);
    return heed__max(CHUNK_BYTES / row / PAIRS, 1) * PAIRS;
}

static void grad_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    const real **a = (const real **)own(w->c, &w->l, thread), **b = a + PAIRS;
    const int64_t in = w->a.cols, rows = rows_of(w->g, false), chunk = chunk_of(w);
    for (int64_t first = 0; first < rows; first += chunk)
        for (int64_t row = begin, bottom; row < end; row = bottom) {
            const int64_t tap = row / in;
            bottom = heed__min(end, (tap + 1) * in);
            tap_grad(w, tap, row - tap * in, bottom - tap * in, first,
                     heed__min(first + chunk, rows), a, b);
        }
}

void heed__conv_weight_grad(const heed_opcall *c, const heed__conv_grid *g, real *dw, int64_t ld,
                            heed__conv_side a, heed__conv_side b, bool up)
{
    if (!up && heed__winograd_fits(g, a.cols, b.cols)) {
        heed__winograd_weight_grad(c, g, dw, ld, a, b);
        return;
    }
    work w = {.c = c,
              .g = g,
              .l = layout_of(g, a.cols, b.cols),
              .dw = dw,
              .ld = ld,
              .a = a,
              .b = b,
              .up = up};
    heed__parallel(heed__threads(c), heed__conv_taps(g) * a.cols, GRAIN_ROWS,
                   rows_of(g, false) * b.cols, grad_rows, &w);
}
