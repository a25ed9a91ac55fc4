/* folder.h: directories that appear whole or not at all: make, sync, rename, remove, and checksums
 * of the files in them. */
#ifndef HEED_TRAIN_FOLDER_H
#define HEED_TRAIN_FOLDER_H

#include <heed/base.h>
#include <limits.h>

/* A path on the stack: format makes it; ARGUMENT if it is too long. */
typedef char heed__pathname[PATH_MAX];
heed_status heed__pathname_format(heed__pathname path, heed_error *err, const char *format, ...)
    HEED_PRINTF(3, 4);

bool heed__folder_exists(const char *path);
/* An absent one counts as empty. */
bool heed__folder_empty(const char *path);
heed_status heed__folder_make(const char *path, heed_error *err);
/* With everything in it; what is absent is no failure.  Symbolic links are not followed. */
heed_status heed__folder_remove(const char *path, heed_error *err);
heed_status heed__folder_sync(const char *path, heed_error *err);
/* Renames a file or folder inside one folder or between two, and syncs the one it arrives in. */
heed_status heed__folder_rename(const char *from, const char *to, heed_error *err);
/* Calls visit with the number of every entry `prefix` NUMBER `suffix`, in no order. */
heed_status heed__folder_numbered(const char *path, const char *prefix, const char *suffix,
                                  void (*visit)(void *context, int64_t number), void *context,
                                  heed_error *err);

typedef struct heed__checksum {
    int64_t bytes;
    uint32_t crc; /* CRC-32, as zlib's */
} heed__checksum;
heed_status heed__file_checksum(const char *path, heed__checksum *sum, heed_error *err);
heed_status heed__file_copy(const char *from, const char *to, const heed_allocator *allocator,
                            heed_error *err);

#endif
