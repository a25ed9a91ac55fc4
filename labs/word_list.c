/* word_list.c: see word_list.h.  A table with open addresses, at most half full. */
#include "word_list.h"

#include <stdlib.h>
#include <string.h>

struct word {
    const char *text;
    size_t length;
    int64_t count, first; /* how often, and when for the first time */
    int32_t id;
};
struct word_list {
    heed_arena *arena;
    struct word **slot; /* (slots), a power of 2 */
    struct word **by_id;
    size_t slots, words;
    int64_t size; /* after closing */
};

static size_t hash_of(const char *word, size_t length)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)word[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 29);
}

/* Where a word is, or where it would go. */
static struct word **place_of(const word_list *w, const char *word, size_t length)
{
    size_t i = hash_of(word, length) & (w->slots - 1);
    while (w->slot[i] &&
           (w->slot[i]->length != length || memcmp(w->slot[i]->text, word, length) != 0))
        i = (i + 1) & (w->slots - 1);
    return &w->slot[i];
}

static bool grow(word_list *w, size_t slots)
{
    struct word **old = w->slot;
    const size_t n = w->slots;
    w->slot = heed_arena_allocate(w->arena, slots * sizeof *w->slot);
    if (!w->slot)
        return false;
    w->slots = slots;
    for (size_t i = 0; i < slots; i++)
        w->slot[i] = NULL;
    for (size_t i = 0; i < n; i++)
        if (old[i])
            *place_of(w, old[i]->text, old[i]->length) = old[i];
    return true;
}

static bool count_word(word_list *w, const char *word, size_t length, int64_t count)
{
    if (2 * w->words >= w->slots && !grow(w, 2 * w->slots))
        return false;
    struct word **at = place_of(w, word, length);
    if (!*at) {
        char *text = heed_arena_allocate(w->arena, length + 1);
        struct word *new = heed_arena_allocate(w->arena, sizeof *new);
        if (!text || !new)
            return false;
        memcpy(text, word, length);
        text[length] = 0;
        *new = (struct word){.text = text, .length = length, .first = (int64_t)w->words++};
        *at = new;
    }
    (*at)->count += count;
    return true;
}

word_list *word_list_new(heed_arena *arena)
{
    enum { SLOTS = 1 << 12 };
    word_list *w = heed_arena_allocate(arena, sizeof *w);
    if (!w)
        return NULL;
    *w = (word_list){.arena = arena};
    /* So often that nothing comes before them. */
    const bool made = grow(w, SLOTS) && count_word(w, "<unk>", 5, INT64_MAX / 2) &&
                      count_word(w, "</s>", 4, INT64_MAX / 4);
    return made ? w : NULL;
}

const char *word_list_next(const char **text, size_t *length, size_t *word_length)
{
    const char *at = *text, *end = at + *length;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    const char *word = at;
    while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
        at++;
    *text = at;
    *length = (size_t)(end - at);
    *word_length = (size_t)(at - word);
    return at > word ? word : NULL;
}

bool word_list_count(word_list *w, const char *text, size_t length)
{
    size_t n;
    for (const char *word; (word = word_list_next(&text, &length, &n)) != NULL;)
        if (!count_word(w, word, n, 1))
            return false;
    return true;
}

static int more_frequent(const void *a, const void *b)
{
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

bool word_list_close(word_list *w, int64_t most)
{
    w->by_id = heed_arena_allocate(w->arena, w->words * sizeof *w->by_id);
    if (!w->by_id)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < w->slots; i++)
        if (w->slot[i])
            w->by_id[n++] = w->slot[i];
    qsort(w->by_id, n, sizeof *w->by_id, more_frequent);
    w->size = (int64_t)n < most ? (int64_t)n : most;
    for (size_t i = 0; i < n; i++)
        w->by_id[i]->id = (int64_t)i < w->size ? (int32_t)i : WORD_UNKNOWN;
    return true;
}

int64_t word_list_size(const word_list *w)
{
    return w->size;
}

int32_t word_list_find(const word_list *w, const char *word, size_t length)
{
    struct word *const *at = place_of(w, word, length);
    return *at ? (*at)->id : WORD_UNKNOWN;
}

const char *word_list_word(const word_list *w, int32_t id)
{
    return id >= 0 && id < w->size ? w->by_id[id]->text : "";
}
