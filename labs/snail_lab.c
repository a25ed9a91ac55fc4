/* snail_lab.c: `heed lab snail`: learns to learn from one or a few examples: of Gaussian classes,
 * of made-up characters, or of Omniglot's; tests on classes that were never seen and draws which
 * of the examples the question looks at. */
#include "lab.h"
#include "snail_tasks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct settings {
    lab_common shared;
    const char *data;
    int task; /* snail_task */
    int64_t ways, shots, filters, width, dense, dilation, scale, test_episodes;
    double noise;
    bool attention, convolution;
};
static const char *const task_names[] = {"prototypes", "characters", "omniglot", NULL};
static const heed_option fields[] = {
    LAB_OPTIONS(struct settings, shared),
    LAB_TRAINING(struct settings, shared, "20000", "32", "1000", "adam", "0.0005", NULL, "5", NULL),
    HEED_OPTION_CHOICE(struct settings, task, "task", "prototypes", task_names,
                       "what is shown: points around a middle, drawn characters, Omniglot"),
    HEED_OPTION_TEXT(struct settings, data, "data", NULL, "DIR",
                     "omniglot: IDX files and characters.tsv"),
    HEED_OPTION_INT(struct settings, ways, "ways", "5", 2, 64, "N", "classes of an episode"),
    HEED_OPTION_INT(struct settings, shots, "shots", "1", 1, 19, "N", "examples of each"),
    HEED_OPTION_REAL(struct settings, noise, "noise", "0.7", 0, 10, "S",
                     "prototypes: how far examples lie from the middle"),
    HEED_OPTION_INT(struct settings, filters, "filters", "32", 1, 512, "N",
                    "of the convolutions that embed a picture"),
    HEED_OPTION_INT(struct settings, width, "width", "64", 1, 1024, "N",
                    "numbers that a picture becomes"),
    HEED_OPTION_INT(struct settings, dense, "dense", "64", 1, 1024, "N",
                    "filters of a dense block"),
    HEED_OPTION_INT(struct settings, dilation, "dilation", "1", 1, 2, "N",
                    "of the first dense block; the paper prints 2"),
    HEED_OPTION_INT(struct settings, scale, "scale", "2", 1, 16, "N",
                    "attention has keys and values of the paper's sizes divided by N"),
    HEED_OPTION_BOOL(struct settings, attention, "attention", "true", "attention blocks"),
    HEED_OPTION_BOOL(struct settings, convolution, "convolution", "true",
                     "blocks of causal convolutions"),
    HEED_OPTION_INT(struct settings, test_episodes, "test-episodes", "2000", 1, 1000000, "N",
                    "episodes in the test"),
};
static const char *const quick[] = {"batch", "32",   "updates", "1800",     "valid-every",
                                    "600",   "rate", "0.003",   "rate-end", "0.00005",
                                    "dense", "16",   "scale",   "8",        "test-episodes",
                                    "1000",  NULL};
static const char *const prototypes[] = {"updates",  "8000",    "rate", "0.001",
                                         "rate-end", "0.00001", NULL};
static const char *const characters[] = {"task",  "characters", "updates",  "6000",
                                         "rate",  "0.001",      "rate-end", "0.00001",
                                         "batch", "16",         NULL};
static const char *const omniglot[] = {"task",  "omniglot", "updates", "40000", "rate",
                                       "0.001", "rate-end", "0.00001", NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "prototypes with a small network, in seconds", quick},
        {"prototypes", "points around a middle, 5 classes, one example each", prototypes},
        {"characters", "made-up characters, 5 classes, one example each", characters},
        {"omniglot", "5 classes, one example each; give --data", omniglot},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {
    "heed lab snail --quick --model m",
    "heed lab snail --preset omniglot --shots 5 --data omniglot --model m", NULL};
static const heed_option_set options = {
    .command = "heed lab snail",
    .summary =
        "SNAIL: learning from a few examples, by attention and convolution (Mishra et al. 2018)",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

struct system {
    const struct settings *settings;
    snail_source source;
    snail_sizes sizes;
    snail net;
};

/* A(64,32) T A(256,128) T A(512,256) in the paper. */
static snail_sizes sizes_of(const struct settings *o, const snail_source *source)
{
    const int64_t n = o->scale;
    return (snail_sizes){.side = snail_source_side(source),
                         .width = snail_source_side(source) ? o->width : SNAIL_PROTOTYPE,
                         .filters = o->filters,
                         .ways = o->ways,
                         .shots = o->shots,
                         .keys = {64 / n, 256 / n, 512 / n},
                         .values = {32 / n, 128 / n, 256 / n},
                         .dense = o->dense,
                         .dilation = o->dilation,
                         .attention = o->attention,
                         .convolution = o->convolution};
}

static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    (void)set;
    snail_build(&y->net, s, &y->sizes);
}

