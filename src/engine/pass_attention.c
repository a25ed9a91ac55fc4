/* pass_attention.c: section 3.2 for decoding: each row is a query, whose keys lie at any addresses.
 */
#include "attention/attend.h"
#include "base/parallel.h"
#include "engine/pass.h"
#include "kernel/kernels.h"
#include "kernel/unit_row.h"

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

/* Of cosines: the first vectors of Dk numbers in each row of p->wide get length 1. */
static void make_unit(const heed__pass *p, const heed__packed_attention *a, int64_t ld,
                      int64_t vectors, int64_t rows)
{
    struct unit_job j = {p->wide, ld, vectors, a->form.d_k};
    if (a->cosine)
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
        heed__kernels()->turn_heads(x, x, angles + j->k->position(j->k->context, i) * r->d,
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

/* ---- queries ---- */

struct attention_job {
    const heed__pass *p;
    const heed__packed_attention *a;
    const heed__pass_keys *k;
};

/* The keys that a row looks at, none behind the last row. */
static int64_t keys_of(const struct attention_job *j, int64_t row, int64_t end,
                       const heed_real **key)
{
    if (row >= end)
        return 0;
    return (j->a->kind == HEED_CROSS ? j->k->memory : j->k->own)(j->k->context, j->a, row, key);
}

static void attend_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct attention_job *j = context;
    const heed__pass *p = j->p;
    const heed__packed_attention *a = j->a;
    heed_real *probabilities = p->scratch + thread * heed__pass_scratch(p, p->keys);
    const heed_real **key = p->key + thread * 2 * p->keys, **next = key + p->keys;
    int64_t n = keys_of(j, begin, end, key);
    for (int64_t r = begin; r < end; r++) {
        const int64_t soon = keys_of(j, r + 1, end, next);
        int64_t same = 0; /* hypotheses of a sentence have their first keys in common */
        while (same < n && same < soon && next[same] == key[same])
            same++;
        const heed__attend_keys keys = {
            .key = key, .n = n, .next = next + same, .next_n = soon - same};
        heed__kernels()->attend_row(p->mixed + r * a->out.k, probabilities, p->wide + r * a->in.n,
                                    &a->form, &keys);
        if (p->recorder)
            p->recorder->record(p->recorder->context, a, r, probabilities, n);
        const heed_real **done = key;
        key = next;
        next = done;
        n = soon;
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
    if (self && k->cache)
        k->cache(k->context, a, rows, p->wide + f->heads * f->d_k, a->in.n);
    struct attention_job j = {p, a, k};
    /* The work is guessed: all keys that there is memory for.  A recorder sees rows in order. */
    heed__parallel(p->recorder ? 1 : p->threads, rows, 1, p->keys * f->heads * (f->d_k + f->d_v),
                   attend_range, &j);
    heed__pass_linear(p, &a->out, p->y, p->mixed, rows);
}

void heed__pass_memory(heed__pass *p, const heed__packed_attention *a, const heed_real *x,
                       int64_t rows)
{
    heed__pass_product(p, &a->kv, p->wide, x, rows);
    make_unit(p, a, a->kv.n, a->form.kv_heads, rows);
}
