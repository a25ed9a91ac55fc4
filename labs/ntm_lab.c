/* ntm_lab.c: `heed lab ntm`: trains a machine (or the LSTM beside it) on a task of the paper, tests
 * it on longer sequences than it was trained on, and draws its memory at work. */
#include "lab.h"
#include "ntm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    lab_common shared;
    int task; /* ntm_task */
    int64_t longest;
    ntm_sizes sizes;
    int64_t test_sequences;
};
static const char *const task_names[] = {"copy", "repeat-copy", "recall", "ngrams", "sort", NULL};
static const heed_option fields[] = {
    LAB_OPTIONS(struct settings, shared),
    LAB_TRAINING(struct settings, shared, "50000", "1", "2500", "rmsprop", "0.0001", "0.9", NULL,
                 "10"),
    HEED_OPTION_CHOICE(struct settings, task, "task", "copy", task_names, "what to learn"),
    HEED_OPTION_INT(struct settings, longest, "longest", NULL, 0, 1000, "N",
                    "longest sequence in training; 0: the paper's.  Tests grow with it"),
    HEED_OPTION_CHOICE(struct settings, sizes.arch, "arch", "ntm",
                       HEED_WORDS("ntm", "ntm-ff", "lstm"),
                       "a machine with an LSTM or a feed-forward controller, or an LSTM alone"),
    HEED_OPTION_INT(struct settings, sizes.units, "units", "100", 1, 4096, "N",
                    "of the controller, in each layer"),
    HEED_OPTION_INT(struct settings, sizes.layers, "layers", "1", 1, HEED_RNN_MAX_LAYERS, "N",
                    "of an LSTM"),
    HEED_OPTION_INT(struct settings, sizes.locations, "locations", "128", 2, 65536, "N",
                    "of the memory"),
    HEED_OPTION_INT(struct settings, sizes.width, "width", "20", 1, 4096, "N",
                    "numbers in a location"),
    HEED_OPTION_INT(struct settings, sizes.read_heads, "read-heads", "1", 1, 64, "N",
                    "heads that read"),
    HEED_OPTION_INT(struct settings, sizes.write_heads, "write-heads", "1", 1, 64, "N",
                    "heads that write"),
    HEED_OPTION_CHOICE(struct settings, sizes.shift, "shift", "softmax",
                       HEED_WORDS("softmax", "number"),
                       "how a head says where to move: a softmax over the offsets, or one number "
                       "between two of them"),
    HEED_OPTION_INT(struct settings, sizes.reach, "reach", "1", 0, 64, "N", "offsets from -N to N"),
    HEED_OPTION_BOOL(struct settings, sizes.read_first, "read-first", NULL,
                     "read a step's memory before the write, not after it"),
    HEED_OPTION_INT(struct settings, test_sequences, "test-sequences", "200", 1, 100000, "N",
                    "sequences of each size in the test"),
};

/* The paper's settings where they train here as they did there; tables 1 to 3. */
#define BATCHES "batch", "16", "rate", "0.0003", "valid-every", "1000"
#define LSTM_ALONE "arch", "lstm", "layers", "3", "units", "256", "rate", "0.00003"
static const char *const quick[] = {"longest",     "6",    "locations", "20",      "units",
                                    "64",          "rate", "0.0003",    "updates", "25000",
                                    "valid-every", "2500", NULL};
static const char *const copy[] = {"task", "copy", "seeds", "3", NULL};
static const char *const copy_lstm[] = {"task", "copy", LSTM_ALONE, NULL};
/* Two seeds in four find out how to repeat. */
static const char *const repeat_copy[] = {
    "task",     "repeat-copy", "arch", "ntm-ff",      "rate", "0.0003", "rate-end",
    "0.000003", "seeds",       "4",    "valid-every", "2500", NULL};
static const char *const recall[] = {"task", "recall", BATCHES, "updates", "15000", NULL};
static const char *const ngrams[] = {"task", "ngrams", BATCHES, "updates", "10000", NULL};
static const char *const sort[] = {"task", "sort",        BATCHES, "updates", "13000", "read-heads",
                                   "5",    "write-heads", "5",     "layers",  "2",     NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "copy, up to 6 vectors, in seconds", quick},
        {"copy", "copy up to 20 vectors, test on 120, three seeds", copy},
        {"copy-lstm", "the same for an LSTM of 3 layers of 256", copy_lstm},
        {"repeat-copy", "up to 10 vectors up to 10 times, test on 20", repeat_copy},
        {"recall", "which of up to 6 items came after this one? test on 12", recall},
        {"ngrams", "predict bits whose law must be found out", ngrams},
        {"sort", "20 vectors by priority", sort},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {"heed lab ntm --quick --model m",
                                       "heed lab ntm --preset copy --model m", NULL};
