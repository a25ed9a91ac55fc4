/* pass_attention.c: section 3.2 for decoding: each row is a query, whose keys lie at any addresses.
 */
#include "attention/attend.h"
#include "base/min_max.h"
#include "base/parallel.h"
#include "engine/pass.h"
#include "kernel/kernels.h"
#include "kernel/unit_row.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is done to queries and keys ---- */

struct unit_job {
    heed_real *x;
    int64_t ld, vectors, d;
};

static void unit_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct unit_job *j = context;
    (void)thread;
    for (int64_t i = begin * j->vectors; i < end * j->vectors; i++) {
        heed_real *x = j->x + i / j->vectors * j->ld + i % j->vectors * j->d;
        heed__make_unit(x, x, (heed_real)HEED__COSINE_EPS, j->d);
    }
}

/* Of cosines and some features: the first vectors of Dk numbers in each row of p->wide get length
 * 1. */
static void make_unit(const heed__pass *p, const heed__packed_attention *a, int64_t ld,
                      int64_t vectors, int64_t rows)
{
    struct unit_job j = {p->wide, ld, vectors, a->form.d_k};
    if (a->cosine || a->linear.unit)
        heed__parallel(p->threads, rows, 1, 4 * vectors * j.d, unit_range, &j);
}

struct turn_job {
    const heed__pass *p;
    const heed__packed_attention *a;
    const heed__pass_keys *k;
};

static void turn_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct turn_job *j = context;
    const heed__packed_attention *a = j->a;
    const heed__packed_rotary *r = &j->p->w->rotary[a->rotary];
    const heed_real *angles = j->p->angles[a->rotary].at;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        heed_real *x = j->p->wide + i * a->in.n;
        heed__kernels()->turn_heads(x, x, angles + j->k->place(j->k->context, i).position * r->d,
                                    a->form.heads + a->form.kv_heads, r->d, r->neighbours);
    }
}

/* Of self-attention with rotary positions: queries and keys, which stand side by side. */
static void turn(const heed__pass *p, const heed__packed_attention *a, int64_t rows,
                 const heed__pass_keys *k)
{
    struct turn_job j = {p, a, k};
    if (a->rotary >= 0)
        heed__parallel(p->threads, rows, 1, 3 * a->in.n, turn_range, &j);
}

/* ---- keys ---- */

struct attention_job {
    const heed__pass *p;
    const heed__packed_attention *a;
    const heed__pass_keys *k;
};

/* What each key's distance from the query adds (ops.h: distance_bias). */
static void add_distances(const heed__packed_attention *a, int64_t position, heed__key_list *l)
{
    const int64_t columns = a->form.columns, most = a->causal ? columns - 1 : columns / 2;
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t by = position - l->position[i];
        const bool none = l->position[i] < 0;
        l->distance[i] = none ? 0 : (heed_real)llabs(by);
        const int64_t cut = by > most ? most : by < -most ? -most : by;
        l->column[i] = none ? -1 : (int32_t)(a->causal ? cut : most + cut);
    }
}

/* The keys and positions of a range, run by run. */
static void list_range(const struct attention_job *j, int64_t row, heed_key_range r,
                       heed__key_list *l)
{
    for (int64_t run = r.begin; run < r.end; run += r.step) {
        const heed_key_range one = {(int32_t)run, (int32_t)heed__min(run + r.width, r.end), 1, 1};
        j->k->own(j->k->context, j->a, row, one, l->key + l->n);
        for (int32_t key = one.begin; key < one.end; key++)
            l->position[l->n++] = key;
    }
}

/* Those that a row sees in a head, none behind the last row. */
static void list_keys(const struct attention_job *j, int64_t row, int head, int64_t end, int thread,
                      heed__key_list *l)
{
    const heed__packed_attention *a = j->a;
    l->n = 0;
    if (row >= end)
        return;
    if (a->kind == HEED_CROSS) {
        l->n = j->k->memory(j->k->context, a, row, l->key);
        return;
    }
    const heed__pass_place at = j->k->place(j->k->context, row);
    if (a->plain) {
        const heed_key_range all = {0, (int32_t)(a->causal ? at.position + 1 : at.rows), 1, 1};
        j->k->own(j->k->context, a, row, all, l->key);
        l->n = all.end;
        return;
    }
    heed_key_range *r = j->p->ranges + thread * heed__pass_ranges(j->p, j->p->keys);
    const heed__pattern_query q = {a->layer, head, at.position, at.rows, at.rows, a->causal};
    const int ranges = heed__pattern_ranges(&a->pattern, &q, r);
    for (int i = 0; i < ranges; i++)
        list_range(j, row, r[i], l);
    for (int64_t i = 0; i < a->shared_rows; i++) {
        l->key[l->n] = a->shared + i * a->cached;
        l->position[l->n++] = -1;
    }
    if (a->form.slope || a->form.bias)
        add_distances(a, at.position, l);
}

/* ---- queries ---- */

/* A recorder sees all keys up to the last that a query might see; shared rows are none of them. */
static int64_t recorded_keys(const struct attention_job *j, int64_t row)
{
    const heed__pass_place at = j->k->place(j->k->context, row);
    return j->a->causal ? at.position + 1 : at.rows;
}

/* The probabilities of `heads` heads that have one list, to their rows of all keys. */
static void spread(const heed__key_list *l, const heed_real *probabilities, int64_t heads,
                   int64_t keys, heed_real *all)
{
    memset(all, 0, (size_t)(heads * keys) * sizeof *all);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < l->n; i++)
            if (l->position[i] >= 0)
                all[h * keys + l->position[i]] = probabilities[h * l->n + i];
}

