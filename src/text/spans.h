/* spans.h (internal): protected spans, parts of a text that a translation must not change:
 * addresses, markup, numbers with what belongs to them, names of files and the like.  spans.c has
 * the table of their kinds. */
#ifndef HEED_TEXT_SPANS_H
#define HEED_TEXT_SPANS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct heed__span {
    size_t begin, end;
    int kind; /* from 1, a row of the table; 0: none, copied as it stands */
} heed__span;

/* What a text is translated into.  A kind with words in it, 3 May 2024, is a span only where its
 * form in the target language is known. */
typedef enum heed__language {
    HEED__OTHER_LANGUAGE,
    HEED__GERMAN,
    HEED__ANY_LANGUAGE, /* every kind */
} heed__language;
/* The language that the name of a model directory ends in: models/en-de. */
heed__language heed__language_of(const char *folder);

/* Whether there is a letter, an accent or a digit before, or at, this position of a UTF-8 text. */
bool heed__word_before(const char *text, size_t at);
bool heed__word_at(const char *text, size_t length, size_t at);
/* The next span at or after `at` of a UTF-8 text; false if there is none.  They never overlap if
 * each search starts at the end of the last. */
bool heed__span_next(const char *text, size_t length, size_t at, heed__language into,
                     heed__span *span);

/* Most bytes of a span that is written differently in another language. */
#define HEED__WRITTEN 64
/* How a span of this kind is written there, in `to` (HEED__WRITTEN).  Returns the bytes; 0: as it
 * stands. */
size_t heed__span_write(int kind, heed__language into, const char *span, size_t length, char *to);
int heed__span_kinds(void);                 /* the number of rows */
const char *heed__span_kind_name(int kind); /* from 1 */

#endif
