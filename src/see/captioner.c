/* captioner.c: a trained captioner: its directory, captions of pictures, and the picture of where
 * each word looked. */
#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "see/caption_task.h"
#include "see/model_files.h"

#include <heed/show.h>
#include <string.h>

struct heed_captioner {
    heed_allocator allocator;
    heed_arena *arena;
    heed_caption_config config;
    heed_vocab *vocab;
    heed_params *params;
    heed_caption_net net;
    heed_tape *tape;
    heed_real *shown; /* (side,side,channels) from -1 to 1 */
};

/* ---- the directory ---- */

struct file {
    heed_caption_config config;
};
static const heed_option fields[] = {HEED_CAPTION_MODEL_OPTIONS(struct file, config)};
static const heed_option_set set = {
    .command = "config.json", .fields = fields, .count = sizeof fields / sizeof *fields};

heed_status heed__caption_config_write(const char *folder, const heed_caption_config *c,
                                       heed_arena *arena, heed_error *err)
{
    const struct file file = {*c};
    return heed__see_config_write(folder, &set, &file, arena, err);
}

heed_status heed__caption_config_read(const char *folder, heed_caption_config *c, heed_arena *arena,
                                      heed_error *err)
{
    struct file file;
    const heed_status status = heed__see_config_read(folder, &set, &file, arena, err);
    *c = file.config;
    return status;
}

heed_captioner *heed_captioner_open(const char *folder, int threads,
                                    const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed_captioner *c = heed__allocate_zeroed(&a, 1, sizeof *c);
    heed__pathname words;
    if (!c) {
        heed__fail(err, HEED_MEMORY, "out of memory for a captioner");
        return NULL;
    }
    c->allocator = a;
    c->arena = heed_arena_new(&a, err);
    if (!c->arena || heed__caption_config_read(folder, &c->config, c->arena, err) ||
        heed__pathname_format(words, err, "%s/" HEED__CAPTION_WORDS, folder) ||
        !(c->vocab = heed_vocab_open(words, NULL, &a, err)) ||
        !(c->params = heed_params_new(&a, err)))
        goto fail;
    c->config.vocabulary = heed_vocab_size(c->vocab);
    heed_caption_build(&c->net, heed_params_scope(c->params), &c->config);
    if (heed__see_weights(c->params, folder, err) || !(c->tape = heed__see_tape(threads, &a, err)))
        goto fail;
    const size_t n = (size_t)(c->config.side * c->config.side * c->config.channels);
    c->shown = heed_arena_allocate(c->arena, n * sizeof *c->shown);
    if (!c->shown) {
        heed__fail(err, HEED_MEMORY, "out of memory for a picture");
        goto fail;
    }
    return c;
fail:
    heed_captioner_free(c);
    return NULL;
}

void heed_captioner_free(heed_captioner *c)
{
    if (!c)
        return;
    const heed_allocator a = c->allocator;
    heed_tape_free(c->tape);
    heed_params_free(c->params);
    heed_vocab_free(c->vocab);
    heed_arena_free(c->arena);
    heed__release(&a, c, 1, sizeof *c);
}

const heed_caption_net *heed_captioner_net(const heed_captioner *c)
{
    return c ? &c->net : NULL;
}

/* ---- captions ---- */

/* The middle square of the picture, scaled, into c->shown. */
static heed_status show(heed_captioner *c, const heed_image *image, heed_error *err)
{
    const int64_t side = image->height < image->width ? image->height : image->width,
                  channels = image->channels;
    uint8_t *square = heed__allocate(&c->allocator, (size_t)(side * side * channels), 1);
    if (!square)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture of %lld x %lld",
                          (long long)image->height, (long long)image->width);
    const int64_t top = (image->height - side) / 2, left = (image->width - side) / 2;
    for (int64_t y = 0; y < side; y++)
        memcpy(square + y * side * channels,
               image->pixels + ((top + y) * image->width + left) * channels,
               (size_t)(side * channels));
    const heed_image from = {side, side, channels, square};
    const heed_status status =
        heed__see_scaled(&from, c->config.side, c->config.channels, &c->allocator, c->shown, err);
    heed__release(&c->allocator, square, (size_t)(side * side * channels), 1);
    return status;
}

heed_status heed_captioner_tell(heed_captioner *c, const heed_image *image,
                                const heed_caption_options *o, heed_arena *arena, heed_caption *out,
                                heed_error *err)
{
    if (!c || !image || !image->pixels || !out)
        return heed__missing(err, c ? "picture" : "captioner");
    const heed_special_ids ids = heed_vocab_special(c->vocab);
    heed_caption_options own = o ? *o : (heed_caption_options){0};
    own.start = ids.bos;
    own.end = ids.eos;
    own.unknown = ids.unk;
    if (show(c, image, err) || heed_caption_find(c->tape, &c->net, c->shown, &own, arena, out, err))
        return err ? err->status : HEED_STATE;
    return heed_vocab_decode(c->vocab, out->id, out->count, arena, &out->text, err);
}

