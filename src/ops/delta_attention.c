/* delta_attention: fast weights by the delta rule (Schlag, Irie, Schmidhuber 2021), multi-head,
 * inside each segment of a packed batch:
 *
 *   e_i = v_i - phi(k_i) W_{i-1},  W_i = W_{i-1} + phi(k_i)^T b_i e_i,  o_i = phi(q_i) W_i
 *
 * b = sigmoid(gate).  q (N,H*Dk), k (N,KvHeads*Dk), v (N,KvHeads*Dv), gate (N,KvHeads) -> (N,H*Dv);
 * head h meets key head h / (H/KvHeads).  Time is linear in the rows, and so is memory: the errors
 * e (N,H*Dv) are saved.  A key head of a segment is one thread's. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "kernel/delta_head.h"
#include "ops/feature_map.h"
#include "ops/overlap.h"

struct attributes {
    const heed_segments *rows;
    int heads, kv_heads;
    heed_features features;
};

enum { Q, K, V, GATE };

static heed_status check(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *q = c->in[Q], *k = c->in[K], *v = c->in[V], *gate = c->in[GATE];
    if (!a->rows)
        return heed__op_fail(c, HEED_ARGUMENT, "no segments");
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads)
        return heed__op_fail(c, HEED_ARGUMENT,
                             "%d heads and %d of keys, expected a number and a divisor of it",
                             a->heads, a->kv_heads);
    const int64_t n = a->rows->rows;
    if (q->rows != n || q->cols < a->heads || q->cols % a->heads)
        return heed__op_shape_fail(c, "q", q, "(%lld,%d*Dk)", (long long)n, a->heads);
    const int64_t d_k = q->cols / a->heads;
    if (k->rows != n || k->cols != a->kv_heads * d_k)
        return heed__op_shape_fail(c, "k", k, "(%lld,%lld)", (long long)n,
                                   (long long)(a->kv_heads * d_k));
    if (v->rows != n || v->cols < a->kv_heads || v->cols % a->kv_heads)
        return heed__op_shape_fail(c, "v", v, "(%lld,%d*Dv)", (long long)n, a->kv_heads);
    if (gate->rows != n || gate->cols != a->kv_heads)
        return heed__op_shape_fail(c, "gate", gate, "(%lld,%d)", (long long)n, a->kv_heads);
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
    if ((status = heed__save(c, (size_t)(rows * a->heads * d_v) * sizeof(real))))
        return status;
    const heed__features f = heed__features_of(&a->features, c->in[Q]->cols / a->heads);
    return heed__want_scratch(c, heed__kernels()->delta_scratch(&f, d_v));
}

/* ---- cutting the work ---- */

struct job {
    const heed_opcall *c;
    heed__delta_head all; /* as if head and segment began at the first row and column */
    void (*kernel)(const heed__delta_head *h);
};

static heed__matrix part_of(heed__matrix x, int64_t row, int64_t column)
{
    return x.at ? (heed__matrix){x.at + row * x.ld + column, x.ld} : x;
}

static void run_head(const struct job *j, int64_t b, int64_t head, int64_t kv, real *scratch)
{
    const struct attributes *a = j->c->attributes;
    const int64_t row = a->rows->offset[b];
    heed__delta_head h = j->all;
    const int64_t d_k = h.features.d;
    h.t = a->rows->offset[b + 1] - row;
    h.q = part_of(h.q, row, head * d_k);
    h.k = part_of(h.k, row, kv * d_k);
    h.v = part_of(h.v, row, kv * h.d_v);
    h.gate = part_of(h.gate, row, kv);
    h.out = part_of(h.out, row, head * h.d_v);
    h.error = part_of(h.error, row, head * h.d_v);
    h.d_out = part_of(h.d_out, row, head * h.d_v);
    h.d_q = part_of(h.d_q, row, head * d_k);
    h.d_k_rows = part_of(h.d_k_rows, row, kv * d_k);
    h.d_v_rows = part_of(h.d_v_rows, row, kv * h.d_v);
    h.d_gate = part_of(h.d_gate, row, kv);
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
    const int64_t items = a->rows->count * a->kv_heads;
    if (items)
        heed__parallel(threads, items, 1,
                       (a->rows->rows / a->rows->count + 1) * a->heads / a->kv_heads * 6 *
                           heed__feature_columns(&j->all.features) * j->all.d_v,
                       run_parts, j);
}

