/* attention: multi-head scaled dot-product attention inside each segment of a packed batch.
 *
 *   P = softmax(scale Q_h K_g^T + bias_h),  O_h = dropout(P) V_g     for each segment and head h
 *
 * q (N,H*Dk), k (M,KvHeads*Dk), v (M,KvHeads*Dv) -> (N,H*Dv); head h is columns h*Dk.. of the
 * packed rows, read in place, and g = h / (H/KvHeads).  Costs what the pattern leaves of T*S over
 * the segments, half of it if causal.  While recording, P stays for small segments, and for others
 * each row's maximum and 1/sum, from which backward makes it again; dropout's mask is made again in
 * any case.  Nothing is summed across threads but gradients of shared rows, in the threads' order.
 * Refuses shapes that do not fit heads and segments. */
#include "ops/attention_jobs.h"
#include "ops/overlap.h"

#include "base/parallel.h"
#include <math.h>

enum {
    Q = HEED__ATTENTION_Q,
    K = HEED__ATTENTION_K,
    V = HEED__ATTENTION_V,
    BIAS = HEED__ATTENTION_BIAS,
    DISTANCE = HEED__ATTENTION_DISTANCE,
    SHARED_K = HEED__ATTENTION_SHARED_K,
    SHARED_V = HEED__ATTENTION_SHARED_V,
};

/* ---- checks ---- */

static heed_status check_biases(heed_opcall *c)
{
    const heed__attention_call *a = c->attributes;
    const heed_tensor *bias = c->in[BIAS], *distance = c->in[DISTANCE];
    const int heads = a->pairs.heads;
    const heed_segments *queries = a->pairs.queries, *keys = a->pairs.keys;
    if (bias &&
        (bias->shape.rank != 3 || (bias->shape.dim[0] != 1 && bias->shape.dim[0] != heads) ||
         bias->shape.dim[1] < queries->longest || bias->shape.dim[2] < keys->longest))
        return heed__op_shape_fail(c, "bias", bias,
                                   "(%d or 1,T,S) with T at least %lld and S at least %lld", heads,
                                   (long long)queries->longest, (long long)keys->longest);
    if (distance && ((distance->rows != 1 && distance->rows != heads) || distance->cols < 1 ||
                     (!a->causal && distance->cols % 2 == 0)))
        return heed__op_shape_fail(c, "distance_bias", distance, "(%d or 1,L)%s", heads,
                                   a->causal ? "" : " with L odd");
    return HEED_OK;
}

static heed_status check_shared(heed_opcall *c)
{
    const heed_tensor *k = c->in[SHARED_K], *v = c->in[SHARED_V];
    if (!k != !v)
        return heed__op_fail(c, HEED_ARGUMENT, "shared_%s is NULL, expected both or none",
                             k ? "v" : "k");
    if (k && k->cols != c->in[K]->cols)
        return heed__op_shape_fail(c, "shared_k", k, "(P,%lld) as k has",
                                   (long long)c->in[K]->cols);
    if (v && (v->cols != c->in[V]->cols || v->rows != k->rows))
        return heed__op_shape_fail(c, "shared_v", v, "(%lld,%lld)", (long long)k->rows,
                                   (long long)c->in[V]->cols);
    return HEED_OK;
}

static heed_status check(heed_opcall *c, int64_t *count)
{
    const heed__attention_call *a = c->attributes;
    const heed_segments *queries = a->pairs.queries, *keys = a->pairs.keys;
    const int heads = a->pairs.heads;
    const heed_tensor *q = c->in[Q], *k = c->in[K];
    heed_status status = heed__pairs_check(c, &a->pairs, count);
    if (status)
        return status;
    if (a->kv_heads < 1 || heads % a->kv_heads)
        return heed__op_fail(c, HEED_ARGUMENT, "kv_heads is %d, expected a divisor of heads = %d",
                             a->kv_heads, heads);
    if (a->patterned && a->pattern.ranges && a->pattern.list)
        return heed__op_fail(c, HEED_ARGUMENT, "the pattern has ranges and a list, expected one");
    if (a->patterned && !a->pattern.list && (!a->pattern.ranges || a->pattern.most < 1))
        return heed__op_fail(c, HEED_ARGUMENT, "the pattern has at most %d ranges, expected 1",
                             a->pattern.ranges ? a->pattern.most : 0);
    if (!(a->dropout >= 0 && a->dropout < 1))
        return heed__op_fail(c, HEED_ARGUMENT, "dropout is %g, expected 0 <= rate < 1", a->dropout);
    if (!isfinite(a->scale))
        return heed__op_fail(c, HEED_ARGUMENT, "scale is %g, expected a finite number", a->scale);
    if (heed__pairs_check_rows(c, "q", q, queries, heads, "Dk") ||
        heed__pairs_check_rows(c, "k", k, keys, a->kv_heads, "Dk") ||
        heed__pairs_check_rows(c, "v", c->in[V], keys, a->kv_heads, "Dv"))
        return HEED_SHAPE_ERROR;
    if (k->cols / a->kv_heads != q->cols / heads)
        return heed__op_shape_fail(c, "k", k, "(%lld,%lld) as q has", (long long)keys->rows,
                                   (long long)(q->cols / heads * a->kv_heads));
    status = check_biases(c);
    return status ? status : check_shared(c);
}

