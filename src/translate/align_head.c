/* align_head.c: which head of a decoder aligns words, or which layer with all of its heads.
 *
 * The model keeps a sample of its training text.  From that a lexicon is learned (IBM model 1): for
 * a target piece that is clearly the translation of one piece of its sentence, a head that aligns
 * looks there when it is written.  The head that does so most often is taken, or the sum of a
 * layer's if that does better. */
#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/min_max.h"
#include "data/lexicon.h"
#include "translate/translator.h"

#include <math.h>
#include <string.h>

/* Of the sample, pairs that are looked at. */
#define PAIRS 150
/* A translation that is less probable is not clear; nor one that is hardly better than none. */
#define CLEAR 0.2

/* How often each head looked where the lexicon does: (layers, 1 + heads), the sum first. */
struct votes {
    int64_t *count;
    int layers, heads;
};

/* The place of the source that piece t clearly comes from; -1: none does. */
static int64_t origin(const heed__lexicon *x, const heed_tokens *source, int32_t t)
{
    double most = fmax(CLEAR, heed__lexicon_p(x, (int32_t)x->sources, t));
    int64_t best = -1;
    for (int64_t i = 0; i < source->count; i++) {
        const double p = heed__lexicon_p(x, source->id[i], t);
        if (p > most) {
            most = p;
            best = i;
        }
    }
    return best;
}

/* Whether the largest of n is in this place. */
static bool looks_at(const heed_real *weight, int64_t n, int64_t place)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        best = weight[k] > weight[best] ? k : best;
    return best == place;
}

/* Where row j looked, for each head and each layer's sum. */
static void vote_row(const heed_attention_map *maps, int64_t count, int64_t j, int64_t place,
                     heed_real *sum, struct votes *v)
{
    for (int layer = 0; layer < v->layers; layer++) {
        int64_t *votes = v->count + layer * (1 + v->heads), keys = 0;
        for (int64_t i = 0; i < count; i++) {
            const heed_attention_map *m = &maps[i];
            if (m->kind != HEED_CROSS || m->layer != layer || m->head >= v->heads)
                continue;
            const heed_real *weight = m->weight + j * m->keys;
            for (int64_t k = 0; k < m->keys; k++)
                sum[k] = (keys ? sum[k] : 0) + weight[k];
            keys = m->keys;
            votes[1 + m->head] += looks_at(weight, keys, place);
        }
        votes[0] += keys && looks_at(sum, keys, place);
    }
}

static heed_status vote(const heed_translator *tr, const heed__lexicon *x, int64_t pair,
                        heed_arena *arena, struct votes *v, heed_error *err)
{
    const heed_attention_map *maps;
    int64_t count;
    const heed_tokens *from = &x->from[pair], *to = &x->to[pair];
    heed_arena_reset(arena);
    heed_status status = heed_engine_attention(tr->engine, from, to, arena, &maps, &count, err);
    heed_real *sum = status ? NULL : heed__take(arena, from->count + 1, sizeof *sum, err);
    if (!sum)
        return status ? status : HEED_MEMORY;
    for (int64_t j = 0; j < to->count; j++) {
        const int64_t place = origin(x, from, to->id[j]);
        if (place >= 0)
            vote_row(maps, count, j, place, sum, v);
    }
    return status;
}

static heed_status vote_all(const heed_translator *tr, const heed__lexicon *x, struct votes *v,
                            heed_error *err)
{
    heed_arena *arena = heed_arena_new(&tr->allocator, err);
    const int64_t longest = heed_engine_configuration(tr->engine)->longest - 1;
    const int64_t n = heed__min(x->pairs, PAIRS);
    heed_status status = arena ? HEED_OK : HEED_MEMORY;
    for (int64_t i = 0; !status && i < n; i++) {
        const int64_t pair = i * x->pairs / n;
        if (x->from[pair].count && x->from[pair].count <= longest && x->to[pair].count <= longest)
            status = vote(tr, x, pair, arena, v, err);
    }
    heed_arena_free(arena);
    return status;
}

static heed_status choose(const heed_translator *tr, const heed_corpus *sample, struct votes *v,
                          int *layer, int *head, heed_error *err)
{
    heed__lexicon x;
    heed_status status =
        heed__lexicon_learn(&x, sample, tr->source, tr->target, &tr->allocator, err);
    if (!status)
        status = vote_all(tr, &x, v, err);
    heed__lexicon_close(&x);
    int64_t best = 0;
    for (int64_t i = 1; i < (int64_t)v->layers * (1 + v->heads); i++)
        best = v->count[i] > v->count[best] ? i : best;
    if (!status && v->count[best]) {
        *layer = (int)(best / (1 + v->heads)) + 1;
        *head = (int)(best % (1 + v->heads));
    }
    return status;
}

heed_status heed_translator_best_head(const heed_translator *tr, int *layer, int *head,
                                      heed_error *err)
{
    if (!tr || !layer || !head)
        return heed__missing(err, "translator, layer or head");
    const heed_model_config *c = heed_engine_configuration(tr->engine);
    struct votes v = {.layers = (int)c->decoder_layers, .heads = (int)c->transformer.heads};
    *layer = *head = 0;
    if (c->arch != HEED_ARCH_TRANSFORMER || !tr->sample || !heed__folder_exists(tr->sample))
        return HEED_OK;
    const heed_corpus_files files = {.tsv = (const char *const[]){tr->sample}, .tsvs = 1};
    const size_t all = (size_t)v.layers * (size_t)(1 + v.heads);
    heed_corpus *sample = heed_corpus_open(&files, NULL, &tr->allocator, err);
    v.count = sample ? heed__allocate_zeroed(&tr->allocator, all, sizeof *v.count) : NULL;
    heed_status status = HEED_OK;
    if (!sample)
        status = HEED_IO;
    else if (!v.count)
        status = heed__fail(err, HEED_MEMORY, "out of memory for counts of heads");
    else
        status = choose(tr, sample, &v, layer, head, err);
    heed__release(&tr->allocator, v.count, all, sizeof *v.count);
    heed_corpus_free(sample);
    return status;
}
