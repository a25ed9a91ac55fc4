/* attention: multi-head scaled dot-product attention inside each segment of a packed batch.
 *
 *   P = softmax(scale Q_h K_h^T + bias_h),  O_h = dropout(P) V_h     for each segment and head h
 *
 * q (N,H*Dk), k (M,H*Dk), v (M,H*Dv) -> (N,H*Dv); head h is columns h*Dk.. of the packed rows, read
 * in place.  Costs sum of T*S over the segments, half of it if causal.  While recording, the P of
 * all segments stay (their place: `weights` in ops.h); dropout's mask is made again in backward.
 * A pair of segment and head is one thread's alone and nothing is summed across threads, so the
 * result does not depend on their number.  Refuses shapes that do not fit heads and segments. */
#include "base/parallel.h"
#include "ops/overlap.h"
#include "ops/pairs.h"

#include <math.h>

typedef struct attributes {
    heed_pairs pairs;
    bool causal;
    bool weights;        /* P is the second output */
    const char *missing; /* an option that is declared and not computed yet */
    double scale, dropout;
} attributes;

enum { Q, K, V, BIAS };

static heed_status check(heed_opcall *c, int64_t *count)
{
    const attributes *a = c->attributes;
    const heed_segments *queries = a->pairs.queries, *keys = a->pairs.keys;
    const int heads = a->pairs.heads;
    const heed_tensor *q = c->in[Q], *k = c->in[K], *bias = c->in[BIAS];
    heed_status status = heed__pairs_check(c, &a->pairs, count);
    if (status)
        return status;
    if (a->missing)
        return heed__op_fail(c, HEED_ARGUMENT, "%s is not supported yet", a->missing);
    if (!(a->dropout >= 0 && a->dropout < 1))
        return heed__op_fail(c, HEED_ARGUMENT, "dropout is %g, expected 0 <= rate < 1", a->dropout);
    if (!isfinite(a->scale))
        return heed__op_fail(c, HEED_ARGUMENT, "scale is %g, expected a finite number", a->scale);
    if (heed__pairs_check_rows(c, "q", q, queries, heads, "Dk") ||
        heed__pairs_check_rows(c, "k", k, keys, heads, "Dk") ||
        heed__pairs_check_rows(c, "v", c->in[V], keys, heads, "Dv"))
        return HEED_SHAPE_ERROR;
    if (k->cols != q->cols)
        return heed__op_shape_fail(c, "k", k, "(%lld,%lld) as q has", (long long)keys->rows,
                                   (long long)q->cols);
    if (bias &&
        (bias->shape.rank != 3 || (bias->shape.dim[0] != 1 && bias->shape.dim[0] != heads) ||
         bias->shape.dim[1] < queries->longest || bias->shape.dim[2] < keys->longest))
        return heed__op_shape_fail(c, "bias", bias,
                                   "(%d or 1,T,S) with T at least %lld and S at least %lld", heads,
                                   (long long)queries->longest, (long long)keys->longest);
    return HEED_OK;
}

static heed_status shape(heed_opcall *c)
{
    const attributes *a = c->attributes;
    int64_t count;
    heed_status status = check(c, &count);
    if (status)
        return status;
    const int64_t d_k = c->in[Q]->cols / a->pairs.heads, d_v = c->in[V]->cols / a->pairs.heads;
    if ((status = heed__out(c, HEED_SHAPE(a->pairs.queries->rows, c->in[V]->cols))))
        return status;
    if (a->weights && (status = heed__out(c, HEED_SHAPE(count))))
        return status;
    /* Saved: P, unless it is an output; and in backward the scores' gradient for that of bias. */
    int64_t saved = c->recorded * count * (!a->weights + (c->in[BIAS] && c->in[BIAS]->needs_grad));
    if (saved && (status = heed__save(c, (size_t)saved * sizeof(real))))
        return status;
    return heed__want_scratch(c, heed__kernels()->head_scratch(a->pairs.queries->longest,
                                                               a->pairs.keys->longest, d_k, d_v));
}

/* ---- cutting the work ---- */

typedef struct job {
    const heed_opcall *c;
    heed__head all; /* as if head and segment began at the first row and column */
    void (*kernel)(const heed__head *h);
    int64_t cost, parts;
} job;

/* Of one head, in pairs of query and key.  A row costs about as much as eight pairs besides. */
static int64_t cost_of(const attributes *a, int64_t b)
{
    int64_t t = heed__length(a->pairs.queries, b), s = heed__length(a->pairs.keys, b);
    return (a->causal ? t * s / 2 : t * s) + 8 * (t + s) + 1;
}

