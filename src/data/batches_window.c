/* batches_window.c: one window of sentence pairs, from lengths to batches.
 *
 * A window's pairs are sorted by target length, then source length, ties in the order drawn, and
 * divided into batches of nearly equal target tokens: as few batches as the budget allows, without
 * a small rest.  Then the batches are shuffled, keyed (seed, epoch, window).  None of this looks at
 * a token: what only other ranks train on is never cut here. */
#include "base/error.h"
#include "data/augment.h"
#include "data/batches.h"

#include <string.h>

#define DEFAULT_WINDOW 32768
/* Most bytes of cached ids of one side. */
#define CACHE_LIMIT ((int64_t)1 << 27)

/* ---- memory ---- */

/* An array of n in the maker's arena; sets *short_of if there is no memory. */
static void *array(const heed__maker *m, int64_t n, size_t size, bool *short_of)
{
    void *a = heed_arena_allocate(m->arena, (size_t)n * size);
    *short_of |= a == NULL;
    return a;
}

heed_status heed__maker_short(const heed__maker *m, heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for batches from windows of %lld pairs",
                      (long long)m->options.window);
}

static heed_status check_options(const heed_batches_options *o, heed_error *err)
{
    if (o->batch_tokens < 1 || o->batch_tokens > INT32_MAX)
        return heed__fail(err, HEED_ARGUMENT, "batch_tokens is %lld, expected from 1 to %d",
                          (long long)o->batch_tokens, INT32_MAX);
    if (o->max_tokens < 1)
        return heed__fail(err, HEED_ARGUMENT, "max_tokens is %lld, expected at least 1",
                          (long long)o->max_tokens);
    if (o->window < 0 || o->epochs < 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "window is %lld and epochs is %lld, expected at least 0",
                          (long long)o->window, (long long)o->epochs);
    if (!(o->source_sampling >= 0) || !(o->target_sampling >= 0))
        return heed__fail(err, HEED_ARGUMENT, "sampling is %g and %g, expected at least 0",
                          o->source_sampling, o->target_sampling);
    return heed__augment_check(&o->augment, err);
}

/* Tokens are the same in every epoch. */
static bool stays(const heed__maker *m, int side)
{
    return m->sampling[side] == 0 && !heed__augments(&m->options.augment) && m->options.epochs != 1;
}

/* A token is at least one byte of text, nearly always more. */
static bool worth_caching(const heed__maker *m, int side, const heed_corpus_report *r)
{
    int64_t bytes = side ? r->target_bytes : r->source_bytes;
    return stays(m, side) && bytes <= CACHE_LIMIT / (int64_t)sizeof(int32_t) &&
           r->pairs <= CACHE_LIMIT / (int64_t)sizeof(heed_tokens);
}

heed_status heed__maker_init(heed__maker *m, const heed_corpus *c, const heed_vocab *source,
                             const heed_vocab *target, const heed_batches_options *options,
                             const heed_allocator *allocator, heed_error *err)
{
    if (check_options(options, err))
        return HEED_ARGUMENT;
    heed_corpus_report report = heed_corpus_describe(c);
    if (report.pairs > UINT32_MAX)
        return heed__fail(err, HEED_ARGUMENT, "the corpus has %lld pairs, expected at most %lld",
                          (long long)report.pairs, (long long)UINT32_MAX);
    *m = (heed__maker){
        .options = *options, .corpus = c, .vocab = {source, target}, .sharing = {.size = 1}};
    m->sampling[0] = options->source_sampling;
    m->sampling[1] = options->target_sampling;
    m->pairs = options->in_order ? report.pairs : report.epoch_pairs;
    heed_batches_options *o = &m->options;
    if (o->in_order && o->epochs == 0)
        o->epochs = 1;
    if (o->window == 0)
        o->window = DEFAULT_WINDOW;
    if (o->window > m->pairs)
        o->window = m->pairs;
    m->windows = (m->pairs + o->window - 1) / o->window;
    m->ordered = m->kept = -1;
    m->arena = heed_arena_new(allocator, err);
    m->scratch = heed_arena_new(allocator, err);
    m->changed = heed_arena_new(allocator, err);
    if (!m->arena || !m->scratch || !m->changed)
        return HEED_MEMORY;
    m->cache.arena = m->arena;
    bool short_of = false;
    if (!o->in_order)
        m->order = array(m, m->pairs, sizeof *m->order, &short_of);
    m->pair = array(m, o->window, sizeof *m->pair, &short_of);
    m->drawn = array(m, o->window, sizeof *m->drawn, &short_of);
    m->spare = array(m, o->window, sizeof *m->spare, &short_of);
    m->need = array(m, o->window + 1, sizeof *m->need, &short_of);
    for (int side = 0; side < 2; side++) {
        m->token[side] = array(m, o->window, sizeof *m->token[side], &short_of);
        if (!worth_caching(m, side, &report))
            continue;
        m->cached[side] = array(m, report.pairs, sizeof *m->cached[side], &short_of);
        if (m->cached[side])
            memset(m->cached[side], 0, (size_t)report.pairs * sizeof *m->cached[side]);
    }
    return short_of ? heed__maker_short(m, err) : HEED_OK;
}

