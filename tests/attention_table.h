/* attention_table.h: the forms of attention, a row each, that every proof goes through: against an
 * oracle in double (test_attention_table.c), and in models (one_stack.h): tape against engine,
 * cached against all at once, fp32, int8, from a directory.
 *
 * A form of softmax over fewer keys needs no oracle of its own: only what its pattern lets a query
 * see, said in other words than ranges (`lets`).  What is no softmax over keys brings `mix`. */
#ifndef HEED_TESTS_ATTENTION_TABLE_H
#define HEED_TESTS_ATTENTION_TABLE_H

#include "attention/attend.h"
#include "tensor/tensor_fields.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- what a pattern lets a query see ---- */

/* One head of one segment in double, rows without gaps: q (T,Dk), k (S,Dk), v (S,Dv). */
struct form_head {
    const heed_attend_layer *layer;
    int head; /* of the queries */
    bool causal;
    int64_t t, s, dk, dv;
    const double *q, *k, *v;
    const double *gate; /* (S) of the head of keys; NULL: none */
    /* q and k as they are while differences move them: what is chosen by them stays. */
    const double *still_q, *still_k;
};

/* Query i and key j of a segment; n: the numbers of the pattern's term. */
struct form_pair {
    const struct form_head *h; /* what patterns by content look at */
    const int64_t *n;
    int head, layer;
    int64_t i, j, queries, keys;
    bool causal;
};

static inline bool lets_global(const struct form_pair *p)
{
    return p->n[0] == 0 || p->i < p->n[0] || p->j < p->n[0];
}

/* Behind the last key a query stands at the last. */
static inline int64_t form_place(const struct form_pair *p)
{
    return p->i < p->keys ? p->i : p->keys - 1;
}

static inline bool lets_band(const struct form_pair *p)
{
    const int64_t w = p->n[0], before = form_place(p) - p->j;
    return p->causal ? before >= 0 && before < w : before <= w / 2 && -before < w - w / 2;
}

static inline bool lets_local_m(const struct form_pair *p)
{
    return llabs((long long)(p->j - form_place(p))) <= p->n[0];
}

static inline bool lets_dilated(const struct form_pair *p)
{
    const int64_t step = p->n[2] && p->head >= p->n[2] ? 1 : p->n[1];
    const int64_t before = form_place(p) - p->j, w = p->n[0];
    return before % step == 0 && (p->causal ? before >= 0 && before / step < w
                                            : before / step <= w / 2 && -before / step < w - w / 2);
}

static inline bool lets_block(const struct form_pair *p)
{
    const int64_t own = form_place(p) / p->n[0], block = p->j / p->n[0];
    const int64_t blocks = (p->keys + p->n[0] - 1) / p->n[0];
    if (!p->n[1])
        return own == block;
    return p->causal ? block == (own < p->head ? own : own - p->head)
                     : (block - own - p->head) % blocks == 0;
}

/* Which of two parts a layer or head has: said by the last number. */
static inline bool form_part(const struct form_pair *p, int64_t how, int part)
{
    return how == 2 ? p->head % 2 == part : how == 3 ? p->layer % 2 == part : true;
}

static inline bool lets_strided(const struct form_pair *p)
{
    const int64_t l = p->n[0], i = form_place(p), how = p->n[1];
    return (form_part(p, how, 0) && llabs((long long)(i - p->j)) <= l) ||
           (form_part(p, how, 1) && (i - p->j) % l == 0);
}

static inline bool lets_fixed(const struct form_pair *p)
{
    const int64_t l = p->n[0], c = p->n[1], how = p->n[2], i = form_place(p);
    const int64_t last = l - (how == 2 ? p->head / 2 % (l / c) * c : 0);
    const bool own = i / l == p->j / l;
    return (form_part(p, how, 0) && own) ||
           (form_part(p, how, 1) && p->j % l >= last - c && p->j % l < last) ||
           (form_part(p, how, 1) && !form_part(p, how, 0) && own && i < l);
}

static inline bool lets_star(const struct form_pair *p)
{
    const int64_t i = form_place(p), ring = p->keys - 1;
    if (i == 0 || p->j == 0 || llabs((long long)(i - p->j)) <= 1)
        return true;
    return !p->causal && (i - p->j - ring + 1) * (p->j - i - ring + 1) == 0;
}

static inline bool lets_etc(const struct form_pair *p)
{
    return form_place(p) < p->n[1] || p->j < p->n[1] || lets_band(p);
}

/* Sets of drawn keys are known only from where they are drawn; that they are what they should be is
 * a test of its own. */
static inline bool form_drawn(const struct form_pair *p, int64_t at, int64_t count, int64_t n,
                              int64_t which)
{
    int64_t out[HEED__MOST_DRAWN];
    const heed__pattern_query q = {.layer = p->layer, .head = p->head};
    const int drawn = heed__pattern_draw(&q, at, count, n, out);
    for (int k = 0; k < drawn; k++)
        if (out[k] == which)
            return true;
    return false;
}

