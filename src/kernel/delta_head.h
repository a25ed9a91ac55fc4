/* delta_head.h: fast weights by the delta rule (Schlag, Irie, Schmidhuber 2021) of one head inside
 * one segment, on rows with a leading dimension.
 *
 *   e_i = v_i - phi(k_i) W_{i-1},  W_i = W_{i-1} + phi(k_i)^T b_i e_i,  o_i = phi(q_i) W_i
 *
 * W_0 = 0, b_i = sigmoid(gate_i).  Time and memory are linear. */
#ifndef HEED_KERNEL_DELTA_HEAD_H
#define HEED_KERNEL_DELTA_HEAD_H

#include "kernel/attention_head.h"
#include "kernel/features.h"

typedef struct heed__delta_head {
    heed__features features; /* of Dk columns */
    int64_t t, d_v;
    heed__matrix q, k, v, gate, out; /* (T,Dk), (T,Dk), (T,Dv), (T,1), (T,Dv) */
    heed__matrix error;              /* (T,Dv): e */
    heed__matrix d_out;
    heed__matrix d_q, d_k_rows, d_v_rows, d_gate; /* added to; at may be NULL */
    heed_real *scratch;                           /* 64-byte aligned, delta_scratch bytes */
} heed__delta_head;

/* A state is W of one head, (M,Dv). */
static inline int64_t heed__delta_state(const heed__features *f, int64_t d_v)
{
    return heed__feature_columns(f) * d_v;
}

/* delta_scratch   bytes that the next two need
 * delta_forward   out and error
 * delta_backward  from error and d_out
 * delta_learn     one more key and its value into a state
 * delta_ask       out (Dv) of one query and a state
 * The last two: room of heed__feature_room, learn of d_v more. */
#define HEED_KERNELS_DELTA_HEAD(X)                                                                 \
    X(size_t, delta_scratch, (const heed__features *f, int64_t d_v))                               \
    X(void, delta_forward, (const heed__delta_head *h))                                            \
    X(void, delta_backward, (const heed__delta_head *h))                                           \
    X(void, delta_learn,                                                                           \
      (const heed__features *f, heed_real *state, const heed_real *k, const heed_real *v,          \
       int64_t d_v, const heed_real *gate, heed_real *room))                                       \
    X(void, delta_ask,                                                                             \
      (const heed__features *f, heed_real *out, const heed_real *state, const heed_real *q,        \
       int64_t d_v, heed_real *room))

#endif
