/* folder.c: directories. */
#include "base/folder.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static heed_status failed(heed_error *err, const char *what, const char *path)
{
    return heed__fail(err, HEED_IO, "cannot %s '%.400s': %s", what, path, strerror(errno));
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

/* Another thread may create a file in the folder after its entries were read (heed_trainer_discard
 * renames a folder in use), so removing is tried again. */
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
    /* Some file systems cannot sync a directory and return EINVAL: ignored. */
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
    heed_status status = heed__pathname_split(to, parent, NULL, err);
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