/* Nats an episode; the labels of the questions in *asked. */
static heed_tensor *ask(struct system *y, heed_tape *t, snail_part part, int64_t episodes,
                        const heed_rng *rng, snail_batch *b, int32_t **asked, heed_tensor **logits)
{
    const int64_t length = y->sizes.ways * y->sizes.shots + 1;
    heed_arena *arena = heed_tape_arena(t);
    *asked = heed_arena_allocate(arena, (size_t)episodes * sizeof **asked);
    if (!*asked || !snail_draw(&y->source, &y->sizes, part, episodes, rng, arena, b))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for episodes");
    for (int64_t i = 0; i < episodes; i++)
        (*asked)[i] = b->label[(i + 1) * length - 1];
    *logits = snail_logits(t, &y->net, b, NULL);
    return heed_scale(t, heed_cross_entropy(t, *logits, *asked, 0), 1 / (double)episodes, 0);
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct system *y = context;
    snail_batch b;
    int32_t *asked;
    heed_tensor *logits;
    (void)sum;
    heed_tensor *nats =
        ask(y, t, SNAIL_TRAIN, y->settings->shared.batch, &pass->rng, &b, &asked, &logits);
    return heed_scale(t, nats, pass->weight, 0);
}

/* ---- testing ---- */

struct score {
    double nats, right, bayes; /* an episode; of 100 */
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

static heed_status test(struct system *y, heed_tape *t, snail_part part, int64_t episodes,
                        struct score *s, heed_error *err)
{
    enum { AT_ONCE = 50 };
    *s = (struct score){0};
    for (int64_t done = 0, n; done < episodes; done += n) {
        const heed_rng rng = heed_rng_stream(
            &(heed_rng_key){.seed = 1000003, .step = (uint64_t)done, .set = (uint32_t)part});
        snail_batch b;
        int32_t *asked;
        heed_tensor *logits;
        n = episodes - done < AT_ONCE ? episodes - done : AT_ONCE;
        heed_tape_reset(t);
        heed_tensor *nats = ask(y, t, part, n, &rng, &b, &asked, &logits);
        if (!nats)
            return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
        s->nats += (double)heed_tensor_data(nats)[0] * (double)n / (double)episodes;
        for (int64_t i = 0; i < n; i++)
            s->right += said(logits, i) == asked[i] ? 100 / (double)episodes : 0;
        if (y->source.task == SNAIL_PROTOTYPES)
            s->bayes += 100 * (double)snail_bayes(&y->sizes, &b) / (double)episodes;
    }
    return HEED_OK;
}

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    enum { EPISODES = 500 };
    struct score s;
    if (test(context, t, SNAIL_VALID, EPISODES, &s, err))
        return err->status;
    out[0] = (heed_measure){"loss", s.nats, false};
    out[1] = (heed_measure){"right, %", s.right, true};
    *count = 2;
    return HEED_OK;
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    const struct settings *o = y->settings;
    const bool whole = o->attention && o->convolution;
    struct score s;
    if (test(y, t, SNAIL_TEST, o->test_episodes, &s, err))
        return err->status;
    lab_report(r, s.right, LAB_NO_TARGET, 0, "%lld-way, %lld-shot, classes never seen, right, %%",
               (long long)o->ways, (long long)o->shots);
    lab_report(r, s.nats, LAB_NO_TARGET, 0, "nats an episode");
    if (o->task == SNAIL_PROTOTYPES) {
        lab_report(r, s.bayes, LAB_NO_TARGET, 0, "the best possible guess, right, %%");
        lab_report(r, 100 * s.right / s.bayes, whole ? LAB_AT_LEAST : LAB_NO_TARGET, 95,
                   "of the best possible, %%");
    }
    return HEED_OK;
}

/* ---- pictures ---- */

/* Some episodes, a column each: its examples from top to bottom, the question below them; those of
 * the question's class, and what the question looks at. */
