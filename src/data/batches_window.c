/* batches_window.c: one window of sentence pairs, from the corpus to batches of token ids.
 *
 * The order of an epoch is a permutation of the corpus, or of the shares of its files, keyed (seed,
 * epoch).  A window's pairs are
 * sorted by target length, then source length, ties in the order drawn, and divided into batches of
 * nearly equal target tokens: as few batches as the budget allows, without a small rest.  Then the
 * batches are shuffled, keyed (seed, epoch, window).  If tokenising is not random and the ids are
 * not too large, they are cached from epoch to epoch. */
#include "base/error.h"
#include "data/augment.h"
#include "data/batches.h"
#include "data/corpus.h"

#include <string.h>

#define DEFAULT_WINDOW 32768
#define ID_BLOCK ((int64_t)1 << 14)
/* Most bytes of cached ids of one side. */
#define CACHE_LIMIT ((int64_t)1 << 27)

/* Which random stream: used as a rank that no process has, so that none equals a dropout's. */
enum { FOR_ORDER = -1, FOR_BATCHES = -2, FOR_SAMPLING = -3, FOR_AUGMENTING = -4, FOR_SHARES = -5 };

static heed_rng stream(const heed__maker *m, int purpose, int64_t epoch, int64_t node, int side)
{
    heed_rng_key key = {.seed = m->options.seed,
                        .step = (uint64_t)epoch,
                        .micro_batch = (uint32_t)side,
                        .rank = (uint32_t)purpose,
                        .node = (uint64_t)node};
    return heed_rng_stream(&key);
}

/* ---- memory ---- */

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

/* An array of n in the maker's arena; sets *short_of if there is no memory. */
static void *array(const heed__maker *m, int64_t n, size_t size, bool *short_of)
{
    void *a = heed_arena_allocate(m->arena, (size_t)n * size);
    *short_of |= a == NULL;
    return a;
}

static heed_status no_memory(const heed__maker *m, heed_error *err)
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

/* A token is at least one byte of text, nearly always more. */
static bool worth_caching(const heed__maker *m, int side, const heed_corpus_report *r)
{
    int64_t bytes = side ? r->target_bytes : r->source_bytes;
    return m->sampling[side] == 0 && !heed__augments(&m->options.augment) &&
           m->options.epochs != 1 && bytes <= CACHE_LIMIT / (int64_t)sizeof(int32_t) &&
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
    *m = (heed__maker){.options = *options, .corpus = c, .vocab = {source, target}};
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
    return short_of ? no_memory(m, err) : HEED_OK;
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
    return short_of ? no_memory(m, err) : HEED_OK;
}

void heed__window_deinit(heed__window *w)
{
    heed_arena_free(w->ids.arena);
    *w = (heed__window){0};
}

/* ---- drawing ---- */

/* Of every file its share; then Fisher and Yates. */
static void order_epoch(heed__maker *m, int64_t epoch)
{
    if (!m->order || m->ordered == epoch)
        return;
    int64_t parts, n = 0;
    const heed__corpus_part *part = heed__corpus_parts(m->corpus, &parts);
    for (int64_t i = 0; i < parts; i++) {
        heed_rng drawn = stream(m, FOR_SHARES, epoch, i, 0);
        n += heed__part_draw(&part[i], &drawn, m->order + n);
    }
    heed_rng rng = stream(m, FOR_ORDER, epoch, 0, 0);
    for (int64_t i = m->pairs - 1; i > 0; i--) {
        int64_t j = heed_rng_below(&rng, (uint64_t)i, i + 1);
        uint32_t swap = m->order[i];
        m->order[i] = m->order[j];
        m->order[j] = swap;
    }
    m->ordered = epoch;
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
    heed_rng rng = stream(m, FOR_AUGMENTING, w->position.epoch, pair, 0);
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
    heed_rng rng = stream(m, FOR_SAMPLING, w->position.epoch, pair, side);
    heed_arena_reset(m->scratch);
    heed_status status =
        m->sampling[side] > 0
            ? heed_vocab_sample(m->vocab[side], text, length, m->sampling[side], &rng, m->scratch,
                                tokens, &w->err)
            : heed_vocab_encode(m->vocab[side], text, length, m->scratch, tokens, &w->err);
    if (status)
        return status;
    tokens->id = keep_ids(cached ? &m->cache : &w->ids, tokens);
    if (!tokens->id)
        return no_memory(m, &w->err);
    if (cached)
        *cached = *tokens;
    return HEED_OK;
}

