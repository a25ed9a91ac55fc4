/* reduce_rows.c: see reduce_rows.h.  Four registers of sums at once, because an addition has a
 * latency of four cycles and two can start in each. */
#include "kernel/reduce_rows.h"
#include "kernel/isa.h"
#include "kernel/kernels.h"
#include "kernel/vecmath.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_REDUCE(DECLARE)

/* The sum of `expression` over i in [0,n), where AT(p) is the register at p[i], zeros beyond the
 * end. */
#define AT(p) vload_at(p, i, n)
#define SUM(result, expression)                                                                    \
    do {                                                                                           \
        vreal s0_ = {0}, s1_ = {0}, s2_ = {0}, s3_ = {0};                                          \
        int64_t i = 0;                                                                             \
        for (; i + 4 * VW <= n; i += VW) {                                                         \
            s0_ += (expression);                                                                   \
            i += VW;                                                                               \
            s1_ += (expression);                                                                   \
            i += VW;                                                                               \
            s2_ += (expression);                                                                   \
            i += VW;                                                                               \
            s3_ += (expression);                                                                   \
        }                                                                                          \
        for (; i < n; i += VW)                                                                     \
            s0_ += (expression);                                                                   \
        result = vsum((s0_ + s1_) + (s2_ + s3_));                                                  \
    } while (0)

real K(row_sum)(const real *x, int64_t n)
{
    real s;
    SUM(s, AT(x));
    return s;
}

real K(row_dot)(const real *a, const real *b, int64_t n)
{
    real s;
    SUM(s, AT(a) * AT(b));
    return s;
}

/* The register at x[i], -inf beyond the end: neutral for a maximum and for a sum of exp. */
VINLINE vreal load_or_lowest(const real *x, int64_t i, int64_t n)
{
    if (n - i >= VW)
        return vload(x + i);
    return vselect(vfirst(n - i), vload_first(x + i, n - i), vset((real)-INFINITY));
}

/* NaN if one of them is. */
static real largest(const real *x, int64_t n)
{
    vreal m = vset((real)-INFINITY), unordered = {0};
    for (int64_t i = 0; i < n; i += VW) {
        const vreal v = load_or_lowest(x, i, n);
        m = vmax(m, v);
        unordered = vselect(v == v, unordered, v);
    }
    const real bad = vsum(unordered);
    return bad == bad ? vlargest(m) : bad;
}

real K(row_max)(const real *x, int64_t n, int32_t *index)
{
    real m = largest(x, n);
    int64_t i = 0;
    while (i < n && x[i] != m && (m == m || x[i] == x[i]))
        i++;
    *index = i < n ? (int32_t)i : 0;
    return m;
}

real K(row_logsumexp)(const real *x, int64_t n)
{
    real m = largest(x, n), s;
    if (isinf(m))
        return m;
    SUM(s, vexp(load_or_lowest(x, i, n) - m));
    return m + (real)log((double)s);
}

void K(row_exp_grad)(real *dx, const real *x, real y, real dy, int64_t n)
{
    if (isinf(y))
        return;
    for (int64_t i = 0; i < n; i += VW)
        vstore_at(dx, AT(dx) + dy * vexp(AT(x) - y), i, n);
}

/* ---- columns ---- */

void K(column_sum)(real *y, const real *x, int64_t ld, int64_t rows, int64_t n)
{
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t r = 0; r < rows; r++, x += ld)
        for (int64_t i = 0; i < n; i += VW)
            vstore_at(y, AT(y) + AT(x), i, n);
}

void K(column_max)(real *y, int32_t *index, const real *x, int64_t ld, int64_t rows, int64_t n)
{
    memcpy(y, x, (size_t)n * sizeof *y);
    memset(index, 0, (size_t)n * sizeof *index);
    for (int64_t r = 1; r < rows; r++) {
        x += ld;
        for (int64_t j = 0; j < n; j++) {
            bool more = !(x[j] <= y[j]) && y[j] == y[j]; /* a NaN is the largest, and stays */
            index[j] = more ? (int32_t)r : index[j];
            y[j] = more ? x[j] : y[j];
        }
    }
}

/* The largest of `rows` elements of column i, or 0 if that is not finite: subtracted from the
 * exponents. */
VINLINE vreal column_shift(const real *x, int64_t ld, int64_t rows, int64_t i, int64_t n)
{
    vreal m = vset((real)-INFINITY);
    for (int64_t r = 0; r < rows; r++, x += ld)
        m = vmax(m, AT(x));
    return vselect(vabs(m) < (real)INFINITY, m, vset(0));
}

void K(column_logsumexp)(real *y, const real *x, int64_t ld, int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < n; i += VW) {
        vreal m = column_shift(x, ld, rows, i, n), s = {0};
        for (int64_t r = 0; r < rows; r++)
            s += vexp(AT(x + r * ld) - m);
        vstore_at(y, m + vlog(s), i, n);
    }
}

void K(column_exp_grad)(real *dx, const real *x, int64_t ld, const real *y, const real *dy,
                        int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += ld, dx += ld)
        for (int64_t i = 0; i < n; i += VW) {
            vreal shift = AT(y);
            vreal g = AT(dy) * vexp(AT(x) - shift);
            vint finite = vabs(shift) < (real)INFINITY;
            vstore_at(dx, AT(dx) + (vreal)((vint)g & finite), i, n);
        }
}

void K(column_softmax)(real *y, int64_t ldy, const real *x, int64_t ldx, int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < n; i += VW) {
        vreal m = column_shift(x, ldx, rows, i, n), s = {0};
        for (int64_t r = 0; r < rows; r++) {
            vreal e = vexp(AT(x + r * ldx) - m);
            vstore_at(y + r * ldy, e, i, n);
            s += e;
        }
        vreal inverse = vselect(s == (real)0, vset(0), (real)1 / s);
        for (int64_t r = 0; r < rows; r++)
            vstore_at(y + r * ldy, AT(y + r * ldy) * inverse, i, n);
    }
}

void K(column_softmax_grad)(real *dx, int64_t ldx, const real *dy, const real *y, int64_t ldy,
                            int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < n; i += VW) {
        vreal s = {0};
        for (int64_t r = 0; r < rows; r++)
            s += AT(dy + r * ldy) * AT(y + r * ldy);
        for (int64_t r = 0; r < rows; r++) {
            vreal g = AT(y + r * ldy) * (AT(dy + r * ldy) - s);
            vstore_at(dx + r * ldx, AT(dx + r * ldx) + g, i, n);
        }
    }
}
