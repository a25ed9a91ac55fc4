/* panel_int8.c: products with int8 panels; see panels.h.
 *
 * A panel is used for all rows before the next one; the rows are divided into equal tiles of exact
 * integer sums (int8_tile.h), and each tile is converted to fp32 while it is in cache. */
#include "kernel/panel_int8.h"

#include "kernel/elementwise.h"
#include "kernel/int8_tile.h"
#include "kernel/micro.h"

/* Prefetch distance in bytes, of a single tile with its panel and of one row with its panels;
 * measured (docs/PERFORMANCE.md). */
#define PREFETCH_ROWS 4096
#define PREFETCH_ONE_ROW 1024

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

/* What converts the sums of a panel to fp32. */
#define PANEL_REGISTERS (HEED_PANEL / (VBYTES / (int)sizeof(real)))
struct scales {
    vreal scale[PANEL_REGISTERS], total[PANEL_REGISTERS], bias[PANEL_REGISTERS], least;
    int64_t columns; /* that exist */
};

VINLINE struct scales scales_of(const heed__panel_weights *w, int64_t left)
{
    struct scales s = {.columns = w->n - left};
    for (int r = 0; r < PANEL_REGISTERS; r++) {
        const int64_t j = left + r * VW;
        s.scale[r] = vfrom_float(w->scale + j);
        s.total[r] = s.scale[r] * vfrom_int32(w->sum + j);
        s.bias[r] = w->bias && j < w->n ? vload_at(w->bias, j, w->n) : vset(0);
    }
    s.least = vset(w->activation == HEED__UNARY_RELU ? 0 : -(real)INFINITY);
    return s;
}

/* Integer sums to fp32: c = f(sum (step scale) + (low (scale total) + bias)).  Each addition has
 * only one product that it may be fused with: however this is compiled, all rows round alike. */
VINLINE void finish_whole(int rows, real *c, int64_t ldc, const int32_t *sums,
                          const heed__panel_rows *x, const struct scales *s)
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        const vreal wide = vset((real)x->step[i]), base = vset((real)x->low[i]);
#pragma GCC unroll 8
        for (int r = 0; r < PANEL_REGISTERS; r++) {
            vreal y = vfrom_int32(sums + i * HEED_PANEL + r * VW) * (wide * s->scale[r]) +
                      (base * s->total[r] + s->bias[r]);
            vstore(c + i * ldc + r * VW, vmax(s->least, y));
        }
    }
}

VINLINE void finish_int8(int rows, real *c, int64_t ldc, const int32_t *sums,
                         const heed__panel_rows *x, const struct scales *s)
{
    if (s->columns >= HEED_PANEL) {
        finish_whole(rows, c, ldc, sums, x, s);
        return;
    }
    real whole[INT8_ROWS * HEED_PANEL];
    finish_whole(rows, whole, HEED_PANEL, sums, x, s);
    for (int i = 0; i < rows; i++)
        memcpy(c + i * ldc, whole + i * HEED_PANEL, (size_t)s->columns * sizeof *c);
}

/* One panel for tiles of one height, one below the other; each prefetches a part of the next. */
struct int8_tiles {
    const int8_t *panel;
    int64_t groups;
    heed__panel_rows x;
    int64_t lda;
    real *c;
    int64_t ldc;
    const int8_t *ahead;
    int64_t share, stride; /* bytes of a tile's part, and of a group's */
};

VINLINE void tiles_of(int rows, int64_t count, struct int8_tiles *all, const struct scales *s)
{
    struct int8_tiles t = *all;
    int32_t sums[INT8_ROWS * HEED_PANEL];
    for (int64_t i = 0; i < count; i++) {
        prefetch_rows(t.c + HEED_PANEL, t.ldc, rows);
        int8_body(rows, 1, sums, t.x.bytes, t.lda, t.panel, t.groups, 0, t.ahead, t.stride);
        finish_int8(rows, t.c, t.ldc, sums, &t.x, s);
        t.x = (heed__panel_rows){t.x.bytes + rows * t.lda, t.x.step + rows, t.x.low + rows};
        t.c += rows * t.ldc;
        t.ahead += t.share;
    }
    *all = t;
}

#define BYTE_CASE(rows)                                                                            \
    case rows:                                                                                     \
        tiles_of(rows, count, t, s);                                                               \
        break;

