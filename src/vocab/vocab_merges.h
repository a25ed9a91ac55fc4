/* vocab_merges.h: which two pieces become which, in which order: the merges of byte-level BPE. */
#ifndef HEED_VOCAB_VOCAB_MERGES_H
#define HEED_VOCAB_VOCAB_MERGES_H

#include <heed/base.h>

typedef struct heed__merges {
    heed_allocator allocator;
    struct heed__merge {
        int32_t left, right; /* left is -1 in a free slot */
        int32_t rank, id;    /* smaller ranks first; what they become */
    } * slot;                /* open addressing, at most half full */
    size_t slots;
    int32_t count;
} heed__merges;

/* m->allocator is set.  False when memory is short.  The first of two equal pairs stays. */
bool heed__merges_add(heed__merges *m, int32_t left, int32_t right, int32_t id);
void heed__merges_deinit(heed__merges *m);
/* NULL if the two are never merged. */
const struct heed__merge *heed__merges_find(const heed__merges *m, int32_t left, int32_t right);

#endif
