/* attention_jobs.c: see attention_jobs.h.
 *
 * A pair of a segment and a head of keys is one thread's alone, with all the heads of queries that
 * share those keys: two of them add into the same columns.  What goes across segments has a place
 * of its own: gradients by distance for each segment and head, those of shared rows for each
 * thread; they are added up in order. */
#include "ops/attention_jobs.h"

#include "base/min_max.h"
#include "base/parallel.h"
#include <math.h>
#include <string.h>

typedef heed__attention_call call;
typedef heed__attention_job job;

enum {
    Q = HEED__ATTENTION_Q,
    K = HEED__ATTENTION_K,
    V = HEED__ATTENTION_V,
    BIAS = HEED__ATTENTION_BIAS,
    DISTANCE = HEED__ATTENTION_DISTANCE,
    SHARED_K = HEED__ATTENTION_SHARED_K,
    SHARED_V = HEED__ATTENTION_SHARED_V,
};

/* P of up to N pairs of a segment and head is kept: beyond, making it again costs less than
 * the memory does. */
#define KEPT_PAIRS (512 * 512)

/* Which kernels: those for keys that stand anywhere, ... */
static bool is_listed(const call *a)
{
    return a->patterned && a->pattern.list;
}

/* ... for runs of keys or, if neither, for all. */
static bool has_runs(const heed_opcall *c)
{
    const call *a = c->attributes;
    return a->patterned || a->visible || c->in[SHARED_K] || (c->in[BIAS] && c->in[DISTANCE]);
}

static bool keeps(const heed_opcall *c, int64_t b)
{
    const call *a = c->attributes;
    return c->recorded && !a->weights && !has_runs(c) &&
           heed__length(a->pairs.queries, b) * heed__length(a->pairs.keys, b) <= KEPT_PAIRS;
}

static int64_t pairs_of(const call *a, int64_t b)
{
    return heed__length(a->pairs.queries, b) * heed__length(a->pairs.keys, b);
}

heed__attention_saved heed__attention_saves(const heed_opcall *c)
{
    const call *a = c->attributes;
    const int64_t heads = a->pairs.heads;
    heed__attention_saved s = {0};
    bool again = false;
    for (int64_t b = 0; c->recorded && b < a->pairs.queries->count; b++)
        if (keeps(c, b))
            s.stats += heads * pairs_of(a, b);
        else
            again |= has_runs(c) || !a->weights;
    s.d_scores = s.stats + (again ? 2 * heads * a->pairs.queries->rows : 0);
    s.d_distance = s.d_scores;
    if (c->recorded && c->wanted[BIAS])
        s.d_distance += heed__pairs_count(&a->pairs);
    s.end = s.d_distance;
    if (c->recorded && c->wanted[DISTANCE])
        s.end += heads * (a->pairs.queries->rows + a->pairs.keys->rows);
    return s;
}

/* ---- a thread's scratch ---- */

static size_t whole_lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t shared_rows(const heed_opcall *c)
{
    return c->in[SHARED_K] ? c->in[SHARED_K]->rows : 0;
}

static int64_t shared_cols(const heed_opcall *c)
{
    return c->in[SHARED_K] ? c->in[SHARED_K]->cols + c->in[SHARED_V]->cols : 0;
}

static int runs_at_most(const call *a)
{
    return a->patterned && !is_listed(a) ? a->pattern.most : 1;
}

static size_t kernel_room(const heed_opcall *c, int64_t t, int64_t s, int64_t d_k, int64_t d_v)
{
    const heed_kernels *k = heed__kernels();
    const call *a = c->attributes;
    if (is_listed(a))
        return k->list_scratch(s, shared_rows(c), d_k);
    if (has_runs(c))
        return k->tiles_scratch(t, s, shared_rows(c), runs_at_most(a), d_k, d_v);
    return k->head_scratch(t, s, d_k, d_v);
}

heed__attention_room heed__attention_room_of(const heed_opcall *c)
{
    const call *a = c->attributes;
    const int64_t t = a->pairs.queries->longest, s = a->pairs.keys->longest;
    const int64_t d_k = c->in[Q]->cols / a->pairs.heads, d_v = c->in[V]->cols / a->kv_heads;
    heed__attention_room r = {.distance = 64};
    r.shared = r.distance + whole_lines(c->in[DISTANCE] ? (size_t)(t + s) * sizeof(real) : 0);
    r.ranges = r.shared + whole_lines((size_t)(shared_rows(c) * shared_cols(c)) * sizeof(real));
    r.kernel =
        r.ranges + whole_lines(is_listed(a) ? a->pattern.room
                                            : (size_t)runs_at_most(a) * sizeof(heed_key_range));
    r.end = r.kernel + kernel_room(c, t, s, d_k, d_v);
    return r;
}