static inline bool lets_random(const struct form_pair *p)
{
    const int64_t n = p->causal && p->i + 1 < p->keys ? p->i + 1 : p->keys;
    return form_drawn(p, p->i, p->n[0], n, p->j);
}

static inline bool lets_bigbird(const struct form_pair *p)
{
    const int64_t b = p->n[0], own = form_place(p) / b, block = p->j / b;
    const int64_t last = p->causal ? own + 1 : (p->keys - 1) / b;
    int64_t others = 0, which = -1;
    if (block == 0 || llabs((long long)(own - block)) <= 1)
        return true;
    if (!p->causal && (block == last || own == 0 || own == last))
        return true;
    for (int64_t k = 1; k < last; k++) /* those that it does not see anyway */
        if (llabs((long long)(k - own)) > 1) {
            which = k == block ? others : which;
            others++;
        }
    return which >= 0 && form_drawn(p, own, p->n[1], others, which);
}

/* Level by level through the tree, span by span. */
static inline bool lets_bpt(const struct form_pair *p)
{
    const int64_t k = p->n[0], i = form_place(p), j = p->j, end = p->keys;
    if (i == j || (!p->causal && i == end - 1))
        return true;
    for (int64_t size = 2; size <= i + 1; size *= 2) /* spans that i ends */
        if ((i + 1) % size == 0 && j <= i && j > i - size)
            return true;
    for (int64_t size = 1, to = i; to > 0; size *= 2) { /* a level goes on to a pair of spans */
        int64_t from = to;
        while (from > 0 && (from > to - k * size || from % (2 * size)))
            from -= size;
        if (j < to && j >= from && (j + 1) % size == 0)
            return true;
        to = from;
    }
    for (int64_t size = 1, from = i + 1; from < end && !p->causal; size *= 2) {
        int64_t to = from;
        while (to < from + k * size || to % (2 * size))
            to += size;
        if (j >= from && j < to && ((j + 1) % size == 0 || (to >= end && j == end - 1)))
            return true;
        from = to;
    }
    return false;
}

static inline bool lets_block_image(const struct form_pair *p)
{
    const int64_t x = p->n[0], b = p->n[1], i = form_place(p);
    if (p->n[2] == 2)
        return llabs((long long)(i / (b * x) - p->j / (b * x))) <= 1;
    return llabs((long long)(i / x / b - p->j / x / b)) <= 1 &&
           llabs((long long)(i % x / b - p->j % x / b)) <= 1;
}

static inline bool lets_axial(const struct form_pair *p)
{
    const int64_t x = p->n[0], i = form_place(p);
    return (form_part(p, p->n[1], 0) && i / x == p->j / x) ||
           (form_part(p, p->n[1], 1) && i % x == p->j % x);
}

/* ---- what a query sees by content ---- */

static inline double form_dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Those of `n` that come before number `which` are fewer than k: larger, or as large and earlier.
 */
static inline bool form_among(const double *x, int64_t n, int64_t which, int64_t k)
{
    int64_t before = 0;
    for (int64_t i = 0; i < n; i++)
        before += x[i] > x[which] || (x[i] == x[which] && i < which);
    return before < k;
}

#define FORM_KEYS 128
/* The largest products with the landmarks 0, 1, 4, 9, ... below `limit`: which one's. */
static inline int64_t form_landmark(const struct form_head *h, const double *x, int64_t limit,
                                    const bool *passed)
{
    int64_t best = -1;
    double most = -INFINITY;
    for (int64_t n = 0; n * n < limit; n++) {
        const double *k = h->k + n * n * h->dk;
        const double product = form_dot(x, k, h->dk) / sqrt(form_dot(k, k, h->dk));
        if (product > most && !(passed && passed[n])) {
            most = product;
            best = n;
        }
    }
    return best;
}

static inline bool lets_top_k(const struct form_pair *p)
{
    const struct form_head *h = p->h;
    const int64_t limit = p->causal && p->i + 1 < p->keys ? p->i + 1 : p->keys;
    double product[FORM_KEYS] = {0};
    bool open[FORM_KEYS] = {false};
    int64_t looked = 0;
    for (int64_t j = 0; j < limit; j++)
        product[j] = p->n[1] ? -INFINITY : form_dot(h->q + p->i * h->dk, h->k + j * h->dk, h->dk);
    while (p->n[1] && looked < 8 * p->n[0] && looked < limit) {
        const int64_t file = form_landmark(h, h->q + p->i * h->dk, limit, open);
        open[file] = true;
        for (int64_t j = 0; j < limit; j++)
            if (form_landmark(h, h->k + j * h->dk, j + 1, NULL) == file) {
                product[j] = form_dot(h->q + p->i * h->dk, h->k + j * h->dk, h->dk);
                looked++;
            }
    }
    return p->j < limit && product[p->j] > -INFINITY && form_among(product, limit, p->j, p->n[0]);
}