static heed__matrix part_of(heed__matrix x, int64_t row, int64_t column)
{
    return x.at ? (heed__matrix){x.at + row * x.ld + column, x.ld} : x;
}

static real *at_pair(const real *x, int64_t i)
{
    return x ? (real *)x + i : NULL;
}

static void run_head(const job *j, int64_t b, int64_t head, int64_t weights_at, real *scratch)
{
    const attributes *a = j->c->attributes;
    const heed_tensor *bias = j->c->in[BIAS];
    const int64_t row = a->pairs.queries->offset[b], key = a->pairs.keys->offset[b];
    heed__head h = j->all;
    h.t = heed__length(a->pairs.queries, b);
    h.s = heed__length(a->pairs.keys, b);
    h.q = part_of(h.q, row, head * h.d_k);
    h.k = part_of(h.k, key, head * h.d_k);
    h.v = part_of(h.v, key, head * h.d_v);
    h.out = part_of(h.out, row, head * h.d_v);
    h.d_out = part_of(h.d_out, row, head * h.d_v);
    h.d_q = part_of(h.d_q, row, head * h.d_k);
    h.d_k_rows = part_of(h.d_k_rows, key, head * h.d_k);
    h.d_v_rows = part_of(h.d_v_rows, key, head * h.d_v);
    if (bias && bias->shape.dim[0] > 1)
        h.bias = part_of(h.bias, head * bias->shape.dim[1], 0);
    h.weights = at_pair(h.weights, weights_at);
    h.d_weights = at_pair(h.d_weights, weights_at);
    h.d_scores = at_pair(h.d_scores, weights_at);
    h.first = (uint64_t)weights_at;
    h.scratch = scratch;
    h.head = head;
    h.heads = a->pairs.heads;
    j->kernel(&h);
}

/* Heads of segments lie on a line, each as long as its cost; a part takes those whose middle is in
 * its share of the line. */
static void run_parts(void *context, int64_t begin, int64_t end, int thread)
{
    const job *j = context;
    const attributes *a = j->c->attributes;
    const double low = (double)j->cost * (double)begin / (double)j->parts;
    const double high = (double)j->cost * (double)end / (double)j->parts;
    int64_t at = 0, weights_at = 0;
    for (int64_t b = 0; b < a->pairs.queries->count; b++) {
        int64_t one = cost_of(a, b),
                pairs = heed__length(a->pairs.queries, b) * heed__length(a->pairs.keys, b);
        for (int64_t head = 0; head < a->pairs.heads; head++, at += one, weights_at += pairs) {
            double middle = (double)at + 0.5 * (double)one;
            if (middle >= low && middle < high)
                run_head(j, b, head, weights_at, heed__scratch(j->c, thread));
        }
    }
}

static void run(job *j, int threads)
{
    const attributes *a = j->c->attributes;
    for (int64_t b = 0; b < a->pairs.queries->count; b++)
        j->cost += a->pairs.heads * cost_of(a, b);
    j->parts = threads;
    int64_t work = j->cost / threads * (j->all.d_k + j->all.d_v);
    heed__parallel(threads, threads, 1, work, run_parts, j);
}

static heed__matrix matrix(const heed_tensor *x)
{
    return x ? (heed__matrix){x->data, x->ld} : (heed__matrix){NULL, 0};
}

static job job_of(const heed_opcall *c, const heed_rng *rng)
{
    const attributes *a = c->attributes;
    job j = {.c = c};
    j.all = (heed__head){.d_k = c->in[Q]->cols / a->pairs.heads,
                         .d_v = c->in[V]->cols / a->pairs.heads,
                         .causal = a->causal,
                         .q = matrix(c->in[Q]),
                         .k = matrix(c->in[K]),
                         .v = matrix(c->in[V]),
                         .bias = matrix(c->in[BIAS]),
                         .weights = a->weights ? c->out[1]->data : c->saved,
                         .dropout = a->dropout,
                         .rng = rng};
    j.all.scale = (real)(a->scale != 0 ? a->scale : 1 / sqrt((double)j.all.d_k));
    return j;
}

static void forward(heed_opcall *c)
{
    const heed_rng rng = heed__rng(c);
    job j = job_of(c, &rng);
    j.all.out = matrix(c->out[0]);
    j.kernel = heed__kernels()->head_forward;
    run(&j, heed__threads(c));
}

/* ---- the way back ---- */

/* The gradient of input i, and whether it may be assigned: not if another input's goes there,
 * unless together they are all that goes there. */
