/* long_lab.c: `heed lab long`: a small stack of layers with any attention, trained and measured on
 * one of the tasks of long.h. */
#include "long.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const long_task *const tasks[] = {
#define LONG_ROW(name) &long_##name,
    LONG_TASKS(LONG_ROW)
#undef LONG_ROW
};
static const char *const task_names[] = {
#define LONG_NAME(name) #name,
    LONG_TASKS(LONG_NAME)
#undef LONG_NAME
        NULL};

static const heed_option fields[] = {
    LAB_OPTIONS(long_settings, shared),
    LAB_TRAINING(long_settings, shared, "3000", "32", "500", "adam", "0.001", NULL, "1", NULL),
    HEED_OPTION_CHOICE(
        long_settings, task, "task", "duplication", task_names,
        "0w0w; nested lists of LRA; characters of a text; pixels of digits; reviews, "
        "byte by byte; values of keys; the largest of a set; the next day of a series; characters "
        "with questions about far ones; characters without a feed-forward network"),
    HEED_OPTION_TEXT(long_settings, data, "data", NULL, "DIR",
                     "characters, span, persistent: input.txt; pixels: MNIST's IDX files; reviews: "
                     "train.tsv, valid.tsv, test.tsv; series: ETTh1.csv"),
    HEED_OPTION_INT(long_settings, length, "length", "0", 0, 65536, "N",
                    "symbols of w, longest list, characters of a window, side of a picture, bytes "
                    "of a review, keys, numbers of a set, hours before, characters with questions, "
                    "characters; 0: 31, 200, 512, 14, 1024, 60, 10, 168, 200, 256"),
    HEED_OPTION_INT(long_settings, writes, "writes", "0", 0, 65536, "N",
                    "retrieval: pairs, with keys and values drawn anew for each; 0: every one "
                    "once"),
    HEED_OPTION_CHOICE(long_settings, pooling, "pooling", "pma", HEED_WORDS(LONG_POOLING_WORDS),
                       "sets: attention and then a seed that looks, or feed-forward layers alone "
                       "and then the mean or the largest"),
    HEED_OPTION_INT(long_settings, layers, "layers", "2", 1, 64, "N", "layers"),
    HEED_OPTION_INT(long_settings, d, "d", "64", 4, 4096, "D", "width of a row"),
    HEED_OPTION_INT(long_settings, heads, "heads", "4", 1, 64, "H", "heads of attention"),
    HEED_OPTION_INT(long_settings, ff, "ff", "256", 0, 65536, "F",
                    "width of the feed-forward; 0: there is none"),
    HEED_OPTION_INT(long_settings, dropout_percent, "dropout-percent", "0", 0, 90, "P",
                    "of 100: on sublayer outputs and embeddings"),
    HEED_OPTION_CHOICE(
        long_settings, positions, "positions", "learned",
        HEED_WORDS("none", "sinusoid", "sinusoid-halves", "learned", "rotary", "rotary-neighbours"),
        "how a row knows where it stands"),
    HEED_OPTION_SPEC(long_settings, heed_slot_spec, pattern, "attention-pattern", "global", "SPEC",
                     heed_pattern_option, "which keys a query sees; 'heed list attention'"),
    HEED_OPTION_SPEC(long_settings, heed_slot_spec, normaliser, "attention-normaliser", "soft",
                     "SPEC", heed_normaliser_option, "how scores become weights"),
    HEED_OPTION_SPEC(long_settings, heed_slot_spec, queries, "attention-queries", "all", "SPEC",
                     heed_queries_option, "which queries look for themselves"),
    HEED_OPTION_SPEC(long_settings, heed_slot_spec, memory, "attention-memory", "states", "SPEC",
                     heed_memory_option, "which keys and values there are"),
    HEED_OPTION_SPEC(long_settings, heed_slot_spec, position_bias, "position-bias", "none", "SPEC",
                     heed_bias_option, "added to scores by distance"),
    HEED_OPTION_INT(long_settings, adaptive_span, "adaptive-span", "0", 0, 1000000, "S",
                    "each head learns how far it looks, at most S; 0: no limit"),
    HEED_OPTION_REAL(long_settings, span_penalty, "span-penalty", "2e-6", 0, 1, "X",
                     "added to the loss for each position of the mean adaptive span"),
    HEED_OPTION_INT(long_settings, test_examples, "test-examples", "1000", 1, 1000000, "N",
                    "examples in the test, where there are as many"),
};
static const char *const quick[] = {"length", "8",           "layers",        "1",    "updates",
                                    "400",    "valid-every", "200",           "rate", "0.003",
                                    "d",      "32",          "test-examples", "200",  NULL};
