/* conv_winograd.c: see conv_winograd.h.  A tile of 2 x 2 pixels is written from 4 x 4 that are
 * read, d, and the kernel g:
 *
 *   Y  = A^T [(G g G^T) (B^T d B)] A            16 products for each pair of channels, not 36
 *   dg = G^T [sum over tiles of (B^T d B)^T (A dY A^T)] G
 *
 *         | 1  0 -1  0 |      | 1   0   0 |       | 1  0 |
 *   B^T = | 0  1  1  0 |  G = | ½   ½   ½ |   A = | 1  1 |
 *         | 0 -1  1  0 |      | ½  -½   ½ |       | 1 -1 |
 *         | 0  1  0 -1 |      | 0   0   1 |       | 0 -1 |
 *
 * so that each of the 16 places is a product of matrices, tiles times channels.  Tiles stand at
 * even pixels of each picture, whichever thread takes them: bits do not depend on the threads. */
#include "ops/conv_winograd.h"

#include "base/min_max.h"
#include "base/parallel.h"

#include <string.h>

#define LEAST 24          /* channels on both sides */
#define PLACES 16         /* of a tile, transformed */
#define BYTES (384 << 10) /* of the tiles in hand: they stay in the second cache */
#define MOST_TILES 96
#define LEAST_TILES 24

bool heed__winograd_fits(const heed__conv_grid *g, int64_t in, int64_t out)
{
    return !g->fine_rows && g->kernel.y == 3 && g->kernel.x == 3 && g->stride.y == 1 &&
           g->stride.x == 1 && g->dilation.y == 1 && g->dilation.x == 1 && g->padding.y <= 2 &&
           g->padding.x <= 2 && in >= LEAST && out >= LEAST;
}

/* ---- scratch ---- */

static int64_t tiles_at_once(int64_t in, int64_t out)
{
    const int64_t fit = BYTES / (PLACES * (in + out) * (int64_t)sizeof(real));
    return heed__max(heed__min(fit, MOST_TILES) / 12 * 12, LEAST_TILES);
}

/* Elements of a transformed tile of n channels: its places side by side, and some more, so that the
 * rows of one place do not all fall on the same lines of the first cache. */
static int64_t tile_size(int64_t n)
{
    return PLACES * n + 16;
}

/* One block for all threads: transformed weights (or their gradient), the same packed, a row of
 * zeros; then for each thread, or, for the gradient, for all, the transformed tiles of both
 * sides. */
typedef struct layout {
    size_t panels, zeros, own, right, pointers, own_bytes; /* bytes; the weights stand at 0 */
} layout;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static layout layout_of(int64_t in, int64_t out)
{
    const int64_t tiles = tiles_at_once(in, out);
    const int64_t panels =
        heed__max(HEED_CONV_PANELS(PLACES, in, out), HEED_CONV_PANELS(PLACES, out, in));
    layout l;
    l.panels = aligned((size_t)(PLACES * in * out) * sizeof(real));
    l.zeros = l.panels + aligned((size_t)panels * sizeof(real));
    l.own = l.zeros + aligned((size_t)heed__max(in, out) * sizeof(real));
    l.right = aligned((size_t)(tiles * tile_size(heed__max(in, out))) * sizeof(real));
    l.pointers = 2 * l.right;
    l.own_bytes = l.pointers + aligned(2 * (size_t)tiles * sizeof(real *));
    return l;
}

size_t heed__winograd_scratch(int threads, int64_t in, int64_t out)
{
    const layout l = layout_of(in, out);
    return (l.own + (size_t)threads - 1) / (size_t)threads + l.own_bytes;
}

/* ---- tiles ---- */

typedef struct work {
    const heed_opcall *c;
    const heed__conv_gather *job;
    layout l;
    heed_image_size read, wrote, tiles, before; /* before: where the first tile begins to read */
    int64_t each;                               /* tiles of a picture */
    int64_t in, out, at_once;
    /* of the gradient */
    real *dw;
    int64_t ld, first, count;
    heed__conv_side x, dy;
} work;