/* Draws pair number `pair` into slot n; false after an error. */
static bool draw_one(heed__window *w, heed__maker *m, int64_t pair, bool join, int64_t n,
                     heed__drawn *d)
{
    heed_pair text;
    if (text_of(w, m, pair, join, &text) || tokenise(w, m, 0, pair, &text, &m->token[0][n]) ||
        tokenise(w, m, 1, pair, &text, &m->token[1][n]))
        return false;
    *d = (heed__drawn){m->token[1][n].count + 1, m->token[0][n].count + 1, n};
    return true;
}

static bool is_long(const heed__maker *m, const heed__drawn *d)
{
    return d->source > m->options.max_tokens || d->target > m->options.max_tokens;
}

/* Draws pairs begin .. end of the order; returns how many were accepted. */
static int64_t draw(heed__window *w, heed__maker *m, int64_t begin, int64_t end)
{
    int64_t n = 0;
    for (int64_t i = begin; i < end; i++) {
        int64_t pair = m->order ? m->order[i] : i;
        heed__drawn d;
        if (atomic_load_explicit(m->stop, memory_order_relaxed) ||
            !draw_one(w, m, pair, true, n, &d) ||
            /* A pair that is too long only because of joining is used without it. */
            (m->options.augment.join > 0 && is_long(m, &d) && !draw_one(w, m, pair, false, n, &d)))
            return 0;
        if (is_long(m, &d)) {
            w->left_out++;
            continue;
        }
        m->drawn[n] = d;
        m->pair[n++] = pair;
    }
    return n;
}

/* ---- sorting and dividing ---- */

static bool goes_before(const heed__drawn *a, const heed__drawn *b)
{
    return a->target != b->target ? a->target < b->target : a->source < b->source;
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
    heed_rng rng = stream(m, FOR_BATCHES, w->position.epoch, w->position.window, 0);
    for (int64_t i = w->batches - 1; i > 0; i--) {
        int64_t j = heed_rng_below(&rng, (uint64_t)i, i + 1);
        int64_t first = w->first[i], count = w->count[i];
        w->first[i] = w->first[j];
        w->count[i] = w->count[j];
        w->first[j] = first;
        w->count[j] = count;
    }
}

static void start_over(heed__window *w, heed_batches_position p)
{
    heed_arena_reset(w->ids.arena);
    w->ids = (heed__id_store){.arena = w->ids.arena};
    w->position = (heed_batches_position){p.epoch, p.window, 0};
    w->pairs = w->batches = w->left_out = 0;
    w->end = false;
    w->err.status = HEED_OK;
}

void heed__window_make(heed__window *w, heed__maker *m, heed_batches_position p)
{
    start_over(w, p);
    w->end = m->options.epochs && p.epoch >= m->options.epochs;
    if (w->end)
        return;
    order_epoch(m, p.epoch);
    int64_t begin = p.window * m->options.window;
    int64_t end = begin + m->options.window < m->pairs ? begin + m->options.window : m->pairs;
    w->pairs = draw(w, m, begin, end);
    const heed__drawn *sorted = sort(m->drawn, m->spare, w->pairs);
    for (int64_t i = 0; i < w->pairs; i++) {
        w->source[i] = m->token[0][sorted[i].at];
        w->target[i] = m->token[1][sorted[i].at];
        w->pair[i] = m->pair[sorted[i].at];
    }
    cut(w, m->options.batch_tokens, m->need);
    if (!m->options.in_order)
        shuffle_batches(w, m);

    m->kept = p.window == 0 ? w->pairs : m->kept < 0 ? -1 : m->kept + w->pairs;
    if (p.window == m->windows - 1 && m->kept == 0)
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
