/* retriever.c: a trained model of pictures and texts that ask each other: its directory, pictures
 * among which a text is looked for, and the picture of who means whom. */
#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "see/match_task.h"
#include "see/model_files.h"

#include <heed/show.h>
#include <stdio.h>
#include <string.h>

struct heed_retriever {
    heed_allocator allocator;
    heed_arena *arena;
    heed_match_config config;
    heed_vocab *vocab;
    heed_params *params;
    heed_match_net net;
    heed_tape *tape;
    heed_real *places; /* (room, L*d) of the pictures added */
    int64_t count, room;
};

/* ---- the directory ---- */

struct file {
    heed_match_config config;
};
static const heed_option fields[] = {HEED_MATCH_MODEL_OPTIONS(struct file, config)};
static const heed_option_set set = {
    .command = "config.json", .fields = fields, .count = sizeof fields / sizeof *fields};

heed_status heed__match_config_write(const char *folder, const heed_match_config *c,
                                     heed_arena *arena, heed_error *err)
{
    const struct file file = {*c};
    return heed__see_config_write(folder, &set, &file, arena, err);
}

heed_status heed__match_config_read(const char *folder, heed_match_config *c, heed_arena *arena,
                                    heed_error *err)
{
    struct file file;
    const heed_status status = heed__see_config_read(folder, &set, &file, arena, err);
    *c = file.config;
    return status;
}

heed_retriever *heed_retriever_open(const char *folder, int threads,
                                    const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed_retriever *r = heed__allocate_zeroed(&a, 1, sizeof *r);
    heed__pathname words;
    heed_error own = {0};
    if (!r) {
        heed__fail(err, HEED_MEMORY, "out of memory for a model");
        return NULL;
    }
    r->allocator = a;
    if ((r->arena = heed_arena_new(&a, &own)) &&
        !heed__match_config_read(folder, &r->config, r->arena, &own) &&
        !heed__pathname_format(words, &own, "%s/" HEED__CAPTION_WORDS, folder) &&
        (r->vocab = heed_vocab_open(words, NULL, &a, &own)) &&
        (r->params = heed_params_new(&a, &own))) {
        r->config.vocabulary = heed_vocab_size(r->vocab);
        heed_match_build(&r->net, heed_params_scope(r->params), &r->config);
        if (!heed__see_weights(r->params, folder, &own) &&
            (r->tape = heed__see_tape(threads, &a, &own)))
            return r;
    }
    heed__fail(err, own.status, "%s", own.text);
    heed_retriever_free(r);
    return NULL;
}

/* Columns of what is kept of a picture. */
static int64_t of_picture(const heed_retriever *r)
{
    return r->net.grid.size.y * r->net.grid.size.x * r->config.d;
}

void heed_retriever_free(heed_retriever *r)
{
    if (!r)
        return;
    const heed_allocator a = r->allocator;
    heed__release(&a, r->places, (size_t)(r->room * of_picture(r)), sizeof *r->places);
    heed_tape_free(r->tape);
    heed_params_free(r->params);
    heed_vocab_free(r->vocab);
    heed_arena_free(r->arena);
    heed__release(&a, r, 1, sizeof *r);
}

/* ---- finding ---- */

static heed_status make_room(heed_retriever *r, int64_t count, heed_error *err)
{
    const int64_t each = of_picture(r);
    int64_t room = r->room ? r->room : 64;
    while (room < count)
        room *= 2;
    if (room == r->room)
        return HEED_OK;
    heed_real *more = heed__allocate(&r->allocator, (size_t)(room * each), sizeof *more);
    if (!more)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld pictures", (long long)room);
    if (r->count)
        memcpy(more, r->places, (size_t)(r->count * each) * sizeof *more);
    heed__release(&r->allocator, r->places, (size_t)(r->room * each), sizeof *more);
    r->places = more;
    r->room = room;
    return HEED_OK;
}

/* A picture as the network sees it; in the arena. */
static heed_real *shown(const heed_retriever *r, const heed_image *image, heed_arena *arena,
                        heed_error *err)
{
    const heed_match_config *c = &r->config;
    heed_real *pixels =
        heed_arena_allocate(arena, (size_t)(c->side * c->side * c->channels) * sizeof *pixels);
    if (!pixels) {
        heed__fail(err, HEED_MEMORY, "out of memory for a picture");
        return NULL;
    }
    return heed__see_scaled(image, c->side, c->channels, &r->allocator, pixels, err) ? NULL
                                                                                     : pixels;
}

