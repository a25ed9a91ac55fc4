/* optimizer_step.c: see optimizer_step.h.  Bound by memory: every element is read and written once,
 * in order, all streams in one loop. */
#include "kernel/optimizer_step.h"
#include "kernel/isa.h"
#include "kernel/kernels.h"
#include "kernel/vec.h"

#include <float.h>

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_OPTIMIZER(DECLARE)

/* Subnormals become zero.  The moments of a weight without gradients (an unseen word) decay into
 * that range and stay there, where arithmetic is many times slower. */
VINLINE vreal flush(vreal x)
{
#ifdef HEED_DOUBLE
    vint tiny = vabs(x) < vset(DBL_MIN);
#else
    vint tiny = vabs(x) < vset(FLT_MIN);
#endif
    return (vreal)((vint)x & ~tiny);
}

void K(adam)(real *w, real *g, real *m, real *v, int64_t n, const heed__adam *c)
{
    const vreal rate = vset(c->rate), beta1 = vset(c->beta1), beta2 = vset(c->beta2);
    const vreal rest1 = vset(c->rest1), rest2 = vset(c->rest2);
    const vreal scale = vset(c->scale), eps = vset(c->eps), keep = vset(c->keep);
    for (int64_t i = 0; i < n; i += VW) {
        vreal gi = vload_at(g, i, n);
        vreal mi = flush(beta1 * vload_at(m, i, n) + rest1 * gi);
        vreal vi = flush(beta2 * vload_at(v, i, n) + rest2 * gi * gi);
        vreal wi = keep * vload_at(w, i, n) - rate * mi / (scale * vsqrt(vi) + eps);
        vstore_at(w, wi, i, n);
        vstore_at(m, mi, i, n);
        vstore_at(v, vi, i, n);
        vstore_at(g, (vreal){0}, i, n);
    }
}

void K(rmsprop)(real *w, real *g, real *v, real *m, real *u, int64_t n, const heed__rmsprop *c)
{
    const vreal rate = vset(c->rate), alpha = vset(c->alpha), rest = vset(c->rest);
    const vreal eps = vset(c->eps), momentum = vset(c->momentum);
    for (int64_t i = 0; i < n; i += VW) {
        vreal gi = vload_at(g, i, n);
        vreal vi = flush(alpha * vload_at(v, i, n) + rest * gi * gi);
        vreal variance = vi;
        if (m) {
            vreal mi = flush(alpha * vload_at(m, i, n) + rest * gi);
            vstore_at(m, mi, i, n);
            /* Below zero only by rounding. */
            variance = vmax(vi - mi * mi, (vreal){0});
        }
        vreal step = gi / (vsqrt(variance) + eps);
        if (u) {
            step = flush(step + momentum * vload_at(u, i, n));
            vstore_at(u, step, i, n);
        }
        vstore_at(w, vload_at(w, i, n) - rate * step, i, n);
        vstore_at(v, vi, i, n);
        vstore_at(g, (vreal){0}, i, n);
    }
}

void K(sgd)(real *w, real *g, real *u, int64_t n, real rate, real momentum)
{
    for (int64_t i = 0; i < n; i += VW) {
        vreal step = vload_at(g, i, n);
        if (u) {
            step = flush(step + momentum * vload_at(u, i, n));
            vstore_at(u, step, i, n);
        }
        vstore_at(w, vload_at(w, i, n) - rate * step, i, n);
        vstore_at(g, (vreal){0}, i, n);
    }
}

void K(average)(real *a, const real *w, int64_t n, real rate)
{
    for (int64_t i = 0; i < n; i += VW) {
        vreal ai = vload_at(a, i, n);
        vstore_at(a, ai + rate * (vload_at(w, i, n) - ai), i, n);
    }
}

/* LANES independent sums, so that no addition waits for the one before; they are added as a tree.
 * Double, because the square of a float may be beyond the range of float. */
#define LANES 32
double K(sum_squares)(const real *x, int64_t n)
{
    double sum[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            sum[k] += (double)x[i + k] * (double)x[i + k];
    for (int k = 0; i + k < n; k++)
        sum[k] += (double)x[i + k] * (double)x[i + k];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int k = 0; k < width; k++)
            sum[k] += sum[k + width];
    return sum[0];
}
