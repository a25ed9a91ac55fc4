/* cmd_bench.c: `heed bench kernels`, `heed bench train`, `heed bench decode` and `heed bench
 * generate`; `heed bench attention` is bench_attention.c. */
#include "bench/bench.h"
#include "bench_attention.h"
#include "command.h"
#include "numbers.h"

#include <heed/language.h>

#include <string.h>

#define COMMON(owner, at)                                                                          \
    HEED_OPTION_INT(owner, at.threads, "threads", NULL, 0, 64, "N",                                \
                    "measure with N threads; 0: with 1, then with all processors"),                \
        HEED_OPTION_BOOL(owner, at.json, "json", NULL, "print one JSON object a line")

struct common {
    int64_t threads;
    bool json;
};

/* ---- kernels ---- */

struct settings {
    struct common common;
    const char *only;
};
static const heed_option fields[] = {
    COMMON(struct settings, common),
    HEED_OPTION_TEXT(struct settings, only, "only", NULL, "NAME",
                     "run only the measurements with this in their name"),
};
static const char *const examples[] = {"heed bench kernels",
                                       "heed bench kernels --threads 1 --only linear --json",
                                       "heed bench train --preset tiny --threads 2", NULL};
const heed_option_set bench_options = {
    .command = "heed bench",
    .summary = "Measure kernels, training, decoding, writing or attention on this machine",
    .arguments = "kernels|train|decode|generate|attention",
    .least = 1,
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static int run_kernels(int argc, const char *const *argv)
{
    static const char *const subjects[] = {"kernels",  "train",     "decode",
                                           "generate", "attention", NULL};
    invocation in;
    struct settings s;
    int code = EXIT_DONE, subject;
    if (!invocation_begin(&in, &bench_options, argc, argv, &s))
        code = in.exit_code;
    else if ((subject = choose_word("benchmark", in.words.items[0], subjects)) != 0) {
        if (subject > 0) /* these have options of their own */
            complain("'%s' must come before its options: heed bench %s [options]",
                     subjects[subject], subjects[subject]);
        code = EXIT_USAGE;
    } else if (!bench_kernels(&(bench_settings){(int)s.common.threads, s.common.json, s.only}))
        code = EXIT_FAILED;
    invocation_end(&in);
    return code;
}

/* ---- train ---- */

struct train_settings {
    struct common common;
    const char *ids;
    int64_t batch_tokens, turns, vocabulary;
    heed_model_config model;
};
static const heed_option train_fields[] = {
    COMMON(struct train_settings, common),
    HEED_OPTION_TEXT(struct train_settings, ids, "ids", NULL, "FILE",
                     "batches to train on: a pair of sentences a line, ids TAB ids, an empty line "
                     "behind each batch; made up if not given"),
    HEED_OPTION_INT(struct train_settings, batch_tokens, "batch-tokens", "4096", 64, 1048576, "N",
                    "target tokens of a batch that is made up"),
    HEED_OPTION_INT(struct train_settings, turns, "turns", "0", 0, 1000000, "N",
                    "times to go over the batches, the best counts; 0 for ten seconds, three at "
                    "least"),
    HEED_OPTION_INT(struct train_settings, vocabulary, "vocabulary", "0", 0, 10000000, "N",
                    "words; 0 for 8000 where d is below 512 and 32000 otherwise"),
    HEED_MODEL_OPTIONS(struct train_settings, model),
};
static const char *const train_examples[] = {
    "heed bench train --preset tiny", "heed bench train --preset small --threads 2 --json",
    "heed bench train --preset base --ids batches.txt --threads 1", NULL};
static const heed_option_set blocks_set;
static const heed_option_set *const train_parts[] = {&blocks_set, NULL};
static const heed_option_set train_set = {
    .command = "heed bench train",
    .summary = "Measure training steps: tokens a second, share of the multiply-add peak, memory",
    .fields = train_fields,
    .count = sizeof train_fields / sizeof *train_fields,
    .bundles = heed_model_presets,
    .examples = train_examples,
    .parts = train_parts,
};

/* What --preset said, for the lines. */
static const char *preset_of(int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--preset=", 9) == 0)
            return argv[i] + 9;
        if (strcmp(argv[i], "--preset") == 0 && i + 1 < argc)
            return argv[i + 1];
    }
    return NULL;
}

static int64_t words_of(int64_t asked, const heed_model_config *c)
{
    return asked ? asked : c->d < 512 ? 8000 : 32000;
}