static work work_of(const heed_opcall *c, heed_image_size read, heed_image_size wrote,
                    heed_image_size before, int64_t in, int64_t out)
{
    const heed_image_size tiles = {(wrote.y + 1) / 2, (wrote.x + 1) / 2};
    return (work){.c = c,
                  .l = layout_of(in, out),
                  .read = read,
                  .wrote = wrote,
                  .tiles = tiles,
                  .before = before,
                  .each = tiles.y * tiles.x,
                  .in = in,
                  .out = out,
                  .at_once = tiles_at_once(in, out)};
}

static char *shared(const work *w)
{
    return heed__scratch(w->c, 0);
}

/* The rows of a square of pixels whose first is (y,x) of picture b; zeros beyond the edges. */
static void square(const work *w, const heed__conv_side *side, heed_image_size size, int64_t b,
                   int64_t y, int64_t x, int64_t n, const real **row)
{
    const real *zeros = (const real *)(shared(w) + w->l.zeros);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const bool inside = y + i >= 0 && y + i < size.y && x + j >= 0 && x + j < size.x;
            row[i * n + j] =
                inside ? side->data + ((b * size.y + y + i) * size.x + x + j) * side->ld : zeros;
        }
}

/* Channels side by side in a register that every machine has.  There are at least LEAST: the last
 * ones are taken together with some of those before, once more. */
typedef real lanes __attribute__((vector_size(16), aligned(sizeof(real)), may_alias));
#define LANES ((int64_t)(sizeof(lanes) / sizeof(real)))
#define AT(p) (*(lanes *)(p))
#define READ(p) (*(const lanes *)(p))

/* B^T d B of one tile: place k at to + k * n. */
static void read_tile(const real *const *d, real *to, int64_t n)
{
    for (int64_t c = 0; c < n; c += LANES) {
        const int64_t at = heed__min(c, n - LANES);
        lanes t[4][4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const lanes d0 = READ(d[j] + at), d1 = READ(d[4 + j] + at), d2 = READ(d[8 + j] + at),
                        d3 = READ(d[12 + j] + at);
            t[0][j] = d0 - d2;
            t[1][j] = d1 + d2;
            t[2][j] = d2 - d1;
            t[3][j] = d1 - d3;
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            real *row = to + 4 * i * n + at;
            AT(row) = t[i][0] - t[i][2];
            AT(row + n) = t[i][1] + t[i][2];
            AT(row + 2 * n) = t[i][2] - t[i][1];
            AT(row + 3 * n) = t[i][1] - t[i][3];
        }
    }
}

/* A dY A^T of one tile. */
static void gradient_tile(const real *const *d, real *to, int64_t n)
{
    for (int64_t c = 0; c < n; c += LANES) {
        const int64_t at = heed__min(c, n - LANES);
        lanes t[4][2];
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const lanes d0 = READ(d[j] + at), d1 = READ(d[2 + j] + at);
            t[0][j] = d0;
            t[1][j] = d0 + d1;
            t[2][j] = d0 - d1;
            t[3][j] = -d1;
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            real *row = to + 4 * i * n + at;
            AT(row) = t[i][0];
            AT(row + n) = t[i][0] + t[i][1];
            AT(row + 2 * n) = t[i][0] - t[i][1];
            AT(row + 3 * n) = -t[i][1];
        }
    }
}

/* A^T m A of one tile: y (4,n). */
static void write_tile(const real *m, real *y, int64_t n)
{
    for (int64_t c = 0; c < n; c += LANES) {
        const int64_t at = heed__min(c, n - LANES);
        lanes t[2][4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const real *from = m + j * n + at;
            const lanes m1 = READ(from + 4 * n), m2 = READ(from + 8 * n);
            t[0][j] = READ(from) + m1 + m2;
            t[1][j] = m1 - m2 - READ(from + 12 * n);
        }
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            AT(y + 2 * i * n + at) = t[i][0] + t[i][1] + t[i][2];
            AT(y + (2 * i + 1) * n + at) = t[i][1] - t[i][2] - t[i][3];
        }
    }
}

/* ---- convolving ---- */

