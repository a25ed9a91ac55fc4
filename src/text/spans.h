/* spans.h (internal): protected spans, parts of a text that a translation must not change: web and
 * mail addresses, placeholders of programs (%s, {name}), markup (<b>, &amp;, `code`), emoji,
 * quantities with units, and groups of digits (555-1234). */
#ifndef HEED_TEXT_SPANS_H
#define HEED_TEXT_SPANS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct heed__span {
    size_t begin, end;
} heed__span;

/* Whether there is a letter, an accent or a digit before, or at, this position of a UTF-8 text. */
bool heed__word_before(const char *text, size_t at);
bool heed__word_at(const char *text, size_t length, size_t at);
/* The next span at or after `at` of a UTF-8 text; false if there is none.  They never overlap if
 * each search starts at the end of the last. */
bool heed__span_next(const char *text, size_t length, size_t at, heed__span *span);

#endif
