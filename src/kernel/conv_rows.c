/* conv_rows.c: see conv_rows.h.  Tiles of rows by two registers whose sums stay in registers, as in
 * gemm_packed; here the rows of the left side are read where they are.  That costs a pointer for
 * each row and tap, and no copy. */
#include "kernel/conv_rows.h"

#include "base/min_max.h"
#include "kernel/isa.h"
#include "kernel/wide.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_CONV(DECLARE)

/* A tile, two registers wide. */
#define MR (WREGISTERS / 2)
#define NR (2 * WW)
/* Products in one chain: a longer one loses digits. */
#define DEPTH 512

/* ---- weights ---- */

int64_t K(conv_strips)(int64_t out)
{
    return (out + NR - 1) / NR;
}

/* Strip after strip, in it tap after tap, in it NR columns of each row; zeros beyond the last. */
void K(conv_pack)(real *panels, const real *w, int64_t tap, int64_t row, int64_t col, int64_t taps,
                  int64_t in, int64_t out, int64_t begin, int64_t end)
{
    for (int64_t s = begin; s < end; s++)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t i = 0; i < in; i++) {
                real *to = panels + ((s * taps + t) * in + i) * NR;
                const real *from = w + t * tap + i * row + s * NR * col;
                const int64_t n = heed__min(out - s * NR, NR);
                for (int64_t j = 0; j < NR; j++)
                    to[j] = j < n ? from[j * col] : 0;
            }
}

/* ---- rows ---- */

