/* retrieve_lab.c: `heed lab retrieve`: a text finds its picture and a picture its text, among many:
 * canvases with digits, and the sentences that say which stand where. */
#include "canvas.h"
#include "lab.h"

#include <heed/see.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct settings {
    lab_common shared;
    const char *data;
    int64_t side, cells, candidates;
    heed_match_config net;
};
static const heed_option fields[] = {
    LAB_OPTIONS(struct settings, shared),
    LAB_TRAINING(struct settings, shared, "4000", "32", "1000", "adam", "0.001", NULL, "5", NULL),
    HEED_OPTION_TEXT(struct settings, data, "data", NULL, "DIR",
                     "IDX files of digits, named as MNIST's; not given: digits are drawn"),
    HEED_OPTION_INT(struct settings, side, "side", "56", 8, 512, "N",
                    "pixels in a line of the canvas"),
    HEED_OPTION_INT(struct settings, cells, "cells", "3", 2, 3, "N", "cells in a line of it"),
    HEED_OPTION_INT(struct settings, candidates, "candidates", "200", 2, 2000, "N",
                    "pictures, each with its text, that one is found among in the test"),
    HEED_OPTION_INT(struct settings, net.stages, "stages", "3", 1, HEED_GRID_STAGES, "N",
                    "convolutions that halve the picture; words look at what is left"),
    HEED_OPTION_INT(struct settings, net.filters, "filters", "16", 1, 1024, "N",
                    "of the first convolution; each one has twice those of the one before"),
    HEED_OPTION_INT(struct settings, net.embedding, "embedding", "32", 1, 4096, "N",
                    "columns of a word"),
    HEED_OPTION_INT(struct settings, net.d, "d", "64", 2, 8192, "N",
                    "columns of the space of words and places"),
    HEED_OPTION_REAL(struct settings, net.sharpness, "sharpness", "9", 0.01, 1000, "X",
                     "of attention between them"),
    HEED_OPTION_REAL(struct settings, net.contrast, "contrast", "20", 0.01, 1000, "X",
                     "what scores are multiplied with in the loss"),
    HEED_OPTION_REAL(struct settings, net.dropout, "dropout", "0", 0, 0.9, "P", "dropout"),
};
static const char *const quick[] = {
    "side", "32",         "cells", "2",    "stages", "2",        "updates", "400", "valid-every",
    "200",  "candidates", "100",   "rate", "0.003",  "rate-end", "0.0001",  NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "two by two cells, drawn digits, 100 candidates, in seconds", quick},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {"heed lab retrieve --quick --model m",
                                       "heed lab retrieve --data mnist --model m", NULL};
static const heed_option_set options = {
    .command = "heed lab retrieve",
    .summary = "Pictures and texts that find each other by asking (Lee et al. 2018)",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

struct system {
    const struct settings *settings;
    canvas_sizes sizes;
    picture_data data;
    heed_real *digit;
    heed_match_net net;
};

static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    heed_match_config c = y->settings->net;
    (void)set;
    c.side = y->settings->side;
    c.channels = 1;
    c.vocabulary = CANVAS_WORDS;
    heed_match_build(&y->net, s, &c);
}

/* ---- batches ---- */

struct batch {
    heed_real *pixels;
    int32_t *ids;
    const heed_segments *rows;
    canvas *canvas;
};

/* Pictures whose sentences differ: another picture with the same one would be found as well. */
static bool take(const struct system *y, heed_arena *arena, picture_part part, int64_t count,
                 const heed_rng *rng, struct batch *b)
{
    const int64_t size = y->sizes.side * y->sizes.side;
    drawing_dice dice = {rng, 0};
    int64_t *lengths = heed_arena_allocate(arena, (size_t)count * sizeof *lengths), at = 0;
    b->pixels = heed_arena_allocate(arena, (size_t)(count * size) * sizeof *b->pixels);
    b->ids = heed_arena_allocate(arena, (size_t)(count * CANVAS_LONGEST) * sizeof *b->ids);
    b->canvas = heed_arena_allocate(arena, (size_t)count * sizeof *b->canvas);
    if (!lengths || !b->pixels || !b->ids || !b->canvas)
        return false;
    for (int64_t n = 0, i = 0; n < count; i++) {
        canvas *c = &b->canvas[n];
        bool seen = false;
        canvas_draw(&y->sizes, &y->data, part, i, &dice, y->digit, b->pixels + n * size, c);
        for (int64_t k = 0; k < n && !seen; k++)
            seen = memcmp(c->word, b->canvas[k].word, sizeof c->word) == 0;
        if (seen)
            continue;
        lengths[n++] = 4 * c->digits;
        memcpy(b->ids + at, c->word, (size_t)(4 * c->digits) * sizeof *b->ids);
        at += 4 * c->digits;
    }
    return (b->rows = heed_segments_new(arena, count, lengths));
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct system *y = context;
    const int64_t n = y->settings->shared.batch;
    struct batch b;
    (void)sum;
    if (!take(y, heed_tape_arena(t), PICTURES_TRAIN, n, &pass->rng, &b))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for a batch");
    return heed_match_loss(t, &y->net, b.pixels, b.ids, b.rows, pass->weight / (double)(2 * n));
}

