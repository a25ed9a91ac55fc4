/* language_text.c: the text of a language model's run: its files, its vocabulary, its tokens. */
#include "base/file.h"
#include "model/model_class.h"
#include "task/language_task.h"
#include "vocab/vocabulary.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VOCAB_LINES 2000000 /* as `heed vocab` takes */
#define MUCH 20000000       /* bytes that take long enough to say so */

/* ---- files ---- */

heed_status heed__language_open_files(heed__language_run *t, heed_error *err)
{
    const heed_language_options *o = &t->recipe.train;
    heed_status status =
        heed__text_files_open(&t->files, o->text.items, o->text.count, &t->allocator, err);
    if (status)
        return status;
    if (o->valid_text.count)
        return heed__text_files_open(&t->valid_files, o->valid_text.items, o->valid_text.count,
                                     &t->allocator, err);
    const int64_t bytes = t->files.bytes;
    t->files.held_out = o->hold_out ? o->hold_out : heed__text_hold_out(bytes);
    if (o->hold_out > bytes / 2)
        return heed__fail(err, HEED_ARGUMENT,
                          "--hold-out is %lld, expected at most half of the text's %lld bytes",
                          (long long)o->hold_out, (long long)bytes);
    heed__language_say(t, HEED_LOG_INFO,
                       "no --valid-text: about %lld of %lld bytes are held out for validation",
                       (long long)t->files.held_out, (long long)bytes);
    return HEED_OK;
}

/* ---- the vocabulary ---- */

static heed_vocab_kind kind_of(const heed_language_options *o)
{
    static const heed_vocab_kind kinds[] = {
        [HEED_LANGUAGE_WORDS] = HEED_WHITESPACE,
        [HEED_LANGUAGE_CHARACTERS] = HEED_CHARACTERS,
        [HEED_LANGUAGE_BYTES] = HEED_BYTES,
        [HEED_LANGUAGE_WORDPIECE] = HEED_WORDPIECE,
    };
    return o->tokens == HEED_LANGUAGE_SENTENCEPIECE ? (heed_vocab_kind)o->vocab_type
                                                    : kinds[o->tokens];
}

static heed_status learn(const heed__language_run *t, const char *path, heed_error *err)
{
    const heed_language_options *o = &t->recipe.train;
    const heed_vocab_options options = {.kind = kind_of(o),
                                        .size = o->vocab_size,
                                        .min_count = o->vocab_min_count,
                                        .cased = o->cased,
                                        .coverage = o->vocab_coverage,
                                        .max_lines = VOCAB_LINES,
                                        .seed = (uint64_t)o->loop.seed};
    heed__text_walk walk = heed__text_walk_new(&t->files, HEED__KEPT_LINES);
    const heed_line_source source = heed__text_walk_source(&walk);
    heed__language_say(t, HEED_LOG_INFO, "learning the vocabulary");
    return heed_vocab_train(&options, &source, path, &t->hooks.log, err);
}

/* Byte-level BPE may have its merges in a file beside it. */
static heed_status copy_merges(const heed__language_run *t, const char *from, heed_error *err)
{
    static const char *const names[] = {"merges.txt", "vocab.bpe"};
    const char *slash = strrchr(from, '/');
    const int folder = slash ? (int)(slash - from) + 1 : 0;
    heed_status status = HEED_OK;
    for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) {
        heed__pathname source, path;
        if (heed__pathname_format(source, err, "%.*s%s", folder, from, names[i]) ||
            heed__pathname_format(path, err, "%s/%s", t->folder, names[i]))
            return err->status;
        if (access(source, R_OK) == 0)
            status = heed__file_copy(source, path, &t->allocator, err);
    }
    return status;
}

static heed_status take_vocabulary(const heed__language_run *t, const char *path, heed_error *err)
{
    const heed_language_options *o = &t->recipe.train;
    heed__pathname other;
    if (!o->vocab && !o->from)
        return learn(t, path, err);
    heed_status status = o->from ? heed__language_find_vocabulary(t, other, err)
                                 : heed__pathname_format(other, err, "%s", o->vocab);
    heed_vocab *v = status ? NULL : heed_vocab_open(other, o->bpe_joiner, &t->allocator, err);
    if (!v)
        return err->status;
    const bool bytes = v->kind == HEED_BYTES;
    heed_vocab_free(v);
    status = heed__file_copy(other, path, &t->allocator, err);
    return status || !bytes ? status : copy_merges(t, other, err);
}

