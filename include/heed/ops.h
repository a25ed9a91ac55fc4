/* ops.h: the differentiable operators.  Each computes at once, records itself on the tape and
 * returns a tensor that lives until heed_tape_reset, or NULL after the tape's first error.
 *
 * Rows and columns: unless stated otherwise an operator works on each row (last axis) of its input
 * and returns the same shape.  Index arrays and segments are borrowed until heed_tape_reset. */
#ifndef HEED_OPS_H
#define HEED_OPS_H

#include <heed/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arithmetic ---- */

/* b has a's shape, or is a row (cols) or (1,cols) used for every row of a, or a column (rows,1)
 * used for every column of a, or a scalar. */
heed_tensor *heed_add(heed_tape *t, heed_tensor *a, heed_tensor *b);
heed_tensor *heed_sub(heed_tape *t, heed_tensor *a, heed_tensor *b);
heed_tensor *heed_mul(heed_tape *t, heed_tensor *a, heed_tensor *b);
heed_tensor *heed_div(heed_tape *t, heed_tensor *a, heed_tensor *b);
/* scale * x + shift */
heed_tensor *heed_scale(heed_tape *t, heed_tensor *x, double scale, double shift);
/* Gradient 1 inside [low, high], 0 outside. */
heed_tensor *heed_clamp(heed_tape *t, heed_tensor *x, double low, double high);
heed_tensor *heed_abs(heed_tape *t, heed_tensor *x);
heed_tensor *heed_exp(heed_tape *t, heed_tensor *x);
heed_tensor *heed_log(heed_tape *t, heed_tensor *x);
heed_tensor *heed_sqrt(heed_tape *t, heed_tensor *x);
heed_tensor *heed_square(heed_tape *t, heed_tensor *x);

/* ---- activations ---- */

typedef enum heed_activation {
    HEED_IDENTITY,
    HEED_RELU,
    HEED_GELU,      /* x Phi(x), by erf */
    HEED_GELU_TANH, /* the tanh form of BERT and GPT-2 */
    HEED_SILU,
    HEED_TANH,
    HEED_SIGMOID,
} heed_activation;
/* The activation of that name; HEED_IDENTITY: x itself. */
heed_tensor *heed_activate(heed_tape *t, heed_tensor *x, heed_activation f);
heed_tensor *heed_relu(heed_tape *t, heed_tensor *x);
heed_tensor *heed_gelu(heed_tape *t, heed_tensor *x);
heed_tensor *heed_gelu_tanh(heed_tape *t, heed_tensor *x);
heed_tensor *heed_silu(heed_tape *t, heed_tensor *x);
heed_tensor *heed_tanh(heed_tape *t, heed_tensor *x);
heed_tensor *heed_sigmoid(heed_tape *t, heed_tensor *x);
heed_tensor *heed_softplus(heed_tape *t, heed_tensor *x);
/* The largest of each `pieces` neighbouring columns: (N, pieces*D) -> (N, D). */
heed_tensor *heed_maxout(heed_tape *t, heed_tensor *x, int64_t pieces);

/* ---- products ---- */

typedef enum heed_transpose { HEED_NN, HEED_NT, HEED_TN } heed_transpose;
/* NN: a (M,K) b (K,N); NT: a (M,K) b (N,K); TN: a (K,M) b (K,N); always -> (M,N). */
heed_tensor *heed_matmul(heed_tape *t, heed_tensor *a, heed_tensor *b, heed_transpose transpose);
/* The same for each of G pairs of matrices: a (G,M,K), b (G,K,N), ... -> (G,M,N). */
heed_tensor *heed_batch_matmul(heed_tape *t, heed_tensor *a, heed_tensor *b,
                               heed_transpose transpose);
/* y = activation(x W + b).  x (N,K), W (K,F), b (F) or NULL -> (N,F). */
heed_tensor *heed_linear(heed_tape *t, heed_tensor *x, heed_tensor *weight, heed_tensor *bias,
                         heed_activation activation);
