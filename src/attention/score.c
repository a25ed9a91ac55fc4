/* score.c: six ways to say how well a query and a key match, one row each.
 *
 *   scaled dot  q.k / sqrt(Dk)      Vaswani et al. 2017, equation 1
 *   dot         q.k                 Luong et al. 2015, section 3.1
 *   general     q W k               the same
 *   additive    v.tanh(W q + U k)   Bahdanau et al. 2015, A.1.2
 *   cosine      beta cos(q, k)      Graves et al. 2014, equations 5 and 6
 *   location    (W q)[j]            Luong et al. 2015, section 3.1
 *
 * A cosine lies between -1 and 1: without beta the weights of many keys are nearly equal.  beta is
 * one number, given or learned.  Location makes a number for each place up to `longest`, and a
 * sentence takes those of its own length; the softmax then runs over these alone. */
#include "attention/attend.h"

#include "nn/params.h"
#include <math.h>

#define FIRST_BETA 5

/* Each head's columns of x times its own rows of w, of which the first `columns` are used, side by
 * side: x (N,H*A), w (H*A,B) -> (N,H*columns). */
static heed_tensor *head_by_head(heed_tape *t, int heads, heed_tensor *x, heed_tensor *w,
                                 int64_t columns)
{
    w = heed_slice_cols(t, w, 0, columns);
    if (heads == 1)
        return heed_matmul(t, x, w, HEED_NN);
    const int64_t a = heed_tensor_cols(x) / heads;
    heed_tensor **y = heed_arena_allocate(heed_tape_arena(t), (size_t)heads * sizeof *y);
    if (!y)
        return heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %d heads", heads);
    for (int h = 0; h < heads; h++)
        y[h] = heed_matmul(t, heed_slice_cols(t, x, h * a, (h + 1) * a),
                           heed_slice_rows(t, w, h * a, (h + 1) * a), HEED_NN);
    return heed_concat_cols(t, y, heads);
}

/* ---- general ---- */

static void build_general(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    l->weight = heed_param(s, "weight", HEED_SHAPE(o->query_d, o->key_d / o->kv_heads),
                           (heed_init){HEED_INIT_XAVIER_UNIFORM, 1});
}

static heed_tensor *query_general(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                  const heed_pairs *p)
{
    (void)p;
    return head_by_head(t, l->options.heads, q, l->weight, heed_tensor_cols(l->weight));
}

/* ---- additive ---- */

static void build_additive(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    const int64_t d = o->projected ? o->key_d : o->d;
    if (!o->projected) {
        heed_linear_build(&l->q, heed_scope_enter(s, "q"), o->query_d, d, HEED_IDENTITY, false);
        heed_linear_build(&l->k, heed_scope_enter(s, "k"), o->key_d, d, HEED_IDENTITY, false);
    }
    l->weight = heed_param(s, "v", HEED_SHAPE(d),
                           (heed_init){HEED_INIT_NORMAL, 1 / sqrt((double)d / o->heads)});
}

static heed_tensor *keys_additive(heed_tape *t, const heed_attend_layer *l, heed_tensor *states)
{
    return l->options.projected ? states : heed_linear_apply(t, &l->k, states);
}

static heed_tensor *query_additive(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                   const heed_pairs *p)
{
    (void)p;
    return l->options.projected ? q : heed_linear_apply(t, &l->q, q);
}

static heed_tensor *scores_additive(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                    heed_tensor *k, const heed_pairs *p)
{
    return heed_pairs_additive(t, q, k, l->weight, p);
}

/* ---- cosine ---- */

static void fill_beta(heed_real *values, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++)
        values[i] = FIRST_BETA;
}

static void build_cosine(heed_attend_layer *l, heed_scope s)
{
    if (l->options.beta == 0)
        l->beta = heed__param_filled(s, "beta", HEED_SHAPE(1), fill_beta);
}

static heed_tensor *keys_cosine(heed_tape *t, const heed_attend_layer *l, heed_tensor *states)
{
    return heed_unit(t, states, l->options.kv_heads, HEED__COSINE_EPS);
}

static heed_tensor *query_cosine(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                 const heed_pairs *p)
{
    (void)p;
    q = heed_unit(t, q, l->options.heads, HEED__COSINE_EPS);
    return l->beta ? heed_mul(t, q, heed_softplus(t, l->beta))
                   : heed_scale(t, q, l->options.beta, 0);
}

/* ---- location ---- */

static void build_location(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    l->weight = heed_param(s, "weight", HEED_SHAPE(o->query_d, o->longest),
                           (heed_init){HEED_INIT_XAVIER_UNIFORM, 1});
}

static heed_tensor *query_location(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                   const heed_pairs *p)
{
    if (p->keys->longest > l->options.longest)
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "attention: a segment of %lld keys, locations for at most %lld",
                              (long long)p->keys->longest, (long long)l->options.longest);
    return head_by_head(t, l->options.heads, q, l->weight, p->keys->longest ? p->keys->longest : 1);
}

static heed_tensor *scores_location(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                    heed_tensor *k, const heed_pairs *p)
{
    (void)l;
    (void)k;
    return heed_pairs_location(t, q, p);
}

/* ---- the rows ---- */

#define CAN HEED__CAN_USUAL
#define ROW(kind, word, what, where, price, abilities, ...)                                        \
    const heed__slot_row heed__score_##kind = {                                                    \
        .info = {.slot = HEED_SLOT_SCORE,                                                          \
                 .name = word,                                                                     \
                 .form = word,                                                                     \
                 .formula = what,                                                                  \
                 .paper = where,                                                                   \
                 .cost = price,                                                                    \
                 .can = abilities},                                                                \
        .score = &(const heed__score){__VA_ARGS__},                                                \
    };
ROW(scaled_dot, "scaled-dot", "q.k / sqrt(Dk)", "Vaswani et al. 2017", "Dk a pair",
    CAN | HEED_CAN_FUSED, .scaled = true)
ROW(dot, "dot", "q.k", "Luong et al. 2015", "Dk a pair", CAN | HEED_CAN_FUSED, .scaled = false)
ROW(general, "general", "q W k", "Luong et al. 2015", "Dk a pair and a W a query",
    CAN | HEED_CAN_WIDTHS | HEED_CAN_FUSED, .build = build_general, .query = query_general)
ROW(additive, "additive", "v.tanh(W q + U k)", "Bahdanau et al. 2015",
    "A tanh a pair, a W a query, a U a key", CAN | HEED_CAN_WIDTHS, .build = build_additive,
    .keys = keys_additive, .query = query_additive, .scores = scores_additive)
ROW(cosine, "cosine", "beta q.k / |q||k|", "Graves et al. 2014", "Dk a pair", CAN | HEED_CAN_FUSED,
    .build = build_cosine, .keys = keys_cosine, .query = query_cosine)
ROW(location, "location", "(W q)[j], whatever key j is", "Luong et al. 2015", "a W a query",
    CAN | HEED_CAN_WIDTHS, .build = build_location, .query = query_location,
    .scores = scores_location)