static void *at_byte(const job *j, int thread, size_t byte)
{
    return (char *)heed__scratch(j->c, thread) + byte;
}

/* ---- what a query sees ---- */

typedef struct view {
    const call *a;
    int64_t segment, t, s;
    const int32_t *visible; /* of the segment's queries, or NULL */
    void *room;             /* for ranges, or what a list needs */
} view;

/* The first keys, of which a query may see some. */
static int64_t limit_of(const view *v, int64_t i)
{
    const int64_t limit = v->a->causal ? heed__min(v->s, i + 1) : v->s;
    return v->visible ? heed__min(limit, v->visible[i]) : limit;
}

/* The pattern's list, cut to what everything else lets the query see: nothing that a pattern says
 * is believed unseen, either. */
static int64_t list_of(const void *context, int64_t head, int64_t i, int32_t *out)
{
    const view *v = context;
    const heed_key_pattern *p = &v->a->pattern;
    const int64_t limit = limit_of(v, i);
    const int64_t n = p->list(p->context, v->segment, (int)head, i, v->room, out);
    int64_t kept = 0, from = 0;
    for (int64_t k = 0; k < n; k++)
        if (out[k] >= from && out[k] < limit) {
            from = out[k] + 1;
            out[kept++] = out[k];
        }
    return kept;
}

/* The pattern's ranges, cut to what everything else lets the query see.  Nothing that a pattern
 * says is believed unseen: ranges that leave the segment or overlap are cut as well. */
static int runs_of(const void *context, int64_t head, int64_t i, heed__run *out)
{
    const view *v = context;
    const call *a = v->a;
    const int64_t limit = limit_of(v, i);
    heed_key_range *ranges = v->room;
    int64_t from = 0;
    int n = 1, kept = 0;
    ranges[0] = (heed_key_range){0, (int32_t)v->s, 1, 1};
    if (a->patterned)
        n = a->pattern.ranges(a->pattern.context, (int)head, i, v->t, v->s, ranges);
    for (int k = 0; k < n && k < runs_at_most(a); k++) {
        const heed_key_range *r = &ranges[k];
        heed__run run = {heed__max(r->begin, from), heed__min(r->end, limit), heed__max(r->step, 1),
                         heed__max(r->width, 1)};
        run.width = heed__min(run.width, run.step);
        if (run.begin >= run.end)
            continue;
        out[kept++] = run;
        from = run.end;
    }
    return kept;
}

/* ---- the bias by distance ---- */

/* The column of query i and key j = i - distance. */
static int64_t column_of(const heed_tensor *bias, bool causal, int64_t distance)
{
    const int64_t last = bias->cols - 1, r = last / 2;
    if (causal)
        return heed__min(heed__max(distance, 0), last);
    return r + heed__min(heed__max(distance, -r), r);
}

/* to[T-1-i+j] for all pairs of a segment. */
static void spread(const job *j, int64_t head, int64_t t, int64_t s, real *to)
{
    const call *a = j->c->attributes;
    const heed_tensor *bias = j->c->in[DISTANCE];
    const real *row = bias->data + (bias->rows > 1 ? head * bias->ld : 0);
    for (int64_t x = 0; x < t + s; x++)
        to[x] = row[column_of(bias, a->causal, t - 1 - x)];
}

static int64_t distances_at(const call *a, int64_t b, int64_t head)
{
    return a->pairs.heads * (a->pairs.queries->offset[b] + a->pairs.keys->offset[b]) +
           head * (heed__length(a->pairs.queries, b) + heed__length(a->pairs.keys, b));
}

typedef struct sum_job {
    const job *j;
    real *to;
} sum_job;

static void distance_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const sum_job *x = context;
    const call *a = x->j->c->attributes;
    const heed_tensor *bias = x->j->c->in[DISTANCE];
    const real *from = (const real *)x->j->c->saved + x->j->saved.d_distance;
    (void)thread;
    for (int64_t row = begin; row < end; row++)
        for (int64_t b = 0; b < a->pairs.queries->count; b++) {
            const int64_t t = heed__length(a->pairs.queries, b), s = heed__length(a->pairs.keys, b);
            for (int64_t head = 0; head < a->pairs.heads; head++)
                for (int64_t i = 0; (bias->rows == 1 || head == row) && i < t + s; i++)
                    x->to[row * bias->ld + column_of(bias, a->causal, t - 1 - i)] +=
                        from[distances_at(a, b, head) + i];
        }
}

void heed__attention_distances(const job *j, real *to)
{
    const heed_tensor *bias = j->c->in[DISTANCE];
    const call *a = j->c->attributes;
    sum_job x = {j, to};
    heed__parallel(heed__threads(j->c), bias->rows, 1,
                   a->pairs.heads / bias->rows * (a->pairs.queries->rows + a->pairs.keys->rows),
                   distance_rows, &x);
}

