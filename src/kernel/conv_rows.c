/* conv_rows.c: see conv_rows.h.  Tiles of 6 rows by two registers, 12 sums of 16 registers, as in
 * gemm_packed; here the rows of the left side are read where they are.  That costs a pointer for
 * each row and tap, and no copy. */
#include "kernel/conv_rows.h"

#include "base/min_max.h"
#include "kernel/isa.h"
#include "kernel/micro.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_CONV(DECLARE)

#define MR MICRO_ROWS
#define NR MICRO_COLS
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

/* total += x[0..5] W for one group of taps.  x: MR pointers for each tap, ld apart. */
static __attribute__((noinline)) void tile(vreal total[MR][2], const heed__conv_rows *c, int64_t p,
                                           int64_t m, int64_t begin, int64_t end, const real *strip)
{
    vreal sum[MR][2];
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
        sum[i][0] = sum[i][1] = (vreal){0};
    for (int64_t t = begin; t < end; t++) {
        const real *const *from = c->from + t * c->ld + p;
        const real *x[MR];
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++)
            x[i] = from[i < m ? i : 0];
        const real *b = strip + (int64_t)c->tap[t] * c->in * NR;
#pragma GCC unroll 2
        for (int64_t k = 0; k < c->in; k++, b += NR) {
            const vreal left = vload(b), right = vload(b + VW);
#pragma GCC unroll 8
            for (int i = 0; i < MR; i++) {
                const vreal v = vset(x[i][k]);
                sum[i][0] = vadd_product(sum[i][0], v, left);
                sum[i][1] = vadd_product(sum[i][1], v, right);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) {
        total[i][0] += sum[i][0];
        total[i][1] += sum[i][1];
    }
}

/* Up to MR rows of one strip, `cols` of whose columns exist. */
static void strip_rows(const heed__conv_rows *c, int64_t p, int64_t m, int64_t at, int64_t cols,
                       const real *strip, int64_t group)
{
    vreal total[MR][2];
    for (int64_t i = 0; i < MR; i++)
        for (int64_t r = 0; r < 2; r++) {
            const int64_t n = cols - r * VW;
            total[i][r] = c->bias && n > 0 ? vload_at(c->bias + at + r * VW, 0, n) : (vreal){0};
            if (c->add && i < m && n > 0)
                total[i][r] += vload_at(c->to[p + i] + at + r * VW, 0, n);
        }
    for (int64_t t = 0; t < c->taps; t += group)
        tile(total, c, p, m, t, heed__min(t + group, c->taps), strip);
    for (int64_t i = 0; i < m; i++)
        for (int64_t r = 0; r < 2 && cols - r * VW > 0; r++)
            vstore_at(c->to[p + i] + at + r * VW, total[i][r], 0, cols - r * VW);
}

void K(conv_rows)(const heed__conv_rows *c)
{
    const int64_t most = heed__max(DEPTH / heed__max(c->in, 1), 1);
    const int64_t groups = heed__max((c->taps + most - 1) / most, 1);
    const int64_t group = (c->taps + groups - 1) / groups;
    for (int64_t j = 0; j < c->out; j += NR)
        for (int64_t p = 0; p < c->n; p += MR)
            strip_rows(c, p, heed__min(c->n - p, MR), j, heed__min(c->out - j, NR),
                       c->panels + j * c->packed * c->in, heed__max(group, 1));
}

/* ---- pairs ---- */

/* w (rows, registers) += sum of a[p]^T b[p]: rows and registers are constants where it is inlined.
 * `last` columns of the last register are used; whole: all of them. */
VINLINE void pairs_body(int rows, int registers, bool whole, real *w, int64_t ld,
                        const real *const *a, int64_t i0, const real *const *b, int64_t j0,
                        int64_t last, int64_t n)
{
    vreal sum[MR][8];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++)
            sum[i][r] = (vreal){0};
    for (int64_t p = 0; p < n; p++) {
        const real *x = a[p] + i0, *y = b[p] + j0;
        vreal row[8];
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++)
            row[r] = whole ? vload(y + r * VW) : vload_first(y, last);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const vreal v = vset(x[i]);
#pragma GCC unroll 8
            for (int r = 0; r < registers; r++)
                sum[i][r] = vadd_product(sum[i][r], v, row[r]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++) {
            real *to = w + i * ld + r * VW;
            if (whole)
                vstore(to, vload(to) + sum[i][r]);
            else
                vstore_first(to, vload_first(to, last) + sum[i][r], last);
        }
}

/* All columns for a number of rows: strips of so many registers, then single ones. */
#define PAIRS(rows, registers)                                                                     \
    static __attribute__((noinline)) void pairs_##rows(real *w, int64_t ld, const real *const *a,  \
                                                       int64_t i0, const real *const *b,           \
                                                       int64_t n, int64_t out)                     \
    {                                                                                              \
        int64_t j = 0;                                                                             \
        for (; j + (registers)*VW <= out; j += (registers)*VW)                                     \
            pairs_body(rows, registers, true, w + j, ld, a, i0, b, j, VW, n);                      \
        for (; j + VW <= out; j += VW)                                                             \
            pairs_body(rows, 1, true, w + j, ld, a, i0, b, j, VW, n);                              \
        if (j < out)                                                                               \
            pairs_body(rows, 1, false, w + j, ld, a, i0, b, j, out - j, n);                        \
    }
PAIRS(1, 8)
PAIRS(2, 6)
PAIRS(3, 4)
PAIRS(4, 3)
PAIRS(5, 2)
PAIRS(6, 2)

void K(conv_pairs)(real *w, int64_t ld, const real *const *a, const real *const *b, int64_t n,
                   int64_t in, int64_t out)
{
    typedef void part(real * w, int64_t ld, const real *const *a, int64_t i0, const real *const *b,
                      int64_t n, int64_t out);
    static part *const by_rows[] = {NULL, pairs_1, pairs_2, pairs_3, pairs_4, pairs_5, pairs_6};
    const int64_t tiles = (in + MR - 1) / MR;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t top = micro_edge(in, tiles, i), rows = micro_edge(in, tiles, i + 1) - top;
        by_rows[rows](w + top * ld, ld, a, top, b, n, out);
    }
}
