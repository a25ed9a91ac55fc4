/* train_batches.c: batches from a file of token ids, or made up.
 *
 * The file has a pair a line, ids with spaces between them, source TAB target, without BOS and EOS;
 * an empty line ends a batch.  So another program can train on the very same batches.
 * Made up: lengths as captions have them (multi30k in subwords), EOS included: source 13 +- 4,
 * target 2 around that, none below 3 or above 40; words as frequent as their rank is small (Zipf);
 * pairs sorted by length and packed up to the number of target tokens asked for.  A language
 * model's batch is stretches of such words. */
#include "train_batches.h"

#include "base/error.h"
#include "base/line_reader.h"
#include <heed/data.h>

#include <errno.h>
#include <heed/data.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MADE_UP 8 /* batches */
#define FIRST_WORD (HEED_PLACEHOLDER + HEED_PLACEHOLDERS)
#define SHORTEST 3
#define LONGEST 40

/* Pairs of the current batch. */
typedef struct collected {
    heed_tokens *source, *target;
    int64_t count, capacity;
} collected;

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for batches");
}

static heed_status finish_batch(heed_arena *arena, bench_batches *b, int64_t *capacity,
                                collected *c, heed_error *err)
{
    if (!c->count)
        return HEED_OK;
    if (b->count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 16;
        heed_batch *more = heed_arena_allocate(arena, (size_t)*capacity * sizeof *more);
        if (!more)
            return no_memory(err);
        if (b->count)
            memcpy(more, b->batch, (size_t)b->count * sizeof *more);
        b->batch = more;
    }
    heed_batch *to = &b->batch[b->count];
    heed_status status = heed_batch_pack(arena, NULL, c->source, c->target, c->count, to, err);
    if (status)
        return status;
    b->count++;
    b->pairs += c->count;
    b->source_tokens += to->source.rows->rows;
    b->target_tokens += to->target.rows->rows;
    c->count = 0;
    return HEED_OK;
}

static heed_status collect(heed_arena *arena, collected *c, heed_tokens source, heed_tokens target,
                           heed_error *err)
{
    if (c->count == c->capacity) {
        collected more = {.count = c->count, .capacity = c->capacity ? 2 * c->capacity : 256};
        more.source = heed_arena_allocate(arena, (size_t)more.capacity * sizeof *more.source);
        more.target = heed_arena_allocate(arena, (size_t)more.capacity * sizeof *more.target);
        if (!more.source || !more.target)
            return no_memory(err);
        if (c->count) {
            memcpy(more.source, c->source, (size_t)c->count * sizeof *more.source);
            memcpy(more.target, c->target, (size_t)c->count * sizeof *more.target);
        }
        *c = more;
    }
    c->source[c->count] = source;
    c->target[c->count++] = target;
    return HEED_OK;
}

/* ---- from a file ---- */

/* The ids of text up to a tab or the end; *end is left behind them.  False if something there is no
 * id of the vocabulary. */
static bool read_ids(const char *text, int64_t vocabulary, heed_arena *arena, heed_tokens *tokens,
                     const char **end)
{
    int32_t *id = heed_arena_allocate(arena, (strlen(text) / 2 + 1) * sizeof *id);
    int64_t n = 0;
    while (id && *text && *text != '\t') {
        char *after;
        errno = 0;
        long long v = strtoll(text, &after, 10);
        if (after == text || errno || v < 0 || v >= vocabulary)
            return false;
        id[n++] = (int32_t)v;
        for (text = after; *text == ' '; text++)
            ;
    }
    *tokens = (heed_tokens){id, n};
    *end = text;
    return id != NULL;
}

static heed_status read_file(const bench_train_settings *s, heed_arena *arena, bench_batches *b,
                             heed_error *err)
{
    collected c = {0};
    int64_t capacity = 0, number = 0;
    const int64_t v = s->model.target_vocabulary;
    heed__lines *lines = heed__lines_open(s->ids, HEED_LINE_LIMIT, NULL, err);
    heed_status status = lines ? HEED_OK : err->status;
    const char *line;
    size_t length;
    while (!status && !(status = heed__lines_next(lines, &line, &length, err)) && line) {
        heed_tokens source, target;
        const char *end;
        number++;
        if (!length)
            status = finish_batch(arena, b, &capacity, &c, err);
        else if (!read_ids(line, v, arena, &source, &end) || *end != '\t' ||
                 !read_ids(end + 1, v, arena, &target, &end) || *end)
            status = heed__fail(err, HEED_FORMAT,
                                "cannot read '%s': line %lld is not 'ids TAB ids' with ids below "
                                "%lld",
                                s->ids, (long long)number, (long long)v);
        else
            status = collect(arena, &c, source, target, err);
    }
    heed__lines_close(lines);
    if (!status)
        status = finish_batch(arena, b, &capacity, &c, err);
    if (!status && !b->count)
        return heed__fail(err, HEED_FORMAT, "cannot read '%s': no pair of sentences", s->ids);
    return status;
}

