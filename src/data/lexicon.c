/* lexicon.c: which target pieces translate which source pieces.
 *
 * IBM model 1 (Brown et al. 1993): every target piece t of a pair comes from one piece s of the
 * source, or from none, with probability p(t|s) that is learned by expectation maximisation:
 *   count(s,t) += p(t|s) / sum_s' p(t|s'),   p(t|s) = count(s,t) / sum_t' count(s,t')
 * Pairs (s,t) that occur together are the slots of a hash table. */
#include "data/lexicon.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* Pairs of sentences that are looked at: more hardly change the lists. */
#define MOST_PAIRS 300000
#define ITERATIONS 4
/* Tokens of a longer sentence do not say which belongs to which. */
#define LONGEST 100

static bool fail_memory(const heed__lexicon *x)
{
    heed__fail(x->err, HEED_MEMORY, "out of memory for a lexicon");
    return false;
}

/* ---- pairs that occur together ---- */

static heed__lexicon_pair *find(const heed__lexicon *x, int32_t s, int32_t t)
{
    const uint64_t key = ((uint64_t)(uint32_t)s << 32 | (uint32_t)t) + 1;
    uint64_t at = key * 0x9E3779B97F4A7C15u >> 20 & x->mask;
    while (x->slot[at].key && x->slot[at].key != key)
        at = (at + 1) & x->mask;
    return &x->slot[at];
}

static bool grow(heed__lexicon *x)
{
    heed__lexicon larger = *x;
    const uint64_t size = x->slot ? 2 * (x->mask + 1) : 1 << 16;
    larger.mask = size - 1;
    larger.slot = heed__allocate_zeroed(&x->allocator, size, sizeof *x->slot);
    if (!larger.slot)
        return fail_memory(x);
    for (uint64_t i = 0; x->slot && i <= x->mask; i++)
        if (x->slot[i].key) {
            const uint64_t key = x->slot[i].key - 1;
            *find(&larger, (int32_t)(key >> 32), (int32_t)(uint32_t)key) = x->slot[i];
        }
    heed__release(&x->allocator, x->slot, x->slot ? x->mask + 1 : 0, sizeof *x->slot);
    *x = larger;
    return true;
}

static bool note(heed__lexicon *x, int32_t s, int32_t t)
{
    if ((!x->slot || 2 * (uint64_t)x->used > x->mask) && !grow(x))
        return false;
    heed__lexicon_pair *slot = find(x, s, t);
    if (!slot->key) {
        *slot = (heed__lexicon_pair){((uint64_t)(uint32_t)s << 32 | (uint32_t)t) + 1, 1, 0};
        x->used++;
    }
    return true;
}

static bool note_pair(heed__lexicon *x, const heed_tokens *from, const heed_tokens *to)
{
    for (int64_t j = 0; j < to->count; j++) {
        x->frequency[to->id[j]]++;
        for (int64_t i = 0; i <= from->count; i++)
            if (!note(x, i < from->count ? from->id[i] : (int32_t)x->sources, to->id[j]))
                return false;
    }
    return true;
}

static bool read_pairs(heed__lexicon *x, const heed_corpus *c)
{
    const int64_t all = heed_corpus_describe(c).pairs, count = all < MOST_PAIRS ? all : MOST_PAIRS;
    x->from = heed_arena_allocate(x->arena, (size_t)count * sizeof *x->from);
    x->to = heed_arena_allocate(x->arena, (size_t)count * sizeof *x->to);
    if (!x->from || !x->to)
        return fail_memory(x);
    for (int64_t i = 0; i < count; i++) {
        const heed_pair p = heed_corpus_pair(c, (int64_t)((double)i * (double)all / (double)count));
        heed_tokens *from = &x->from[x->pairs], *to = &x->to[x->pairs];
        if (heed_vocab_encode(x->source, p.source, p.source_length, x->arena, from, x->err) ||
            heed_vocab_encode(x->target, p.target, p.target_length, x->arena, to, x->err))
            return false;
        if (from->count > LONGEST || to->count > LONGEST)
            continue;
        x->pairs++;
        if (!note_pair(x, from, to))
            return false;
    }
    if (!x->slot)
        heed__fail(
            x->err, HEED_ARGUMENT,
            "no translations to learn from: none of %lld pairs has 1 to %d tokens on each side",
            (long long)count, LONGEST);
    return x->slot;
}

/* ---- expectation maximisation ---- */

static void count_pair(const heed__lexicon *x, const heed_tokens *from, int32_t t)
{
    heed__lexicon_pair *slot[LONGEST + 1];
    float sum = 0;
    for (int64_t i = 0; i <= from->count; i++) {
        slot[i] = find(x, i < from->count ? from->id[i] : (int32_t)x->sources, t);
        sum += slot[i]->p;
    }
    for (int64_t i = 0; sum > 0 && i <= from->count; i++)
        slot[i]->count += slot[i]->p / sum;
}

static void iterate(const heed__lexicon *x)
{
    for (int64_t k = 0; k < x->pairs; k++)
        for (int64_t j = 0; j < x->to[k].count; j++)
            count_pair(x, &x->from[k], x->to[k].id[j]);
    memset(x->total, 0, (size_t)(x->sources + 1) * sizeof *x->total);
    for (uint64_t i = 0; i <= x->mask; i++)
        if (x->slot[i].key)
            x->total[(x->slot[i].key - 1) >> 32] += (double)x->slot[i].count;
    for (uint64_t i = 0; i <= x->mask; i++)
        if (x->slot[i].key) {
            const double total = x->total[(x->slot[i].key - 1) >> 32];
            x->slot[i].p = (float)((double)x->slot[i].count / (total > 0 ? total : 1));
            x->slot[i].count = 0;
        }
}

heed_status heed__lexicon_learn(heed__lexicon *x, const heed_corpus *c, const heed_vocab *source,
                                const heed_vocab *target, const heed_allocator *allocator,
                                heed_error *err)
{
    heed_error own = {0};
    *x = (heed__lexicon){.allocator = heed__allocator_or_default(allocator),
                         .source = source,
                         .target = target,
                         .sources = heed_vocab_size(source),
                         .targets = heed_vocab_size(target),
                         .err = &own};
    x->arena = heed_arena_new(&x->allocator, &own);
    x->total = heed__allocate(&x->allocator, (size_t)x->sources + 1, sizeof *x->total);
    x->frequency = heed__allocate_zeroed(&x->allocator, (size_t)x->targets, sizeof *x->frequency);
    if (!x->total || !x->frequency)
        fail_memory(x);
    else if (x->arena && read_pairs(x, c))
        for (int i = 0; i < ITERATIONS; i++)
            iterate(x);
    x->err = NULL;
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

double heed__lexicon_p(const heed__lexicon *x, int32_t s, int32_t t)
{
    return (double)find(x, s, t)->p;
}

void heed__lexicon_close(heed__lexicon *x)
{
    const heed_allocator a = x->allocator;
    heed__release(&a, x->slot, x->slot ? x->mask + 1 : 0, sizeof *x->slot);
    heed__release(&a, x->total, (size_t)x->sources + 1, sizeof *x->total);
    heed__release(&a, x->frequency, (size_t)x->targets, sizeof *x->frequency);
    heed_arena_free(x->arena);
    *x = (heed__lexicon){.used = 0};
}
