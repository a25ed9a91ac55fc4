/* capitals.h (internal): lines THAT PEOPLE SHOUT.  A model knows the pieces of words as they are
 * mostly written; so such a line is translated in small letters, and its translation shouted. */
#ifndef HEED_TEXT_CAPITALS_H
#define HEED_TEXT_CAPITALS_H

#include <heed/base.h>

/* Whether a UTF-8 text has capitals, four at least, and no small letter outside of its spans
 * (spans.h). */
bool heed__is_shouted(const char *text, size_t length);
/* The text in small letters, with a capital where a sentence begins and for the English I.  NULL
 * when memory is short. */
const char *heed__quieten(const char *text, size_t *length, heed_arena *arena);
/* The text in capitals.  NULL when memory is short. */
const char *heed__shout(const char *text, heed_arena *arena);

#endif