/* The bucket of row i in a round, said as the largest of products with R's rows and their
 * opposites: what is drawn is known only from where it is drawn. */
static inline int64_t form_bucket(const struct form_pair *p, int64_t round, int64_t i)
{
    heed_real r[FORM_KEYS * 8];
    double x[FORM_KEYS];
    const int64_t half = p->n[0] / 2, d = p->h->dk;
    heed__lsh_directions(r, p->layer, p->head, round, p->n[0], d);
    for (int64_t b = 0; b < half; b++) {
        double row[8];
        for (int64_t k = 0; k < d; k++)
            row[k] = (double)r[b * d + k];
        x[b] = form_dot(row, p->h->q + i * d, d);
        x[half + b] = -x[b];
    }
    for (int64_t b = 0; b < 2 * half; b++)
        if (form_among(x, 2 * half, b, 1))
            return b;
    return 0;
}

static inline bool lets_lsh(const struct form_pair *p)
{
    const int64_t chunk = (p->keys + p->n[0] - 1) / p->n[0];
    for (int64_t r = 0; r < p->n[1]; r++) {
        const int64_t of_i = form_bucket(p, r, p->i), of_j = form_bucket(p, r, p->j);
        int64_t place_i = 0, place_j = 0;
        for (int64_t x = 0; x < p->keys; x++) {
            const int64_t of_x = form_bucket(p, r, x);
            place_i += of_x < of_i || (of_x == of_i && x < p->i);
            place_j += of_x < of_j || (of_x == of_j && x < p->j);
        }
        if (place_i / chunk == place_j / chunk || place_i / chunk == place_j / chunk + 1)
            return true;
    }
    return false;
}

/* x, centred, against centroid c: its length does not matter beside others of one centroid. */
static inline double form_routed(const struct form_pair *p, const double *x, int64_t c)
{
    const int64_t d = p->h->dk;
    const heed_real *mu = heed__row(p->h->layer->centroids, p->head * p->n[0] + c);
    double mean = 0, sum = 0, square = 0;
    for (int64_t i = 0; i < d; i++)
        mean += x[i] / (double)d;
    for (int64_t i = 0; i < d; i++) {
        sum += (double)mu[i] * (x[i] - mean);
        square += (x[i] - mean) * (x[i] - mean);
    }
    return sum / sqrt(square);
}

static inline bool lets_routing(const struct form_pair *p)
{
    const int64_t members = (p->keys + p->n[0] - 1) / p->n[0];
    for (int64_t c = 0; c < p->n[0]; c++) {
        double q[FORM_KEYS], k[FORM_KEYS];
        for (int64_t x = 0; x < p->keys; x++) {
            q[x] = form_routed(p, p->h->q + x * p->h->dk, c);
            k[x] = form_routed(p, p->h->k + x * p->h->dk, c);
        }
        if (form_among(q, p->keys, p->i, members) && form_among(k, p->keys, p->j, members))
            return true;
    }
    return false;
}

/* A pattern without a row here has no proof. */
static const struct {
    const char *name;
    bool (*lets)(const struct form_pair *p);
} form_lets[] = {
    {"global", lets_global},
    {"band", lets_band},
    {"local-m", lets_local_m},
    {"dilated", lets_dilated},
    {"random", lets_random},
    {"block", lets_block},
    {"strided", lets_strided},
    {"fixed", lets_fixed},
    {"star", lets_star},
    {"etc", lets_etc},
    {"bigbird", lets_bigbird},
    {"bpt", lets_bpt},
    {"block-image", lets_block_image},
    {"axial", lets_axial},
    {"top-k", lets_top_k},
    {"lsh", lets_lsh},
    {"routing", lets_routing},
};

static inline bool form_union(const heed_slot_spec *pattern, struct form_pair p)
{
    const heed_slot_spec full = heed__slot_complete(HEED_SLOT_PATTERN, pattern);
    bool seen = pattern->count == 0;
    if (p.causal && p.j > p.i)
        return false;
    for (int k = 0; k < pattern->count; k++) {
        const char *name = heed__row_of(HEED_SLOT_PATTERN, pattern->term[k].kind)->info.name;
        size_t row = 0;
        while (row < sizeof form_lets / sizeof *form_lets && strcmp(form_lets[row].name, name) != 0)
            row++;
        if (row == sizeof form_lets / sizeof *form_lets)
            fail_msg("pattern %s has no row in attention_table.h", name);
        p.n = full.term[k].number;
        seen |= form_lets[row].lets(&p);
    }
    return seen;
}

