/* packed.c: large products, at the speed of the register tile.
 *
 * Goto's blocking: a block of B (2 MB) is copied into strips as wide as the tile, then block after
 * block of A (a quarter of the L2 cache) into strips as high as the tile; a tile then reads both
 * sequentially.  While the tiles of one block of A run, the next one is prefetched.  Copying costs
 * 0.1 to 0.2 ns an element, so 1 to 2 % at 512 x 512.
 *
 * An element of C is a sum of sums over at most DEPTH products, each one chain in the order of k;
 * how k is divided depends on k alone, so a value depends neither on its position nor on how C is
 * divided. */
#include "base/min_max.h"
#include "kernel/gemm.h"

#include "kernel/isa.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_PACKED(DECLARE)

/* The tile: 6 x 2 registers of sums, two of B and one of A, of 16. */
#define MR 6
#define NR (2 * VW)
/* Measured on products of 2048 rows (docs/PERFORMANCE.md).  With a depth of 512 a model 512 wide
 * needs one sum per element of C; a strip of B, 32 KB then, is read from the L2 cache without loss.
 */
#define DEPTH 512
/* A shorter sum allows wider and higher blocks. */
#define MOST_WIDTH 4096
/* Rows copied together, a cache line of each at a time. */
#define TOGETHER 8
/* Between strips of B, a cache line, so that they do not all start in one set. */
#define GAP 16
#define LINE ((int64_t)(64 / sizeof(real)))

