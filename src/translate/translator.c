/* translator.c: a model with its vocabularies, opened from a directory or put together. */
#include "translate/translator.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/model_directory.h"
#include "model/model_class.h"

#include <stdio.h>

static heed_translator *begin(const heed_allocator *allocator, int threads, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_translator *tr = heed__allocate_zeroed(&a, 1, sizeof *tr);
    if (!tr) {
        heed__fail(err, HEED_MEMORY, "out of memory for a translator");
        return NULL;
    }
    tr->allocator = a;
    tr->threads = threads;
    bool whole = (tr->lines = heed_arena_new(&a, err)) != NULL;
    for (int i = 0; whole && i < HEED__WINDOWS; i++)
        whole = (tr->window[i] = heed_arena_new(&a, err)) != NULL;
    if (whole)
        return tr;
    heed_translator_free(tr);
    return NULL;
}

/* where: "" or "'folder': ". */
static heed_status check_vocabularies(const heed_vocab *source, const heed_vocab *target,
                                      const heed_model_config *config, const char *where,
                                      heed_error *err)
{
    const heed_vocab *const v[] = {source, target};
    const int64_t expected[] = {config->source_vocabulary, config->target_vocabulary};
    for (int i = 0; i < 2; i++)
        if (heed_vocab_size(v[i]) != expected[i])
            return heed__fail(
                err, HEED_FORMAT,
                "%sthe %s vocabulary has %lld pieces, expected %lld as in the model's "
                "configuration: it belongs to another model",
                where, i ? "target" : "source", (long long)heed_vocab_size(v[i]),
                (long long)expected[i]);
    return HEED_OK;
}

void heed__translator_trained(heed_translator *tr, const heed_text_config *text,
                              const heed__names *names)
{
    tr->names = names;
    tr->trained_length = text->trained_length;
    tr->trained_longest = text->trained_longest;
    tr->knows_placeholders = text->protects;
    heed_translator_protect(tr, true);
    tr->capitals = tr->knows_letters = text->tokens != HEED_WHITESPACE;
}

/* The model of a directory and its vocabularies, which become tr's. */
static heed_status read_folder(heed_translator *tr, const char *folder, heed_error *err)
{
    heed_model_config config;
    heed_text_config text;
    heed__pathname names, where;
    heed_status status = heed_model_read_config(folder, tr->lines, &config, &text, err);
    if (!status)
        status = heed__pathname_in(names, folder, HEED__NAMES_FILE, err);
    if (!status)
        status = heed_vocabs_open(folder, text.bpe_joiner, &tr->allocator, &tr->own_source,
                                  &tr->own_target, err);
    if (status)
        return status;
    if (!config.source_vocabulary || !config.target_vocabulary)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot translate with '%.255s': it is an encoder or a decoder alone, "
                          "expected a model with both",
                          folder);
    snprintf(where, sizeof where, "'%.255s': ", folder);
    status = check_vocabularies(tr->own_source, tr->own_target, &config, where, err);
    if (status)
        return status;
    heed_error own = {0};
    tr->sample = heed__allocate(&tr->allocator, sizeof(heed__pathname), 1);
    if (!tr->sample)
        return heed__fail(err, HEED_MEMORY, "out of memory for a translator");
    if (heed__pathname_in(tr->sample, folder, HEED__SAMPLE_FILE, err))
        return HEED_ARGUMENT;
    tr->into = heed__language_of(folder);
    if (text.protects)
        tr->own_names = heed__names_open(names, &tr->allocator, &own);
    if (own.status)
        return heed__fail(err, own.status, "%s", own.text);
    heed__translator_trained(tr, &text, tr->own_names);
    if (heed__model_check(&config, &own))
        return heed__fail(err, own.status, "%s%s", where, own.text);
    tr->characters = heed__characters_of(tr->own_source, tr->lines, &tr->allocator, err);
    if (!tr->characters)
        return HEED_MEMORY;
    tr->engine = heed__engine_open(&config, folder, &tr->allocator, &own);
    return tr->engine ? HEED_OK : heed__fail(err, own.status, "%s", own.text);
}