static const heed_option_set options = {
    .command = "heed lab ntm",
    .summary = "Neural Turing Machine: learns to use a memory (Graves et al. 2014)",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

struct system {
    const struct settings *settings;
    ntm machine;
};

static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    (void)set;
    ntm_sizes sizes = y->settings->sizes;
    ntm_task_channels((ntm_task)y->settings->task, &sizes.in, &sizes.out);
    ntm_build(&y->machine, s, &sizes);
}

/* ---- a sequence ---- */

/* Section 4: the cross-entropy of independent bits, - y log p - (1 - y) log(1 - p) with
 * p = sigmoid(z), which is softplus(z) - y z; in bits, a bit. */
static heed_tensor *cross_entropy(heed_tape *t, heed_tensor *z, const ntm_batch *b)
{
    heed_tensor *y = heed_input(t, HEED_SHAPE((b->steps - b->first) * b->batch, b->out), b->target);
    heed_tensor *sum = heed_sum(t, heed_sub(t, heed_softplus(t, z), heed_mul(t, z, y)), HEED_ALL);
    return heed_scale(t, sum, 1 / (log(2) * (double)heed_tensor_count(y)), 0);
}

/* The paper's length, or as much shorter or longer as --longest says. */
static ntm_size scaled(const struct settings *s, ntm_size size)
{
    int64_t longest = ntm_task_largest((ntm_task)s->task).length;
    if (s->longest)
        size.length = (size.length * s->longest + longest - 1) / longest;
    return size;
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct system *y = context;
    ntm_task task = (ntm_task)y->settings->task;
    ntm_size size = scaled(y->settings, ntm_task_draw_size(task, &pass->rng));
    ntm_batch b;
    (void)sum;
    if (!ntm_task_draw(task, size, y->settings->shared.batch, &pass->rng, heed_tape_arena(t), &b))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for examples");
    heed_tensor *bits = cross_entropy(t, ntm_answer(t, &y->machine, &b, NULL), &b);
    return heed_scale(t, bits, pass->weight, 0);
}

/* ---- testing ---- */

struct tally {
    double bits;            /* cross-entropy a sequence */
    double wrong;           /* of all bits, per cent */
    double right_sequences; /* without a wrong bit, per cent */
    double optimum;         /* bits a sequence that the best predictor pays; N-grams only */
};

static int64_t wrong_bits(const heed_tensor *z, const ntm_batch *b, int64_t sequence)
{
    int64_t wrong = 0;
    const heed_real *say = heed_tensor_data(z);
    for (int64_t i = 0; i < b->steps - b->first; i++)
        for (int64_t j = 0; j < b->out; j++) {
            int64_t at = (i * b->batch + sequence) * b->out + j;
            wrong += (say[at] > 0) != (b->target[at] > 0);
        }
    return wrong;
}

/* `sequences` of one size, drawn from a stream of their own. */
static struct tally test(struct system *y, heed_tape *t, ntm_size size, int64_t sequences,
                         uint64_t seed)
{
    enum { AT_ONCE = 25 };
    ntm_task task = (ntm_task)y->settings->task;
    struct tally r = {0};
    int64_t bits = 0;
    for (int64_t done = 0; done < sequences; done += AT_ONCE) {
        int64_t n = sequences - done < AT_ONCE ? sequences - done : AT_ONCE;
        heed_rng rng = heed_rng_stream(
            &(heed_rng_key){.seed = seed, .step = (uint64_t)done, .node = (uint64_t)size.length});
        ntm_batch b;
        heed_tape_reset(t);
        if (!ntm_task_draw(task, size, n, &rng, heed_tape_arena(t), &b))
            return (struct tally){NAN, NAN, NAN, NAN};
        heed_tensor *z = ntm_answer(t, &y->machine, &b, NULL), *entropy = cross_entropy(t, z, &b);
        if (!entropy)
            return (struct tally){NAN, NAN, NAN, NAN};
        r.bits += (double)heed_tensor_data(entropy)[0] * (double)heed_tensor_count(z);
        r.optimum += task == NTM_NGRAMS ? ntm_ngrams_optimum(&b) * (double)n : 0;
        for (int64_t s = 0; s < n; s++) {
            int64_t wrong = wrong_bits(z, &b, s);
            r.wrong += (double)wrong;
            r.right_sequences += wrong == 0;
        }
        bits += heed_tensor_count(z);
    }
    r.bits /= (double)sequences;
    r.optimum /= (double)sequences;
    r.wrong *= 100 / (double)bits;
    r.right_sequences *= 100 / (double)sequences;
    return r;
}

