/* norm_rows.c: see norm_rows.h.  A row (d up to a few thousand) stays in the L1 cache between the
 * passes over it, so memory is read once; the next row is prefetched meanwhile, because passes that
 * stay in cache would leave the memory idle. */
#include "kernel/norm_rows.h"

#include "kernel/isa.h"
#include "kernel/mask.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_NORM(DECLARE)

#define LINE (64 / (int64_t)sizeof(real)) /* reals to a cache line */

VINLINE void fetch(const real *p, int64_t i, int64_t n)
{
    for (int64_t j = 0; j < 4 * VW; j += LINE)
        if (p && i + j < n)
            __builtin_prefetch(p + i + j);
}

static real row_sum(const real *x, int64_t d)
{
    vreal sum[4] = {{0}, {0}, {0}, {0}};
    int64_t i = 0;
    for (; i + 4 * VW <= d; i += 4 * VW)
        for (int u = 0; u < 4; u++)
            sum[u] += vload(x + i + u * VW);
    for (; i < d; i += VW)
        sum[0] += vload_at(x, i, d);
    return vsum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The row whose first element is number `first`: returns the groups of its mask that can be made
 * one by one while the row is read.  If there are none, the mask is made here. */
VINLINE int64_t mask_row(real *mask, const mask_rule *rule, double rate, uint64_t first, int64_t d)
{
    if (rate == 0)
        return 0;
    int64_t grouped = first % 8 ? 0 : d / MASK_GROUP * MASK_GROUP;
    mask_range(mask + grouped, rule, first + (uint64_t)grouped, d - grouped);
    return grouped;
}

/* s = x + mask r and its sum. */
static real row_residual(real *s, const real *x, const real *r, real *mask, const mask_rule *rule,
                         double rate, uint64_t first, int64_t d)
{
    const int64_t grouped = mask_row(mask, rule, rate, first, d);
    vreal sum[2] = {{0}, {0}};
    int64_t i = 0;
    for (; i < grouped; i += MASK_GROUP) {
        mask_group(mask + i, rule, (first + (uint64_t)i) / 8);
        for (int64_t j = i; j < i + MASK_GROUP; j += VW) {
            vreal v = vload(x + j) + vload(mask + j) * vload(r + j);
            vstore(s + j, v);
            sum[j / VW % 2] += v;
        }
    }
    for (; i < d; i += VW) {
        vreal v = vload_at(x, i, d) + vload_at(mask, i, d) * vload_at(r, i, d);
        vstore_at(s, v, i, d);
        sum[i / VW % 2] += v;
    }
    return vsum(sum[0] + sum[1]);
}

/* sum (s - mean)^2; meanwhile the next row is prefetched. */
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

/* y = (s - mean) rstd gain + bias; y may be s. */
VINLINE void row_write(real *y, const real *s, const real *gain, const real *bias, vreal mean,
                       vreal rstd, int64_t d)
{
    int64_t i = 0;
    for (; i + VW <= d; i += VW) {
        vreal v = (vload(s + i) - mean) * rstd * vload(gain + i);
        vstore(y + i, bias ? v + vload(bias + i) : v);
    }
    if (i < d) {
        vreal v = (vload_at(s, i, d) - mean) * rstd * vload_at(gain, i, d);
        vstore_at(y, bias ? v + vload_at(bias, i, d) : v, i, d);
    }
}

void K(norm_forward)(const heed__norm *n, int64_t begin, int64_t end, real *scratch)
{
    const int64_t d = n->d;
    real *mask = scratch;
    const mask_rule rule = mask_prepare(&n->rng, n->rate);
    if (n->r && n->rate == 0)
        mask_range(mask, &rule, 0, d);
    for (int64_t row = begin; row < end; row++) {
        const real *x = n->x + row * n->ldx, *r = n->r ? n->r + row * n->ldr : NULL;
        const bool last = row + 1 == end;
        real *y = n->y + row * d;
        const real *s = r ? y : x;
        real sum = 0;
        if (r)
            sum = row_residual(y, x, r, mask, &rule, n->rate, (uint64_t)(row * d), d);
        else if (n->centred)
            sum = row_sum(x, d);
        real mean = n->centred ? sum / (real)d : 0;
        real squares =
            row_squares(s, mean, d, last ? NULL : x + n->ldx, last || !r ? NULL : r + n->ldr);
        real rstd = (real)(1.0 / sqrt((double)squares / (double)d + n->eps));
        if (n->mean)
            n->mean[row] = mean;
        if (n->rstd)
            n->rstd[row] = rstd;
        if (n->bias)
            row_write(y, s, n->gain, n->bias, vset(mean), vset(rstd), d);
        else
            row_write(y, s, n->gain, NULL, vset(mean), vset(rstd), d);
    }
}

/* One row of the backward pass: what both loops over it read. */
struct row {
    const real *x, *r, *mask, *gain, *dy; /* r NULL: no residual */
    real *s;                              /* x + mask r, where there is r */
    vreal mean, rstd;
};

/* First pass: s, the row's part of dgain and dbias, sum g and sum g h with g = gain dy. */
VINLINE void row_sums(const struct row *w, real *dgain, real *dbias, vreal *sum_g, vreal *sum_gh,
                      int64_t i, int64_t d)
{
    vreal s = vload_at(w->x, i, d), g = vload_at(w->dy, i, d);
    if (w->r) {
        s += vload_at(w->mask, i, d) * vload_at(w->r, i, d);
        vstore_at(w->s, s, i, d);
    }
    vreal h = (s - w->mean) * w->rstd;
    vstore_at(dgain, vload_at(dgain, i, d) + g * h, i, d);
    vstore_at(dbias, vload_at(dbias, i, d) + g, i, d);
    g *= vload_at(w->gain, i, d);
    *sum_g += g;
    *sum_gh += g * h;
}

/* Second pass: ds = rstd (g - mean_g - h mean_gh). */
VINLINE void row_spread(const struct row *w, real *dx, real *dr, bool assign_x, bool assign_r,
                        vreal mean_g, vreal mean_gh, int64_t i, int64_t d)
{
    vreal h = (vload_at(w->r ? w->s : w->x, i, d) - w->mean) * w->rstd;
    vreal g = vload_at(w->dy, i, d) * vload_at(w->gain, i, d);
    vreal ds = w->rstd * (g - mean_g - h * mean_gh);
    if (dx)
        vstore_at(dx, assign_x ? ds : vload_at(dx, i, d) + ds, i, d);
    if (dr) {
        ds *= vload_at(w->mask, i, d);
        vstore_at(dr, assign_r ? ds : vload_at(dr, i, d) + ds, i, d);
    }
}

/* y = h gain + bias, h = (s - mean) rstd, s = x + mask r; with g = gain dy and means over the row:
 *   ds = rstd (g - mean(g) - h mean(g h)),  dx += ds,  dr += mask ds,  dgain += dy h,  dbias += dy
 * mean(g) is absent where the row is not centred. */
void K(norm_backward)(const heed__norm *n, int64_t begin, int64_t end, real *scratch)
{
    const int64_t d = n->d;
    real *mask = scratch, *dgain = HEED_NORM_DGAIN(scratch, d),
         *dbias = HEED_NORM_DBIAS(scratch, d);
    memset(dgain, 0, 2 * (size_t)d * sizeof(real));
    const mask_rule rule = mask_prepare(&n->rng, n->rate);
    if (n->r && n->rate == 0)
        mask_range(mask, &rule, 0, d);
    for (int64_t row = begin; row < end; row++) {
        const struct row w = {.x = n->x + row * n->ldx,
                              .r = n->r ? n->r + row * n->ldr : NULL,
                              .mask = mask,
                              .gain = n->gain,
                              .dy = n->dy + row * d,
                              .s = scratch + d,
                              .mean = vset(n->centred ? n->mean[row] : 0),
                              .rstd = vset(n->rstd[row])};
        const uint64_t first = (uint64_t)(row * d);
        const int64_t grouped = w.r ? mask_row(mask, &rule, n->rate, first, d) : 0;
        vreal sum_g = {0}, sum_gh = {0};
        int64_t i = 0;
        for (; i < grouped; i += MASK_GROUP) {
            mask_group(mask + i, &rule, (first + (uint64_t)i) / 8);
            for (int64_t j = i; j < i + MASK_GROUP; j += VW)
                row_sums(&w, dgain, dbias, &sum_g, &sum_gh, j, d);
        }
        for (; i + VW <= d; i += VW)
            row_sums(&w, dgain, dbias, &sum_g, &sum_gh, i, d);
        if (i < d)
            row_sums(&w, dgain, dbias, &sum_g, &sum_gh, i, d);
        const vreal mean_g = vset(n->centred ? vsum(sum_g) / (real)d : 0);
        const vreal mean_gh = vset(vsum(sum_gh) / (real)d);
        const bool assign_x = n->assign_x, assign_r = n->assign_r, last = row + 1 == end;
        real *dx = n->dx ? n->dx + row * n->lddx : NULL, *dr = n->dr ? n->dr + row * n->lddr : NULL;
        for (i = 0; i + VW <= d; i += VW) {
            if (!last && i % LINE == 0) {
                __builtin_prefetch(w.x + n->ldx + i);
                __builtin_prefetch(w.dy + d + i);
                if (w.r)
                    __builtin_prefetch(w.r + n->ldr + i);
            }
            row_spread(&w, dx, dr, assign_x, assign_r, mean_g, mean_gh, i, d);
        }
        if (i < d)
            row_spread(&w, dx, dr, assign_x, assign_r, mean_g, mean_gh, i, d);
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
                (real)(h * (n->gain ? (double)n->gain[j] : 1) + (n->bias ? (double)n->bias[j] : 0));
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
            n->dx[i * n->lddx + j] += (real)((n->gain ? (double)n->gain[j] : 1) * n->rstd[j] * g);
        }
}
