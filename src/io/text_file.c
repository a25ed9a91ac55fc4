/* text_file.c: a text as a file, whole or not at all. */
#include "base/file.h"

#include <heed/io.h>
#include <string.h>

heed_status heed_text_save(const char *path, const char *text, heed_error *err)
{
    heed__atomic_file *f = heed__atomic_open(path, NULL, err);
    if (!f)
        return err ? err->status : HEED_IO;
    heed_status status = heed__atomic_write(f, text, strlen(text), err);
    if (status) {
        heed__atomic_abandon(f);
        return status;
    }
    return heed__atomic_commit(f, err);
}