static heed__matrix gradient(heed_opcall *c, int i, bool tiled, real *beta)
{
    if (!heed__wants(c, i))
        return (heed__matrix){NULL, 0};
    if (tiled) {
        *beta = 0;
        return (heed__matrix){heed__grad(c, i), c->in[i]->ld};
    }
    bool alone = true;
    for (int other = Q; other <= V; other++)
        alone &= other == i || !heed__share(c->in[i], c->in[other]);
    *beta = 1;
    return (heed__matrix){alone ? heed__grad_beta(c, i, beta) : heed__grad(c, i), c->in[i]->ld};
}

static int safe_threads(const heed_opcall *c)
{
    const attributes *a = c->attributes;
    for (int i = Q; i <= V; i++)
        for (int other = i + 1; other <= V; other++)
            if (heed__wants(c, i) && heed__meet(c->in[i], c->in[other]) &&
                !heed__cut_alike(c->in[i], c->in[other], i == Q ? a->pairs.queries : a->pairs.keys,
                                 a->pairs.keys))
                return 1;
    return heed__threads(c);
}

/* dbias[h,i,j] = sum over segments (and heads, if bias has one for all) of dZ[i,j].  A row of bias
 * is one thread's. */
typedef struct bias_job {
    const heed_opcall *c;
    const real *d_scores;
    real *to;
} bias_job;

static void bias_rows(void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const bias_job *j = context;
    const attributes *a = j->c->attributes;
    const heed_tensor *bias = j->c->in[BIAS];
    for (int64_t row = begin; row < end; row++) {
        const int64_t head = row / bias->shape.dim[1], i = row % bias->shape.dim[1];
        const bool all = bias->shape.dim[0] == 1;
        real *to = j->to + row * bias->ld;
        const real *from = j->d_scores;
        for (int64_t b = 0; b < a->pairs.queries->count; b++) {
            const int64_t t = heed__length(a->pairs.queries, b), s = heed__length(a->pairs.keys, b);
            for (int64_t h = 0; h < a->pairs.heads; h++, from += t * s)
                if (i < t && (all || h == head))
                    for (int64_t x = 0; x < s; x++)
                        to[x] += from[i * s + x];
        }
    }
}

/* With dD = dO V^T, dP = mask * dD + dW, dZ = P * (dP - rowsum(dP * P)):
 * dQ = scale dZ K, dK = scale dZ^T Q, dV = (mask * P)^T dO, dbias = dZ. */
static void backward(heed_opcall *c)
{
    const attributes *a = c->attributes;
    const heed_rng rng = heed__rng(c);
    job j = job_of(c, &rng);
    j.all.d_out = (heed__matrix){heed__out_grad(c, 0), c->out[0]->ld};
    j.all.d_weights = a->weights ? heed__out_grad(c, 1) : NULL;
    /* As multi-head attention has them: q, k and v of one product, or q, and k and v of one. */
    const bool three = heed__grads_tile(c, Q, V), two = three || heed__grads_tile(c, K, V);
    j.all.d_q = gradient(c, Q, three, &j.all.beta_q);
    j.all.d_k_rows = gradient(c, K, two, &j.all.beta_k);
    j.all.d_v_rows = gradient(c, V, two, &j.all.beta_v);
    if (heed__wants(c, BIAS)) {
        j.all.d_scores = (real *)c->saved + (a->weights ? 0 : heed__pairs_count(&a->pairs));
    }
    j.kernel = heed__kernels()->head_backward;
    run(&j, safe_threads(c));
    if (heed__wants(c, BIAS)) {
        bias_job b = {c, j.all.d_scores, heed__grad(c, BIAS)};
        const heed_tensor *bias = c->in[BIAS];
        heed__parallel(heed__threads(c), bias->rows, 1, bias->cols * a->pairs.queries->count,
                       bias_rows, &b);
    }
}