/* a (N,I), b (N,J) -> (N, I*J): y[i*J+j] = a[i] b[j]. */
heed_tensor *heed_outer(heed_tape *t, heed_tensor *a, heed_tensor *b);
/* a (N,D), b (N,D) -> (N,1): a.b / max(|a| |b|, eps). */
heed_tensor *heed_cosine(heed_tape *t, heed_tensor *a, heed_tensor *b, double eps);
/* Each of `parts` equal pieces of a row divided by its length, or by eps if that is more. */
heed_tensor *heed_unit(heed_tape *t, heed_tensor *x, int64_t parts, double eps);

/* ---- softmax and reductions ---- */

/* Maxima, here and in heed_maxout and heed_top_k, propagate NaN: it counts as the largest. */

/* A fully masked row (all -inf) gives zeros (log-softmax: -inf) and a zero gradient. */
heed_tensor *heed_softmax(heed_tape *t, heed_tensor *x);
heed_tensor *heed_log_softmax(heed_tape *t, heed_tensor *x);
/* Softmax over the rows of each segment, column by column: x (N,D). */
heed_tensor *heed_segment_softmax(heed_tape *t, heed_tensor *x, const heed_segments *s);
/* (N,D) -> (B,D).  An empty segment gives zeros. */
heed_tensor *heed_segment_sum(heed_tape *t, heed_tensor *x, const heed_segments *s);
heed_tensor *heed_segment_mean(heed_tape *t, heed_tensor *x, const heed_segments *s);
heed_tensor *heed_segment_max(heed_tape *t, heed_tensor *x, const heed_segments *s);

typedef enum heed_axis { HEED_ALL, HEED_ROWS, HEED_COLS } heed_axis;
/* HEED_ALL: a scalar (1).  HEED_COLS: each row reduced over its columns, -> (rows,1).  HEED_ROWS:
 * each column reduced over all rows, -> (1,cols). */
heed_tensor *heed_sum(heed_tape *t, heed_tensor *x, heed_axis axis);
heed_tensor *heed_mean(heed_tape *t, heed_tensor *x, heed_axis axis);
heed_tensor *heed_max(heed_tape *t, heed_tensor *x, heed_axis axis);
heed_tensor *heed_logsumexp(heed_tape *t, heed_tensor *x, heed_axis axis);
/* The k largest of each row, largest first (ties: lower column first): (N,C) -> (N,k).
 * If indices is not NULL it receives an (N,k) array of columns that lives until reset. */
heed_tensor *heed_top_k(heed_tape *t, heed_tensor *x, int64_t k, const int32_t **indices);

/* ---- norms and dropout ---- */

/* gain, bias (D); bias may be NULL.  Biased variance. */
heed_tensor *heed_layer_norm(heed_tape *t, heed_tensor *x, heed_tensor *gain, heed_tensor *bias,
                             double eps);
heed_tensor *heed_rms_norm(heed_tape *t, heed_tensor *x, heed_tensor *gain, double eps);
/* Per column over all rows (of pictures: per channel); gain and bias may be NULL.  In training: the
 * batch's statistics, and running = (1-momentum)
 * running + momentum batch (unbiased variance) once the update ends (heed_state_add); otherwise the
 * running ones.  mean, variance (D) are state, not trained; other tensors stay. */
heed_tensor *heed_batch_norm(heed_tape *t, heed_tensor *x, heed_tensor *gain, heed_tensor *bias,
                             heed_tensor *running_mean, heed_tensor *running_variance,
                             double momentum, double eps);
/* In training: zero with probability rate, else x / (1 - rate).  rate in [0,1). */
heed_tensor *heed_dropout(heed_tape *t, heed_tensor *x, double rate);
/* layer_norm(x + dropout(y)), fused; the order of the paper's sublayer (post-norm). */
heed_tensor *heed_add_norm(heed_tape *t, heed_tensor *x, heed_tensor *y, heed_tensor *gain,
                           heed_tensor *bias, double rate, double eps);
/* x + dropout(y), fused: the residual of a pre-norm sublayer. */
heed_tensor *heed_add_dropout(heed_tape *t, heed_tensor *x, heed_tensor *y, double rate);

/* ---- rows, columns, shapes ---- */

/* dropout(scale * table[ids[n]] + positions[n]): table (V,D), ids (N) -> (N,D).  A negative id is
 * no row of the table: its position alone, and no gradient to the table.  positions NULL, or (P,D)
 * with row position_ids[n] added; a position table that needs a gradient gets one. */