/* ---- one head of one segment ---- */

static heed__matrix part_of(heed__matrix x, int64_t row, int64_t column)
{
    return x.at ? (heed__matrix){x.at + row * x.ld + column, x.ld} : x;
}

static real *at_pair(const real *x, int64_t i)
{
    return x ? (real *)x + i : NULL;
}

/* Where a head of a segment stands in flat tensors and in what is kept. */
typedef struct place {
    int64_t pair, kept;
} place;

static void set_kept(const job *j, heed__head *h, int64_t b, int64_t head, place at, bool kept)
{
    const call *a = j->c->attributes;
    const heed__attention_saved saved = j->saved;
    real *all = j->c->saved;
    if (a->weights)
        h->weights = j->c->out[1]->data + at.pair;
    else if (kept)
        h->weights = all + at.kept;
    if (saved.d_scores > saved.stats && (j->runs || !h->weights)) {
        h->stats_step = 2 * a->pairs.heads;
        h->stats = all + saved.stats + 2 * (a->pairs.queries->offset[b] * a->pairs.heads + head);
    }
    if (j->back && j->c->wanted[BIAS])
        h->d_scores = all + saved.d_scores + at.pair;
    if (j->back && j->c->wanted[DISTANCE]) {
        h->d_distance = all + saved.d_distance + distances_at(a, b, head);
        memset(h->d_distance, 0, (size_t)(h->t + h->s) * sizeof(real));
    }
}

static void set_shared(const job *j, heed__head *h, int64_t b, int64_t kv_head, int thread)
{
    const call *a = j->c->attributes;
    const heed_tensor *k = j->c->in[SHARED_K], *v = j->c->in[SHARED_V];
    real *sums = at_byte(j, thread, j->room.shared);
    if (!k)
        return;
    h->shared = k->rows;
    h->shared_k = part_of((heed__matrix){k->data, k->ld}, 0, kv_head * h->d_k);
    h->shared_v = part_of((heed__matrix){v->data, v->ld}, 0, kv_head * h->d_v);
    h->shared_first =
        (uint64_t)(heed__pairs_count(&a->pairs) +
                   (a->pairs.heads * a->pairs.queries->offset[b] + h->head * h->t) * h->shared);
    if (j->back && j->c->wanted[SHARED_K])
        h->d_shared_k = (heed__matrix){sums + kv_head * h->d_k, shared_cols(j->c)};
    if (j->back && j->c->wanted[SHARED_V])
        h->d_shared_v = (heed__matrix){sums + k->cols + kv_head * h->d_v, shared_cols(j->c)};
}

static void run_head(const job *j, int64_t b, int64_t head, bool first, bool kept, place at,
                     int thread)
{
    const call *a = j->c->attributes;
    const heed_kernels *kernels = heed__kernels();
    const heed_tensor *bias = j->c->in[BIAS];
    const int64_t row = a->pairs.queries->offset[b], key = a->pairs.keys->offset[b];
    const int64_t kv_head = head / (a->pairs.heads / a->kv_heads);
    const heed__attention_room r = j->room;
    heed__head h = j->all;
    h.t = heed__length(a->pairs.queries, b);
    h.s = heed__length(a->pairs.keys, b);
    h.head = head;
    h.kv_head = kv_head;
    h.q = part_of(h.q, row, head * h.d_k);
    h.k = part_of(h.k, key, kv_head * h.d_k);
    h.v = part_of(h.v, key, kv_head * h.d_v);
    h.out = part_of(h.out, row, head * h.d_v);
    h.d_out = part_of(h.d_out, row, head * h.d_v);
    h.d_q = part_of(h.d_q, row, head * h.d_k);
    h.d_k_rows = part_of(h.d_k_rows, key, kv_head * h.d_k);
    h.d_v_rows = part_of(h.d_v_rows, key, kv_head * h.d_v);
    if (!first)
        h.beta_k = h.beta_v = 1;
    h.packed = !first;
    if (bias && bias->shape.dim[0] > 1)
        h.bias = part_of(h.bias, head * bias->shape.dim[1], 0);
    h.d_weights = at_pair(h.d_weights, at.pair);
    h.first = (uint64_t)at.pair;
    h.scratch = at_byte(j, thread, r.kernel);
    set_kept(j, &h, b, head, at, kept);
    set_shared(j, &h, b, kv_head, thread);
    if (j->c->in[DISTANCE]) {
        real *distance = at_byte(j, thread, r.distance);
        spread(j, head, h.t, h.s, distance);
        h.distance = distance;
    }
    if (a->counts && !j->back) {
        h.pairs = at_byte(j, thread, 0);
        h.products = h.pairs + 1;
    }
    if (!j->runs) {
        (j->back ? kernels->head_backward : kernels->head_forward)(&h);
        return;
    }
    const view v = {
        a, b, h.t, h.s, a->visible ? a->visible + row : NULL, at_byte(j, thread, r.ranges)};
    h.context = &v;
    if (is_listed(a)) {
        h.list = list_of;
        (j->back ? kernels->list_backward : kernels->list_forward)(&h);
        return;
    }
    h.runs = runs_of;
    h.most = runs_at_most(a);
    (j->back ? kernels->tiles_backward : kernels->tiles_forward)(&h);
}

