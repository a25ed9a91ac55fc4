/* vit_lab.c: `heed lab vit`: trains a Vision Transformer on digits that it draws, or on the IDX
 * files of a folder (MNIST, Fashion-MNIST), tests it with and without positions, and draws where
 * it looks and which positions it takes for neighbours. */
#include "lab.h"
#include "picture_data.h"

#include <heed/vit.h>
#include <stdio.h>
#include <string.h>

struct settings {
    lab_common shared;
    const char *data;
    int64_t side, patch, d, ff, layers, heads, shift;
    double dropout;
    bool positions;
};
static const heed_option fields[] = {
    LAB_OPTIONS(struct settings, shared),
    LAB_TRAINING(struct settings, shared, "20000", "64", "1000", "adam", "0.001", NULL, "1", NULL),
    HEED_OPTION_TEXT(struct settings, data, "data", NULL, "DIR",
                     "IDX files named as MNIST's; not given: digits are drawn"),
    HEED_OPTION_INT(struct settings, side, "side", "28", 4, 256, "N",
                    "drawn digits: pixels in a line"),
    HEED_OPTION_INT(struct settings, patch, "patch", "4", 1, 256, "N",
                    "pixels in a line of a patch"),
    HEED_OPTION_INT(struct settings, d, "d", "96", 1, 4096, "N", "width of the model"),
    HEED_OPTION_INT(struct settings, ff, "ff", "192", 1, 16384, "N", "width of the MLP"),
    HEED_OPTION_INT(struct settings, layers, "layers", "6", 1, 48, "N", "layers"),
    HEED_OPTION_INT(struct settings, heads, "heads", "4", 1, 64, "N", "heads of attention"),
    HEED_OPTION_INT(struct settings, shift, "shift", "2", 0, 16, "N",
                    "--data: pictures are moved by up to N pixels in training"),
    HEED_OPTION_REAL(struct settings, dropout, "dropout", "0.1", 0, 0.9, "P", "dropout"),
    HEED_OPTION_BOOL(struct settings, positions, "positions", "true",
                     "learn an embedding of each patch's position"),
};
static const char *const quick[] = {"side",     "16",     "patch",       "4",   "d",     "48",
                                    "ff",       "96",     "layers",      "2",   "batch", "32",
                                    "updates",  "600",    "valid-every", "200", "rate",  "0.002",
                                    "rate-end", "0.0001", "dropout",     "0",   NULL};
static const char *const mnist[] = {"updates", "40000", "rate-end", "0.00001", NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "drawn digits of 16 x 16 pixels, in seconds", quick},
        {"mnist", "40,000 updates; give --data", mnist},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {"heed lab vit --quick --model m",
                                       "heed lab vit --preset mnist --data mnist --model m", NULL};
static const heed_option_set options = {
    .command = "heed lab vit",
    .summary = "Vision Transformer: a picture is a sentence of patches (Dosovitskiy et al. 2021)",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

struct system {
    const struct settings *settings;
    picture_data data;
    heed_arena *arena;
    heed_vit_net net;
};

static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    const struct settings *o = y->settings;
    (void)set;
    heed_vit_build(&y->net, s,
                   &(heed_vit_config){.side = y->data.side,
                                      .channels = 1,
                                      .patch = o->patch,
                                      .classes = y->data.classes,
                                      .d = o->d,
                                      .ff = o->ff,
                                      .layers = o->layers,
                                      .heads = o->heads,
                                      .dropout = o->dropout,
                                      .positions = o->positions},
                   y->arena);
}

/* ---- batches ---- */

struct batch {
    heed_tensor *pixels; /* (count*side*side,1) */
    int32_t *labels;
    int64_t count;
};

/* Pictures first, first + 1, ... of a part, or, to train on, any that the dice name. */
static bool take(const struct system *y, heed_tape *t, picture_part part, int64_t first,
                 int64_t count, const heed_rng *rng, struct batch *b)
{
    const int64_t size = y->data.side * y->data.side;
    drawing_dice dice = {rng, 0};
    *b = (struct batch){heed_input(t, HEED_SHAPE(count * size, 1), NULL),
                        heed_arena_allocate(heed_tape_arena(t), (size_t)count * sizeof(int32_t)),
                        count};
    if (!b->pixels || !b->labels) {
        heed_tape_fail(t, HEED_MEMORY, "out of memory for %lld pictures", (long long)count);
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t at = first + i;
        if (part == PICTURES_TRAIN && y->data.train)
            at = heed_rng_below(rng, dice.next++, y->data.count[PICTURES_TRAIN]);
        b->labels[i] = picture_data_take(&y->data, part, at, y->settings->shift, &dice,
                                         heed_tensor_data(b->pixels) + i * size);
    }
    return true;
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct system *y = context;
    struct batch b;
    (void)sum;
    if (!take(y, t, PICTURES_TRAIN, 0, y->settings->shared.batch, &pass->rng, &b))
        return NULL;
    heed_tensor *nats =
        heed_cross_entropy(t, heed_vit_logits(t, &y->net, b.pixels, NULL), b.labels, 0);
    return heed_scale(t, nats, pass->weight / (double)b.count, 0);
}

/* ---- testing ---- */

struct score {
    double nats, right; /* a picture; of 100 */
};

static int said(const heed_tensor *logits, int64_t i)
{
    const int64_t n = heed_tensor_cols(logits);
    const heed_real *row = heed_tensor_data(logits) + i * n;
    int best = 0;
    for (int k = 1; k < n; k++)
        best = row[k] > row[best] ? k : best;
    return best;
}