static const char *const duplication[] = {"layers", "1",        "d",       "128", "updates",
                                          "3000",   "rate-end", "0.00001", NULL};
static const char *const listops[] = {"task", "listops", "layers",   "4",           "d",
                                      "128",  "updates", "20000",    "valid-every", "1000",
                                      "rate", "0.0005",  "rate-end", "0.00001",     "test-examples",
                                      "2000", NULL};
static const char *const characters[] = {
    "task", "characters", "d",       "128",           "batch", "8", "updates",
    "3000", "rate-end",   "0.00001", "test-examples", "100",   NULL};
static const char *const pixels[] = {"task", "pixels",   "batch",   "16", "updates",
                                     "3000", "rate-end", "0.00001", NULL};
static const char *const reviews[] = {
    "task",     "reviews", "batch",         "16",   "updates", "4000", "dropout-percent", "20",
    "rate-end", "0.00001", "test-examples", "5000", NULL};
static const char *const retrieval[] = {"task",    "retrieval", "writes",    "120",   "layers",
                                        "1",       "d",         "64",        "heads", "1",
                                        "ff",      "0",         "positions", "none",  "rate-end",
                                        "0.00001", "updates",   "5000",      NULL};
static const char *const sets[] = {
    "task", "sets", "positions", "none",    "rate", "0.001",         "rate-end", "0.00001", "d",
    "64",   "ff",   "64",        "updates", "2000", "test-examples", "2000",     NULL};
static const char *const series[] = {"task",
                                     "series",
                                     "length",
                                     "96",
                                     "layers",
                                     "1",
                                     "d",
                                     "32",
                                     "ff",
                                     "64",
                                     "rate",
                                     "0.001",
                                     "rate-end",
                                     "0.00001",
                                     "updates",
                                     "400",
                                     "dropout-percent",
                                     "10",
                                     "test-examples",
                                     "2857",
                                     "valid-every",
                                     "100",
                                     NULL};
static const char *const span[] = {
    "task",     "span",    "adaptive-span", "1024", "batch",         "16",  "layers", "2",
    "rate-end", "0.00001", "updates",       "3000", "test-examples", "200", NULL};
static const char *const persistent[] = {"task",
                                         "persistent",
                                         "d",
                                         "128",
                                         "ff",
                                         "0",
                                         "batch",
                                         "16",
                                         "attention-memory",
                                         "persistent:512",
                                         "positions",
                                         "sinusoid",
                                         "updates",
                                         "3000",
                                         "rate-end",
                                         "0.00001",
                                         "test-examples",
                                         "200",
                                         NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "duplication of 8 symbols by a small model, in seconds", quick},
        {"duplication", "0w0w with 31 symbols in w: one layer", duplication},
        {"listops", "nested lists of up to 200 tokens, as LRA makes them", listops},
        {"characters", "a text, 512 characters at a time; give --data", characters},
        {"pixels", "digits of 14 x 14 black and white pixels; give --data", pixels},
        {"reviews", "film reviews as 1024 bytes; give --data", reviews},
        {"retrieval", "values of 60 keys that are written 120 times", retrieval},
        {"sets", "the largest of up to 10 numbers", sets},
        {"series", "a day of ETTh1 after four; give --data", series},
        {"span", "questions about characters up to 200 before; give --data", span},
        {"persistent", "characters without a feed-forward network; give --data", persistent},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {
    "heed lab long --quick --model m",
    "heed lab long --preset pixels --data mnist --attention-pattern axial:28 -m m", NULL};
