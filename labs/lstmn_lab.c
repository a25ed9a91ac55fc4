/* lstmn_lab.c: `heed lab lstmn`: trains readers that look back at their own past, or LSTMs of the
 * same size: to recall pairs, to say the next word of a text, to tell the mood of a sentence or how
 * two sentences are related; tests them and draws where each word looks. */
#include "lab.h"
#include "lstmn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct settings {
    lab_common shared;
    const char *data, *sentence;
    int task; /* lstmn_task */
    int64_t keys, pairs, words, longest, d, embedding, layers, window;
    int fusion; /* lstmn_fusion */
    double dropout;
    bool attention, everywhere, summary;
};
static const char *const task_names[] = {"recall", "text", "sentiment", "entailment", NULL};
static const heed_option fields[] = {
    LAB_OPTIONS(struct settings, shared),
    LAB_TRAINING(struct settings, shared, "4000", "64", "500", "adam", "0.001", NULL, "5", NULL),
    HEED_OPTION_CHOICE(struct settings, task, "task", "recall", task_names,
                       "recall pairs, say the next word, tell positive from negative, relate two "
                       "sentences"),
    HEED_OPTION_TEXT(struct settings, data, "data", NULL, "DIR",
                     "text: train.txt, valid.txt, test.txt, or .gz; else .tsv: LABEL TAB SENTENCE"),
    HEED_OPTION_INT(struct settings, keys, "keys", "32", 1, LSTMN_KEYS, "N",
                    "recall: kinds of keys"),
    HEED_OPTION_INT(struct settings, pairs, "pairs", "30", 1, LSTMN_KEYS, "N",
                    "recall: pairs of a sequence, at most; tests have that many"),
    HEED_OPTION_INT(struct settings, words, "words", "10000", 3, 10000000, "N",
                    "kinds of words that are known, the most frequent ones"),
    HEED_OPTION_INT(struct settings, longest, "longest", "100", 2, 10000, "N",
                    "text: longer lines are cut"),
    HEED_OPTION_INT(struct settings, d, "d", "128", 1, 4096, "N", "units of a layer"),
    HEED_OPTION_INT(struct settings, embedding, "embedding", "0", 0, 4096, "N",
                    "width of a word's embedding; 0: the units"),
    HEED_OPTION_INT(struct settings, layers, "layers", "1", 1, LSTMN_LAYERS, "N", "layers"),
    HEED_OPTION_INT(struct settings, window, "window", "0", 0, 10000, "N",
                    "look back at the last N steps alone; 0: at all"),
    HEED_OPTION_CHOICE(struct settings, fusion, "fusion", "deep",
                       HEED_WORDS("none", "shallow", "deep"),
                       "entailment: how the second sentence reads the first"),
    HEED_OPTION_REAL(struct settings, dropout, "dropout", "0", 0, 0.9, "P", "dropout"),
    HEED_OPTION_BOOL(struct settings, attention, "attention", "true",
                     "look back at the past; else an LSTM"),
    HEED_OPTION_BOOL(struct settings, everywhere, "everywhere", "true",
                     "every layer looks back; else the last one alone, above LSTMs"),
    HEED_OPTION_BOOL(struct settings, summary, "summary", "true",
                     "where a step looks depends on where the last one did"),
    HEED_OPTION_TEXT(struct settings, sentence, "sentence",
                     "The FBI is chasing a criminal on the run .", "TEXT",
                     "what is drawn of tasks with words"),
};
static const char *const quick[] = {
    "keys",    "6",    "pairs",  "4",        "d",          "64",          "batch",
    "32",      "rate", "0.004",  "rate-end", "0.0002",     "valid-every", "2000",
    "updates", "8000", "layers", "2",        "everywhere", "false",       NULL};
static const char *const recall[] = {"updates",    "40000",  "rate",        "0.002", "rate-end",
                                     "0.00005",    "layers", "2",           "batch", "32",
                                     "everywhere", "false",  "valid-every", "2000",  NULL};
static const char *const text[] = {"task",        "text", "d",       "300",   "batch",    "32",
                                   "updates",     "3000", "rate",    "0.002", "rate-end", "0.0001",
                                   "valid-every", "1000", "dropout", "0.2",   NULL};
static const char *const sentiment[] = {
    "task",  "sentiment", "d",       "150",         "batch", "32",      "updates", "2400", "rate",
    "0.001", "rate-end",  "0.00005", "valid-every", "200",   "dropout", "0.5",     NULL};
static const char *const entailment[] = {
    "task",  "entailment", "d",       "150",         "batch", "32",      "updates", "4000", "rate",
    "0.001", "rate-end",   "0.00005", "valid-every", "400",   "dropout", "0.3",     NULL};
