/* linear_head.h: linear attention (Katharopoulos et al. 2020) of one head inside one segment, on
 * rows with a leading dimension, with any features phi (features.h).
 *
 *   O_i = phi(q_i) S_i / D_i,  S_i = sum_j phi(k_j) v_j^T,  D_i = phi(q_i) sum_j phi(k_j) + eps
 *
 * j runs over all keys, or over 0..i; `floor`: D_i is max(., eps) instead.  A gate (Peng et al.
 * 2021) makes the sums fade, g_j = sigmoid(gate_j): S_j = g_j S_{j-1} + (1 - g_j) phi(k_j) v_j^T,
 * and the other sum as well; it is causal.  There are no pairs: time and memory are linear. */
#ifndef HEED_KERNEL_LINEAR_HEAD_H
#define HEED_KERNEL_LINEAR_HEAD_H

#include "kernel/attention_head.h"
#include "kernel/features.h"

/* What is added to a sum of features of this kind, or the least that it may be.  Positive features
 * of keys far away are small together, waves may cancel. */
static inline double heed__linear_eps(int kind)
{
    return kind == HEED__FEATURES_POSITIVE ? 1e-20 : kind == HEED__FEATURES_WAVES ? 1e-3 : 1e-6;
}

typedef struct heed__linear_head {
    heed__features features; /* of Dk columns */
    int64_t t, s, d_v;
    bool causal, floor;
    heed_real eps;
    heed__matrix q, k, v, out; /* (T,Dk), (S,Dk), (S,Dv), (T,Dv) */
    heed__matrix gate;         /* (S,1) or NULL */
    heed__matrix total;        /* (T,1): D */
    heed__matrix along;        /* (T,1) for backward with a gate: phi(q_i).d phi(q_i) */
    heed__matrix d_out;
    heed__matrix d_q, d_k_rows, d_v_rows, d_gate; /* added to; at may be NULL */
    heed_real *scratch;                           /* 64-byte aligned, linear_scratch bytes */
} heed__linear_head;

/* A state is S and the sum of phi(k) of one head, S (M,Dv) then the sum (M). */
static inline int64_t heed__linear_state(const heed__features *f, int64_t d_v)
{
    return heed__feature_columns(f) * (d_v + 1);
}

/* linear_scratch   bytes that the next two need
 * linear_forward   out and total
 * linear_backward  from out, total and d_out
 * linear_learn     one more key and its value into a state; gate NULL: none
 * linear_ask       out (Dv) of one query and a state
 * The last two: room of heed__feature_room. */
#define HEED_KERNELS_LINEAR_HEAD(X)                                                                \
    X(size_t, linear_scratch, (const heed__features *f, int64_t d_v))                              \
    X(void, linear_forward, (const heed__linear_head *h))                                          \
    X(void, linear_backward, (const heed__linear_head *h))                                         \
    X(void, linear_learn,                                                                          \
      (const heed__features *f, heed_real *state, const heed_real *k, const heed_real *v,          \
       int64_t d_v, const heed_real *gate, heed_real *room))                                       \
    X(void, linear_ask,                                                                            \
      (const heed__features *f, heed_real *out, const heed_real *state, const heed_real *q,        \
       int64_t d_v, heed_real eps, bool floor, heed_real *room))

#endif
