/* vit.c: a trained Vision Transformer: its directory, the classes of pictures, and the picture of
 * where it looks. */
#include "base/error.h"
#include "base/memory.h"
#include "encoder/encoder.h"
#include "see/model_files.h"
#include "see/vit_task.h"

#include <heed/show.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct heed_vit {
    heed_allocator allocator;
    heed_arena *arena;
    heed_vit_config config;
    const char *const *labels;
    heed_params *params;
    heed_vit_net net;
    heed_tape *tape;
};

/* ---- the directory ---- */

struct file {
    heed_vit_config config;
};
static const heed_option fields[] = {HEED_VIT_MODEL_OPTIONS(struct file, config)};
static const heed_option_set set = {
    .command = "config.json", .fields = fields, .count = sizeof fields / sizeof *fields};

heed_status heed__vit_write(const char *folder, const heed_vit_config *c, const char *const *labels,
                            heed_arena *arena, heed_error *err)
{
    const struct file file = {*c};
    const heed_status status = heed__see_config_write(folder, &set, &file, arena, err);
    return status ? status : heed__labels_write(folder, labels, c->classes, err);
}

static heed_status read(heed_vit *v, const char *folder, heed_error *err)
{
    struct file file;
    heed_vit_config *c = &v->config;
    if (heed__see_config_read(folder, &set, &file, v->arena, err) ||
        heed__labels_read(folder, v->arena, &v->labels, &file.config.classes, err))
        return err->status;
    *c = file.config;
    if (c->classes < 2 || c->side < 1 || c->patch < 1 || c->side % c->patch || c->d % c->heads ||
        (c->channels != 1 && c->channels != 3))
        return heed__fail(err, HEED_FORMAT,
                          "'%.300s' is no whole model: %lld classes, side %lld, patch %lld, "
                          "channels %lld, d %lld, heads %lld do not go together",
                          folder, (long long)c->classes, (long long)c->side, (long long)c->patch,
                          (long long)c->channels, (long long)c->d, (long long)c->heads);
    return HEED_OK;
}

heed_vit *heed_vit_open(const char *folder, int threads, const heed_allocator *allocator,
                        heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed_vit *v = heed__allocate_zeroed(&a, 1, sizeof *v);
    heed_error own = {0};
    if (!v) {
        heed__fail(err, HEED_MEMORY, "out of memory for a model");
        return NULL;
    }
    v->allocator = a;
    if ((v->arena = heed_arena_new(&a, &own)) && !read(v, folder, &own) &&
        (v->params = heed_params_new(&a, &own))) {
        heed_vit_build(&v->net, heed_params_scope(v->params), &v->config, v->arena);
        if (!heed__see_weights(v->params, folder, &own) &&
            (v->tape = heed__see_tape(threads, &a, &own)))
            return v;
    }
    heed__fail(err, own.status, "%s", own.text);
    heed_vit_free(v);
    return NULL;
}

void heed_vit_free(heed_vit *v)
{
    if (!v)
        return;
    const heed_allocator a = v->allocator;
    heed_tape_free(v->tape);
    heed_params_free(v->params);
    heed_arena_free(v->arena);
    heed__release(&a, v, 1, sizeof *v);
}

const heed_vit_net *heed_vit_network(const heed_vit *v)
{
    return v ? &v->net : NULL;
}

const char *const *heed_vit_labels(const heed_vit *v, int64_t *count)
{
    if (count)
        *count = v ? v->config.classes : 0;
    return v ? v->labels : NULL;
}

heed_status heed_vit_match_classes(const heed_vit *v, const heed_pictures *p, heed_arena *arena,
                                   const int32_t **label, heed_error *err)
{
    if (!v || !p || !label)
        return heed__missing(err, v ? "pictures" : "model");
    return heed__vit_match(p, v->labels, v->config.classes, "the model", arena, label, err);
}

/* ---- pictures ---- */

/* (count*side*side,C), on the tape, which is reset. */
static heed_tensor *scaled(heed_vit *v, const heed_image *images, int64_t count, heed_error *err)
{
    const heed_vit_config *c = &v->config;
    const int64_t rows = c->side * c->side;
    heed_tape_reset(v->tape);
    heed_tensor *pixels = heed_input(v->tape, HEED_SHAPE(count * rows, c->channels), NULL);
    for (int64_t i = 0; pixels && i < count; i++)
        if (heed__see_scaled(&images[i], c->side, c->channels, &v->allocator,
                             heed_tensor_data(pixels) + i * rows * c->channels, err))
            return NULL;
    if (!pixels)
        heed__fail(err, HEED_MEMORY, "out of memory for %lld pictures", (long long)count);
    return pixels;
}

static heed_status tape_failed(const heed_vit *v, heed_error *err)
{
    return heed__fail(err, heed_tape_error(v->tape)->status, "%s", heed_tape_error(v->tape)->text);
}

heed_status heed_vit_classify(heed_vit *v, const heed_image *images, int64_t count,
                              heed_arena *arena, const heed_real **p, heed_error *err)
{
    heed_error own = {0};
    if (!v || !images || !p)
        return heed__missing(err, v ? "pictures" : "model");
    heed_tensor *pixels = scaled(v, images, count, &own);
    if (!pixels)
        return heed__fail(err, own.status, "%s", own.text);
    heed_tensor *all = heed_softmax(v->tape, heed_vit_logits(v->tape, &v->net, pixels, NULL));
    if (!all)
        return tape_failed(v, err);
    const size_t bytes = (size_t)heed_tensor_count(all) * sizeof(heed_real);
    heed_real *kept = heed_arena_allocate(arena, bytes);
    if (!kept)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld pictures", (long long)count);
    *p = memcpy(kept, heed_tensor_data(all), bytes);
    return HEED_OK;
}

heed_status heed_vit_looks_svg(heed_vit *v, const heed_image *image, heed_arena *arena,
                               const char **svg, heed_error *err)
{
    enum { SIDE = 252 };
    heed_error own = {0};
    heed_attention_recorder recorder = {0};
    heed_image_cell cell[2];
    char title[160];
    if (!v || !image || !svg)
        return heed__missing(err, v ? "picture" : "model");
    const heed_vit_config *c = &v->config;
    const int64_t across = heed_vit_patches(c), patches = across * across;
    heed_real *weights = heed_arena_allocate(arena, (size_t)patches * sizeof *weights);
    heed_tensor *pixels = scaled(v, image, 1, &own);
    if (!pixels)
        return heed__fail(err, own.status, "%s", own.text);
    heed_tensor *p = heed_softmax(v->tape, heed_vit_logits(v->tape, &v->net, pixels, &recorder));
    if (!p)
        return tape_failed(v, err);
    if (!weights || !heed_vit_rollout(v->tape, &recorder, weights))
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    heed_vit_above_least(weights, patches);
    int64_t best = 0;
    for (int64_t k = 1; k < c->classes; k++)
        best = heed_tensor_data(p)[k] > heed_tensor_data(p)[best] ? k : best;
    snprintf(title, sizeof title, "%.100s, %.4f", v->labels[best],
             (double)heed_tensor_data(p)[best]);
    cell[0] = (heed_image_cell){.pixels = heed_tensor_data(pixels),
                                .height = c->side,
                                .width = c->side,
                                .channels = c->channels,
                                .low = -1,
                                .high = 1};
    cell[1] = cell[0];
    cell[1].weights = weights;
    cell[1].rows = cell[1].cols = across;
    return heed_images_svg(title, cell, 2, 2, SIDE, arena, svg, err);
}
