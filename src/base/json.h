/* json.h: reading JSON files, writing JSON strings. */
#ifndef HEED_BASE_JSON_H
#define HEED_BASE_JSON_H

#include "base/string.h"

#include <jansson.h>

/* What a file holds, to be released with json_decref.  NULL: IO, FORMAT, or MEMORY, which jansson
 * takes from the C heap. */
json_t *heed__json_open(const char *path, heed_error *err);
/* Whether a text could not be parsed for lack of memory, not because of what it says. */
bool heed__json_short_of_memory(const json_error_t *e);
/* Appends text, which is UTF-8, as a quoted JSON string. */
void heed__json_quote(heed__string *s, const char *text);

#endif
