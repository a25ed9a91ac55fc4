/* linear_head.h: linear attention (Katharopoulos et al. 2020) of one head inside one segment, on
 * rows with a leading dimension.
 *
 *   O_i = phi(q_i) S_i / (phi(q_i) z_i + eps),  S_i = sum_j phi(k_j) v_j^T,  z_i = sum_j phi(k_j)
 *   phi(x) = elu(x) + 1 = max(x, 0) + exp(min(x, 0))
 *
 * j runs over all keys, or over 0..i.  There are no pairs: time and memory are linear. */
#ifndef HEED_KERNEL_LINEAR_HEAD_H
#define HEED_KERNEL_LINEAR_HEAD_H

#include "kernel/attention_head.h"

#define HEED__LINEAR_EPS 1e-6

typedef struct heed__linear_head {
    int64_t t, s, d_k, d_v;
    bool causal;
    heed_real eps;
    heed__matrix q, k, v, out; /* (T,Dk), (S,Dk), (S,Dv), (T,Dv) */
    heed__matrix total;        /* (T,1): phi(q_i) z_i + eps */
    heed__matrix d_out;
    heed__matrix d_q, d_k_rows, d_v_rows; /* added to; at may be NULL */
    heed_real *scratch;                   /* 64-byte aligned, linear_scratch bytes */
} heed__linear_head;

/* A state is S and z of one head, S (Dk,Dv) then z (Dk). */
static inline int64_t heed__linear_state(int64_t d_k, int64_t d_v)
{
    return d_k * (d_v + 1);
}

/* linear_scratch   bytes that the next two need
 * linear_forward   out and total
 * linear_backward  from out, total and d_out
 * linear_learn     one more key and its value into a state
 * linear_ask       out (Dv) of one query and a state; room (Dk) */
#define HEED_KERNELS_LINEAR_HEAD(X)                                                                \
    X(size_t, linear_scratch, (int64_t d_k, int64_t d_v))                                          \
    X(void, linear_forward, (const heed__linear_head *h))                                          \
    X(void, linear_backward, (const heed__linear_head *h))                                         \
    X(void, linear_learn,                                                                          \
      (heed_real * state, const heed_real *k, const heed_real *v, int64_t d_k, int64_t d_v,        \
       heed_real *room))                                                                           \
    X(void, linear_ask,                                                                            \
      (heed_real * out, const heed_real *state, const heed_real *q, int64_t d_k, int64_t d_v,      \
       heed_real eps, heed_real *room))

#endif