static const heed_option_set options = {
    .command = "heed lab long",
    .summary = "Long sequences: what each efficient attention can do and what it cannot",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

bool long_is_dense(const long_settings *o)
{
    return o->normaliser.term[0].kind == HEED_NORMALISE_SOFT && o->pattern.count <= 1 &&
           o->pattern.term[0].kind == HEED_PATTERN_GLOBAL && o->pattern.term[0].number[0] == 0;
}

bool long_batch_new(long_batch *b, heed_arena *arena, const int64_t *lengths, int64_t n,
                    int64_t wanted, int32_t **ids, int32_t **answers, int32_t **rows)
{
    const heed_segments *segments = heed_segments_new(arena, n, lengths);
    const int64_t all = segments ? segments->rows : 0;
    b->count = wanted ? wanted : all;
    *ids = heed_arena_allocate(arena, (size_t)all * sizeof **ids);
    *answers = heed_arena_allocate(arena, (size_t)b->count * sizeof **answers);
    *rows = wanted ? heed_arena_allocate(arena, (size_t)b->count * sizeof **rows) : NULL;
    b->side = (heed_batch_side){.rows = segments, .ids = *ids};
    b->wanted = *answers;
    b->target = NULL;
    b->row = *rows;
    return segments && *ids && *answers && (*rows || !wanted);
}

/* ---- the model ---- */

struct system {
    long_source source;
    heed_stack stack;
    heed_head_layer head;
};

#define EPS 1e-5
static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    const long_settings *o = y->source.settings;
    const double dropout = (double)o->dropout_percent / 100;
    const heed_slot_spec learned = HEED_ONE(HEED_BIAS_SPAN, {o->adaptive_span});
    heed_sublayer_options x = {
        .mha = {.heads = (int)o->heads,
                .causal = y->source.task->causal,
                .queries = o->queries,
                .memory = o->memory,
                .pattern = o->pattern,
                .position_bias = o->adaptive_span ? learned : o->position_bias,
                .normaliser = o->normaliser,
                .span_penalty = o->span_penalty,
                .longest = y->source.longest,
                .positions = heed_positions_are_rotary((heed_positions)o->positions)
                                 ? (heed_positions)o->positions
                                 : HEED_POSITIONS_NONE},
        .ffn = {.f = o->ff, .activation = HEED_GELU, .bias = true},
        .around = {.place = HEED_NORM_BEFORE, .eps = EPS, .residual = true, .dropout = dropout}};
    (void)set;
    heed_stack_init(&y->stack, y->source.arena, o->d);
    heed_input_build(&y->stack.input, heed_scope_enter(s, "input"),
                     &(heed_input_options){.d = o->d,
                                           .vocabulary = y->source.vocabulary,
                                           .types = y->source.types,
                                           .width = y->source.width,
                                           .positions = (heed_positions)o->positions,
                                           .longest = y->source.longest,
                                           .scale = sqrt((double)o->d),
                                           .dropout = dropout});
    for (int i = 0; i < o->layers; i++) {
        x.layer = i;
        if (!y->source.task->pools || o->pooling == LONG_PMA)
            heed_stack_append(&y->stack, heed_scope_enter(s, "%d.self", i),
                              heed_sublayer_class_of(&x.mha), &x);
        if (o->ff)
            heed_stack_append(&y->stack, heed_scope_enter(s, "%d.ffn", i),
                              heed_sublayer_class_find("ffn"), &x);
    }
    if (y->source.task->pools && o->pooling == LONG_PMA) {
        x.around = (heed_around_options){.place = HEED_NORM_BEFORE, .eps = EPS};
        heed_stack_append(&y->stack, heed_scope_enter(s, "pooled"), heed_sublayer_class_find("pma"),
                          &x);
    }
    heed_norm_build(&y->stack.norm, heed_scope_enter(s, "norm"), HEED_NORM_LAYER, o->d, EPS);
    heed_head_build(
        &y->head, heed_scope_enter(s, "head"),
        &(heed_head_options){.d = o->d,
                             .classes = y->source.outputs ? y->source.outputs : y->source.classes,
                             .bias = true});
}

