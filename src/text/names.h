/* names.h (internal): numbers, and names that a model has hardly read, are copied, not spelled.
 *
 * Languages that write names, and little else, with a capital show which words may be names: those
 * with a capital inside of a sentence.  Of these the training text has taught which are translated
 * after all (Thursday, California, German): they are the lines of a model's names.txt, sorted.  A
 * model without that file copies no names. */
#ifndef HEED_TEXT_NAMES_H
#define HEED_TEXT_NAMES_H

#include "text/spans.h"

#include <heed/text.h>

#define HEED__NAMES_FILE "names.txt"

typedef struct heed__names heed__names;
/* Words of a text with a capital whose translation is another word; `before`, if not NULL, are
 * more of them.  NULL without an error where many words have a capital: it means no name there. */
heed__names *heed__names_learn(const heed_corpus *c, const heed__names *before,
                               const heed_allocator *allocator, heed_error *err);
heed_status heed__names_write(const heed__names *n, const char *path, heed_error *err);
/* NULL without an error if there is no such file. */
heed__names *heed__names_open(const char *path, const heed_allocator *allocator, heed_error *err);
void heed__names_free(heed__names *n);

/* What of a line is to be copied, in order: numbers of two digits and more that stand alone; where
 * n is not NULL, words with a capital that do not begin a sentence, are not translated, and are cut
 * into pieces; neighbours are one.  No names in headings, Where Every Word Has A Capital.  -1 when
 * memory is short. */
int64_t heed__copies_of(const heed__names *n, const heed_vocab *v, const char *text, size_t length,
                        heed_arena *arena, heed__span **copy);

#endif
