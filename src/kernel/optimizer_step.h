/* optimizer_step.h: one pass over flat buffers of n elements: w weights, g gradients, and the
 * optimiser's moments.  The updates set g to zero while it is in the cache.
 *
 *   adam: m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, w = keep w - rate m / (scale sqrt(v) + eps)
 *   rmsprop: v = a v + (1-a) g^2, m = a m + (1-a) g, u = mu u + g / (sqrt(v - m^2) + eps),
 *   w = w - rate u; a NULL m or u stands for 0: not centred, no momentum
 *   sgd: u = mu u + g, w = w - rate u; u may be NULL
 *
 *   average: a = a + rate (w - a).  sum_squares: in double, in an order that depends on n only. */
#ifndef HEED_KERNEL_OPTIMIZER_STEP_H
#define HEED_KERNEL_OPTIMIZER_STEP_H

#include <heed/base.h>

/* rate and scale carry the bias corrections, keep = 1 - rate * weight decay. */
typedef struct heed__adam {
    heed_real rate, beta1, beta2, scale, eps, keep;
    heed_real rest1, rest2; /* 1 - beta, rounded once from double */
} heed__adam;

typedef struct heed__rmsprop {
    heed_real rate, alpha, rest, eps, momentum;
} heed__rmsprop;

#define HEED_KERNELS_OPTIMIZER(X)                                                                  \
    X(void, adam,                                                                                  \
      (heed_real * w, heed_real * g, heed_real * m, heed_real * v, int64_t n,                      \
       const heed__adam *c))                                                                       \
    X(void, rmsprop,                                                                               \
      (heed_real * w, heed_real * g, heed_real * v, heed_real * m, heed_real * u, int64_t n,       \
       const heed__rmsprop *c))                                                                    \
    X(void, sgd,                                                                                   \
      (heed_real * w, heed_real * g, heed_real * u, int64_t n, heed_real rate,                     \
       heed_real momentum))                                                                        \
    X(void, average, (heed_real * a, const heed_real *w, int64_t n, heed_real rate))               \
    X(double, sum_squares, (const heed_real *x, int64_t n))

#endif