/* What stands before a text: where line ends are kept, a line end; elsewhere the end mark of the
 * line before.  A model that is started from has been trained with what its vocabulary says. */
static heed_status find_start(heed__language_run *t, heed_special_ids *ids, heed_error *err)
{
    if (t->recipe.train.from && t->recipe.model.ids.target.start >= 0)
        return HEED_OK;
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    heed_tokens line;
    if (!arena)
        return HEED_MEMORY;
    const bool keeps = heed__vocab_keeps_lines(t->vocab, arena);
    heed_status status = heed_vocab_encode(t->vocab, "\n", 1, arena, &line, err);
    if (!status)
        ids->start = keeps && line.count ? line.id[line.count - 1] : heed__vocab_end_mark(t->vocab);
    heed_arena_free(arena);
    return status;
}

heed_status heed__language_open_vocabulary(heed__language_run *t, bool new_folder, heed_error *err)
{
    heed_language_recipe *r = &t->recipe;
    heed__pathname path;
    heed_error own = {0};
    const bool spm =
        !r->train.from && !r->train.vocab && r->train.tokens == HEED_LANGUAGE_SENTENCEPIECE;
    heed_status status =
        heed__pathname_format(path, &own, "%s/shared.%s", t->folder, spm ? "spm" : "vocab");
    if (!status && new_folder)
        status = take_vocabulary(t, path, &own);
    if (!status && !(t->vocab = heed_vocab_open(path, r->train.bpe_joiner, &t->allocator, &own)))
        status = own.status;
    if (!status) {
        heed_special_ids ids = heed_vocab_special(t->vocab);
        status = find_start(t, &ids, &own);
        r->model.source_vocabulary = 0;
        if (!r->train.from) {
            r->model.target_vocabulary = heed_vocab_size(t->vocab);
            r->model.ids = (heed_pair_ids){.target = ids};
        }
    }
    if (!status && heed_vocab_size(t->vocab) > r->model.target_vocabulary)
        status =
            heed__fail(&own, HEED_FORMAT, "the vocabulary has %lld pieces, and the model %lld",
                       (long long)heed_vocab_size(t->vocab), (long long)r->model.target_vocabulary);
    return status ? heed__fail(err, status, "%s", own.text) : HEED_OK;
}

/* ---- tokens ---- */

static heed_status check_length(const heed__token_stream *s, const char *which, heed_error *err)
{
    if (s->count >= 2)
        return HEED_OK;
    return heed__fail(err, HEED_FORMAT, "the %s has %lld tokens, expected 2 at least%s", which,
                      (long long)s->count,
                      *which == 'h' ? ": give --valid-text, or a larger --hold-out" : "");
}

heed_status heed__language_read_text(heed__language_run *t, heed_error *err)
{
    const bool held = !t->recipe.train.valid_text.count;
    if (t->files.bytes > MUCH)
        heed__language_say(t, HEED_LOG_INFO, "cutting %lld MB of text into tokens",
                           (long long)(t->files.bytes / 1000000));
    heed_status status =
        heed__token_stream_read(&t->train, t->vocab, &t->files,
                                held ? HEED__KEPT_LINES : HEED__ALL_LINES, &t->hooks.log, err);
    if (!status)
        status = check_length(&t->train, "text", err);
    if (!status)
        status =
            heed__token_stream_read(&t->valid, t->vocab, held ? &t->files : &t->valid_files,
                                    held ? HEED__HELD_LINES : HEED__ALL_LINES, &t->hooks.log, err);
    if (!status)
        status = check_length(&t->valid, held ? "held-out text" : "validation text", err);
    if (!status && t->train.broken)
        heed__language_say(t, HEED_LOG_WARNING, "%lld lines of the text are left out: not UTF-8",
                           (long long)t->train.broken);
    return status;
}
