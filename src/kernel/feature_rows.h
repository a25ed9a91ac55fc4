/* feature_rows.h: chunks of rows, and features.h on them and on single rows, included by
 * linear_head.c and delta_head.c.
 *
 * Products with the directions run over a chunk at once; the directions are packed once a head. */
#ifndef HEED_KERNEL_FEATURE_ROWS_H
#define HEED_KERNEL_FEATURE_ROWS_H

#include "kernel/features.h"
#include "kernel/head_product.h"
#include "kernel/isa.h"
#include "kernel/vecmath.h"

#define CHUNK 48
#define UNIT_SUM_EPS ((real)1e-6)
/* Keys have no maximum taken away, which later keys would change: this keeps their sums finite. */
#define LARGEST_EXPONENT ((real)60)

/* ---- chunks ---- */

VINLINE int64_t left(int64_t n, int64_t at)
{
    return n <= at ? 0 : least(n - at, CHUNK);
}

VINLINE heed__matrix rows_of(heed__matrix x, int64_t at)
{
    return (heed__matrix){x.at + at * x.ld, x.ld};
}

VINLINE heed__matrix dense(real *x, int64_t ld)
{
    return (heed__matrix){x, ld};
}

/* C (m,n) = beta C + A B, B (k,n) plain or (n,k) transposed. */
static void times(real *strips, heed__matrix to, const real *a, int64_t a_row, int64_t a_col,
                  heed__matrix b, bool transposed, int64_t m, int64_t n, int64_t k, real beta,
                  triangle kind)
{
    if (m == 0 || n == 0 || k == 0)
        return;
    if (transposed)
        pack_columns(strips, b, k, n, 1);
    else
        pack_rows(strips, b, k, n, 1);
    product(NULL, to, a, a_row, a_col, strips, k, 0, m, n, k, beta, kind, 0);
}

VINLINE int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- features: what a head has of them ---- */

/* Directions as both products read them, and room for a chunk of rows of x's width. */
typedef struct mapper {
    const heed__features *f;
    int64_t columns;    /* of phi */
    int64_t flat_ld;    /* Dk, rounded up */
    real scale, square; /* positive: s, s^2; norm: 1/sqrt(M) */
    real norm;
    real *across, *down, *flat, *row;
} mapper;

static int64_t mapper_size(const heed__features *f)
{
    const int64_t packed =
        f->direction ? strips_size(f->d, f->count) + strips_size(f->count, f->d) : 0;
    return packed + CHUNK * round_up(f->d, VW) + round_up(4 * f->d, VW);
}

static mapper mapper_new(const heed__features *f, real *room)
{
    mapper m = {.f = f, .columns = heed__feature_columns(f), .flat_ld = round_up(f->d, VW)};
    const bool positive = f->kind == HEED__FEATURES_POSITIVE;
    m.scale = positive ? (real)pow((double)f->d, -0.25) : 1;
    m.square = m.scale * m.scale;
    m.flat = room;
    m.row = m.flat + CHUNK * m.flat_ld;
    if (!f->direction)
        return m;
    m.norm = (real)(1 / sqrt((double)f->count));
    m.across = m.row + round_up(4 * f->d, VW);
    m.down = m.across + strips_size(f->d, f->count);
    const heed__matrix w = {(real *)f->direction, f->d};
    pack_columns(m.across, w, f->d, f->count, m.scale);
    pack_rows(m.down, w, f->count, f->d, m.scale);
    return m;
}

/* ---- one row ---- */

VINLINE vreal elu1(vreal x)
{
    return vmax((vreal){0}, x) + vexp(vmin((vreal){0}, x));
}

VINLINE real dot_row(const real *a, const real *b, int64_t n)
{
    vreal sum = {0};
    for (int64_t j = 0; j < n; j += VW)
        sum += vload_at(a, j, n) * vload_at(b, j, n);
    return vsum(sum);
}

VINLINE void scale_row(real *x, real by, int64_t n)
{
    for (int64_t j = 0; j < n; j += VW)
        vstore_at(x, vload_at(x, j, n) * by, j, n);
}

