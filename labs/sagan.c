/* sagan.c: "Self-Attention Generative Adversarial Networks", Zhang, Goodfellow, Metaxas, Odena 2019
 * (arXiv 1805.08318), section 3:
 *
 *   s_ij    = f(x_i)^T g(x_j),  beta_ji = exp(s_ij) / sum_i exp(s_ij)   (1)
 *   o_j     = v(sum_i beta_ji h(x_i))                                   (2)
 *   y_i     = gamma o_i + x_i,  gamma = 0 at the start                  (3)
 *
 * f, g, h, v are 1 x 1 convolutions; the softmax is over the keys i, and nothing is divided by
 * sqrt(d).  Section 4: every weight matrix of both networks is divided by its spectral norm.  The
 * generator has conditional batch norm (Dumoulin et al. 2017), the discriminator a projection of
 * the class (Miyato and Koyama 2018): D(x, c) = out(phi(x)) + v_c . phi(x).
 *
 * Not as in the paper: its residual networks for 128 x 128 pixels are small ones for 32 x 32, one
 * convolution a stage, upsampled by nearest neighbours (G), with strides (D); weights begin
 * orthogonal; convolutions in front of a batch norm have no bias, which it would take away. */
#include "sagan.h"

#define EPS 1e-5
#define MOMENTUM 0.1

enum { FIRST_SIDE = 4, LAST_SIDE = 8 }; /* of the generator's maps; of the discriminator's */

int64_t sagan_channels(const sagan_sizes *z, int64_t side)
{
    return (z->width * z->side + 2 * side - 1) / (2 * side);
}

/* ---- section 4: spectral norm ---- */

static sagan_weight build_weight(heed_scope s, const char *name, int64_t in, int64_t out)
{
    const heed_scope own = heed_scope_enter(s, "%s", name);
    return (sagan_weight){heed_param_with_role(own, "weight", HEED_SHAPE(in, out),
                                               (heed_init){HEED_INIT_ORTHOGONAL, 1},
                                               HEED_ROLE_MATRIX),
                          heed_state(own, "u", HEED_SHAPE(out), 1)};
}

static heed_tensor *build_bias(heed_scope s, const char *name, int64_t n)
{
    return heed_param(s, name, HEED_SHAPE(n), (heed_init){HEED_INIT_ZERO, 0});
}

static heed_tensor *normed(heed_tape *t, const sagan_weight *w, bool moves)
{
    return heed_spectral_norm(t, w->w, w->u, moves);
}

static heed_tensor *pointwise(heed_tape *t, heed_tensor *x, const sagan_weight *w, bool moves)
{
    return heed_linear(t, x, normed(t, w, moves), NULL, HEED_IDENTITY);
}

static heed_tensor *convolve(heed_tape *t, heed_tensor *x, int64_t side, int64_t kernel,
                             int64_t stride, const sagan_weight *w, heed_tensor *bias, bool moves)
{
    const heed_conv2d_options o = {.image = {side, side},
                                   .kernel = {kernel, kernel},
                                   .stride = {stride, stride},
                                   .padding = {1, 1}};
    return heed_conv2d(t, x, normed(t, w, moves), bias, &o);
}

/* B pictures of `rows` pixels. */
static const heed_segments *pictures(heed_tape *t, int64_t count, int64_t rows)
{
    int64_t *lengths = heed_arena_allocate(heed_tape_arena(t), (size_t)count * sizeof *lengths);
    for (int64_t b = 0; lengths && b < count; b++)
        lengths[b] = rows;
    const heed_segments *s = lengths ? heed_segments_new(heed_tape_arena(t), count, lengths) : NULL;
    if (!s)
        heed_tape_fail(t, HEED_MEMORY, "out of memory for %lld pictures", (long long)count);
    return s;
}

/* ---- section 3: the block ---- */

static void build_block(sagan_block *b, heed_scope s, const sagan_sizes *z)
{
    const int64_t c = sagan_channels(z, z->at), values = (c + z->values - 1) / z->values,
                  keys = (c + z->keys - 1) / z->keys;
    *b = (sagan_block){.middle = z->middle, .pool = z->pool};
    if (z->middle == SAGAN_NOTHING)
        return;
    if (z->middle == SAGAN_ATTENTION) {
        b->f = build_weight(s, "f", c, keys);
        b->g = build_weight(s, "g", c, keys);
        b->h = build_weight(s, "h", c, values);
        b->v = build_weight(s, "v", values, c);
    } else { /* 2 c (keys + values) weights, as above */
        b->h = build_weight(s, "h", c, keys + values);
        b->v = build_weight(s, "v", keys + values, c);
    }
    b->gamma = build_bias(s, "gamma", 1);
}