/* Whether a union of terms lets query p->i see key p->j.  By content a query that sees nothing else
 * sees itself; where keys are the queries, only then. */
static inline bool form_sees(const heed_slot_spec *pattern, struct form_pair p)
{
    const heed__content *content = heed__content_of(pattern);
    const int64_t i = p.i;
    const bool own = p.j == i;
    bool seen = !(content && content->shares_keys && own) && form_union(pattern, p);
    if (!content || !own || seen)
        return seen;
    for (p.j = 0; p.j < p.keys && !seen; p.j++)
        seen = p.j != i && form_union(pattern, p);
    return !seen;
}

/* ---- forms that are no softmax over keys ---- */

/* phi(q) sum phi(k) v^T / (phi(q) sum phi(k) + 1e-6), phi = elu + 1: pair by pair. */
static inline void mix_elu(const struct form_head *h, double *y)
{
    for (int64_t i = 0; i < h->t; i++) {
        double sum = 0;
        for (int64_t d = 0; d < h->dv; d++)
            y[i * h->dv + d] = 0;
        for (int64_t j = 0; j < h->s && (!h->causal || j <= i); j++) {
            double w = 0;
            for (int64_t d = 0; d < h->dk; d++) {
                const double q = h->q[i * h->dk + d], k = h->k[j * h->dk + d];
                w += (q > 0 ? q + 1 : exp(q)) * (k > 0 ? k + 1 : exp(k));
            }
            sum += w;
            for (int64_t d = 0; d < h->dv; d++)
                y[i * h->dv + d] += w * h->v[j * h->dv + d];
        }
        for (int64_t d = 0; d < h->dv; d++)
            y[i * h->dv + d] /= sum + 1e-6;
    }
}

#define FORM_FEATURES 96
/* phi of x (d): how many features. */
static inline int64_t form_features(const heed__linear_form *f, const heed_tensor *w,
                                    const double *x, int64_t d, double *to)
{
    const bool positive = f->features == HEED_FEATURES_POSITIVE;
    const double s = positive ? pow((double)d, -0.25) : 1;
    double square = 0, sum = 1e-6;
    int64_t m = 0;
    for (int64_t i = 0; i < d; i++)
        square += s * s * x[i] * x[i];
    for (int64_t i = 0; w && i < w->rows; i++) {
        double h = 0, root = sqrt((double)w->rows);
        for (int64_t j = 0; j < d; j++)
            h += s * (double)heed__row(w, i)[j] * x[j];
        to[m++] = positive ? exp(h - square / 2) / root : sin(h) / root;
        if (!positive)
            to[m++] = cos(h) / root;
    }
    for (int64_t i = 0; f->features == HEED_FEATURES_ELU && i < d; i++)
        to[m++] = x[i] > 0 ? x[i] + 1 : exp(x[i]);
    for (int64_t n = 1; f->features == HEED_FEATURES_DPFP && n <= f->count; n++)
        for (int64_t i = 0; i < 2 * d; i++) {
            const int64_t j = (i + 2 * d - n) % (2 * d);
            to[m++] = fmax(0, i < d ? x[i] : -x[i - d]) * fmax(0, j < d ? x[j] : -x[j - d]);
        }
    for (int64_t i = 0; f->unit_sum && i < m; i++)
        sum += to[i];
    for (int64_t i = 0; f->unit_sum && i < m; i++)
        to[i] /= sum;
    return m;
}

/* The same of a query or a key as the layer has them: rfa's are of length 1, times widths. */
static inline int64_t form_phi(const struct form_head *h, const double *x, double *to)
{
    const heed_attend_layer *l = h->layer;
    heed__linear_form f;
    double y[16], length = 0;
    heed__linear_form_of(&l->options, &f);
    const int64_t kv = h->head / (l->options.heads / l->options.kv_heads);
    for (int64_t i = 0; i < h->dk; i++)
        length += x[i] * x[i];
    for (int64_t i = 0; i < h->dk; i++)
        y[i] = l->widths ? x[i] / sqrt(length) * (double)l->widths->data[kv * h->dk + i] : x[i];
    return form_features(&f, l->directions, y, h->dk, to);
}

static inline double form_gate(const struct form_head *h, int64_t j)
{
    const heed_attend_layer *l = h->layer;
    const int64_t kv = h->head / (l->options.heads / l->options.kv_heads);
    return 1 / (1 + exp(-h->gate[j] - (l->gate_bias ? (double)l->gate_bias->data[kv] : 0)));
}

