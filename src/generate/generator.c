/* generator.c: a language model, its vocabulary and a session, opened. */
#include "generate/generator.h"
#include "data/token_stream.h"
#include "engine/engine.h"
#include "text/special_ids.h"

#include <string.h>

/* What the vocabulary says, but for what the model's configuration knows better. */
static heed_special_ids ids_of(const heed_generator *g)
{
    const heed_special_ids *stored = &heed_engine_configuration(g->engine)->ids.target;
    heed_special_ids ids = heed_vocab_special(g->vocab);
    const bool says = stored->unk || stored->bos || stored->eos || stored->start;
    if (says && stored->start >= 0)
        ids.start = stored->start;
    return ids;
}

static heed_status open_parts(heed_generator *g, const char *folder, int threads, heed_error *err)
{
    heed_model_config config;
    heed_text_config text;
    heed_arena *arena = heed_arena_new(&g->allocator, err);
    heed_status status =
        arena ? heed_model_read_config(folder, arena, &config, &text, err) : HEED_MEMORY;
    if (!status && config.arch != HEED_ARCH_DECODER)
        status = heed__fail(err, HEED_ARGUMENT,
                            "'%.300s' is no language model, expected a decoder alone (heed train "
                            "--arch decoder, GPT-2, Llama)",
                            folder);
    if (!status)
        status =
            heed_vocabs_open(folder, text.bpe_joiner, &g->allocator, &g->vocab, &g->other, err);
    if (!status && !(g->engine = heed_engine_open(folder, &g->allocator, err)))
        status = HEED_IO;
    if (!status &&
        !(g->session = heed_session_new(g->engine, &(heed_session_options){.threads = threads},
                                        &g->allocator, err)))
        status = HEED_MEMORY;
    if (!status && heed_vocab_size(g->vocab) > config.target_vocabulary)
        status = heed__fail(err, HEED_FORMAT,
                            "'%.300s': the vocabulary has %ld pieces, the model %lld", folder,
                            (long)heed_vocab_size(g->vocab), (long long)config.target_vocabulary);
    if (!status) {
        g->ids = ids_of(g);
        g->end_mark = heed__vocab_end_mark(g->vocab);
        g->keeps_lines = heed__vocab_keeps_lines(g->vocab, arena);
        g->longest = config.longest;
        g->packed = g->session->stepper.rewind != NULL;
    }
    heed_arena_free(arena);
    return status;
}

heed_generator *heed_generator_open(const char *folder, int threads,
                                    const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    heed_error own = {0};
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed_generator *g = heed__allocate_zeroed(&a, 1, sizeof *g);
    if (!g) {
        heed__fail(err, HEED_MEMORY, "out of memory for a language model");
        return NULL;
    }
    g->allocator = a;
    if (!open_parts(g, folder, threads, &own))
        return g;
    heed_generator_free(g);
    heed__fail(err, own.status, "%s", own.text);
    return NULL;
}

void heed_generator_free(heed_generator *g)
{
    if (!g)
        return;
    const heed_allocator a = g->allocator;
    heed_session_free(g->session);
    heed_engine_free(g->engine);
    heed_vocabs_free(g->vocab, g->other);
    heed__release(&a, g, 1, sizeof *g);
}

const heed_engine *heed_generator_engine(const heed_generator *g)
{
    return g ? g->engine : NULL;
}

const heed_vocab *heed_generator_vocab(const heed_generator *g)
{
    return g ? g->vocab : NULL;
}

bool heed__generator_ends(const heed_generator *g, int32_t token)
{
    return token == g->end_mark || token == g->ids.bos;
}

/* Pieces of a text, with an end mark for each line end where these are no tokens. */
static heed_status add_text(const heed_generator *g, const char *text, size_t length,
                            heed_arena *arena, int32_t *id, int64_t *n, heed_error *err)
{
    heed_status status = HEED_OK;
    for (size_t at = 0; !status && at < length;) {
        const char *end = g->keeps_lines ? NULL : memchr(text + at, '\n', length - at);
        const size_t size = end ? (size_t)(end - text) - at : length - at;
        heed_tokens part;
        status = heed_vocab_encode(g->vocab, text + at, size, arena, &part, err);
        if (!status && part.count)
            memcpy(id + *n, part.id, (size_t)part.count * sizeof *id);
        *n += status ? 0 : part.count;
        at += size;
        if (end && !status) {
            id[(*n)++] = g->end_mark;
            at++;
        }
    }
    return status;
}

heed_status heed__generator_encode(const heed_generator *g, const char *text, size_t length,
                                   heed_arena *arena, heed_tokens *tokens, heed_error *err)
{
    /* No piece is shorter than a byte, but for the space that is put before a text. */
    int32_t *id = heed_arena_allocate(arena, (2 * length + 8) * sizeof *id);
    int64_t n = 0;
    if (!id)
        return heed__fail(err, HEED_MEMORY, "out of memory for a prompt of %zu bytes", length);
    if (g->ids.start >= 0)
        id[n++] = g->ids.start;
    heed_status status = add_text(g, text, length, arena, id, &n, err);
    if (!status && n == 0)
        status = heed__fail(err, HEED_ARGUMENT,
                            "this model has no token that stands before a text: give a prompt");
    *tokens = (heed_tokens){id, n};
    return status;
}
