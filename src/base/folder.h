/* folder.h: directories: make, sync, rename, remove, list. */
#ifndef HEED_BASE_FOLDER_H
#define HEED_BASE_FOLDER_H

#include "base/path.h"

bool heed__folder_exists(const char *path);
/* An absent one counts as empty. */
bool heed__folder_empty(const char *path);
heed_status heed__folder_make(const char *path, heed_error *err);
/* With everything in it; OK if it does not exist.  Symbolic links are not followed. */
heed_status heed__folder_remove(const char *path, heed_error *err);
heed_status heed__folder_sync(const char *path, heed_error *err);
/* Renames a file or folder and syncs the folder it arrives in. */
heed_status heed__folder_rename(const char *from, const char *to, heed_error *err);
/* Calls visit with the number of every entry `prefix` NUMBER `suffix`, in no order. */
heed_status heed__folder_numbered(const char *path, const char *prefix, const char *suffix,
                                  void (*visit)(void *context, int64_t number), void *context,
                                  heed_error *err);

#endif
