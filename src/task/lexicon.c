/* lexicon.c: which target pieces translate which source pieces, for shortlists.
 *
 * IBM model 1 (Brown et al. 1993): every target piece t of a pair comes from one piece s of the
 * source, or from none, with probability p(t|s) that is learned by expectation maximisation:
 *   count(s,t) += p(t|s) / sum_s' p(t|s'),   p(t|s) = count(s,t) / sum_t' count(s,t')
 * Pairs (s,t) that occur together are the slots of a hash table. */
#include "base/error.h"
#include "base/memory.h"
#include "engine/model_directory.h"
#include "engine/shortlist.h"

#include <heed/task.h>
#include <heed/translate.h>
#include <stdlib.h>
#include <string.h>

/* Pairs of sentences that are looked at: more hardly change the lists. */
#define MOST_PAIRS 300000
#define ITERATIONS 4
/* Tokens of a longer sentence do not say which belongs to which. */
#define LONGEST 100
/* A translation that is less probable is none. */
#define LEAST 1e-4F

struct slot {
    uint64_t key; /* s << 32 | t, plus 1; 0: free */
    float p, count;
};

struct lexicon {
    heed_allocator allocator;
    heed_arena *arena;
    const heed_vocab *source, *target;
    int32_t eos;              /* of the target */
    int64_t sources, targets; /* sizes of the vocabularies; piece `sources` is "none" */
    heed_tokens *from, *to;   /* (pairs) */
    int64_t pairs;
    struct slot *slot; /* (mask + 1) */
    uint64_t mask;
    int64_t used;
    double *total;      /* (sources + 1) sum over t of count(s,t) */
    int64_t *frequency; /* (targets) */
    heed_error *err;
};

static bool fail_memory(const struct lexicon *x)
{
    heed__fail(x->err, HEED_MEMORY, "out of memory for a shortlist");
    return false;
}

/* ---- pairs that occur together ---- */

static struct slot *find(const struct lexicon *x, int32_t s, int32_t t)
{
    const uint64_t key = ((uint64_t)(uint32_t)s << 32 | (uint32_t)t) + 1;
    uint64_t at = key * 0x9E3779B97F4A7C15u >> 20 & x->mask;
    while (x->slot[at].key && x->slot[at].key != key)
        at = (at + 1) & x->mask;
    return &x->slot[at];
}

static bool grow(struct lexicon *x)
{
    struct lexicon larger = *x;
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

static bool note(struct lexicon *x, int32_t s, int32_t t)
{
    if ((!x->slot || 2 * (uint64_t)x->used > x->mask) && !grow(x))
        return false;
    struct slot *slot = find(x, s, t);
    if (!slot->key) {
        *slot = (struct slot){((uint64_t)(uint32_t)s << 32 | (uint32_t)t) + 1, 1, 0};
        x->used++;
    }
    return true;
}

static bool note_pair(struct lexicon *x, const heed_tokens *from, const heed_tokens *to)
{
    for (int64_t j = 0; j < to->count; j++) {
        x->frequency[to->id[j]]++;
        for (int64_t i = 0; i <= from->count; i++)
            if (!note(x, i < from->count ? from->id[i] : (int32_t)x->sources, to->id[j]))
                return false;
    }
    return true;
}

static bool read_pairs(struct lexicon *x, const heed_corpus *c)
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

static void count_pair(const struct lexicon *x, const heed_tokens *from, int32_t t)
{
    struct slot *slot[LONGEST + 1];
    float sum = 0;
    for (int64_t i = 0; i <= from->count; i++) {
        slot[i] = find(x, i < from->count ? from->id[i] : (int32_t)x->sources, t);
        sum += slot[i]->p;
    }
    for (int64_t i = 0; sum > 0 && i <= from->count; i++)
        slot[i]->count += slot[i]->p / sum;
}

static void iterate(const struct lexicon *x)
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

/* ---- lists ---- */

/* By source piece, the most probable translations first. */
static int by_source(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    const uint64_t s = (x->key - 1) >> 32, t = (y->key - 1) >> 32;
    if (s != t)
        return s < t ? -1 : 1;
    if (x->p != y->p)
        return x->p > y->p ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* The slots that count, sorted. */
static int64_t sort_slots(struct lexicon *x)
{
    int64_t n = 0;
    for (uint64_t i = 0; i <= x->mask; i++)
        if (x->slot[i].key && x->slot[i].p >= LEAST)
            x->slot[n++] = x->slot[i];
    qsort(x->slot, (size_t)n, sizeof *x->slot, by_source);
    return n;
}

/* The most frequent target pieces, EOS first. */
static int64_t most_frequent(const struct lexicon *x, int32_t *always, int64_t room)
{
    int64_t n = 0;
    always[n++] = x->eos;
    while (n < room) {
        int64_t best = 0;
        for (int64_t t = 1; t < x->targets; t++)
            best = x->frequency[t] > x->frequency[best] ? t : best;
        if (x->frequency[best] == 0)
            break;
        x->frequency[best] = 0;
        if (best != x->eos)
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

static void write_lists(struct lexicon *x, const heed_shortlist_options *o, const char *path)
{
    const int64_t slots = sort_slots(x);
    int32_t *offset = heed_arena_allocate(x->arena, (size_t)(x->sources + 1) * sizeof *offset);
    int32_t *token = heed_arena_allocate(x->arena, (size_t)(slots + x->sources) * sizeof *token);
    int32_t *always = heed_arena_allocate(x->arena, (size_t)(o->frequent + 1) * sizeof *always);
    heed_safetensors_writer *w = heed_safetensors_writer_new(&x->allocator, x->err);
    if (!offset || !token || !always || !w) {
        fail_memory(x);
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
    add(w, "offset", offset, x->sources + 1, x->err);
    add(w, "token", token, n, x->err);
    add(w, "always", always, most_frequent(x, always, o->frequent + 1), x->err);
    if (!x->err->status)
        heed_safetensors_writer_write(w, path, x->err);
    heed_safetensors_writer_free(w);
}

static void learn(struct lexicon *x, const heed_corpus *c, const heed_shortlist_options *o,
                  const char *path)
{
    const size_t sources = (size_t)x->sources + 1, targets = (size_t)x->targets;
    x->arena = heed_arena_new(&x->allocator, x->err);
    x->total = heed__allocate(&x->allocator, sources, sizeof *x->total);
    x->frequency = heed__allocate_zeroed(&x->allocator, targets, sizeof *x->frequency);
    if (!x->total || !x->frequency)
        fail_memory(x);
    else if (x->arena && read_pairs(x, c)) {
        for (int i = 0; i < ITERATIONS; i++)
            iterate(x);
        write_lists(x, o, path);
    }
    heed__release(&x->allocator, x->slot, x->slot ? x->mask + 1 : 0, sizeof *x->slot);
    heed__release(&x->allocator, x->total, sources, sizeof *x->total);
    heed__release(&x->allocator, x->frequency, targets, sizeof *x->frequency);
    heed_arena_free(x->arena);
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
        struct lexicon x = {.allocator = heed__allocator_or_default(allocator),
                            .source = source,
                            .target = target,
                            .sources = heed_vocab_size(source),
                            .targets = heed_vocab_size(target),
                            .eos = heed_vocab_special(target).eos,
                            .err = &own};
        learn(&x, c, o, path);
    }
    heed_vocabs_free(source, target);
    heed_arena_free(arena);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