/* Performer and rfa: pair by pair, from the last key back; with gates what is left of each. */
static inline void mix_features(const struct form_head *h, double *y)
{
    for (int64_t i = 0; i < h->t; i++) {
        double q[FORM_FEATURES], k[FORM_FEATURES], sum = 0, left = 1;
        form_phi(h, h->q + i * h->dk, q);
        for (int64_t d = 0; d < h->dv; d++)
            y[i * h->dv + d] = 0;
        for (int64_t j = h->causal ? i : h->s - 1; j >= 0; j--) {
            const int64_t m = form_phi(h, h->k + j * h->dk, k);
            double w = 0;
            for (int64_t f = 0; f < m; f++)
                w += q[f] * k[f];
            if (h->gate) {
                w *= left * (1 - form_gate(h, j));
                left *= form_gate(h, j);
            }
            sum += w;
            for (int64_t d = 0; d < h->dv; d++)
                y[i * h->dv + d] += w * h->v[j * h->dv + d];
        }
        for (int64_t d = 0; d < h->dv; d++)
            y[i * h->dv + d] /= h->layer->widths ? fmax(sum, 1e-3) : sum;
    }
}

/* The delta rule, row after row. */
static inline void mix_delta(const struct form_head *h, double *y)
{
    double w[FORM_FEATURES * 16] = {0}, q[FORM_FEATURES], k[FORM_FEATURES];
    for (int64_t i = 0; i < h->t; i++) {
        const int64_t m = form_phi(h, h->q + i * h->dk, q);
        form_phi(h, h->k + i * h->dk, k);
        for (int64_t d = 0; d < h->dv; d++) {
            double stored = 0;
            for (int64_t f = 0; f < m; f++)
                stored += k[f] * w[f * h->dv + d];
            y[i * h->dv + d] = 0;
            for (int64_t f = 0; f < m; f++) {
                w[f * h->dv + d] += k[f] * form_gate(h, i) * (h->v[i * h->dv + d] - stored);
                y[i * h->dv + d] += q[f] * w[f * h->dv + d];
            }
        }
    }
}

/* Softmax over one row of keys and values (n, without gaps). */
static inline void form_softmax(const struct form_head *h, const double *q, const double *k,
                                const double *v, int64_t n, double *y)
{
    double sum = 0;
    for (int64_t d = 0; d < h->dv; d++)
        y[d] = 0;
    for (int64_t j = 0; j < n; j++) {
        double w = 0;
        for (int64_t d = 0; d < h->dk; d++)
            w += q[d] * k[j * h->dk + d] / sqrt((double)h->dk);
        sum += w = exp(w);
        for (int64_t d = 0; d < h->dv; d++)
            y[d] += w * v[j * h->dv + d];
    }
    for (int64_t d = 0; d < h->dv; d++)
        y[d] /= sum > 0 ? sum : 1;
}

#define FORM_BLOCKS 64
/* One block of x (S,d) by a kernel (C*d,d) of the layer, zeros behind the end. */
static inline void form_block(const struct form_head *h, const heed_tensor *w, const double *x,
                              int64_t d, int64_t block, double *to)
{
    const int64_t c = h->layer->options.memory.term[0].number[0];
    const int64_t kv = h->head / (h->layer->options.heads / h->layer->options.kv_heads);
    for (int64_t o = 0; o < d; o++) {
        to[o] = 0;
        for (int64_t i = 0; i < c * d && block * c + i / d < h->s; i++)
            to[o] += x[block * c * d + i] * (double)heed__row(w, kv * c * d + i)[o];
    }
}

/* Memory-compressed: causal queries see a learned row and the blocks that are complete. */
static inline void mix_mca(const struct form_head *h, double *y)
{
    const heed_attend_layer *l = h->layer;
    const int64_t c = l->options.memory.term[0].number[0], blocks = (h->s + c - 1) / c;
    const int64_t kv = h->head / (l->options.heads / l->options.kv_heads), null = h->causal;
    double k[FORM_BLOCKS * 8], v[FORM_BLOCKS * 8];
    for (int64_t b = 0; b < blocks; b++) {
        form_block(h, l->compress_k, h->k, h->dk, b, k + (b + null) * h->dk);
        form_block(h, l->compress_v, h->v, h->dv, b, v + (b + null) * h->dv);
    }
    for (int64_t d = 0; null && d < h->dk; d++)
        k[d] = (double)l->shared_k->data[kv * h->dk + d];
    for (int64_t d = 0; null && d < h->dv; d++)
        v[d] = (double)l->shared_v->data[kv * h->dv + d];
    for (int64_t i = 0; i < h->t; i++)
        form_softmax(h, h->q + i * h->dk, k, v, null ? 1 + (i + 1) / c : blocks, y + i * h->dv);
}

/* The same where query i sees two blocks: its own and the one before, or, causal, the last two that
 * are complete. */