typedef struct heed_embedding_options {
    double scale; /* 0 means 1 */
    heed_tensor *positions;
    const int32_t *position_ids; /* (N), needed with positions */
    double dropout;
} heed_embedding_options;
heed_tensor *heed_embedding(heed_tape *t, heed_tensor *table, const int32_t *ids, int64_t n,
                            const heed_embedding_options *options);
/* y[n] = x[index[n]]; a negative index gives a zero row. */
heed_tensor *heed_gather_rows(heed_tape *t, heed_tensor *x, const int32_t *index, int64_t n);
/* y (rows,D), y[index[n]] += x[n], other rows zero; a negative index skips the row. */
heed_tensor *heed_scatter_rows(heed_tape *t, heed_tensor *x, const int32_t *index, int64_t rows);
/* Each element (mask (count)) or, with rows true, each row (mask (rows)): a where mask != 0, else
 * b. */
heed_tensor *heed_select(heed_tape *t, const uint8_t *mask, bool rows, heed_tensor *a,
                         heed_tensor *b);
/* Columns side by side (same rows), or rows one below the other (same columns). */
heed_tensor *heed_concat_cols(heed_tape *t, heed_tensor *const *x, int n);
heed_tensor *heed_concat_rows(heed_tape *t, heed_tensor *const *x, int n);
/* Views: no copy, the gradient flows into x's own. */
heed_tensor *heed_slice_cols(heed_tape *t, heed_tensor *x, int64_t begin, int64_t end);
heed_tensor *heed_slice_rows(heed_tape *t, heed_tensor *x, int64_t begin, int64_t end);
heed_tensor *heed_reshape(heed_tape *t, heed_tensor *x, heed_shape shape);
/* (M,N) -> (N,M); with rank 3 each of the G matrices. */
heed_tensor *heed_transpose_last(heed_tape *t, heed_tensor *x);
/* n tensors of one shape (B,D), one per time step -> (n,B,D), and step i of it as a view (B,D). */
heed_tensor *heed_stack_steps(heed_tape *t, heed_tensor *const *x, int n);
heed_tensor *heed_unstack(heed_tape *t, heed_tensor *x, int64_t i);
/* Inside each segment: row i becomes row i-by; the first |by| rows (or last, if by < 0) become
 * `fill` (D), or zeros. */
heed_tensor *heed_segment_shift(heed_tape *t, heed_tensor *x, const heed_segments *s, int64_t by,
                                heed_tensor *fill);
heed_tensor *heed_segment_reverse(heed_tape *t, heed_tensor *x, const heed_segments *s);
/* The same values, without gradient. */
heed_tensor *heed_stop_gradient(heed_tape *t, heed_tensor *x);

/* ---- pictures ---- */

/* A picture is a segment of Y*X rows, line by line, with its C channels as columns, so attention
 * over rows is attention over pixels.  A batch is (B*Y*X, C), pictures of one size. */
typedef struct heed_image_size {
    int64_t y, x;
} heed_image_size;

/* Zeros stand beyond the edges.  A stride or dilation of 0 means 1. */
typedef struct heed_conv2d_options {
    heed_image_size image; /* Y, X of x */
    heed_image_size kernel, stride, padding, dilation;
    heed_image_size extra; /* transposed: lines and columns more at the end, less than the stride */
} heed_conv2d_options;
/* Y, X of the result; 0 where the kernel does not fit. */
heed_image_size heed_conv2d_size(const heed_conv2d_options *options);
heed_image_size heed_conv2d_transposed_size(const heed_conv2d_options *options);
/* y[o] = bias + sum over k of x[o * stride - padding + k * dilation] W[k] (so a correlation, as
 * elsewhere).  weight (KY*KX*C, F): the (C,F) matrices of the kernel's places line by line; bias
 * (F) or NULL; (B*Y*X,C) -> (B*Y'*X',F). */
heed_tensor *heed_conv2d(heed_tape *t, heed_tensor *x, heed_tensor *weight, heed_tensor *bias,
                         const heed_conv2d_options *options);
/* The other way: y[o * stride - padding + k * dilation] += x[o] W[k], the same weights: pictures
 * grow to (Y-1) stride - 2 padding + dilation (K-1) + 1 + extra. */