static heed__matrix matrix(const heed_tensor *x)
{
    return (heed__matrix){x->data, x->ld};
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    return (struct job){
        .c = c,
        .all = {.features = heed__features_of(&a->features, c->in[Q]->cols / a->heads),
                .d_v = c->in[V]->cols / a->kv_heads,
                .q = matrix(c->in[Q]),
                .k = matrix(c->in[K]),
                .v = matrix(c->in[V]),
                .gate = matrix(c->in[GATE]),
                .out = matrix(c->out[0]),
                .error = {c->saved, c->out[0]->cols}}};
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.kernel = heed__kernels()->delta_forward;
    run_all(&j, heed__threads(c));
}

/* ---- the way back: kernel/delta_head.c ---- */

static heed__matrix gradient(heed_opcall *c, int i)
{
    if (!heed__wants(c, i))
        return (heed__matrix){NULL, 0};
    return (heed__matrix){heed__grad(c, i), c->in[i]->ld};
}

/* Slices of one product do not meet; whatever does is one thread's. */
static int safe_threads(const heed_opcall *c)
{
    for (int i = Q; i <= GATE; i++)
        for (int other = i + 1; other <= GATE; other++)
            if (heed__meet(c->in[i], c->in[other]))
                return 1;
    return heed__threads(c);
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.all.d_out = (heed__matrix){heed__out_grad(c, 0), c->out[0]->ld};
    j.all.d_q = gradient(c, Q);
    j.all.d_k_rows = gradient(c, K);
    j.all.d_v_rows = gradient(c, V);
    j.all.d_gate = gradient(c, GATE);
    j.kernel = heed__kernels()->delta_backward;
    run_all(&j, safe_threads(c));
}

/* What a case gives besides tensors; directions of M rows are made. */
struct arguments {
    heed_delta_attention_options options;
    int64_t directions;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    heed_delta_attention_options o = a->options;
    if (a->directions)
        o.features.directions =
            heed__case_directions(t, a->directions, in[Q] ? heed_tensor_cols(in[Q]) / o.heads : 1);
    out[0] = heed_delta_attention(t, in[Q], in[K], in[V], in[GATE],
                                  heed__case_segments(t, c->lengths), &o);
}

static const heed_opcase cases[] = {
    {"elu, four heads, two of keys, an empty segment, a single token",
     {HEED_DIMS2(8, 12), HEED_DIMS2(8, 6), HEED_DIMS2(8, 4), HEED_DIMS2(8, 2)},
     .domain = HEED_SPREAD,
     HEED_WITH(.options = {.heads = 4, .kv_heads = 2, .features = {.unit_sum = true}}),
     .lengths = {4, 0, 1, 3, -1}},
    {"dpfp over three chunks",
     {HEED_DIMS2(101, 3), HEED_DIMS2(101, 3), HEED_DIMS2(101, 2), HEED_DIMS2(101, 1)},
     .domain = HEED_POSITIVE,
     HEED_WITH(.options = {.heads = 1,
                           .features = {.kind = HEED_FEATURES_DPFP, .count = 1, .unit_sum = true}}),
     .lengths = {101, -1}},
    {"dpfp of three shifts, two heads",
     {HEED_DIMS2(9, 8), HEED_DIMS2(9, 8), HEED_DIMS2(9, 10), HEED_DIMS2(9, 2)},
     .domain = HEED_POSITIVE,
     HEED_WITH(.options = {.heads = 2,
                           .features = {.kind = HEED_FEATURES_DPFP, .count = 3, .unit_sum = true}}),
     .lengths = {2, 7, -1}},
    {"positive features",
     {HEED_DIMS2(7, 4), HEED_DIMS2(7, 4), HEED_DIMS2(7, 4), HEED_DIMS2(7, 2)},
     HEED_WITH(.options = {.heads = 2,
                           .features = {.kind = HEED_FEATURES_POSITIVE, .unit_sum = true}},
               .directions = 6),
     .lengths = {3, 4, -1}},
};
HEED_OP(delta_attention, "W += phi(k)^T b (v - phi(k) W), o = phi(q) W, row by row", shape, forward,
        backward, cases, run);

heed_tensor *heed_delta_attention(heed_tape *t, heed_tensor *q, heed_tensor *k, heed_tensor *v,
                                  heed_tensor *gate, const heed_segments *rows,
                                  const heed_delta_attention_options *options)
{
    if (!t)
        return NULL;
    const struct attributes a = {.rows = rows,
                                 .heads = options->heads,
                                 .kv_heads = options->kv_heads ? options->kv_heads : options->heads,
                                 .features = options->features};
    return heed__first(heed__apply(t, &heed__op_delta_attention, (heed_tensor *[]){q, k, v, gate},
                                   4, 0, &a, sizeof a));
}
