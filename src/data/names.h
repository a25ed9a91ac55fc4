/* names.h (internal): numbers, and names that were rare in training, are copied, not spelled.
 *
 * In languages that capitalise mostly names, words with a capital inside a sentence may be names.
 * Those that the training text translates nevertheless (Thursday, California, German) are the lines
 * of a model's names.txt, sorted.  A model without that file copies no names. */
#ifndef HEED_DATA_NAMES_H
#define HEED_DATA_NAMES_H

#include "text/spans.h"

#include <heed/data.h>

#define HEED__NAMES_FILE "names.txt"

typedef struct heed__names heed__names;
/* Words of a text with a capital whose translation is another word; `before`, if not NULL, has more
 * of them.  NULL without an error in languages where many words have a capital. */
heed__names *heed__names_learn(const heed_corpus *c, const heed__names *before,
                               const heed_allocator *allocator, heed_error *err);
heed_status heed__names_write(const heed__names *n, const char *path, heed_error *err);
/* NULL without an error if there is no such file. */
heed__names *heed__names_open(const char *path, const heed_allocator *allocator, heed_error *err);
void heed__names_free(heed__names *n);

bool heed__names_have(const heed__names *n, const char *text, size_t length);

/* The parts of a line to copy, in order: numbers of two or more digits on their own; if n is not
 * NULL, words with a capital that do not begin a sentence, are not in names.txt, and are several
 * pieces; given names that are several pieces or have a surname (name_words.h), anywhere.
 * Neighbours are one.  No single names in headings, Where Every Word Has A Capital.  -1 when memory
 * is short. */
int64_t heed__copies_of(const heed__names *n, const heed_vocab *v, const char *text, size_t length,
                        heed_arena *arena, heed__span **copy);
/* Gives the names in a text in small letters their capitals again: those that are known, and words
 * that the vocabulary knows with a capital only.  False when memory is short. */
bool heed__names_capitalise(const heed__names *n, const heed_vocab *v, char *text, size_t length,
                            heed_arena *arena);

#endif
