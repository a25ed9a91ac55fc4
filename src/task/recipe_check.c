/* recipe_check.c: which options of a run are refused: those that do not go together, and those that
 * would be in vain. */
#include "base/option_parse.h"
#include "model/model_class.h"
#include "task/run_options.h"
#include "task/translation.h"
#include "vocab/vocabulary.h"

#include <string.h>

static heed_status check_files(const heed_train_options *o, heed_error *err)
{
    if (!o->source.count && !o->target.count && !o->tsv.count)
        return heed__fail(err, HEED_ARGUMENT,
                          "nothing to learn from: give --source and --target, or --tsv");
    if (o->source.count != o->target.count)
        return heed__fail(err, HEED_ARGUMENT,
                          "files with --source: %d, with --target: %d, expected as many",
                          o->source.count, o->target.count);
    if (o->valid_source.count != o->valid_target.count)
        return heed__fail(
            err, HEED_ARGUMENT,
            "files with --valid-source: %d, with --valid-target: %d, expected as many",
            o->valid_source.count, o->valid_target.count);
    return HEED_OK;
}

/* A translation has two sides. */
static heed_status check_arch(const heed_recipe *r, heed_error *err)
{
    if (r->model.arch == HEED_ARCH_TRANSFORMER || r->model.arch == HEED_ARCH_RNN)
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT,
                      "--arch %s reads one side, a translation has two: use --arch transformer or "
                      "--arch rnn",
                      r->model.arch == HEED_ARCH_DECODER ? "decoder" : "encoder");
}

static heed_status check_vocabularies(const heed_recipe *r, heed_error *err)
{
    const heed_train_options *o = &r->train;
    if (o->vocab && (o->source_vocab || o->target_vocab))
        return heed__fail(err, HEED_ARGUMENT,
                          "--vocab is for both languages: it cannot stand beside --source-vocab or "
                          "--target-vocab");
    if (!o->source_vocab != !o->target_vocab)
        return heed__fail(err, HEED_ARGUMENT,
                          "--source-vocab and --target-vocab must be given together");
    bool separate = !o->joint || o->source_vocab;
    if (o->vocab && !o->joint)
        return heed__fail(err, HEED_ARGUMENT, "--vocab is for both languages: not with --no-joint");
    if (separate && r->model.tying == HEED_TIE_ALL)
        return heed__fail(err, HEED_ARGUMENT,
                          "two vocabularies cannot share one matrix: with --no-joint or "
                          "--source-vocab use --tying target or --tying none");
    if (o->vocab_size && o->vocab_size <= HEED__SPECIALS)
        return heed__fail(err, HEED_ARGUMENT,
                          "--vocab-size is %lld, expected at least %d: %d pieces are special",
                          (long long)o->vocab_size, HEED__SPECIALS + 1, HEED__SPECIALS);
    return HEED_OK;
}

/* What one kind of tokens has and the other would ignore in silence. */
static heed_status check_tokens(const heed_train_options *o, heed_error *err)
{
    bool words = o->tokens == HEED_TOKENS_WHITESPACE;
    if (words && o->vocab_type == HEED_BPE)
        return heed__fail(
            err, HEED_ARGUMENT,
            "--vocab-type bpe learns to cut words, --tokens whitespace does not: leave "
            "--tokens out, or, if the text is cut already, --vocab-type");
    if (words && o->vocab_coverage < 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "--vocab-coverage needs --tokens sentencepiece: for words there is "
                          "--vocab-min-count");
    if (!words && o->vocab_min_count > 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "--vocab-min-count needs --tokens whitespace: for subwords there is "
                          "--vocab-size");
    if (o->bpe_joiner && !words)
        return heed__fail(err, HEED_ARGUMENT, "--bpe-joiner needs --tokens whitespace");
    if (o->bpe_joiner && !*o->bpe_joiner)
        return heed__fail(err, HEED_ARGUMENT, "--bpe-joiner is empty");
    if (o->subword_sampling > 0 && words && !o->bpe_joiner)
        return heed__fail(err, HEED_ARGUMENT,
                          "--subword-sampling needs --tokens sentencepiece, or --bpe-joiner: words "
                          "are not cut");
    if (o->subword_sampling > 1 && (words || o->vocab_type == HEED_BPE))
        return heed__fail(err, HEED_ARGUMENT,
                          "--subword-sampling is %g, expected at most 1 with %s: it is a "
                          "probability",
                          o->subword_sampling, words ? "--bpe-joiner" : "--vocab-type bpe");
    if ((o->augment.protect > 0 || o->augment.invent > 0 || o->augment.vary > 0) && words)
        return heed__fail(err, HEED_ARGUMENT,
                          "--protect, --invent and --vary need --tokens sentencepiece: a word more "
                          "or less is unknown to --tokens whitespace");
    return HEED_OK;
}

