/* attention.h: multi-head attention as a layer.
 *
 *     heed_mha_build(&l, scope, &(heed_mha_options){.d = 512, .heads = 8, .cross = true});
 *     y = heed_mha_apply(t, &l, x, memory, x_segments, memory_segments, NULL);
 */
#ifndef HEED_ATTENTION_H
#define HEED_ATTENTION_H

#include <heed/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* concat(head_i) W^O, head_i = softmax(Q W_i^Q (K W_i^K)^T / sqrt(Dk)) V W_i^V. */
typedef struct heed_mha_options {
    int64_t d;        /* D, of queries and of the output */
    int64_t memory_d; /* of keys and values; 0 means d */
    int heads;        /* H */
    int64_t d_k, d_v; /* per head; 0 means D/H */
    bool cross;       /* keys and values come from another sequence than the queries */
    bool causal;      /* query i sees keys 0..i of its segment */
    bool bias;        /* on the four products; the paper has none */
    bool unscaled;    /* leave out 1/sqrt(Dk), to show what it is for */
    double dropout;   /* on the weights */
} heed_mha_options;
/* Self-attention makes q, k and v in one product (qkv), cross-attention k and v in one (kv). */
typedef struct heed_mha_layer {
    heed_mha_options options;
    heed_linear_layer qkv; /* self: (D, H*(2 Dk + Dv)) */
    heed_linear_layer q;   /* cross: (D, H*Dk) */
    heed_linear_layer kv;  /* cross: (memory_d, H*(Dk+Dv)) */
    heed_linear_layer out; /* (H*Dv, D) */
} heed_mha_layer;
void heed_mha_build(heed_mha_layer *l, heed_scope s, const heed_mha_options *options);
/* x (N,D), memory (M,memory_d).  Without cross, memory must be x.  extra may be NULL; of it bias
 * and weights are used.  Self-attention passes the same segments twice. */
heed_tensor *heed_mha_apply(heed_tape *t, const heed_mha_layer *l, heed_tensor *x,
                            heed_tensor *memory, const heed_segments *queries,
                            const heed_segments *keys, const heed_attention_options *extra);

/* The weights of one head over one sentence, for whoever wants to look: row i says where query i
 * looked; rows add up to 1. */
typedef enum heed_attention_kind {
    HEED_ENCODER_SELF,
    HEED_DECODER_SELF,
    HEED_CROSS,
} heed_attention_kind;
typedef struct heed_attention_map {
    heed_attention_kind kind;
    int layer, head;         /* from 0 */
    int64_t sentence;        /* of its batch */
    int64_t queries, keys;   /* rows, columns */
    const heed_real *weight; /* row-major */
} heed_attention_map;

#ifdef __cplusplus
}
#endif
#endif