/* i: heads, causal, weights out; r: dropout, scale; a fourth input is the bias. */
static const heed_opcase cases[] = {
    {.what = "self, two heads, an empty segment, a single token",
     .in = {HEED_DIMS2(8, 6), HEED_DIMS2(8, 6), HEED_DIMS2(8, 6)},
     .i = {2},
     .lengths = {4, 0, 1, 3, -1},
     .more_lengths = {4, 0, 1, 3, -1}},
    {.what = "cross, queries without keys and keys without queries",
     .in = {HEED_DIMS2(6, 6), HEED_DIMS2(9, 6), HEED_DIMS2(9, 15)},
     .i = {3},
     .r = {0, 0.3},
     .lengths = {2, 3, 0, 1, -1},
     .more_lengths = {5, 0, 3, 1, -1}},
    {.what = "one tensor cut in two ways",
     .in = {HEED_DIMS2(5, 4), HEED_DIMS2(5, 4), HEED_DIMS2(5, 4)},
     .i = {2},
     .lengths = {2, 3, -1},
     .more_lengths = {3, 2, -1}},
    {.what = "one column a head",
     .in = {HEED_DIMS2(3, 1), HEED_DIMS2(3, 1), HEED_DIMS2(3, 1)},
     .i = {1},
     .lengths = {3, -1},
     .more_lengths = {3, -1}},
    {.what = "causal",
     .in = {HEED_DIMS2(10, 6), HEED_DIMS2(10, 6), HEED_DIMS2(10, 10)},
     .i = {2, 1},
     .lengths = {7, 0, 3, -1},
     .more_lengths = {7, 0, 3, -1}},
    {.what = "causal with more keys than queries, and fewer",
     .in = {HEED_DIMS2(7, 4), HEED_DIMS2(8, 4), HEED_DIMS2(8, 4)},
     .i = {1, 1},
     .lengths = {2, 5, -1},
     .more_lengths = {5, 3, -1}},
    {.what = "causal over two blocks of queries",
     .in = {HEED_DIMS2(53, 2), HEED_DIMS2(53, 2), HEED_DIMS2(53, 2)},
     .i = {1, 1},
     .lengths = {53, -1},
     .more_lengths = {53, -1}},
    {.what = "bias for each head",
     .in = {HEED_DIMS2(6, 4), HEED_DIMS2(7, 4), HEED_DIMS2(7, 6), HEED_DIMS3(2, 4, 5)},
     .i = {2},
     .lengths = {4, 0, 2, -1},
     .more_lengths = {2, 0, 5, -1}},
    {.what = "one bias for all heads, larger than needed, causal",
     .in = {HEED_DIMS2(6, 6), HEED_DIMS2(6, 6), HEED_DIMS2(6, 3), HEED_DIMS3(1, 5, 6)},
     .i = {3, 1},
     .lengths = {4, 2, -1},
     .more_lengths = {4, 2, -1}},
    {.what = "weights out",
     .in = {HEED_DIMS2(5, 4), HEED_DIMS2(6, 4), HEED_DIMS2(6, 2)},
     .i = {2, 0, 1},
     .lengths = {3, 0, 2, -1},
     .more_lengths = {4, 0, 2, -1}},
    {.what = "dropout",
     .in = {HEED_DIMS2(7, 4), HEED_DIMS2(9, 4), HEED_DIMS2(9, 4)},
     .i = {2},
     .r = {0.25},
     .lengths = {3, 4, -1},
     .more_lengths = {5, 4, -1}},
    {.what = "everything: causal, bias, weights out, dropout",
     .in = {HEED_DIMS2(9, 4), HEED_DIMS2(9, 4), HEED_DIMS2(9, 4), HEED_DIMS3(2, 5, 5)},
     .i = {2, 1, 1},
     .r = {0.25, 0.7},
     .lengths = {5, 4, -1},
     .more_lengths = {5, 4, -1}},
};

static void run_case(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    heed_attention_options options = {.heads = (int)c->i[0],
                                      .causal = c->i[1] != 0,
                                      .probabilities = c->i[2] ? &out[1] : NULL,
                                      .dropout = c->r[0],
                                      .scale = c->r[1],
                                      .bias = c->in[BIAS].rank ? in[BIAS] : NULL};
    out[0] = heed_attention(t, in[Q], in[K], in[V], heed__case_segments(t, c->lengths),
                            heed__case_segments(t, c->more_lengths), &options);
}

HEED_OP(attention, "O = softmax(scale Q K^T + bias) V, per segment and head", shape, forward,
        backward, cases, run_case);

heed_tensor *heed_attention(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                            const heed_segments *queries, const heed_segments *keys,
                            const heed_attention_options *options)
{
    static const heed_attention_options defaults = {.heads = 1};
    if (!options)
        options = &defaults;
    attributes a = {.pairs = {.queries = queries, .keys = keys, .heads = options->heads},
                    .causal = options->causal,
                    .weights = options->probabilities != NULL,
                    .scale = options->scale,
                    .dropout = t && heed_tape_training(t) ? options->dropout : 0};
    a.missing = options->kv_heads && options->kv_heads != options->heads ? "kv_heads"
                : options->pattern                                       ? "pattern"
                : options->visible                                       ? "visible"
                : options->distance_bias                                 ? "distance_bias"
                : options->shared_k || options->shared_v                 ? "shared_k"
                : options->counts                                        ? "counts"
                                                                         : NULL;
    heed_opcall *c = heed__apply(t, &heed__op_attention, (heed_tensor *[]){q, k, v, options->bias},
                                 4, 1u << BIAS, &a, sizeof a);
    if (options->probabilities)
        *options->probabilities = c ? c->out[1] : NULL;
    return heed__first(c);
}
