/* Attention of one head by its formulas, in double, for the tests of kernels, operator and layer.
 */
#ifndef HEED_TESTS_ATTENTION_ORACLE_H
#define HEED_TESTS_ATTENTION_ORACLE_H

#include "kernel/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef heed_real real;

/* Sums of up to a few hundred products of values around 1. */
#ifdef HEED_DOUBLE
#define TOLERANCE 1e-11
#else
#define TOLERANCE 3e-5
#endif

static real value(int64_t i, int salt)
{
    return (real)sin(12.9898 * (double)(i + 1) + 78.233 * salt);
}

static real *values(int64_t n, int salt)
{
    real *x = malloc((size_t)(n ? n : 1) * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = value(i, salt);
    return x;
}

static void assert_near(const real *a, const double *b, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - b[i]) <= tolerance))
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, (double)a[i], b[i]);
}

/* ---- the oracle ---- */

/* One head in double, by the formulas: P, O and, for upstream gradients dO and dW, all the others.
 * All matrices without gaps. */
typedef struct oracle {
    int64_t t, s, dk, dv;
    double *p, *o, *dz, *dq, *dk_, *dv_;
} oracle;

static oracle naive(const heed__head *h, const real *mask)
{
    const int64_t t = h->t, s = h->s, dk = h->d_k, dv = h->d_v;
    oracle r = {t, s, dk, dv, NULL, NULL, NULL, NULL, NULL, NULL};
    double **all[] = {&r.p, &r.o, &r.dz, &r.dq, &r.dk_, &r.dv_};
    const int64_t sizes[] = {t * s, t * dv, t * s, t * dk, s * dk, s * dv};
    for (int i = 0; i < 6; i++)
        *all[i] = calloc((size_t)sizes[i] + 1, sizeof(double));
#define AT(m, i, j) ((double)h->m.at[(i)*h->m.ld + (j)])
    for (int64_t i = 0; i < t; i++) {
        const int64_t seen = h->causal && i + 1 < s ? i + 1 : s;
        double top = -INFINITY, sum = 0, inner = 0;
        double *p = r.p + i * s, *dz = r.dz + i * s;
        for (int64_t j = 0; j < seen; j++) {
            for (int64_t d = 0; d < dk; d++)
                p[j] += (double)h->scale * AT(q, i, d) * AT(k, j, d);
            p[j] += h->bias.at ? AT(bias, i, j) : 0;
            top = fmax(top, p[j]);
        }
        for (int64_t j = 0; j < seen; j++)
            sum += p[j] = top == -INFINITY ? 0 : exp(p[j] - top);
        for (int64_t j = 0; j < seen; j++) {
            p[j] /= sum > 0 ? sum : 1;
            double kept = mask ? (double)mask[i * s + j] : 1, dd = 0;
            for (int64_t d = 0; d < dv; d++) {
                r.o[i * dv + d] += p[j] * kept * AT(v, j, d);
                r.dv_[j * dv + d] += p[j] * kept * AT(d_out, i, d);
                dd += AT(d_out, i, d) * AT(v, j, d);
            }
            dz[j] = dd * kept + (h->d_weights ? (double)h->d_weights[i * s + j] : 0);
            inner += dz[j] * p[j];
        }
        for (int64_t j = 0; j < seen; j++) {
            dz[j] = p[j] * (dz[j] - inner);
            for (int64_t d = 0; d < dk; d++) {
                r.dq[i * dk + d] += (double)h->scale * dz[j] * AT(k, j, d);
                r.dk_[j * dk + d] += (double)h->scale * dz[j] * AT(q, i, d);
            }
        }
    }
#undef AT
    return r;
}

static void oracle_free(oracle *r)
{
    double *all[] = {r->p, r->o, r->dz, r->dq, r->dk_, r->dv_};
    for (int i = 0; i < 6; i++)
        free(all[i]);
}

#endif
