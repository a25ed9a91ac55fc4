/* norm.c: see norm.h.  A row (d up to a few thousand) stays in the first-level cache between the
 * passes over it, so memory is touched once; the next row is asked for while this one is worked on,
 * because the passes that stay in cache would otherwise leave the memory idle. */
#include "kernel/norm.h"

#include "kernel/dropout.h"
#include "kernel/isa.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_NORM(DECLARE)
HEED_KERNELS_DROPOUT(DECLARE)

#define LINE (64 / (int64_t)sizeof(real)) /* reals to a cache line */

VINLINE void fetch(const real *p, int64_t i, int64_t n)
{
    for (int64_t j = 0; j < 4 * VW; j += LINE)
        if (p && i + j < n)
            __builtin_prefetch(p + i + j);
}

/* sum of s = x + mask r (r NULL: x); with r, s is stored. */
static real row_sum(real *s, const real *x, const real *r, const real *mask, int64_t d)
{
    vreal sum[4] = {{0}, {0}, {0}, {0}};
    int64_t i = 0;
    if (!r) {
        for (; i + 4 * VW <= d; i += 4 * VW)
            for (int u = 0; u < 4; u++)
                sum[u] += vload(x + i + u * VW);
        for (; i < d; i += VW)
            sum[0] += vload_at(x, i, d);
    } else {
        for (; i + 4 * VW <= d; i += 4 * VW)
            for (int u = 0; u < 4; u++) {
                int64_t j = i + u * VW;
                vreal v = vload(x + j) + vload(mask + j) * vload(r + j);
                vstore(s + j, v);
                sum[u] += v;
            }
        for (; i < d; i += VW) {
            vreal v = vload_at(x, i, d) + vload_at(mask, i, d) * vload_at(r, i, d);
            vstore_at(s, v, i, d);
            sum[0] += v;
        }
    }
    return vsum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* sum (s - mean)^2; meanwhile the lines of the next row are fetched. */
static real row_squares(const real *s, real mean, int64_t d, const real *next_x, const real *next_r)
{
    vreal sum[4] = {{0}, {0}, {0}, {0}};
    const vreal m = vset(mean);
    int64_t i = 0;
    for (; i + 4 * VW <= d; i += 4 * VW) {
        fetch(next_x, i, d);
        fetch(next_r, i, d);
        for (int u = 0; u < 4; u++) {
            vreal v = vload(s + i + u * VW) - m;
            sum[u] += v * v;
        }
    }
    for (; i < d; i += VW) {
        vreal v = vload_at(s, i, d) - m;
        v = vselect(vfirst(d - i < VW ? d - i : VW), v, vset(0));
        sum[0] += v * v;
    }
    return vsum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

void K(norm_forward)(const heed__norm *n, int64_t begin, int64_t end, real *scratch)
{
    const int64_t d = n->d;
    real *mask = scratch;
    if (n->rate == 0)
        K(dropout_mask)(mask, &n->rng, 0, d, 0);
    for (int64_t row = begin; row < end; row++) {
        const real *x = n->x + row * n->ldx, *r = n->r ? n->r + row * n->ldr : NULL;
        const bool last = row + 1 == end;
        real *y = n->y + row * d;
        if (r && n->rate > 0)
            K(dropout_mask)(mask, &n->rng, (uint64_t)(row * d), d, n->rate);
        const real *s = r ? y : x;
        real sum = r || n->centred ? row_sum(y, x, r, mask, d) : 0;
        real mean = n->centred ? sum / (real)d : 0;
        real squares =
            row_squares(s, mean, d, last ? NULL : x + n->ldx, last || !r ? NULL : r + n->ldr);
        real rstd = (real)(1.0 / sqrt((double)squares / (double)d + n->eps));
        if (n->mean)
            n->mean[row] = mean;
        if (n->rstd)
            n->rstd[row] = rstd;
        const vreal m = vset(mean), k = vset(rstd);
        for (int64_t i = 0; i < d; i += VW) {
            vreal v = (vload_at(s, i, d) - m) * k * vload_at(n->gain, i, d);
            vstore_at(y, n->bias ? v + vload_at(n->bias, i, d) : v, i, d);
        }
    }
}

/* With g = gain dy, h = (s - mean) rstd and the means over the row:
 *   ds = rstd (g - mean(g) - h mean(g h)),  dx += ds,  dr += mask ds,  dgain += dy h,  dbias += dy
 * mean(g) is absent where the row is not centred. */
void K(norm_backward)(const heed__norm *n, int64_t begin, int64_t end, real *scratch)
{
    const int64_t d = n->d;
    real *mask = scratch, *sum = scratch + d;
    real *dgain = HEED_NORM_DGAIN(scratch, d), *dbias = HEED_NORM_DBIAS(scratch, d);
    memset(dgain, 0, 2 * (size_t)d * sizeof(real));
    if (n->rate == 0)
        K(dropout_mask)(mask, &n->rng, 0, d, 0);
    for (int64_t row = begin; row < end; row++) {
        const real *x = n->x + row * n->ldx, *r = n->r ? n->r + row * n->ldr : NULL;
        const real *dy = n->dy + row * d;
        const bool last = row + 1 == end;
        if (r && n->rate > 0)
            K(dropout_mask)(mask, &n->rng, (uint64_t)(row * d), d, n->rate);
        const real *s = r ? sum : x;
        const vreal m = vset(n->centred ? n->mean[row] : 0), k = vset(n->rstd[row]);
        vreal sum_g = {0}, sum_gh = {0};
        for (int64_t i = 0; i < d; i += VW) {
            vreal v = vload_at(x, i, d), g = vload_at(dy, i, d);
            if (r) {
                v += vload_at(mask, i, d) * vload_at(r, i, d);
                vstore_at(sum, v, i, d);
            }
            v = (v - m) * k;
            vstore_at(dgain, vload_at(dgain, i, d) + g * v, i, d);
            vstore_at(dbias, vload_at(dbias, i, d) + g, i, d);
            g *= vload_at(n->gain, i, d);
            sum_g += g;
            sum_gh += g * v;
        }
        const vreal c = vset(n->centred ? vsum(sum_g) / (real)d : 0);
        const vreal ch = vset(vsum(sum_gh) / (real)d);
        real *dx = n->dx ? n->dx + row * n->lddx : NULL, *dr = n->dr ? n->dr + row * n->lddr : NULL;
        for (int64_t i = 0; i < d; i += VW) {
            if (!last && i % LINE == 0) {
                __builtin_prefetch(x + n->ldx + i);
                __builtin_prefetch(dy + d + i);
                if (r)
                    __builtin_prefetch(r + n->ldr + i);
            }
            vreal h = (vload_at(s, i, d) - m) * k;
            vreal ds = k * (vload_at(dy, i, d) * vload_at(n->gain, i, d) - c - h * ch);
            if (dx)
                vstore_at(dx, n->assign_x ? ds : vload_at(dx, i, d) + ds, i, d);
            if (dr) {
                ds *= vload_at(mask, i, d);
                vstore_at(dr, n->assign_r ? ds : vload_at(dr, i, d) + ds, i, d);
            }
        }
    }
}

/* ---- columns ---- */

/* Two passes, in double: the mean first, then the squares around it. */
void K(column_moments)(double *mean, double *variance, const real *x, int64_t ldx, int64_t rows,
                       int64_t begin, int64_t end)
{
    memset(mean + begin, 0, (size_t)(end - begin) * sizeof *mean);
    memset(variance + begin, 0, (size_t)(end - begin) * sizeof *variance);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = begin; j < end; j++)
            mean[j] += (double)x[i * ldx + j];
    for (int64_t j = begin; j < end; j++)
        mean[j] /= (double)rows;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = begin; j < end; j++) {
            double v = (double)x[i * ldx + j] - mean[j];
            variance[j] += v * v;
        }
    for (int64_t j = begin; j < end; j++)
        variance[j] /= (double)rows;
}

