/* ngram_table.h: a hash table from short sequences of int32 (the characters of a word, the n
 * units of an n-gram) to a number.  Keys are borrowed.  Open addressing; emptied and sized once
 * for each use, so it never grows while it is filled. */
#ifndef HEED_METRIC_NGRAM_TABLE_H
#define HEED_METRIC_NGRAM_TABLE_H

#include <heed/base.h>

typedef struct heed__table_entry {
    uint64_t hash;
    const int32_t *key; /* NULL: free */
    int64_t length;
    int64_t value;
} heed__table_entry;

typedef struct heed__table {
    heed_allocator allocator;
    heed__table_entry *at;
    int64_t capacity;
    int64_t slots; /* in use now, a power of two */
} heed__table;

void heed__table_init(heed__table *t, const heed_allocator *allocator);
void heed__table_deinit(heed__table *t);
/* Empties it and reserves capacity for `keys` keys; false when memory is short. */
bool heed__table_begin(heed__table *t, int64_t keys);
/* The value of a key; 0 if new. */
int64_t *heed__table_add(heed__table *t, const int32_t *key, int64_t length);
/* NULL if it is not there. */
int64_t *heed__table_find(const heed__table *t, const int32_t *key, int64_t length);

#endif