static heed_status test(struct system *y, heed_tape *t, picture_part part, struct score *s,
                        heed_error *err)
{
    enum { AT_ONCE = 200 };
    const int64_t all = y->data.count[part];
    *s = (struct score){0};
    for (int64_t done = 0, n; done < all; done += n) {
        struct batch b;
        n = all - done < AT_ONCE ? all - done : AT_ONCE;
        heed_tape_reset(t);
        heed_tensor *logits = take(y, t, part, done, n, NULL, &b)
                                  ? heed_vit_logits(t, &y->net, b.pixels, NULL)
                                  : NULL;
        heed_tensor *nats = heed_cross_entropy(t, logits, b.labels, 0);
        if (!nats)
            return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
        s->nats += (double)heed_tensor_data(nats)[0] / (double)all;
        for (int64_t i = 0; i < n; i++)
            s->right += said(logits, i) == b.labels[i] ? 100 / (double)all : 0;
    }
    return HEED_OK;
}

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    struct score s;
    if (test(context, t, PICTURES_VALID, &s, err))
        return err->status;
    out[0] = (heed_measure){"loss", s.nats, false};
    out[1] = (heed_measure){"right, %", s.right, true};
    *count = 2;
    return HEED_OK;
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    struct score s;
    const bool drawn = !y->data.train;
    if (test(y, t, PICTURES_TEST, &s, err))
        return err->status;
    lab_report(r, s.right, drawn ? LAB_AT_LEAST : LAB_NO_TARGET, 95, "test, right, %%");
    lab_report(r, s.nats, LAB_NO_TARGET, 0, "test, nats a picture");
    if (!y->net.positions)
        return HEED_OK;
    heed_tensor *positions = y->net.positions;
    y->net.positions = NULL;
    const heed_status status = test(y, t, PICTURES_TEST, &s, err);
    y->net.positions = positions;
    lab_report(r, s.right, drawn ? LAB_AT_MOST : LAB_NO_TARGET, 80,
               "test with the positions taken away, right, %%");
    return status;
}

/* ---- pictures ---- */

/* The first test pictures, bright where the class row's attention comes from. */
static heed_status draw_rollout(struct system *y, lab_session *r, heed_tape *t, heed_error *err)
{
    enum { SHOWN = 12, ACROSS = 6 };
    heed_attention_recorder recorder = {0};
    struct batch b;
    const int64_t side = y->data.side, across = heed_vit_patches(&y->net.config);
    heed_image_cell cells[2 * SHOWN];
    char titles[SHOWN][32];
    const char *svg;
    heed_tape_reset(t);
    heed_real *weights = heed_arena_allocate(heed_tape_arena(t),
                                             (size_t)(SHOWN * across * across) * sizeof *weights);
    heed_tensor *logits = take(y, t, PICTURES_TEST, 0, SHOWN, NULL, &b)
                              ? heed_vit_logits(t, &y->net, b.pixels, &recorder)
                              : NULL;
    if (!logits || !weights || !heed_vit_rollout(t, &recorder, weights))
        return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
    for (int i = 0; i < SHOWN; i++) {
        /* A line of pictures, below it the same with what is seen of them. */
        const int at = i / ACROSS * 2 * ACROSS + i % ACROSS;
        snprintf(titles[i], sizeof titles[i], "%d, said %d", b.labels[i], said(logits, i));
        cells[at] = (heed_image_cell){.title = titles[i],
                                      .pixels = heed_tensor_data(b.pixels) + i * side * side,
                                      .height = side,
                                      .width = side,
                                      .channels = 1,
                                      .high = 1};
        cells[at + ACROSS] = cells[at];
        cells[at + ACROSS].title = NULL;
        heed_vit_above_least(weights + i * across * across, across * across);
        cells[at + ACROSS].weights = weights + i * across * across;
        cells[at + ACROSS].rows = cells[at + ACROSS].cols = across;
    }
    if (heed_images_svg("Where the class row looks: attention rolled out", cells, 2 * SHOWN, ACROSS,
                        112, r->arena, &svg, err))
        return err->status;
    return lab_write(r, "rollout.svg", svg, err);
}

static heed_status draw_positions(struct system *y, lab_session *r, heed_error *err)
{
    const char *svg;
    if (!y->net.positions)
        return HEED_OK;
    return heed_vit_positions_svg(&y->net, r->arena, &svg, err)
               ? err->status
               : lab_write(r, "positions.svg", svg, err);
}

static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    return draw_rollout(context, r, t, err) ? err->status : draw_positions(context, r, err);
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    struct system y = {.settings = settings, .arena = r->arena};
    const struct settings *s = settings;
    if (picture_data_open(&y.data, s->data, s->side, r->arena, err) == HEED_OK) {
        lab_system system = {.context = &y,
                             .build = build,
                             .loss = loss,
                             .validate = validate,
                             .unit = "nats a picture",
                             .evaluate = evaluate,
                             .draw = draw};
        if (y.data.side % s->patch)
            lab_fail(err, HEED_ARGUMENT,
                     "option '--patch' is %lld, expected a divisor of the pictures' %lld pixels",
                     (long long)s->patch, (long long)y.data.side);
        else if (s->d % s->heads)
            lab_fail(err, HEED_ARGUMENT,
                     "option '--heads' is %lld, expected a divisor of '--d', %lld",
                     (long long)s->heads, (long long)s->d);
        else
            lab_experiment(r, &lab_vit, settings, &system, err);
    }
    picture_data_close(&y.data);
    return err->status;
}

const lab lab_vit = {
    .name = "vit", .options = &options, .settings = sizeof(struct settings), .run = run};
