/* translation_text.c: the text of a run: sentence pairs to train and to validate with,
 * vocabularies, learned from the pairs where none is given, and how long the sentences are. */
#include "base/min_max.h"
#include "data/augment.h"
#include "data/corpus.h"
#include "data/names.h"
#include "model/model_class.h"
#include "task/defaults.h"
#include "task/translation.h"
#include "vocab/vocabulary.h"

/* ---- corpora ---- */

static heed_corpus *open_corpus(const heed__translation *t, const heed_option_list *source,
                                const heed_option_list *target, const heed_option_list *tsv,
                                bool shares, heed_error *err)
{
    heed_corpus_files files = {.source = source->items,
                               .target = target->items,
                               .pairs = source->count,
                               .tsv = tsv->items,
                               .tsvs = tsv->count,
                               .shares = shares};
    return heed_corpus_open(&files, &t->hooks.log, &t->allocator, err);
}

/* So many, but never more than a twentieth of what there is. */
static int64_t held_out(const heed__translation *t)
{
    int64_t pairs = heed_corpus_describe(t->corpus).epoch_pairs, most = pairs / 20;
    if (!t->recipe.train.hold_out)
        return heed__hold_out(pairs);
    int64_t n = t->recipe.train.hold_out < most ? t->recipe.train.hold_out : most;
    return n > 0 ? n : 1;
}

heed_status heed__open_corpora(heed__translation *t, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    t->corpus = open_corpus(t, &o->source, &o->target, &o->tsv, true, err);
    if (!t->corpus)
        return err->status;
    const heed_corpus_report r = heed_corpus_describe(t->corpus);
    if (r.epoch_pairs < r.pairs)
        heed__translation_say(t, HEED_LOG_INFO,
                              "an epoch has %lld of the %lld pairs, drawn anew each time",
                              (long long)r.epoch_pairs, (long long)r.pairs);
    if (o->valid_source.count || o->valid_tsv.count) {
        t->valid = open_corpus(t, &o->valid_source, &o->valid_target, &o->valid_tsv, false, err);
        return t->valid ? HEED_OK : err->status;
    }
    if (r.epoch_pairs < 2)
        return heed__fail(err, HEED_FORMAT,
                          "one sentence pair is too little to train and validate with");
    int64_t n = held_out(t);
    t->valid = heed_corpus_hold_out(t->corpus, n, (uint64_t)o->loop.seed, &t->allocator, err);
    if (!t->valid)
        return err->status;
    heed__translation_say(t, HEED_LOG_INFO,
                          "no validation files: %lld of the pairs are held out for validation",
                          (long long)n);
    return HEED_OK;
}

/* ---- vocabularies ---- */

/* As many as `heed vocab` takes if not told otherwise. */
#define VOCAB_LINES 2000000

static heed_status vocab_path(const heed__translation *t, const char *side, heed__pathname path,
                              heed_error *err)
{
    const char *end = t->recipe.train.tokens == HEED_TOKENS_WHITESPACE ? "vocab" : "spm";
    return heed__pathname_format(path, err, "%s/%s.%s", t->folder, side, end);
}

static heed_status learn_vocab(const heed__translation *t, heed_side side, const char *path,
                               heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    bool words = o->tokens == HEED_TOKENS_WHITESPACE;
    heed_vocab_options options = {.kind = words ? HEED_WHITESPACE : (heed_vocab_kind)o->vocab_type,
                                  .size = o->vocab_size,
                                  .min_count = o->vocab_min_count,
                                  .coverage = o->vocab_coverage,
                                  .max_lines = VOCAB_LINES,
                                  .seed = (uint64_t)o->loop.seed};
    static const char *const names[] = {
        [HEED_SOURCE] = "source", [HEED_TARGET] = "target", [HEED_BOTH] = "joint"};
    heed__translation_say(t, HEED_LOG_INFO, "learning the %s vocabulary", names[side]);
    heed_corpus_lines *lines = heed_corpus_lines_new(t->corpus, side, &t->allocator, err);
    if (!lines)
        return err->status;
    heed_line_source source = heed_corpus_lines_source(lines);
    heed_status status = heed_vocab_train(&options, &source, path, &t->hooks.log, err);
    heed_corpus_lines_free(lines);
    return status;
}

static heed_vocab *open_vocab(const heed__translation *t, const char *path, heed_error *err)
{
    heed_vocab *v = heed_vocab_open(path, t->recipe.train.bpe_joiner, &t->allocator, err);
    bool words = t->recipe.train.tokens == HEED_TOKENS_WHITESPACE;
    if (!v || (v->kind == HEED_WHITESPACE) == words)
        return v;
    heed__fail(err, HEED_ARGUMENT, "'%.300s' is %s: use --tokens %s", path,
               words ? "a SentencePiece model" : "a list of words",
               words ? "sentencepiece" : "whitespace");
    heed_vocab_free(v);
    return NULL;
}

/* In a new directory it is copied there from `given`, once that is known to be one, or learned. */
static heed_vocab *one_vocab(const heed__translation *t, const char *name, heed_side side,
                             const char *given, bool new_folder, heed_error *err)
{
    heed__pathname path;
    heed_vocab *v = NULL;
    if (vocab_path(t, name, path, err))
        return NULL;
    if (!new_folder || !given)
        return new_folder && learn_vocab(t, side, path, err) ? NULL : open_vocab(t, path, err);
    v = open_vocab(t, given, err);
    if (v && heed__file_copy(given, path, &t->allocator, err)) {
        heed_vocab_free(v);
        v = NULL;
    }
    return v;
}