heed_status heed_retriever_add(heed_retriever *r, const heed_image *image, heed_error *err)
{
    heed_error own = {0};
    if (!r || !image)
        return heed__missing(err, r ? "picture" : "model");
    heed_arena *arena = heed_arena_new(&r->allocator, &own);
    const heed_real *pixels = arena ? shown(r, image, arena, &own) : NULL;
    if (pixels && !make_room(r, r->count + 1, &own) &&
        !heed__match_see(r->tape, &r->net, pixels, 1, r->places + r->count * of_picture(r), &own))
        r->count++;
    heed_arena_free(arena);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

/* The words of a text: ids, their rows, and what the network makes of them. */
struct text {
    heed_tokens ids;
    const heed_segments *rows;
    heed_real *words;
};

static heed_status read(heed_retriever *r, const char *text, heed_arena *arena, struct text *t,
                        heed_error *err)
{
    const heed_status status = heed__caption_encode_known(r->vocab, text, arena, &t->ids, err);
    if (status)
        return status;
    t->rows = heed_segments_new(arena, 1, &t->ids.count);
    t->words = heed_arena_allocate(arena, (size_t)(t->ids.count * r->config.d) * sizeof *t->words);
    if (!t->rows || !t->words)
        return heed__fail(err, HEED_MEMORY, "out of memory for a text");
    return heed__match_read(r->tape, &r->net, t->ids.id, t->rows, t->words, err);
}

heed_status heed_retriever_find(heed_retriever *r, const char *text, heed_arena *arena,
                                const heed_real **scores, heed_error *err)
{
    struct text t;
    heed_error own = {0};
    if (!r || !text || !scores)
        return heed__missing(err, r ? "text" : "model");
    heed_real *all = heed_arena_allocate(arena, (size_t)(r->count + 1) * sizeof *all);
    if (!all)
        heed__fail(&own, HEED_MEMORY, "out of memory for %lld pictures", (long long)r->count);
    else if (!read(r, text, arena, &t, &own))
        heed__match_all(r->tape, &r->net, r->places, r->count, t.words, t.rows, all, &own);
    *scores = all;
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

/* ---- who means whom ---- */

/* The places of a quarter of the picture, bright, and the word that they mean most. */
static int64_t quarter(const heed_retriever *r, int q, const heed_real *by_place, int64_t words,
                       heed_real *bright)
{
    const heed_image_size g = r->net.grid.size;
    int64_t best = 0;
    double most = -1;
    for (int64_t i = 0; i < g.y * g.x; i++)
        bright[i] = (2 * (i / g.x) + 1 > g.y) * 2 + (2 * (i % g.x) + 1 > g.x) == q;
    for (int64_t w = 0; w < words; w++) {
        double sum = 0;
        for (int64_t i = 0; i < g.y * g.x; i++)
            sum += (double)bright[i] * (double)by_place[i * words + w];
        if (sum > most) {
            most = sum;
            best = w;
        }
    }
    return best;
}

heed_status heed_retriever_svg(heed_retriever *r, const heed_image *image, const char *text,
                               heed_arena *arena, const char **svg, heed_error *err)
{
    enum { ACROSS = 5, SIDE = 168, QUARTERS = 4 };
    struct text t;
    heed_error own = {0};
    if (!r || !image || !text || !svg)
        return heed__missing(err, r ? "picture or text" : "model");
    const heed_match_config *c = &r->config;
    const int64_t places = r->net.grid.size.y * r->net.grid.size.x;
    const heed_real *pixels = shown(r, image, arena, &own);
    if (!pixels || read(r, text, arena, &t, &own))
        return heed__fail(err, own.status, "%s", own.text);
    const int64_t words = t.ids.count, cells = 1 + words + QUARTERS;
    heed_image_cell *cell = heed_arena_allocate(arena, (size_t)cells * sizeof *cell);
    heed_real *bright = heed_arena_allocate(arena, (size_t)(QUARTERS * places) * sizeof *bright);
    char *titles = heed_arena_allocate(arena, QUARTERS * 64);
    const heed_real *by_word, *by_place;
    heed_tape_reset(r->tape);
    if (!cell || !bright || !titles ||
        !heed_match_looks(r->tape, &r->net, heed_match_places(r->tape, &r->net, pixels, 1),
                          heed_input(r->tape, HEED_SHAPE(words, c->d), t.words), &by_word,
                          &by_place))
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    cell[0] = (heed_image_cell){.pixels = pixels,
                                .height = c->side,
                                .width = c->side,
                                .channels = c->channels,
                                .low = -1,
                                .high = 1};
    for (int64_t i = 1; i < cells; i++) {
        const int q = (int)(i - 1 - words);
        char *title = q < 0 ? NULL : titles + q * 64;
        cell[i] = cell[0];
        cell[i].rows = r->net.grid.size.y;
        cell[i].cols = r->net.grid.size.x;
        cell[i].title = q < 0 ? heed_vocab_piece(r->vocab, t.ids.id[i - 1]) : title;
        cell[i].weights = q < 0 ? by_word + (i - 1) * places : bright + q * places;
        if (q >= 0)
            snprintf(title, 64, "= %s",
                     heed_vocab_piece(
                         r->vocab, t.ids.id[quarter(r, q, by_place, words, bright + q * places)]));
    }
    return heed_images_svg("Where each word looks; at the end, which word each quarter means", cell,
                           cells, ACROSS, SIDE, arena, svg, err);
}
