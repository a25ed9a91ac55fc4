/* panel_product.c: products with fp32 panels, and the common entry for those with int8
 * (panel_int8.c); see panels.h.
 *
 * A panel, or a few if there are few rows, is used for all rows before the next: it is read from
 * memory once and stays in the L1 and L2 caches, and the rows are divided into equal tiles.  Each
 * tile prefetches its share of the next panel while it computes; a single tile what it will read
 * itself. */
#include "kernel/panels.h"

#include "kernel/elementwise.h"
#include "kernel/isa.h"
#include "kernel/micro.h"
#include "kernel/panel_int8.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_PANELS(DECLARE)
HEED_KERNELS_ELEMENTWISE(DECLARE)

/* The activation that the tiles apply; every other one is a separate pass. */
VINLINE vreal activated(vreal x, int activation)
{
    return activation == HEED__UNARY_RELU ? vmax(vset(0), x) : x;
}

/* Prefetch distance in bytes of a single tile; measured (docs/PERFORMANCE.md).  Four streams from
 * memory are mostly prefetched by the processor itself. */
VINLINE int64_t prefetch_distance(int64_t rows, const heed__panel_weights *w)
{
    return w->from_memory ? 512 : rows == 1 ? 2048 : 4096;
}

/* A tile reads STRIP columns of a panel, or of several panels side by side if it has few rows:
 * always at least eight independent sums, and the weights of one row come in four streams, which is
 * faster than one, also from memory. */
#define STRIP_REGISTERS (HEED_PANEL / VW < 2 ? 1 : 2)
#define STRIP (STRIP_REGISTERS * VW)
#define MOST_REGISTERS 8
#define PANELS_OF(rows) (((rows) == 1 ? 8 : (rows) <= 3 ? 4 : 2) / (int)STRIP_REGISTERS)

typedef vreal sums[MICRO_ROWS][MOST_REGISTERS];

/* Below, rows and panels are constants where inlined; b and c are at the first column of a strip,
 * column `left` of N. */

VINLINE void clear_sums(int rows, int panels, sums sum)
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < panels * STRIP_REGISTERS; r++)
            sum[i][r] = (vreal){0};
}

VINLINE void copy_sums(int rows, sums to, sums from)
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < STRIP_REGISTERS; r++)
            to[i][r] = from[i][r];
}

/* One k: the element of every row of A times W's row.  Rows are addressed from two of them, so that
 * not each needs an address register. */
VINLINE void add_products(int rows, int panels, sums sum, const real *a, int64_t lda, const real *b,
                          int64_t size)
{
    const real *lower = rows > 3 ? a + 3 * lda : a;
    vreal row[MOST_REGISTERS];
#pragma GCC unroll 8
    for (int r = 0; r < panels * STRIP_REGISTERS; r++)
        row[r] = vload(b + r / STRIP_REGISTERS * size + r % STRIP_REGISTERS * VW);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        vreal x = vset(i < 3 ? a[i * lda] : lower[(i - 3) * lda]);
#pragma GCC unroll 8
        for (int r = 0; r < panels * STRIP_REGISTERS; r++)
            sum[i][r] = vadd_product(sum[i][r], x, row[r]);
    }
}

VINLINE void finish_sums(int rows, int panels, real *c, int64_t ldc, sums sum,
                         const heed__panel_weights *w, int64_t left, int64_t apart)
{
#pragma GCC unroll 8
    for (int r = 0; r < panels * STRIP_REGISTERS; r++) {
        int64_t j = left + r / STRIP_REGISTERS * apart * HEED_PANEL + r % STRIP_REGISTERS * VW;
        if (j >= w->n)
            break;
        vreal bias = w->bias ? vload_at(w->bias, j, w->n) : vset(0);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            vstore_at(c + i * ldc, activated(sum[i][r] + bias, w->activation), j, w->n);
    }
}

/* All rows in one tile: it prefetches what it will read itself, one line of each panel at every
 * step, and beyond a panel's end the next one.  Panels are `apart` from each other. */