/* U = G g G^T of rows [begin,end); with `up` the kernel is turned round. */
static void transform_weights(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    const heed__conv_gather *j = w->job;
    real *to = heed__scratch(w->c, 0);
    const int64_t place = w->in * w->out;
    const real half = (real)0.5;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        for (int64_t o = 0; o < w->out; o++) {
            real t[4][3];
            for (int k = 0; k < 3; k++) {
                real g[3];
                for (int r = 0; r < 3; r++) {
                    const int64_t tap = 3 * r + k;
                    g[r] = j->weight[(j->up ? 8 - tap : tap) * j->tap + i * j->row + o * j->col];
                }
                t[0][k] = g[0];
                t[1][k] = half * (g[0] + g[1] + g[2]);
                t[2][k] = half * (g[0] - g[1] + g[2]);
                t[3][k] = g[2];
            }
            for (int r = 0; r < 4; r++) {
                real *u = to + 4 * r * place + i * w->out + o;
                u[0] = t[r][0];
                u[place] = half * (t[r][0] + t[r][1] + t[r][2]);
                u[2 * place] = half * (t[r][0] - t[r][1] + t[r][2]);
                u[3 * place] = t[r][2];
            }
        }
}

static void pack_weights(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    (void)thread;
    heed__kernels()->conv_pack((real *)(shared(w) + w->l.panels), heed__scratch(w->c, 0),
                               w->in * w->out, w->out, 1, PLACES, w->in, w->out, begin, end);
}

/* y of a tile to where it belongs. */
static void store(const work *w, int64_t tile, const real *y)
{
    const heed__conv_gather *j = w->job;
    const int64_t b = tile / w->each, r = tile % w->each / w->tiles.x, q = tile % w->tiles.x;
    for (int64_t i = 0; i < 4; i++) {
        const int64_t v = 2 * r + i / 2, u = 2 * q + i % 2;
        if (v >= w->wrote.y || u >= w->wrote.x)
            continue;
        real *to = j->to + ((b * w->wrote.y + v) * w->wrote.x + u) * j->ld_to;
        const real *from = y + i * w->out;
        if (j->add)
            for (int64_t c = 0; c < w->out; c++)
                to[c] += from[c];
        else
            memcpy(to, from, (size_t)w->out * sizeof *to);
        for (int64_t c = 0; j->bias && c < w->out; c++)
            to[c] += j->bias[c];
    }
}

static void multiply(const work *w, const real *v, real *m, const real **from, real **to, int64_t n)
{
    for (int32_t k = 0; k < PLACES; k++) {
        for (int64_t i = 0; i < n; i++) {
            from[i] = v + i * tile_size(w->in) + k * w->in;
            to[i] = m + i * tile_size(w->out) + k * w->out;
        }
        heed__kernels()->conv_rows(
            &(heed__conv_rows){.to = to,
                               .from = from,
                               .tap = &k,
                               .panels = (const real *)(shared(w) + w->l.panels),
                               .n = n,
                               .ld = n,
                               .taps = 1,
                               .in = w->in,
                               .out = w->out,
                               .packed = PLACES});
    }
}

static void convolve_tiles(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    char *mine = shared(w) + w->l.own + (size_t)thread * w->l.own_bytes;
    real *v = (real *)mine, *m = (real *)(mine + w->l.right);
    const real **from = (const real **)(mine + w->l.pointers);
    real **to = (real **)(from + w->at_once);
    for (int64_t first = begin, n; first < end; first += n) {
        n = heed__min(end - first, w->at_once);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = first + i, b = at / w->each, r = at % w->each / w->tiles.x,
                          q = at % w->tiles.x;
            const real *d[PLACES];
            square(w, &w->job->from, w->read, b, 2 * r - w->before.y, 2 * q - w->before.x, 4, d);
            read_tile(d, v + i * tile_size(w->in), w->in);
        }
        multiply(w, v, m, from, to, n);
        for (int64_t i = 0; i < n; i++) {
            write_tile(m + i * tile_size(w->out), v, w->out);
            store(w, first + i, v);
        }
    }
}

void heed__winograd_run(const heed_opcall *c, const heed__conv_grid *g,
                        const heed__conv_gather *job)
{
    const bool up = job->up;
    const heed_image_size before = {up ? 2 - g->padding.y : g->padding.y,
                                    up ? 2 - g->padding.x : g->padding.x};
    work w = work_of(c, up ? g->coarse : g->fine, up ? g->fine : g->coarse, before, job->from.cols,
                     job->cols_to);
    const int threads = heed__threads(c);
    w.job = job;
    memset(shared(&w) + w.l.zeros, 0, (size_t)w.in * sizeof(real));
    heed__parallel(threads, w.in, 8, w.out * 64, transform_weights, &w);
    heed__parallel(threads, heed__kernels()->conv_strips(w.out), 1, PLACES * w.in * 16,
                   pack_weights, &w);
    heed__parallel(threads, g->images * w.each, 12, PLACES * w.in * w.out, convolve_tiles, &w);
}

