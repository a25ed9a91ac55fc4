/* panel_product.c: see panels.h.
 *
 * A panel, or a few where the rows are few, is used for all rows before the next: it comes from
 * memory once and stays in the nearest caches, and the rows pass by in equal tiles.  Each tile asks
 * for its share of the next panel while it computes; a single one for what it will need itself. */
#include "kernel/panels.h"

#include "kernel/elementwise.h"
#include "kernel/isa.h"
#include "kernel/micro.h"
#include "kernel/panel_bytes.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_PANELS(DECLARE)
HEED_KERNELS_ELEMENTWISE(DECLARE)

/* What the tiles do themselves; every other activation is a pass of its own. */
VINLINE vreal activated(vreal x, int activation)
{
    return activation == HEED__UNARY_RELU ? vmax(vset(0), x) : x;
}

/* How far ahead a single tile asks, in bytes.  One row goes by so fast that the processor's own
 * fetching leaves little to do; measured on weights from memory and from the last cache. */
#define NEAR(rows) ((rows) == 1 ? 256 : 4096)

/* Lines of C that a tile will write. */
VINLINE void ask_for(const real *c, int64_t ldc, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        __builtin_prefetch(c + i * ldc, 1);
}

/* ---- bytes ---- */

#ifdef HEED_DOUBLE
#define VFROM(name, type)                                                                          \
    VINLINE vreal name(const type *p)                                                              \
    {                                                                                              \
        vreal v;                                                                                   \
        for (int i = 0; i < VW; i++)                                                               \
            v[i] = p[i];                                                                           \
        return v;                                                                                  \
    }
VFROM(vfrom_int32, int32_t)
VFROM(vfrom_float, float)
#undef VFROM
#else
VINLINE vreal vfrom_int32(const int32_t *p)
{
    vint v;
    memcpy(&v, p, sizeof v);
    return vfromint(v);
}

VINLINE vreal vfrom_float(const float *p)
{
    return vload(p);
}
#endif

/* Sums of bytes become numbers: c = f(sum (step scale) + (low (scale total) + bias)).  Each
 * addition has one product that it may be fused with: however this is compiled, all rows round
 * alike. */
VINLINE void finish_bytes(real *c, int64_t ldc, const int32_t *sums, const float *step,
                          const float *low, int64_t rows, const heed__panel_weights *w,
                          int64_t left)
{
    for (int64_t j = 0; j < HEED_PANEL && left + j < w->n; j += VW) {
        vreal scale = vfrom_float(w->scale + left + j);
        vreal total = scale * vfrom_int32(w->sum + left + j);
        vreal bias = w->bias ? vload_at(w->bias, left + j, w->n) : vset(0);
        for (int64_t i = 0; i < rows; i++) {
            vreal sum = vfrom_int32(sums + i * HEED_PANEL + j);
            vreal base = vset((real)low[i]) * total + bias;
            vreal y = sum * (vset((real)step[i]) * scale) + base;
            vstore_at(c + i * ldc, activated(y, w->activation), left + j, w->n);
        }
    }
}

static void product_of_bytes(real *c, int64_t ldc, const heed__panel_rows *rows, int64_t m,
                             const heed__panel_weights *w, int64_t begin, int64_t end)
{
    const int64_t groups = heed__panel_groups(w->k), lda = 4 * groups, size = groups * GROUP_BYTES;
    const int64_t tiles = (m + BYTE_ROWS - 1) / BYTE_ROWS;
    const int64_t stride = (GROUP_BYTES + tiles - 1) / tiles;
    int32_t sums[BYTE_ROWS * HEED_PANEL];
    for (int64_t p = begin; p < end; p++) {
        const int8_t *panel = w->bytes + p * size;
        for (int64_t i = 0; i < tiles; i++) {
            int64_t top = micro_edge(m, tiles, i), height = micro_edge(m, tiles, i + 1) - top;
            const int8_t *ahead = panel + (tiles == 1 ? NEAR(m) : size + i * size / tiles);
            ask_for(c + top * ldc + p * HEED_PANEL, ldc, height);
            byte_tile(sums, rows->bytes + top * lda, lda, panel, groups, height, w->bits == 7,
                      ahead, stride);
            finish_bytes(c + top * ldc, ldc, sums, rows->step + top, rows->low + top, height, w,
                         p * HEED_PANEL);
        }
    }
}

/* ---- numbers ---- */

/* A tile reads STRIP columns of a panel, of several panels side by side where it has few rows: at
 * least eight sums are always under way, each a chain that waits for itself.  One row of weights
 * that come from memory waits for those instead, and they come fastest in one stream. */
#define STRIP_REGISTERS (HEED_PANEL / VW < 2 ? 1 : 2)
#define STRIP (STRIP_REGISTERS * VW)
#define MOST_REGISTERS 8
#define PANELS_OF(rows) (((rows) == 1 ? 8 : (rows) <= 3 ? 4 : 2) / (int)STRIP_REGISTERS)

/* What a tile asks for while it computes: at step k, from + k * stride in each of its panels; from
 * step `turn` on it is `skip` further. */