static heed_status shape(heed_opcall *c)
{
    const heed__attention_call *a = c->attributes;
    int64_t count;
    heed_status status = check(c, &count);
    if (status)
        return status;
    const int64_t cols = c->in[V]->cols / a->kv_heads * a->pairs.heads;
    if ((status = heed__out(c, HEED_SHAPE(a->pairs.queries->rows, cols))))
        return status;
    if (a->weights && (status = heed__out(c, HEED_SHAPE(count))))
        return status;
    const int64_t saved = heed__attention_saves(c).end;
    if (saved && (status = heed__save(c, (size_t)saved * sizeof(real))))
        return status;
    return heed__want_scratch(c, heed__attention_room_of(c).end);
}

static heed__matrix matrix(const heed_tensor *x, real *at)
{
    return (heed__matrix){at, x->ld};
}

static void forward(heed_opcall *c)
{
    const heed__attention_call *a = c->attributes;
    const heed_rng rng = heed__rng(c);
    heed__attention_job j = heed__attention_job_of(c, &rng, false);
    j.all.out = matrix(c->out[0], c->out[0]->data);
    heed__attention_run(&j, heed__threads(c));
    if (a->counts)
        heed__attention_count(&j);
}

/* ---- backward ---- */

/* The gradient of input i, and whether it may be assigned: not if another input's goes there,
 * unless together they are all that goes there. */
static heed__matrix gradient(heed_opcall *c, int i, bool tiled, real *beta)
{
    if (!heed__wants(c, i))
        return (heed__matrix){NULL, 0};
    if (tiled) {
        *beta = 0;
        return matrix(c->in[i], heed__grad(c, i));
    }
    bool alone = true;
    for (int other = Q; other <= V; other++)
        alone &= other == i || !heed__share(c->in[i], c->in[other]);
    *beta = 1;
    return matrix(c->in[i], alone ? heed__grad_beta(c, i, beta) : heed__grad(c, i));
}

static int safe_threads(const heed_opcall *c)
{
    const heed__attention_call *a = c->attributes;
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
    const heed__attention_call *a = j->c->attributes;
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
    const heed__attention_call *a = c->attributes;
    const heed_rng rng = heed__rng(c);
    heed__attention_job j = heed__attention_job_of(c, &rng, true);
    j.all.d_out = matrix(c->out[0], heed__out_grad(c, 0));
    j.all.d_weights = a->weights ? heed__out_grad(c, 1) : NULL;
    /* As multi-head attention has them: q, k and v of one product, or q, and k and v of one. */
    const bool three = heed__grads_tile(c, Q, V), two = three || heed__grads_tile(c, K, V);
    j.all.d_q = gradient(c, Q, three, &j.all.beta_q);
    j.all.d_k_rows = gradient(c, K, two, &j.all.beta_k);
    j.all.d_v_rows = gradient(c, V, two, &j.all.beta_v);
    heed__attention_run(&j, safe_threads(c));
    if (heed__wants(c, BIAS)) {
        bias_job b = {c, (const real *)c->saved + j.saved.d_scores, heed__grad(c, BIAS)};
        const heed_tensor *bias = c->in[BIAS];
        heed__parallel(heed__threads(c), bias->rows, 1, bias->cols * a->pairs.queries->count,
                       bias_rows, &b);
    }
    if (heed__wants(c, DISTANCE))
        heed__attention_distances(&j, heed__grad(c, DISTANCE));
    for (int i = SHARED_K; i <= SHARED_V; i++)
        if (heed__wants(c, i))
            heed__attention_shared(&j, i, heed__grad(c, i));
}

#include "ops/attention_cases.h"

HEED_OP(attention, "O = softmax(scale Q K^T + bias) V, per segment and head", shape, forward,
        backward, cases, run_case);

heed_tensor *heed_attention(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                            const heed_segments *queries, const heed_segments *keys,
                            const heed_attention_options *options)
{
    static const heed_attention_options defaults = {.heads = 1};
    if (!options)
        options = &defaults;
    heed__attention_call a = {.pairs = {.queries = queries, .keys = keys, .heads = options->heads},
                              .kv_heads = options->kv_heads ? options->kv_heads : options->heads,
                              .causal = options->causal,
                              .weights = options->probabilities != NULL,
                              .patterned = options->pattern != NULL,
                              .visible = options->visible,
                              .scale = options->scale,
                              .dropout = t && heed_tape_training(t) ? options->dropout : 0,
                              .counts = options->counts};
    if (options->pattern)
        a.pattern = *options->pattern;
    heed_tensor *in[] = {
        q, k, v, options->bias, options->distance_bias, options->shared_k, options->shared_v};
    const unsigned optional = 1u << BIAS | 1u << DISTANCE | 1u << SHARED_K | 1u << SHARED_V;
    heed_opcall *c =
        heed__apply(t, &heed__op_attention, in, HEED__ATTENTION_INPUTS, optional, &a, sizeof a);
    if (options->probabilities)
        *options->probabilities = c ? c->out[1] : NULL;
    return heed__first(c);
}
