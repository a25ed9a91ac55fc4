/* names.c: words with a capital that are translated nevertheless; see names.h. */
#include "data/names.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "text/name_words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    for (heed__span w = {0, 0, 0}; heed__next_word(text, length, w.end, &w);)
        if (w.end - w.begin == wanted->length &&
            memcmp(text + w.begin, wanted->text, wanted->length) == 0)
            return true;
    return false;
}

/* The words of a pair's source that are written like names; false when memory is short. */
static bool collect(heed__names *n, const heed_pair *pair, int64_t *words)
{
    size_t at = 0;
    heed__name_sentence s;
    while (heed__next_name_sentence(pair->source, pair->source_length, &at, &s))
        for (heed__span w; heed__next_word(s.text, s.end, s.at, &w); s.at = w.end) {
            ++*words;
            if (!heed__is_written_like_name(s.text, w))
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

bool heed__names_have(const heed__names *n, const char *text, size_t length)
{
    const word wanted = {text, length, false};
    return n->count && bsearch(&wanted, n->item, (size_t)n->count, sizeof *n->item, by_text);
}