typedef struct fetching {
    const char *from;
    int64_t stride, turn, skip;
} fetching;

/* rows and panels are constants where it is inlined.  b and c are at the strip's first column,
 * number `left` of N. */
VINLINE void real_body(int rows, int panels, real *c, int64_t ldc, const real *a, int64_t lda,
                       const real *b, const fetching *ahead, const heed__panel_weights *w,
                       int64_t left)
{
    const int64_t size = w->k * HEED_PANEL;
    const char *next = ahead->from;
    vreal sum[MICRO_ROWS][MOST_REGISTERS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < panels * STRIP_REGISTERS; r++)
            sum[i][r] = (vreal){0};
    for (int64_t k = 0; k < w->k; k++) {
        vreal row[MOST_REGISTERS];
        if (k == ahead->turn)
            next += ahead->skip;
#pragma GCC unroll 8
        for (int p = 0; p < panels; p++)
            __builtin_prefetch(next + p * size * (int64_t)sizeof(real) + k * ahead->stride);
#pragma GCC unroll 8
        for (int r = 0; r < panels * STRIP_REGISTERS; r++)
            row[r] =
                vload(b + r / STRIP_REGISTERS * size + k * HEED_PANEL + r % STRIP_REGISTERS * VW);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vreal x = vset(a[i * lda + k]);
#pragma GCC unroll 8
            for (int r = 0; r < panels * STRIP_REGISTERS; r++)
                sum[i][r] += x * row[r];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < panels * STRIP_REGISTERS; r++) {
        int64_t j = left + r / STRIP_REGISTERS * HEED_PANEL + r % STRIP_REGISTERS * VW;
        if (j >= w->n)
            break;
        vreal bias = w->bias ? vload_at(w->bias, j, w->n) : vset(0);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            vstore_at(c + i * ldc, activated(sum[i][r] + bias, w->activation), j, w->n);
    }
}

#define REAL_CASE(rows)                                                                            \
    case rows:                                                                                     \
        if (panels == PANELS_OF(rows))                                                             \
            real_body(rows, PANELS_OF(rows), c, ldc, a, lda, b, ahead, w, left);                   \
        else                                                                                       \
            for (int64_t p = 0; p < panels; p++)                                                   \
                real_body(rows, 1, c, ldc, a, lda, b + p * size, ahead, w, left + p * HEED_PANEL); \
        break;

/* 1 <= rows <= MICRO_ROWS */
static __attribute__((noinline)) void real_tile(real *c, int64_t ldc, const real *a, int64_t lda,
                                                const real *b, const fetching *ahead,
                                                const heed__panel_weights *w, int64_t left,
                                                int64_t rows, int64_t panels)
{
    const int64_t size = w->k * HEED_PANEL;
    switch (rows) {
        REAL_CASE(1)
        REAL_CASE(2)
        REAL_CASE(3)
        REAL_CASE(4)
        REAL_CASE(5)
        REAL_CASE(6)
    }
}

static void product_of_numbers(real *c, int64_t ldc, const real *a, int64_t lda, int64_t m,
                               const heed__panel_weights *w, int64_t begin, int64_t end)
{
    const int64_t tiles = (m + MICRO_ROWS - 1) / MICRO_ROWS, size = w->k * HEED_PANEL;
    const int64_t together = m == 1 && w->from_memory ? 1 : PANELS_OF((m + tiles - 1) / tiles);
    const int64_t row = HEED_PANEL * (int64_t)sizeof(real), stride = (row + tiles - 1) / tiles;
    for (int64_t p = begin, panels; p < end; p += panels) {
        panels = end - p < together ? end - p : together;
        const real *b = w->real + p * size;
        for (int64_t i = 0; i < tiles; i++) {
            int64_t top = micro_edge(m, tiles, i), height = micro_edge(m, tiles, i + 1) - top;
            fetching next = {(const char *)b + w->k * row * panels + w->k * row * i / tiles, stride,
                             w->k, 0};
            if (tiles == 1) /* each panel's own rows, at its end those of the next ones */
                next = (fetching){(const char *)b + NEAR(m), row, w->k - NEAR(m) / row,
                                  (panels - 1) * w->k * row};
            ask_for(c + top * ldc + p * HEED_PANEL, ldc, height);
            for (int64_t s = 0; s < HEED_PANEL; s += STRIP)
                real_tile(c + top * ldc, ldc, a + top * lda, lda, b + s, &next, w,
                          p * HEED_PANEL + s, height, panels);
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
        product_of_numbers(c, ldc, a, lda, m, w, begin, end);
    else
        product_of_bytes(c, ldc, rows, m, w, begin, end);
    if (w->activation == HEED__UNARY_IDENTITY || w->activation == HEED__UNARY_RELU)
        return;
    const int64_t left = begin * HEED_PANEL;
    const int64_t right = end * HEED_PANEL < w->n ? end * HEED_PANEL : w->n;
    for (int64_t i = 0; i < m; i++)
        K(unary)(w->activation, c + i * ldc + left, c + i * ldc + left, right - left);
}
