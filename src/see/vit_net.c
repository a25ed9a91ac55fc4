/* vit_net.c: the Vision Transformer, Dosovitskiy et al. 2021 (arXiv 2010.11929), section 3.1:
 *
 *   z_0  = [x_class; x_1 E; ...; x_P E] + E_pos                        (1)
 *   z'_l = MSA(LN(z_{l-1})) + z_{l-1}                                  (2)
 *   z_l  = MLP(LN(z'_l)) + z'_l,  MLP with one hidden layer and GELU   (3)
 *   y    = LN(z_L^0)                                                   (4)
 *
 * and a linear head on y.  x_p E is a convolution whose stride is its kernel.  All products have
 * biases, as in the paper's code. */
#include "base/error.h"

#include <heed/show.h>
#include <heed/vit.h>
#include <math.h>
#include <string.h>

#define EPS 1e-6

int64_t heed_vit_patches(const heed_vit_config *c)
{
    return c && c->patch > 0 ? c->side / c->patch : 0;
}

void heed_vit_build(heed_vit_net *m, heed_scope s, const heed_vit_config *c, heed_arena *arena)
{
    if (!m || !c)
        return;
    const int64_t patches = heed_vit_patches(c) * heed_vit_patches(c);
    const heed_init zero = {HEED_INIT_ZERO, 0}, small = {HEED_INIT_NORMAL, 0.02};
    *m = (heed_vit_net){.config = *c};
    m->patch =
        heed_param_with_role(s, "patch.weight", HEED_SHAPE(c->patch * c->patch * c->channels, c->d),
                             (heed_init){HEED_INIT_XAVIER_UNIFORM, 1}, HEED_ROLE_MATRIX);
    m->patch_bias = heed_param(s, "patch.bias", HEED_SHAPE(c->d), zero);
    m->start = heed_param(s, "start", HEED_SHAPE(1, c->d), small);
    if (c->positions)
        m->positions = heed_param(s, "positions", HEED_SHAPE(1 + patches, c->d), small);
    heed_stack_init(&m->stack, arena, c->d);
    heed_sublayer_options o = {
        .mha = {.heads = (int)c->heads, .bias = true},
        .ffn = {.f = c->ff, .activation = HEED_GELU, .bias = true, .dropout = c->dropout},
        .around = {.place = HEED_NORM_BEFORE, .eps = EPS, .residual = true, .dropout = c->dropout}};
    for (int i = 0; i < c->layers; i++) {
        o.layer = i;
        heed_stack_append(&m->stack, heed_scope_enter(s, "%d.self", i),
                          heed_sublayer_class_find("self"), &o);
        heed_stack_append(&m->stack, heed_scope_enter(s, "%d.ffn", i),
                          heed_sublayer_class_find("ffn"), &o);
    }
    heed_norm_build(&m->stack.norm, heed_scope_enter(s, "norm"), HEED_NORM_LAYER, c->d, EPS);
    heed_linear_build(&m->head, heed_scope_enter(s, "head"), c->d, c->classes, HEED_IDENTITY, true);
}

/* Row 0 is x_class, row 1 + i the i-th patch of all: which of them stands where, and the place in
 * its picture. */
static bool lay_out(heed_tape *t, int64_t pictures, int64_t rows, int32_t **from, int32_t **place,
                    const heed_segments **segments)
{
    heed_arena *arena = heed_tape_arena(t);
    int64_t *lengths = heed_arena_allocate(arena, (size_t)pictures * sizeof *lengths);
    *from = heed_arena_allocate(arena, (size_t)(pictures * rows) * sizeof **from);
    *place = heed_arena_allocate(arena, (size_t)(pictures * rows) * sizeof **place);
    for (int64_t b = 0; lengths && *from && *place && b < pictures; b++) {
        lengths[b] = rows;
        for (int64_t i = 0; i < rows; i++) {
            (*from)[b * rows + i] = (int32_t)(i ? 1 + b * (rows - 1) + i - 1 : 0);
            (*place)[b * rows + i] = (int32_t)i;
        }
    }
    *segments = lengths ? heed_segments_new(arena, pictures, lengths) : NULL;
    return *from && *place && *segments;
}