static inline void mix_mca_band(const struct form_head *h, double *y)
{
    const heed_attend_layer *l = h->layer;
    const int64_t c = l->options.memory.term[0].number[0], blocks = (h->s + c - 1) / c;
    const int64_t kv = h->head / (l->options.heads / l->options.kv_heads);
    for (int64_t i = 0; i < h->t; i++) {
        const int64_t end = h->causal ? (i + 1) / c : (i / c < blocks - 1 ? i / c : blocks - 1) + 1;
        double k[3 * 8], v[3 * 8];
        int64_t n = 0;
        for (int64_t d = 0; h->causal && d < h->dk; d++)
            k[d] = (double)l->shared_k->data[kv * h->dk + d];
        for (int64_t d = 0; h->causal && d < h->dv; d++)
            v[d] = (double)l->shared_v->data[kv * h->dv + d];
        n += h->causal;
        for (int64_t b = end > 2 ? end - 2 : 0; b < end; b++, n++) {
            form_block(h, l->compress_k, h->k, h->dk, b, k + n * h->dk);
            form_block(h, l->compress_v, h->v, h->dv, b, v + n * h->dv);
        }
        form_softmax(h, h->q + i * h->dk, k, v, n, y + i * h->dv);
    }
}

static inline void mix_linformer(const struct form_head *h, double *y)
{
    const heed_attend_layer *l = h->layer;
    const int64_t rows = l->options.memory.term[0].number[0];
    double k[FORM_BLOCKS * 8] = {0}, v[FORM_BLOCKS * 8] = {0};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < h->s; j++) {
            for (int64_t d = 0; d < h->dk; d++)
                k[r * h->dk + d] += (double)heed__row(l->compress_k, r)[j] * h->k[j * h->dk + d];
            for (int64_t d = 0; d < h->dv; d++)
                v[r * h->dv + d] += (double)heed__row(l->compress_v, r)[j] * h->v[j * h->dv + d];
        }
    for (int64_t i = 0; i < h->t; i++)
        form_softmax(h, h->q + i * h->dk, k, v, rows, y + i * h->dv);
}

/* The scaled score of a query and key j of k. */
static inline double form_score(const struct form_head *h, const double *q, const double *k,
                                int64_t j)
{
    double s = 0;
    for (int64_t d = 0; d < h->dk; d++)
        s += q[d] * k[j * h->dk + d];
    return s / sqrt((double)h->dk);
}

#define FORM_ROWS 128
/* The mean of the queries in the cluster of each; which cluster that is only the layer knows, that
 * it is what it should be is a test of its own. */
static inline void form_centres(const struct form_head *h, double centre[FORM_ROWS * 8])
{
    heed_real q[FORM_ROWS * 8];
    int32_t cluster[FORM_ROWS] = {0};
    const heed_attend_options *o = &h->layer->options;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    for (int64_t i = 0; i < h->t * h->dk; i++)
        q[i] = (heed_real)h->still_q[i];
    assert_true(heed__cluster_queries(q, h->dk, h->t, h->dk, o->queries.term[0].number[0], o->layer,
                                      h->head, arena, cluster));
    heed_arena_free(arena);
    for (int64_t i = 0; i < h->t; i++)
        for (int64_t d = 0; d < h->dk; d++) {
            double sum = 0, n = 0;
            for (int64_t e = 0; e < h->t; e++) {
                sum += cluster[e] == cluster[i] ? h->q[e * h->dk + d] : 0;
                n += cluster[e] == cluster[i];
            }
            centre[i * h->dk + d] = sum / n;
        }
}

static inline void mix_clustered(const struct form_head *h, double *y)
{
    double centre[FORM_ROWS * 8];
    form_centres(h, centre);
    for (int64_t i = 0; i < h->t; i++)
        form_softmax(h, centre + i * h->dk, h->k, h->v, h->s, y + i * h->dv);
}

/* The paper's weights: of the K keys that its cluster weighs most a query weighs itself what is
 * theirs together. */
static inline void mix_improved(const struct form_head *h, double *y)
{
    const int64_t kept = h->layer->options.queries.term[0].number[1];
    double centre[FORM_ROWS * 8];
    form_centres(h, centre);
    for (int64_t i = 0; i < h->t; i++) {
        double a[FORM_ROWS], own[FORM_ROWS], sum = 0, mass = 0, theirs = 0;
        for (int64_t j = 0; j < h->s; j++)
            sum += a[j] = exp(form_score(h, centre + i * h->dk, h->k, j));
        for (int64_t j = 0; j < h->s; j++) {
            int64_t before = 0;
            for (int64_t e = 0; e < h->s; e++)
                before += a[e] > a[j] || (e < j && a[e] == a[j]);
            own[j] = before < kept ? exp(form_score(h, h->q + i * h->dk, h->k, j)) : 0;
            theirs += own[j];
            mass += before < kept ? a[j] / sum : 0;
        }
        for (int64_t d = 0; d < h->dv; d++) {
            y[i * h->dv + d] = 0;
            for (int64_t j = 0; j < h->s; j++)
                y[i * h->dv + d] +=
                    (own[j] > 0 ? mass * own[j] / theirs : a[j] / sum) * h->v[j * h->dv + d];
        }
    }
}

