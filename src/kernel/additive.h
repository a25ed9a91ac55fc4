/* additive.h: the additive score of one query and n keys, ldk apart, and its gradients.
 *
 *   additive_scores  e[j] = sum over i of v[i] tanh(q[i] + k[j][i])
 *   additive_grads   with x = tanh(q + k[j]): dv += de[j] x, dq and dk[j] += de[j] v (1 - x^2);
 *                    each of the three may be NULL; dk has k's rows, ldk apart */
#ifndef HEED_KERNEL_ADDITIVE_H
#define HEED_KERNEL_ADDITIVE_H

#include <heed/base.h>

#define HEED_KERNELS_ADDITIVE(X)                                                                   \
    X(void, additive_scores,                                                                       \
      (heed_real * e, const heed_real *q, const heed_real *k, int64_t ldk, const heed_real *v,     \
       int64_t n, int64_t d))                                                                      \
    X(void, additive_grads,                                                                        \
      (heed_real * dq, heed_real * dk, heed_real * dv, const heed_real *de, const heed_real *q,    \
       const heed_real *k, int64_t ldk, const heed_real *v, int64_t n, int64_t d))

#endif