/* Logits of what is wanted, (count,classes), or numbers, (count,outputs). */
static heed_tensor *answer(const struct system *y, heed_tape *t, const long_batch *b,
                           heed_tensor **penalty)
{
    heed_flow flow = {.x = heed_input_apply(t, &y->stack.input, &b->side), .rows = b->side.rows};
    heed_tensor *h = heed_stack_apply(t, &y->stack, &flow);
    *penalty = flow.penalty ? heed_scale(t, flow.penalty, 1 / (double)b->side.rows->rows, 0) : NULL;
    if (y->source.task->pools) { /* pma has left one row of each */
        const int how = y->source.settings->pooling;
        h = how == LONG_MEAN  ? heed_segment_mean(t, h, b->side.rows)
            : how == LONG_MAX ? heed_segment_max(t, h, b->side.rows)
                              : h;
    } else if (b->row) {
        h = heed_gather_rows(t, h, b->row, b->count);
    }
    return heed_head_logits(t, &y->head, h);
}

/* Summed over what is wanted. */
static heed_tensor *loss_of(const struct system *y, heed_tape *t, heed_tensor *said,
                            const long_batch *b)
{
    if (!y->source.outputs)
        return heed_cross_entropy(t, said, b->wanted, 0);
    heed_tensor *off =
        heed_sub(t, said, heed_input(t, HEED_SHAPE(b->count, y->source.outputs), b->target));
    return heed_sum(t, y->source.task->absolute ? heed_abs(t, off) : heed_square(t, off), HEED_ALL);
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    const struct system *y = context;
    long_batch b;
    (void)sum;
    if (!y->source.task->draw(&y->source, LONG_TRAIN, 0, y->source.settings->shared.batch,
                              &pass->rng, heed_tape_arena(t), &b))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for examples");
    heed_tensor *penalty, *nats = loss_of(y, t, answer(y, t, &b, &penalty), &b);
    nats = heed_scale(t, nats, pass->weight / (double)b.count, 0);
    return penalty ? heed_add(t, nats, heed_scale(t, penalty, pass->weight, 0)) : nats;
}

/* ---- measuring ---- */

/* Counts of a test. */
struct tally {
    double nats, squared, absolute;
    int64_t count, right, asked, asked_right;
    int64_t *times; /* of each class */
};

static void count_classes(const struct system *y, const heed_tensor *logits, const long_batch *b,
                          struct tally *to)
{
    const int64_t n = heed_tensor_rows(logits), classes = heed_tensor_cols(logits);
    const int64_t asked = y->source.task->asked, rows = n / b->side.rows->count;
    for (int64_t i = 0; i < n; i++) {
        const heed_real *row = heed_tensor_data(logits) + i * classes;
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            best = row[k] > row[best] ? k : best;
        to->right += best == b->wanted[i];
        if (asked && i % rows >= rows - asked) {
            to->asked++;
            to->asked_right += best == b->wanted[i];
        }
        to->times[b->wanted[i]]++;
    }
}

static void count_numbers(const heed_tensor *said, const long_batch *b, struct tally *to)
{
    for (int64_t i = 0; i < heed_tensor_count(said); i++) {
        const double off = (double)heed_tensor_data(said)[i] - (double)b->target[i];
        to->squared += off * off;
        to->absolute += fabs(off);
    }
}