/* Up to the double of the longest in training; the tests go beyond. */
static const struct {
    ntm_size valid[3];
    struct {
        ntm_size size;
        lab_relation relation; /* of the wrong bits, in per cent */
        double target;
    } test[8];
} sizes[] = {
    [NTM_COPY] = {{{20, 1}, {30, 1}, {40, 1}},
                  {{{10, 1}, LAB_AT_MOST, 0},
                   {{20, 1}, LAB_AT_MOST, 0},
                   {{30, 1}, LAB_NO_TARGET, 0},
                   {{50, 1}, LAB_NO_TARGET, 0},
                   {{80, 1}, LAB_AT_MOST, 1},
                   {{120, 1}, LAB_AT_MOST, 5}}},
    [NTM_REPEAT_COPY] = {{{10, 10}, {12, 10}, {10, 12}},
                         {{{10, 10}, LAB_AT_MOST, 0},
                          {{20, 10}, LAB_NO_TARGET, 0},
                          {{10, 20}, LAB_NO_TARGET, 0},
                          {{20, 20}, LAB_NO_TARGET, 0}}},
    [NTM_RECALL] = {{{6, 1}, {8, 1}, {10, 1}},
                    {{{6, 1}, LAB_AT_MOST, 0},
                     {{12, 1}, LAB_AT_MOST, 0},
                     {{20, 1}, LAB_NO_TARGET, 0}}},
    [NTM_NGRAMS] = {{{200, 1}}, {{{200, 1}, LAB_NO_TARGET, 0}}},
    [NTM_SORT] = {{{20, 1}}, {{{20, 1}, LAB_AT_MOST, 10}}},
};

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    enum { SEQUENCES = 100 };
    struct system *y = context;
    const ntm_size *valid = sizes[y->settings->task].valid;
    double bits = 0;
    int n = 0;
    for (; n < 3 && valid[n].length; n++)
        bits += test(y, t, scaled(y->settings, valid[n]), SEQUENCES, 1000003).bits;
    (void)err; /* the tape has it */
    out[0] = (heed_measure){"bits a sequence", bits / n, false};
    *count = 1;
    return HEED_OK;
}

/* ---- what the heads do ---- */

/* A machine at work on one batch: its answer and the state after every step. */
struct scene {
    ntm_batch batch;
    heed_tensor *z;
    ntm_state *states;
};

static heed_status play(struct system *y, heed_tape *t, ntm_size size, int64_t batch,
                        struct scene *scene, heed_error *err)
{
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3000017});
    heed_tape_reset(t);
    heed_arena *arena = heed_tape_arena(t);
    if (!ntm_task_draw((ntm_task)y->settings->task, size, batch, &rng, arena, &scene->batch) ||
        !(scene->states =
              heed_arena_allocate(arena, (size_t)scene->batch.steps * sizeof *scene->states)))
        return lab_fail(err, HEED_MEMORY, "out of memory for a sequence");
    scene->z = ntm_answer(t, &y->machine, &scene->batch, scene->states);
    return scene->z ? HEED_OK
                    : lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
}

/* The best walker among `heads` heads from `head` on. */
static double walking(const struct system *y, const struct scene *scene, int64_t first, int64_t end,
                      int64_t head, int64_t heads)
{
    double most = 0;
    for (int64_t h = head; h < head + heads; h++)
        most = fmax(most, ntm_walking(&y->machine, scene->states, first, end, h));
    return 100 * most;
}

