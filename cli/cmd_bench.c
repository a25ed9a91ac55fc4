/* cmd_bench.c: `heed bench kernels`, `heed bench train` and `heed bench decode`. */
#include "bench/bench.h"
#include "command.h"
#include "numbers.h"

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
    .summary =
        "Measure the kernels, whole training steps ('heed bench train --help') or decoding ('heed "
        "bench decode --help') against what this machine gives",
    .arguments = "kernels|train|decode",
    .least = 1,
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static int run_kernels(int argc, const char *const *argv)
{
    static const char *const subjects[] = {"kernels", "train", "decode", NULL};
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
static const heed_option_set train_set = {
    .command = "heed bench train",
    .summary = "Measure training steps: tokens a second, share of the multiply-add peak, memory",
    .fields = train_fields,
    .count = sizeof train_fields / sizeof *train_fields,
    .bundles = heed_model_presets,
    .examples = train_examples,
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

int bench_run(int argc, const char *const *argv)
{
    if (argc > 0 && strcmp(argv[0], "decode") == 0)
        return run_decode(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "train") == 0)
        return run_train(argc - 1, argv + 1);
    return run_kernels(argc, argv);
}
