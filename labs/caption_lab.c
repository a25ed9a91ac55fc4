/* caption_lab.c: `heed lab caption`: Show, Attend and Tell on digits that stand somewhere on a
 * canvas: says which stand where, and is measured by whether the sentence is right and whether each
 * digit's word looks at its cell. */
#include "canvas.h"
#include "lab.h"

#include <heed/see.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct settings {
    lab_common shared;
    const char *data;
    int64_t side, cells, test_pictures;
    heed_caption_config net;
};
static const heed_option fields[] = {
    LAB_OPTIONS(struct settings, shared),
    LAB_TRAINING(struct settings, shared, "6000", "32", "1000", "adam", "0.001", NULL, "5", NULL),
    HEED_OPTION_TEXT(struct settings, data, "data", NULL, "DIR",
                     "IDX files of digits, named as MNIST's; not given: digits are drawn"),
    HEED_OPTION_INT(struct settings, side, "side", "56", 8, 512, "N",
                    "pixels in a line of the canvas"),
    HEED_OPTION_INT(struct settings, cells, "cells", "3", 2, 3, "N", "cells in a line of it"),
    HEED_OPTION_INT(struct settings, net.stages, "stages", "3", 1, HEED_GRID_STAGES, "N",
                    "convolutions that halve the picture; attention looks at what is left"),
    HEED_OPTION_INT(struct settings, net.filters, "filters", "16", 1, 1024, "N",
                    "of the first convolution; each one has twice those of the one before"),
    HEED_OPTION_CHOICE(struct settings, net.look, "look", "soft",
                       HEED_WORDS("soft", "hard", "mean", "blind"),
                       "a weighed mean of the places, one of them by REINFORCE; without "
                       "attention: the mean of all; without the picture"),
    HEED_OPTION_INT(struct settings, net.embedding, "embedding", "32", 1, 4096, "N",
                    "columns of a word"),
    HEED_OPTION_INT(struct settings, net.d, "d", "128", 1, 8192, "N", "units of the LSTM"),
    HEED_OPTION_BOOL(struct settings, net.gate, "gate", "false",
                     "each word decides how much the picture says"),
    HEED_OPTION_REAL(struct settings, net.doubly, "doubly", "0", 0, 100, "L",
                     "weight of looking at every place at some time; 0: none"),
    HEED_OPTION_REAL(struct settings, net.reward, "reward", "0.2", 0, 100, "L",
                     "hard: of REINFORCE"),
    HEED_OPTION_REAL(struct settings, net.entropy, "entropy", "0.002", 0, 100, "L",
                     "hard: of the entropy of attention"),
    HEED_OPTION_REAL(struct settings, net.expectation, "expectation", "0.5", 0, 1, "P",
                     "hard: share of the captions that are trained with the mean"),
    HEED_OPTION_REAL(struct settings, net.dropout, "dropout", "0", 0, 0.9, "P", "dropout"),
    HEED_OPTION_INT(struct settings, test_pictures, "test-pictures", "500", 1, 100000, "N",
                    "pictures in the test"),
};
static const char *const quick[] = {
    "side",        "32",      "cells",         "2",    "stages", "2",        "d",
    "64",          "updates", "1500",          "rate", "0.004",  "rate-end", "0.0001",
    "valid-every", "500",     "test-pictures", "200",  NULL};
static const char *const digits[] = {"updates",  "6000",    "rate", "0.002",
                                     "rate-end", "0.00002", NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "two by two cells, drawn digits, in seconds", quick},
        {"digits", "three by three cells on 56 x 56 pixels; with --data, MNIST's digits", digits},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {
    "heed lab caption --quick --model m",
    "heed lab caption --preset digits --look hard --data mnist --model m", NULL};
static const heed_option_set options = {
    .command = "heed lab caption",
    .summary = "Show, Attend and Tell: each word looks at its part of a picture (Xu et al. 2015)",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

struct system {
    const struct settings *settings;
    canvas_sizes sizes;
    picture_data data;
    heed_real *digit; /* one of the data */
    heed_caption_net net;
};

static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    heed_caption_config c = y->settings->net;
    (void)set;
    c.side = y->settings->side;
    c.channels = 1;
    c.vocabulary = CANVAS_WORDS;
    heed_caption_build(&y->net, s, &c);
}

/* ---- batches ---- */

struct batch {
    heed_caption_batch captions;
    canvas *canvas; /* (count) */
    int64_t count;
};

