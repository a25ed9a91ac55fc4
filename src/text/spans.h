/* spans.h (internal): parts of a text that no translation may change: addresses of pages and of
 * people, places that a program fills in (%s, {name}), marks (<b>, &amp;, `code`), emoji,
 * quantities with their units, and numbers in groups (555-1234). */
#ifndef HEED_TEXT_SPANS_H
#define HEED_TEXT_SPANS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct heed__span {
    size_t begin, end;
} heed__span;

/* Whether a letter, an accent or a digit stands before, or at, this place of a UTF-8 text. */
bool heed__word_before(const char *text, size_t at);
bool heed__word_at(const char *text, size_t length, size_t at);
/* The next one at or behind `at` of a UTF-8 text; false: there is none.  They never overlap if each
 * is looked for behind the last. */
bool heed__span_next(const char *text, size_t length, size_t at, heed__span *span);

#endif
