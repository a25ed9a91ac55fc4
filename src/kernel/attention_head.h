/* attention_head.h: attention of one head inside one segment, on rows with a leading dimension.
 *
 *   P = softmax(scale Q K^T + bias), O = (P * mask) V    Q (T,Dk), K (S,Dk), V (S,Dv), P (T,S)
 *
 * head_*   every query sees every key; causal: keys 0..i.  Above the diagonal only P's zeros cost.
 * tiles_*  query i sees the runs of keys that runs() gives, and `shared` rows before them: only the
 *          tiles of keys that a block of queries reaches are made.
 * list_*   query i sees the keys that list() gives, which may stand anywhere, and `shared` rows:
 *          pair by pair.
 * A query that sees no key has zeros in P and O.  mask is dropout's: P[i][j] is element first + i S
 * + j of the stream, shared row p element shared_first + i shared + p.
 *
 * P is kept (`weights`), or made again in backward from each row's maximum and 1/sum (`stats`): the
 * same bits, one product more, and memory linear in T. */
#ifndef HEED_KERNEL_ATTENTION_HEAD_H
#define HEED_KERNEL_ATTENTION_HEAD_H

#include <heed/base.h>

typedef struct heed__matrix {
    heed_real *at;
    int64_t ld;
} heed__matrix;

/* Keys begin, begin + step, ... below end, `width` from each of them on; width is at most step. */
typedef struct heed__run {
    int64_t begin, end, step, width;
} heed__run;

typedef struct heed__head {
    int64_t t, s, d_k, d_v;
    int64_t head, heads;       /* which of how many: only what to prefetch depends on it, */
    int64_t kv_head, kv_heads; /* and on this; runs() is told the head */
    heed_real scale;
    bool causal;
    heed__matrix q, k, v;
    heed__matrix bias;         /* at may be NULL */
    const heed_real *distance; /* (T+S): [T-1-i+j] is added too; NULL: nothing */
    heed_real *weights;        /* (T,S) without gaps; NULL: not kept */
    heed_real *stats; /* maximum and 1/sum of row i at [i*stats_step] and behind it; NULL */
    int64_t stats_step;
    double dropout;
    const heed_rng *rng; /* used if dropout > 0 */
    uint64_t first;
    heed__matrix out;
    heed__matrix d_out;
    const heed_real *d_weights; /* (T,S) */
    heed__matrix d_q, d_k_rows, d_v_rows;
    heed_real beta_q, beta_k, beta_v; /* 0 or 1 */
    heed_real *d_scores;              /* (T,S) */
    heed_real *d_distance;            /* (T+S), added to */
    heed_real *scratch;
    int64_t *pairs, *products; /* added to in forward: those in a softmax, those made; or NULL */
    /* Of tiles_*: runs of keys, at most `most` for a query; of list_*: keys in ascending order. */
    int (*runs)(const void *context, int64_t head, int64_t i, heed__run *out);
    int64_t (*list)(const void *context, int64_t head, int64_t i, int32_t *out);
    const void *context;
    int most;
    int64_t shared;                                          /* rows that every query sees */
    heed__matrix shared_k, shared_v, d_shared_k, d_shared_v; /* the last two are added to */
    uint64_t shared_first;
    bool packed; /* the keys and values in scratch are this head's already */
} heed__head;

/* *_scratch   bytes of 64-byte aligned scratch that the other two need
 * *_forward   out; P into weights, maxima and sums into stats, unless they are NULL
 * *_backward  from weights or stats, d_out and d_weights (either may be NULL): the gradients that
 *             are not NULL, as beta * what is there + gradient; d_scores is P's shape, assigned.
 *             tiles_backward and list_backward need stats */
#define HEED_KERNELS_HEAD(X)                                                                       \
    X(size_t, head_scratch, (int64_t t, int64_t s, int64_t d_k, int64_t d_v))                      \
    X(void, head_forward, (const heed__head *h))                                                   \
    X(void, head_backward, (const heed__head *h))                                                  \
    X(size_t, tiles_scratch,                                                                       \
      (int64_t t, int64_t s, int64_t shared, int most, int64_t d_k, int64_t d_v))                  \
    X(void, tiles_forward, (const heed__head *h))                                                  \
    X(void, tiles_backward, (const heed__head *h))                                                 \
    X(size_t, list_scratch, (int64_t s, int64_t shared, int64_t d_k))                              \
    X(void, list_forward, (const heed__head *h))                                                   \
    X(void, list_backward, (const heed__head *h))

#endif