static heed_status check_training(const heed_train_options *o, heed_error *err)
{
    if (o->valid_metric != HEED_VALID_LOSS && !o->valid_lines)
        return heed__fail(err, HEED_ARGUMENT,
                          "--valid-lines 0 translates nothing: it needs --valid-metric loss");
    return heed__loop_check(&o->loop, err);
}

/* ---- what would be in vain ---- */

static bool attends(const heed_recipe *r)
{
    return r->model.arch != HEED_ARCH_RNN || r->model.rnn.attend != HEED_ATTEND_NEVER;
}

/* With --from, the vocabulary is its own matter. */
static bool learns_vocabulary(const heed_recipe *r)
{
    return r->train.from || (!r->train.vocab && !r->train.source_vocab);
}

static bool samples(const heed_recipe *r)
{
    return r->train.subword_sampling > 0;
}

static bool holds_out(const heed_recipe *r)
{
    return !r->train.valid_source.count && !r->train.valid_tsv.count;
}

#define LEARNED "is for a vocabulary that is learned: not with --vocab or --source-vocab"
#define ATTENDS "needs --attend before or after"
static const struct {
    const char *name;
    bool (*heard)(const heed_recipe *r);
    const char *otherwise; /* what is said if not */
} needs[] = {
    {"attention-score", attends, ATTENDS},
    {"attention-pattern", attends, ATTENDS},
    {"attention-normaliser", attends, ATTENDS},
    {"attention-memory", attends, ATTENDS},
    {"attention-dropout", attends, ATTENDS},
    {"attention-beta", attends, ATTENDS},
    {"vocab-type", learns_vocabulary, LEARNED},
    {"vocab-size", learns_vocabulary, LEARNED},
    {"vocab-min-count", learns_vocabulary, LEARNED},
    {"vocab-coverage", learns_vocabulary, LEARNED},
    {"sampling-sides", samples, "needs --subword-sampling"},
    {"hold-out", holds_out, "is for training without validation files"},
};

static heed_status check_heard(const heed_recipe *r, heed_error *err)
{
    static const char *const archs[] = {HEED_ARCH_WORDS};
    for (int i = 0; i < heed__recipe_set.count; i++) {
        const char *name = heed__recipe_set.fields[i].name;
        if (!heed__option_typed(&r->origins, name) || heed__model_listens(r->model.arch, name))
            continue;
        int other = 0;
        while (!heed__model_listens(other, name))
            other++;
        return heed__fail(err, HEED_ARGUMENT, "--%s needs --arch %s", name, archs[other]);
    }
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (heed__option_typed(&r->origins, needs[i].name) && !needs[i].heard(r))
            return heed__fail(err, HEED_ARGUMENT, "--%s %s", needs[i].name, needs[i].otherwise);
    return heed__check_heard(&r->origins, &r->model, &r->train.loop, err);
}

heed_status heed__recipe_check(const heed_recipe *r, heed_error *err)
{
    heed_status status = check_files(&r->train, err);
    if (!status)
        status = check_arch(r, err);
    if (!status)
        status = heed__options_check_names(&heed__recipe_set, r, err);
    if (!status)
        status = check_vocabularies(r, err);
    if (!status)
        status = check_tokens(&r->train, err);
    if (!status)
        status = check_training(&r->train, err);
    return status ? status : check_heard(r, err);
}