static inline int64_t form_active(const struct form_head *h, int64_t n)
{
    const int64_t u = h->layer->options.queries.term[0].number[0] * (int64_t)ceil(log((double)n));
    return u < 1 ? 1 : u < n ? u : n;
}

static inline void mix_probsparse(const struct form_head *h, double *y)
{
    const heed_attend_options *o = &h->layer->options;
    const heed__pattern_query from = {.layer = o->layer, .head = h->head};
    double m[FORM_ROWS];
    for (int64_t i = 0; i < h->t; i++) {
        const int64_t seen = h->causal ? i + 1 : h->s;
        int64_t key[HEED__MOST_DRAWN], n = seen;
        double most = -INFINITY, sum = 0;
        if (seen && form_active(h, seen) < seen)
            n = heed__pattern_draw(&from, i, form_active(h, seen), seen, key);
        for (int64_t e = 0; e < n; e++) {
            const double s =
                form_score(h, h->still_q + i * h->dk, h->still_k, n < seen ? key[e] : e);
            most = fmax(most, s);
            sum += s;
        }
        m[i] = most - sum / (double)n;
    }
    for (int64_t i = 0; i < h->t; i++) {
        const int64_t among = h->causal ? i + 1 : h->t, seen = h->causal ? i + 1 : h->s;
        int64_t before = 0;
        for (int64_t e = 0; e < among; e++)
            before += m[e] > m[i] || (e < i && m[e] == m[i]);
        if (before < form_active(h, among))
            form_softmax(h, h->q + i * h->dk, h->k, h->v, seen, y + i * h->dv);
        for (int64_t d = 0; before >= form_active(h, among) && d < h->dv; d++) {
            y[i * h->dv + d] = 0;
            for (int64_t j = 0; j < seen; j++)
                y[i * h->dv + d] += h->v[j * h->dv + d] / (double)seen;
        }
    }
}

/* ---- the table ---- */

/* Texts of the slots, as options say them; NULL: the slot's first row. */
struct attention_form {
    const char *memory, *pattern, *bias, *normaliser, *queries;
    int kv_heads; /* of 4; 0: 4 */
    int layer;    /* that the layer is told; a stack counts for itself */
    /* y (T,Dv), assigned; NULL: softmax over what the pattern lets a query see. */
    void (*mix)(const struct form_head *h, double *y);
};
static const struct attention_form attention_forms[] = {
    {.pattern = "global"},
    {.pattern = "global:3"},
    {.pattern = "band:5"},
    {.pattern = "band:4", .kv_heads = 2},
    {.pattern = "band:3+global:2"},
    {.pattern = "local-m:2"},
    {.pattern = "dilated:4:3"},
    {.pattern = "dilated:3:2:1", .kv_heads = 2},
    {.pattern = "dilated:3:20+band:3"},
    {.pattern = "random:3"},
    {.pattern = "random:2+band:3", .bias = "alibi", .kv_heads = 2},
    {.pattern = "block:4"},
    {.pattern = "block:5:heads", .memory = "persistent:2"},
    {.pattern = "block:17:heads", .kv_heads = 2},
    {.pattern = "strided:5"},
    {.pattern = "strided:19", .kv_heads = 1},
    {.pattern = "strided:4:heads", .bias = "table:3"},
    {.pattern = "strided:3:layers"},
    {.pattern = "strided:4:layers", .layer = 1},
    {.pattern = "strided:7+dilated:4:6+global:1"},
    {.pattern = "fixed:6:2"},
    {.pattern = "fixed:23:3"},
    {.pattern = "fixed:6:2:heads", .kv_heads = 2},
    {.pattern = "fixed:5:1:layers"},
    {.pattern = "fixed:4:1:layers", .layer = 3, .kv_heads = 2},
    {.pattern = "star"},
    {.pattern = "etc:5:2", .bias = "table:2"},
    {.pattern = "bigbird:3:1"},
    {.pattern = "bigbird:2:3", .kv_heads = 1},
    {.pattern = "bigbird:7:2+global:1"},
    {.pattern = "bpt:1"},
    {.pattern = "bpt:3", .kv_heads = 2},
    {.pattern = "block-image:7:2"},
    {.pattern = "block-image:5:1:1d"},
    {.pattern = "block-image:31:3"},
    {.pattern = "axial:6"},
    {.pattern = "axial:9", .layer = 1},
    {.pattern = "axial:5:merged", .kv_heads = 2},
    {.pattern = "axial:20:heads"},
    {.pattern = "top-k:5"},
    {.pattern = "top-k:3+band:2", .kv_heads = 2, .memory = "persistent:2", .bias = "table:3"},
    {.pattern = "top-k:1:approximate"},
    {.pattern = "top-k:4:approximate", .kv_heads = 1},
    {.pattern = "lsh:4:2"},
    {.pattern = "lsh:6:1+global:1", .bias = "alibi", .layer = 1},
    {.pattern = "lsh:1:1", .memory = "persistent:1"},
    {.pattern = "routing:1", .kv_heads = 2},
    {.pattern = "routing:5"},
    {.pattern = "routing:3+band:2", .kv_heads = 2},
    {.bias = "alibi", .kv_heads = 1},
    {.bias = "table:3", .pattern = "band:7"},
    {.memory = "persistent:3"},
    {.memory = "persistent:2", .pattern = "band:4+global:1", .bias = "table:4", .kv_heads = 2},
    {.bias = "span:20"},
    {.bias = "span:9", .memory = "persistent:2", .kv_heads = 2},
    {.memory = "mca:3", .mix = mix_mca},
    {.memory = "mca:2", .kv_heads = 2, .pattern = "band:2", .mix = mix_mca_band},
    {.memory = "linformer:5", .mix = mix_linformer},
    {.memory = "linformer:4:shared", .kv_heads = 1, .mix = mix_linformer},
    {.queries = "clustered:3", .mix = mix_clustered},
    {.queries = "clustered:2", .kv_heads = 2, .layer = 3, .mix = mix_clustered},
    {.queries = "improved-clustered:3:4", .mix = mix_improved},
    {.queries = "improved-clustered:2:2", .kv_heads = 1, .mix = mix_improved},
    {.queries = "probsparse:1", .mix = mix_probsparse},
    {.queries = "probsparse:2", .kv_heads = 2, .layer = 1, .mix = mix_probsparse},
    {.normaliser = "elu", .mix = mix_elu},
    {.normaliser = "elu", .kv_heads = 2, .mix = mix_elu},
    {.normaliser = "performer:17", .mix = mix_features},
    {.normaliser = "performer:32:5", .kv_heads = 2, .mix = mix_features},
    {.normaliser = "rfa:40", .kv_heads = 2, .mix = mix_features},
    {.normaliser = "rfa:40:gated", .mix = mix_features},
    {.normaliser = "rfa:33:gated", .kv_heads = 1, .mix = mix_features},
    {.normaliser = "delta", .mix = mix_delta},
    {.normaliser = "delta:2", .kv_heads = 2, .mix = mix_delta},
};
#define ATTENTION_FORMS ((int)(sizeof attention_forms / sizeof *attention_forms))

