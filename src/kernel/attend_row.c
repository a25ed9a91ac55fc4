/* attend_row.c: attention of one query, and the log-sum-exp of a chunk of logits; see panels.h.
 *
 * Keys and values are read once, and mostly from memory.  A register's worth of keys is compared
 * with the query at a time, head after head, so that each of their rows goes by in one piece;
 * meanwhile their values are prefetched, and while those are mixed, the keys of the next query. */
#include "kernel/panels.h"

#include "kernel/isa.h"
#include "kernel/softmax_row.h"
#include "kernel/softmax_rows.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_ATTEND(DECLARE)
HEED_KERNELS_SOFTMAX(DECLARE)

#define LANES (VBYTES / sizeof(real))

/* Lane i is the sum of v[i]. */
VINLINE vreal sums_of(const vreal v[LANES])
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    return _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
#else
    vreal sums = {0};
    for (int i = 0; i < VW; i++)
        sums[i] = vsum(v[i]);
    return sums;
#endif
}

VINLINE void prefetch(const real *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += (int64_t)(64 / sizeof(real)))
        __builtin_prefetch(x + i);
}

/* The dot products of q (d) with VW rows, from column `at` of them on. */
VINLINE vreal dots(const real *q, const real *const *row, int64_t at, int64_t d)
{
    vreal sum[LANES];
#pragma GCC unroll 16
    for (int u = 0; u < VW; u++)
        sum[u] = (vreal){0};
    for (int64_t p = 0; p < d; p += VW) {
        vreal x = vload_at(q, p, d);
#pragma GCC unroll 16
        for (int u = 0; u < VW; u++)
            sum[u] += x * vload_at(row[u] + at, p, d);
    }
    return sums_of(sum);
}

/* out = sum_i w[i] (key[i] + at): `registers` of it, a constant where it is inlined; `last` numbers
 * are alive in the last one. */
VINLINE void mix(int registers, real *out, const real *w, const real *const *key, int64_t at,
                 int64_t n, int64_t last)
{
    const int end = registers - 1;
    vreal sum[8];
#pragma GCC unroll 8
    for (int r = 0; r < registers; r++)
        sum[r] = (vreal){0};
    for (int64_t i = 0; i < n; i++) {
        const vreal x = vset(w[i]);
        const real *from = key[i] + at;
#pragma GCC unroll 8
        for (int r = 0; r < end; r++)
            sum[r] += x * vload(from + r * VW);
        sum[end] += x * vload_at(from + end * VW, 0, last);
    }
#pragma GCC unroll 8
    for (int r = 0; r < end; r++)
        vstore(out + r * VW, sum[r]);
    vstore_at(out + end * VW, sum[end], 0, last);
}

static void mix_head(real *out, const real *w, const real *const *key, int64_t at, int64_t n,
                     int64_t d)
{
    int64_t j = 0;
    for (; d - j >= 8 * VW; j += 8 * VW)
        mix(8, out + j, w, key, at + j, n, VW);
    if (d - j >= 4 * VW) {
        mix(4, out + j, w, key, at + j, n, VW);
        j += 4 * VW;
    }
    for (; j < d; j += VW)
        mix(1, out + j, w, key, at + j, n, d - j);
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
