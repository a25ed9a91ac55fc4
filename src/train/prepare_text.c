/* prepare_text.c: the text of a run: sentence pairs to train and to validate with, and
 * vocabularies, learned from the pairs where none is given. */
#include "text/vocab.h"
#include "train/trainer.h"

/* ---- corpora ---- */

static heed_corpus *open_corpus(const heed_trainer *t, const heed_option_list *source,
                                const heed_option_list *target, const heed_option_list *tsv,
                                heed_error *err)
{
    heed_corpus_files files = {.source = source->items,
                               .target = target->items,
                               .pairs = source->count,
                               .tsv = tsv->items,
                               .tsvs = tsv->count};
    return heed_corpus_open(&files, &t->hooks.log, &t->allocator, err);
}

/* So many, but never more than a twentieth of what there is. */
static int64_t held_out(const heed_trainer *t)
{
    int64_t pairs = heed_corpus_describe(t->corpus).pairs, most = pairs / 20;
    int64_t n = t->recipe.train.hold_out < most ? t->recipe.train.hold_out : most;
    return n > 0 ? n : 1;
}

heed_status heed__trainer_open_corpora(heed_trainer *t, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    t->corpus = open_corpus(t, &o->source, &o->target, &o->tsv, err);
    if (!t->corpus)
        return err->status;
    if (o->valid_source.count || o->valid_tsv.count) {
        t->valid = open_corpus(t, &o->valid_source, &o->valid_target, &o->valid_tsv, err);
        return t->valid ? HEED_OK : err->status;
    }
    if (heed_corpus_describe(t->corpus).pairs < 2)
        return heed__fail(err, HEED_FORMAT,
                          "one sentence pair is too little to train and validate with");
    int64_t n = held_out(t);
    t->valid = heed_corpus_hold_out(t->corpus, n, (uint64_t)o->seed, &t->allocator, err);
    if (!t->valid)
        return err->status;
    heed__trainer_say(t, HEED_LOG_INFO,
                      "no validation files: %lld of the pairs are held out for validation",
                      (long long)n);
    return HEED_OK;
}

/* ---- vocabularies ---- */

static heed_status vocab_path(const heed_trainer *t, const char *side, heed__pathname path,
                              heed_error *err)
{
    const char *end = t->recipe.train.tokens == HEED_TOKENS_WHITESPACE ? "vocab" : "spm";
    return heed__pathname_format(path, err, "%s/%s.%s", t->place, side, end);
}

static heed_status learn_vocab(const heed_trainer *t, heed_side side, const char *path,
                               heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    bool words = o->tokens == HEED_TOKENS_WHITESPACE;
    heed_vocab_options options = {.kind = words ? HEED_WHITESPACE : (heed_vocab_kind)o->vocab_type,
                                  .size = o->vocab_size,
                                  .min_count = o->vocab_min_count,
                                  .coverage = o->vocab_coverage,
                                  .seed = (uint64_t)o->seed};
    static const char *const names[] = {
        [HEED_SOURCE] = "source", [HEED_TARGET] = "target", [HEED_BOTH] = "joint"};
    heed__trainer_say(t, HEED_LOG_INFO, "learning the %s vocabulary", names[side]);
    heed_corpus_lines *lines = heed_corpus_lines_new(t->corpus, side, &t->allocator, err);
    if (!lines)
        return err->status;
    heed_line_source source = heed_corpus_lines_source(lines);
    heed_status status = heed_vocab_train(&options, &source, path, &t->hooks.log, err);
    heed_corpus_lines_free(lines);
    return status;
}

static heed_vocab *open_vocab(const heed_trainer *t, const char *path, heed_error *err)
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
static heed_vocab *one_vocab(const heed_trainer *t, const char *name, heed_side side,
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

heed_status heed__trainer_open_vocabularies(heed_trainer *t, bool new_folder, heed_error *err)
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
    t->recipe.model.source_vocabulary = heed_vocab_size(t->source);
    t->recipe.model.target_vocabulary = heed_vocab_size(t->target);
    return HEED_OK;
}