static int run_train(int argc, const char *const *argv)
{
    invocation in;
    struct train_settings s = {0};
    int code = EXIT_DONE;
    if (!invocation_begin(&in, &train_set, argc, argv, &s)) {
        code = in.exit_code;
    } else {
        s.model.source_vocabulary = s.model.target_vocabulary = words_of(s.vocabulary, &s.model);
        bench_train_settings b = {.common = {(int)s.common.threads, s.common.json, NULL},
                                  .preset = preset_of(argc, argv),
                                  .model = s.model,
                                  .ids = s.ids,
                                  .batch_tokens = s.batch_tokens,
                                  .turns = s.turns};
        if (!bench_train(&b))
            code = EXIT_FAILED;
    }
    invocation_end(&in);
    return code;
}

/* ---- decode ---- */

struct decode_settings {
    bool json;
    int numbers;
    int64_t beam, batch, workers, vocabulary, shortlist;
    double seconds;
    heed_model_config model;
};
static const heed_option decode_fields[] = {
    HEED_OPTION_BOOL(struct decode_settings, json, "json", NULL, "print one JSON object a line"),
    NUMBERS_OPTION(struct decode_settings, numbers),
    HEED_OPTION_INT(struct decode_settings, beam, "beam", "0", 0, 1000, "N",
                    "hypotheses kept at each step; 0 for 4 and then 1"),
    HEED_OPTION_INT(struct decode_settings, batch, "batch", "0", 0, 100000, "N",
                    "lines decoded together; 0 for 32 and then 1"),
    HEED_OPTION_INT(struct decode_settings, workers, "workers", "1", 1, 64, "N",
                    "threads that share the lines"),
    HEED_OPTION_INT(struct decode_settings, shortlist, "shortlist", "0", 0, 1000000, "N",
                    "let each line use about N pieces only, drawn at random; 0: all"),
    HEED_OPTION_INT(struct decode_settings, vocabulary, "vocabulary", "0", 0, 10000000, "N",
                    "words; 0 for 8000 where d is below 512 and 32000 otherwise"),
    HEED_OPTION_REAL(
        struct decode_settings, seconds, "seconds", "5", 0, 1e6, "S",
        "for each line of the table; three turns at least, of every 32 lines the best counts"),
    HEED_MODEL_OPTIONS(struct decode_settings, model),
};
static const char *const decode_examples[] = {
    "heed bench decode --preset base --quantize int8",
    "heed bench decode --preset student --quantize int8 --shortlist 1000 --beam 1",
    "heed bench decode --preset small --quantize fp32 --beam 1 --batch 1 --json", NULL};
static const heed_option_set decode_set = {
    .command = "heed bench decode",
    .summary = "Measure decoding with random weights: tokens a second, against CTranslate2's for "
               "each operation of the machine's peak, and memory",
    .fields = decode_fields,
    .count = sizeof decode_fields / sizeof *decode_fields,
    .bundles = heed_model_presets,
    .examples = decode_examples,
};

static int run_decode(int argc, const char *const *argv)
{
    invocation in;
    struct decode_settings s = {0};
    int code = EXIT_DONE;
    if (!invocation_begin(&in, &decode_set, argc, argv, &s)) {
        code = in.exit_code;
    } else {
        s.model.source_vocabulary = s.model.target_vocabulary = words_of(s.vocabulary, &s.model);
        bench_decode_settings b = {.common = {1, s.json, NULL},
                                   .preset = preset_of(argc, argv),
                                   .model = s.model,
                                   .numbers = s.numbers,
                                   .beam = s.beam,
                                   .batch = s.batch,
                                   .workers = s.workers,
                                   .shortlist = s.shortlist,
                                   .seconds = s.seconds};
        if (!bench_decode(&b))
            code = EXIT_FAILED;
    }
    invocation_end(&in);
    return code;
}

/* ---- language models ---- */

struct language_settings {
    struct common common;
    int numbers;
    int64_t vocabulary, turns;
    double seconds;
    heed_language_options train; /* not used, but for what presets set */
    heed_model_config model;
};
#define LANGUAGE_FIELDS                                                                            \
    HEED_OPTION_INT(struct language_settings, vocabulary, "vocabulary", "50257", 3, 10000000, "N", \
                    "pieces"),                                                                     \
        HEED_LANGUAGE_OPTIONS(struct language_settings, train, model),                             \
        HEED_MODEL_OPTIONS(struct language_settings, model)