heed_tensor *heed_conv2d_transposed(heed_tape *t, heed_tensor *x, heed_tensor *weight,
                                    heed_tensor *bias, const heed_conv2d_options *options);

typedef struct heed_conv1d_options {
    int64_t kernel, stride, dilation; /* 0 for the last two means 1 */
    int64_t padding;                  /* zeros at each end of a segment */
    bool causal; /* y[o] reads x[o * stride] and rows before it: as much padding, but in front */
} heed_conv1d_options;
/* The same along the rows of each segment: weight (K*C, F).  If lengths change, *out, unless out is
 * NULL, receives the segments of the result (a segment shorter than the kernel becomes empty), else
 * the given ones; they live until reset. */
heed_tensor *heed_conv1d(heed_tape *t, heed_tensor *x, heed_tensor *weight, heed_tensor *bias,
                         const heed_segments *segments, const heed_conv1d_options *options,
                         const heed_segments **out);

/* Windows of kernel pixels, stride apart (0: the kernel); pixels beyond the edges are left out,
 * also of what the mean is divided by. */
typedef struct heed_pool2d_options {
    heed_image_size image, kernel, stride, padding;
} heed_pool2d_options;
heed_image_size heed_pool2d_size(const heed_pool2d_options *options);
heed_tensor *heed_max_pool2d(heed_tape *t, heed_tensor *x, const heed_pool2d_options *options);
heed_tensor *heed_mean_pool2d(heed_tape *t, heed_tensor *x, const heed_pool2d_options *options);
/* Each pixel becomes by.y x by.x of its kind (nearest neighbour). */
heed_tensor *heed_upsample(heed_tape *t, heed_tensor *x, heed_image_size image, heed_image_size by);

/* Row i of segment b: x[i] * gain[b] + bias[b]; gain, bias (B,D), bias may be NULL.  With
 * heed_batch_norm without gain: conditional batch norm. */
heed_tensor *heed_segment_affine(heed_tape *t, heed_tensor *x, heed_tensor *gain, heed_tensor *bias,
                                 const heed_segments *s);
/* weight (K,F) / sigma, sigma its largest singular value by one power iteration from u (F), which
 * is state (heed_state, not zero).  moves: while the tape trains, u is replaced by what the
 * iteration gives once the update ends; false in a pass that trains other parameters than these. */
heed_tensor *heed_spectral_norm(heed_tape *t, heed_tensor *weight, heed_tensor *u, bool moves);

/* ---- losses ---- */

/* The sum over rows of cross-entropy between softmax(logits) and the smoothed target: 1-e on
 * targets[n], e uniform over all V. logits (N,V) -> (1).  A row with a negative target is skipped.
 */
heed_tensor *heed_cross_entropy(heed_tape *t, heed_tensor *logits, const int32_t *targets,
                                double smoothing);
/* The same for logits = h W^T + bias with W (V,D) as an embedding table is stored, in chunks of
 * rows: the (N,V) logits are never stored as a whole.  bias (V) or NULL.  While the tape records,
 * the gradients are computed during forward, for an upstream gradient of `weight`: the loss
 * returned is weight * sum, and W's gradient is written before heed_backward runs.  Pass weight =
 * 1/tokens rather than scaling the result, which costs one more pass.  nll, if not NULL, receives
 * the unsmoothed sum, without a gradient and without weight. */
heed_tensor *heed_project_cross_entropy(heed_tape *t, heed_tensor *h, heed_tensor *w,
                                        heed_tensor *bias, const int32_t *targets, double smoothing,
                                        double weight, double *nll);

/* The same for rows where a teacher knows better (Hinton, Vinyals, Dean 2015): where targets[n] is
 * HEED_FROM_TEACHER, what is wanted is the distribution softmax(h W^T + bias) of the teacher's own
 * tensors, which have the shapes of the learner's and get no gradient; nll counts the cross-entropy
 * with it.  teacher NULL: there is none. */
#define HEED_FROM_TEACHER (-2)
typedef struct heed_teacher {
    const heed_tensor *h, *w, *bias; /* bias may be NULL */
} heed_teacher;
heed_tensor *heed_project_distil(heed_tape *t, heed_tensor *h, heed_tensor *w, heed_tensor *bias,
                                 const heed_teacher *teacher, const int32_t *targets,
                                 double smoothing, double weight, double *nll);
