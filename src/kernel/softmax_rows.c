/* softmax_rows.c: see softmax_rows.h.  Three passes over a row that stays in cache: maximum,
 * exponentials and their sum, scaling.  Lanes beyond the end of a row are masked out. */
#include "kernel/softmax_rows.h"

#include "kernel/isa.h"
#include "kernel/softmax_row.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_SOFTMAX(DECLARE)

/* dx = v, or dx += v. */
VINLINE void put(real *dx, vreal v, int64_t i, int64_t n, bool assign)
{
    vstore_at(dx, assign ? v : v + vload_at(dx, i, n), i, n);
}

void K(softmax_rows)(real *y, const real *x, int64_t ldx, int64_t rows, int64_t cols)
{
    for (; rows > 0; rows--, x += ldx, y += cols) {
        real max = row_max(x, cols);
        if (max == -INFINITY) { /* zeros; row_max may have passed by a NaN */
            for (int64_t i = 0; i < cols; i += VW) {
                const vreal v = vload_at(x, i, cols);
                vstore_at(y, vselect(v == v, vset(0), v), i, cols);
            }
            continue;
        }
        const vreal k = vset(1 / exp_sum(y, x, max, cols));
        for (int64_t i = 0; i < cols; i += VW)
            vstore_at(y, vload_at(y, i, cols) * k, i, cols);
    }
}

void K(softmax_backward)(real *dx, int64_t lddx, const real *dy, const real *y, int64_t rows,
                         int64_t cols, bool assign)
{
    for (; rows > 0; rows--, dx += lddx, dy += cols, y += cols) {
        vreal sum = {0};
        for (int64_t i = 0; i < cols; i += VW)
            sum += vload_at(dy, i, cols) * vload_at(y, i, cols);
        const vreal dot = vset(vsum(sum));
        for (int64_t i = 0; i < cols; i += VW)
            put(dx, vload_at(y, i, cols) * (vload_at(dy, i, cols) - dot), i, cols, assign);
    }
}

void K(log_softmax_rows)(real *y, const real *x, int64_t ldx, int64_t rows, int64_t cols)
{
    for (; rows > 0; rows--, x += ldx, y += cols) {
        real max = row_max(x, cols);
        bool masked = max == -INFINITY;
        const vreal m = vset(masked ? 0 : max);
        const vreal log_sum = vset(masked ? 0 : (real)log((double)exp_sum(NULL, x, max, cols)));
        for (int64_t i = 0; i < cols; i += VW)
            vstore_at(y, vload_at(x, i, cols) - m - log_sum, i, cols);
    }
}

void K(log_softmax_backward)(real *dx, int64_t lddx, const real *dy, const real *y, int64_t rows,
                             int64_t cols, bool assign)
{
    for (; rows > 0; rows--, dx += lddx, dy += cols, y += cols) {
        if (row_max(y, cols) == -INFINITY) {
            if (assign)
                memset(dx, 0, (size_t)cols * sizeof(real));
            continue;
        }
        vreal sum = {0};
        for (int64_t i = 0; i < cols; i += VW)
            sum += vload_at(dy, i, cols);
        const vreal total = vset(vsum(sum));
        for (int64_t i = 0; i < cols; i += VW)
            put(dx, vload_at(dy, i, cols) - vexp(vload_at(y, i, cols)) * total, i, cols, assign);
    }
}

/* A vocabulary is large: sums are computed in blocks, and the blocks added in double. */
#define BLOCK 1024

/* sum of max - x[i] */
static double row_distance(const real *x, real max, int64_t v)
{
    const vreal m = vset(max);
    double distance = 0;
    for (int64_t begin = 0; begin < v; begin += BLOCK) {
        const int64_t end = v - begin < BLOCK ? v : begin + BLOCK;
        vreal part = {0};
        for (int64_t i = begin; i < end; i += VW)
            part += vselect(live(i, end), m - vload_at(x, i, end), vset(0));
        distance += (double)vsum(part);
    }
    return distance;
}

/* e, if not NULL, receives exp(x - max), and may be x. */
VINLINE heed__entropy entropy(real *e, const real *x, int64_t v, int32_t target, double smoothing)
{
    heed__entropy row = {.max = row_max(x, v)};
    if (row.max == -INFINITY) { /* every logit is -inf: p = 0 everywhere */
        row.loss = row.nll = INFINITY;
        return row;
    }
    /* Only with smoothing, because 0 times a masked -inf is NaN. */
    const double distance = smoothing == 0 ? 0 : row_distance(x, row.max, v);
    const double to_target = (double)row.max - (double)x[target];
    double sum = 0;
    for (int64_t i = 0; i < v; i += BLOCK)
        sum += (double)exp_sum(e ? e + i : NULL, x + i, row.max, v - i < BLOCK ? v - i : BLOCK);
    row.log_sum = (real)log(sum);
    row.loss = row.nll = log(sum) + to_target;
    if (smoothing != 0)
        row.loss = (1 - smoothing) * row.nll + smoothing * (log(sum) + distance / (double)v);
    return row;
}

heed__entropy K(cross_entropy_row)(const real *x, int64_t v, int32_t target, double smoothing)
{
    return entropy(NULL, x, v, target, smoothing);
}

heed__entropy K(cross_entropy_both)(real *x, int64_t v, int32_t target, double smoothing,
                                    double scale)
{
    heed__entropy row = entropy(x, x, v, target, smoothing);
    if (row.max == -INFINITY) {
        memset(x, 0, (size_t)v * sizeof(real));
        return row;
    }
    const vreal k = vset((real)(scale * exp(-(double)row.log_sum)));
    const vreal q = vset((real)(scale * smoothing / (double)v));
    for (int64_t i = 0; i < v; i += VW)
        vstore_at(x, k * vload_at(x, i, v) - q, i, v);
    x[target] -= (real)(scale * (1 - smoothing));
    return row;
}

void K(cross_entropy_grad)(real *dx, const real *x, const heed__entropy *row, int64_t v,
                           int32_t target, double smoothing, double scale, bool assign)
{
    if (row->max == -INFINITY) {
        if (assign)
            memset(dx, 0, (size_t)v * sizeof(real));
        return;
    }
    const vreal m = vset(row->max), log_sum = vset(row->log_sum);
    const vreal k = vset((real)scale), q = vset((real)(scale * smoothing / (double)v));
    for (int64_t i = 0; i < v; i += VW)
        put(dx, k * vexp(vload_at(x, i, v) - m - log_sum) - q, i, v, assign);
    dx[target] -= (real)(scale * (1 - smoothing));
}
