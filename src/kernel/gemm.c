/* gemm.c: products with few rows, small sides or a short sum, where the BLAS libraries lose their
 * time in packing.  Nothing is packed here: B goes by once, in the order of memory.
 *
 * One row is a sum of eight rows of B at a time.  More rows are tiles of micro.h, the wider the
 * fewer rows they have, so that about twelve sums are always under way.  A B^T is dot products
 * along the rows of both, again twelve at a time. */
#include "kernel/gemm.h"

#include "kernel/isa.h"
#include "kernel/micro.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_GEMM(DECLARE)

/* Rows of B that are added up before C is touched again.  Measured on B (512,2048): up to a tile of
 * rows 32 keeps the rows' pages and streams few; beyond, B's strip is used again and 128 is best.
 */
#define DEPTH_ONE_TILE 32
#define DEPTH_TILES 128
/* A sum this short is over before C has come from memory: then C is what is walked in order. */
#define SHORT_SUM 32

/* ---- one row ---- */

#define ROW_DEPTH 8

/* c (n) = beta c + x[0] b[0] + ... : depth rows of B, depth a constant. */
VINLINE void row_block(int depth, real *restrict c, const real *a, int64_t a_col,
                       const real *restrict b, int64_t ldb, int64_t n, real beta)
{
    vreal x[ROW_DEPTH];
#pragma GCC unroll 8
    for (int p = 0; p < depth; p++)
        x[p] = vset(a[p * a_col]);
    for (int64_t j = 0; j < n; j += VW) {
        vreal sum = beta == 0 ? (vreal){0} : vload_at(c, j, n);
#pragma GCC unroll 8
        for (int p = 0; p < depth; p++)
            sum += x[p] * vload_at(b + p * ldb, j, n);
        vstore_at(c, sum, j, n);
    }
}

static void one_row(real *c, const real *a, int64_t a_col, const real *b, int64_t ldb, int64_t n,
                    int64_t k, real beta)
{
    int64_t p = 0;
    if (k == 0)
        row_block(0, c, a, a_col, b, ldb, n, beta);
    for (; p + ROW_DEPTH <= k; p += ROW_DEPTH, beta = 1)
        row_block(ROW_DEPTH, c, a + p * a_col, a_col, b + p * ldb, ldb, n, beta);
    for (; p < k; p++, beta = 1)
        row_block(1, c, a + p * a_col, a_col, b + p * ldb, ldb, n, beta);
}

/* ---- few rows ---- */

/* Registers across a strip whose tiles have so many rows. */
static int64_t strip_registers(int64_t rows)
{
    return rows <= 3 ? 4 : rows == 4 ? 3 : 2;
}

/* One tile of any width: the wide ones by their own bodies. */
static void tile(real *c, int64_t ldc, const real *a, int64_t a_row, int64_t a_col, const real *b,
                 int64_t ldb, int64_t m, int64_t n, int64_t k, real beta)
{
    if (m == 2 && n == 4 * VW)
        micro_body(2, 4, true, c, ldc, a, a_row, a_col, b, ldb, VW, k, beta);
    else if (m == 3 && n == 4 * VW)
        micro_body(3, 4, true, c, ldc, a, a_row, a_col, b, ldb, VW, k, beta);
    else if (m == 3 && n == 3 * VW)
        micro_body(3, 3, true, c, ldc, a, a_row, a_col, b, ldb, VW, k, beta);
    else if (m == 4 && n == 3 * VW)
        micro_body(4, 3, true, c, ldc, a, a_row, a_col, b, ldb, VW, k, beta);
    else
        for (int64_t j = 0; j < n; j += MICRO_COLS)
            micro_tile(c + j, ldc, a, a_row, a_col, b + j, ldb, m,
                       n - j < MICRO_COLS ? n - j : MICRO_COLS, k, beta);
}

