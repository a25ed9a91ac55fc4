/* folder.c: what a save needs of a file system: make, sync, rename, remove, checksum. */
#include "train/folder.h"
#include "base/error.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static heed_status failed(heed_error *err, const char *what, const char *path)
{
    return heed__fail(err, HEED_IO, "cannot %s '%.400s': %s", what, path, strerror(errno));
}

heed_status heed__pathname_format(heed__pathname path, heed_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(path, PATH_MAX, format, args);
    va_end(args);
    if (n < 0 || n >= PATH_MAX)
        return heed__fail(err, HEED_ARGUMENT, "the path '%.100s...' is too long", path);
    return HEED_OK;
}

bool heed__folder_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

bool heed__folder_empty(const char *path)
{
    DIR *d = opendir(path);
    if (!d)
        return errno == ENOENT || !heed__folder_exists(path);
    int n = 0;
    for (struct dirent *e; n == 0 && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n == 0;
}

heed_status heed__folder_make(const char *path, heed_error *err)
{
    return mkdir(path, 0777) == 0 ? HEED_OK : failed(err, "make the directory", path);
}

/* A thread that was just opening a file in the folder when heed_trainer_discard renamed it makes
 * that file after its entries were read. */
#define MOST_TRIES 10

static heed_status remove_entries(DIR *d, const char *path, heed_error *err)
{
    heed_status status = HEED_OK;
    for (struct dirent *e; !status && (e = readdir(d));) {
        heed__pathname inside;
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        status = heed__pathname_format(inside, err, "%s/%s", path, e->d_name);
        if (!status && lstat(inside, &st) == 0 && S_ISDIR(st.st_mode))
            status = heed__folder_remove(inside, err);
        else if (!status && unlink(inside) != 0 && errno != ENOENT)
            status = failed(err, "remove", inside);
    }
    return status;
}

heed_status heed__folder_remove(const char *path, heed_error *err)
{
    DIR *d = opendir(path);
    if (!d)
        return errno == ENOENT ? HEED_OK : failed(err, "remove", path);
    heed_status status = HEED_OK;
    bool there = true;
    for (int i = 0; !status && there && i < MOST_TRIES; i++) {
        rewinddir(d);
        status = remove_entries(d, path, err);
        there = !status && rmdir(path) != 0 && errno != ENOENT;
    }
    if (there)
        status = failed(err, "remove", path);
    closedir(d);
    return status;
}

heed_status heed__folder_sync(const char *path, heed_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(err, "sync", path);
    /* Some file systems cannot sync a directory and say EINVAL; nothing more can be done there. */
    heed_status status = fsync(fd) != 0 && errno != EINVAL ? failed(err, "sync", path) : HEED_OK;
    close(fd);
    return status;
}

heed_status heed__folder_rename(const char *from, const char *to, heed_error *err)
{
    heed__pathname parent;
    if (rename(from, to) != 0)
        return heed__fail(err, HEED_IO, "cannot rename '%.200s' to '%.200s': %s", from, to,
                          strerror(errno));
    const char *slash = strrchr(to, '/');
    heed_status status = slash == to ? heed__pathname_format(parent, err, "/")
                         : slash ? heed__pathname_format(parent, err, "%.*s", (int)(slash - to), to)
                                 : heed__pathname_format(parent, err, ".");
    return status ? status : heed__folder_sync(parent, err);
}

heed_status heed__folder_numbered(const char *path, const char *prefix, const char *suffix,
                                  void (*visit)(void *context, int64_t number), void *context,
                                  heed_error *err)
{
    DIR *d = opendir(path);
    if (!d)
        return errno == ENOENT ? HEED_OK : failed(err, "read the directory", path);
    size_t n = strlen(prefix);
    for (struct dirent *e; (e = readdir(d));) {
        char *end;
        if (strncmp(e->d_name, prefix, n) != 0 || e->d_name[n] < '0' || e->d_name[n] > '9')
            continue;
        errno = 0;
        long long number = strtoll(e->d_name + n, &end, 10);
        if (errno == 0 && strcmp(end, suffix) == 0)
            visit(context, number);
    }
    closedir(d);
    return HEED_OK;
}

heed_status heed__file_checksum(const char *path, heed__checksum *sum, heed_error *err)
{
    const void *bytes;
    size_t size;
    heed_status status = heed__file_map(path, &bytes, &size, err);
    if (status)
        return status;
    *sum = (heed__checksum){(int64_t)size, (uint32_t)crc32_z(0, bytes, size)};
    heed__file_unmap(bytes, size);
    return HEED_OK;
}

heed_status heed__file_copy(const char *from, const char *to, const heed_allocator *allocator,
                            heed_error *err)
{
    const void *bytes;
    size_t size;
    heed_status status = heed__file_map(from, &bytes, &size, err);
    if (status)
        return status;
    heed_error own = {0};
    heed__atomic_file *f = heed__atomic_open(to, allocator, &own);
    if (f && heed__atomic_write(f, bytes, size, &own))
        heed__atomic_abandon(f);
    else if (f)
        heed__atomic_commit(f, &own);
    heed__file_unmap(bytes, size);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
