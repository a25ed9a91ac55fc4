/* gguf.h: GGUF, version 3, the files of llama.cpp: key/value pairs, then tensors.
 *
 *     "GGUF" | u32 3 | u64 tensors | u64 pairs | pairs | tensor infos | padding | data */
#ifndef HEED_FILES_GGUF_H
#define HEED_FILES_GGUF_H

#include "base/byte_cursor.h"

#include <heed/base.h>

typedef enum heed__gguf_type {
    HEED__GGUF_U8 = 0,
    HEED__GGUF_I8 = 1,
    HEED__GGUF_U16 = 2,
    HEED__GGUF_I16 = 3,
    HEED__GGUF_U32 = 4,
    HEED__GGUF_I32 = 5,
    HEED__GGUF_F32 = 6,
    HEED__GGUF_BOOL = 7,
    HEED__GGUF_STRING = 8,
    HEED__GGUF_ARRAY = 9,
    HEED__GGUF_U64 = 10,
    HEED__GGUF_I64 = 11,
    HEED__GGUF_F64 = 12,
} heed__gguf_type;

typedef struct heed__gguf_pair {
    const char *key; /* not terminated */
    size_t key_length;
    heed__gguf_type type;     /* of one value */
    bool array;               /* of n values; an array of arrays is passed over: n is 0 */
    uint64_t n;               /* 1 if it is no array */
    heed__byte_cursor values; /* over exactly those */
} heed__gguf_pair;

typedef struct heed__gguf {
    heed_arena *arena; /* the pairs */
    heed__gguf_pair *pair;
    uint64_t pairs, tensors;
    heed__byte_cursor infos; /* where the infos of the tensors begin, to the end of the file */
} heed__gguf;

static inline bool heed__is_gguf(const void *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "GGUF", 4) == 0;
}

/* The bytes are borrowed and must outlive g; name is for messages.  Every value has been checked to
 * lie in the file. */
heed_status heed__gguf_open(heed__gguf *g, const char *name, const void *bytes, size_t size,
                            const heed_allocator *allocator, heed_error *err);
/* g may be zeroed memory. */
void heed__gguf_close(heed__gguf *g);
/* NULL if there is none. */
const heed__gguf_pair *heed__gguf_find(const heed__gguf *g, const char *key);
/* A string of an array or a value of its own, moving the cursor on; NULL at a broken end. */
const char *heed__gguf_string(heed__byte_cursor *values, size_t *length);
/* A single number of any type, or the default if there is none. */
double heed__gguf_number(const heed__gguf *g, const char *key, double otherwise);
/* A single string, not terminated; NULL if there is none. */
const char *heed__gguf_text(const heed__gguf *g, const char *key, size_t *length);

#endif
