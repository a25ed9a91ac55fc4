/* own_sample.c: what a model rehearses while it learns new pairs: the sample of its text, in its
 * own translations.  They ask it to change nothing; the text's own would move it all the while.
 *
 * A word that it has not seen it would soon take for one of the new terms.  So it also rehearses
 * the new sentences without their new words: with rare words of the sample in place of those that
 * the sample does not have, or with words put together of two.  docs/RESULTS.md has the runs. */
#include "base/string.h"
#include "search/beam.h"
#include "task/translation.h"
#include "text/spans.h"
#include <heed/translate.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* How often each new sentence is rehearsed with other words. */
#define ROUNDS 5
/* Fewest bytes of a word that takes the place of another. */
#define LEAST 4
#define SAMPLE_STREAM 0x6f776e

typedef struct word {
    const char *at;
    size_t length;
    int64_t count; /* of the first of equal ones; then of the only one */
} word;

struct words {
    word *item; /* sorted */
    int64_t count, capacity;
    const word **rare; /* that occur once */
    int64_t rares;
};

static size_t run(const char *text, size_t length, size_t at, bool of_words)
{
    while (at < length && heed__word_at(text, length, at) == of_words)
        do
            at++;
        while (at < length && ((unsigned char)text[at] & 0xC0) == 0x80);
    return at;
}