void K(gemm_few)(real *c, int64_t ldc, const real *a, int64_t a_row, int64_t a_col, const real *b,
                 int64_t ldb, int64_t m, int64_t n, int64_t k, real beta)
{
    if (m == 1) {
        one_row(c, a, a_col, b, ldb, n, k, beta);
        return;
    }
    int64_t tiles = (m + MICRO_ROWS - 1) / MICRO_ROWS;
    int64_t width = strip_registers((m + tiles - 1) / tiles) * VW;
    int64_t strips = (n + width - 1) / width;
    int64_t depth = tiles == 1 ? DEPTH_ONE_TILE : DEPTH_TILES;
    bool along_rows = k <= SHORT_SUM;
    int64_t p = 0;
    do { /* once even where k is 0: C = beta C */
        int64_t deep = k - p < depth ? k - p : depth;
        for (int64_t at = 0; at < tiles * strips; at++) {
            int64_t i = along_rows ? at / strips : at % tiles;
            int64_t j = (along_rows ? at % strips : at / tiles) * width;
            int64_t top = micro_edge(m, tiles, i), bottom = micro_edge(m, tiles, i + 1);
            tile(c + top * ldc + j, ldc, a + top * a_row + p * a_col, a_row, a_col, b + p * ldb + j,
                 ldb, bottom - top, n - j < width ? n - j : width, deep, beta);
        }
        p += depth;
        beta = 1;
    } while (p < k);
}

/* ---- A B^T ---- */

#define DOT_ROWS 4
#define DOT_COLS 8

/* rows x cols dot products of length k; both are constants where it is inlined. */
VINLINE void dot_body(int rows, int cols, real *c, int64_t ldc, const real *a, int64_t lda,
                      const real *b, int64_t ldb, int64_t k, real beta)
{
    vreal sum[DOT_ROWS][DOT_COLS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++)
            sum[i][j] = (vreal){0};
    for (int64_t p = 0; p < k; p += VW) {
        vreal x[DOT_ROWS];
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            x[i] = vload_at(a + i * lda, p, k);
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++) {
            vreal y = vload_at(b + j * ldb, p, k);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                sum[i][j] += x[i] * y;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++) {
            real *to = c + i * ldc + j;
            *to = beta == 0 ? vsum(sum[i][j]) : vsum(sum[i][j]) + *to;
        }
}

/* One strip of up to 8 rows of B against m rows of A. */
#define DOT_STRIP(rows, cols)                                                                      \
    static void dot_##rows##_##cols(real *c, int64_t ldc, const real *a, int64_t lda,              \
                                    const real *b, int64_t ldb, int64_t k, real beta)              \
    {                                                                                              \
        dot_body(rows, cols, c, ldc, a, lda, b, ldb, k, beta);                                     \
    }
DOT_STRIP(1, 8)
DOT_STRIP(1, 1)
DOT_STRIP(2, 5)
DOT_STRIP(2, 1)
DOT_STRIP(3, 4)
DOT_STRIP(3, 1)
DOT_STRIP(4, 3)
DOT_STRIP(4, 1)

typedef void dot_tile(real *c, int64_t ldc, const real *a, int64_t lda, const real *b, int64_t ldb,
                      int64_t k, real beta);
/* By rows of A: how many rows of B a tile takes, the tile, and the one for what is left over. */
static const struct {
    int64_t cols;
    dot_tile *wide, *single;
} dots[DOT_ROWS + 1] = {{0, NULL, NULL},
                        {8, dot_1_8, dot_1_1},
                        {5, dot_2_5, dot_2_1},
                        {4, dot_3_4, dot_3_1},
                        {3, dot_4_3, dot_4_1}};

void K(gemm_few_nt)(real *c, int64_t ldc, const real *a, int64_t lda, const real *b, int64_t ldb,
                    int64_t m, int64_t n, int64_t k, real beta)
{
    int64_t tiles = (m + DOT_ROWS - 1) / DOT_ROWS;
    int64_t strip = tiles ? dots[(m + tiles - 1) / tiles].cols : 1;
    for (int64_t j = 0; j < n; j += strip) {
        int64_t right = n - j < strip ? n : j + strip;
        for (int64_t i = 0; i < tiles; i++) {
            int64_t top = micro_edge(m, tiles, i), rows = micro_edge(m, tiles, i + 1) - top;
            int64_t q = j;
            for (; q + dots[rows].cols <= right; q += dots[rows].cols)
                dots[rows].wide(c + top * ldc + q, ldc, a + top * lda, lda, b + q * ldb, ldb, k,
                                beta);
            for (; q < right; q++)
                dots[rows].single(c + top * ldc + q, ldc, a + top * lda, lda, b + q * ldb, ldb, k,
                                  beta);
        }
    }
}
