/* augment.c: see augment.h.  In this order: joining, varying, replacing words. */
#include "data/augment.h"
#include "base/error.h"
#include "data/corpus.h"
#include "text/spans.h"
#include "text/utf8.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* Most pairs in a line. */
#define JOINED 8
/* Most words of a side. */
#define WORDS 256
/* Share of the lines that may have placeholders with one at the end (like emoji and addresses), at
 * the beginning, or at both (like tags). */
#define ENDS_SHARE 0.4
/* Fewest letters of a word whose beginning or end is used for an invented one. */
#define LENDER_LEAST 4
#define LENDER_MOST 16

/* A random stream, read from its beginning. */
typedef struct draws {
    const heed_rng *rng;
    uint64_t next;
} draws;

static bool happens(draws *d, double probability)
{
    return heed_rng_uniform(d->rng, d->next++) < probability;
}

static int64_t below(draws *d, int64_t n)
{
    return heed_rng_below(d->rng, d->next++, n);
}

typedef struct text {
    const char *at;
    size_t length;
} text;

/* ---- joining ---- */

static size_t put(char *to, size_t at, text t)
{
    memcpy(to + at, t.at, t.length);
    return at + t.length;
}

/* One side of several pairs, with spaces between them. */
static bool join_side(const heed_pair *pair, int64_t count, bool target, heed_arena *arena,
                      text *out)
{
    size_t size = 0, n = 0;
    for (int64_t i = 0; i < count; i++)
        size += (target ? pair[i].target_length : pair[i].source_length) + 1;
    char *to = heed_arena_allocate(arena, size);
    for (int64_t i = 0; to && i < count; i++) {
        text t = target ? (text){pair[i].target, pair[i].target_length}
                        : (text){pair[i].source, pair[i].source_length};
        if (i > 0)
            to[n++] = ' ';
        n = put(to, n, t);
    }
    *out = (text){to, n};
    return to;
}

/* With pairs of the same file, where files have shares: of the same kind. */
static bool join(const heed_corpus *c, int64_t i, draws *d, heed_arena *arena, text side[2])
{
    const heed__corpus_part *p = heed__corpus_part_of(c, i);
    heed_pair pair[JOINED] = {
        {side[0].at, side[1].at, side[0].length, side[1].length},
    };
    const int64_t count = 2 + below(d, JOINED - 1);
    for (int64_t k = 1; k < count; k++)
        pair[k] = heed_corpus_pair(c, p->first + below(d, p->count));
    return join_side(pair, count, false, arena, &side[0]) &&
           join_side(pair, count, true, arena, &side[1]);
}

/* ---- varying ---- */

static size_t put_character(char *to, size_t at, int32_t c)
{
    return at + (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)to + at);
}

static bool small_beginning(text *t, heed_arena *arena)
{
    int32_t c;
    size_t size = heed__utf8_next(t->at, t->length, &c), n;
    char *to = heed_arena_allocate(arena, t->length + 4);
    if (!to)
        return false;
    n = size ? put_character(to, 0, utf8proc_tolower(c)) : 0;
    n = put(to, n, (text){t->at + size, t->length - size});
    *t = (text){to, n};
    return true;
}

static bool ends_in_stop(const text *t)
{
    return t->length > 1 && t->at[t->length - 1] == '.' && t->at[t->length - 2] != '.';
}

static bool vary(draws *d, heed_arena *arena, text side[2])
{
    if (happens(d, 0.5))
        return small_beginning(&side[0], arena);
    if (ends_in_stop(&side[0]) && ends_in_stop(&side[1])) {
        side[0].length--;
        side[1].length--;
    }
    return true;
}

/* ---- replacing ---- */

/* A word or span that occurs exactly once on each side. */
typedef struct twin {
    heed__span place[2];
    char with[96]; /* its replacement */
    bool done[2];
} twin;

/* The end of a run of characters, from `at` on, that are in a word, or in none. */
static size_t skip(const text *t, size_t at, size_t end, bool word)
{
    int32_t c;
    for (size_t size; at < end && heed__word_at(t->at, t->length, at) == word; at += size)
        if (!(size = heed__utf8_next(t->at + at, t->length - at, &c)))
            return end;
    return at;
}

/* Words and spans from the start; a word ends where a span begins. */
static int64_t words_of(const text *t, heed__span *word, bool *is_span)
{
    int64_t n = 0;
    heed__span span = {0, 0, 0};
    for (size_t at = 0; n < WORDS; at = word[n++].end) {
        if (at >= span.end && !heed__span_next(t->at, t->length, at, HEED__OTHER_LANGUAGE, &span))
            span = (heed__span){t->length, t->length + 1, 0};
        at = skip(t, at, span.begin, false);
        if (at == t->length)
            break;
        is_span[n] = at == span.begin;
        word[n] = is_span[n] ? span : (heed__span){at, skip(t, at, span.begin, true), 0};
    }
    return n;
}

