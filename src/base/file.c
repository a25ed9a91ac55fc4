/* file.c: atomic writing (temporary name in the same directory, sync, rename, sync the directory)
 * and mapping.  Without the last sync the rename may exist only in memory: after a power cut the
 * old file would be back. */
#include "base/file.h"
#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFER ((size_t)1 << 16)

struct heed__atomic_file {
    heed_allocator allocator;
    int fd;
    int failed; /* errno of the first failed write, or 0 */
    size_t held;
    char given[PATH_MAX]; /* as the caller named it, for messages */
    char path[PATH_MAX];  /* the real path, links followed */
    char temporary[PATH_MAX];
    char buffer[BUFFER];
};

static heed_status write_failed(heed_error *err, const char *path, int number)
{
    return heed__fail(err, HEED_IO, "cannot write '%s': %s", path, strerror(number));
}

/* Length of path's directory, its last slash included; 0 for the working directory. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The name to rename to, and the permissions of the new file; returns 0 or an errno. */
static int resolve(const char *path, char resolved[PATH_MAX], mode_t *mode)
{
    struct stat st;
    if (stat(path, &st) == 0) {
        if (!realpath(path, resolved))
            return errno;
        *mode = st.st_mode & 0777;
        return S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    }
    if (errno != ENOENT)
        return errno;
    size_t n = strlen(path);
    if (n >= PATH_MAX)
        return ENAMETOOLONG;
    memcpy(resolved, path, n + 1);
    return 0;
}

/* A new file beside f->path.  O_EXCL, so that neither another writer nor a leftover is touched. */
static int open_temporary(heed__atomic_file *f)
{
    size_t n = directory_length(f->path);
    for (int i = 0; i < 1000; i++) {
        int k = snprintf(f->temporary, sizeof f->temporary, "%.*s.heed-%ld-%d.tmp", (int)n, f->path,
                         (long)getpid(), i);
        if (k < 0 || (size_t)k >= sizeof f->temporary)
            return errno = ENAMETOOLONG, -1;
        int fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

heed__atomic_file *heed__atomic_open(const char *path, const heed_allocator *allocator,
                                     heed_error *err)
{
    if (!path) {
        heed__fail(err, HEED_ARGUMENT, "cannot write a file without a name");
        return NULL;
    }
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__atomic_file *f = heed__allocate(&a, 1, sizeof *f);
    if (!f) {
        heed__fail(err, HEED_MEMORY, "out of memory for writing '%s'", path);
        return NULL;
    }
    f->allocator = a;
    f->failed = 0;
    f->held = 0;
    f->fd = -1;
    mode_t mode = 0;
    snprintf(f->given, sizeof f->given, "%s", path);
    int number = resolve(path, f->path, &mode);
    if (!number && (f->fd = open_temporary(f)) < 0)
        number = errno;
    if (!number && mode && fchmod(f->fd, mode) != 0) {
        number = errno;
        close(f->fd);
        unlink(f->temporary);
    }
    if (number) {
        if (number == EINVAL)
            heed__fail(err, HEED_IO, "cannot write '%s': not a regular file", path);
        else
            write_failed(err, path, number);
        heed__release(&a, f, 1, sizeof *f);
        return NULL;
    }
    return f;
}

static void put(heed__atomic_file *f, const char *p, size_t size)
{
    while (size && !f->failed) {
        ssize_t n = write(f->fd, p, size);
        if (n < 0 && errno != EINTR)
            f->failed = errno;
        if (n > 0) {
            p += n;
            size -= (size_t)n;
        }
    }
}

static void flush(heed__atomic_file *f)
{
    put(f, f->buffer, f->held);
    f->held = 0;
}

heed_status heed__atomic_write(heed__atomic_file *f, const void *bytes, size_t size,
                               heed_error *err)
{
    if (size > BUFFER - f->held)
        flush(f);
    if (size > BUFFER) {
        put(f, bytes, size);
    } else if (size) {
        memcpy(f->buffer + f->held, bytes, size);
        f->held += size;
    }
    return f->failed ? write_failed(err, f->given, f->failed) : HEED_OK;
}

/* 0 or an errno.  Some file systems cannot sync a directory and return EINVAL: ignored. */
static int sync_directory(const char *path)
{
    char directory[PATH_MAX];
    size_t n = directory_length(path);
    memcpy(directory, path, n);
    directory[n] = '\0';
    int fd = open(n ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int number = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    close(fd);
    return number;
}

heed_status heed__atomic_commit(heed__atomic_file *f, heed_error *err)
{
    flush(f);
    int number = f->failed;
    if (!number && fsync(f->fd) != 0)
        number = errno;
    if (close(f->fd) != 0 && !number)
        number = errno;
    f->fd = -1;
    if (!number && rename(f->temporary, f->path) != 0)
        number = errno;
    if (number)
        unlink(f->temporary);
    else
        number = sync_directory(f->path);
    heed_status status = number ? write_failed(err, f->given, number) : HEED_OK;
    heed_allocator a = f->allocator;
    heed__release(&a, f, 1, sizeof *f);
    return status;
}

void heed__atomic_abandon(heed__atomic_file *f)
{
    if (!f)
        return;
    close(f->fd);
    unlink(f->temporary);
    heed_allocator a = f->allocator;
    heed__release(&a, f, 1, sizeof *f);
}

heed_status heed__file_save(const char *path, const void *bytes, size_t size,
                            const heed_allocator *allocator, heed_error *err)
{
    heed_error own = {0}; /* the status is needed even if err is NULL or already set */
    heed__atomic_file *f = heed__atomic_open(path, allocator, &own);
    if (f && heed__atomic_write(f, bytes, size, &own))
        heed__atomic_abandon(f);
    else if (f)
        heed__atomic_commit(f, &own);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

heed_status heed_text_save(const char *path, const char *text, heed_error *err)
{
    if (!path)
        return heed__missing(err, "path");
    return heed__file_save(path, text, strlen(text), NULL, err);
}

heed_status heed__file_map(const char *path, const void **bytes, size_t *size, heed_error *err)
{
    struct stat st;
    int number = 0;
    void *map = NULL;
    if (!path)
        return heed__fail(err, HEED_ARGUMENT, "cannot read a file without a name");
    /* O_NONBLOCK: opening a pipe must not wait for its writer; regular files ignore it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0)
        number = errno;
    else if (!S_ISREG(st.st_mode))
        number = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    else if (st.st_size > 0 &&
             (map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        number = errno;
    if (fd >= 0)
        close(fd);
    if (number == ENOTDIR)
        return heed__file_map_inside(path, bytes, size, err);
    if (number)
        return heed__fail(err, HEED_IO, "cannot read '%s': %s", path,
                          number == EINVAL ? "not a regular file" : strerror(number));
    *bytes = map ? map : "";
    *size = (size_t)st.st_size;
    return HEED_OK;
}

void heed__file_unmap(const void *bytes, size_t size)
{
    if (bytes && size)
        munmap((void *)bytes, size);
}

void heed__file_forget(const void *bytes, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)bytes + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)bytes + size) / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

heed_status heed__file_checksum(const char *path, heed__checksum *sum, heed_error *err)
{
    const void *bytes = NULL;
    size_t size = 0;
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
    const void *bytes = NULL;
    size_t size = 0;
    heed_status status = heed__file_map(from, &bytes, &size, err);
    if (status)
        return status;
    status = heed__file_save(to, bytes, size, allocator, err);
    heed__file_unmap(bytes, size);
    return status;
}