static heed_status draw_vectors(struct system *y, lab_session *r, heed_tape *t, heed_error *err)
{
    enum { SHOWN = 32 };
    const int64_t length = y->sizes.ways * y->sizes.shots + 1;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3000017});
    snail_batch b;
    heed_tensor *looked = NULL;
    const char *svg;
    heed_tape_reset(t);
    heed_real *seen = heed_arena_allocate(r->arena, (size_t)(SHOWN * length) * sizeof *seen),
              *own = heed_arena_allocate(r->arena, (size_t)(SHOWN * length) * sizeof *own);
    if (!seen || !own ||
        !snail_draw(&y->source, &y->sizes, SNAIL_TEST, SHOWN, &rng, heed_tape_arena(t), &b) ||
        !snail_logits(t, &y->net, &b, &looked))
        return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
    for (int e = 0; e < SHOWN; e++)
        for (int64_t i = 0; i < length; i++) {
            const heed_real *p = heed_tensor_data(looked) + (e * length + length - 1) * length;
            seen[i * SHOWN + e] = p[i];
            own[i * SHOWN + e] = b.label[e * length + i] == b.label[(e + 1) * length - 1];
        }
    const heed_heat_panel panels[] = {
        {"examples of the question's class, and, last, the question", own, length, SHOWN, 0, 1},
        {"where the question looks", seen, length, SHOWN, 0, 1}};
    if (heed_heat_svg("Which examples a question looks at", "episodes", panels, 2, r->arena, &svg,
                      err))
        return err->status;
    return lab_write(r, "looks.svg", svg, err);
}

static heed_status draw_pictures(struct system *y, lab_session *r, heed_tape *t, heed_error *err)
{
    enum { SHOWN = 4, MOST = 26 };
    const int64_t all = y->sizes.ways * y->sizes.shots + 1, side = y->sizes.side,
                  length = all < MOST ? all : MOST;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3000017});
    snail_batch b;
    heed_tensor *looked = NULL;
    heed_image_cell cells[SHOWN * MOST];
    char titles[SHOWN * MOST][24];
    const char *svg;
    heed_tape_reset(t);
    heed_real *weights =
        heed_arena_allocate(heed_tape_arena(t), (size_t)(SHOWN * length) * sizeof *weights);
    heed_tensor *logits = weights && snail_draw(&y->source, &y->sizes, SNAIL_TEST, SHOWN, &rng,
                                                heed_tape_arena(t), &b)
                              ? snail_logits(t, &y->net, &b, &looked)
                              : NULL;
    if (!logits)
        return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
    for (int e = 0; e < SHOWN; e++)
        for (int64_t i = 0; i < length; i++) {
            /* The question first, then the examples as they were shown. */
            const int64_t at = i ? i - 1 : all - 1, row = e * all + at, k = e * length + i;
            const double p = (double)heed_tensor_data(looked)[(e * all + all - 1) * all + at];
            if (i)
                snprintf(titles[k], sizeof titles[k], "%d: %.0f %%", b.label[row], 100 * p);
            else
                snprintf(titles[k], sizeof titles[k], "%d, said %d", b.label[row], said(logits, e));
            cells[k] = (heed_image_cell){.title = titles[k],
                                         .pixels = b.shown + row * side * side,
                                         .height = side,
                                         .width = side,
                                         .channels = 1,
                                         .high = 1};
        }
    if (heed_images_svg("A question, and how much it looks at each example", cells, SHOWN * length,
                        length, 84, r->arena, &svg, err))
        return err->status;
    return lab_write(r, "looks.svg", svg, err);
}

static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    if (!y->sizes.attention)
        return HEED_OK;
    return y->sizes.side ? draw_pictures(y, r, t, err) : draw_vectors(y, r, t, err);
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    const struct settings *o = settings;
    struct system y = {.settings = settings};
    static const char *const tests[] = {"test-episodes", NULL};
    if (o->task == SNAIL_OMNIGLOT && !o->data)
        return lab_fail(err, HEED_ARGUMENT, "missing option '--data': the folder of Omniglot");
    if (o->task != SNAIL_OMNIGLOT && o->data)
        return lab_fail(err, HEED_ARGUMENT, "option '--data' has no effect with '--task %s'",
                        task_names[o->task]);
    if (snail_source_open(&y.source, (snail_task)o->task, o->noise, o->data, r->arena, err) ==
        HEED_OK) {
        y.sizes = sizes_of(o, &y.source);
        lab_system system = {.context = &y,
                             .build = build,
                             .loss = loss,
                             .validate = validate,
                             .unit = "nats an episode",
                             .may_change = tests,
                             .evaluate = evaluate,
                             .draw = draw};
        lab_experiment(r, &lab_snail, settings, &system, err);
    }
    snail_source_close(&y.source);
    return err->status;
}

const lab lab_snail = {
    .name = "snail", .options = &options, .settings = sizeof(struct settings), .run = run};