/* ---- cutting the work ---- */

/* Of one head, in pairs of query and key.  A row costs about as much as eight pairs besides. */
static int64_t cost_of(const call *a, int64_t b)
{
    const int64_t t = heed__length(a->pairs.queries, b), s = heed__length(a->pairs.keys, b);
    return (a->causal ? t * s / 2 : t * s) + 8 * (t + s) + 1;
}

/* Heads of keys of segments lie on a line, each as long as its cost; a part takes those whose
 * middle is in its share of the line. */
static void run_parts(void *context, int64_t begin, int64_t end, int thread)
{
    const job *j = context;
    const call *a = j->c->attributes;
    const double low = (double)j->cost * (double)begin / (double)j->parts;
    const double high = (double)j->cost * (double)end / (double)j->parts;
    const int64_t group = a->pairs.heads / a->kv_heads;
    int64_t at = 0;
    place to = {0, 0};
    for (int64_t b = 0; b < a->pairs.queries->count; b++) {
        const int64_t one = group * cost_of(a, b), pairs = pairs_of(a, b);
        const int64_t kept = keeps(j->c, b) ? pairs : 0;
        for (int64_t kv = 0; kv < a->kv_heads; kv++, at += one) {
            const double middle = (double)at + 0.5 * (double)one;
            for (int64_t g = 0; g < group; g++, to.pair += pairs, to.kept += kept)
                if (middle >= low && middle < high)
                    run_head(j, b, kv * group + g, g == 0, kept > 0, to, thread);
        }
    }
}

static heed__matrix matrix(const heed_tensor *x)
{
    return x ? (heed__matrix){x->data, x->ld} : (heed__matrix){NULL, 0};
}

job heed__attention_job_of(const heed_opcall *c, const heed_rng *rng, bool back)
{
    const call *a = c->attributes;
    job j = {.c = c,
             .back = back,
             .runs = has_runs(c),
             .saved = heed__attention_saves(c),
             .room = heed__attention_room_of(c)};
    j.all = (heed__head){.d_k = c->in[Q]->cols / a->pairs.heads,
                         .d_v = c->in[V]->cols / a->kv_heads,
                         .heads = a->pairs.heads,
                         .kv_heads = a->kv_heads,
                         .causal = a->causal,
                         .q = matrix(c->in[Q]),
                         .k = matrix(c->in[K]),
                         .v = matrix(c->in[V]),
                         .bias = matrix(c->in[BIAS]),
                         .dropout = a->dropout,
                         .rng = rng};
    j.all.scale = (real)(a->scale != 0 ? a->scale : 1 / sqrt((double)j.all.d_k));
    return j;
}

void heed__attention_run(job *j, int threads)
{
    const call *a = j->c->attributes;
    const heed__attention_room r = j->room;
    for (int thread = 0; thread < heed__threads(j->c); thread++) {
        memset(at_byte(j, thread, 0), 0, 2 * sizeof(int64_t));
        memset(at_byte(j, thread, r.shared), 0, r.kernel - r.shared);
    }
    for (int64_t b = 0; b < a->pairs.queries->count; b++)
        j->cost += a->pairs.heads * cost_of(a, b);
    j->parts = threads;
    int64_t work = j->cost / threads * (j->all.d_k + j->all.d_v);
    heed__parallel(threads, threads, 1, work, run_parts, j);
}

/* ---- what the threads have together ---- */

void heed__attention_count(const job *j)
{
    const call *a = j->c->attributes;
    *a->counts = (heed_attention_counts){0, 0};
    for (int thread = 0; thread < heed__threads(j->c); thread++) {
        const int64_t *counts = at_byte(j, thread, 0);
        a->counts->pairs += counts[0];
        a->counts->products += counts[1];
    }
}

void heed__attention_shared(const job *j, int input, real *to)
{
    const heed_tensor *x = j->c->in[input];
    const int64_t skip = input == SHARED_V ? j->c->in[SHARED_K]->cols : 0;
    for (int thread = 0; thread < heed__threads(j->c); thread++) {
        const real *from = (const real *)at_byte(j, thread, j->room.shared) + skip;
        for (int64_t row = 0; row < x->rows; row++)
            for (int64_t col = 0; col < x->cols; col++)
                to[row * x->ld + col] += from[row * shared_cols(j->c) + col];
    }
}
