/* attend_row.c: attention of one query, and the log-sum-exp of a chunk of logits; see panels.h.
 *
 * Keys and values are read once, and mostly from memory.  A register's worth of keys is compared
 * with the query at a time, head after head, so that each of their rows goes by in one piece;
 * meanwhile their values are prefetched, and while those are mixed, the keys of the next query. */
#include "kernel/panels.h"

#include "kernel/isa.h"
#include "kernel/listed_rows.h"
#include "kernel/softmax_row.h"
#include "kernel/softmax_rows.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_ATTEND(DECLARE)
HEED_KERNELS_SOFTMAX(DECLARE)

VINLINE void prefetch(const real *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += (int64_t)(64 / sizeof(real)))
        __builtin_prefetch(x + i);
}

/* What is known of some keys of head h before they are compared: by distance. */
VINLINE vreal prior(const heed__attend_form *f, const heed__attend_keys *k, int64_t h, int64_t i,
                    int64_t left)
{
    vreal x = {0};
    if (f->slope)
        x -= vset(f->slope[h]) * vload_at(k->distance + i, 0, left);
    for (int u = 0; f->bias && u < VW && u < left; u++)
        if (k->column[i + u] >= 0)
            x[u] += f->bias[h * f->columns + k->column[i + u]];
    return x;
}

void K(attend_row)(real *out, real *probabilities, const real *q, const heed__attend_form *form,
                   const heed__attend_keys *keys)
{
    const heed__attend_form f = *form;
    const int64_t n = keys->n, group = f.heads / f.kv_heads;
    const bool plain = !f.slope && !f.bias;
    for (int64_t i = 0; i < n; i += VW) {
        const int64_t left = n - i, rows = left < VW ? left : VW;
        const real *row[LANES]; /* behind the last key, the last again */
        for (int u = 0; u < VW; u++)
            row[u] = keys->key[i + (u < rows ? u : rows - 1)];
        for (int64_t kv = 0, h = 0; kv < f.kv_heads; kv++) {
            for (int64_t u = 0; u < rows; u++)
                prefetch(row[u] + f.value + kv * f.d_v, f.d_v);
            for (int64_t end = h + group; h < end; h++) {
                vreal score = f.scale * dots(q + h * f.d_k, row, kv * f.d_k, f.d_k);
                if (!plain)
                    score += prior(&f, keys, h, i, left);
                vstore_at(probabilities + h * n + i, score, 0, left);
            }
        }
    }
    K(softmax_rows)(probabilities, probabilities, n, f.heads, n);
    for (int64_t kv = 0, h = 0; kv < f.kv_heads; kv++) {
        for (int64_t i = 0; i < keys->next_n; i++)
            prefetch(keys->next[i] + kv * f.d_k, f.d_k);
        for (int64_t end = h + group; h < end; h++)
            mix_head(out + h * f.d_v, probabilities + h * n, keys->key, f.value + kv * f.d_v, n,
                     f.d_v);
    }
}

/* The largest, or NaN if that is among them, which row_max may pass by. */
static real largest(const real *x, int64_t n)
{
    vint unordered = {0};
    for (int64_t i = 0; i < n; i += VW) {
        const vreal v = vload_at(x, i, n);
        unordered |= v != v;
    }
    for (int i = 0; i < VW; i++)
        if (unordered[i])
            return (real)NAN;
    return row_max(x, n);
}

void K(log_sum_exp_part)(real *max, real *sum, const real *x, int64_t n)
{
    if (!sum) {
        *max = largest(x, n);
        return;
    }
    *max = row_max(x, n);
    *sum = *max == -INFINITY ? 0 : exp_sum(NULL, x, *max, n);
}
