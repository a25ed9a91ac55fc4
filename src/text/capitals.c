/* capitals.c: see capitals.h. */
#include "text/capitals.h"
#include "text/spans.h"
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* Fewer are an abbreviation: USA. */
#define FEWEST 4

/* Iterates over the characters of a text. */
typedef struct cursor {
    const char *text;
    size_t length, at, size; /* position of the character, its bytes */
    int32_t c;
    bool in_span;
    heed__span span; /* the current span, or the next */
} cursor;

static bool step(cursor *w)
{
    w->at += w->size;
    w->size = heed__utf8_next(w->text + w->at, w->length - w->at, &w->c);
    if (w->at >= w->span.end &&
        !heed__span_next(w->text, w->length, w->at, HEED__ANY_LANGUAGE, &w->span))
        w->span = (heed__span){w->length, w->length + 1, 0};
    w->in_span = w->at >= w->span.begin;
    return w->size > 0;
}

bool heed__is_all_caps(const char *text, size_t length)
{
    int64_t capitals = 0;
    for (cursor w = {.text = text, .length = length}; step(&w);) {
        utf8proc_category_t kind = utf8proc_category(w.c);
        if (!w.in_span && kind == UTF8PROC_CATEGORY_LL)
            return false;
        capitals += !w.in_span && kind == UTF8PROC_CATEGORY_LU;
    }
    return capitals >= FEWEST;
}

static size_t put(char *to, size_t at, int32_t c)
{
    return at + (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)to + at);
}

static bool is_cased(int32_t c)
{
    utf8proc_category_t kind = utf8proc_category(c);
    return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL;
}

/* The other case may need more bytes: at most three for two. */
static char *allocate_for(size_t length, heed_arena *arena)
{
    return heed_arena_allocate(arena, 2 * length + 1);
}

char *heed__to_lower(const char *text, size_t *length, heed_arena *arena)
{
    char *to = allocate_for(*length, arena);
    bool begins = true; /* a sentence */
    size_t n = 0;
    for (cursor w = {.text = text, .length = *length}; to && step(&w);) {
        bool letter = !w.in_span && is_cased(w.c);
        bool alone = w.c == 'I' && !heed__word_before(text, w.at) &&
                     !heed__word_at(text, *length, w.at + w.size);
        if (letter && !begins && !alone) {
            n = put(to, n, utf8proc_tolower(w.c));
        } else {
            memcpy(to + n, text + w.at, w.size);
            n += w.size;
        }
        if (w.in_span || heed__word_at(text, *length, w.at))
            begins = false;
        else if (w.c == '.' || w.c == '!' || w.c == '?')
            begins = true;
    }
    *length = n;
    return to;
}

const char *heed__to_upper(const char *text, heed_arena *arena)
{
    const size_t length = strlen(text);
    char *to = allocate_for(length, arena);
    size_t n = 0;
    for (cursor w = {.text = text, .length = length}; to && step(&w);) {
        if (w.in_span) {
            memcpy(to + n, text + w.at, w.size);
            n += w.size;
        } else if (w.c == 0xDF) { /* German sharp s, whose capital is rarely typed */
            n = put(to, put(to, n, 'S'), 'S');
        } else {
            n = put(to, n, utf8proc_toupper(w.c));
        }
    }
    if (to)
        to[n] = '\0';
    return to;
}
