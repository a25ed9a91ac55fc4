/* attention_head.h: attention of one head inside one segment, on rows with a leading dimension.
 *
 *   P = softmax(scale Q K^T + bias), O = (P * mask) V    Q (T,Dk), K (S,Dk), V (S,Dv), P (T,S)
 *
 * causal: query i sees keys 0..i; above the diagonal only P's zeros cost.  A query that sees no key
 * has zeros in P and O.  mask is dropout's: P[i][j] is element first + i S + j of the stream. */
#ifndef HEED_KERNEL_ATTENTION_HEAD_H
#define HEED_KERNEL_ATTENTION_HEAD_H

#include <heed/base.h>

typedef struct heed__matrix {
    heed_real *at;
    int64_t ld;
} heed__matrix;

typedef struct heed__head {
    int64_t t, s, d_k, d_v;
    int64_t head, heads; /* which of how many: only what to fetch ahead depends on it */
    heed_real scale;
    bool causal;
    heed__matrix q, k, v;
    heed__matrix bias;  /* at may be NULL */
    heed_real *weights; /* (T,S) without gaps */
    double dropout;
    const heed_rng *rng; /* used if dropout > 0 */
    uint64_t first;
    heed__matrix out;
    heed__matrix d_out;
    const heed_real *d_weights; /* (T,S) */
    heed__matrix d_q, d_k_rows, d_v_rows;
    heed_real beta_q, beta_k, beta_v; /* 0 or 1 */
    heed_real *d_scores;              /* (T,S) */
    heed_real *scratch;
} heed__head;

/* head_scratch   bytes of 64-byte aligned scratch that the other two need
 * head_forward   out, and P into weights unless that is NULL
 * head_backward  from weights, d_out and d_weights (either may be NULL): the gradients that are
 *                not NULL, as beta * what is there + gradient; d_scores is P's shape, assigned */
#define HEED_KERNELS_HEAD(X)                                                                       \
    X(size_t, head_scratch, (int64_t t, int64_t s, int64_t d_k, int64_t d_v))                      \
    X(void, head_forward, (const heed__head *h))                                                   \
    X(void, head_backward, (const heed__head *h))

#endif