heed_status heed__open_vocabularies(heed__translation *t, bool new_folder, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    if (o->joint && !o->source_vocab) {
        t->source = t->target = one_vocab(t, "shared", HEED_BOTH, o->vocab, new_folder, err);
    } else {
        t->source = one_vocab(t, "source", HEED_SOURCE, o->source_vocab, new_folder, err);
        if (t->source)
            t->target = one_vocab(t, "target", HEED_TARGET, o->target_vocab, new_folder, err);
    }
    if (!t->source || !t->target)
        return err->status;
    heed__model_reads_text(&t->recipe.model, heed_vocab_size(t->source),
                           heed_vocab_size(t->target));
    t->recipe.model.ids =
        (heed_pair_ids){heed_vocab_special(t->source), heed_vocab_special(t->target)};
    return HEED_OK;
}

/* ---- names ---- */

static heed_status learn_names(const heed__translation *t, const char *path, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    heed__pathname other;
    heed__names *before = NULL, *names = NULL;
    if (o->from && !heed__pathname_format(other, err, "%s/" HEED__NAMES_FILE, o->from))
        before = heed__names_open(other, &t->allocator, err);
    if (!err->status)
        names = heed__names_learn(t->corpus, before, &t->allocator, err);
    if (names)
        heed__names_write(names, path, err);
    heed__names_free(names);
    heed__names_free(before);
    return err->status;
}

/* Where a model has placeholders, names can be copied; which may not, the text tells, and what the
 * model to start from knew. */
heed_status heed__open_names(heed__translation *t, bool new_folder, heed_error *err)
{
    heed__pathname path;
    heed_error own = {0};
    if (!(t->recipe.train.augment.protect > 0 || t->from.protects))
        return HEED_OK;
    if (!heed__pathname_format(path, &own, "%s/" HEED__NAMES_FILE, t->folder) &&
        !(new_folder && learn_names(t, path, &own)))
        t->names = heed__names_open(path, &t->allocator, &own);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

/* ---- lengths ---- */

/* So many pairs, spread evenly, stand for all. */
#define MEASURED 10000
/* Validation gives a translation as much more room than its source has tokens as 99 in 100 pairs
 * need, and so many more, but no more than `heed translate` gives: an untrained model uses up what
 * it gets, and training begins with one. */
#define EXTRA_MORE 10
#define EXTRA_MOST 50

/* The smallest value that `share` in 100 do not pass; count[i] have the value i. */
static int64_t quantile(const int64_t *count, int64_t values, int64_t share)
{
    int64_t total = 0, so_far = 0, i = 0;
    for (int64_t k = 0; k < values; k++)
        total += count[k];
    while (i < values - 1 && (so_far += count[i]) * 100 < total * share)
        i++;
    return i;
}

/* Counts pairs by their source tokens in lengths[1..most], and by how many more their target has,
 * up to EXTRA_MOST, in extras. */
static heed_status count_lengths(const heed__translation *t, int64_t most, int64_t *lengths,
                                 int64_t extras[EXTRA_MOST + 1], heed_arena *arena, heed_error *err)
{
    int64_t pairs = heed_corpus_describe(t->corpus).epoch_pairs;
    int64_t n = pairs < MEASURED ? pairs : MEASURED;
    heed_status status = HEED_OK;
    for (int64_t i = 0; !status && i < n; i++) {
        const heed_train_options *o = &t->recipe.train;
        const heed_rng rng =
            heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)o->loop.seed, .node = (uint64_t)i});
        heed_pair p;
        heed_tokens source, target;
        heed_arena_reset(arena);
        const int64_t k = (int64_t)((double)i * (double)pairs / (double)n);
        status = heed__augment(&o->augment, t->corpus, heed__corpus_spread(t->corpus, k), &rng,
                               arena, &p, err);
        if (!status)
            status = heed_vocab_encode(t->source, p.source, p.source_length, arena, &source, err);
        if (!status)
            status = heed_vocab_encode(t->target, p.target, p.target_length, arena, &target, err);
        if (status || source.count > most || target.count > most)
            continue;
        int64_t extra = target.count - source.count;
        lengths[source.count]++;
        extras[extra < 0 ? 0 : extra < EXTRA_MOST ? extra : EXTRA_MOST]++;
    }
    return status;
}

heed_status heed__measure_text(heed__translation *t, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    int64_t most = heed__max_tokens(t) - 1, extras[EXTRA_MOST + 1] = {0}; /* and EOS */
    size_t room = (size_t)most + 1;
    int64_t *lengths = heed__allocate_zeroed(&t->allocator, room, sizeof *lengths);
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    heed_status status = !arena    ? HEED_MEMORY
                         : lengths ? count_lengths(t, most, lengths, extras, arena, err)
                                   : heed__fail(err, HEED_MEMORY, "out of memory for lengths");
    heed_arena_free(arena);
    if (!status) {
        int64_t extra = quantile(extras, EXTRA_MOST + 1, 99) + EXTRA_MORE;
        t->extra_length = extra < EXTRA_MOST ? extra : EXTRA_MOST;
        t->text = (heed_text_config){
            .tokens = t->source->kind,
            .bpe_joiner = o->bpe_joiner,
            .trained_length = heed__max(quantile(lengths, most + 1, 90), t->from.trained_length),
            .trained_longest = heed__max(quantile(lengths, most + 1, 100), t->from.trained_longest),
            .protects = o->augment.protect > 0 || t->from.protects};
    }
    heed__release(&t->allocator, lengths, room, sizeof *lengths);
    return status;
}