/* log softmax(h W^T + bias) at targets[n], in chunks of rows: (N,1), without a gradient.  bias (V)
 * or NULL.  A negative target gives 0. */
heed_tensor *heed_project_log_p(heed_tape *t, heed_tensor *h, heed_tensor *w, heed_tensor *bias,
                                const int32_t *targets);

/* ---- attention ---- */

/* Keys begin, begin + step, ... below end, counted from the segment's first, and the width - 1 keys
 * behind each of them: {8, 40, 16, 3} is 8 9 10, 24 25 26.  0 stands for 1 in step and width. */
typedef struct heed_key_range {
    int32_t begin, end, step, width;
} heed_key_range;
/* Which keys a query sees, computed where it is needed and never stored.  ranges() gives those of
 * query i of a segment of `queries` and `keys` (both counted), in this head, and returns how many
 * ranges it wrote, at most `most`.  Each lies in 0..keys and begins at or behind the end of the one
 * before.  list(), in its place, is for keys that follow from more than positions and stand
 * anywhere: it writes those of query i of segment number `segment`, in ascending order, and returns
 * how many.  They are called from several threads at once, and twice must give the same. */
typedef struct heed_key_pattern {
    int (*ranges)(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                  heed_key_range *out);
    const void *context; /* borrowed until heed_tape_reset; the pattern itself is copied */
    int most;
    bool same_heads; /* every head has the ranges of head 0 */
    int64_t (*list)(const void *context, int64_t segment, int head, int64_t i, void *room,
                    int32_t *out);
    size_t room; /* bytes that list() has to itself, zeros at first, aligned to 64 */
} heed_key_pattern;

/* What a call computed.  pairs: of a query and a key that met in a softmax, over all heads, shared
 * rows included.  products: dot products q.k that were made for them; more than pairs, because
 * tiles of several queries and keys are made whole. */
typedef struct heed_attention_counts {
    int64_t pairs, products;
} heed_attention_counts;

/* All but heads is optional.  A query sees a key if everything given here lets it: causal, pattern,
 * visible. */
typedef struct heed_attention_options {
    int heads;      /* H, of the queries */
    int kv_heads;   /* of keys and values, a divisor of H; 0 means H.  Query head h meets key head
                     * h / (H/KvHeads) */
    bool causal;    /* query i sees keys 0..i of its segment */
    double scale;   /* 0 means 1/sqrt(Dk) */
    double dropout; /* on the probabilities */
    const heed_key_pattern *pattern; /* NULL: all keys.  Time and memory go with what it leaves */
    const int32_t *visible; /* NULL, or (N): query n sees at most the first visible[n] keys of its
                             * segment: a compressed memory of which only whole parts may be seen */
    heed_tensor *bias; /* NULL, or (H,T,S) or (1,T,S): added to the scores at [head, query, key];
                          -inf forbids */
    /* NULL, or (H,L) or (1,L): added to the score of query i and key j of a segment, by distance.
     * causal: column min(i - j, L - 1).  Else L is odd, L = 2 R + 1, and the column is R + (i - j)
     * with i - j cut to -R..R: column 0 is for keys R or more after the query, R for its own
     * position, L - 1 for keys R or more before it.  -inf forbids. */
    heed_tensor *distance_bias;
    /* Both or none: (P,KvHeads*Dk), (P,KvHeads*Dv): P rows that every query of every segment sees
     * besides its keys, in one softmax: persistent vectors.  They have no position: no pattern,
     * causality, visible or bias applies to them. */
    heed_tensor *shared_k, *shared_v;
    /* If not NULL, receives the probabilities before dropout, flat: head h of segment b is the
     * row-major (T_b,S_b) block at H*pair[b] + h*T_b*S_b, pair[b] = sum of T*S over the segments
     * before b; 0 where a query does not see a key, shared rows left out.  Differentiable. */
    heed_tensor **probabilities;
    heed_attention_counts *counts; /* if not NULL, receives what forward computed */
} heed_attention_options;
/* Multi-head scaled dot-product attention inside each segment: q (N,H*Dk), k (M,KvHeads*Dk),
 * v (M,KvHeads*Dv) -> (N,H*Dv).  Segment b of q attends to segment b of k and v.  A query that sees
 * no key gives zeros.  Memory is linear in N + M unless bias or probabilities are given. */
