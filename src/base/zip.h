/* zip.h: zip archives, plain or deflated entries, zip64 too: npz, PyTorch's, .argosmodel. */
#ifndef HEED_BASE_ZIP_H
#define HEED_BASE_ZIP_H

#include <heed/base.h>
#include <string.h>

typedef struct heed__zip_entry {
    const char *name;
    const unsigned char *data;
    size_t stored, size; /* bytes in the archive, and what they become */
    bool deflated;
} heed__zip_entry;

typedef struct heed__zip {
    const char *path;  /* for messages */
    heed_arena *arena; /* entries, names, what was inflated */
    heed__zip_entry *entry;
    size_t count;
} heed__zip;

static inline bool heed__is_zip(const void *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
}

/* Reads the directory of an archive's bytes, which must outlive z; every entry has been checked to
 * lie in the archive, and to become no more than deflate can make of it. */
heed_status heed__zip_open(heed__zip *z, const char *path, const void *bytes, size_t size,
                           heed_arena *arena, heed_error *err);
/* The entry whose name is this, or NULL. */
const heed__zip_entry *heed__zip_find(const heed__zip *z, const char *name);
/* The bytes of an entry, in the archive or in the arena.  Refuses what inflates to another size
 * than the directory says. */
heed_status heed__zip_bytes(const heed__zip *z, const heed__zip_entry *e,
                            const unsigned char **bytes, heed_error *err);
/* The same into memory for e->size bytes. */
heed_status heed__zip_copy(const heed__zip *z, const heed__zip_entry *e, void *to, heed_error *err);

#endif
