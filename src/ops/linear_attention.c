/* linear_attention: attention without weights (Katharopoulos et al. 2020), multi-head, inside each
 * segment of a packed batch:
 *
 *   O_i = phi(q_i) S_i / (phi(q_i) z_i + eps),  S_i = sum_j phi(k_j)^T v_j,  z_i = sum_j phi(k_j)
 *
 * phi as the features say (kernel/features.h); j runs over the segment's keys, or over 0..i if
 * causal; with a gate the sums fade.  q (N,H*Dk), k (M,KvHeads*Dk), v (M,KvHeads*Dv),
 * gate (M,KvHeads) -> (N,H*Dv); head h meets key head h / (H/KvHeads).  Time is linear in the rows,
 * and so is memory: the denominators (N,H) are saved, nothing of a pair, and no features.
 * A query without keys gives zeros.  A key head of a segment is one thread's. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "kernel/linear_head.h"
#include "ops/feature_map.h"
#include "ops/overlap.h"

struct attributes {
    const heed_segments *queries, *keys;
    int heads, kv_heads;
    bool causal;
    double eps;
    heed_features features;
};

enum { Q, K, V, GATE };

static heed_status check(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *q = c->in[Q], *k = c->in[K], *v = c->in[V];
    if (!a->queries || !a->keys)
        return heed__op_fail(c, HEED_ARGUMENT, "no segments");
    if (a->queries->count != a->keys->count)
        return heed__op_fail(c, HEED_ARGUMENT, "%lld segments of queries and %lld of keys",
                             (long long)a->queries->count, (long long)a->keys->count);
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads)
        return heed__op_fail(c, HEED_ARGUMENT,
                             "%d heads and %d of keys, expected a number and a divisor of it",
                             a->heads, a->kv_heads);
    if (!(a->eps >= 0))
        return heed__op_fail(c, HEED_ARGUMENT, "eps is %g, expected 0 or more", a->eps);
    if (q->rows != a->queries->rows || q->cols < a->heads || q->cols % a->heads)
        return heed__op_shape_fail(c, "q", q, "(%lld,%d*Dk)", (long long)a->queries->rows,
                                   a->heads);
    const int64_t d_k = q->cols / a->heads;
    if (k->rows != a->keys->rows || k->cols != a->kv_heads * d_k)
        return heed__op_shape_fail(c, "k", k, "(%lld,%lld)", (long long)a->keys->rows,
                                   (long long)(a->kv_heads * d_k));
    if (v->rows != a->keys->rows || v->cols < a->kv_heads || v->cols % a->kv_heads)
        return heed__op_shape_fail(c, "v", v, "(%lld,%d*Dv)", (long long)a->keys->rows,
                                   a->kv_heads);
    if (c->in[GATE] && !(a->causal && heed__same_segments(a->queries, a->keys)))
        return heed__op_fail(c, HEED_ARGUMENT, "a gate needs causal and as many queries as keys");
    if (c->in[GATE] && (c->in[GATE]->rows != a->keys->rows || c->in[GATE]->cols != a->kv_heads))
        return heed__op_shape_fail(c, "gate", c->in[GATE], "(%lld,%d)", (long long)a->keys->rows,
                                   a->kv_heads);
    return heed__features_check(c, &a->features, d_k);
}

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    heed_status status = check(c);
    if (status)
        return status;
    const int64_t rows = c->in[Q]->rows, d_v = c->in[V]->cols / a->kv_heads;
    if ((status = heed__out(c, HEED_SHAPE(rows, a->heads * d_v))))
        return status;
    if ((status = heed__save(c, (size_t)(2 * rows * a->heads) * sizeof(real))))
        return status;
    const heed__features f = heed__features_of(&a->features, c->in[Q]->cols / a->heads);
    return heed__want_scratch(c, heed__kernels()->linear_scratch(&f, d_v));
}

/* ---- cutting the work ---- */

struct job {
    const heed_opcall *c;
    heed__linear_head all; /* as if head and segment began at the first row and column */
    void (*kernel)(const heed__linear_head *h);
};

static heed__matrix part_of(heed__matrix x, int64_t row, int64_t column)
{
    return x.at ? (heed__matrix){x.at + row * x.ld + column, x.ld} : x;
}

static void run_head(const struct job *j, int64_t b, int64_t head, int64_t kv, real *scratch)
{
    const struct attributes *a = j->c->attributes;
    const int64_t row = a->queries->offset[b], key = a->keys->offset[b];
    heed__linear_head h = j->all;
    h.t = a->queries->offset[b + 1] - row;
    h.s = a->keys->offset[b + 1] - key;
    const int64_t d_k = h.features.d;
    h.q = part_of(h.q, row, head * d_k);
    h.k = part_of(h.k, key, kv * d_k);
    h.gate = part_of(h.gate, key, kv);
    h.v = part_of(h.v, key, kv * h.d_v);
    h.out = part_of(h.out, row, head * h.d_v);
    h.total = part_of(h.total, row, head);
    h.along = part_of(h.along, row, head);
    h.d_out = part_of(h.d_out, row, head * h.d_v);
    h.d_q = part_of(h.d_q, row, head * d_k);
    h.d_k_rows = part_of(h.d_k_rows, key, kv * d_k);
    h.d_v_rows = part_of(h.d_v_rows, key, kv * h.d_v);
    h.d_gate = part_of(h.d_gate, key, kv);
    h.scratch = scratch;
    j->kernel(&h);
}