heed_tensor *heed_attention(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                            const heed_segments *queries, const heed_segments *keys,
                            const heed_attention_options *options);

/* Adaptive span (Sukhbaatar et al. 2019) as a distance_bias (above): log m_h(x) with m_h(x) =
 * clamp((R + S u_h - x) / R, 0, 1), -inf where m is 0, for distances x up to S + R.  u (H) ->
 * (H,L); u is taken as 0 below 0 and 1 above 1, and gets no gradient that would take it further
 * out. */
typedef struct heed_span_options {
    int64_t most, ramp; /* S, R */
    bool causal;        /* L = S + R + 1; else both sides */
} heed_span_options;
heed_tensor *heed_span_bias(heed_tape *t, heed_tensor *u, const heed_span_options *options);

/* phi of attention without weights: what queries and keys x (Dk) become, so that phi(q).phi(k)
 * stands for exp(q.k).  w_1 .. w_M are random directions. */
typedef enum heed_feature_kind {
    HEED_FEATURES_ELU,      /* elu(x) + 1 (Katharopoulos et al. 2020) */
    HEED_FEATURES_POSITIVE, /* exp(w.y - |y|^2 / 2) / sqrt(M), y = x / Dk^1/4: on average, products
                             * are exp(q.k / sqrt(Dk)) (FAVOR+: Choromanski et al. 2021) */
    HEED_FEATURES_WAVES,    /* [sin(w.x), cos(w.x)] / sqrt(M): on average, products are
                             * exp(-|q - k|^2 / 2) (Peng et al. 2021) */
    HEED_FEATURES_DPFP,     /* r_i r_{i-n}, n = 1 .. nu, r = [max(x, 0), max(-x, 0)], places counted
                             * in a ring (Schlag, Irie, Schmidhuber 2021) */
} heed_feature_kind;
typedef struct heed_features {
    heed_feature_kind kind;
    int64_t count;           /* nu of DPFP, 1 to 2 Dk */
    heed_tensor *directions; /* (M,Dk) of positive features and waves (nn.h: HEED_INIT_DIRECTIONS);
                              * constants: no gradient reaches them */
    bool unit_sum;           /* phi is divided by its sum + 1e-6 */
} heed_features;
/* Attention without weights (Katharopoulos et al. 2020): query i gets phi(q_i) S / (phi(q_i) z +
 * eps), S = sum_j phi(k_j)^T v_j and z = sum_j phi(k_j) over the keys of its segment, or over 0..i.
 * q (N,H*Dk), k (M,KvHeads*Dk), v (M,KvHeads*Dv) -> (N,H*Dv).  Time and memory are linear in N + M.
 * A query that sees no key gives zeros.  Of waves, whose products may be below 0, the denominator
 * is max(phi(q_i) z, eps). */
typedef struct heed_linear_attention_options {
    int heads;    /* H */
    int kv_heads; /* a divisor of H; 0 means H.  Query head h meets key head h / (H/KvHeads) */
    bool causal;
    double eps; /* 0 means 1e-6; of positive features 1e-20, of waves 1e-3 */
    heed_features features;
    /* NULL, or (M,KvHeads): g = sigmoid of it makes both sums fade from key to key, S_j = g_j
     * S_{j-1} + (1 - g_j) phi(k_j)^T v_j (Peng et al. 2021).  Causal, as many queries as keys. */
    heed_tensor *gate;
} heed_linear_attention_options;
heed_tensor *heed_linear_attention(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                                   const heed_segments *queries, const heed_segments *keys,
                                   const heed_linear_attention_options *options);

/* Fast weights by the delta rule (Schlag, Irie, Schmidhuber 2021): a matrix W for each head and
 * segment, at first zeros, that every row changes and then reads:
 *   W_i = W_{i-1} + phi(k_i)^T b_i (v_i - phi(k_i) W_{i-1}),  b_i = sigmoid(gate_i);  o_i =
 * phi(q_i) W_i What a key has stood for is replaced, not added to.  q (N,H*Dk), k (N,KvHeads*Dk), v
 * (N,KvHeads*Dv), gate (N,KvHeads) -> (N,H*Dv): the same rows in all.  Time and memory are linear
 * in N.  With features whose sums are not 1 (heed_features.unit_sum) W may grow beyond all bounds.
 * */
