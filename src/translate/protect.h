/* protect.h (internal): spans that no translation may change, as placeholders on their way through
 * the model.
 *
 * Each becomes <ph0>, in the parts of a line then <ph0>, <ph1> ... in their order; the search makes
 * every translation have each of its placeholders once (constraint.c); at the end the spans
 * take their places again: byte for byte, or as the target language writes them (spans.h). */
#ifndef HEED_TRANSLATE_PROTECT_H
#define HEED_TRANSLATE_PROTECT_H

#include "data/names.h"
#include "text/special_ids.h"

typedef struct heed__protected {
    const char *text; /* a copy: the line is gone when its translation is there */
    size_t length;
    const char *written; /* the same, or as the target language writes it */
    size_t written_length;
    bool glued_left, glued_right; /* to a word or its stop, as tags of <b>bold</b> are */
} heed__protected;

/* The line with placeholders, all of them <ph0>, and the spans in their order; the line itself
 * where there are none.  With a vocabulary, numbers are spans too, and with names those that it
 * hardly knows (names.h; names NULL: none).  False when memory is short. */
bool heed__protect(const char **text, size_t *length, heed__language into, const heed__names *names,
                   const heed_vocab *v, heed_arena *arena, heed__protected **span, int64_t *spans);
/* The opposite of heed__restore: a translation, or how it is to begin, with placeholders for those
 * of the spans that it has.  NULL when memory is short. */
const char *heed__protect_again(const char *text, const heed__protected *span, int64_t spans,
                                heed_arena *arena);
/* Whether such a line has a letter or a digit beside its placeholders. */
bool heed__has_words(const char *text, size_t length);
/* A place of a line that heed__protect made; where the placeholder begins, if it is inside of one.
 * */
size_t heed__mark_begin(const char *text, size_t length, size_t at);
int64_t heed__placeholders(const heed_special_ids *ids,
                           const heed_tokens *t); /* how many there are */
/* How many of the tokens, from the first on, have at most HEED_PLACEHOLDERS placeholders. */
int64_t heed__protected_tokens(const heed_special_ids *ids, const heed_tokens *t);
/* Numbers the placeholders from 0 on, in a copy where there are any; returns how many, -1 when
 * memory is short. */
int64_t heed__number_placeholders(const heed_special_ids *ids, heed_tokens *t, heed_arena *arena);
/* The text with its spans; those whose placeholder is missing stand at the end.  NULL when memory
 * is short. */
const char *heed__restore(const char *text, const heed__protected *span, int64_t spans,
                          heed_arena *arena);

#endif
