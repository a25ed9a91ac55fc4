/* file.h: writing a file whole or not at all, and reading one by mapping it.
 *
 *     heed__atomic_file *f = heed__atomic_open(path, NULL, &err);
 *     if (!f || heed__atomic_write(f, bytes, size, &err))
 *         return heed__atomic_abandon(f), err.status;
 *     return heed__atomic_commit(f, &err);
 *
 * Until commit returns HEED_OK the old file is unchanged; a kill in between leaves at most a stray
 * `.heed-*.tmp` beside it. */
#ifndef HEED_BASE_FILE_H
#define HEED_BASE_FILE_H

#include "base/path.h"

#include <heed/base.h>

typedef struct heed__atomic_file heed__atomic_file;
/* Opens a temporary file in path's directory.  A symbolic link is followed.  A device, pipe or
 * directory is refused: renaming over it would replace it. */
heed__atomic_file *heed__atomic_open(const char *path, const heed_allocator *allocator,
                                     heed_error *err);
/* After a failed write, commit fails too. */
heed_status heed__atomic_write(heed__atomic_file *f, const void *bytes, size_t size,
                               heed_error *err);
/* Syncs the file, renames it to its own name, syncs the directory; frees f either way. */
heed_status heed__atomic_commit(heed__atomic_file *f, heed_error *err);
/* Removes the temporary file and frees f, which may be NULL. */
void heed__atomic_abandon(heed__atomic_file *f);
/* open, write and commit in one call. */
heed_status heed__file_save(const char *path, const void *bytes, size_t size,
                            const heed_allocator *allocator, heed_error *err);

/* The bytes of a regular file, read-only, until heed__file_unmap; an empty file gives a valid
 * pointer and size 0.  Reading crashes if somebody shortens the file meanwhile; writers that
 * replace it, as above, are safe. */
heed_status heed__file_map(const char *path, const void **bytes, size_t *size, heed_error *err);
void heed__file_unmap(const void *bytes, size_t size);
/* file_zip.c: heed__file_map calls it for a path that goes on behind a zip archive,
 * "a.zip/folder/name": the entry's bytes, unpacked. */
heed_status heed__file_map_inside(const char *path, const void **bytes, size_t *size,
                                  heed_error *err);
/* Whether there is such a file, folder, or entry of an archive. */
bool heed__file_is_there(const char *path);
/* The folder in an archive that holds `wanted`, the outermost one, as a path; the archive's own if
 * it stands outside of folders, or nowhere. */
heed_status heed__archive_find(const char *path, const char *wanted, heed__pathname folder,
                               heed_error *err);
/* file_gzip.c: the same of a file that may be packed by gzip: what it holds.  Not for
 * heed__file_forget: what was unpacked cannot be read again. */
heed_status heed__file_map_unpacked(const char *path, const void **bytes, size_t *size,
                                    heed_error *err);
/* The first bytes of what packed bytes hold, at most `capacity`; 0 if they are not packed. */
size_t heed__gzip_begin(const void *bytes, size_t size, void *to, size_t capacity);
/* Lets the kernel drop the whole pages among these bytes of a mapping; they are read again on the
 * next access. */
void heed__file_forget(const void *bytes, size_t size);

typedef struct heed__checksum {
    int64_t bytes;
    uint32_t crc; /* CRC-32, as zlib's */
} heed__checksum;
heed_status heed__file_checksum(const char *path, heed__checksum *sum, heed_error *err);
heed_status heed__file_copy(const char *from, const char *to, const heed_allocator *allocator,
                            heed_error *err);

#endif
