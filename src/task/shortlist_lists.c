/* shortlist_lists.c: the shortlists of a model directory, from a lexicon. */
#include "base/error.h"
#include "base/memory.h"
#include "data/lexicon.h"
#include "engine/model_directory.h"
#include "engine/shortlist.h"

#include <heed/task.h>
#include <heed/translate.h>
#include <stdlib.h>
#include <string.h>

/* A translation that is less probable is none. */
#define LEAST 1e-4F

/* By source piece, the most probable translations first. */
static int by_source(const void *a, const void *b)
{
    const heed__lexicon_pair *x = a, *y = b;
    const uint64_t s = (x->key - 1) >> 32, t = (y->key - 1) >> 32;
    if (s != t)
        return s < t ? -1 : 1;
    if (x->p != y->p)
        return x->p > y->p ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* The slots that count, sorted. */
static int64_t sort_slots(heed__lexicon *x)
{
    int64_t n = 0;
    for (uint64_t i = 0; i <= x->mask; i++)
        if (x->slot[i].key && x->slot[i].p >= LEAST)
            x->slot[n++] = x->slot[i];
    qsort(x->slot, (size_t)n, sizeof *x->slot, by_source);
    return n;
}

/* The most frequent target pieces, EOS first. */
static int64_t most_frequent(const heed__lexicon *x, int32_t *always, int64_t room)
{
    const int32_t eos = heed_vocab_special(x->target).eos;
    int64_t n = 0;
    always[n++] = eos;
    while (n < room) {
        int64_t best = 0;
        for (int64_t t = 1; t < x->targets; t++)
            best = x->frequency[t] > x->frequency[best] ? t : best;
        if (x->frequency[best] == 0)
            break;
        x->frequency[best] = 0;
        if (best != eos)
            always[n++] = (int32_t)best;
    }
    return n;
}

static void add(heed_safetensors_writer *w, const char *name, const int32_t *data, int64_t count,
                heed_error *err)
{
    heed_stored s = {.name = name,
                     .dtype = HEED_I32,
                     .rank = 1,
                     .dim = {count},
                     .data = data,
                     .bytes = (size_t)count * sizeof *data};
    heed_safetensors_writer_add(w, &s, err);
}

static void write_lists(heed__lexicon *x, const heed_shortlist_options *o, const char *path,
                        heed_error *err)
{
    const int64_t slots = sort_slots(x);
    int32_t *offset = heed_arena_allocate(x->arena, (size_t)(x->sources + 1) * sizeof *offset);
    int32_t *token = heed_arena_allocate(x->arena, (size_t)(slots + x->sources) * sizeof *token);
    int32_t *always = heed_arena_allocate(x->arena, (size_t)(o->frequent + 1) * sizeof *always);
    heed_safetensors_writer *w = heed_safetensors_writer_new(&x->allocator, err);
    if (!offset || !token || !always || !w) {
        heed__fail(err, HEED_MEMORY, "out of memory for a shortlist");
        heed_safetensors_writer_free(w);
        return;
    }
    int32_t n = 0;
    for (int64_t s = 0, i = 0; s <= x->sources; s++) {
        offset[s] = n;
        if (s == x->sources)
            break;
        if (x->source == x->target) /* a name stays as it is */
            token[n++] = (int32_t)s;
        for (int64_t k = 0; i < slots && (int64_t)((x->slot[i].key - 1) >> 32) == s; i++, k++)
            if (k < o->translations)
                token[n++] = (int32_t)(uint32_t)(x->slot[i].key - 1);
    }
    add(w, "offset", offset, x->sources + 1, err);
    add(w, "token", token, n, err);
    add(w, "always", always, most_frequent(x, always, o->frequent + 1), err);
    if (!err->status)
        heed_safetensors_writer_write(w, path, err);
    heed_safetensors_writer_free(w);
}

heed_status heed_shortlist_train(const char *folder, const heed_corpus *c,
                                 const heed_shortlist_options *o, const heed_allocator *allocator,
                                 heed_error *err)
{
    heed_error own = {0};
    heed_model_config config;
    heed_text_config text;
    heed__pathname path;
    heed_vocab *source = NULL, *target = NULL;
    heed_arena *arena = heed_arena_new(allocator, &own);
    if (arena && !heed_model_read_config(folder, arena, &config, &text, &own) &&
        !heed__pathname_in(path, folder, HEED_SHORTLIST_FILE, &own) &&
        !heed_vocabs_open(folder, text.bpe_joiner, allocator, &source, &target, &own)) {
        heed__lexicon x;
        if (!heed__lexicon_learn(&x, c, source, target, allocator, &own))
            write_lists(&x, o, path, &own);
        heed__lexicon_close(&x);
    }
    heed_vocabs_free(source, target);
    heed_arena_free(arena);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