/* Item i: key head i % KvHeads of segment i / KvHeads, with all heads that meet it. */
static void run_parts(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const struct attributes *a = j->c->attributes;
    const int64_t group = a->heads / a->kv_heads;
    for (int64_t i = begin; i < end; i++)
        for (int64_t kv = i % a->kv_heads, h = kv * group; h < (kv + 1) * group; h++)
            run_head(j, i / a->kv_heads, h, kv, heed__scratch(j->c, thread));
}

static void run_all(struct job *j, int threads)
{
    const struct attributes *a = j->c->attributes;
    const int64_t items = a->queries->count * a->kv_heads;
    if (items)
        heed__parallel(threads, items, 1,
                       (a->queries->rows / a->queries->count + 1) * a->heads / a->kv_heads * 4 *
                           heed__feature_columns(&j->all.features) * (j->all.d_v + 1),
                       run_parts, j);
}

static heed__matrix matrix(const heed_tensor *x)
{
    return x ? (heed__matrix){x->data, x->ld} : (heed__matrix){NULL, 0};
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    real *saved = c->saved;
    return (struct job){
        .c = c,
        .all = {.features = heed__features_of(&a->features, c->in[Q]->cols / a->heads),
                .d_v = c->in[V]->cols / a->kv_heads,
                .causal = a->causal,
                .floor = a->features.kind == HEED_FEATURES_WAVES,
                .eps = (real)a->eps,
                .q = matrix(c->in[Q]),
                .k = matrix(c->in[K]),
                .v = matrix(c->in[V]),
                .gate = matrix(c->in[GATE]),
                .out = matrix(c->out[0]),
                .total = {saved, a->heads},
                .along = {saved ? saved + c->in[Q]->rows * a->heads : NULL, a->heads}}};
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.kernel = heed__kernels()->linear_forward;
    run_all(&j, heed__threads(c));
}

/* ---- the way back ---- */

static heed__matrix gradient(heed_opcall *c, int i)
{
    if (!c->in[i] || !heed__wants(c, i))
        return (heed__matrix){NULL, 0};
    return (heed__matrix){heed__grad(c, i), c->in[i]->ld};
}

/* Slices of one product do not meet; whatever does is one thread's. */
static int safe_threads(const heed_opcall *c)
{
    for (int i = Q; i <= GATE; i++)
        for (int other = i + 1; other <= GATE; other++)
            if (c->in[other] && heed__meet(c->in[i], c->in[other]))
                return 1;
    return heed__threads(c);
}

/* O = N / D, N = phi(q) S, D = phi(q) z + eps.  g = dO / D is dN and e = - dO.O / D is dD, so
 *   dphi(q_i) = S_i g_i + z_i e_i,  dphi(k_j) = sum_i phi(q_i) (v_j.g_i + e_i),
 *   dv_j = sum_i (phi(q_i).phi(k_j)) g_i
 * over the pairs that the forward pass has, by running sums as there; dx = dphi exp(min(x, 0)). */
static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.all.d_out = (heed__matrix){heed__out_grad(c, 0), c->out[0]->ld};
    j.all.d_q = gradient(c, Q);
    j.all.d_k_rows = gradient(c, K);
    j.all.d_v_rows = gradient(c, V);
    j.all.d_gate = gradient(c, GATE);
    j.kernel = heed__kernels()->linear_backward;
    run_all(&j, safe_threads(c));
}

/* What a case gives besides tensors; directions of M rows are made. */
struct arguments {
    heed_linear_attention_options options;
    int64_t directions;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    heed_linear_attention_options o = a->options;
    if (a->directions)
        o.features.directions =
            heed__case_directions(t, a->directions, in[Q] ? heed_tensor_cols(in[Q]) / o.heads : 1);
    o.gate = c->in[GATE].rank ? in[GATE] : NULL;
    out[0] = heed_linear_attention(t, in[Q], in[K], in[V], heed__case_segments(t, c->lengths),
                                   heed__case_segments(t, c->more_lengths), &o);
}

