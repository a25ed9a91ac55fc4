/* split.h (internal): where sentences end. */
#ifndef HEED_TEXT_SPLIT_H
#define HEED_TEXT_SPLIT_H

#include <stddef.h>

/* Where the sentence that begins at `from` ends, with the spaces after it; length if it is the
 * last.  Always after `from`, unless that is the end. */
size_t heed__sentence_end(const char *text, size_t length, size_t from);

#endif