static bool take(const struct system *y, heed_arena *arena, picture_part part, int64_t first,
                 int64_t count, const heed_rng *rng, struct batch *b)
{
    const int64_t size = y->sizes.side * y->sizes.side;
    const double expectation = y->settings->net.expectation;
    drawing_dice dice = {rng, 0};
    heed_real *pixels = heed_arena_allocate(arena, (size_t)(count * size) * sizeof *pixels);
    int64_t *lengths = heed_arena_allocate(arena, (size_t)count * sizeof *lengths), at = 0;
    int32_t *of = heed_arena_allocate(arena, (size_t)count * sizeof *of),
            *read = heed_arena_allocate(arena,
                                        2 * (size_t)(count * (CANVAS_LONGEST + 1)) * sizeof *read),
            *wanted = read + count * (CANVAS_LONGEST + 1);
    uint8_t *expect = heed_arena_allocate(arena, (size_t)count);
    b->canvas = heed_arena_allocate(arena, (size_t)count * sizeof *b->canvas);
    b->count = count;
    if (!pixels || !lengths || !of || !read || !expect || !b->canvas)
        return false;
    for (int64_t i = 0; i < count; i++) {
        canvas *c = &b->canvas[i];
        canvas_draw(&y->sizes, &y->data, part, first + i, &dice, y->digit, pixels + i * size, c);
        lengths[i] = 4 * c->digits + 1;
        of[i] = (int32_t)i;
        read[at] = CANVAS_START;
        memcpy(read + at + 1, c->word, (size_t)(4 * c->digits) * sizeof *read);
        memcpy(wanted + at, c->word, (size_t)(4 * c->digits) * sizeof *read);
        at += lengths[i];
        wanted[at - 1] = CANVAS_END;
        expect[i] = rng && heed_rng_uniform(rng, dice.next++) < expectation;
    }
    b->captions = (heed_caption_batch){
        .pixels = pixels,
        .pictures = count,
        .rows = heed_segments_new(arena, count, lengths),
        .picture = of,
        .read = read,
        .wanted = wanted,
        .expect =
            rng && y->settings->net.look == HEED_LOOK_HARD && expectation > 0 ? expect : NULL};
    return b->captions.rows;
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct system *y = context;
    struct batch b;
    (void)sum;
    if (!take(y, heed_tape_arena(t), PICTURES_TRAIN, 0, y->settings->shared.batch, &pass->rng, &b))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for a batch");
    return heed_caption_loss(t, &y->net, &b.captions, pass->weight / (double)b.captions.rows->rows,
                             NULL, NULL);
}

/* ---- testing ---- */

/* The share of a row's weights that lies in a cell; *hit: whether the largest does. */
static double mass_in(const struct system *y, const heed_real *weights, int cell, bool *hit)
{
    const heed_image_size grid = y->net.grid.size;
    const int64_t cells = y->sizes.cells;
    double mass = 0;
    int64_t best = 0;
    for (int64_t i = 0; i < grid.y * grid.x; i++) {
        /* The cell of the place's middle. */
        const int64_t v = (2 * (i / grid.x) + 1) * cells / (2 * grid.y),
                      u = (2 * (i % grid.x) + 1) * cells / (2 * grid.x);
        best = weights[i] > weights[best] ? i : best;
        if (v * cells + u != cell)
            continue;
        mass += (double)weights[i];
    }
    const int64_t v = (2 * (best / grid.x) + 1) * cells / (2 * grid.y),
                  u = (2 * (best % grid.x) + 1) * cells / (2 * grid.x);
    *hit = v * cells + u == cell;
    return mass;
}

struct score {
    double nats, mass, hits; /* a word; a digit's word, of 100 */
};

static heed_status test(struct system *y, heed_tape *t, picture_part part, int64_t all,
                        struct score *s, heed_error *err)
{
    enum { AT_ONCE = 50 };
    double nats = 0, words = 0, digits_seen = 0, mass = 0, hits = 0;
    for (int64_t done = 0, n; done < all; done += n) {
        struct batch b;
        double nll = 0;
        heed_tensor *looks = NULL;
        n = all - done < AT_ONCE ? all - done : AT_ONCE;
        heed_tape_reset(t);
        if (!take(y, heed_tape_arena(t), part, done, n, NULL, &b))
            return lab_fail(err, HEED_MEMORY, "out of memory for pictures");
        if (!heed_caption_loss(t, &y->net, &b.captions, 1, &nll, &looks))
            return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
        nats += nll;
        words += (double)b.captions.rows->rows;
        for (int64_t i = 0; i < n && looks; i++)
            for (int k = 0; k < b.canvas[i].digits; k++, digits_seen++) {
                bool hit;
                mass += mass_in(y,
                                heed_tensor_data(looks) +
                                    (b.captions.rows->offset[i] + 4 * k) * heed_tensor_cols(looks),
                                b.canvas[i].cell[k], &hit);
                hits += hit;
            }
    }
    *s = (struct score){nats / words, 100 * mass / digits_seen, 100 * hits / digits_seen};
    return HEED_OK;
}

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    enum { PICTURES = 200 };
    struct score s;
    if (test(context, t, PICTURES_VALID, PICTURES, &s, err))
        return err->status;
    out[0] = (heed_measure){"loss", s.nats, false};
    *count = 1;
    return HEED_OK;
}