/* ---- made up ---- */

struct pair {
    int64_t source, target; /* tokens, without EOS */
};

static int by_length(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int64_t d = x->target != y->target ? x->target - y->target : x->source - y->source;
    return (d > 0) - (d < 0);
}

static int64_t length_near(double mean, double spread, const heed_rng *rng, uint64_t at)
{
    double n = round(mean + spread * heed_rng_normal(rng, at));
    return (int64_t)fmax(SHORTEST, fmin(LONGEST, n)) - 1;
}

/* Ids from the first word on, one of rank r with a probability like 1/r. */
static heed_tokens draw(heed_arena *arena, int64_t n, int64_t vocabulary, const heed_rng *rng,
                        uint64_t *at)
{
    int32_t *id = heed_arena_allocate(arena, (size_t)n * sizeof *id);
    const double words = (double)(vocabulary > FIRST_WORD ? vocabulary - FIRST_WORD : 1);
    for (int64_t i = 0; id && i < n; i++)
        id[i] = (int32_t)fmin((double)(vocabulary - 1),
                              FIRST_WORD + floor(pow(words, heed_rng_uniform(rng, (*at)++))) - 1);
    return (heed_tokens){id, id ? n : 0};
}

static heed_status make_up(const bench_train_settings *s, heed_arena *arena, bench_batches *b,
                           heed_error *err)
{
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 30000});
    const int64_t budget = s->batch_tokens, most = MADE_UP * budget / SHORTEST;
    struct pair *pairs = heed_arena_allocate(arena, (size_t)most * sizeof *pairs);
    if (!pairs)
        return no_memory(err);
    int64_t count = 0, tokens = 0;
    for (uint64_t at = 0; tokens < MADE_UP * budget && count < most; at += 2, count++) {
        pairs[count].source = length_near(13, 4, &rng, at);
        pairs[count].target = length_near((double)pairs[count].source + 1, 2, &rng, at + 1);
        tokens += pairs[count].target + 1;
    }
    qsort(pairs, (size_t)count, sizeof *pairs, by_length);
    collected c = {0};
    int64_t capacity = 0, filled = 0;
    uint64_t at = (uint64_t)1 << 32;
    heed_status status = HEED_OK;
    for (int64_t i = 0; !status && i < count; i++) {
        if (filled + pairs[i].target + 1 > budget) {
            status = finish_batch(arena, b, &capacity, &c, err);
            filled = 0;
        }
        filled += pairs[i].target + 1;
        const int64_t v = s->model.target_vocabulary;
        heed_tokens source = draw(arena, pairs[i].source, v, &rng, &at);
        heed_tokens target = draw(arena, pairs[i].target, v, &rng, &at);
        if (!source.id || !target.id)
            return no_memory(err);
        if (!status)
            status = collect(arena, &c, source, target, err);
    }
    return status ? status : finish_batch(arena, b, &capacity, &c, err);
}

/* A language model's: one batch of stretches of as many tokens as the model sees at once, since all
 * are alike. */
static heed_status make_blocks(const bench_train_settings *s, heed_arena *arena, bench_batches *b,
                               heed_error *err)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 30001});
    const int64_t block = s->model.longest;
    const int64_t n = s->batch_tokens > block ? s->batch_tokens / block : 1;
    int64_t *length = heed_arena_allocate(arena, (size_t)n * sizeof *length);
    b->batch = heed_arena_allocate(arena, sizeof *b->batch);
    if (!length || !b->batch)
        return no_memory(err);
    for (int64_t i = 0; i < n; i++)
        length[i] = block;
    uint64_t at = 0;
    const heed_tokens id = draw(arena, n * block, s->model.target_vocabulary, &rng, &at);
    const heed_tokens wanted = draw(arena, n * block, s->model.target_vocabulary, &rng, &at);
    const heed_segments *rows = heed_segments_new(arena, (int)n, length);
    if (!id.id || !wanted.id || !rows)
        return no_memory(err);
    *b->batch = (heed_batch){.examples = n,
                             .target = {.rows = rows, .ids = id.id},
                             .wanted = wanted.id,
                             .wanted_count = n * block};
    b->count = 1;
    b->target_tokens = n * block;
    return HEED_OK;
}

heed_status bench_batches_make(const bench_train_settings *s, heed_arena *arena, bench_batches *b,
                               heed_error *err)
{
    *b = (bench_batches){0};
    if (s->model.arch == HEED_ARCH_DECODER)
        return make_blocks(s, arena, b, err);
    return s->ids ? read_file(s, arena, b, err) : make_up(s, arena, b, err);
}