/* Section 4.1: while it copies, a head moves by one location a step, to write and to read. */
static heed_status report_walk(struct system *y, lab_session *r, heed_tape *t, heed_error *err)
{
    const ntm_sizes *z = &y->settings->sizes;
    struct scene scene;
    ntm_size size = scaled(y->settings, (ntm_size){40, 1});
    if (play(y, t, size, 10, &scene, err))
        return err->status;
    lab_report(r, walking(y, &scene, 0, scene.batch.first - 1, z->read_heads, z->write_heads),
               LAB_AT_LEAST, 99, "length %lld, steps on which a write head moves by one, %%",
               (long long)size.length);
    lab_report(r, walking(y, &scene, scene.batch.first, scene.batch.steps, 0, z->read_heads),
               LAB_AT_LEAST, 99, "length %lld, steps on which a read head moves by one, %%",
               (long long)size.length);
    return HEED_OK;
}

/* The targets are those of the paper's machine.  The LSTM is there to show that they are not for
 * nothing; what was trained on other lengths need only know these. */
static void report_wrong(const struct system *y, lab_session *r, int i, double wrong,
                         const char *of)
{
    int task = y->settings->task;
    lab_relation relation = sizes[task].test[i].relation;
    double target = sizes[task].test[i].target;
    if (y->settings->sizes.arch == NTM_NO_MEMORY) {
        bool far = task == NTM_COPY && sizes[task].test[i].size.length == 80;
        relation = far ? LAB_AT_LEAST : LAB_NO_TARGET;
        target = 25;
    } else if (y->settings->longest &&
               sizes[task].test[i].size.length > ntm_task_largest((ntm_task)task).length) {
        relation = LAB_NO_TARGET;
    }
    lab_report(r, wrong, relation, target, "%s, wrong bits, %%", of);
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    int task = y->settings->task;
    for (int i = 0; i < 8 && sizes[task].test[i].size.length; i++) {
        ntm_size size = scaled(y->settings, sizes[task].test[i].size);
        struct tally k = test(y, t, size, y->settings->test_sequences, 2000003);
        if (heed_tape_error(t)->status)
            return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
        char of[64];
        if (task == NTM_REPEAT_COPY)
            snprintf(of, sizeof of, "%lld times %lld", (long long)size.repeats,
                     (long long)size.length);
        else
            snprintf(of, sizeof of, "length %lld", (long long)size.length);
        report_wrong(y, r, i, k.wrong, of);
        lab_report(r, k.right_sequences, LAB_NO_TARGET, 0, "%s, sequences without error, %%", of);
        lab_report(r, k.bits, LAB_NO_TARGET, 0, "%s, bits a sequence", of);
        if (task == NTM_NGRAMS) {
            lab_report(r, k.optimum, LAB_NO_TARGET, 0, "%s, bits of the best predictor", of);
            lab_report(r, k.bits / k.optimum, LAB_AT_MOST, 1.05, "%s, ratio of the two", of);
        }
    }
    bool walks = task == NTM_COPY && y->settings->sizes.arch != NTM_NO_MEMORY;
    return walks ? report_walk(y, r, t, err) : HEED_OK;
}

static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    ntm_size size = scaled(y->settings, ntm_task_largest((ntm_task)y->settings->task));
    char title[96];
    const char *svg;
    struct scene scene;
    snprintf(title, sizeof title, "%s: a machine at work", task_names[y->settings->task]);
    if (play(y, t, size, 1, &scene, err) ||
        ntm_picture(&y->machine, &scene.batch, scene.z, scene.states, title, r->arena, &svg, err))
        return err->status;
    return lab_write(r, "memory.svg", svg, err);
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    struct system y = {.settings = settings};
    if (y.settings->task == NTM_NGRAMS && y.settings->longest && y.settings->longest < 7)
        return lab_fail(err, HEED_ARGUMENT,
                        "option '--longest' is %lld, expected 7 at least: the law needs 5 bits to "
                        "see and more to predict",
                        (long long)y.settings->longest);
    static const char *const tests[] = {"test-sequences", NULL};
    lab_system system = {.context = &y,
                         .build = build,
                         .loss = loss,
                         .validate = validate,
                         .unit = "bits a bit",
                         .may_change = tests,
                         .evaluate = evaluate,
                         .draw = draw};
    return lab_experiment(r, &lab_ntm, settings, &system, err);
}

const lab lab_ntm = {
    .name = "ntm", .options = &options, .settings = sizeof(struct settings), .run = run};