void heed__maker_deinit(heed__maker *m)
{
    heed_arena_free(m->changed);
    heed_arena_free(m->scratch);
    heed_arena_free(m->arena);
    *m = (heed__maker){0};
}

heed_status heed__window_init(heed__window *w, const heed__maker *m,
                              const heed_allocator *allocator, heed_error *err)
{
    *w = (heed__window){.ids.arena = heed_arena_new(allocator, err)};
    if (!w->ids.arena)
        return HEED_MEMORY;
    bool short_of = false;
    int64_t n = m->options.window;
    w->source = array(m, n, sizeof *w->source, &short_of);
    w->target = array(m, n, sizeof *w->target, &short_of);
    w->pair = array(m, n, sizeof *w->pair, &short_of);
    w->first = array(m, n, sizeof *w->first, &short_of);
    w->count = array(m, n, sizeof *w->count, &short_of);
    w->mine = w->all = array(m, n, sizeof *w->all, &short_of);
    return short_of ? heed__maker_short(m, err) : HEED_OK;
}

heed_status heed__maker_share(heed__maker *m, const heed__sharing *sharing, heed_error *err)
{
    const int64_t pairs = heed_corpus_describe(m->corpus).pairs;
    bool short_of = false;
    m->sharing = *sharing;
    if (m->known || !stays(m, 0) || !stays(m, 1))
        return HEED_OK;
    m->known = array(m, pairs, sizeof *m->known, &short_of);
    if (m->known)
        memset(m->known, 0, (size_t)pairs * sizeof *m->known);
    return short_of ? heed__maker_short(m, err) : HEED_OK;
}

int64_t heed__maker_share_size(const heed__maker *m)
{
    return (m->options.window + m->sharing.size - 1) / m->sharing.size;
}

heed_status heed__window_share(heed__window *w, const heed__maker *m, heed_error *err)
{
    const int64_t n = heed__maker_share_size(m);
    bool short_of = false;
    w->mine = array(m, n, sizeof *w->mine, &short_of);
    w->all = array(m, n * m->sharing.size, sizeof *w->all, &short_of);
    if (w->mine)
        memset(w->mine, 0, (size_t)n * sizeof *w->mine);
    return short_of ? heed__maker_short(m, err) : HEED_OK;
}

void heed__window_deinit(heed__window *w)
{
    heed_arena_free(w->ids.arena);
    *w = (heed__window){0};
}

/* ---- sorting and dividing ---- */

static bool goes_before(const heed__drawn *a, const heed__drawn *b)
{
    return a->length.target != b->length.target ? a->length.target < b->length.target
                                                : a->length.source < b->length.source;
}

/* Merges runs of doubling length from one array into the other: stable, and without a call to the
 * C library's allocator.  Returns the array that holds the result. */
static const heed__drawn *sort(heed__drawn *from, heed__drawn *to, int64_t n)
{
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * run) {
            int64_t middle = begin + run < n ? begin + run : n;
            int64_t end = middle + run < n ? middle + run : n;
            int64_t a = begin, b = middle;
            for (int64_t i = begin; i < end; i++)
                to[i] = a < middle && (b == end || !goes_before(&from[b], &from[a])) ? from[a++]
                                                                                     : from[b++];
        }
        heed__drawn *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

static int64_t tokens_at(const heed__window *w, int64_t i)
{
    return w->target[i].count + 1;
}

/* need[i], (pairs + 1): the fewest batches for the pairs from i on.  Filling each batch up to the
 * budget gives the fewest; a pair above the budget is a batch of its own. */
static void count_needed(const heed__window *w, int64_t budget, int64_t *need)
{
    int64_t end = w->pairs, tokens = 0; /* of a full batch that begins with pair i */
    need[end] = 0;
    for (int64_t i = w->pairs - 1; i >= 0; i--) {
        tokens += tokens_at(w, i);
        while (tokens > budget && end > i + 1)
            tokens -= tokens_at(w, --end);
        need[i] = need[end] + 1;
    }
}

