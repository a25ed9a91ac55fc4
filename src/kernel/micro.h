/* micro.h: the register tile of all our matrix products, to be included by kernels.
 *
 *   C (m,n) = beta C + A B     C and B row-major; A element (i,p) at a[i*a_row + p*a_col], so that
 *                              A^T B is the same call with the two strides exchanged.
 *
 * A tile of MICRO_ROWS x MICRO_COLS stays in registers (6 x 2 of them: 12 of 16 for the sums, two
 * for B, one for A) while p runs over k; nothing is packed and nothing outside the matrices is
 * read.  Each element of C is one chain of multiply-adds, beta C first and then in the order of p,
 * however C and p are divided: a value depends neither on its position nor on the number of rows.
 * beta is 0 (C may hold anything) or 1. */
#ifndef HEED_KERNEL_MICRO_H
#define HEED_KERNEL_MICRO_H

#include "kernel/vec.h"

#define MICRO_ROWS 6
#define MICRO_REGISTERS 2
#define MICRO_COLS (MICRO_REGISTERS * VW)

/* Prefetches the lines of C that a tile will write. */
VINLINE void prefetch_rows(const real *c, int64_t ldc, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        __builtin_prefetch(c + i * ldc, 1);
}

/* The body: rows and registers are constants where it is inlined.  `last` columns of the last
 * register are used; whole: all of them. */
VINLINE void micro_body(int rows, int registers, bool whole, real *restrict c, int64_t ldc,
                        const real *restrict a, int64_t a_row, int64_t a_col,
                        const real *restrict b, int64_t ldb, int64_t last, int64_t k, real beta)
{
    vreal sum[MICRO_ROWS][8];
    const int end = registers - 1;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++) {
            const real *from = c + i * ldc + r * VW;
            sum[i][r] = beta == 0          ? (vreal){0}
                        : r < end || whole ? vload(from)
                                           : vload_first(from, last);
        }
    for (int64_t p = 0; p < k; p++) {
        vreal row[8];
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++)
            row[r] = r < end || whole ? vload(b + r * VW) : vload_first(b + r * VW, last);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vreal x = vset(a[i * a_row]);
#pragma GCC unroll 8
            for (int r = 0; r < registers; r++)
                sum[i][r] += x * row[r];
        }
        a += a_col;
        b += ldb;
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++) {
            real *to = c + i * ldc + r * VW;
            if (r < end || whole)
                vstore(to, sum[i][r]);
            else
                vstore_first(to, sum[i][r], last);
        }
}

#define MICRO_WIDTHS(rows)                                                                         \
    case rows:                                                                                     \
        if (n == MICRO_COLS)                                                                       \
            micro_body(rows, 2, true, c, ldc, a, a_row, a_col, b, ldb, VW, k, beta);               \
        else if (n > VW)                                                                           \
            micro_body(rows, 2, false, c, ldc, a, a_row, a_col, b, ldb, n - VW, k, beta);          \
        else if (n == VW)                                                                          \
            micro_body(rows, 1, true, c, ldc, a, a_row, a_col, b, ldb, VW, k, beta);               \
        else                                                                                       \
            micro_body(rows, 1, false, c, ldc, a, a_row, a_col, b, ldb, n, k, beta);               \
        break;

/* One tile: 1 <= m <= MICRO_ROWS, 1 <= n <= MICRO_COLS, k >= 0. */
static __attribute__((noinline, unused)) void micro_tile(real *c, int64_t ldc, const real *a,
                                                         int64_t a_row, int64_t a_col,
                                                         const real *b, int64_t ldb, int64_t m,
                                                         int64_t n, int64_t k, real beta)
{
    switch (m) {
        MICRO_WIDTHS(1)
        MICRO_WIDTHS(2)
        MICRO_WIDTHS(3)
        MICRO_WIDTHS(4)
        MICRO_WIDTHS(5)
        MICRO_WIDTHS(6)
    }
}

/* Where tile i of `tiles` begins when m rows are divided into equal tiles: 7 rows are 4 and 3, not
 * 6 and 1, because a tile of one row is bound by latency. */
VINLINE int64_t micro_edge(int64_t m, int64_t tiles, int64_t i)
{
    return m * i / tiles;
}

/* Any m, n and k, for matrices that fit the caches: a strip of MICRO_COLS columns of B is used for
 * all rows of A before the next. */
static __attribute__((unused)) void micro_product(real *c, int64_t ldc, const real *a,
                                                  int64_t a_row, int64_t a_col, const real *b,
                                                  int64_t ldb, int64_t m, int64_t n, int64_t k,
                                                  real beta)
{
    int64_t tiles = (m + MICRO_ROWS - 1) / MICRO_ROWS;
    for (int64_t j = 0; j < n; j += MICRO_COLS) {
        int64_t width = n - j < MICRO_COLS ? n - j : MICRO_COLS;
        for (int64_t i = 0; i < tiles; i++) {
            int64_t top = micro_edge(m, tiles, i), bottom = micro_edge(m, tiles, i + 1);
            micro_tile(c + top * ldc + j, ldc, a + top * a_row, a_row, a_col, b + j, ldb,
                       bottom - top, width, k, beta);
        }
    }
}

#endif