typedef struct heed_delta_attention_options {
    int heads;    /* H */
    int kv_heads; /* a divisor of H; 0 means H */
    heed_features features;
} heed_delta_attention_options;
heed_tensor *heed_delta_attention(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                                  heed_tensor *gate, const heed_segments *rows,
                                  const heed_delta_attention_options *options);

/* Rotary positions (Su et al. 2021): in each of `heads` equal pieces of a row, d columns each and d
 * even, pairs of elements are turned by the angle position * base^(-2i/d), i = 0 .. d/2-1; position
 * counts from 0 in each segment.  For queries and keys, whose products then depend on how far they
 * are from each other.  x (N,heads*d) -> the same. */
typedef struct heed_rotary_options {
    int heads;
    bool neighbours; /* pairs are (2i, 2i+1); else (i, i + d/2) */
    double base;     /* 0 means 10000 */
} heed_rotary_options;
heed_tensor *heed_rotary(heed_tape *t, heed_tensor *x, const heed_segments *segments,
                         const heed_rotary_options *options);

/* Attention in its parts, for scores and windows that heed_attention does not have: a score, then
 * weights, then a mixture of values.  A flat tensor has a number for each pair of a query and a key
 * of one segment, laid out as `probabilities` above. */
typedef struct heed_pairs {
    const heed_segments *queries, *keys; /* the same number; segment b meets segment b */
    int heads;                           /* H */
    /* Both NULL: every query sees every key of its segment.  Else (N,H): in head h query n sees
     * keys begin[n*H+h] to end[n*H+h], the last not included, counted from its segment's first. */
    const int32_t *begin, *end;
} heed_pairs;
/* Scores; 0 where a query does not see a key.
 * scale q_i . k_j: q (N,H*Dk), k (M,H*Dk). */
heed_tensor *heed_pairs_dot(heed_tape *t, heed_tensor *q, heed_tensor *k, double scale,
                            const heed_pairs *pairs);
/* v . tanh(q_i + k_j): q (N,H*A), k (M,H*A), v (H*A). */
heed_tensor *heed_pairs_additive(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                                 const heed_pairs *pairs);
/* x_i[j], j the place of the key: x (N,H*L), L at least the longest segment of keys. */
heed_tensor *heed_pairs_location(heed_tape *t, heed_tensor *x, const heed_pairs *pairs);
/* Weights: each query's scores over the keys that it sees; 0 elsewhere.  logs, if not NULL,
 * receives their logarithms, -inf elsewhere.  Both differentiable. */
heed_tensor *heed_pairs_softmax(heed_tape *t, heed_tensor *scores, const heed_pairs *pairs,
                                heed_tensor **logs);
/* exp(-(j - p_i)^2 / 2 deviation^2): p (N,H) in places of keys; to multiply weights with. */
heed_tensor *heed_pairs_gaussian(heed_tape *t, heed_tensor *p, double deviation,
                                 const heed_pairs *pairs);
/* One key for each query, drawn by log_p (flat) or the likeliest: weights of 1 there and 0
 * elsewhere, through which no gradient flows.  chosen_log_p receives (N,H), differentiable; chosen
 * (N,H) places of keys, -1 where none is seen, that live until reset.  Both may be NULL. */
heed_tensor *heed_pairs_choose(heed_tape *t, heed_tensor *log_p, bool draw, const heed_pairs *pairs,
                               heed_tensor **chosen_log_p, const int32_t **chosen);
/* sum_j w_ij v_j: weights flat, values (M,H*Dv) -> (N,H*Dv). */
heed_tensor *heed_pairs_mix(heed_tape *t, heed_tensor *weights, heed_tensor *values,
                            const heed_pairs *pairs);

/* ---- recurrence ---- */

/* One step for B sequences.  x (B,4*D) is the input's part of the gates, x W + b, in the order i f
 * g o; u (D,4*D). c = f*c_prev + i*g, h = o*tanh(c).  h_prev and c_prev may have more rows than x:
 * the first B are used. */