static const heed_option generate_fields[] = {
    HEED_OPTION_BOOL(struct language_settings, common.json, "json", NULL,
                     "print one JSON object a line"),
    NUMBERS_OPTION(struct language_settings, numbers),
    HEED_OPTION_REAL(struct language_settings, seconds, "seconds", "5", 0, 1e6, "S",
                     "for each half, three turns at least; the best counts"),
    LANGUAGE_FIELDS,
};
static const heed_option blocks_fields[] = {
    COMMON(struct language_settings, common),
    HEED_OPTION_INT(struct language_settings, turns, "turns", "0", 0, 1000000, "N",
                    "steps to time, the best counts; 0 for ten seconds, three at least"),
    LANGUAGE_FIELDS,
};
/* Options of a training that are not measured. */
#define TRAINING                                                                                   \
    "text valid-text hold-out recipe from tokens vocab-type vocab-size vocab-min-count "           \
    "vocab-coverage cased vocab bpe-joiner valid-tokens init accumulate max-updates max-epochs "   \
    "max-minutes patience optimizer beta1 beta2 eps momentum weight-decay schedule rate "          \
    "rate-floor warmup clip clip-value ema average average-kind valid-every valid-minutes "        \
    "save-every save-minutes keep log-every seed label-smoothing"
static const char *const language_defaults[] = {HEED_LANGUAGE_DEFAULTS, NULL};
static const char *const generate_examples[] = {"heed bench generate --preset gpt2 --quantize int8",
                                                "heed bench generate --preset llama --json", NULL};
static const char *const blocks_examples[] = {
    "heed bench train --arch decoder --preset gpt2 --context 64 --batch-tokens 256 --threads 1",
    NULL};
static const heed_option_set generate_set = {
    .command = "heed bench generate",
    .summary = "Measure a language model with random weights: tokens a second, one at a time, "
               "against reading its weights, and a prompt at once",
    .fields = generate_fields,
    .count = sizeof generate_fields / sizeof *generate_fields,
    .bundles = heed_language_presets,
    .examples = generate_examples,
    .defaults = language_defaults,
    .without = HEED_LANGUAGE_WITHOUT
    " threads batch-tokens dropout attention-dropout ff-dropout " TRAINING,
};
static const heed_option_set blocks_set = {
    .command = "heed bench train --arch decoder",
    .summary = "Measure training steps of a language model on stretches of --context tokens",
    .fields = blocks_fields,
    .count = sizeof blocks_fields / sizeof *blocks_fields,
    .bundles = heed_language_presets,
    .examples = blocks_examples,
    .defaults = language_defaults,
    .without = HEED_LANGUAGE_WITHOUT " " TRAINING,
};

static bool measure_language(const struct language_settings *s, const char *preset, bool generate)
{
    const bench_settings common = {(int)s->common.threads, s->common.json, NULL};
    heed_model_config m = s->model;
    m.source_vocabulary = 0;
    m.target_vocabulary = s->vocabulary;
    if (generate)
        return bench_generate(&(bench_generate_settings){.common = common,
                                                         .preset = preset,
                                                         .model = m,
                                                         .numbers = s->numbers,
                                                         .seconds = s->seconds});
    return bench_train(&(bench_train_settings){.common = common,
                                               .preset = preset,
                                               .model = m,
                                               .batch_tokens = s->train.batch_tokens,
                                               .turns = s->turns});
}

static int run_language(int argc, const char *const *argv, bool generate)
{
    invocation in;
    struct language_settings s = {0};
    int code = EXIT_DONE;
    if (!invocation_begin(&in, generate ? &generate_set : &blocks_set, argc, argv, &s))
        code = in.exit_code;
    else if (!measure_language(&s, preset_of(argc, argv), generate))
        code = EXIT_FAILED;
    invocation_end(&in);
    return code;
}

/* Whether the words are of a language model. */
static bool is_language(int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--arch=decoder") == 0 ||
            (strcmp(argv[i], "--arch") == 0 && i + 1 < argc && strcmp(argv[i + 1], "decoder") == 0))
            return true;
    return false;
}

int bench_run(int argc, const char *const *argv)
{
    if (argc > 0 && strcmp(argv[0], "attention") == 0)
        return bench_attention_run(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "generate") == 0)
        return run_language(argc - 1, argv + 1, true);
    if (argc > 1 && strcmp(argv[0], "train") == 0 && is_language(argc - 1, argv + 1))
        return run_language(argc - 1, argv + 1, false);
    if (argc > 0 && strcmp(argv[0], "decode") == 0)
        return run_decode(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "train") == 0)
        return run_train(argc - 1, argv + 1);
    return run_kernels(argc, argv);
}