/* Equations 1 and 2; x (B*side*side,C). */
static heed_tensor *attend(heed_tape *t, const sagan_block *b, heed_tensor *x, int64_t side,
                           bool moves, heed_tensor **look)
{
    const int64_t count = heed_tensor_rows(x) / (side * side);
    const heed_segments *queries = pictures(t, count, side * side), *keys = queries;
    heed_tensor *fx = pointwise(t, x, &b->f, moves), *gx = pointwise(t, x, &b->g, moves),
                *hx = pointwise(t, x, &b->h, moves);
    if (b->pool) {
        const heed_pool2d_options two = {.image = {side, side}, .kernel = {2, 2}};
        fx = heed_max_pool2d(t, fx, &two);
        hx = heed_max_pool2d(t, hx, &two);
        keys = pictures(t, count, side * side / 4);
    }
    if (!queries || !keys)
        return NULL;
    heed_tensor *mixed =
        heed_attention(t, gx, fx, hx, queries, keys,
                       &(heed_attention_options){.heads = 1, .scale = 1, .probabilities = look});
    return pointwise(t, mixed, &b->v, moves);
}

/* Equation 3. */
static heed_tensor *apply_block(heed_tape *t, const sagan_block *b, heed_tensor *x, int64_t side,
                                bool moves, heed_tensor **look)
{
    if (b->middle == SAGAN_NOTHING)
        return x;
    heed_tensor *o = b->middle == SAGAN_ATTENTION
                         ? attend(t, b, x, side, moves, look)
                         : pointwise(t, heed_relu(t, pointwise(t, x, &b->h, moves)), &b->v, moves);
    return heed_add(t, x, heed_mul(t, o, b->gamma));
}

/* ---- the generator ---- */

static void build_norm(sagan_norm *n, heed_scope s, int64_t classes, int64_t c)
{
    n->gain = heed_param(s, "gain", HEED_SHAPE(classes, c), (heed_init){HEED_INIT_CONSTANT, 1});
    n->bias = heed_param(s, "bias", HEED_SHAPE(classes, c), (heed_init){HEED_INIT_ZERO, 0});
    n->mean = heed_state(s, "mean", HEED_SHAPE(c), 0);
    n->variance = heed_state(s, "variance", HEED_SHAPE(c), 1);
}

/* relu(gain_c (x - mean) / deviation + bias_c) */
static heed_tensor *apply_norm(heed_tape *t, const sagan_norm *n, heed_tensor *x,
                               const int32_t *classes, const heed_segments *rows)
{
    heed_tensor *y = heed_batch_norm(t, x, NULL, NULL, n->mean, n->variance, MOMENTUM, EPS);
    return heed_relu(t,
                     heed_segment_affine(t, y, heed_gather_rows(t, n->gain, classes, rows->count),
                                         heed_gather_rows(t, n->bias, classes, rows->count), rows));
}

void sagan_generator_build(sagan_generator *g, heed_scope s, const sagan_sizes *z)
{
    int k = 0;
    *g = (sagan_generator){.sizes = *z};
    g->in =
        build_weight(s, "in", z->noise, FIRST_SIDE * FIRST_SIDE * sagan_channels(z, FIRST_SIDE));
    for (int64_t side = FIRST_SIDE; side < z->side; side *= 2, k++) {
        const heed_scope own = heed_scope_enter(s, "%d", k);
        const int64_t c = sagan_channels(z, side);
        build_norm(&g->norm[k], heed_scope_enter(own, "norm"), z->classes, c);
        g->conv[k] = build_weight(own, "conv", 9 * c, sagan_channels(z, 2 * side));
    }
    build_block(&g->block, heed_scope_enter(s, "block"), z);
    build_norm(&g->norm[k], heed_scope_enter(s, "norm"), z->classes, sagan_channels(z, z->side));
    g->out = build_weight(s, "out", 9 * sagan_channels(z, z->side), 1);
    g->out_bias = build_bias(heed_scope_enter(s, "out"), "bias", 1);
}

