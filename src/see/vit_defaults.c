/* vit_defaults.c: what a Vision Transformer's run does where nothing was asked for.  Everything
 * follows from the first picture, the number of pictures N, and the time there is:
 *
 *   side        the first picture's, if that is a small square; else up to 64
 *   patch       the smallest that leaves at most 8 in a line
 *   model       4 layers of d 64 below 3,000 pictures, 6 of 96, from 150,000 on 8 of 192
 *   batch       16 below 1,000 pictures, 32 below 3,000, else 64
 *   updates     3,700 N^-1/2 passes, 10 to 400; no more than fit into the time
 *   mirrored    pictures in colours; letters and digits are others in a mirror
 *
 * The number of updates is rounded and stored, so that a resumed run does not choose again. */
#include "base/error.h"
#include "see/vit_task.h"
#include "task/defaults.h"
#include "task/run_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_SIDE 64
#define LEAST_SIDE 8
#define MOST_ACROSS 8 /* patches in a line */
#define LEAST_ACROSS 4
#define MINUTES 30 /* where no limit is given */
#define SHARE 0.9  /* of the time that goes to updates; the rest to validation and saves */

struct chooser {
    heed__vit_training *t;
    heed_vit_recipe *r, plain;
    double seconds; /* an update; 0: not measured */
    bool short_of_time;
};

static bool is_free(const struct chooser *c, const char *name)
{
    return !heed__option_given(&heed__vit_set, &c->r->origins, c->r, &c->plain, name);
}

/* ---- sizes ---- */

/* The smallest patch that leaves at most `across` in a line. */
static int64_t patch_of(int64_t side, int64_t across)
{
    for (int64_t p = 1; p < side; p++)
        if (side % p == 0 && side / p <= across)
            return p;
    return side;
}

void heed__vit_choose_size(heed_vit_config *c, const heed_pictures_report *first)
{
    const int64_t shorter = first->height < first->width ? first->height : first->width;
    const bool small = first->height == first->width && shorter <= MOST_SIDE;
    c->channels = c->channels ? c->channels : first->channels;
    if (!c->side && c->patch) {
        const int64_t most = shorter < MOST_SIDE ? shorter : MOST_SIDE;
        c->side = small && shorter % c->patch == 0 ? shorter
                  : most < c->patch                ? c->patch
                                                   : most / c->patch * c->patch;
    } else if (!c->side) {
        const bool divides = shorter / patch_of(shorter, MOST_ACROSS) >= LEAST_ACROSS;
        c->side = small && divides
                      ? shorter
                      : (int64_t)heed__clamp((double)(shorter / 8 * 8), LEAST_SIDE, MOST_SIDE);
    }
    if (!c->patch) {
        c->patch = patch_of(c->side, MOST_ACROSS);
        if (c->side / c->patch < LEAST_ACROSS)
            c->patch = patch_of(c->side, 4 * MOST_ACROSS);
    }
}

static void choose_model(struct chooser *c)
{
    static const char *const sizes[] = {"layers", "d", "ff", "heads"};
    static const struct {
        int64_t below, layers, d, heads;
    } models[] = {{3000, 4, 64, 4}, {150000, 6, 96, 4}, {INT64_MAX, 8, 192, 6}};
    heed_vit_config *m = &c->r->model;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!is_free(c, sizes[i]))
            return;
    int k = 0;
    while (c->t->train.count >= models[k].below)
        k++;
    m->layers = models[k].layers;
    m->d = models[k].d;
    m->ff = 2 * m->d;
    m->heads = models[k].heads;
}

static void choose_batch(struct chooser *c)
{
    heed_vit_train_options *o = &c->r->train;
    const int64_t n = c->t->train.count;
    if (is_free(c, "batch"))
        o->batch = n < 1000 ? 16 : n < 3000 ? 32 : 64;
    if (o->batch > n)
        o->batch = n;
    if (is_free(c, "mirror"))
        o->mirror = c->r->model.channels == 3;
}

/* ---- time ---- */

struct trial {
    struct chooser *c;
    heed_vit_net net;
    heed_params *params;
    heed_tape *tape;
    heed_optimizer *optimizer;
    uint64_t step;
};

/* Of a grey picture: what is in it costs no time. */
static heed_status one_update(void *context, heed_error *err)
{
    struct trial *x = context;
    const heed_vit_recipe *r = x->c->r;
    const heed_vit_config *m = &r->model;
    const int64_t n = r->train.batch;
    for (int64_t i = 0; i < r->train.loop.accumulate; i++) {
        heed_tape_reset(x->tape);
        heed_tape_step(x->tape, x->step, (uint32_t)i, 0);
        int32_t *label = heed_arena_allocate(heed_tape_arena(x->tape), (size_t)n * sizeof *label);
        if (!label)
            return heed__fail(err, HEED_MEMORY, "out of memory to measure the speed of training");
        memset(label, 0, (size_t)n * sizeof *label);
        heed_tensor *pixels =
            heed_input(x->tape, HEED_SHAPE(n * m->side * m->side, m->channels), NULL);
        heed_tensor *logits = heed_vit_logits(x->tape, &x->net, pixels, NULL);
        heed_tensor *loss = heed_cross_entropy(x->tape, logits, label, 0);
        if (heed_backward(x->tape, heed_scale(x->tape, loss, 1 / (double)n, 0)))
            return heed__fail(err, heed_tape_error(x->tape)->status, "%s",
                              heed_tape_error(x->tape)->text);
    }
    x->step++;
    heed_clip_norm(x->params, 1, (int)r->train.loop.threads);
    heed_optimizer_step(x->optimizer, 1e-6, (int)r->train.loop.threads);
    return HEED_OK;
}