heed_translator *heed_translator_open(const char *folder, int threads,
                                      const heed_allocator *allocator, heed_error *err)
{
    heed_translator *tr = begin(allocator, threads, err);
    if (!tr)
        return NULL;
    const char *found = heed_model_find(folder, tr->lines, err);
    if (!found || read_folder(tr, found, err)) {
        heed_translator_free(tr);
        return NULL;
    }
    tr->source = tr->own_source;
    tr->target = tr->own_target;
    return tr;
}

heed_translator *heed_translator_new(const heed_model *m, const heed_vocab *source,
                                     const heed_vocab *target, int threads,
                                     const heed_allocator *allocator, heed_error *err)
{
    if (!m)
        return heed__missing(err, "model"), NULL;
    if (check_vocabularies(source, target, heed_model_configuration(m), "", err))
        return NULL;
    heed_translator *tr = begin(allocator, threads, err);
    if (!tr)
        return NULL;
    tr->source = source;
    tr->target = target;
    tr->characters = heed__characters_of(source, tr->lines, &tr->allocator, err);
    tr->engine = tr->characters ? heed_engine_new(m, &tr->allocator, err) : NULL;
    if (tr->engine)
        return tr;
    heed_translator_free(tr);
    return NULL;
}

void heed_translator_free(heed_translator *tr)
{
    if (!tr)
        return;
    heed_allocator a = tr->allocator;
    heed__worker_contexts_close(tr);
    heed_engine_free(tr->engine);
    heed__characters_free(tr->characters, &a);
    heed__names_free(tr->own_names);
    heed_vocabs_free(tr->own_source, tr->own_target);
    heed__release(&a, tr->sample, sizeof(heed__pathname), 1);
    for (int i = 0; i < HEED__WINDOWS; i++)
        heed_arena_free(tr->window[i]);
    heed_arena_free(tr->lines);
    heed__release(&a, tr, 1, sizeof *tr);
}

const heed_engine *heed_translator_engine(const heed_translator *tr)
{
    if (!tr)
        return NULL;
    return tr->engine;
}

heed_status heed_translator_align(heed_translator *tr, int layer, int head, heed_error *err)
{
    if (!tr)
        return heed__missing(err, "translator");
    const heed_model_config *c = heed_engine_configuration(tr->engine);
    const bool rnn = c->arch == HEED_ARCH_RNN;
    const int last = rnn ? 1 : (int)c->decoder_layers; /* that attend */
    const int heads = rnn ? 1 : (int)c->transformer.heads;
    if (layer < 0 || layer > last)
        return heed__fail(err, HEED_ARGUMENT, "there is no layer %d: the decoder has %d", layer,
                          last);
    if (!layer && !head && heed_translator_best_head(tr, &layer, &head, err))
        return err ? err->status : HEED_IO;
    layer = layer ? layer : last > 2 ? last - 1 : last;
    if (head < 0 || head > heads)
        return heed__fail(err, HEED_ARGUMENT,
                          "there is no layer %d, head %d: the number of heads is %d", layer, head,
                          heads);
    tr->aligns = true;
    tr->align_layer = layer;
    tr->align_head = head;
    return HEED_OK;
}

void heed_translator_protect(heed_translator *tr, bool on)
{
    if (!tr)
        return;
    tr->protects = tr->knows_placeholders && on;
    tr->lacks_placeholders = !tr->knows_placeholders && on;
}

void heed_translator_capitals(heed_translator *tr, bool on)
{
    if (!tr)
        return;
    tr->capitals = tr->knows_letters && on;
}

heed_status heed_translator_use_shortlist(heed_translator *tr, const char *folder, heed_error *err)
{
    if (!tr)
        return heed__missing(err, "translator");
    heed__worker_contexts_close(tr); /* sessions that are open do not know it */
    heed_status status = heed_engine_open_shortlist(tr->engine, folder, err);
    tr->shortlist = !status;
    return status;
}

const heed_vocab *heed_translator_source(const heed_translator *tr)
{
    if (!tr)
        return NULL;
    return tr->source;
}

const heed_vocab *heed_translator_target(const heed_translator *tr)
{
    if (!tr)
        return NULL;
    return tr->target;
}
