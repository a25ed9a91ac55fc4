/* snail.c: Mishra, Rohaninejad, Chen, Abbeel 2018, "A Simple Neural Attentive Meta-Learner" (arXiv
 * 1707.03141), figures 2 and 3:
 *
 *   DenseBlock(R, D)       [x, tanh(xf) * sigmoid(xg)], xf, xg causal convolutions of dilation R
 *   TCBlock(T, D)          dense blocks of dilation R, 2R, 4R, ... up to T
 *   AttentionBlock(K, V)   [x, softmax over the past of Q K^T / sqrt(K), times V]
 *   few-shot network       attention, TC, attention, TC, attention, a linear layer to the classes
 *
 * A row is an example and its label; the question is the last row and has none.  With dilations 2,
 * 4, 8 ..., as the paper prints them, odd distances are seen only because blocks follow each other;
 * `dilation` 1 begins with 1.  The loss is on the question alone. */
#include "snail.h"

#include <string.h>

static int log2_up(int64_t n)
{
    int k = 0;
    while ((INT64_C(1) << k) < n)
        k++;
    return k;
}

static int64_t length_of(const snail_sizes *z)
{
    return z->ways * z->shots + 1;
}

int64_t snail_reach(const snail_sizes *sizes)
{
    int64_t reach = 1;
    for (int i = 0; i < log2_up(length_of(sizes)); i++)
        reach += sizes->dilation << i;
    return reach;
}

/* ---- declaring ---- */

static void build_embedding(snail *m, heed_scope s)
{
    int64_t side = m->sizes.side, in = 1;
    for (int i = 0; i < SNAIL_CONVOLUTIONS; i++) {
        snail_convolution *c = &m->convolution[i];
        heed_scope here = heed_scope_enter(s, "convolution.%d", i);
        c->weight = heed_param(here, "weight", HEED_SHAPE(9 * in, m->sizes.filters),
                               (heed_init){HEED_INIT_XAVIER_UNIFORM, 1});
        c->bias =
            heed_param(here, "bias", HEED_SHAPE(m->sizes.filters), (heed_init){HEED_INIT_ZERO, 0});
        heed_norm_build(&c->norm, heed_scope_enter(here, "norm"), HEED_NORM_BATCH, m->sizes.filters,
                        1e-5);
        side /= 2;
        in = m->sizes.filters;
    }
    heed_linear_build(&m->embed, heed_scope_enter(s, "embed"), side * side * in, m->sizes.width,
                      HEED_IDENTITY, true);
}

static int64_t build_attention(snail_attention *a, heed_scope s, int64_t d, int64_t keys,
                               int64_t values)
{
    heed_linear_build(&a->q, heed_scope_enter(s, "q"), d, keys, HEED_IDENTITY, true);
    /* The same number for every key would change nothing: no bias. */
    heed_linear_build(&a->k, heed_scope_enter(s, "k"), d, keys, HEED_IDENTITY, false);
    heed_linear_build(&a->v, heed_scope_enter(s, "v"), d, values, HEED_IDENTITY, true);
    return d + values;
}

static int64_t build_dense(snail_dense *l, heed_scope s, int64_t d, int64_t filters,
                           int64_t dilation)
{
    l->dilation = dilation;
    l->weight = heed_param(s, "weight", HEED_SHAPE(2 * d, 2 * filters),
                           (heed_init){HEED_INIT_XAVIER_UNIFORM, 1});
    l->bias = heed_param(s, "bias", HEED_SHAPE(2 * filters), (heed_init){HEED_INIT_ZERO, 0});
    return d + filters;
}

void snail_build(snail *m, heed_scope s, const snail_sizes *sizes)
{
    *m = (snail){.sizes = *sizes, .blocks = log2_up(length_of(sizes))};
    int64_t d = sizes->width + sizes->ways;
    if (sizes->side)
        build_embedding(m, s);
    for (int i = 0; i < SNAIL_ATTENTIONS; i++) {
        if (sizes->attention)
            d = build_attention(&m->attention[i], heed_scope_enter(s, "attention.%d", i), d,
                                sizes->keys[i], sizes->values[i]);
        for (int k = 0; k < m->blocks && sizes->convolution && i + 1 < SNAIL_ATTENTIONS; k++)
            d = build_dense(&m->dense[i][k], heed_scope_enter(s, "tc.%d.%d", i, k), d, sizes->dense,
                            sizes->dilation << k);
    }
    heed_linear_build(&m->out, heed_scope_enter(s, "out"), d, sizes->ways, HEED_IDENTITY, true);
}

/* ---- computing ---- */

