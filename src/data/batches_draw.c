/* batches_draw.c: the pairs of a window in the order of their epoch, cut into tokens.
 *
 * The order of an epoch is a permutation of the corpus, or of the shares of its files, keyed (seed,
 * epoch).  If tokenising is not random and the ids are not too large, they are cached from epoch to
 * epoch; of streams that share the work, lengths are, however many. */
#include "base/error.h"
#include "data/augment.h"
#include "data/batches.h"
#include "data/corpus.h"

#include <string.h>

#define ID_BLOCK ((int64_t)1 << 14)

heed_rng heed__maker_stream(const heed__maker *m, int purpose, int64_t epoch, int64_t node,
                            int side)
{
    heed_rng_key key = {.seed = m->options.seed,
                        .step = (uint64_t)epoch,
                        .micro_batch = (uint32_t)side,
                        .rank = (uint32_t)purpose,
                        .node = (uint64_t)node};
    return heed_rng_stream(&key);
}

/* ---- the order ---- */

/* Of every file its share; then Fisher and Yates. */
static void order_epoch(heed__maker *m, int64_t epoch)
{
    if (!m->order || m->ordered == epoch)
        return;
    int64_t parts, n = 0;
    const heed__corpus_part *part = heed__corpus_parts(m->corpus, &parts);
    for (int64_t i = 0; i < parts; i++) {
        heed_rng drawn = heed__maker_stream(m, HEED__FOR_SHARES, epoch, i, 0);
        n += heed__part_draw(&part[i], &drawn, m->order + n);
    }
    heed_rng rng = heed__maker_stream(m, HEED__FOR_ORDER, epoch, 0, 0);
    for (int64_t i = m->pairs - 1; i > 0; i--) {
        int64_t j = heed_rng_below(&rng, (uint64_t)i, i + 1);
        uint32_t swap = m->order[i];
        m->order[i] = m->order[j];
        m->order[j] = swap;
    }
    m->ordered = epoch;
}

/* ---- tokens ---- */

static const int32_t *keep_ids(heed__id_store *s, const heed_tokens *t)
{
    if (!s->at || s->left < t->count) {
        int64_t capacity = t->count > ID_BLOCK ? t->count : ID_BLOCK;
        s->at = heed_arena_allocate(s->arena, (size_t)capacity * sizeof *s->at);
        s->left = s->at ? capacity : 0;
        if (!s->at)
            return NULL;
    }
    int32_t *ids = s->at;
    if (t->count)
        memcpy(ids, t->id, (size_t)t->count * sizeof *ids);
    s->at += t->count;
    s->left -= t->count;
    return ids;
}

/* The text of a pair in this epoch. */
static heed_status text_of(heed__window *w, heed__maker *m, int64_t pair, bool join,
                           heed_pair *text)
{
    heed_augment_options o = m->options.augment;
    if (!heed__augments(&o)) {
        *text = heed_corpus_pair(m->corpus, pair);
        return HEED_OK;
    }
    o.join = join ? o.join : 0;
    heed_rng rng = heed__maker_stream(m, HEED__FOR_AUGMENTING, w->position.epoch, pair, 0);
    heed_arena_reset(m->changed);
    return heed__augment(&o, m->corpus, pair, &rng, m->changed, text, &w->err);
}

/* The ids of one side of a pair, from the cache or into it, or into the window. */
static heed_status tokenise(heed__window *w, heed__maker *m, int side, int64_t pair,
                            const heed_pair *p, heed_tokens *tokens)
{
    heed_tokens *cached = m->cached[side] ? &m->cached[side][pair] : NULL;
    if (cached && cached->id) {
        *tokens = *cached;
        return HEED_OK;
    }
    const char *text = side ? p->target : p->source;
    size_t length = side ? p->target_length : p->source_length;
    heed_rng rng = heed__maker_stream(m, HEED__FOR_SAMPLING, w->position.epoch, pair, side);
    heed_arena_reset(m->scratch);
    w->cut++;
    heed_status status =
        m->sampling[side] > 0
            ? heed_vocab_sample(m->vocab[side], text, length, m->sampling[side], &rng, m->scratch,
                                tokens, &w->err)
            : heed_vocab_encode(m->vocab[side], text, length, m->scratch, tokens, &w->err);
    if (status)
        return status;
    tokens->id = keep_ids(cached ? &m->cache : &w->ids, tokens);
    if (!tokens->id)
        return heed__maker_short(m, &w->err);
    if (cached)
        *cached = *tokens;
    return HEED_OK;
}

bool heed__too_long(const heed__maker *m, heed__lengths length)
{
    return length.source > m->options.max_tokens || length.target > m->options.max_tokens;
}

static heed_status cut_one(heed__window *w, heed__maker *m, int64_t i, bool join,
                           heed__lengths *length)
{
    const int64_t pair = w->pair[i];
    heed_pair text;
    if (text_of(w, m, pair, join, &text) || tokenise(w, m, 0, pair, &text, &w->source[i]) ||
        tokenise(w, m, 1, pair, &text, &w->target[i]))
        return w->err.status;
    *length = (heed__lengths){(int32_t)w->source[i].count + 1, (int32_t)w->target[i].count + 1};
    return HEED_OK;
}

bool heed__window_cut(heed__window *w, heed__maker *m, int64_t i, heed__lengths *length)
{
    if (atomic_load_explicit(m->stop, memory_order_relaxed) || cut_one(w, m, i, true, length))
        return false;
    /* A pair that is too long only because of joining is used without it. */
    return !(m->options.augment.join > 0 && heed__too_long(m, *length)) ||
           !cut_one(w, m, i, false, length);
}

/* ---- a window ---- */

static void start_over(heed__window *w, heed_batches_position p)
{
    heed_arena_reset(w->ids.arena);
    w->ids = (heed__id_store){.arena = w->ids.arena};
    w->position = (heed_batches_position){p.epoch, p.window, 0};
    w->drawn = w->pairs = w->batches = w->left_out = w->cut = 0;
    w->end = false;
    w->err.status = HEED_OK;
}

void heed__window_draw(heed__window *w, heed__maker *m, heed_batches_position p)
{
    const int rank = m->sharing.rank, size = m->sharing.size;
    start_over(w, p);
    w->end = m->options.epochs && p.epoch >= m->options.epochs;
    if (w->end)
        return;
    order_epoch(m, p.epoch);
    const int64_t begin = p.window * m->options.window, rest = m->pairs - begin;
    w->drawn = rest < m->options.window ? rest : m->options.window;
    for (int64_t i = 0; i < w->drawn; i++) {
        w->pair[i] = m->order ? m->order[begin + i] : begin + i;
        w->source[i].id = w->target[i].id = NULL;
    }
    bool good = true;
    for (int64_t i = rank; good && i < w->drawn; i += size) {
        heed__lengths *length = &w->mine[i / size];
        if (m->known && m->known[w->pair[i]].target)
            *length = m->known[w->pair[i]];
        else
            good = heed__window_cut(w, m, i, length);
    }
}