/* ---- the gradient of the weights ---- */

static void transform_tiles(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    char *own = shared(w) + w->l.own;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = w->first + i, b = at / w->each, r = at % w->each / w->tiles.x,
                      q = at % w->tiles.x;
        const real *d[PLACES];
        square(w, &w->x, w->read, b, 2 * r - w->before.y, 2 * q - w->before.x, 4, d);
        read_tile(d, (real *)own + i * tile_size(w->in), w->in);
        square(w, &w->dy, w->wrote, b, 2 * r, 2 * q, 2, d);
        gradient_tile(d, (real *)(own + w->l.right) + i * tile_size(w->out), w->out);
    }
}

/* Rows of all places, place by place. */
static void add_products(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    const char *own = shared(w) + w->l.own;
    const real *v = (const real *)own, *d = (const real *)(own + w->l.right);
    const real **a = (const real **)(shared(w) + w->l.own + (size_t)thread * w->l.own_bytes +
                                     w->l.pointers),
               **b = a + w->at_once;
    for (int64_t row = begin, bottom; row < end; row = bottom) {
        const int64_t k = row / w->in, top = row - k * w->in;
        bottom = heed__min(end, (k + 1) * w->in);
        for (int64_t i = 0; i < w->count; i++) {
            a[i] = v + i * tile_size(w->in) + k * w->in + top;
            b[i] = d + i * tile_size(w->out) + k * w->out;
        }
        heed__kernels()->conv_pairs((real *)heed__scratch(w->c, 0) + row * w->out, w->out, a, b,
                                    w->count, bottom - row, w->out);
    }
}

/* dW += G^T dU G, rows [begin,end) of each tap. */
static void gather_weights(void *context, int64_t begin, int64_t end, int thread)
{
    const work *w = context;
    const real *du = heed__scratch(w->c, 0);
    const int64_t place = w->in * w->out;
    const real half = (real)0.5;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        for (int64_t o = 0; o < w->out; o++) {
            real t[3][4];
            for (int k = 0; k < 4; k++) {
                const real *u = du + k * place + i * w->out + o;
                const real u0 = u[0], u1 = u[4 * place], u2 = u[8 * place], u3 = u[12 * place];
                t[0][k] = u0 + half * (u1 + u2);
                t[1][k] = half * (u1 - u2);
                t[2][k] = half * (u1 + u2) + u3;
            }
            for (int r = 0; r < 3; r++) {
                real *to = w->dw + (3 * r * w->in + i) * w->ld + o;
                to[0] += t[r][0] + half * (t[r][1] + t[r][2]);
                to[w->in * w->ld] += half * (t[r][1] - t[r][2]);
                to[2 * w->in * w->ld] += half * (t[r][1] + t[r][2]) + t[r][3];
            }
        }
}

void heed__winograd_weight_grad(const heed_opcall *c, const heed__conv_grid *g, real *dw,
                                int64_t ld, heed__conv_side x, heed__conv_side dy)
{
    work w = work_of(c, g->fine, g->coarse, g->padding, x.cols, dy.cols);
    const int threads = heed__threads(c);
    const int64_t all = g->images * w.each;
    w.dw = dw;
    w.ld = ld;
    w.x = x;
    w.dy = dy;
    memset(shared(&w), 0, (size_t)(PLACES * w.in * w.out) * sizeof(real));
    memset(shared(&w) + w.l.zeros, 0, (size_t)heed__max(w.in, w.out) * sizeof(real));
    for (w.first = 0; w.first < all; w.first += w.at_once) {
        w.count = heed__min(all - w.first, w.at_once);
        heed__parallel(threads, w.count, 4, 64 * (w.in + w.out), transform_tiles, &w);
        heed__parallel(threads, PLACES * w.in, 12, w.count * w.out, add_products, &w);
    }
    heed__parallel(threads, w.in, 8, w.out * 64, gather_weights, &w);
}
