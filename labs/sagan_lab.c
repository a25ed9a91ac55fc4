/* sagan_lab.c: `heed lab sagan`: imitates pictures with two equal glyphs in opposite corners, which
 * convolutions alone cannot compare, or Fashion-MNIST; says how far what is made is from what is
 * real, and draws samples and where their pixels look. */
#include "frechet.h"
#include "lab.h"
#include "sagan_draw.h"
#include "sagan_judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct settings {
    lab_common shared;
    const char *data;
    int task;   /* sagan_task */
    int middle; /* sagan_middle */
    int64_t side, latent, width, at, keys, values, judge_updates, test_pictures;
    double grain, rate_ratio;
    bool pool;
};
static const char *const task_names[] = {"corners", "fashion", NULL};
static const heed_option fields[] = {
    LAB_OPTIONS(struct settings, shared),
    LAB_TRAINING(struct settings, shared, "20000", "32", "500", "adam", "0.0001", NULL, NULL, NULL),
    HEED_OPTION_CHOICE(struct settings, task, "task", "corners", task_names,
                       "what is imitated: equal glyphs in two corners, or IDX files"),
    HEED_OPTION_TEXT(struct settings, data, "data", NULL, "DIR",
                     "fashion: IDX files named as MNIST's"),
    HEED_OPTION_CHOICE(struct settings, middle, "middle", "attention",
                       HEED_WORDS("attention", "residual", "nothing"),
                       "what stands in the middle of both networks; residual: as many weights"),
    HEED_OPTION_REAL(struct settings, rate_ratio, "rate-ratio", "4", 0.001, 1000, "R",
                     "the discriminator's learning rate is R times --rate"),
    HEED_OPTION_INT(struct settings, side, "side", "32", 16, 64, "N",
                    "corners: pixels in a line, a power of 2"),
    HEED_OPTION_REAL(struct settings, grain, "grain", "0.05", 0, 1, "S",
                     "corners: noise on every pixel, which are from -1 to 1"),
    HEED_OPTION_INT(struct settings, latent, "latent", "64", 1, 4096, "N", "numbers in z"),
    HEED_OPTION_INT(struct settings, width, "width", "16", 1, 1024, "N",
                    "channels of maps of half the side"),
    HEED_OPTION_INT(struct settings, at, "at", "8", 8, 32, "N",
                    "the block is in maps of N x N, a power of 2"),
    HEED_OPTION_INT(struct settings, keys, "keys", "8", 1, 64, "N",
                    "queries and keys have the map's channels divided by N"),
    HEED_OPTION_INT(struct settings, values, "values", "8", 1, 64, "N",
                    "values have the map's channels divided by N"),
    HEED_OPTION_BOOL(struct settings, pool, "pool", NULL, "keys and values are maxima of 2 x 2"),
    HEED_OPTION_INT(struct settings, judge_updates, "judge-updates", "1500", 1, 1000000, "N",
                    "updates of the classifier that judges; before those of the networks"),
    HEED_OPTION_INT(struct settings, test_pictures, "test-pictures", "2000", 2, 1000000, "N",
                    "pictures in the test"),
};
static const char *const quick[] = {
    "side",   "16", "updates",       "2400", "valid-every",   "600", "batch", "16", "rate", "0.001",
    "latent", "32", "judge-updates", "500",  "test-pictures", "500", NULL};
static const char *const corners[] = {"updates", "10000",  "batch", "16", "rate",
                                      "0.001",   "latent", "32",    NULL};
static const char *const fashion[] = {
    "task", "fashion", "updates", "20000",         "width", "32", "values",
    "2",    "pool",    "true",    "test-pictures", "10000", NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "corners of 16 x 16 pixels, in seconds", quick},
        {"corners", "two equal glyphs in opposite corners", corners},
        {"fashion", "Fashion-MNIST; give --data", fashion},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {
    "heed lab sagan --quick --model m", "heed lab sagan --preset corners --model m",
    "heed lab sagan --preset fashion --data fashion-mnist --model m", NULL};
static const heed_option_set options = {
    .command = "heed lab sagan",
    .summary = "SAGAN: pictures made by attention among their pixels (Zhang et al. 2019)",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

struct system {
    const struct settings *settings;
    sagan_game game;
    sagan_judge judge;
};

/* Two time-scale updates: each set has a rate of its own. */
static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    sagan_game_build(&y->game, set, s);
    if (set == SAGAN_DISCRIMINATOR)
        heed_params_set_group(s.params, "", (heed_group){.rate_factor = y->settings->rate_ratio},
                              NULL);
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    const struct system *y = context;
    (void)sum;
    return heed_scale(
        t, sagan_game_loss(t, &y->game, pass->set, y->settings->shared.batch, &pass->rng),
        pass->weight, 0);
}

static int data(void *context, heed_fingerprint *out)
{
    const struct system *y = context;
    if (!y->game.data.pictures.train)
        return 0;
    out[0] = (heed_fingerprint){"pictures",
                                heed_pictures_describe(y->game.data.pictures.train).checksum};
    return 1;
}