static const heed_option_bundle *presets(void)
{
    static const heed_option_bundle all[] = {
        {"quick", "recall of up to 4 pairs, in seconds", quick},
        {"recall", "recall of up to 30 pairs, an LSTM below", recall},
        {"text", "a language model of 300 units and 10,000 words; give --data", text},
        {"sentiment", "positive or negative; give --data", sentiment},
        {"entailment", "two sentences, the second reads the first; give --data", entailment},
        {NULL, NULL, NULL},
    };
    return all;
}
static const char *const examples[] = {
    "heed lab lstmn --quick --model m", "heed lab lstmn --preset text --data wikitext-2 --model m",
    "heed lab lstmn --preset text --data wikitext-2 --no-attention --model lstm", NULL};
static const heed_option_set options = {
    .command = "heed lab lstmn",
    .summary = "LSTMN: a recurrence that looks back at all of its memories (Cheng et al. 2016)",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = presets,
    .examples = examples,
};

struct system {
    const struct settings *settings;
    lstmn_data data;
    lstmn_reader reader;
};

static void build(void *context, int set, heed_scope s)
{
    struct system *y = context;
    const struct settings *o = y->settings;
    (void)set;
    lstmn_reader_build(&y->reader, s, &y->data,
                       &(lstmn_sizes){.in = o->embedding ? o->embedding : o->d,
                                      .d = o->d,
                                      .attention = o->attention,
                                      .window = o->window,
                                      .summary = o->summary,
                                      .fusion = (lstmn_fusion)o->fusion},
                       (int)o->layers, o->everywhere, o->dropout);
}

static heed_tensor *loss(void *context, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct system *y = context;
    lstmn_batch b;
    (void)sum;
    if (!lstmn_draw(&y->data, LSTMN_TRAIN, 0, y->settings->shared.batch, &pass->rng,
                    heed_tape_arena(t), &b))
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for a batch");
    heed_tensor *x = lstmn_read(t, &y->reader, &b, NULL);
    return heed_project_cross_entropy(t, x, y->reader.out, y->reader.bias, b.wanted, 0,
                                      pass->weight / (double)b.terms, NULL);
}

/* ---- testing ---- */