static heed_status measure(struct chooser *c, heed_error *err)
{
    const heed_allocator *a = &c->t->allocator;
    struct trial x = {.c = c};
    heed_arena *arena = heed_arena_new(a, err);
    const heed_tape_options tape = {
        .allocator = a, .threads = (int)c->r->train.loop.threads, .seed = 1};
    heed_status status = HEED_MEMORY;
    if (arena && (x.params = heed_params_new(a, err)) && (x.tape = heed_tape_new(&tape, err))) {
        heed_vit_build(&x.net, heed_params_scope(x.params), &c->r->model, arena);
        status = heed_params_finish(x.params, 1, err);
        if (!status && !(x.optimizer = heed_optimizer_new(
                             x.params, &(heed_optimizer_options){.kind = HEED_ADAM}, a, err)))
            status = HEED_MEMORY;
        if (!status)
            status = heed__time_calls(one_update, &x, &c->seconds, err);
    }
    heed_optimizer_free(x.optimizer);
    heed_tape_free(x.tape);
    heed_params_free(x.params);
    heed_arena_free(arena);
    return status;
}

static double an_update(const struct chooser *c)
{
    return (double)(c->r->train.batch * c->r->train.loop.accumulate);
}

static heed_status choose_length(struct chooser *c, heed_error *err)
{
    heed_loop_options *o = &c->r->train.loop;
    const double n = (double)c->t->train.count;
    const double passes =
        o->max_epochs ? (double)o->max_epochs : heed__clamp(3700 / sqrt(n), 10, 400);
    const bool total = o->schedule == HEED_SCHEDULE_COSINE || o->schedule == HEED_SCHEDULE_LINEAR;
    double updates = passes * n / an_update(c);
    if (o->max_updates || !total)
        return HEED_OK;
    heed_status status = measure(c, err);
    if (status)
        return status;
    const double minutes = o->max_minutes > 0 ? o->max_minutes : MINUTES;
    const double affordable = SHARE * 60 * minutes / c->seconds;
    c->short_of_time = affordable < updates;
    updates = fmin(updates, affordable);
    o->max_updates = heed__rounded(fmax(updates, 50));
    if (!is_free(c, "warmup") && o->max_updates <= o->warmup)
        o->max_updates = 2 * o->warmup;
    return HEED_OK;
}

static void choose_rate(struct chooser *c)
{
    heed_loop_options *o = &c->r->train.loop;
    if (is_free(c, "warmup") && o->max_updates)
        o->warmup = (int64_t)heed__clamp((double)o->max_updates / 20, 0, 1000);
    if (is_free(c, "valid-every") && is_free(c, "valid-minutes") && o->max_updates)
        o->valid_every = heed__rounded(fmax((double)o->max_updates / 20, 20));
}

/* ---- what is said ---- */

static void line(const struct chooser *c, const char *text)
{
    const heed_log_sink *log = &c->t->hooks.log;
    if (log->write)
        log->write(log->context, HEED_LOG_INFO, text);
}

static void say(const struct chooser *c)
{
    const heed_vit_config *m = &c->r->model;
    const heed_vit_train_options *o = &c->r->train;
    char text[400], why[160] = "", time[48];
    snprintf(text, sizeof text,
             "%lld pictures of %lld classes, %lld held out: %lld x %lld pixels of %lld channels, "
             "%lld patches; %lld layers, d %lld, ff %lld, %lld heads",
             (long long)c->t->train.count, (long long)m->classes, (long long)c->t->valid.count,
             (long long)m->side, (long long)m->side, (long long)m->channels,
             (long long)(heed_vit_patches(m) * heed_vit_patches(m)), (long long)m->layers,
             (long long)m->d, (long long)m->ff, (long long)m->heads);
    line(c, text);
    if (c->seconds > 0)
        snprintf(why, sizeof why, ", %s here (%.2g s each, measured)%s",
                 heed__duration((double)o->loop.max_updates * c->seconds / SHARE, time), c->seconds,
                 !c->short_of_time         ? ""
                 : o->loop.max_minutes > 0 ? ": what --max-minutes leaves time for"
                                           : ": half an hour; more with --max-minutes");
    if (o->loop.max_updates) {
        snprintf(text, sizeof text, "%lld updates of %.0f pictures: %.1f times through them%s",
                 (long long)o->loop.max_updates, an_update(c),
                 (double)o->loop.max_updates * an_update(c) / (double)c->t->train.count, why);
        line(c, text);
    }
    snprintf(text, sizeof text,
             "learning rate: rises to %g in %lld updates; dropout %g, label smoothing %g; turned "
             "by %g degrees, zoomed by %g, moved by %g%s; validation every %lld updates",
             o->loop.rate, (long long)o->loop.warmup, m->dropout, o->label_smoothing, o->turn,
             o->zoom, o->shift, o->mirror ? ", mirrored" : "", (long long)o->loop.valid_every);
    line(c, text);
}

heed_status heed__vit_choose(heed__vit_training *t, heed_error *err)
{
    struct chooser c = {.t = t, .r = &t->recipe};
    heed_option_result none;
    heed_status status = heed_option_parse(&heed__vit_set, 0, NULL, &c.plain, t->arena, &none, err);
    if (status)
        return status;
    choose_model(&c);
    choose_batch(&c);
    status = choose_length(&c, err);
    if (status)
        return status;
    choose_rate(&c);
    say(&c);
    return HEED_OK;
}
