/* snail.h: SNAIL (Mishra et al. 2018): learning from examples as a sequence, by causal convolutions
 * and causal attention in turn. */
#ifndef HEED_LABS_SNAIL_H
#define HEED_LABS_SNAIL_H

#include <heed/heed.h>

enum { SNAIL_ATTENTIONS = 3, SNAIL_DENSE = 16, SNAIL_CONVOLUTIONS = 4 };

typedef struct snail_sizes {
    int64_t side;    /* of the pictures that are shown; 0: vectors */
    int64_t width;   /* of the vectors, or of what the embedding makes of a picture */
    int64_t filters; /* of the embedding's convolutions */
    int64_t ways, shots;
    int64_t keys[SNAIL_ATTENTIONS], values[SNAIL_ATTENTIONS]; /* of the attention blocks */
    int64_t dense;                                            /* filters of a dense block */
    int64_t dilation; /* of the first dense block of a TC block: 1, or 2 as in the paper */
    bool attention, convolution; /* false: without these blocks */
} snail_sizes;

/* y = [x, tanh(xf) * sigmoid(xg)], xf and xg causal convolutions of kernel 2. */
typedef struct snail_dense {
    heed_tensor *weight, *bias; /* (2*D,2*R): xf and xg side by side */
    int64_t dilation;
} snail_dense;
/* y = [x, softmax(Q K^T / sqrt(d_k)) V] over the rows before and the row itself. */
typedef struct snail_attention {
    heed_linear_layer q, k, v;
} snail_attention;
/* 3x3 convolution, batch norm, ReLU, 2x2 maximum. */
typedef struct snail_convolution {
    heed_tensor *weight, *bias;
    heed_norm_layer norm;
} snail_convolution;

typedef struct snail {
    snail_sizes sizes;
    snail_convolution convolution[SNAIL_CONVOLUTIONS];
    heed_linear_layer embed;
    snail_attention attention[SNAIL_ATTENTIONS];
    snail_dense dense[SNAIL_ATTENTIONS - 1][SNAIL_DENSE];
    int blocks; /* dense blocks of a TC block */
    heed_linear_layer out;
} snail;

/* B episodes of ways * shots examples in any order and a question. */
typedef struct snail_batch {
    heed_real *shown; /* (B*T, width) or (B*T*side*side, 1), T = ways * shots + 1 */
    int32_t *label;   /* (B*T): of 0 .. ways-1; the question's is not shown */
    int64_t episodes;
} snail_batch;

/* Rows that the last row sees through the dense blocks of one TC block. */
int64_t snail_reach(const snail_sizes *sizes);
void snail_build(snail *m, heed_scope s, const snail_sizes *sizes);
/* Logits of the questions (B,ways).  looked, if not NULL, receives the weights of the last
 * attention block, (T,T) an episode. */
heed_tensor *snail_logits(heed_tape *t, const snail *m, const snail_batch *b, heed_tensor **looked);

#endif
