/* attention_jobs.h: how heed_attention is cut into heads of segments, and what it saves between
 * forward and backward. */
#ifndef HEED_OPS_ATTENTION_JOBS_H
#define HEED_OPS_ATTENTION_JOBS_H

#include "ops/pairs.h"

enum {
    HEED__ATTENTION_Q,
    HEED__ATTENTION_K,
    HEED__ATTENTION_V,
    HEED__ATTENTION_BIAS,
    HEED__ATTENTION_DISTANCE,
    HEED__ATTENTION_SHARED_K,
    HEED__ATTENTION_SHARED_V,
    HEED__ATTENTION_INPUTS,
};

typedef struct heed__attention_call {
    heed_pairs pairs; /* its heads are those of the queries */
    int kv_heads;
    bool causal;
    bool weights; /* P is the second output */
    bool patterned;
    heed_key_pattern pattern; /* if patterned */
    const int32_t *visible;
    double scale, dropout;
    heed_attention_counts *counts;
} heed__attention_call;

/* Where the parts of c->saved begin, and its end, all in reals: P of the segments where it is kept,
 * maxima and sums, gradients of scores for that of bias, and by distance. */
typedef struct heed__attention_saved {
    int64_t stats, d_scores, d_distance, end;
} heed__attention_saved;
heed__attention_saved heed__attention_saves(const heed_opcall *c);
/* A thread's scratch, in bytes: two counts, the bias by distance, the thread's own gradients of
 * shared rows, ranges or what a list needs, the kernel's. */
typedef struct heed__attention_room {
    size_t distance, shared, ranges, kernel, end;
} heed__attention_room;
heed__attention_room heed__attention_room_of(const heed_opcall *c);

/* What all heads have in common, as if head and segment began at the first row and column. */
typedef struct heed__attention_job {
    const heed_opcall *c;
    heed__head all;
    bool back;
    bool runs; /* the kernels for runs or lists of keys, not those for all */
    heed__attention_saved saved;
    heed__attention_room room;
    int64_t cost, parts;
} heed__attention_job;
heed__attention_job heed__attention_job_of(const heed_opcall *c, const heed_rng *rng, bool back);
void heed__attention_run(heed__attention_job *j, int threads);

/* After the run: what the threads have counted; the sums of what they have for shared rows, added
 * to (P,cols) in `to`, cols those of one of the two; and by distance, added to the gradient of
 * the bias. */
void heed__attention_count(const heed__attention_job *j);
void heed__attention_shared(const heed__attention_job *j, int input, real *to);
void heed__attention_distances(const heed__attention_job *j, real *to);

#endif