VINLINE void few_body(int rows, int panels, real *c, int64_t ldc, const real *a, int64_t lda,
                      const real *b, const heed__panel_weights *w, int64_t left, int64_t apart)
{
    const int64_t size = apart * w->k * HEED_PANEL;
    const real *next = b + prefetch_distance(rows, w) / (int64_t)sizeof(real);
    sums sum;
    clear_sums(rows, panels, sum);
    for (int64_t k = 0; k < w->k; k++) {
#pragma GCC unroll 8
        for (int p = 0; p < panels; p++)
            __builtin_prefetch(next + p * size + k * HEED_PANEL);
        add_products(rows, panels, sum, a + k, lda, b + k * HEED_PANEL, size);
    }
    finish_sums(rows, panels, c, ldc, sum, w, left, apart);
}

/* The same for weights that come from memory, which is fastest with four streams: four panels take
 * turns, a few steps each; their sums are saved in between. */
#define STREAMS 4
#define STEPS 8

VINLINE void far_body(int rows, real *c, int64_t ldc, const real *a, int64_t lda, const real *b,
                      const heed__panel_weights *w, int64_t left, int64_t apart)
{
    const int64_t size = apart * w->k * HEED_PANEL;
    const real *next = b + prefetch_distance(rows, w) / (int64_t)sizeof(real);
    sums waiting[STREAMS], sum;
    for (int64_t p = 0; p < STREAMS; p++)
        clear_sums(rows, 1, waiting[p]);
    for (int64_t k = 0; k < w->k; k += STEPS) {
        const int64_t end = w->k - k < STEPS ? w->k : k + STEPS;
        for (int64_t p = 0; p < STREAMS; p++) {
            copy_sums(rows, sum, waiting[p]);
            for (int64_t u = k; u < end; u++) {
                __builtin_prefetch(next + p * size + u * HEED_PANEL);
                add_products(rows, 1, sum, a + u, lda, b + p * size + u * HEED_PANEL, 0);
            }
            copy_sums(rows, waiting[p], sum);
        }
    }
    for (int64_t p = 0; p < STREAMS; p++)
        finish_sums(rows, 1, c, ldc, waiting[p], w, left + p * apart * HEED_PANEL, 1);
}

#define FEW_ROWS(rows)                                                                             \
    case rows:                                                                                     \
        if (rows > 1 && panels == STREAMS)                                                         \
            far_body(rows, c, ldc, a, lda, b, w, left, apart);                                     \
        else if (panels > 1)                                                                       \
            few_body(rows, PANELS_OF(rows), c, ldc, a, lda, b, w, left, apart);                    \
        else                                                                                       \
            few_body(rows, 1, c, ldc, a, lda, b, w, left, 1);                                      \
        break;

/* 1 <= rows <= MICRO_ROWS; panels is 1, PANELS_OF(rows) or STREAMS. */
static __attribute__((noinline)) void few_tile(real *c, int64_t ldc, const real *a, int64_t lda,
                                               const real *b, const heed__panel_weights *w,
                                               int64_t left, int64_t rows, int64_t panels,
                                               int64_t apart)
{
    switch (rows) {
        FEW_ROWS(1)
        FEW_ROWS(2)
        FEW_ROWS(3)
        FEW_ROWS(4)
        FEW_ROWS(5)
        FEW_ROWS(6)
    }
}

/* Panels [begin,end) are divided into STREAMS stretches that are read together, each read
 * sequentially: memory is fastest with long streams.  The remainder is done one by one. */
static void product_of_few(real *c, int64_t ldc, const real *a, int64_t lda, int64_t m,
                           const heed__panel_weights *w, int64_t begin, int64_t end)
{
    const int64_t together = w->from_memory ? STREAMS : PANELS_OF(m);
    const int64_t stretch = (end - begin) / together, rest = end - begin - stretch * together;
    for (int64_t i = 0; i < stretch + rest; i++) {
        const bool alone = i >= stretch;
        const int64_t p = alone ? end - (stretch + rest - i) : begin + i;
        prefetch_rows(c + p * HEED_PANEL, ldc, m);
        for (int64_t s = 0; s < HEED_PANEL; s += STRIP)
            few_tile(c, ldc, a, lda, w->real + p * w->k * HEED_PANEL + s, w, p * HEED_PANEL + s, m,
                     alone ? 1 : together, stretch);
    }
}