/* ---- how good what is made is ---- */

/* Pictures as the judge reads them. */
struct reading {
    int64_t count;
    heed_real *features;      /* (count, looks*F) */
    int32_t *kinds, *classes; /* (count, looks); (count) what was asked for, or is there */
};

/* Those of a part, or, with PARTS, made ones. */
enum { PARTS = PICTURES_TEST + 1 };
static heed_status read_pictures(const struct system *y, heed_tape *t, int part, int64_t count,
                                 heed_arena *arena, struct reading *out, heed_error *err)
{
    enum { AT_ONCE = 50 };
    const sagan_data *d = &y->game.data;
    const int64_t size = d->side * d->side, width = d->looks * y->judge.features;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5000011});
    heed_real *pixels = heed_arena_allocate(arena, (size_t)(AT_ONCE * size) * sizeof *pixels);
    *out = (struct reading){
        count, heed_arena_allocate(arena, (size_t)(count * width) * sizeof *out->features),
        heed_arena_allocate(arena, (size_t)(count * d->looks) * sizeof *out->kinds),
        heed_arena_allocate(arena, (size_t)count * sizeof *out->classes)};
    if (!pixels || !out->features || !out->kinds || !out->classes)
        return lab_fail(err, HEED_MEMORY, "out of memory for %lld pictures", (long long)count);
    for (int64_t i = 0, n; i < count && !err->status; i += n) {
        n = count - i < AT_ONCE ? count - i : AT_ONCE;
        for (int64_t k = 0; k < n; k++)
            out->classes[i + k] = part == PARTS ? -1
                                                : sagan_data_take(d, (picture_part)part, i + k,
                                                                  &rng, pixels + k * size, NULL);
        heed_tape_reset(t);
        if (part == PARTS) {
            heed_tensor *made = sagan_game_make(t, &y->game, i, n, out->classes + i, NULL);
            if (!made)
                return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
            memcpy(pixels, heed_tensor_data(made), (size_t)(n * size) * sizeof *pixels);
        }
        sagan_judge_read(&y->judge, t, pixels, n, out->features + i * width,
                         out->kinds + i * d->looks, err);
    }
    return err->status;
}

struct score {
    double right; /* of 100: the corners agree, or the class is the one asked for */
    double least; /* share of the rarest kind, of 100 */
    int kinds;    /* that come up: each in at least .3 / kinds of the pictures */
};

/* The kind of a picture: what all its places show; -1: they do not agree, or show nothing. */
static int kind_of(const sagan_data *d, const int32_t *kinds)
{
    for (int64_t k = 0; k < d->looks; k++)
        if (kinds[k] != kinds[0] || kinds[k] == d->kinds)
            return -1;
    return kinds[0];
}

static struct score score_of(const sagan_data *d, const struct reading *r)
{
    enum { MOST_KINDS = 1024 };
    int64_t count[MOST_KINDS] = {0};
    struct score s = {.least = 100};
    for (int64_t i = 0; i < r->count; i++) {
        const int kind = kind_of(d, r->kinds + i * d->looks);
        const bool right = d->classes > 1 ? kind == r->classes[i] : kind >= 0;
        s.right += right ? 100 / (double)r->count : 0;
        if (kind >= 0 && kind < MOST_KINDS)
            count[kind]++;
    }
    for (int64_t k = 0; k < d->kinds && k < MOST_KINDS; k++) {
        const double share = 100 * (double)count[k] / (double)r->count;
        s.least = fmin(s.least, share);
        s.kinds += share >= 30 / (double)d->kinds;
    }
    return s;
}

static double apart(const struct system *y, const struct reading *a, const struct reading *b)
{
    return frechet_distance(a->features, a->count, b->features, b->count,
                            y->game.data.looks * y->judge.features);
}