/* 1 <= rows <= INT8_ROWS; continues after the last of them. */
static __attribute__((noinline)) void int8_tile_rows(int64_t rows, int64_t count,
                                                     struct int8_tiles *t, const struct scales *s)
{
    switch (rows) {
        BYTE_CASE(1)
        BYTE_CASE(2)
#if INT8_ROWS > 2
        BYTE_CASE(3)
        BYTE_CASE(4)
#endif
#if INT8_ROWS > 4
        BYTE_CASE(5)
        BYTE_CASE(6)
        BYTE_CASE(7)
        BYTE_CASE(8)
#endif
    }
}

/* One row with INT8_STREAMS stretches of panels side by side, each read from its first panel to its
 * last; returns the first panel that remains. */
static int64_t int8_streams(real *c, const heed__panel_rows *rows, const heed__panel_weights *w,
                            int64_t begin, int64_t end)
{
    const int64_t groups = heed__panel_groups(w->k), size = groups * GROUP_BYTES;
    const int64_t each = (end - begin) / INT8_STREAMS;
    int32_t sums[INT8_STREAMS * HEED_PANEL];
    for (int64_t p = begin; p < begin + each; p++) {
        const int8_t *panel = w->bytes + p * size;
        int8_body(1, INT8_STREAMS, sums, rows->bytes, 0, panel, groups, each * size,
                  panel + PREFETCH_ONE_ROW, GROUP_BYTES);
        for (int64_t k = 0; k < INT8_STREAMS; k++) {
            const int64_t left = (p + k * each) * HEED_PANEL;
            const struct scales s = scales_of(w, left);
            finish_int8(1, c + left, 0, sums + k * HEED_PANEL, rows, &s);
        }
    }
    return begin + INT8_STREAMS * each;
}

#ifdef INT8_WIDE
static void wide_product(real *c, int64_t ldc, const heed__panel_rows *rows, int64_t m,
                         const heed__panel_weights *w, int64_t begin, int64_t end)
{
    const int64_t groups = heed__panel_groups(w->k);
    int32_t sums[HEED_PANEL];
    for (int64_t p = begin; p < end; p++) {
        const struct scales s = scales_of(w, p * HEED_PANEL);
        for (int64_t i = 0; i < m; i++) {
            const heed__panel_rows row = {rows->bytes + i * 4 * groups, rows->step + i,
                                          rows->low + i};
            int8_wide(sums, row.bytes, w->bytes + p * groups * GROUP_BYTES, groups);
            finish_int8(1, c + i * ldc + p * HEED_PANEL, 0, sums, &row, &s);
        }
    }
}
#endif

void K(panel_product_int8)(real *c, int64_t ldc, const heed__panel_rows *rows, int64_t m,
                           const heed__panel_weights *w, int64_t begin, int64_t end)
{
    const int64_t groups = heed__panel_groups(w->k), size = groups * GROUP_BYTES;
    const int64_t tiles = m <= INT8_ROWS ? 1 : (m + INT8_TILE - 1) / INT8_TILE;
    const int64_t least = m / tiles, more = m % tiles;
#ifdef INT8_WIDE
    if (w->wide) {
        wide_product(c, ldc, rows, m, w, begin, end);
        return;
    }
#endif
    int64_t p = m == 1 && INT8_STREAMS > 1 ? int8_streams(c, rows, w, begin, end) : begin;
    for (; p < end; p++) {
        const int64_t left = p * HEED_PANEL, next = left + HEED_PANEL;
        const struct scales s = scales_of(w, left);
        struct int8_tiles t = {.panel = w->bytes + p * size,
                               .groups = groups,
                               .x = *rows,
                               .lda = 4 * groups,
                               .c = c + left,
                               .ldc = ldc,
                               .share = size / tiles,
                               .stride = (GROUP_BYTES + tiles - 1) / tiles};
        t.ahead = t.panel + (tiles > 1 ? size : m == 1 ? PREFETCH_ONE_ROW : PREFETCH_ROWS);
        __builtin_prefetch(w->scale + next);
        __builtin_prefetch(w->sum + next);
        if (more)
            int8_tile_rows(least + 1, more, &t, &s);
        int8_tile_rows(least, tiles - more, &t, &s);
    }
}
