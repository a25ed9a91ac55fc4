/* pickle.h: what a pickle of PyTorch's says, without running anything. */
#ifndef HEED_FILES_PICKLE_H
#define HEED_FILES_PICKLE_H

#include "files/found.h"

typedef enum heed__pickled_kind {
    HEED__PICKLED_NONE,
    HEED__PICKLED_NUMBER,
    HEED__PICKLED_TEXT,
    HEED__PICKLED_LIST,    /* tuples too */
    HEED__PICKLED_DICT,    /* key, value, key, value ... */
    HEED__PICKLED_GLOBAL,  /* "module name" */
    HEED__PICKLED_STORAGE, /* items of a persistent id */
    HEED__PICKLED_TENSOR,  /* arguments of _rebuild_tensor_v2 */
    HEED__PICKLED_MARK,
} heed__pickled_kind;

typedef struct heed__pickled {
    heed__pickled_kind kind;
    int64_t number;
    const char *text;            /* NUL-terminated */
    struct heed__pickled **item; /* (count) */
    size_t count, capacity;
} heed__pickled;

/* The object of a pickle of protocol 2 to 4; NULL after an error.  It lives in the arena of f.  A
 * pickle that asks for any code but a dictionary's and a tensor's is refused, naming it. */
heed__pickled *heed__pickle_read(heed__found *f, const unsigned char *bytes, size_t size,
                                 heed_error *err);

#endif
