/* pass_linear.c: attention without weights for decoding (ops/linear_attention.c,
 * ops/delta_attention.c): a head keeps one state, which each key changes once, whatever the number
 * of tokens.
 *
 * Rows go in their order, so that many tokens at once give the bits of single ones; threads share
 * the heads of keys. */
#include "base/parallel.h"
#include "engine/pass.h"
#include "kernel/kernels.h"

#include <string.h>

struct linear_job {
    const heed__pass *p;
    const heed__packed_attention *a;
    const heed__pass_keys *k;
    int64_t rows;
};

/* One head of keys, and the heads of queries that meet it. */
struct linear_head {
    const heed__pass *p;
    const heed__packed_attention *a;
    int64_t kv;
    heed_real *room;
};

static void learn(const struct linear_head *h, heed_real *state, int64_t row)
{
    const heed__attend_form *f = &h->a->form;
    const heed__packed_linear *l = &h->a->linear;
    const heed_real *in = h->p->wide + row * h->a->in.n, *key = in + f->heads * f->d_k;
    const heed_real gate =
        (l->gate ? in[l->gate + h->kv] : 0) + (l->gate_bias ? l->gate_bias[h->kv] : 0);
    const heed_real *k = key + h->kv * f->d_k, *v = key + f->value + h->kv * f->d_v;
    if (l->delta)
        heed__kernels()->delta_learn(&l->features[h->kv], state, k, v, f->d_v, &gate, h->room);
    else
        heed__kernels()->linear_learn(&l->features[h->kv], state, k, v, f->d_v,
                                      l->gate ? &gate : NULL, h->room);
}

static void ask(const struct linear_head *h, const heed_real *state, int64_t row)
{
    const heed__attend_form *f = &h->a->form;
    const heed__packed_linear *l = &h->a->linear;
    const int64_t group = f->heads / f->kv_heads;
    for (int64_t head = h->kv * group; head < (h->kv + 1) * group; head++) {
        heed_real *out = h->p->mixed + row * h->a->out.k + head * f->d_v;
        const heed_real *q = h->p->wide + row * h->a->in.n + head * f->d_k;
        if (l->delta)
            heed__kernels()->delta_ask(&l->features[h->kv], out, state, q, f->d_v, h->room);
        else
            heed__kernels()->linear_ask(&l->features[h->kv], out, state, q, f->d_v, l->eps,
                                        l->floor, h->room);
    }
}

/* A sentence that begins at `row` and is all there is of it; its state begins empty. */
static void whole_sentence(const struct linear_head *h, heed_real *state, int64_t row, int64_t rows)
{
    memset(state, 0, (size_t)h->a->linear.state * sizeof *state);
    for (int64_t r = row; r < row + rows; r++) {
        learn(h, state, r);
        if (h->a->causal)
            ask(h, state, r);
    }
    for (int64_t r = row; !h->a->causal && r < row + rows; r++)
        ask(h, state, r);
}

static void head_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct linear_job *j = context;
    const heed__pass *p = j->p;
    const int64_t size = j->a->linear.state;
    heed_real *room = p->scratch + thread * heed__pass_scratch(p, p->keys);
    for (int64_t kv = begin; kv < end; kv++) {
        const struct linear_head h = {p, j->a, kv, room};
        for (int64_t r = 0, n; r < j->rows; r += n) {
            n = 1;
            if (!j->k->state) {
                n = j->k->place(j->k->context, r).rows;
                whole_sentence(&h, p->state + kv * size, r, n);
                continue;
            }
            heed_real *state = j->k->state(j->k->context, j->a->at, r) + kv * size;
            learn(&h, state, r);
            ask(&h, state, r);
        }
    }
}

void heed__pass_linear_attention(heed__pass *p, const heed__packed_attention *a, int64_t rows,
                                 const heed__pass_keys *k)
{
    const heed__attend_form *f = &a->form;
    struct linear_job j = {p, a, k, rows};
    heed__parallel(p->threads, f->kv_heads, 1,
                   rows * (f->heads / f->kv_heads + 1) * a->linear.state, head_range, &j);
}
