/* head_product.h: the products of one attention head, included by attention_head.c and
 * attention_tiles.c.
 *
 * In all of them rows of A are broadcast against strips of B: B (K, K^T, V, V^T, Q, dO) is first
 * copied into strips of two registers' width, or three for a last odd one, which lie in the order
 * in which the tile reads them.  That costs 1/T of a product and buys loads without gaps, tails or
 * the cache conflicts that rows 2 KB apart have; the scale is multiplied in on the way. */
#ifndef HEED_KERNEL_HEAD_PRODUCT_H
#define HEED_KERNEL_HEAD_PRODUCT_H

#include "kernel/attention_head.h"
#include "kernel/head_scores.h"
#include "kernel/micro.h"

#define WIDE_ROWS 4 /* of a tile three registers wide */

/* ---- strips ---- */

/* The columns of the next strip when `left` are left, padding included: never a single register at
 * the end of something wider, because a tile of 6 sums waits for its own additions. */
VINLINE int64_t strip_width(int64_t left)
{
    return left > 3 * VW ? 2 * VW : left > 2 * VW ? 3 * VW : left > VW ? 2 * VW : VW;
}

/* The size of (k,n) as strips; the strip that begins at column j is at j*k. */
VINLINE int64_t strips_size(int64_t k, int64_t n)
{
    return round_up(n, VW) * k;
}

/* B = scale x, x (k,n); zeros behind the last column. */
static void pack_rows(real *to, heed__matrix x, int64_t k, int64_t n, real scale)
{
    for (int64_t j = 0, w; j < n; j += w) {
        w = strip_width(n - j);
        const real *from = x.at + j;
        if (w == 2 * VW && n - j >= w)
            for (int64_t p = 0; p < k; p++, from += x.ld, to += 2 * VW) {
                vstore(to, scale * vload(from));
                vstore(to + VW, scale * vload(from + VW));
            }
        else
            for (int64_t p = 0; p < k; p++, from += x.ld)
                for (int64_t i = 0; i < w; i += VW, to += VW)
                    vstore(to, scale * vload_at(from, i, n - j));
    }
}

/* VW registers as a square matrix, transposed. */
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
VINLINE void transpose(vreal v[8])
{
    vreal a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            b[i + 2 * j] = _mm256_shuffle_ps(a[i + j], a[i + j + 2], 0x44);
            b[i + 2 * j + 1] = _mm256_shuffle_ps(a[i + j], a[i + j + 2], 0xEE);
        }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}
#else
VINLINE void transpose(vreal *v)
{
    for (int i = 0; i < VW; i++)
        for (int j = 0; j < i; j++) {
            real x = v[i][j];
            v[i][j] = v[j][i];
            v[j][i] = x;
        }
}
#endif

/* B = scale x^T, x (n,k). */
static void pack_columns(real *to, heed__matrix x, int64_t k, int64_t n, real scale)
{
    for (int64_t j = 0, w; j < n; to += w * k, j += w) {
        w = strip_width(n - j);
        for (int64_t i = 0; i < w; i += VW)
            for (int64_t p = 0; p < k; p += VW) {
                vreal square[VBYTES / sizeof(real)];
                for (int r = 0; r < VW; r++)
                    square[r] = j + i + r < n ? scale * vload_at(x.at + (j + i + r) * x.ld, p, k)
                                              : (vreal){0};
                transpose(square);
                for (int r = 0; r < VW; r++)
                    if (p + r < k)
                        vstore(to + (p + r) * w + i, square[r]);
            }
    }
}

/* ---- products ---- */

/* What the next call will read and write: the same rows of the next head or, after the last head,
 * the next segment's.  Few multiply-adds fall on each number when segments are short, so the next
 * rows are prefetched while this head computes: a few with every tile. */
typedef struct ahead {
    struct {
        const char *at;
        int64_t rows, step, bytes;
    } part[7];
    int parts, now;
} ahead;

/* Prefetches the cache lines of FETCH_ROWS rows. */
#define FETCH_ROWS 4
VINLINE void fetch(ahead *f)
{
    for (int i = 0; i < FETCH_ROWS && f->now < f->parts; i++) {
        for (int64_t line = 0; line < f->part[f->now].bytes; line += 64)
            __builtin_prefetch(f->part[f->now].at + line);
        f->part[f->now].at += f->part[f->now].step;
        if (--f->part[f->now].rows == 0)
            f->now++;
    }
}

/* What causality leaves out of C (m,n) = A B, with query i0 the first of the block:
 *   COLUMNS  C is scores: row i needs columns 0..i0+i
 *   UPTO     A is weights: row i is zero after column i0+i
 *   FROM     A is weights^T: row j is zero before column j-i0 */
typedef enum triangle { WHOLE, COLUMNS, UPTO, FROM } triangle;

#define WIDE_CASE(rows)                                                                            \
    case rows:                                                                                     \
        if (n == 3 * VW)                                                                           \
            micro_body(rows, 3, true, c, ldc, a, a_row, a_col, b, 3 * VW, VW, k, beta);            \
        else                                                                                       \
            micro_body(rows, 3, false, c, ldc, a, a_row, a_col, b, 3 * VW, n - 2 * VW, k, beta);   \
        break;

static __attribute__((noinline)) void wide_tile(real *c, int64_t ldc, const real *a, int64_t a_row,
                                                int64_t a_col, const real *b, int64_t m, int64_t n,
                                                int64_t k, real beta)
{
    switch (m) {
        WIDE_CASE(1)
        WIDE_CASE(2)
        WIDE_CASE(3)
        WIDE_CASE(4)
    }
}

/* f: what to prefetch on the way, or NULL.
 * C = beta C + A B, B (depth,n) in strips, of which k rows from row `first` on are used. */
static void product(ahead *f, heed__matrix c, const real *a, int64_t a_row, int64_t a_col,
                    const real *b, int64_t depth, int64_t first, int64_t m, int64_t n, int64_t k,
                    real beta, triangle kind, int64_t i0)
{
    for (int64_t j = 0, w; j < n; b += w * depth, j += w) {
        w = strip_width(n - j);
        int64_t width = least(w, n - j), rows = w == 3 * VW ? WIDE_ROWS : MICRO_ROWS;
        int64_t tiles = (m + rows - 1) / rows;
        for (int64_t i = 0; i < tiles; i++) {
            int64_t top = micro_edge(m, tiles, i), bottom = micro_edge(m, tiles, i + 1);
            int64_t from = 0, to = k;
            if (f)
                fetch(f);
            if (kind == COLUMNS && j >= i0 + bottom)
                continue;
            if (kind == UPTO)
                to = least(k, i0 + bottom);
            if (kind == FROM && top > i0)
                from = top - i0;
            real *tile = c.at + top * c.ld + j;
            const real *a_from = a + top * a_row + from * a_col, *b_from = b + (first + from) * w;
            if (w == 3 * VW)
                wide_tile(tile, c.ld, a_from, a_row, a_col, b_from, bottom - top, width, to - from,
                          beta);
            else
                micro_tile(tile, c.ld, a_from, a_row, a_col, b_from, w, bottom - top, width,
                           to - from, beta);
        }
    }
}

#endif