/* "persistent:3 global none soft" */
static inline const char *attention_form_name(const struct attention_form *f)
{
    static char text[256];
    const char *part[] = {f->queries, f->memory, f->pattern, f->bias, f->normaliser};
    int n = 0;
    for (int i = 0; i < 5; i++)
        if (part[i])
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", n ? ", " : "", part[i]);
    if (f->kv_heads)
        snprintf(text + n, sizeof text - (size_t)n, ", %d heads of keys", f->kv_heads);
    return text;
}

static inline heed_slot_spec form_slot(heed_attention_slot slot, const char *text)
{
    heed_slot_spec spec = {0};
    heed_error err = {0};
    if (text && heed_slot_parse(slot, text, &spec, &err))
        fail_msg("%s: %s", text, err.text);
    return spec;
}

/* The form's slots in the options of a layer. */
static inline heed_attend_options attention_form_options(const struct attention_form *f,
                                                         bool causal)
{
    return (heed_attend_options){.queries = form_slot(HEED_SLOT_QUERIES, f->queries),
                                 .memory = form_slot(HEED_SLOT_MEMORY, f->memory),
                                 .pattern = form_slot(HEED_SLOT_PATTERN, f->pattern),
                                 .position_bias = form_slot(HEED_SLOT_BIAS, f->bias),
                                 .normaliser = form_slot(HEED_SLOT_NORMALISER, f->normaliser),
                                 .heads = 4,
                                 .kv_heads = f->kv_heads,
                                 .projected = true,
                                 .layer = f->layer,
                                 .causal = causal};
}

static inline bool attention_form_can(const struct attention_form *f, unsigned can)
{
    const heed_attend_options o = attention_form_options(f, false);
    return (heed__attend_can(&o) & can) == can;
}

/* Whether all of it goes together, in a layer that is causal or not. */
static inline bool attention_form_takes(const struct attention_form *f, bool causal)
{
    heed_attend_options o = attention_form_options(f, causal);
    const int64_t kv = f->kv_heads ? f->kv_heads : o.heads;
    o.query_d = 6 * o.heads;
    o.key_d = 6 * kv;
    o.value_d = 4 * kv;
    o.longest = 128;
    return heed__attend_check(&o, NULL) == HEED_OK;
}

#endif