/* As few batches as possible, each as close to its share of the rest as possible: within the
 * budget, and such that the rest still fits into the remaining batches. */
static void cut(heed__window *w, int64_t budget, int64_t *need)
{
    count_needed(w, budget, need);
    int64_t total = 0, at = 0;
    for (int64_t i = 0; i < w->pairs; i++)
        total += tokens_at(w, i);
    for (int64_t left = need[0]; left > 0; left--) {
        int64_t share = total / left, tokens = tokens_at(w, at), more;
        w->first[w->batches] = at++;
        for (; at < w->pairs && (more = tokens + tokens_at(w, at)) <= budget; at++) {
            if (need[at] < left && more - share > share - tokens)
                break;
            tokens = more;
        }
        w->count[w->batches] = at - w->first[w->batches];
        w->batches++;
        total -= tokens;
    }
}

static void shuffle_batches(heed__window *w, const heed__maker *m)
{
    heed_rng rng =
        heed__maker_stream(m, HEED__FOR_BATCHES, w->position.epoch, w->position.window, 0);
    for (int64_t i = w->batches - 1; i > 0; i--) {
        int64_t j = heed_rng_below(&rng, (uint64_t)i, i + 1);
        int64_t first = w->first[i], count = w->count[i];
        w->first[i] = w->first[j];
        w->count[i] = w->count[j];
        w->first[j] = first;
        w->count[j] = count;
    }
}

/* ---- a window ---- */

/* The pairs that are short enough, as drawn, into m->drawn, m->pair and m->token. */
static int64_t keep(heed__window *w, heed__maker *m)
{
    const int size = m->sharing.size;
    const int64_t share = heed__maker_share_size(m);
    int64_t n = 0;
    for (int64_t i = 0; i < w->drawn; i++) {
        const heed__lengths length = w->all[i % size * share + i / size];
        if (m->known)
            m->known[w->pair[i]] = length;
        if (heed__too_long(m, length)) {
            w->left_out++;
            continue;
        }
        m->token[0][n] = (heed_tokens){w->source[i].id, length.source - 1};
        m->token[1][n] = (heed_tokens){w->target[i].id, length.target - 1};
        m->drawn[n] = (heed__drawn){length, n};
        m->pair[n++] = w->pair[i];
    }
    return n;
}

bool heed__window_owns(const heed__window *w, const heed__maker *m, int64_t batch)
{
    const int64_t number = w->number + batch;
    return number >= 0 && number % m->sharing.size == m->sharing.rank;
}

/* What this rank lacks of its own batches. */
static void cut_own(heed__window *w, heed__maker *m)
{
    heed__lengths length;
    bool good = true;
    for (int64_t b = 0; b < w->batches; b++) {
        const int64_t end = heed__window_owns(w, m, b) ? w->first[b] + w->count[b] : 0;
        for (int64_t i = w->first[b]; good && i < end; i++)
            good = (w->source[i].id && w->target[i].id) || heed__window_cut(w, m, i, &length);
    }
}

void heed__window_make(heed__window *w, heed__maker *m)
{
    if (w->end || w->err.status)
        return;
    w->pairs = keep(w, m);
    const heed__drawn *sorted = sort(m->drawn, m->spare, w->pairs);
    for (int64_t i = 0; i < w->pairs; i++) {
        w->source[i] = m->token[0][sorted[i].at];
        w->target[i] = m->token[1][sorted[i].at];
        w->pair[i] = m->pair[sorted[i].at];
    }
    cut(w, m->options.batch_tokens, m->need);
    if (!m->options.in_order)
        shuffle_batches(w, m);
    w->number = m->number;
    m->number += w->batches;
    cut_own(w, m);

    m->kept = w->position.window == 0 ? w->pairs : m->kept < 0 ? -1 : m->kept + w->pairs;
    if (w->position.window == m->windows - 1 && m->kept == 0)
        heed__fail(&w->err, HEED_FORMAT,
                   "none of the %lld pairs has at most %lld tokens on either side, the end of the "
                   "sentence included",
                   (long long)m->pairs, (long long)m->options.max_tokens);
}

heed_batches_position heed__window_after(const heed__maker *m, heed_batches_position p)
{
    return p.window + 1 < m->windows ? (heed_batches_position){p.epoch, p.window + 1, 0}
                                     : (heed_batches_position){p.epoch + 1, 0, 0};
}
