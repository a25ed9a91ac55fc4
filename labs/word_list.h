/* word_list.h: the words of a text, what stands between blanks, by number: the most frequent first,
 * all others one unknown word. */
#ifndef HEED_LABS_WORD_LIST_H
#define HEED_LABS_WORD_LIST_H

#include <heed/heed.h>

enum { WORD_UNKNOWN, WORD_END }; /* "<unk>" and the end mark "</s>" */
typedef struct word_list word_list;
/* In the arena; count texts, then close the list.  Words that are counted are copied. */
word_list *word_list_new(heed_arena *arena);
/* False when memory is short. */
bool word_list_count(word_list *w, const char *text, size_t length);
/* Keeps the `most` most frequent words, the two above included; equal ones as they came. */
bool word_list_close(word_list *w, int64_t most);
int64_t word_list_size(const word_list *w);
int32_t word_list_find(const word_list *w, const char *word, size_t length);
const char *word_list_word(const word_list *w, int32_t id);
/* The next word of a text of *length bytes, which is moved behind it; NULL: there is none. */
const char *word_list_next(const char **text, size_t *length, size_t *word_length);

#endif