/* r (4 Dk): [max(x, 0), max(-x, 0)] twice, so that r_{i-n} is read without a division. */
static void rectify(real *r, const real *x, int64_t d)
{
    for (int64_t j = 0; j < d; j += VW) {
        const vreal v = vload_at(x, j, d), zero = {0};
        vstore_at(r, vmax(zero, v), j, d);
        vstore_at(r + d, vmax(zero, -v), j, d);
    }
    memcpy(r + 2 * d, r, (size_t)(2 * d) * sizeof *r);
}

static void dpfp_row(real *to, const real *r, int64_t d, int64_t nu)
{
    const real *now = r + 2 * d;
    for (int64_t n = 1; n <= nu; n++, to += 2 * d)
        for (int64_t j = 0; j < 2 * d; j += VW)
            vstore_at(to, vload_at(now, j, 2 * d) * vload_at(now - n, j, 2 * d), j, 2 * d);
}

/* w_i.x s -> phi, in place. */
static void positive_row(real *h, const real *x, const mapper *m, bool query)
{
    const int64_t n = m->f->count;
    real off = m->square / 2 * dot_row(x, x, m->f->d);
    if (query && !m->f->unit_sum) { /* its factor does not change a quotient */
        vreal top = vset(-INFINITY);
        for (int64_t j = 0; j < n; j += VW)
            top = vmax(top,
                       n - j >= VW ? vload(h + j) : vselect(vfirst(n - j), vload_at(h, j, n), top));
        off = vlargest(top);
    }
    for (int64_t j = 0; j < n; j += VW) {
        const vreal e = vexp(vmin(vset(LARGEST_EXPONENT), vload_at(h, j, n) - off));
        vstore_at(h, e * m->norm, j, n);
    }
}

static void waves_row(real *h, const mapper *m)
{
    const int64_t n = m->f->count;
    for (int64_t j = 0; j < n; j += VW) {
        const vreal x = vload_at(h, j, n);
        vstore_at(h + n, vcos(x) * m->norm, j, n);
        vstore_at(h, vsin(x) * m->norm, j, n);
    }
}

/* What is done to a row once its products with the directions are there. */
static void finish_row(real *to, const real *x, const mapper *m, bool query)
{
    const int64_t d = m->f->d;
    switch (m->f->kind) {
    case HEED__FEATURES_POSITIVE:
        positive_row(to, x, m, query);
        break;
    case HEED__FEATURES_WAVES:
        waves_row(to, m);
        break;
    case HEED__FEATURES_DPFP:
        rectify(m->row, x, d);
        dpfp_row(to, m->row, d, m->f->count);
        break;
    default:
        for (int64_t j = 0; j < d; j += VW)
            vstore_at(to, elu1(vload_at(x, j, d)), j, d);
    }
}

/* 1/(sum of phi + eps), with which phi is multiplied; 1 where it is not. */
static real make_unit_sum(real *to, const mapper *m)
{
    if (!m->f->unit_sum)
        return 1;
    vreal sum = {0};
    for (int64_t j = 0; j < m->columns; j += VW)
        sum += vload_at(to, j, m->columns);
    const real inverse = 1 / (vsum(sum) + UNIT_SUM_EPS);
    scale_row(to, inverse, m->columns);
    return inverse;
}

/* phi of one row, without packed directions; row (4 Dk). */
static void map_one(const heed__features *f, real *to, const real *x, bool query, real *row)
{
    mapper m = {.f = f, .columns = heed__feature_columns(f), .row = row};
    m.scale = f->kind == HEED__FEATURES_POSITIVE ? (real)pow((double)f->d, -0.25) : 1;
    m.square = m.scale * m.scale;
    m.norm = f->direction ? (real)(1 / sqrt((double)f->count)) : 1;
    for (int64_t i = 0; f->direction && i < f->count; i++)
        to[i] = m.scale * dot_row(f->direction + i * f->d, x, f->d);
    finish_row(to, x, &m, query);
    make_unit_sum(to, &m);
}

/* ---- a chunk ---- */

/* Rows of phi(x) without gaps, `ld` apart; inverse (n): what make_unit_sum gave. */
static void map_rows(const mapper *m, real *to, int64_t ld, heed__matrix x, int64_t n, bool query,
                     real *inverse)
{
    const heed__features *f = m->f;
    if (f->direction && n)
        product(NULL, (heed__matrix){to, ld}, x.at, x.ld, 1, m->across, f->d, 0, n, f->count, f->d,
                0, WHOLE, 0);
    for (int64_t r = 0; r < n; r++) {
        finish_row(to + r * ld, x.at + r * x.ld, m, query);
        inverse[r] = make_unit_sum(to + r * ld, m);
    }
}