static const heed_opcase cases[] = {
    {"self, two heads, an empty segment, a single token",
     {HEED_DIMS2(8, 6), HEED_DIMS2(8, 6), HEED_DIMS2(8, 10)},
     .domain = HEED_SPREAD,
     HEED_WITH(.options = {.heads = 2}),
     .lengths = {4, 0, 1, 3, -1},
     .more_lengths = {4, 0, 1, 3, -1}},
    {"cross, queries without keys and keys without queries",
     {HEED_DIMS2(6, 6), HEED_DIMS2(9, 6), HEED_DIMS2(9, 15)},
     .domain = HEED_SPREAD,
     HEED_WITH(.options = {.heads = 3}),
     .lengths = {2, 3, 0, 1, -1},
     .more_lengths = {5, 0, 3, 1, -1}},
    {"causal, four heads, two of keys",
     {HEED_DIMS2(8, 12), HEED_DIMS2(8, 6), HEED_DIMS2(8, 4)},
     .domain = HEED_SPREAD,
     HEED_WITH(.options = {.heads = 4, .kv_heads = 2, .causal = true}),
     .lengths = {5, 0, 3, -1},
     .more_lengths = {5, 0, 3, -1}},
    {"causal over three chunks",
     {HEED_DIMS2(101, 2), HEED_DIMS2(101, 2), HEED_DIMS2(101, 1)},
     .domain = HEED_SPREAD,
     HEED_WITH(.options = {.heads = 1, .causal = true}),
     .lengths = {101, -1},
     .more_lengths = {101, -1}},
    {"causal with more keys than queries, and fewer",
     {HEED_DIMS2(7, 4), HEED_DIMS2(8, 4), HEED_DIMS2(8, 4)},
     .domain = HEED_SPREAD,
     HEED_WITH(.options = {.heads = 1, .causal = true, .eps = 0.5}),
     .lengths = {2, 5, -1},
     .more_lengths = {5, 3, -1}},
    {"positive features, causal over two chunks",
     {HEED_DIMS2(52, 3), HEED_DIMS2(52, 3), HEED_DIMS2(52, 2)},
     HEED_WITH(.options = {.heads = 1,
                           .causal = true,
                           .features = {.kind = HEED_FEATURES_POSITIVE}},
               .directions = 5),
     .lengths = {52, -1},
     .more_lengths = {52, -1}},
    {"positive features, cross, two heads",
     {HEED_DIMS2(4, 6), HEED_DIMS2(6, 6), HEED_DIMS2(6, 4)},
     HEED_WITH(.options = {.heads = 2, .features = {.kind = HEED_FEATURES_POSITIVE}},
               .directions = 7),
     .lengths = {1, 3, -1},
     .more_lengths = {4, 2, -1}},
    {"waves, four heads, two of keys",
     {HEED_DIMS2(8, 8), HEED_DIMS2(8, 4), HEED_DIMS2(8, 6)},
     .domain = HEED_POSITIVE,
     HEED_WITH(.options = {.heads = 4, .kv_heads = 2, .features = {.kind = HEED_FEATURES_WAVES}},
               .directions = 160),
     .lengths = {5, 3, -1},
     .more_lengths = {5, 3, -1}},
    {"waves with gates, four heads, two of keys, two chunks",
     {HEED_DIMS2(53, 8), HEED_DIMS2(53, 4), HEED_DIMS2(53, 4), HEED_DIMS2(53, 2)},
     .domain = HEED_POSITIVE,
     HEED_WITH(.options = {.heads = 4,
                           .kv_heads = 2,
                           .causal = true,
                           .features = {.kind = HEED_FEATURES_WAVES}},
               .directions = 160),
     .lengths = {50, 0, 3, -1},
     .more_lengths = {50, 0, 3, -1}},
    {"elu with gates",
     {HEED_DIMS2(7, 4), HEED_DIMS2(7, 4), HEED_DIMS2(7, 4), HEED_DIMS2(7, 2)},
     .domain = HEED_SPREAD,
     HEED_WITH(.options = {.heads = 2, .causal = true}),
     .lengths = {2, 5, -1},
     .more_lengths = {2, 5, -1}},
    {"dpfp",
     {HEED_DIMS2(8, 6), HEED_DIMS2(8, 6), HEED_DIMS2(8, 4)},
     .domain = HEED_POSITIVE,
     HEED_WITH(.options = {.heads = 2,
                           .causal = true,
                           .eps = 0.1,
                           .features = {.kind = HEED_FEATURES_DPFP, .count = 2}}),
     .lengths = {5, 3, -1},
     .more_lengths = {5, 3, -1}},
};
HEED_OP(linear_attention, "O = phi(Q) (phi(K)^T V) / (phi(Q) sum phi(K))", shape, forward, backward,
        cases, run);

heed_tensor *heed_linear_attention(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                                   const heed_segments *queries, const heed_segments *keys,
                                   const heed_linear_attention_options *options)
{
    if (!t)
        return NULL;
    const struct attributes a = {
        .queries = queries,
        .keys = keys,
        .heads = options->heads,
        .kv_heads = options->kv_heads ? options->kv_heads : options->heads,
        .causal = options->causal,
        .eps = options->eps != 0 ? options->eps : heed__linear_eps((int)options->features.kind),
        .features = options->features};
    return heed__first(heed__apply(t, &heed__op_linear_attention,
                                   (heed_tensor *[]){q, k, v, options->gate}, 4, 1 << GATE, &a,
                                   sizeof a));
}