/* (B*T*side*side,1) -> (B*T,width) */
static heed_tensor *embed(heed_tape *t, const snail *m, heed_tensor *x, int64_t pictures)
{
    int64_t side = m->sizes.side;
    for (int i = 0; i < SNAIL_CONVOLUTIONS; i++) {
        const snail_convolution *c = &m->convolution[i];
        const heed_conv2d_options o = {.image = {side, side}, .kernel = {3, 3}, .padding = {1, 1}};
        const heed_pool2d_options half = {.image = {side, side}, .kernel = {2, 2}};
        x = heed_conv2d(t, x, c->weight, c->bias, &o);
        x = heed_relu(t, heed_norm_apply(t, &c->norm, x));
        x = heed_max_pool2d(t, x, &half);
        side /= 2;
    }
    x = heed_reshape(t, x, HEED_SHAPE(pictures, side * side * m->sizes.filters));
    return heed_linear_apply(t, &m->embed, x);
}

static heed_tensor *dense(heed_tape *t, const snail_dense *l, heed_tensor *x,
                          const heed_segments *episodes)
{
    const heed_conv1d_options o = {.kernel = 2, .dilation = l->dilation, .causal = true};
    heed_tensor *both = heed_conv1d(t, x, l->weight, l->bias, episodes, &o, NULL);
    const int64_t n = heed_tensor_cols(both) / 2;
    heed_tensor *xf = heed_slice_cols(t, both, 0, n), *xg = heed_slice_cols(t, both, n, 2 * n);
    heed_tensor *activations = heed_mul(t, heed_tanh(t, xf), heed_sigmoid(t, xg));
    return heed_concat_cols(t, (heed_tensor *[]){x, activations}, 2);
}

static heed_tensor *attend(heed_tape *t, const snail_attention *a, heed_tensor *x,
                           const heed_segments *episodes, heed_tensor **looked)
{
    const heed_attention_options o = {.heads = 1, .causal = true, .probabilities = looked};
    heed_tensor *read =
        heed_attention(t, heed_linear_apply(t, &a->q, x), heed_linear_apply(t, &a->k, x),
                       heed_linear_apply(t, &a->v, x), episodes, episodes, &o);
    return heed_concat_cols(t, (heed_tensor *[]){x, read}, 2);
}

/* The labels as columns, 1 at the right one; the questions' rows are zero. */
static heed_tensor *labels_of(heed_tape *t, const snail *m, const snail_batch *b)
{
    const int64_t length = length_of(&m->sizes), ways = m->sizes.ways;
    heed_tensor *y = heed_input(t, HEED_SHAPE(b->episodes * length, ways), NULL);
    for (int64_t i = 0; y && i < b->episodes * length; i++)
        if (i % length != length - 1)
            heed_tensor_data(y)[i * ways + b->label[i]] = 1;
    return y;
}

heed_tensor *snail_logits(heed_tape *t, const snail *m, const snail_batch *b, heed_tensor **looked)
{
    const snail_sizes *z = &m->sizes;
    const int64_t length = length_of(z), rows = b->episodes * length;
    heed_arena *arena = heed_tape_arena(t);
    int64_t *lengths = heed_arena_allocate(arena, (size_t)b->episodes * sizeof *lengths);
    int32_t *last = heed_arena_allocate(arena, (size_t)b->episodes * sizeof *last);
    for (int64_t i = 0; lengths && last && i < b->episodes; i++) {
        lengths[i] = length;
        last[i] = (int32_t)((i + 1) * length - 1);
    }
    const heed_segments *episodes =
        lengths && last ? heed_segments_new(arena, b->episodes, lengths) : NULL;
    if (!episodes)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for episodes");
    heed_tensor *shown =
        z->side
            ? embed(t, m, heed_input(t, HEED_SHAPE(rows * z->side * z->side, 1), b->shown), rows)
            : heed_input(t, HEED_SHAPE(rows, z->width), b->shown);
    heed_tensor *x = heed_concat_cols(t, (heed_tensor *[]){shown, labels_of(t, m, b)}, 2);
    for (int i = 0; i < SNAIL_ATTENTIONS; i++) {
        if (z->attention)
            x = attend(t, &m->attention[i], x, episodes, i + 1 == SNAIL_ATTENTIONS ? looked : NULL);
        for (int k = 0; k < m->blocks && z->convolution && i + 1 < SNAIL_ATTENTIONS; k++)
            x = dense(t, &m->dense[i][k], x, episodes);
    }
    return heed_linear_apply(t, &m->out, heed_gather_rows(t, x, last, b->episodes));
}