void K(column_norm_forward)(const heed__column_norm *n, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < n->rows; i++)
        for (int64_t j = begin; j < end; j++) {
            double h = ((double)n->x[i * n->ldx + j] - n->mean[j]) * n->rstd[j];
            n->y[i * n->d + j] =
                (real)(h * (double)n->gain[j] + (n->bias ? (double)n->bias[j] : 0));
        }
}

void K(column_norm_sums)(const heed__column_norm *n, int64_t begin, int64_t end)
{
    memset(n->dgain + begin, 0, (size_t)(end - begin) * sizeof *n->dgain);
    memset(n->dbias + begin, 0, (size_t)(end - begin) * sizeof *n->dbias);
    for (int64_t i = 0; i < n->rows; i++)
        for (int64_t j = begin; j < end; j++) {
            double g = (double)n->dy[i * n->d + j];
            n->dgain[j] += g * ((double)n->x[i * n->ldx + j] - n->mean[j]) * n->rstd[j];
            n->dbias[j] += g;
        }
}

/* dx += gain rstd (dy - mean(dy) - h mean(dy h)); with fixed statistics gain rstd dy. */
void K(column_norm_backward)(const heed__column_norm *n, int64_t begin, int64_t end)
{
    const double share = n->fixed ? 0 : 1.0 / (double)n->rows;
    for (int64_t i = 0; i < n->rows; i++)
        for (int64_t j = begin; j < end; j++) {
            double h = ((double)n->x[i * n->ldx + j] - n->mean[j]) * n->rstd[j];
            double g = (double)n->dy[i * n->d + j] - share * (n->dbias[j] + h * n->dgain[j]);
            n->dx[i * n->lddx + j] += (real)((double)n->gain[j] * n->rstd[j] * g);
        }
}