heed_tensor *heed_vit_logits(heed_tape *t, const heed_vit_net *m, heed_tensor *pixels,
                             heed_attention_recorder *recorder)
{
    if (!t || !m || !pixels)
        return NULL;
    const heed_vit_config *z = &m->config;
    const int64_t patches = heed_vit_patches(z) * heed_vit_patches(z), rows = 1 + patches,
                  pictures = heed_tensor_rows(pixels) / (z->side * z->side);
    int32_t *from, *place;
    const heed_segments *segments;
    if (!lay_out(t, pictures, rows, &from, &place, &segments))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for patches");
    const heed_conv2d_options cut = {.image = {z->side, z->side},
                                     .kernel = {z->patch, z->patch},
                                     .stride = {z->patch, z->patch}};
    heed_tensor *embedded = heed_conv2d(t, pixels, m->patch, m->patch_bias, &cut); /* (B*P,D) */
    heed_tensor *all = heed_concat_rows(t, (heed_tensor *[]){m->start, embedded}, 2);
    heed_tensor *x = heed_gather_rows(t, all, from, pictures * rows); /* (B*(1+P),D) */
    if (m->positions)
        x = heed_add(t, x, heed_gather_rows(t, m->positions, place, pictures * rows));
    if (z->dropout > 0)
        x = heed_dropout(t, x, z->dropout);
    heed_flow flow = {.x = x, .rows = segments, .recorder = recorder};
    heed_tensor *out = heed_stack_apply(t, &m->stack, &flow);
    int32_t *first = heed_arena_allocate(heed_tape_arena(t), (size_t)pictures * sizeof *first);
    if (!first)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for patches");
    for (int64_t b = 0; b < pictures; b++)
        first[b] = (int32_t)(b * rows);
    return heed_linear_apply(t, &m->head, heed_gather_rows(t, out, first, pictures));
}

/* a_l = (I + the mean of layer l's heads) / 2; the class row of a_L ... a_1, from the last layer
 * back: row = row a_l. */
bool heed_vit_rollout(heed_tape *t, const heed_attention_recorder *recorder, heed_real *out)
{
    const heed_attention_record *layer[HEED_VIT_LAYERS];
    int layers = 0;
    if (!t || !recorder)
        return false;
    for (const heed_attention_record *r = recorder->first; r && layers < HEED_VIT_LAYERS;
         r = r->next)
        layer[layers++] = r;
    if (!layers)
        return false;
    const int64_t pictures = layer[0]->queries->count,
                  rows = pictures ? layer[0]->queries->rows / pictures : 0;
    double *row = heed_arena_allocate(heed_tape_arena(t), 2 * (size_t)rows * sizeof *row);
    if (!row)
        return false;
    double *next = row + rows;
    for (int64_t b = 0; b < pictures; b++) {
        memset(row, 0, (size_t)rows * sizeof *row);
        row[0] = 1;
        for (int l = layers - 1; l >= 0; l--) {
            const int heads = layer[l]->heads;
            for (int64_t j = 0; j < rows; j++)
                next[j] = row[j] / 2;
            for (int h = 0; h < heads; h++) {
                const heed_real *p =
                    heed_tensor_data(layer[l]->probabilities) + (b * heads + h) * rows * rows;
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < rows; j++)
                        next[j] += row[i] * (double)p[i * rows + j] / (2 * heads);
            }
            memcpy(row, next, (size_t)rows * sizeof *row);
        }
        for (int64_t i = 1; i < rows; i++)
            out[b * (rows - 1) + i - 1] = (heed_real)row[i];
    }
    return true;
}

void heed_vit_above_least(heed_real *weights, int64_t n)
{
    heed_real least = n > 0 ? weights[0] : 0;
    for (int64_t i = 1; i < n; i++)
        least = weights[i] < least ? weights[i] : least;
    for (int64_t i = 0; i < n; i++)
        weights[i] -= least;
}

static double cosine(const heed_real *a, const heed_real *b, int64_t d)
{
    double dot = 0, aa = 0, bb = 0;
    for (int64_t k = 0; k < d; k++) {
        dot += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return dot / sqrt(aa * bb);
}

heed_status heed_vit_positions_svg(const heed_vit_net *m, heed_arena *arena, const char **svg,
                                   heed_error *err)
{
    enum { SQUARE = 62 };
    if (!m || !svg)
        return heed__missing(err, "network");
    const int64_t across = heed_vit_patches(&m->config), patches = across * across, d = m->config.d;
    if (!m->positions)
        return heed__fail(err, HEED_ARGUMENT, "this model has no positions to show");
    heed_real *alike = heed_arena_allocate(arena, (size_t)(patches * patches) * sizeof *alike);
    heed_image_cell *cells = heed_arena_allocate(arena, (size_t)patches * sizeof *cells);
    if (!alike || !cells)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    const heed_real *e = heed_tensor_data(m->positions) + d; /* without the class row's */
    for (int64_t i = 0; i < patches; i++) {
        for (int64_t j = 0; j < patches; j++)
            alike[i * patches + j] = (heed_real)cosine(e + i * d, e + j * d, d);
        cells[i] = (heed_image_cell){.pixels = alike + i * patches,
                                     .height = across,
                                     .width = across,
                                     .channels = 1,
                                     .low = -1,
                                     .high = 1};
    }
    return heed_images_svg("How alike positions are (cosine)", cells, patches, across, SQUARE,
                           arena, svg, err);
}