static void record(const struct attention_job *j, int64_t row, const heed__key_list *l,
                   heed_real *probabilities)
{
    const heed__pass *p = j->p;
    const heed__packed_attention *a = j->a;
    if (a->plain) {
        p->recorder->record(p->recorder->context, a, row, probabilities, l->n);
        return;
    }
    const int64_t keys = recorded_keys(j, row), heads = a->form.heads;
    heed_real *all = probabilities + heads * l->n;
    spread(l, probabilities, heads, keys, all);
    p->recorder->record(p->recorder->context, a, row, all, keys);
}

static heed__key_list list_at(const heed__pass *p, int64_t i)
{
    const int64_t room = i * heed__pass_key_room(p, p->keys);
    return (heed__key_list){.key = p->key + room,
                            .position = p->key_position + room,
                            .distance = p->distance + room,
                            .column = p->column + room};
}

/* Where heads see different keys: a row in one head after the other. */
static void attend_head(const struct attention_job *j, int64_t r, int head, int thread,
                        heed_real *probabilities, heed_real *all)
{
    const heed__pass *p = j->p;
    const heed__packed_attention *a = j->a;
    const heed__attend_form *f = &a->form;
    const int64_t kv = head / (f->heads / f->kv_heads);
    heed__key_list l = list_at(p, 2 * thread);
    const heed__attend_form one = {.heads = 1,
                                   .kv_heads = 1,
                                   .d_k = f->d_k,
                                   .d_v = f->d_v,
                                   .value = f->value + kv * (f->d_v - f->d_k),
                                   .scale = f->scale,
                                   .slope = f->slope ? f->slope + head : NULL,
                                   .bias = f->bias ? f->bias + head * f->columns : NULL,
                                   .columns = f->columns};
    list_keys(j, r, head, r + 1, thread, &l);
    for (int64_t i = 0; i < l.n; i++)
        l.key[i] += kv * f->d_k;
    const heed__attend_keys keys = {
        .key = l.key, .n = l.n, .distance = l.distance, .column = l.column};
    heed__kernels()->attend_row(p->mixed + r * a->out.k + head * f->d_v, probabilities,
                                p->wide + r * a->in.n + head * f->d_k, &one, &keys);
    if (p->recorder)
        spread(&l, probabilities, 1, recorded_keys(j, r), all);
}

static void attend_heads(const struct attention_job *j, int64_t r, int thread,
                         heed_real *probabilities)
{
    const heed__pass *p = j->p;
    const int64_t heads = j->a->form.heads;
    heed_real *all = probabilities + heed__pass_key_room(p, p->keys);
    const int64_t keys = p->recorder ? recorded_keys(j, r) : 0;
    for (int head = 0; head < heads; head++)
        attend_head(j, r, head, thread, probabilities, all + head * keys);
    if (p->recorder)
        p->recorder->record(p->recorder->context, j->a, r, all, keys);
}

static void attend_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct attention_job *j = context;
    const heed__pass *p = j->p;
    const heed__packed_attention *a = j->a;
    heed_real *probabilities = p->scratch + thread * heed__pass_scratch(p, p->keys);
    heed__key_list now = list_at(p, 2 * thread), next = list_at(p, 2 * thread + 1);
    for (int64_t r = begin; a->by_head && r < end; r++)
        attend_heads(j, r, thread, probabilities);
    if (a->by_head)
        return;
    list_keys(j, begin, 0, end, thread, &now);
    for (int64_t r = begin; r < end; r++) {
        list_keys(j, r + 1, 0, end, thread, &next);
        int64_t same = 0; /* hypotheses of a sentence have their first keys in common */
        while (same < now.n && same < next.n && next.key[same] == now.key[same])
            same++;
        const heed__attend_keys keys = {.key = now.key,
                                        .n = now.n,
                                        .distance = now.distance,
                                        .column = now.column,
                                        .next = next.key + same,
                                        .next_n = next.n - same};
        heed__kernels()->attend_row(p->mixed + r * a->out.k, probabilities, p->wide + r * a->in.n,
                                    &a->form, &keys);
        if (p->recorder)
            record(j, r, &now, probabilities);
        const heed__key_list done = now;
        now = next;
        next = done;
    }
}

void heed__pass_attention(heed__pass *p, const heed__packed_attention *a, const heed_real *x,
                          int64_t rows, const heed__pass_keys *k)
{
    const heed__attend_form *f = &a->form;
    const bool self = a->kind != HEED_CROSS;
    heed__pass_linear(p, &a->in, p->wide, x, rows); /* q, or q, k and v */
    turn(p, a, rows, k);
    make_unit(p, a, a->in.n, f->heads + (self ? f->kv_heads : 0), rows);
    if (a->linear.features) {
        heed__pass_linear_attention(p, a, rows, k);
    } else {
        if (self && k->cache)
            k->cache(k->context, a, rows, p->wide + f->heads * f->d_k, a->in.n);
        struct attention_job j = {p, a, k};
        /* The work is guessed: all keys that there is memory for.  A recorder sees rows in order.
         */
        heed__parallel(p->recorder ? 1 : p->threads, rows, 1,
                       p->keys * f->heads * (f->d_k + f->d_v), attend_range, &j);
    }
    heed__pass_linear(p, &a->out, p->y, p->mixed, rows);
}

void heed__pass_memory(heed__pass *p, const heed__packed_attention *a, const heed_real *x,
                       int64_t rows)
{
    heed__pass_product(p, &a->kv, p->wide, x, rows);
    make_unit(p, a, a->kv.n, a->form.kv_heads, rows);
}