heed_tensor *sagan_generate(heed_tape *t, const sagan_generator *g, heed_tensor *z,
                            const int32_t *classes, bool moves, heed_tensor **look)
{
    const int64_t count = heed_tensor_rows(z);
    const heed_segments *rows = pictures(t, count, FIRST_SIDE * FIRST_SIDE);
    int k = 0;
    int64_t side = FIRST_SIDE;
    if (look)
        *look = NULL;
    heed_tensor *x = heed_reshape(
        t, pointwise(t, z, &g->in, moves),
        HEED_SHAPE(count * side * side, sagan_channels(&g->sizes, side))); /* (B*16,C) */
    for (; rows && side < g->sizes.side; k++) {
        x = apply_norm(t, &g->norm[k], x, classes, rows);
        x = heed_upsample(t, x, (heed_image_size){side, side}, (heed_image_size){2, 2});
        side *= 2;
        x = convolve(t, x, side, 3, 1, &g->conv[k], NULL, moves);
        rows = pictures(t, count, side * side);
        if (side == g->sizes.at)
            x = apply_block(t, &g->block, x, side, moves, look);
    }
    if (!rows)
        return NULL;
    x = apply_norm(t, &g->norm[k], x, classes, rows);
    return heed_tanh(t, convolve(t, x, side, 3, 1, &g->out, g->out_bias, moves));
}

/* ---- the discriminator ---- */

void sagan_discriminator_build(sagan_discriminator *d, heed_scope s, const sagan_sizes *z)
{
    int k = 0;
    int64_t c = 1;
    *d = (sagan_discriminator){.sizes = *z};
    for (int64_t side = z->side; side >= LAST_SIDE; side /= 2, k++) {
        const heed_scope own = heed_scope_enter(s, "%d", k);
        const int64_t wider = sagan_channels(z, side / 2), kernel = side > LAST_SIDE ? 4 : 3;
        d->conv[k] = build_weight(own, "conv", kernel * kernel * c, wider);
        d->bias[k] = build_bias(own, "bias", wider);
        c = wider;
    }
    build_block(&d->block, heed_scope_enter(s, "block"), z);
    d->out = build_weight(s, "out", c, 1);
    d->out_bias = build_bias(heed_scope_enter(s, "out"), "bias", 1);
    if (z->classes > 1)
        d->classes = build_weight(s, "classes", c, z->classes);
}

/* v_c . phi: phi (B,C), the columns of the table chosen by `classes` -> (B,1). */
static heed_tensor *project(heed_tape *t, const sagan_discriminator *d, heed_tensor *phi,
                            const int32_t *classes, bool moves)
{
    heed_tensor *table = heed_transpose_last(t, normed(t, &d->classes, moves));
    heed_tensor *own = heed_gather_rows(t, table, classes, heed_tensor_rows(phi));
    return heed_sum(t, heed_mul(t, own, phi), HEED_COLS);
}

heed_tensor *sagan_discriminate(heed_tape *t, const sagan_discriminator *d, heed_tensor *pixels,
                                const int32_t *classes, bool moves, heed_tensor **look)
{
    int64_t side = d->sizes.side;
    const int64_t count = heed_tensor_rows(pixels) / (side * side);
    heed_tensor *x = pixels;
    int k = 0;
    if (look)
        *look = NULL;
    for (; side > LAST_SIDE; k++) {
        x = convolve(t, k ? heed_relu(t, x) : x, side, 4, 2, &d->conv[k], d->bias[k], moves);
        side /= 2;
        if (side == d->sizes.at)
            x = apply_block(t, &d->block, x, side, moves, look);
    }
    x = convolve(t, heed_relu(t, x), side, 3, 1, &d->conv[k], d->bias[k], moves);
    const heed_segments *rows = pictures(t, count, side * side);
    if (!rows)
        return NULL;
    heed_tensor *phi = heed_segment_sum(t, heed_relu(t, x), rows);
    heed_tensor *y = heed_linear(t, phi, normed(t, &d->out, moves), d->out_bias, HEED_IDENTITY);
    return d->sizes.classes > 1 ? heed_add(t, y, project(t, d, phi, classes, moves)) : y;
}

/* ---- equation 4 ---- */

/* E max(0, 1 + sign D) */
static heed_tensor *hinge(heed_tape *t, heed_tensor *said, double sign)
{
    return heed_mean(t, heed_relu(t, heed_scale(t, said, sign, 1)), HEED_ALL);
}

heed_tensor *sagan_discriminator_loss(heed_tape *t, heed_tensor *real, heed_tensor *made)
{
    return heed_add(t, hinge(t, real, -1), hinge(t, made, 1));
}

heed_tensor *sagan_generator_loss(heed_tape *t, heed_tensor *made)
{
    return heed_scale(t, heed_mean(t, made, HEED_ALL), -1, 0);
}