static bool equal(const text *a, heed__span x, const text *b, heed__span y)
{
    return x.end - x.begin == y.end - y.begin &&
           memcmp(a->at + x.begin, b->at + y.begin, x.end - x.begin) == 0;
}

/* The index of the word among those of a side, if it occurs once; else -1. */
static int64_t only(const text *t, heed__span x, const text *side, const heed__span *word,
                    int64_t words)
{
    int64_t found = -1;
    for (int64_t i = 0; i < words; i++)
        if (equal(t, x, side, word[i])) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

/* Whether a sentence begins with this word. */
static bool begins(const text *t, heed__span word)
{
    size_t at = word.begin;
    while (at > 0 && !heed__word_before(t->at, at) && !strchr(".!?:", t->at[at - 1]))
        at--;
    return at == 0 || strchr(".!?:", t->at[at - 1]);
}

static bool is_name(const text *t, heed__span word)
{
    const char *w = t->at + word.begin;
    return word.end - word.begin > 1 && w[0] >= 'A' && w[0] <= 'Z' && !(w[1] >= 'A' && w[1] <= 'Z');
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The word at a random position of the corpus, if it is long enough. */
static bool lender(const heed_corpus *c, draws *d, text *word)
{
    heed_pair p = heed_corpus_pair(c, below(d, heed_corpus_describe(c).pairs));
    text side = below(d, 2) ? (text){p.target, p.target_length} : (text){p.source, p.source_length};
    size_t from = (size_t)below(d, (int64_t)side.length), to = from;
    while (from > 0 && is_letter(side.at[from - 1]))
        from--;
    while (to < side.length && is_letter(side.at[to]))
        to++;
    *word = (text){side.at + from, to - from};
    return word->length >= LENDER_LEAST && word->length <= LENDER_MOST;
}

/* The beginning of one word and the end of another: typical letters of the two languages. */
static bool mix(const heed_corpus *c, draws *d, char *with)
{
    text a, b;
    if (!lender(c, d, &a) || !lender(c, d, &b))
        return false;
    size_t begin = 2 + (size_t)below(d, (int64_t)a.length - 2);
    size_t end = 1 + (size_t)below(d, (int64_t)b.length - 1), n = 0;
    for (size_t i = 0; i < begin; i++)
        with[n++] = (char)(i == 0 ? a.at[i] & ~0x20 : a.at[i] | 0x20);
    for (size_t i = b.length - end; i < b.length; i++)
        with[n++] = (char)(b.at[i] | 0x20);
    with[n] = '\0';
    return true;
}

/* A capital and some syllables. */
static void syllables(draws *d, char *with)
{
    static const char first[] = "BDFGHJKLMNPRSTVWZ", vowels[] = "aeiou", inner[] = "bdfgklmnprstvz";
    size_t n = 0;
    with[n++] = first[below(d, sizeof first - 1)];
    for (int64_t i = 1 + below(d, 3); i >= 0; i--) {
        with[n++] = vowels[below(d, sizeof vowels - 1)];
        with[n++] = inner[below(d, sizeof inner - 1)];
    }
    with[n] = '\0';
}

static void invent(const heed_corpus *c, draws *d, char *with)
{
    if (!happens(d, 0.7) || !mix(c, d, with))
        syllables(d, with);
}

/* A placeholder instead of a word, or sometimes one on either side of it, like tags. */
static void protect(draws *d, const text *t, heed__span word, bool may_wrap, int *placeholders,
                    char with[96])
{
    const int n = *placeholders, length = (int)(word.end - word.begin);
    if (may_wrap && length < 64 && n + 2 <= HEED_PLACEHOLDERS && happens(d, 0.2)) {
        snprintf(with, 96, "<ph%d> %.*s <ph%d>", n, length, t->at + word.begin, n + 1);
        *placeholders += 2;
    } else {
        snprintf(with, 96, "<ph%d>", n);
        *placeholders += 1;
    }
}

/* Chooses which of the twins are replaced, and by what, in the order of the source; returns their
 * number.  Placeholders are numbered from *placeholders on. */
static int64_t choose(const heed_augment_options *o, const heed_corpus *c, draws *d,
                      const text side[2], twin twins[WORDS], int *placeholders)
{
    heed__span word[2][WORDS];
    bool is_span[2][WORDS];
    int64_t words[2], n = 0;
    const bool protects = happens(d, o->protect), invents = happens(d, o->invent);
    for (int k = 0; k < 2; k++)
        words[k] = words_of(&side[k], word[k], is_span[k]);
    for (int64_t i = 0; i < words[0]; i++) {
        heed__span x = word[0][i];
        int64_t there = only(&side[0], x, &side[1], word[1], words[1]);
        if (there < 0 || only(&side[0], x, &side[0], word[0], words[0]) < 0)
            continue;
        const bool span = is_span[0][i] && is_span[1][there];
        /* Its capital may be that of the sentence. */
        const bool first_word = begins(&side[0], x) || begins(&side[1], word[1][there]);
        twin t = {.place = {x, word[1][there]}};
        const bool chosen = happens(d, 0.5);
        if (o->protect > 0 && (span || (protects && chosen)) && *placeholders < HEED_PLACEHOLDERS)
            protect(d, &side[0], x, !span, placeholders, t.with);
        else if (invents && !span && !first_word && is_name(&side[0], x))
            invent(c, d, t.with);
        if (t.with[0])
            twins[n++] = t;
    }
    return n;
}

/* One side with its twins replaced. */
static bool replace_side(text *t, twin *twins, int64_t count, int side, heed_arena *arena)
{
    char *to = heed_arena_allocate(arena, t->length + (size_t)count * (sizeof twins->with + 2) + 1);
    size_t n = 0, at = 0;
    for (int64_t done = 0; to && done < count; done++) {
        twin *next = NULL; /* the first of the rest */
        for (int64_t i = 0; i < count; i++)
            if (!twins[i].done[side] &&
                (!next || twins[i].place[side].begin < next->place[side].begin))
                next = &twins[i];
        heed__span place = next->place[side];
        n = put(to, n, (text){t->at + at, place.begin - at});
        /* Tags may touch words; a space is inserted, as in translation (protect.c). */
        if (place.end > place.begin && heed__word_before(t->at, place.begin))
            to[n++] = ' ';
        n = put(to, n, (text){next->with, strlen(next->with)});
        if (place.end > place.begin && heed__word_at(t->at, t->length, place.end))
            to[n++] = ' ';
        at = place.end;
        next->done[side] = true;
    }
    if (to)
        n = put(to, n, (text){t->at + at, t->length - at});
    *t = (text){to, n};
    return to;
}

/* An inserted placeholder. */
static twin put_in(size_t source, size_t target, const char *before, int placeholder,
                   const char *behind)
{
    twin t = {.place = {{.begin = source, .end = source}, {.begin = target, .end = target}}};
    snprintf(t.with, sizeof t.with, "%s<ph%d>%s", before, placeholder, behind);
    return t;
}

static bool replace(const heed_augment_options *o, const heed_corpus *c, draws *d,
                    heed_arena *arena, text side[2])
{
    twin *twins = heed_arena_allocate(arena, (WORDS + 2) * sizeof *twins);
    if (!twins)
        return false;
    const int64_t ends = happens(d, o->protect * ENDS_SHARE) ? 1 + below(d, 5) : 0;
    const bool first = ends == 1 || ends == 2, last = ends >= 2;
    int placeholders = first;
    int64_t count = first;
    if (first)
        twins[0] = put_in(0, 0, "", 0, " ");
    count += choose(o, c, d, side, twins + count, &placeholders);
    if (last && placeholders < HEED_PLACEHOLDERS)
        twins[count++] = put_in(side[0].length, side[1].length, " ", placeholders, "");
    return !count || (replace_side(&side[0], twins, count, 0, arena) &&
                      replace_side(&side[1], twins, count, 1, arena));
}

/* ---- all ---- */

bool heed__augments(const heed_augment_options *o)
{
    return o->join > 0 || o->protect > 0 || o->invent > 0 || o->vary > 0;
}

heed_status heed__augment_check(const heed_augment_options *o, heed_error *err)
{
    const double all[] = {o->join, o->protect, o->invent, o->vary};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!(all[i] >= 0 && all[i] <= 1))
            return heed__fail(err, HEED_ARGUMENT,
                              "an augmentation happens with probability %g, expected 0 to 1",
                              all[i]);
    return HEED_OK;
}

heed_status heed__augment(const heed_augment_options *o, const heed_corpus *c, int64_t i,
                          const heed_rng *rng, heed_arena *arena, heed_pair *pair, heed_error *err)
{
    draws d = {rng, 0};
    *pair = heed_corpus_pair(c, i);
    text side[2] = {{pair->source, pair->source_length}, {pair->target, pair->target_length}};
    bool good = !happens(&d, o->join) || join(c, i, &d, arena, side);
    if (good && happens(&d, o->vary))
        good = vary(&d, arena, side);
    if (good && (o->protect > 0 || o->invent > 0))
        good = replace(o, c, &d, arena, side);
    if (!good)
        return heed__fail(err, HEED_MEMORY, "out of memory for changing a pair of sentences");
    *pair = (heed_pair){side[0].at, side[1].at, side[0].length, side[1].length};
    return HEED_OK;
}
