/* file.h: writing a file whole or not at all, and reading one by mapping it.
 *
 *     heed__atomic_file *f = heed__atomic_open(path, NULL, &err);
 *     if (!f || heed__atomic_write(f, bytes, size, &err))
 *         return heed__atomic_abandon(f), err.status;
 *     return heed__atomic_commit(f, &err);
 *
 * Until commit returns HEED_OK the old file stands; a kill in between leaves it and at most a stray
 * `.heed-*.tmp` beside it. */
#ifndef HEED_BASE_FILE_H
#define HEED_BASE_FILE_H

#include <heed/base.h>

typedef struct heed__atomic_file heed__atomic_file;
/* Opens a temporary file in path's directory.  A symbolic link is followed; what is not a regular
 * file (a device, a pipe, a directory) is refused, because renaming over it would replace it. */
heed__atomic_file *heed__atomic_open(const char *path, const heed_allocator *allocator,
                                     heed_error *err);
/* After a failed write, commit fails too. */
heed_status heed__atomic_write(heed__atomic_file *f, const void *bytes, size_t size,
                               heed_error *err);
/* Syncs the file, renames it to its own name, syncs the directory; frees f either way. */
heed_status heed__atomic_commit(heed__atomic_file *f, heed_error *err);
/* Removes the temporary file and frees f, which may be NULL. */
void heed__atomic_abandon(heed__atomic_file *f);

/* The bytes of a regular file, read-only, until heed__file_unmap; an empty file gives a valid
 * pointer and size 0.  Who shortens the file meanwhile makes reading it crash: writers that replace
 * it, as above, do not. */
heed_status heed__file_map(const char *path, const void **bytes, size_t *size, heed_error *err);
void heed__file_unmap(const void *bytes, size_t size);
/* These bytes of a mapping are not needed for now: the whole pages among them need not stay in
 * memory, and are read again if somebody looks. */
void heed__file_forget(const void *bytes, size_t size);

#endif