static const heed_caption_options search = {
    .beam = 1, .longest = CANVAS_LONGEST + 4, .start = CANVAS_START, .end = CANVAS_END};

/* Of 100 pictures, those whose sentence is right word by word. */
static heed_status count_exact(struct system *y, heed_tape *t, heed_arena *arena, int64_t all,
                               double *exact, heed_error *err)
{
    *exact = 0;
    for (int64_t i = 0; i < all; i++) {
        struct batch b;
        heed_caption found;
        heed_arena_reset(arena);
        if (!take(y, arena, PICTURES_TEST, i, 1, NULL, &b))
            return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
        if (heed_caption_find(t, &y->net, b.captions.pixels, &search, arena, &found, err))
            return err->status;
        const int64_t n = 4 * b.canvas->digits;
        *exact +=
            found.count == n && memcmp(found.id, b.canvas->word, (size_t)n * sizeof *found.id) == 0
                ? 100 / (double)all
                : 0;
    }
    return HEED_OK;
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    const struct settings *o = y->settings;
    const bool soft = o->net.look == HEED_LOOK_SOFT, hard = o->net.look == HEED_LOOK_HARD;
    struct score s;
    double exact;
    heed_arena *arena = heed_arena_new(NULL, err);
    if (!arena || count_exact(y, t, arena, o->test_pictures, &exact, err) ||
        test(y, t, PICTURES_TEST, o->test_pictures, &s, err)) {
        heed_arena_free(arena);
        return err->status;
    }
    heed_arena_free(arena);
    lab_report(r, exact, soft || hard ? LAB_AT_LEAST : LAB_NO_TARGET, hard ? 85 : 90,
               "test, sentences that are right, %%");
    lab_report(r, s.nats, LAB_NO_TARGET, 0, "test, nats a word");
    if (soft)
        lab_report(r, s.mass, LAB_AT_LEAST, 80, "attention of a digit's word in its cell, %%");
    if (soft || hard)
        lab_report(r, s.hits, hard ? LAB_AT_LEAST : LAB_NO_TARGET, 85,
                   "digits' words that look most at their cell, %%");
    return HEED_OK;
}

/* ---- pictures ---- */

/* The paper's figure 7 for some pictures: each once for each word that it is said of it. */
static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    enum { SHOWN = 4 };
    struct system *y = context;
    heed_image_cell cells[SHOWN * (CANVAS_LONGEST + 1)] = {0};
    const int64_t places = y->net.grid.size.y * y->net.grid.size.x;
    int64_t count = 0;
    const char *svg;
    for (int64_t i = 0, shown = 0; shown < SHOWN && i < 100; i++) {
        struct batch b;
        heed_caption found;
        if (!take(y, r->arena, PICTURES_TEST, i, 1, NULL, &b))
            return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
        if (b.canvas->digits != 2)
            continue;
        if (heed_caption_find(t, &y->net, b.captions.pixels, &search, r->arena, &found, err))
            return err->status;
        for (int64_t k = 0; k <= 8; k++) {
            const bool said = k > 0 && k <= found.count;
            cells[count++] = (heed_image_cell){
                .title = said ? canvas_word(found.id[k - 1]) : NULL,
                .pixels = b.captions.pixels,
                .height = y->sizes.side,
                .width = y->sizes.side,
                .channels = 1,
                .low = -1,
                .high = 1,
                .weights = said && found.weights ? found.weights + (k - 1) * places : NULL,
                .rows = y->net.grid.size.y,
                .cols = y->net.grid.size.x};
        }
        shown++;
    }
    if (heed_images_svg("Where each word looks", cells, count, 9, 84, r->arena, &svg, err))
        return err->status;
    return lab_write(r, "looks.svg", svg, err);
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    const struct settings *o = settings;
    struct system y = {.settings = settings, .sizes = {o->side, o->cells}};
    static const char *const tests[] = {"test-pictures", NULL};
    if (o->side >> o->net.stages < o->cells)
        return lab_fail(err, HEED_ARGUMENT,
                        "option '--stages' is %lld, which leaves fewer than %lld places in a line",
                        (long long)o->net.stages, (long long)o->cells);
    if (picture_data_open(&y.data, o->data, o->side / o->cells, r->arena, err) == HEED_OK) {
        const lab_system system = {.context = &y,
                                   .build = build,
                                   .loss = loss,
                                   .validate = validate,
                                   .unit = "nats a word",
                                   .may_change = tests,
                                   .evaluate = evaluate,
                                   .draw = draw};
        y.digit =
            heed_arena_allocate(r->arena, (size_t)(y.data.side * y.data.side) * sizeof *y.digit);
        if (!y.digit)
            lab_fail(err, HEED_MEMORY, "out of memory for a digit");
        else
            lab_experiment(r, &lab_caption, settings, &system, err);
    }
    picture_data_close(&y.data);
    return err->status;
}

const lab lab_caption = {
    .name = "caption", .options = &options, .settings = sizeof(struct settings), .run = run};