static double gamma_of(const sagan_block *b)
{
    return b->gamma ? (double)heed_tensor_data(b->gamma)[0] : NAN;
}

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    enum { PICTURES = 1000 };
    const struct system *y = context;
    const int64_t n = y->settings->test_pictures < PICTURES ? y->settings->test_pictures : PICTURES;
    struct reading real, made;
    heed_arena *arena = heed_arena_new(NULL, err);
    if (!arena || read_pictures(y, t, PICTURES_VALID, n, arena, &real, err) ||
        read_pictures(y, t, PARTS, n, arena, &made, err)) {
        heed_arena_free(arena);
        return err->status;
    }
    const struct score s = score_of(&y->game.data, &made);
    out[0] = (heed_measure){"distance", apart(y, &real, &made), false};
    out[1] = (heed_measure){y->game.data.classes > 1 ? "as asked, %" : "agree, %", s.right, true};
    out[2] = (heed_measure){"kinds", s.kinds, true};
    *count = 3;
    if (y->game.generator.block.gamma) {
        out[3] = (heed_measure){"gamma", gamma_of(&y->game.generator.block), true};
        out[4] = (heed_measure){"gamma of the discriminator",
                                gamma_of(&y->game.discriminator.block), true};
        *count = 5;
    }
    heed_arena_free(arena);
    return HEED_OK;
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    const sagan_data *d = &y->game.data;
    const int64_t n = y->settings->test_pictures;
    const bool agree = d->classes == 1, whole = y->settings->middle == SAGAN_ATTENTION &&
                                                d->side >= 32; /* the tasks as they are meant */
    struct reading real, other, made;
    if (read_pictures(y, t, PICTURES_TEST, n, r->arena, &real, err) ||
        read_pictures(y, t, PICTURES_TRAIN, n, r->arena, &other, err) ||
        read_pictures(y, t, PARTS, n, r->arena, &made, err))
        return err->status;
    const double distance = apart(y, &real, &made), floor = apart(y, &real, &other);
    const struct score s = score_of(d, &made), ideal = score_of(d, &real);
    lab_report(r, s.right, agree && whole ? LAB_AT_LEAST : LAB_NO_TARGET, 90,
               agree ? "corners that agree, %%" : "read as the class asked for, %%");
    lab_report(r, ideal.right, LAB_NO_TARGET, 0, "the same of real pictures, %%");
    lab_report(r, s.kinds, whole ? LAB_AT_LEAST : LAB_NO_TARGET, (double)d->kinds,
               "kinds that come up, of %lld", (long long)d->kinds);
    lab_report(r, s.least, LAB_NO_TARGET, 0, "the rarest kind, %% of the pictures");
    lab_report(r, distance, LAB_NO_TARGET, 0, "FID' of %lld pictures", (long long)n);
    lab_report(r, floor, LAB_NO_TARGET, 0, "FID' of as many real ones: the floor");
    lab_report(r, distance / floor, agree || !whole ? LAB_NO_TARGET : LAB_AT_MOST, 3,
               "FID' in floors");
    if (!y->game.generator.block.gamma)
        return HEED_OK;
    lab_report(r, gamma_of(&y->game.generator.block), LAB_NO_TARGET, 0, "gamma of the generator");
    lab_report(r, gamma_of(&y->game.discriminator.block), LAB_NO_TARGET, 0,
               "gamma of the discriminator");
    return HEED_OK;
}

static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    const struct system *y = context;
    char path[4096 + 32];
    snprintf(path, sizeof path, "%s/judge.safetensors", r->folder);
    return heed_params_save(y->judge.params, path, err) ? err->status
                                                        : sagan_draw(&y->game, r, t, err);
}

/* ---- from options to a run ---- */

static bool is_power(int64_t n)
{
    return (n & (n - 1)) == 0;
}

static heed_status check(const struct settings *o, heed_error *err)
{
    if (o->task == SAGAN_FASHION && !o->data)
        return lab_fail(err, HEED_ARGUMENT, "missing option '--data': the folder of pictures");
    if (o->task != SAGAN_FASHION && o->data)
        return lab_fail(err, HEED_ARGUMENT, "option '--data' has no effect with '--task %s'",
                        task_names[o->task]);
    if (!is_power(o->side))
        return lab_fail(err, HEED_ARGUMENT, "option '--side' is %lld, expected a power of 2",
                        (long long)o->side);
    return HEED_OK;
}

static void settle(struct system *y)
{
    const struct settings *o = y->settings;
    y->game.sizes = (sagan_sizes){.side = y->game.data.side,
                                  .classes = y->game.data.classes,
                                  .noise = o->latent,
                                  .width = o->width,
                                  .at = o->at,
                                  .keys = o->keys,
                                  .values = o->values,
                                  .pool = o->pool,
                                  .middle = (sagan_middle)o->middle};
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    static const char *const sets[] = {"generator", "discriminator"}, *const tests[] = {
                                                                          "test-pictures", NULL};
    static const double betas[] = {0, 0.9};
    const struct settings *o = settings;
    struct system y = {.settings = o};
    if (check(o, err))
        return err->status;
    const lab_system system = {.context = &y,
                               .build = build,
                               .loss = loss,
                               .data = data,
                               .validate = validate,
                               .unit = "of the hinge",
                               .sets = SAGAN_SETS,
                               .set_names = sets,
                               .betas = betas,
                               .may_change = tests,
                               .evaluate = evaluate,
                               .draw = draw};
    if (sagan_data_open(&y.game.data, (sagan_task)o->task, o->data, o->side, o->grain, r->arena,
                        err) == HEED_OK) {
        settle(&y);
        if (!is_power(o->at) || 2 * o->at > y.game.data.side)
            lab_fail(err, HEED_ARGUMENT,
                     "option '--at' is %lld, expected a power of 2 up to half of the pictures' "
                     "%lld pixels",
                     (long long)o->at, (long long)y.game.data.side);
        else if (sagan_judge_open(&y.judge, &y.game.data, o->judge_updates, (int)o->shared.threads,
                                  err) == HEED_OK)
            lab_experiment(r, &lab_sagan, settings, &system, err);
        sagan_judge_close(&y.judge);
    }
    sagan_data_close(&y.game.data);
    return err->status;
}

const lab lab_sagan = {
    .name = "sagan", .options = &options, .settings = sizeof(struct settings), .run = run};
