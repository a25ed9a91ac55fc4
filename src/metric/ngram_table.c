/* ngram_table.c: linear probing at no more than half full. */
#include "metric/ngram_table.h"
#include "base/memory.h"

#include <string.h>

void heed__table_init(heed__table *t, const heed_allocator *allocator)
{
    *t = (heed__table){.allocator = heed__allocator_or_default(allocator)};
}

void heed__table_deinit(heed__table *t)
{
    heed__release(&t->allocator, t->at, (size_t)t->capacity, sizeof *t->at);
    t->at = NULL;
    t->capacity = t->slots = 0;
}

bool heed__table_begin(heed__table *t, int64_t keys)
{
    int64_t slots = 16;
    while (slots / 2 < keys)
        slots *= 2;
    if (slots > t->capacity) {
        heed__table_deinit(t);
        t->at = heed__allocate(&t->allocator, (size_t)slots, sizeof *t->at);
        if (!t->at)
            return false;
        t->capacity = slots;
    }
    t->slots = slots;
    memset(t->at, 0, (size_t)slots * sizeof *t->at);
    return true;
}

static uint64_t hash_of(const int32_t *key, int64_t length)
{
    uint64_t h = (uint64_t)length;
    for (int64_t i = 0; i < length; i++) {
        h = (h ^ (uint32_t)key[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return h;
}

/* The slot of the key, or a free one. */
static heed__table_entry *slot_of(const heed__table *t, uint64_t hash, const int32_t *key,
                                  int64_t length)
{
    uint64_t mask = (uint64_t)t->slots - 1, i = hash & mask;
    for (;; i = (i + 1) & mask) {
        heed__table_entry *e = &t->at[i];
        if (!e->key || (e->hash == hash && e->length == length &&
                        memcmp(e->key, key, (size_t)length * sizeof *key) == 0))
            return e;
    }
}

int64_t *heed__table_add(heed__table *t, const int32_t *key, int64_t length)
{
    uint64_t hash = hash_of(key, length);
    heed__table_entry *e = slot_of(t, hash, key, length);
    if (!e->key)
        *e = (heed__table_entry){hash, key, length, 0};
    return &e->value;
}

int64_t *heed__table_find(const heed__table *t, const int32_t *key, int64_t length)
{
    heed__table_entry *e = slot_of(t, hash_of(key, length), key, length);
    return e->key ? &e->value : NULL;
}
