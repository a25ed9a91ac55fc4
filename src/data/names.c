/* names.c: see names.h.  Subwords show how frequent a word was in training: a frequent one is one
 * piece.  A name of several pieces is spelled, as is every number, and a small model spells wrong.
 */
#include "data/names.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "text/split.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#define UNKNOWN_PIECES 2
/* Fewest digits of a number. */
#define DIGITS 2
/* Most copies in a sentence; one with more is a table, and left to the model. */
#define MOST_COPIES (HEED_PLACEHOLDERS / 2)
/* Fewest letters of a name. */
#define LETTERS 3
/* Pairs sampled from a larger corpus. */
#define PAIRS 500000
/* If at least one word in CAPITALS has a capital, not only names have one (German: one in three;
 * English: one in fifteen). */
#define CAPITALS 5

/* A word with a capital, and whether its translation has it too. */
typedef struct word {
    const char *text;
    size_t length;
    bool same;
} word;

struct heed__names {
    heed_allocator allocator;
    heed_arena *arena; /* the texts of learned ones */
    const void *file;  /* or they are in this mapping */
    size_t size;
    word *item; /* sorted, unique */
    int64_t count, capacity;
};

/* ---- words ---- */

/* The next word at or after `at`; false if there is none before `end`. */
static bool next_word(const char *text, size_t end, size_t at, heed__span *w)
{
    int32_t c;
    size_t n;
    while (at < end && !heed__word_at(text, end, at))
        at += (n = heed__utf8_next(text + at, end - at, &c)) ? n : 1;
    w->begin = at;
    while (at < end && heed__word_at(text, end, at))
        at += (n = heed__utf8_next(text + at, end - at, &c)) ? n : 1;
    w->end = at;
    w->kind = 0;
    return w->begin < end;
}

static bool is_capital(int32_t c)
{
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LU;
}

/* A capital and lower-case letters. */
static bool is_written_like_name(const char *text, heed__span w)
{
    int32_t c;
    int64_t letters = 0;
    for (size_t at = w.begin, n; at < w.end; at += n, letters++) {
        n = heed__utf8_next(text + at, w.end - at, &c);
        if (n == 0 || is_capital(c) != (letters == 0) ||
            utf8proc_category(c) > UTF8PROC_CATEGORY_LO)
            return false;
    }
    return letters >= LETTERS;
}

/* Whether an ending follows, as in English Tom's: its translation is not the name alone. */
static bool is_inflected(const char *text, size_t end, heed__span w)
{
    return w.end < end && (text[w.end] == '\'' || strncmp(text + w.end, "\xE2\x80\x99", 3) == 0) &&
           w.end + 1 < end;
}

/* A sentence without its first word. */
typedef struct sentence {
    const char *text;
    size_t at, end;
} sentence;

/* Where Every Word Has A Capital. */
static bool is_heading(sentence s)
{
    int64_t words = 0, capitals = 0;
    int32_t c;
    for (heed__span w; next_word(s.text, s.end, s.at, &w); s.at = w.end) {
        words += heed__utf8_next(s.text + w.begin, w.end - w.begin, &c) < w.end - w.begin;
        capitals += is_written_like_name(s.text, w);
    }
    return words > 2 && 2 * capitals > words;
}

/* The next sentence of a text, from *at on; false at its end. */
static bool next_sentence(const char *text, size_t length, size_t *at, sentence *s)
{
    heed__span first;
    if (*at >= length)
        return false;
    const size_t end = heed__sentence_end(text, length, *at);
    const bool any = next_word(text, end, *at, &first);
    *s = (sentence){text, any ? first.end : end, end};
    *at = end;
    return true;
}

/* ---- sets of words ---- */

