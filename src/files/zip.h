/* zip.h: zip archives, plain or deflated entries, zip64 too: npz, PyTorch's, .argosmodel. */
#ifndef HEED_FILES_ZIP_H
#define HEED_FILES_ZIP_H

#include "files/found.h"

typedef struct heed__zip_entry {
    const char *name; /* in the arena of the found model */
    const unsigned char *data;
    size_t stored, size; /* bytes in the archive, and what they become */
    bool deflated;
} heed__zip_entry;

typedef struct heed__zip {
    heed__zip_entry *entry;
    size_t count;
} heed__zip;

static inline bool heed__is_zip(const void *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
}

/* Reads the directory; every entry has been checked to lie in the archive. */
heed_status heed__zip_open(heed__zip *z, heed__found *f, const void *bytes, size_t size,
                           heed_error *err);
/* The entry whose name is this, or NULL. */
const heed__zip_entry *heed__zip_find(const heed__zip *z, const char *name);
/* The bytes of an entry, in the archive or in the arena of f.  Refuses what inflates to another
 * size than the directory says, or to more than a thousand times its bytes. */
heed_status heed__zip_bytes(heed__found *f, const heed__zip_entry *e, const unsigned char **bytes,
                            heed_error *err);

#endif
