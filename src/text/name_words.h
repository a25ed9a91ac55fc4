/* name_words.h (internal): words of a text that may be names. */
#ifndef HEED_TEXT_NAME_WORDS_H
#define HEED_TEXT_NAME_WORDS_H

#include "text/spans.h"

/* The next word at or after `at`; false if there is none before `end`. */
bool heed__next_word(const char *text, size_t end, size_t at, heed__span *w);
/* A capital and at least two lower-case letters. */
bool heed__is_written_like_name(const char *text, heed__span w);

/* A sentence: its first word, which has a capital anyway, and where the others are. */
typedef struct heed__name_sentence {
    const char *text;
    heed__span first; /* empty if there are no words */
    size_t at, end;
} heed__name_sentence;
/* The next sentence of a text, from *at on; false at its end. */
bool heed__next_name_sentence(const char *text, size_t length, size_t *at, heed__name_sentence *s);
/* Where Every Word Has A Capital. */
bool heed__is_heading(heed__name_sentence s);

/* What a word is known as, whatever its letters are; a table of English names that are frequent. */
typedef enum heed__known_name {
    HEED__NOT_KNOWN,
    HEED__GIVEN_NAME,         /* Tom */
    HEED__GIVEN_NAME_OR_WORD, /* Mark */
    HEED__OTHER_NAME,         /* Berlin, Monday: no part of the name of a person */
} heed__known_name;
heed__known_name heed__known_name_of(const char *word, size_t length);

#endif