/* One tile of several: together they prefetch the next panel, this one `stride` bytes in each step;
 * that is little, so only every fourth step does it. */
VINLINE void many_body(int rows, real *c, int64_t ldc, const real *a, int64_t lda, const real *b,
                       const char *next, int64_t stride, const heed__panel_weights *w, int64_t left)
{
    int64_t k = 0;
    sums sum;
    clear_sums(rows, 1, sum);
    for (; k + 4 <= w->k; k += 4) {
        __builtin_prefetch(next, 0, 2);
        next += 4 * stride;
#pragma GCC unroll 4
        for (int u = 0; u < 4; u++, a++, b += HEED_PANEL)
            add_products(rows, 1, sum, a, lda, b, 0);
    }
    for (; k < w->k; k++, a++, b += HEED_PANEL)
        add_products(rows, 1, sum, a, lda, b, 0);
    finish_sums(rows, 1, c, ldc, sum, w, left, 1);
}

/* Seven rows or more, divided into equal tiles, are at least three in each. */
static __attribute__((noinline)) void many_tile(real *c, int64_t ldc, const real *a, int64_t lda,
                                                const real *b, const char *next, int64_t stride,
                                                const heed__panel_weights *w, int64_t left,
                                                int64_t rows)
{
    if (rows == 6)
        many_body(6, c, ldc, a, lda, b, next, stride, w, left);
    else if (rows == 5)
        many_body(5, c, ldc, a, lda, b, next, stride, w, left);
    else if (rows == 4)
        many_body(4, c, ldc, a, lda, b, next, stride, w, left);
    else
        many_body(3, c, ldc, a, lda, b, next, stride, w, left);
}

static void product_of_many(real *c, int64_t ldc, const real *a, int64_t lda, int64_t m,
                            const heed__panel_weights *w, int64_t begin, int64_t end)
{
    const int64_t tiles = (m + MICRO_ROWS - 1) / MICRO_ROWS, least = m / tiles, more = m % tiles;
    const int64_t row = HEED_PANEL * (int64_t)sizeof(real), size = w->k * row;
    const int64_t share = size / tiles, stride = (row + tiles - 1) / tiles;
    for (int64_t p = begin; p < end; p++) {
        const char *panel = (const char *)w->real + p * size, *next = panel + size;
        const int64_t left = p * HEED_PANEL;
        for (int64_t i = 0, top = 0, height; i < tiles; i++, top += height, next += share) {
            height = least + (i < more);
            prefetch_rows(c + top * ldc + left + HEED_PANEL, ldc, height);
            for (int64_t s = 0; s < HEED_PANEL; s += STRIP)
                many_tile(c + top * ldc, ldc, a + top * lda, lda, (const real *)panel + s, next,
                          stride, w, left + s, height);
        }
    }
}

void K(panel_product)(real *c, int64_t ldc, const real *a, int64_t lda,
                      const heed__panel_rows *rows, int64_t m, const heed__panel_weights *w,
                      int64_t begin, int64_t end)
{
    if (m <= 0 || begin >= end)
        return;
    if (w->bits == 0)
        (m <= MICRO_ROWS ? product_of_few : product_of_many)(c, ldc, a, lda, m, w, begin, end);
    else
        K(panel_product_int8)(c, ldc, rows, m, w, begin, end);
    if (w->activation == HEED__UNARY_IDENTITY || w->activation == HEED__UNARY_RELU)
        return;
    const int64_t left = begin * HEED_PANEL;
    const int64_t right = end * HEED_PANEL < w->n ? end * HEED_PANEL : w->n;
    for (int64_t i = 0; i < m; i++)
        K(unary)(w->activation, c + i * ldc + left, c + i * ldc + left, right - left);
}
