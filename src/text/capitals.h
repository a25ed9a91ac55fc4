/* capitals.h (internal): lines in CAPITALS.  A model knows words as they are usually written, so
 * such a line is translated in lower case and its translation put in capitals. */
#ifndef HEED_TEXT_CAPITALS_H
#define HEED_TEXT_CAPITALS_H

#include <heed/base.h>

/* Whether a UTF-8 text has at least four capitals and no lower-case letter outside its protected
 * spans (spans.h). */
bool heed__is_all_caps(const char *text, size_t length);
/* The text in lower case, with a capital at the start of a sentence and for the English I. NULL
 * when memory is short. */
char *heed__to_lower(const char *text, size_t *length, heed_arena *arena);
/* The text in capitals.  NULL when memory is short. */
const char *heed__to_upper(const char *text, heed_arena *arena);

#endif