static int by_text(const void *a, const void *b)
{
    const word *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static heed__names *empty(const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__names *n = heed__allocate_zeroed(&a, 1, sizeof *n);
    if (!n) {
        heed__fail(err, HEED_MEMORY, "out of memory for names");
        return NULL;
    }
    n->allocator = a;
    return n;
}

static bool add(heed__names *n, word w)
{
    if (n->count == n->capacity) {
        int64_t capacity = n->capacity ? 2 * n->capacity : 1024;
        word *more = heed__allocate_zeroed(&n->allocator, (size_t)capacity, sizeof *more);
        if (!more)
            return false;
        if (n->count)
            memcpy(more, n->item, (size_t)n->count * sizeof *more);
        heed__release(&n->allocator, n->item, (size_t)n->capacity, sizeof *n->item);
        n->item = more;
        n->capacity = capacity;
    }
    n->item[n->count++] = w;
    return true;
}

void heed__names_free(heed__names *n)
{
    if (!n)
        return;
    heed__release(&n->allocator, n->item, (size_t)n->capacity, sizeof *n->item);
    heed__file_unmap(n->file, n->size);
    heed_arena_free(n->arena);
    heed_allocator a = n->allocator;
    heed__release(&a, n, 1, sizeof *n);
}

/* ---- learning ---- */

static bool has_word(const char *text, size_t length, const word *wanted)
{
    for (heed__span w = {0, 0, 0}; next_word(text, length, w.end, &w);)
        if (w.end - w.begin == wanted->length &&
            memcmp(text + w.begin, wanted->text, wanted->length) == 0)
            return true;
    return false;
}

/* The words of a pair's source that are written like names; false when memory is short. */
static bool collect(heed__names *n, const heed_pair *pair, int64_t *words)
{
    size_t at = 0;
    sentence s;
    while (next_sentence(pair->source, pair->source_length, &at, &s))
        for (heed__span w; next_word(s.text, s.end, s.at, &w); s.at = w.end) {
            ++*words;
            if (!is_written_like_name(s.text, w))
                continue;
            word found = {s.text + w.begin, w.end - w.begin, false};
            found.same = has_word(pair->target, pair->target_length, &found);
            if (!add(n, found))
                return false;
        }
    return true;
}

/* Keeps each word once, if it is mostly translated; copies the texts. */
static bool keep_translated(heed__names *n)
{
    int64_t kept = 0;
    if (n->count)
        qsort(n->item, (size_t)n->count, sizeof *n->item, by_text);
    for (int64_t i = 0, end; i < n->count; i = end) {
        int64_t same = 0;
        for (end = i; end < n->count && by_text(&n->item[i], &n->item[end]) == 0; end++)
            same += n->item[end].same;
        if (2 * same >= end - i)
            continue;
        char *copy = heed_arena_allocate(n->arena, n->item[i].length);
        if (!copy)
            return false;
        memcpy(copy, n->item[i].text, n->item[i].length);
        n->item[kept++] = (word){copy, n->item[i].length, false};
    }
    n->count = kept;
    return true;
}

heed__names *heed__names_learn(const heed_corpus *c, const heed__names *before,
                               const heed_allocator *allocator, heed_error *err)
{
    const int64_t pairs = heed_corpus_describe(c).pairs, read = pairs < PAIRS ? pairs : PAIRS;
    heed__names *n = empty(allocator, err);
    int64_t words = 0;
    bool good = n && (n->arena = heed_arena_new(&n->allocator, err));
    for (int64_t i = 0; good && i < read; i++) {
        heed_pair p = heed_corpus_pair(c, (int64_t)((double)i * (double)pairs / (double)read));
        good = collect(n, &p, &words);
    }
    const bool names = good && (before || CAPITALS * n->count < words);
    for (int64_t i = 0; good && before && i < before->count; i++)
        good = add(n, before->item[i]);
    if (good && names && keep_translated(n))
        return n;
    if (n && (!good || names))
        heed__fail(err, HEED_MEMORY, "out of memory for names");
    heed__names_free(n);
    return NULL;
}

/* ---- the file ---- */

heed_status heed__names_write(const heed__names *n, const char *path, heed_error *err)
{
    heed__atomic_file *f = heed__atomic_open(path, &n->allocator, err);
    heed_status status = f ? HEED_OK : HEED_IO;
    for (int64_t i = 0; !status && i < n->count; i++) {
        status = heed__atomic_write(f, n->item[i].text, n->item[i].length, err);
        if (!status)
            status = heed__atomic_write(f, "\n", 1, err);
    }
    if (!status)
        return heed__atomic_commit(f, err);
    if (f)
        heed__atomic_abandon(f);
    return status;
}

heed__names *heed__names_open(const char *path, const heed_allocator *allocator, heed_error *err)
{
    if (access(path, F_OK) != 0)
        return NULL;
    heed__names *n = empty(allocator, err);
    if (!n || heed__file_map(path, &n->file, &n->size, err)) {
        heed__names_free(n);
        return NULL;
    }
    const char *text = n->file, *stop = text + n->size;
    for (const char *end; text < stop; text = end + 1) {
        end = memchr(text, '\n', (size_t)(stop - text));
        end = end ? end : stop;
        if (end > text && !add(n, (word){text, (size_t)(end - text), false})) {
            heed__fail(err, HEED_MEMORY, "out of memory for names");
            heed__names_free(n);
            return NULL;
        }
    }
    if (n->count) /* the file may have been edited */
        qsort(n->item, (size_t)n->count, sizeof *n->item, by_text);
    return n;
}

/* ---- a line ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits on their own: not in a time, a date, a decimal number, 33-year-old or the 80's. */
static bool is_number(const sentence *s, heed__span w)
{
    for (size_t i = w.begin; i < w.end; i++)
        if (!is_digit(s->text[i]))
            return false;
    const char before = s->text[w.begin - 1]; /* a sentence begins with another word */
    const char after = w.end < s->end ? s->text[w.end] : ' ';
    const char then = w.end + 1 < s->end ? s->text[w.end + 1] : ' ';
    return w.end - w.begin >= DIGITS && !strchr(".,:/-", before) && !strchr(":/-'", after) &&
           !(strchr(".,", after) && is_digit(then));
}

/* A name of several pieces that is not known to be translated; -1 when memory is short. */
static int is_unknown_name(const heed__names *n, const heed_vocab *v, const sentence *s,
                           heed__span w, heed_arena *arena)
{
    const word asked = {s->text + w.begin, w.end - w.begin, false};
    heed_tokens pieces;
    if (!is_written_like_name(s->text, w) || is_inflected(s->text, s->end, w) ||
        (n->count && bsearch(&asked, n->item, (size_t)n->count, sizeof *n->item, by_text)))
        return 0;
    if (heed_vocab_encode(v, asked.text, asked.length, arena, &pieces, NULL))
        return -1;
    return pieces.count >= UNKNOWN_PIECES;
}

/* Appends the copies of a sentence to `count` others; returns the new count, or -1 when memory is
 * short. */
static int64_t add_copies(const heed__names *n, const heed_vocab *v, sentence s, heed_arena *arena,
                          heed__span *copy, int64_t count)
{
    const int64_t first = count;
    const bool names = n && !is_heading(s);
    bool named = false; /* whether the last one is a name */
    for (heed__span w; next_word(s.text, s.end, s.at, &w); s.at = w.end) {
        int name = names ? is_unknown_name(n, v, &s, w, arena) : 0;
        if (name < 0)
            return -1;
        if (name && named && copy[count - 1].end + 1 == w.begin && s.text[w.begin - 1] == ' ')
            copy[count - 1].end = w.end;
        else if (name || is_number(&s, w)) {
            copy[count++] = w;
            named = name;
        }
    }
    return count - first > MOST_COPIES ? first : count;
}

int64_t heed__copies_of(const heed__names *n, const heed_vocab *v, const char *text, size_t length,
                        heed_arena *arena, heed__span **copy)
{
    int64_t count = 0;
    size_t at = 0;
    sentence s;
    *copy = heed_arena_allocate(arena, ((length + 1) / (DIGITS + 1) + 1) * sizeof **copy);
    if (!*copy)
        return -1;
    while (count >= 0 && next_sentence(text, length, &at, &s))
        count = add_copies(n, v, s, arena, *copy, count);
    return count;
}