/* ---- testing ---- */

struct recall {
    double at[3];  /* of 100: within the first 1, 5, 10 */
    double looked; /* of a digit's word, in its cell */
};

static double in_cell(const struct system *y, const heed_real *weights, int cell)
{
    const heed_image_size g = y->net.grid.size;
    double mass = 0;
    for (int64_t i = 0; i < g.y * g.x; i++) {
        const int64_t v = (2 * (i / g.x) + 1) * y->sizes.cells / (2 * g.y),
                      u = (2 * (i % g.x) + 1) * y->sizes.cells / (2 * g.x);
        mass += v * y->sizes.cells + u == cell ? (double)weights[i] : 0;
    }
    return mass;
}

static heed_status looked(struct system *y, heed_tape *t, const struct batch *b,
                          heed_tensor *places, heed_tensor *words, double *share, heed_error *err)
{
    const int64_t each = y->net.grid.size.y * y->net.grid.size.x;
    double digits = 0;
    *share = 0;
    for (int64_t i = 0; i < b->rows->count; i++) {
        const heed_real *by_word, *by_place;
        if (!heed_match_looks(t, &y->net, heed_slice_rows(t, places, i * each, (i + 1) * each),
                              heed_slice_rows(t, words, b->rows->offset[i], b->rows->offset[i + 1]),
                              &by_word, &by_place))
            return lab_fail(err, HEED_MEMORY, "out of memory for a test");
        for (int k = 0; k < b->canvas[i].digits; k++, digits++)
            *share += 100 * in_cell(y, by_word + 4 * k * each, b->canvas[i].cell[k]);
    }
    *share /= digits;
    return HEED_OK;
}

static heed_status test(struct system *y, heed_tape *t, picture_part part, int64_t n,
                        struct recall *texts, struct recall *pictures, heed_error *err)
{
    static const int64_t within[] = {1, 5, 10};
    struct batch b;
    *texts = *pictures = (struct recall){0};
    heed_tape_reset(t);
    if (!take(y, heed_tape_arena(t), part, n, NULL, &b))
        return lab_fail(err, HEED_MEMORY, "out of memory for a test");
    heed_tensor *places = heed_match_places(t, &y->net, b.pixels, n),
                *words = heed_match_words(t, &y->net, b.ids, b.rows),
                *scores = heed_match_scores(t, &y->net, places, n, words, b.rows);
    if (!scores)
        return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
    for (int k = 0; k < 3; k++) {
        texts->at[k] = heed_match_recall(heed_tensor_data(scores), n, false, within[k]);
        pictures->at[k] = heed_match_recall(heed_tensor_data(scores), n, true, within[k]);
    }
    return looked(y, t, &b, places, words, &texts->looked, err);
}

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    enum { PICTURES = 100 };
    struct recall texts, pictures;
    if (test(context, t, PICTURES_VALID, PICTURES, &texts, &pictures, err))
        return err->status;
    out[0] = (heed_measure){"not the first, %", 100 - (texts.at[0] + pictures.at[0]) / 2, false};
    *count = 1;
    return HEED_OK;
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    static const int within[] = {1, 5, 10};
    struct system *y = context;
    const int64_t n = y->settings->candidates;
    struct recall texts, pictures;
    if (test(y, t, PICTURES_TEST, n, &texts, &pictures, err))
        return err->status;
    for (int k = 0; k < 3; k++) {
        lab_report(r, pictures.at[k], k ? LAB_NO_TARGET : LAB_AT_LEAST, 70,
                   "a text finds its picture of %lld, recall@%d, %%", (long long)n, within[k]);
        lab_report(r, texts.at[k], k ? LAB_NO_TARGET : LAB_AT_LEAST, 70,
                   "a picture finds its text of %lld, recall@%d, %%", (long long)n, within[k]);
    }
    lab_report(r, texts.looked, LAB_NO_TARGET, 0, "attention of a digit's word in its cell, %%");
    return HEED_OK;
}

/* ---- pictures ---- */