#if VBYTES == 32 && !defined(HEED_DOUBLE)
#define EIGHT_WIDE 1
/* Eight registers, transposed. */
VINLINE void transpose(vreal r[8])
{
    vreal t[8], u[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 8
    for (int h = 0; h < 8; h += 4)
#pragma GCC unroll 8
        for (int i = 0; i < 2; i++) {
            u[h + 2 * i] = _mm256_shuffle_ps(t[h + i], t[h + i + 2], 0x44);
            u[h + 2 * i + 1] = _mm256_shuffle_ps(t[h + i], t[h + i + 2], 0xee);
        }
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}
#else
#define EIGHT_WIDE 0
VINLINE void transpose(vreal r[8])
{
    (void)r;
}
#endif

/* A matrix by the strides of its rows and columns, one of which is 1. */
typedef struct grid {
    const real *at;
    int64_t row, col;
} grid;

static grid part(grid g, int64_t i, int64_t j)
{
    return (grid){g.at + i * g.row + j * g.col, g.row, g.col};
}

/* ---- copying ---- */

/* k steps of `side` elements, of which `height` exist and the others are 0: element (i,p) to
 * to[p*side+i].  Slow, for edges. */
static void copy_edge(real *to, int64_t side, grid from, int64_t height, int64_t begin, int64_t k)
{
    for (int64_t p = begin; p < k; p++)
        for (int64_t i = 0; i < side; i++)
            to[p * side + i] = i < height ? from.at[i * from.row + p * from.col] : 0;
}

/* Eight rows of `from` (or six, with zeros for the others) transposed; in a strip of six, storing a
 * whole register writes two elements of the next step, which is stored later. */
VINLINE int64_t turn(int rows, real *to, int64_t side, grid from, int64_t k)
{
    int64_t p = 0;
    for (; EIGHT_WIDE && p + 8 <= k; p += 8) {
        vreal r[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            r[i] = i < rows ? vload(from.at + i * from.row + p) : (vreal){0};
        transpose(r);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            vstore(to + (p + i) * side, r[i]);
    }
    return p;
}

/* A (m,k) into strips of MR rows. */
static void copy_a(real *to, grid a, int64_t m, int64_t k)
{
    if (a.col == 1) {
        for (int64_t i = 0; i < m; i += MR) {
            int64_t rows = m - i < MR ? m - i : MR;
            int64_t done = rows == MR ? turn(MR, to + i * k, MR, part(a, i, 0), k) : 0;
            copy_edge(to + i * k, MR, part(a, i, 0), rows, done, k);
        }
        return;
    }
    for (int64_t p = 0; p < k; p += TOGETHER) {
        int64_t deep = k - p < TOGETHER ? k - p : TOGETHER;
        for (int64_t i = 0; i < m; i += MR) {
            real *strip = to + i * k + p * MR;
            grid from = part(a, i, p);
            if (!EIGHT_WIDE || m - i < VW) {
                copy_edge(strip, MR, from, m - i, 0, deep);
                continue;
            }
            for (int64_t q = 0; q < deep - 1; q++)
                vstore(strip + q * MR, vload(from.at + q * from.col));
            vstore_first(strip + (deep - 1) * MR, vload(from.at + (deep - 1) * from.col), MR);
        }
    }
}

static int64_t strip_size(int64_t k)
{
    return k * NR + GAP;
}

/* B (k,n) into strips of NR columns. */
static void copy_b(real *to, grid b, int64_t n, int64_t k)
{
    const int64_t size = strip_size(k);
    grid turned = {b.at, b.col, b.row};
    for (int64_t j = 0; b.col != 1 && j < n; j += VW) {
        real *half = to + j / NR * size + j % NR;
        int64_t done = 0;
        if (EIGHT_WIDE && n - j >= VW)
            done = turn(8, half, NR, part(turned, j, 0), k);
        for (int64_t p = done; p < k; p++)
            for (int64_t i = 0; i < VW; i++)
                half[p * NR + i] = i < n - j ? b.at[(j + i) * b.col + p * b.row] : 0;
    }
    for (int64_t p = 0; b.col == 1 && p < k; p += TOGETHER) {
        int64_t deep = k - p < TOGETHER ? k - p : TOGETHER;
        for (int64_t j = 0; j < n; j += VW) {
            real *half = to + j / NR * size + p * NR + j % NR;
            const real *from = b.at + p * b.row + j;
            for (int64_t q = 0; q < deep; q++)
                vstore(half + q * NR, vload_at(from + q * b.row, 0, n - j));
        }
    }
}

/* ---- tiles ---- */

/* What is done with the sums: C = f(beta C + sum + bias). */
typedef struct finish {
    real beta;
    const real *bias; /* of the first column, or NULL */
    bool relu;
} finish;

VINLINE vreal finished(vreal sum, const real *c, const real *bias, const finish *f)
{
    if (f->beta != 0)
        sum += vload(c);
    if (bias)
        sum += vload(bias);
    return f->relu ? vmax(vset(0), sum) : sum;
}

/* Part of a tile, through memory that holds a whole one. */
static void store_edge(real *c, int64_t ldc, real *sums, int64_t m, int64_t n, const real *bias,
                       const finish *f)
{
    real old[2 * VBYTES / sizeof(real)] = {0}, add[2 * VBYTES / sizeof(real)] = {0};
    if (bias)
        memcpy(add, bias, (size_t)n * sizeof *add);
    for (int64_t i = 0; i < m; i++) {
        if (f->beta != 0)
            memcpy(old, c + i * ldc, (size_t)n * sizeof *old);
        for (int64_t j = 0; j < NR; j += VW) {
            real *at = sums + i * NR + j;
            vstore(at, finished(vload(at), old + j, bias ? add + j : NULL, f));
        }
        memcpy(c + i * ldc, sums + i * NR, (size_t)n * sizeof *c);
    }
}

static __attribute__((noinline)) void tile(real *restrict c, int64_t ldc, const real *restrict a,
                                           const real *restrict b, int64_t m, int64_t n, int64_t k,
                                           const real *bias, const finish *f)
{
    vreal sum[MR][2];
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) {
        __builtin_prefetch(c + i * ldc, 1);
        sum[i][0] = sum[i][1] = (vreal){0};
    }
#pragma GCC unroll 4
    for (int64_t p = 0; p < k; p++) {
        vreal left = vload(b), right = vload(b + VW);
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) {
            vreal x = vset(a[i]);
            sum[i][0] += x * left;
            sum[i][1] += x * right;
        }
        a += MR;
        b += NR;
    }
    if (m == MR && n == NR) {
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) {
            real *to = c + i * ldc;
            vstore(to, finished(sum[i][0], to, bias, f));
            vstore(to + VW, finished(sum[i][1], to + VW, bias ? bias + VW : NULL, f));
        }
    } else {
        real sums[MR * 2 * VBYTES / sizeof(real)];
        memcpy(sums, sum, sizeof sums);
        store_edge(c, ldc, sums, m, n, bias, f);
    }
}

