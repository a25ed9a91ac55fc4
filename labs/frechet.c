/* frechet.c: see frechet.h.  A symmetric matrix is diagonalised by Jacobi's rotations, in double:
 * d is small. */
#include "frechet.h"

#include <math.h>
#include <stdlib.h>

enum { SWEEPS = 60 };

/* c (d,d), biased; mean (d). */
static void moments(const heed_real *x, int64_t n, int64_t d, double *mean, double *c)
{
    for (int64_t j = 0; j < d; j++) {
        mean[j] = 0;
        for (int64_t i = 0; i < n; i++)
            mean[j] += (double)x[i * d + j] / (double)n;
    }
    for (int64_t j = 0; j < d * d; j++)
        c[j] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) {
            const double off = ((double)x[i * d + j] - mean[j]) / (double)n;
            for (int64_t k = 0; k < d; k++)
                c[j * d + k] += off * ((double)x[i * d + k] - mean[k]);
        }
}

/* Turns columns, then rows p and q of a so that a_pq becomes 0; the columns of v with them. */
static void rotate(double *a, double *v, int64_t d, int64_t p, int64_t q)
{
    const double theta = (a[q * d + q] - a[p * d + p]) / (2 * a[p * d + q]);
    const double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    for (int64_t k = 0; k < d; k++) {
        const double x = a[k * d + p], y = a[k * d + q], vx = v[k * d + p], vy = v[k * d + q];
        a[k * d + p] = c * x - s * y;
        a[k * d + q] = s * x + c * y;
        v[k * d + p] = c * vx - s * vy;
        v[k * d + q] = s * vx + c * vy;
    }
    for (int64_t k = 0; k < d; k++) {
        const double x = a[p * d + k], y = a[q * d + k];
        a[p * d + k] = c * x - s * y;
        a[q * d + k] = s * x + c * y;
    }
}

/* The symmetric a becomes diagonal, its eigenvalues; the columns of v their vectors. */
static void diagonalise(double *a, double *v, int64_t d)
{
    double all = 0;
    for (int64_t i = 0; i < d * d; i++) {
        v[i] = i % (d + 1) == 0;
        all += a[i] * a[i];
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double off = 0;
        for (int64_t p = 0; p < d; p++)
            for (int64_t q = p + 1; q < d; q++) {
                off += a[p * d + q] * a[p * d + q];
                if (a[p * d + q] * a[p * d + q] > 1e-34 * all)
                    rotate(a, v, d, p, q);
            }
        if (off <= 1e-26 * all)
            break;
    }
}

/* out = a b; symmetric inputs or not. */
static void multiply(const double *a, const double *b, int64_t d, double *out)
{
    for (int64_t i = 0; i < d; i++) {
        for (int64_t j = 0; j < d; j++)
            out[i * d + j] = 0;
        for (int64_t k = 0; k < d; k++)
            for (int64_t j = 0; j < d; j++)
                out[i * d + j] += a[i * d + k] * b[k * d + j];
    }
}

/* out = v sqrt(diagonal of a) v^T; what rounding left below 0 counts as 0. */
static void root(const double *a, const double *v, int64_t d, double *out)
{
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) {
            out[i * d + j] = 0;
            for (int64_t k = 0; k < d; k++)
                out[i * d + j] += v[i * d + k] * sqrt(fmax(a[k * d + k], 0)) * v[j * d + k];
        }
}

double frechet_distance(const heed_real *a, int64_t na, const heed_real *b, int64_t nb, int64_t d)
{
    double *m = malloc((size_t)(5 * d * d + 2 * d) * sizeof *m), distance = 0;
    if (!m)
        return NAN;
    double *ca = m + 2 * d, *cb = ca + d * d, *v = cb + d * d, *ra = v + d * d, *x = ra + d * d;
    moments(a, na, d, m, ca);
    moments(b, nb, d, m + d, cb);
    for (int64_t j = 0; j < d; j++)
        distance += (m[j] - m[d + j]) * (m[j] - m[d + j]) + ca[j * d + j] + cb[j * d + j];
    diagonalise(ca, v, d);
    root(ca, v, d, ra);
    multiply(ra, cb, d, x);
    multiply(x, ra, d, ca); /* A^1/2 B A^1/2 */
    for (int64_t j = 0; j < d; j++)
        for (int64_t k = 0; k < j; k++)
            ca[j * d + k] = ca[k * d + j] = (ca[j * d + k] + ca[k * d + j]) / 2;
    diagonalise(ca, v, d);
    for (int64_t j = 0; j < d; j++)
        distance -= 2 * sqrt(fmax(ca[j * d + j], 0));
    free(m);
    return distance;
}