/* Which of them is the largest. */
static int64_t meant(const heed_real *weights, int64_t words)
{
    int64_t best = 0;
    for (int64_t i = 1; i < words; i++)
        best = weights[i] > weights[best] ? i : best;
    return best;
}

/* Some canvases, each once for each of its words: where it looks; and behind them, once for each
 * digit, the place where that digit's word looks most, and the word that this place means. */
static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    enum { SHOWN = 4, WORDS = 8, DIGITS = 2, ACROSS = 1 + WORDS + DIGITS, FROM = 24 };
    struct system *y = context;
    const int64_t each = y->net.grid.size.y * y->net.grid.size.x,
                  size = y->sizes.side * y->sizes.side;
    heed_image_cell cells[SHOWN * ACROSS] = {0};
    char titles[SHOWN * DIGITS][32];
    struct batch b;
    const char *svg;
    int shown = 0;
    heed_tape_reset(t);
    if (!take(y, r->arena, PICTURES_TEST, FROM, NULL, &b))
        return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
    heed_tensor *places = heed_match_places(t, &y->net, b.pixels, FROM),
                *words = heed_match_words(t, &y->net, b.ids, b.rows);
    for (int i = 0; i < FROM && shown < SHOWN; i++) {
        const int64_t from = b.rows->offset[i], n = b.rows->offset[i + 1] - from;
        const heed_real *by_word, *by_place;
        if (n != WORDS)
            continue;
        heed_real *one = heed_arena_allocate(r->arena, (size_t)(DIGITS * each) * sizeof *one);
        if (!one ||
            !heed_match_looks(t, &y->net, heed_slice_rows(t, places, i * each, (i + 1) * each),
                              heed_slice_rows(t, words, from, from + n), &by_word, &by_place))
            return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
        memset(one, 0, (size_t)(DIGITS * each) * sizeof *one);
        for (int k = 0; k < ACROSS; k++) {
            heed_image_cell *c = &cells[shown * ACROSS + k];
            *c = (heed_image_cell){.pixels = b.pixels + i * size,
                                   .height = y->sizes.side,
                                   .width = y->sizes.side,
                                   .channels = 1,
                                   .low = -1,
                                   .high = 1,
                                   .rows = y->net.grid.size.y,
                                   .cols = y->net.grid.size.x};
            if (k > 0 && k <= WORDS) {
                c->title = canvas_word(b.ids[from + k - 1]);
                c->weights = by_word + (k - 1) * each;
            } else if (k > WORDS) {
                const int digit = k - WORDS - 1;
                const int64_t place = meant(by_word + 4 * digit * each, each);
                char *title = titles[shown * DIGITS + digit];
                one[digit * each + place] = 1;
                c->weights = one + digit * each;
                snprintf(title, sizeof titles[0], "= %s",
                         canvas_word(b.ids[from + meant(by_place + place * n, n)]));
                c->title = title;
            }
        }
        shown++;
    }
    if (heed_images_svg("Where each word looks; at the end, which word a place means", cells,
                        (int64_t)shown * ACROSS, ACROSS, 84, r->arena, &svg, err))
        return err->status;
    return lab_write(r, "looks.svg", svg, err);
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    const struct settings *o = settings;
    struct system y = {.settings = settings, .sizes = {o->side, o->cells}};
    static const char *const tests[] = {"candidates", NULL};
    if (o->side >> o->net.stages < o->cells)
        return lab_fail(err, HEED_ARGUMENT,
                        "option '--stages' is %lld, which leaves fewer than %lld places in a line",
                        (long long)o->net.stages, (long long)o->cells);
    if (o->net.d % 2)
        return lab_fail(err, HEED_ARGUMENT, "option '--d' is %lld, expected an even number",
                        (long long)o->net.d);
    if (picture_data_open(&y.data, o->data, o->side / o->cells, r->arena, err) == HEED_OK) {
        const lab_system system = {.context = &y,
                                   .build = build,
                                   .loss = loss,
                                   .validate = validate,
                                   .unit = "nats a choice",
                                   .may_change = tests,
                                   .evaluate = evaluate,
                                   .draw = draw};
        y.digit =
            heed_arena_allocate(r->arena, (size_t)(y.data.side * y.data.side) * sizeof *y.digit);
        if (!y.digit)
            lab_fail(err, HEED_MEMORY, "out of memory for a digit");
        else
            lab_experiment(r, &lab_retrieve, settings, &system, err);
    }
    picture_data_close(&y.data);
    return err->status;
}

const lab lab_retrieve = {
    .name = "retrieve", .options = &options, .settings = sizeof(struct settings), .run = run};