/* total += x W for the taps of one group: MR rows, m of which exist, and one or two registers. */
VINLINE void tile_body(int registers, wreal total[MR][2], const heed__conv_rows *c, int64_t p,
                       int64_t m, int64_t begin, int64_t end, const real *strip)
{
    wreal sum[MR][2];
#pragma GCC unroll 12
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 2
        for (int r = 0; r < registers; r++)
            sum[i][r] = (wreal){0};
    for (int64_t t = begin; t < end; t++) {
        const real *const *from = c->from + t * c->ld + p;
        const real *x[MR];
#pragma GCC unroll 12
        for (int i = 0; i < MR; i++)
            x[i] = from[i < m ? i : 0];
        const real *b = strip + (int64_t)c->tap[t] * c->in * NR;
        for (int64_t k = 0; k < c->in; k++, b += NR) {
            wreal w[2];
#pragma GCC unroll 2
            for (int r = 0; r < registers; r++)
                w[r] = wload(b + r * WW);
#pragma GCC unroll 12
            for (int i = 0; i < MR; i++) {
                const wreal v = wset(x[i][k]);
#pragma GCC unroll 2
                for (int r = 0; r < registers; r++)
                    sum[i][r] = wadd_product(sum[i][r], v, w[r]);
            }
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 2
        for (int r = 0; r < registers; r++)
            total[i][r] += sum[i][r];
}

static __attribute__((noinline)) void tile_1(wreal total[MR][2], const heed__conv_rows *c,
                                             int64_t p, int64_t m, int64_t begin, int64_t end,
                                             const real *strip)
{
    tile_body(1, total, c, p, m, begin, end, strip);
}

static __attribute__((noinline)) void tile_2(wreal total[MR][2], const heed__conv_rows *c,
                                             int64_t p, int64_t m, int64_t begin, int64_t end,
                                             const real *strip)
{
    tile_body(2, total, c, p, m, begin, end, strip);
}

/* Up to MR rows of one strip, `cols` of whose columns exist. */
static void strip_rows(const heed__conv_rows *c, int64_t p, int64_t m, int64_t at, int64_t cols,
                       const real *strip, int64_t group)
{
    wreal total[MR][2];
    const int64_t registers = cols > WW ? 2 : 1;
    for (int64_t r = 0; r < registers; r++) {
        const int64_t n = heed__min(cols - r * WW, WW), j = at + r * WW;
        wreal start = c->bias ? wload_first(c->bias + j, n) : wset(0);
        for (int64_t i = 0; i < MR; i++) {
            total[i][r] = start;
            if (c->add && i < m)
                total[i][r] += wload_first(c->to[p + i] + j, n);
        }
    }
    for (int64_t t = 0; t < c->taps; t += group)
        (registers == 1 ? tile_1 : tile_2)(total, c, p, m, t, heed__min(t + group, c->taps), strip);
    for (int64_t i = 0; i < m; i++)
        for (int64_t r = 0; r < registers; r++)
            wstore_first(c->to[p + i] + at + r * WW, total[i][r], heed__min(cols - r * WW, WW));
}

void K(conv_rows)(const heed__conv_rows *c)
{
    const int64_t most = heed__max(DEPTH / heed__max(c->in, 1), 1);
    const int64_t groups = heed__max((c->taps + most - 1) / most, 1);
    const int64_t group = heed__max((c->taps + groups - 1) / groups, 1);
    for (int64_t j = 0; j < c->out; j += NR)
        for (int64_t p = 0; p < c->n; p += MR)
            strip_rows(c, p, heed__min(c->n - p, MR), j, heed__min(c->out - j, NR),
                       c->panels + j * c->packed * c->in, group);
}

/* ---- pairs ---- */

#define PAIR_ROWS 6
#define PAIR_REGISTERS 8

/* w (rows, registers) += sum of a[p]^T b[p]: rows and registers are constants where it is inlined.
 * Of a single register `last` columns are used. */
VINLINE void pairs_body(int rows, int registers, bool whole, real *w, int64_t ld,
                        const real *const *a, int64_t i0, const real *const *b, int64_t j0,
                        int64_t last, int64_t n)
{
    wreal sum[PAIR_ROWS][PAIR_REGISTERS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++)
            sum[i][r] = (wreal){0};
    for (int64_t p = 0; p < n; p++) {
        const real *x = a[p] + i0, *y = b[p] + j0;
        wreal row[PAIR_REGISTERS];
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++)
            row[r] = whole ? wload(y + r * WW) : wload_first(y, last);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const wreal v = wset(x[i]);
#pragma GCC unroll 8
            for (int r = 0; r < registers; r++)
                sum[i][r] = wadd_product(sum[i][r], v, row[r]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++) {
            real *to = w + i * ld + r * WW;
            if (whole)
                wstore(to, wload(to) + sum[i][r]);
            else
                wstore_first(to, wload_first(to, last) + sum[i][r], last);
        }
}

/* All columns for a number of rows: strips of as many registers as hold their sums, then two, then
 * one. */
#define PAIRS(rows, registers)                                                                     \
    static __attribute__((noinline)) void pairs_##rows(real *w, int64_t ld, const real *const *a,  \
                                                       int64_t i0, const real *const *b,           \
                                                       int64_t n, int64_t out)                     \
    {                                                                                              \
        int64_t j = 0;                                                                             \
        for (; j + (registers)*WW <= out; j += (registers)*WW)                                     \
            pairs_body(rows, registers, true, w + j, ld, a, i0, b, j, WW, n);                      \
        for (; j + 2 * WW <= out; j += 2 * WW)                                                     \
            pairs_body(rows, 2, true, w + j, ld, a, i0, b, j, WW, n);                              \
        for (; j < out; j += WW)                                                                   \
            pairs_body(rows, 1, false, w + j, ld, a, i0, b, j, heed__min(out - j, WW), n);         \
    }
#if WREGISTERS == 24
PAIRS(1, 8)
PAIRS(2, 8)
PAIRS(3, 8)
PAIRS(4, 6)
PAIRS(5, 4)
PAIRS(6, 4)
#else
PAIRS(1, 8)
PAIRS(2, 6)
PAIRS(3, 4)
PAIRS(4, 3)
PAIRS(5, 2)
PAIRS(6, 2)
#endif

void K(conv_pairs)(real *w, int64_t ld, const real *const *a, const real *const *b, int64_t n,
                   int64_t in, int64_t out)
{
    typedef void part(real * w, int64_t ld, const real *const *a, int64_t i0, const real *const *b,
                      int64_t n, int64_t out);
    static part *const by_rows[] = {NULL, pairs_1, pairs_2, pairs_3, pairs_4, pairs_5, pairs_6};
    const int64_t tiles = (in + PAIR_ROWS - 1) / PAIR_ROWS;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t top = in * i / tiles, rows = in * (i + 1) / tiles - top;
        by_rows[rows](w + top * ld, ld, a, top, b, n, out);
    }
}