static int by_text(const void *a, const void *b)
{
    const word *x = a, *y = b;
    const size_t n = x->length < y->length ? x->length : y->length;
    const int order = strncasecmp(x->at, y->at, n);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* The words of all sources of the sample, each once. */
static heed_status find_words(struct words *w, const heed_corpus *c, heed_arena *arena,
                              heed_error *err)
{
    const heed_corpus_report r = heed_corpus_describe(c);
    w->capacity = r.source_bytes / 2 + r.pairs + 1;
    w->item = heed__take(arena, w->capacity, sizeof *w->item, err);
    w->rare = heed__take(arena, w->capacity, sizeof *w->rare, err);
    if (!w->item || !w->rare)
        return HEED_MEMORY;
    for (int64_t i = 0; i < r.pairs; i++) {
        const heed_pair p = heed_corpus_pair(c, i);
        for (size_t at = 0, end = 0; end < p.source_length && w->count < w->capacity;) {
            at = run(p.source, p.source_length, end, false);
            end = run(p.source, p.source_length, at, true);
            if (end > at)
                w->item[w->count++] = (word){p.source + at, end - at, 1};
        }
    }
    qsort(w->item, (size_t)w->count, sizeof *w->item, by_text);
    int64_t n = 0;
    for (int64_t i = 0; i < w->count; i++)
        if (n && by_text(&w->item[n - 1], &w->item[i]) == 0)
            w->item[n - 1].count++;
        else
            w->item[n++] = w->item[i];
    w->count = n;
    for (int64_t i = 0; i < n; i++)
        if (w->item[i].count == 1 && w->item[i].length >= LEAST && islower(*w->item[i].at))
            w->rare[w->rares++] = &w->item[i];
    return HEED_OK;
}

/* A rare word, or the first half of one and the second of another. */
static void add_other(heed__string *line, const struct words *w, const heed_rng *rng, uint64_t *at)
{
    const word *a = w->rare[heed_rng_below(rng, (*at)++, w->rares)];
    const word *b = w->rare[heed_rng_below(rng, (*at)++, w->rares)];
    const bool whole = heed_rng_below(rng, (*at)++, 2) == 0;
    size_t half = whole ? a->length : a->length / 2, rest = b->length / 2;
    while (half < a->length && ((unsigned char)a->at[half] & 0xC0) == 0x80)
        half++;
    while (rest < b->length && ((unsigned char)b->at[rest] & 0xC0) == 0x80)
        rest++;
    heed__string_add_bytes(line, a->at, half);
    if (!whole)
        heed__string_add_bytes(line, b->at + rest, b->length - rest);
}

/* A source with others in place of the words that the sample does not have; false if it has all. */
static bool change(heed__string *line, const heed_pair *p, const struct words *w,
                   const heed_rng *rng, uint64_t *at)
{
    bool changed = false;
    heed__string_clear(line);
    for (size_t begin = 0, end; begin < p->source_length; begin = end) {
        end = run(p->source, p->source_length, begin, false);
        heed__string_add_bytes(line, p->source + begin, end - begin);
        begin = end;
        end = run(p->source, p->source_length, begin, true);
        const word one = {p->source + begin, end - begin, 1};
        if (end > begin && bsearch(&one, w->item, (size_t)w->count, sizeof one, by_text)) {
            heed__string_add_bytes(line, one.at, one.length);
        } else if (end > begin) {
            add_other(line, w, rng, at);
            changed = true;
        }
    }
    return changed;
}

struct lines {
    heed_arena *arena;
    const char **text;
    int64_t count;
};

static bool add_line(struct lines *l, const char *text, size_t length)
{
    char *copy = heed_arena_allocate(l->arena, length + 1);
    if (!copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    l->text[l->count++] = copy;
    return true;
}

static heed_status find_lines(const heed__translation *t, const heed_corpus *sample,
                              struct lines *l, heed_error *err)
{
    struct words w = {.count = 0};
    const heed_rng rng = heed_rng_stream(
        &(heed_rng_key){.seed = (uint64_t)t->recipe.train.loop.seed, .node = SAMPLE_STREAM});
    const int64_t old = heed_corpus_describe(sample).pairs;
    const int64_t own = heed_corpus_describe(t->corpus).pairs;
    uint64_t at = 0;
    heed__string line;
    l->text = heed__take(l->arena, old + ROUNDS * own, sizeof *l->text, err);
    if (!l->text || find_words(&w, sample, l->arena, err))
        return HEED_MEMORY;
    heed__string_init(&line, &t->allocator);
    bool good = true;
    for (int64_t i = 0; good && i < old; i++) {
        const heed_pair p = heed_corpus_pair(sample, i);
        good = add_line(l, p.source, p.source_length);
    }
    for (int64_t i = 0; good && w.rares && i < ROUNDS * own && i < ROUNDS * old; i++) {
        const heed_pair p = heed_corpus_pair(t->corpus, i % own);
        if (!memchr(p.source, '\t', p.source_length) && change(&line, &p, &w, &rng, &at))
            good = !line.failed && add_line(l, heed__string_text(&line), line.length);
    }
    heed__string_deinit(&line);
    return good ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for a sample");
}

/* The lines as a stream, so that somebody can see how far it is, and stop it. */
struct translating {
    const heed__translation *t;
    const struct lines *lines;
    int64_t next, done;
    heed__string *out;
};

static heed_status next_line(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    struct translating *x = context;
    (void)wait, (void)err;
    if (x->next < x->lines->count)
        *line = (heed_source_line){.text = x->lines->text[x->next++]};
    return HEED_OK;
}

static heed_status line_done(void *context, const heed_source_line *line,
                             const heed_translation *found, heed_error *err)
{
    struct translating *x = context;
    const heed_train_hooks *hooks = &x->t->hooks;
    const char *source = x->lines->text[x->done++];
    (void)line;
    if (found->text && found->text[0] && !found->loop && !strchr(found->text, '\t'))
        heed__string_format(x->out, "%s\t%s\n", source, found->text);
    if (hooks->progress)
        hooks->progress(hooks->context, &(heed_train_progress){
                                            .event = HEED_TRAIN_PREPARE,
                                            .fraction = (double)x->done / (double)x->lines->count});
    return hooks->stop && hooks->stop(hooks->context)
               ? heed__fail(err, HEED_STATE, "stopped after translating %lld of %lld lines",
                            (long long)x->done, (long long)x->lines->count)
               : HEED_OK;
}

static heed_status translate(const heed__translation *t, const struct lines *l, heed__string *out,
                             heed_error *err)
{
    static const heed_search_options how = {
        .beam = 4, .n_best = 1, .length_penalty = 0.6, .extra_length = 50};
    const heed_train_options *o = &t->recipe.train;
    struct translating x = {.t = t, .lines = l, .out = out};
    const heed_line_stream stream = {&x, next_line, line_done};
    heed_translator *tr = heed_translator_open(o->from, (int)o->loop.threads, &t->allocator, err);
    heed_translator_protect(tr, false);
    if (tr)
        heed_translate_stream(tr, &how, &(heed_stream_options){0}, &stream, err);
    heed_translator_free(tr);
    return err->status ? err->status : heed__string_status(out, err);
}

heed_status heed__own_sample(const heed__translation *t, const heed_corpus *sample,
                             heed__string *out, heed_error *err)
{
    struct lines l = {.arena = heed_arena_new(&t->allocator, err)};
    heed_status status = l.arena ? find_lines(t, sample, &l, err) : HEED_MEMORY;
    if (!status)
        heed__translation_say(t, HEED_LOG_INFO,
                              "translating %lld lines first, to rehearse what the model says now",
                              (long long)l.count);
    if (!status)
        status = translate(t, &l, out, err);
    heed_arena_free(l.arena);
    return status;
}