typedef struct heed_lstm_state {
    heed_tensor *h, *c; /* (B,D) */
} heed_lstm_state;
heed_lstm_state heed_lstm_step(heed_tape *t, heed_tensor *x, heed_lstm_state previous,
                               heed_tensor *u);

/* z: keep (Cho 2014, PyTorch): h = z*h_prev + (1-z)*n; take (Bahdanau 2015): h = (1-z)*h_prev +
 * z*n. reset before the product: n = tanh(x_n + (r*h_prev) U_n); after (cuDNN): n = tanh(x_n +
 * r*(h_prev U_n + b)). */
typedef enum heed_gru_kind {
    HEED_GRU_Z_KEEPS = 0,
    HEED_GRU_Z_TAKES = 1,
    HEED_GRU_RESET_AFTER = 2
} heed_gru_kind;
/* x (B,3*D) in the order r z n, u (D,3*D), bias (3*D) added to h U, or NULL.  kind: the flags
 * above, added. */
heed_tensor *heed_gru_step(heed_tape *t, heed_tensor *x, heed_tensor *h_prev, heed_tensor *u,
                           heed_tensor *bias, int kind);

/* The simpler simple recurrent unit (Kim et al. 2019) along each segment, all steps at once:
 * c_i = s(f_i) c_{i-1} + (1 - s(f_i)) x_i with s the sigmoid and c = 0 before the first row, and
 * h_i = relu(c_i).  x (N,D), f (N,D) -> h (N,D). */
heed_tensor *heed_ssru(heed_tape *t, heed_tensor *x, heed_tensor *f, const heed_segments *segments);

/* A recurrence that looks back at n earlier steps of its B sequences: s_i = softmax over i of
 * v . tanh(q + k_i), y = sum s_i x_i.  q (B,A), v (A); keys[i] (B,A) and values[i] (B,D), or more
 * rows, of which the first B are used -> (B,D).  weights, unless it is NULL, receives s (B,n),
 * differentiable.  What the steps hold is read where it is: nothing is copied. */
heed_tensor *heed_read_steps(heed_tape *t, heed_tensor *q, heed_tensor *v, heed_tensor *const *keys,
                             heed_tensor *const *values, int n, heed_tensor **weights);

/* ---- external memory ---- */

/* The Neural Turing Machine's memory and heads (Graves, Wayne, Danihelka 2014).  A batch of B
 * memories of N locations with M elements each is (B,M,N): one element of all locations in a row.
 * H heads are side by side in a row: their weights (B,H*N), keys (B,H*M), strengths (B,H).
 *
 * By content: w_i = softmax_i(beta cos(k, M_i)).  k (B,H*M), beta (B,H) -> (B,H*N). */
heed_tensor *heed_ntm_content(heed_tape *t, heed_tensor *memory, heed_tensor *k, heed_tensor *beta);
/* By location: interpolate with the previous weights, w^g = g content + (1 - g) previous; shift by
 * a circular convolution, w~_i = sum_j w^g_j s(i - j); sharpen, w_i = w~_i^gamma / sum_j
 * w~_j^gamma.  g, gamma (B,H); s (B,H*S), S odd, column c of a head being the offset c - S/2. */
heed_tensor *heed_ntm_location(heed_tape *t, heed_tensor *content, heed_tensor *previous,
                               heed_tensor *g, heed_tensor *s, heed_tensor *gamma);
/* r = sum_i w_i M_i: w (B,H*N) -> (B,H*M). */
heed_tensor *heed_ntm_read(heed_tape *t, heed_tensor *w, heed_tensor *memory);
/* All heads erase, then all add: M_i' = M_i prod_h (1 - w_hi e_h) + sum_h w_hi a_h.  erase, add
 * (B,H*M) -> (B,M,N). */
heed_tensor *heed_ntm_write(heed_tape *t, heed_tensor *memory, heed_tensor *w, heed_tensor *erase,
                            heed_tensor *add);

/* ---- sampling ---- */

/* Draws one column from each row of log-probabilities (N,C): samples receives (N) columns that live
 * until reset; returns their log-probabilities (N,1), differentiable. */
heed_tensor *heed_sample(heed_tape *t, heed_tensor *log_p, const int32_t **samples);

#ifdef __cplusplus
}
#endif
#endif