/* phi = raw inverse, so d raw = (d phi - d phi.phi) inverse; in place.  Where it is multiplied with
 * raw next, phi stands there and inverse is 1. */
static void unit_sum_back(real *d_phi, const real *phi, const mapper *m, real inverse)
{
    const real along = dot_row(d_phi, phi, m->columns);
    for (int64_t j = 0; j < m->columns; j += VW)
        vstore_at(d_phi, (vload_at(d_phi, j, m->columns) - along) * inverse, j, m->columns);
}

/* phi_{n,i} = r_i r_{i-n}: both get its gradient; then x_i from r_i and r_{Dk+i}. */
static void dpfp_back(real *y, const real *d_phi, const real *x, const mapper *m)
{
    const int64_t d = m->f->d, w = 2 * d;
    real *r = m->row;
    rectify(r, x, d);
    for (int64_t i = 0; i < d; i++)
        for (int half = 0; half < 2; half++) {
            const int64_t at = i + half * d;
            real sum = 0;
            for (int64_t n = 1; n <= m->f->count; n++) {
                const int64_t behind = at + n < w ? at + n : at + n - w;
                sum += d_phi[(n - 1) * w + at] * r[w + at - n] +
                       d_phi[(n - 1) * w + behind] * r[behind];
            }
            if (half ? x[i] < 0 : x[i] > 0)
                y[i] += half ? -sum : sum;
        }
}

/* d phi -> the gradient of w_i.x s, in place; its sum. */
static real products_back(real *d_phi, const real *phi, const mapper *m)
{
    const int64_t n = m->f->count;
    vreal sum = {0};
    for (int64_t j = 0; j < n; j += VW) {
        vreal u = vload_at(d_phi, j, n);
        if (m->f->kind == HEED__FEATURES_POSITIVE)
            u *= vload_at(phi, j, n);
        else
            u = u * vload_at(phi + n, j, n) - vload_at(d_phi + n, j, n) * vload_at(phi, j, n);
        sum += u;
        vstore_at(d_phi, u, j, n);
    }
    return vsum(sum);
}

/* y += the gradient of x, from that of phi, which is overwritten. */
static void map_back(const mapper *m, heed__matrix y, real *d_phi, const real *phi, int64_t ld,
                     heed__matrix x, int64_t n, const real *inverse)
{
    const heed__features *f = m->f;
    const int64_t d = f->d;
    const bool positive = f->kind == HEED__FEATURES_POSITIVE;
    real off[CHUNK];
    for (int64_t r = 0; r < n; r++) {
        const real *from = x.at + r * x.ld;
        real *to = y.at + r * y.ld, *up = d_phi + r * ld;
        if (f->unit_sum)
            unit_sum_back(up, phi + r * ld, m, f->direction ? 1 : inverse[r]);
        if (f->direction) {
            const real sum = products_back(up, phi + r * ld, m);
            off[r] = positive ? m->square * sum : 0;
        } else if (f->kind == HEED__FEATURES_DPFP) {
            dpfp_back(to, up, from, m);
        } else {
            for (int64_t j = 0; j < d; j += VW) {
                const vreal slope = vexp(vmin((vreal){0}, vload_at(from, j, d)));
                vstore_at(to, vload_at(to, j, d) + vload_at(up, j, d) * slope, j, d);
            }
        }
    }
    if (!f->direction || !n)
        return;
    product(NULL, (heed__matrix){m->flat, m->flat_ld}, d_phi, ld, 1, m->down, f->count, 0, n, d,
            f->count, 0, WHOLE, 0);
    for (int64_t r = 0; r < n; r++)
        for (int64_t j = 0; j < d; j += VW) {
            real *to = y.at + r * y.ld;
            const vreal up =
                vload_at(m->flat + r * m->flat_ld, j, d) - off[r] * vload_at(x.at + r * x.ld, j, d);
            vstore_at(to, vload_at(to, j, d) + up, j, d);
        }
}

#endif