static heed_status test(const struct system *y, heed_tape *t, long_part part, int64_t asked,
                        long_score *s, heed_error *err)
{
    const long_source *source = &y->source;
    const int64_t batch = source->settings->shared.batch, there = source->count[part];
    const size_t bytes = (size_t)(source->classes + 1) * sizeof(int64_t);
    struct tally all = {.times = heed_arena_allocate(source->arena, bytes)};
    int64_t most = 0;
    if (!all.times)
        return lab_fail(err, HEED_MEMORY, "out of memory for a test");
    memset(all.times, 0, bytes);
    asked = there && there < asked ? there : asked;
    for (int64_t done = 0, n; done < asked; done += n) {
        long_batch b;
        n = asked - done < batch ? asked - done : batch;
        heed_tape_reset(t);
        if (!source->task->draw(source, part, done, n, NULL, heed_tape_arena(t), &b))
            return lab_fail(err, HEED_MEMORY, "out of memory for a test");
        heed_tensor *penalty, *said = answer(y, t, &b, &penalty), *sum = loss_of(y, t, said, &b);
        if (!sum)
            return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
        all.nats += (double)heed_tensor_data(sum)[0];
        all.count += b.count;
        if (source->outputs)
            count_numbers(said, &b, &all);
        else
            count_classes(y, said, &b, &all);
    }
    for (int64_t k = 0; k < source->classes; k++)
        most = all.times[k] > most ? all.times[k] : most;
    const double count = (double)all.count;
    *s = (long_score){.nats = all.nats / count,
                      .right = (double)all.right / count,
                      .most = (double)most / count,
                      .asked = (double)all.asked_right / (double)(all.asked ? all.asked : 1),
                      .squared = all.squared / count,
                      .absolute = all.absolute / count};
    return HEED_OK;
}

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    enum { EXAMPLES = 256 };
    long_score s;
    if (test(context, t, LONG_VALID, EXAMPLES, &s, err))
        return err->status;
    out[0] = (heed_measure){"loss", s.nats, false};
    out[1] = ((const struct system *)context)->source.outputs
                 ? (heed_measure){"absolute error", s.absolute, false}
                 : (heed_measure){"right, %", 100 * s.right, true};
    *count = 2;
    return HEED_OK;
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    const struct system *y = context;
    long_score s;
    if (test(y, t, LONG_TEST, y->source.settings->test_examples, &s, err))
        return err->status;
    y->source.task->report(&y->source, &s, r);
    if (y->source.task->report_layers)
        y->source.task->report_layers(&y->source, &y->stack, r);
    return HEED_OK;
}

/* Which pairs met. */
static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    enum { SHOWN = 196 };
    const struct system *y = context;
    const long_settings *o = y->source.settings;
    const int64_t n = y->source.longest < SHOWN ? y->source.longest : SHOWN;
    char text[HEED_OPTION_SPEC_TEXT];
    const heed_pattern_square square = {heed_slot_format(HEED_SLOT_PATTERN, &o->pattern, text),
                                        o->pattern, y->source.task->causal};
    const char *svg;
    (void)t;
    if (o->pattern.term[0].kind == HEED_PATTERN_LOCAL_P ||
        o->pattern.term[0].kind == HEED_PATTERN_LONGFORMER)
        return HEED_OK;
    heed_status status =
        heed_patterns_svg("Which pairs met", &square, 1, n, 1, r->arena, &svg, err);
    return status ? status : lab_write(r, "pattern.svg", svg, err);
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    const long_settings *o = settings;
    const long_task *task = tasks[o->task];
    struct system y = {.source = {.task = task,
                                  .settings = o,
                                  .length = o->length ? o->length : task->length,
                                  .arena = r->arena}};
    static const char *const tests[] = {"test-examples", NULL};
    if (task->needs_data && !o->data)
        return lab_fail(err, HEED_ARGUMENT, "missing option '--data': the folder of %s",
                        task->name);
    if (!task->needs_data && o->data)
        return lab_fail(err, HEED_ARGUMENT, "option '--data' has no effect with '--task %s'",
                        task->name);
    if (o->writes && strcmp(task->name, "retrieval") != 0)
        return lab_fail(err, HEED_ARGUMENT, "option '--writes' has no effect with '--task %s'",
                        task->name);
    if (o->pooling && !task->pools)
        return lab_fail(err, HEED_ARGUMENT, "option '--pooling' has no effect with '--task %s'",
                        task->name);
    if (o->adaptive_span && o->position_bias.term[0].kind != HEED_BIAS_NONE)
        return lab_fail(err, HEED_ARGUMENT,
                        "option '--adaptive-span' takes the place of a position bias: use "
                        "--position-bias none");
    if (o->d % o->heads)
        return lab_fail(err, HEED_ARGUMENT,
                        "option '--heads' is %lld, expected a divisor of --d, %lld",
                        (long long)o->heads, (long long)o->d);
    if (!task->open(&y.source, err)) {
        lab_system system = {.context = &y,
                             .build = build,
                             .loss = loss,
                             .validate = validate,
                             .unit = task->unit,
                             .may_change = tests,
                             .evaluate = evaluate,
                             .draw = draw};
        lab_experiment(r, &lab_long, settings, &system, err);
    }
    if (task->close)
        task->close(&y.source);
    return err->status;
}

const lab lab_long = {
    .name = "long", .options = &options, .settings = sizeof(long_settings), .run = run};