/* ---- blocks ---- */

/* Prefetching the next block of A, a few cache lines at a time. */
typedef struct prefetch {
    const real *row;
    int64_t to_next;      /* row */
    int64_t lines, line;  /* of a row */
    int64_t at_each_tile; /* 0: nothing to prefetch */
} prefetch;

static prefetch prefetch_begin(grid a, int64_t m, int64_t k, int64_t tiles)
{
    bool by_rows = a.col == 1;
    prefetch x = {.row = a.at, .to_next = by_rows ? a.row : a.col};
    x.lines = ((by_rows ? k : m) + LINE - 1) / LINE;
    x.at_each_tile = m > 0 ? ((by_rows ? m : k) * x.lines + tiles - 1) / tiles : 0;
    return x;
}

VINLINE void prefetch_some(prefetch *x)
{
    for (int64_t i = 0; i < x->at_each_tile; i++) {
        __builtin_prefetch(x->row + x->line * LINE, 0, 2);
        if (++x->line == x->lines) {
            x->line = 0;
            x->row += x->to_next;
        }
    }
}

/* C (m,n) = f(beta C + A B) for copied blocks. */
static void tiles(real *c, int64_t ldc, const real *a, const real *b, int64_t m, int64_t n,
                  int64_t k, const finish *f, prefetch *next)
{
    for (int64_t j = 0; j < n; j += NR)
        for (int64_t i = 0; i < m; i += MR) {
            prefetch_some(next);
            tile(c + i * ldc + j, ldc, a + i * k, b + j / NR * strip_size(k), heed__min(m - i, MR),
                 heed__min(n - j, NR), k, f->bias ? f->bias + j : NULL, f);
        }
}

/* Measured with 256 bits and fused multiply-adds.  On processors that have neither, or that this
 * build has no set for, a library is better than plain C. */
bool K(gemm_packed_pays)(void)
{
    return VBYTES >= 32;
}

/* Length of the sums that k is divided into: equal, whole registers, at most DEPTH. */
static int64_t depth_of(int64_t k)
{
    int64_t cuts = (k + DEPTH - 1) / DEPTH;
    return ((k + cuts - 1) / cuts + 7) / 8 * 8;
}

void K(gemm_packed)(const heed__product *p)
{
    const grid a = {p->a, p->trans_a ? 1 : p->lda, p->trans_a ? p->lda : 1};
    const grid b = {p->b, p->trans_b ? 1 : p->ldb, p->trans_b ? p->ldb : 1};
    real *a_copy = p->panels, *b_copy = p->panels + HEED_PANEL_A;
    const int64_t depth = depth_of(p->k);
    const int64_t width = heed__min(MOST_WIDTH, HEED_PANEL_B / depth / NR * NR);
    const int64_t rows = HEED_PANEL_A / depth / MR * MR;
    for (int64_t j = 0; j < p->n; j += width)
        for (int64_t top = 0, k; top < p->k; top += k) {
            int64_t n = heed__min(p->n - j, width);
            k = heed__min(p->k - top, depth);
            bool last = top + k == p->k;
            finish f = {top == 0 ? p->beta : 1, last && p->bias ? p->bias + j : NULL,
                        last && p->relu};
            copy_b(b_copy, part(b, top, j), n, k);
            for (int64_t i = 0, m; i < p->m; i += m) {
                m = heed__min(p->m - i, rows);
                copy_a(a_copy, part(a, i, top), m, k);
                prefetch next = prefetch_begin(part(a, i + m, top), heed__min(p->m - i - m, rows),
                                               k, ((n + NR - 1) / NR) * ((m + MR - 1) / MR));
                tiles(p->c + i * p->ldc + j, p->ldc, a_copy, b_copy, m, n, k, &f, &next);
            }
        }
}