heed_status heed_captioner_read(heed_captioner *c, const heed_image *image, const char *text,
                                heed_arena *arena, heed_caption *out, heed_error *err)
{
    heed_tokens tokens;
    heed_tensor *looks = NULL;
    double nll = 0;
    static const int32_t first = 0;
    if (!c || !image || !image->pixels || !text || !out)
        return heed__missing(err, c ? "picture or text" : "captioner");
    if (heed__caption_encode_known(c->vocab, text, arena, &tokens, err) || show(c, image, err))
        return err ? err->status : HEED_ARGUMENT;
    const heed_special_ids ids = heed_vocab_special(c->vocab);
    const int64_t n = tokens.count + 1;
    int32_t *read = heed_arena_allocate(arena, 2 * (size_t)n * sizeof *read);
    const heed_segments *rows = heed_segments_new(arena, 1, &n);
    if (!read || !rows)
        return heed__fail(err, HEED_MEMORY, "out of memory for a caption");
    read[0] = ids.bos;
    memcpy(read + 1, tokens.id, (size_t)(n - 1) * sizeof *read);
    memcpy(read + n, tokens.id, (size_t)(n - 1) * sizeof *read);
    read[2 * n - 1] = ids.eos;
    heed_tape_reset(c->tape);
    const heed_caption_batch b = {c->shown, 1, rows, &first, read, read + n, NULL};
    if (!heed_caption_loss(c->tape, &c->net, &b, 1, &nll, &looks))
        return heed__fail(err, heed_tape_error(c->tape)->status, "%s",
                          heed_tape_error(c->tape)->text);
    *out =
        (heed_caption){.id = tokens.id, .count = n - 1, .log_p = -nll, .score = -nll / (double)n};
    if (looks) {
        const size_t bytes = (size_t)heed_tensor_count(looks) * sizeof(heed_real);
        heed_real *kept = heed_arena_allocate(arena, bytes);
        if (!kept)
            return heed__fail(err, HEED_MEMORY, "out of memory for a caption");
        out->weights = memcpy(kept, heed_tensor_data(looks), bytes);
    }
    return heed_vocab_decode(c->vocab, out->id, out->count, arena, &out->text, err);
}

heed_status heed_captioner_words(const heed_captioner *c, const heed_caption *caption,
                                 heed_arena *arena, const char *const **words, heed_error *err)
{
    if (!c || !caption || !words)
        return heed__missing(err, "caption");
    const char **all = heed_arena_allocate(arena, (size_t)(caption->count + 1) * sizeof *all);
    if (!all)
        return heed__fail(err, HEED_MEMORY, "out of memory for a caption");
    for (int64_t i = 0; i < caption->count; i++)
        all[i] = heed_vocab_piece(c->vocab, caption->id[i]);
    all[caption->count] = "(end)";
    *words = all;
    return HEED_OK;
}

heed_status heed_captioner_svg(heed_captioner *c, const heed_image *image,
                               const heed_caption *caption, heed_arena *arena, const char **svg,
                               heed_error *err)
{
    enum { ACROSS = 5, SIDE = 168 };
    const char *const *words;
    if (!c || !image || !caption || !svg)
        return heed__missing(err, "caption");
    if (!caption->weights)
        return heed__fail(err, HEED_ARGUMENT, "this model has no attention to show");
    if (show(c, image, err) || heed_captioner_words(c, caption, arena, &words, err))
        return err ? err->status : HEED_MEMORY;
    const int64_t cells = caption->count + 1, places = c->net.grid.size.y * c->net.grid.size.x;
    heed_image_cell *cell = heed_arena_allocate(arena, (size_t)(cells + 1) * sizeof *cell);
    if (!cell)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    cell[0] = (heed_image_cell){.pixels = c->shown,
                                .height = c->config.side,
                                .width = c->config.side,
                                .channels = c->config.channels,
                                .low = -1,
                                .high = 1};
    for (int64_t i = 0; i + 1 < cells; i++) {
        cell[i + 1] = cell[0];
        cell[i + 1].title = words[i];
        cell[i + 1].weights = caption->weights + i * places;
        cell[i + 1].rows = c->net.grid.size.y;
        cell[i + 1].cols = c->net.grid.size.x;
    }
    return heed_images_svg(caption->text ? caption->text : "caption", cell, cells, ACROSS, SIDE,
                           arena, svg, err);
}
