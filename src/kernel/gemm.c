/* gemm.c: products with few rows, small sides or a short sum, where BLAS libraries spend their time
 * on packing.  Here B is not packed.
 *
 * One row of C adds eight rows of B at a time.  More rows are tiles of micro.h, the wider the fewer
 * rows they have, so that there are always about twelve independent sums.  A B^T is dot products
 * along the rows of both, again twelve at a time. */
#include "kernel/gemm.h"

#include "kernel/isa.h"
#include "kernel/micro.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_GEMM(DECLARE)

/* Rows of B that are summed before C is read again.  Measured on B (512,2048) and (2048,512): if B
 * is read once or twice, few rows at a time need few pages and streams; a copied strip allows more.
 */
#define DEPTH_FEW 32
#define DEPTH_COPIED 256
/* A strip of B is copied if at least COPIED_FROM tiles use it and its rows are so far apart that
 * they fall into few sets of the L1 cache and evict each other. */
#define COPIED_FROM 3
#define FAR_APART 256
#define MAX_STRIP (4 * VBYTES / (int)sizeof(real))
/* Rows of A that share a strip of B. */
#define PANEL_ROWS 96
/* With a sum this short a row of C is updated in memory. */
#define SHORT_SUM 4

/* ---- one row ---- */

#define ROW_DEPTH 8

/* c (n) = beta c + a[0] b[0] + ... : depth rows of B, depth a constant. */
VINLINE void row_block(int depth, real *restrict c, const real *a, int64_t a_col,
                       const real *restrict b, int64_t ldb, int64_t n, real beta)
{
    vreal x[ROW_DEPTH];
#pragma GCC unroll 8
    for (int p = 0; p < depth; p++)
        x[p] = vset(a[p * a_col]);
    int64_t j = 0;
    for (; j + VW <= n; j += VW) {
        vreal sum = beta == 0 ? (vreal){0} : vload(c + j);
#pragma GCC unroll 8
        for (int p = 0; p < depth; p++)
            sum += x[p] * vload(b + p * ldb + j);
        vstore(c + j, sum);
    }
    if (j < n) {
        vreal sum = beta == 0 ? (vreal){0} : vload_first(c + j, n - j);
#pragma GCC unroll 8
        for (int p = 0; p < depth; p++)
            sum += x[p] * vload_first(b + p * ldb + j, n - j);
        vstore_first(c + j, sum, n - j);
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
    for (; p + 4 <= k; p += 4, beta = 1)
        row_block(4, c, a + p * a_col, a_col, b + p * ldb, ldb, n, beta);
    for (; p + 2 <= k; p += 2, beta = 1)
        row_block(2, c, a + p * a_col, a_col, b + p * ldb, ldb, n, beta);
    if (p < k)
        row_block(1, c, a + p * a_col, a_col, b + p * ldb, ldb, n, beta);
}

/* ---- few rows ---- */

/* Registers across a strip whose tiles have `rows` rows. */
static int64_t strip_registers(int64_t rows)
{
    return rows <= 3 ? 4 : rows == 4 ? 3 : 2;
}

/* One tile of any width; wide ones have their own bodies. */
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

/* Up to PANEL_ROWS rows of C and a sum of up to DEPTH_COPIED, strip by strip of B. Data that is
 * used often but strided (strips of B, columns of A for A^T B) is copied first. */
static void panel(real *c, int64_t ldc, const real *a, int64_t a_row, int64_t a_col, const real *b,
                  int64_t ldb, int64_t m, int64_t n, int64_t k, real beta)
{
    real b_copy[DEPTH_COPIED * MAX_STRIP], a_copy[PANEL_ROWS * DEPTH_COPIED];
    int64_t tiles = (m + MICRO_ROWS - 1) / MICRO_ROWS;
    int64_t width = strip_registers((m + tiles - 1) / tiles) * VW;
    bool copied = tiles >= COPIED_FROM && ldb >= FAR_APART;
    bool a_copied = copied && a_col >= FAR_APART;
    for (int64_t i = 0; a_copied && i < tiles; i++) {
        int64_t top = micro_edge(m, tiles, i), rows = micro_edge(m, tiles, i + 1) - top;
        for (int64_t p = 0; p < k; p++)
            for (int64_t r = 0; r < rows; r++)
                a_copy[top * k + p * rows + r] = a[(top + r) * a_row + p * a_col];
    }
    for (int64_t j = 0; j < n; j += width) {
        int64_t columns = n - j < width ? n - j : width;
        for (int64_t p = 0; copied && p < k; p++)
            for (int64_t q = 0; q < columns; q += VW)
                vstore(b_copy + p * width + q, vload_at(b + p * ldb + j, q, columns));
        for (int64_t i = 0; i < tiles; i++) {
            int64_t top = micro_edge(m, tiles, i), rows = micro_edge(m, tiles, i + 1) - top;
            tile(c + top * ldc + j, ldc, a_copied ? a_copy + top * k : a + top * a_row,
                 a_copied ? 1 : a_row, a_copied ? rows : a_col, copied ? b_copy : b + j,
                 copied ? width : ldb, rows, columns, k, beta);
        }
    }
}

void K(gemm_few)(real *c, int64_t ldc, const real *a, int64_t a_row, int64_t a_col, const real *b,
                 int64_t ldb, int64_t m, int64_t n, int64_t k, real beta)
{
    if (m == 1 || k <= SHORT_SUM) {
        for (int64_t i = 0; i < m; i++)
            one_row(c + i * ldc, a + i * a_row, a_col, b, ldb, n, k, beta);
        return;
    }
    int64_t depth = m <= (COPIED_FROM - 1) * MICRO_ROWS ? DEPTH_FEW : DEPTH_COPIED;
    for (int64_t p = 0; p < k; p += depth, beta = 1)
        for (int64_t i = 0; i < m; i += PANEL_ROWS)
            panel(c + i * ldc, ldc, a + i * a_row + p * a_col, a_row, a_col, b + p * ldb, ldb,
                  m - i < PANEL_ROWS ? m - i : PANEL_ROWS, n, k - p < depth ? k - p : depth, beta);
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
    int64_t p = 0;
    for (; p + VW <= k; p += VW) {
        vreal x[DOT_ROWS];
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            x[i] = vload(a + i * lda + p);
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++) {
            vreal y = vload(b + j * ldb + p);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                sum[i][j] += x[i] * y;
        }
    }
    if (p < k) {
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++) {
            vreal y = vload_first(b + j * ldb + p, k - p);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                sum[i][j] += vload_first(a + i * lda + p, k - p) * y;
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
/* By rows of A: rows of B per tile, the tile, and the tile for the remainder. */
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