struct score {
    double nats, right; /* a term; of 100; text: right is not counted */
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

static heed_status test(struct system *y, heed_tape *t, lstmn_part part, struct score *s,
                        heed_error *err)
{
    enum { AT_ONCE = 32 };
    const int64_t all = lstmn_count(&y->data, part);
    double nats = 0, terms = 0, right = 0;
    for (int64_t done = 0, n; done < all; done += n) {
        lstmn_batch b;
        double nll = 0;
        n = all - done < AT_ONCE ? all - done : AT_ONCE;
        heed_tape_reset(t);
        heed_tensor *x = lstmn_draw(&y->data, part, done, n, NULL, heed_tape_arena(t), &b)
                             ? lstmn_read(t, &y->reader, &b, NULL)
                             : heed_tape_fail(t, HEED_MEMORY, "out of memory for a batch");
        if (!heed_project_cross_entropy(t, x, y->reader.out, y->reader.bias, b.wanted, 0, 1, &nll))
            return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
        nats += nll;
        terms += (double)b.terms;
        if (y->data.task == LSTMN_TEXT)
            continue;
        heed_tensor *logits =
            heed_add(t, heed_matmul(t, x, y->reader.out, HEED_NT), y->reader.bias);
        if (!logits)
            return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
        for (int64_t i = 0; i < b.terms; i++)
            right += said(logits, i) == b.wanted[i];
    }
    *s = (struct score){nats / terms, 100 * right / terms};
    return HEED_OK;
}

static heed_status validate(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err)
{
    struct system *y = context;
    struct score s;
    if (test(y, t, LSTMN_VALID, &s, err))
        return err->status;
    out[0] = (heed_measure){"loss", s.nats, false};
    out[1] = y->data.task == LSTMN_TEXT ? (heed_measure){"perplexity", exp(s.nats), false}
                                        : (heed_measure){"right, %", s.right, true};
    *count = 2;
    return HEED_OK;
}

static heed_status evaluate(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    const struct settings *o = y->settings;
    struct score s;
    if (test(y, t, LSTMN_TEST, &s, err))
        return err->status;
    if (o->task == LSTMN_TEXT) {
        lab_report(r, exp(s.nats), LAB_NO_TARGET, 0, "test, perplexity");
        return HEED_OK;
    }
    if (o->task == LSTMN_RECALL)
        lab_report(r, s.right, o->attention && !o->window ? LAB_AT_LEAST : LAB_NO_TARGET,
                   o->keys < LSTMN_KEYS ? 90 : 99, "%lld pairs, right, %%", (long long)o->pairs);
    else
        lab_report(r, s.right, o->task == LSTMN_SENTIMENT ? LAB_AT_LEAST : LAB_NO_TARGET, 78,
                   "test, right, %%");
    lab_report(r, s.nats, LAB_NO_TARGET, 0, "nats an example");
    return HEED_OK;
}

/* ---- pictures ---- */

/* One sequence: --sentence, or the first of a test that is drawn. */
static bool take_shown(const struct system *y, heed_arena *arena, lstmn_batch *b,
                       const char ***label)
{
    const struct settings *o = y->settings;
    int64_t n = 0;
    if (o->task == LSTMN_RECALL) {
        if (!lstmn_draw(&y->data, LSTMN_TEST, 0, 1, NULL, arena, b))
            return false;
        n = b->rows[0]->rows;
    }
    const size_t most = o->task == LSTMN_RECALL ? (size_t)n : strlen(o->sentence) / 2 + 1;
    int32_t *ids = heed_arena_allocate(arena, most * sizeof *ids);
    *label = heed_arena_allocate(arena, most * sizeof **label);
    if (!ids || !*label)
        return false;
    if (o->task == LSTMN_RECALL) {
        for (int64_t i = 0; i < n; i++)
            if (!((*label)[i] = lstmn_recall_word(b->ids[0][i], arena)))
                return false;
        return true;
    }
    const char *at = o->sentence;
    size_t left = strlen(at), length;
    for (const char *word; (word = word_list_next(&at, &left, &length)) != NULL; n++) {
        char *copy = heed_arena_allocate(arena, length + 1);
        if (!copy)
            return false;
        memcpy(copy, word, length);
        copy[length] = 0;
        (*label)[n] = copy;
        ids[n] = word_list_find(y->data.words, word, length);
    }
    *b = (lstmn_batch){.count = 1, .sides = 1, .ids = {ids}};
    b->rows[0] = n ? heed_segments_new(arena, 1, &n) : NULL;
    return b->rows[0];
}

/* Where each word of a sequence looks, as in the paper's figure 6; of entailment, the first
 * sentence's reader. */
static heed_status draw(void *context, lab_session *r, heed_tape *t, heed_error *err)
{
    struct system *y = context;
    lstmn_batch b;
    const char **label, *svg;
    heed_tensor **looked = NULL;
    lstmn_reader first = y->reader;
    heed_tape_reset(t);
    if (!y->settings->attention)
        return HEED_OK;
    first.sides = 1;
    first.task = LSTMN_TEXT; /* its states are enough */
    if (!take_shown(y, heed_tape_arena(t), &b, &label) || !lstmn_read(t, &first, &b, &looked))
        return lab_fail(err, HEED_MEMORY, "cannot draw: there is no word in it, or no memory");
    const int64_t n = b.rows[0]->rows;
    heed_real *weights = heed_arena_allocate(r->arena, (size_t)(n * n) * sizeof *weights);
    if (!weights)
        return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
    memset(weights, 0, (size_t)(n * n) * sizeof *weights);
    for (int64_t i = 1; i < n; i++) {
        const int64_t seen = heed_tensor_cols(looked[i]);
        memcpy(weights + i * n + i - seen, heed_tensor_data(looked[i]),
               (size_t)seen * sizeof *weights);
    }
    if (heed_reading_svg("Where each word looks back", (heed_labels){label, n}, weights, r->arena,
                         &svg, err))
        return err->status;
    return lab_write(r, "looks.svg", svg, err);
}

static heed_status check(const struct settings *o, heed_error *err)
{
    if (o->task != LSTMN_RECALL && !o->data)
        return lab_fail(err, HEED_ARGUMENT, "missing option '--data': the folder of the text");
    if (o->task == LSTMN_RECALL && o->data)
        return lab_fail(err, HEED_ARGUMENT, "option '--data' has no effect with '--task recall'");
    if (o->pairs > o->keys)
        return lab_fail(err, HEED_ARGUMENT, "option '--pairs' is %lld, more than '--keys', %lld",
                        (long long)o->pairs, (long long)o->keys);
    if (!o->attention && o->window)
        return lab_fail(err, HEED_ARGUMENT, "option '--window' has no effect without attention");
    return HEED_OK;
}

static heed_status run(lab_session *r, const void *settings, heed_error *err)
{
    const struct settings *o = settings;
    struct system y = {.settings = settings};
    static const char *const drawn[] = {"sentence", NULL};
    const lab_system system = {.context = &y,
                               .build = build,
                               .loss = loss,
                               .validate = validate,
                               .unit = o->task == LSTMN_TEXT ? "nats a word" : "nats an example",
                               .may_change = drawn,
                               .evaluate = evaluate,
                               .draw = draw};
    if (check(o, err) || lstmn_data_open(&y.data, (lstmn_task)o->task, o->data, o->keys, o->pairs,
                                         o->words, o->longest, r->arena, err))
        return err->status;
    return lab_experiment(r, &lab_lstmn, settings, &system, err);
}

const lab lab_lstmn = {
    .name = "lstmn", .options = &options, .settings = sizeof(struct settings), .run = run};
