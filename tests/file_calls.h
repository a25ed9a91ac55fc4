/* file_calls.h: the system calls that write files, watched, and made to fail one by one.  A
 * function of the C library that a program defines itself is the program's, for every library in
 * it: no preloading is needed.  Only calls about files below `watched.under` count.
 *
 *   watched.fail_at = n   the n-th call fails with watched.error; where that is 0, the process is
 *                         killed instead, as a power cut or an impatient user would
 *   watched.unsynced      a rename that made bytes visible which might not be on the disk
 *   watched.streams       but not of files with such a name, which grow line by line
 *
 * Include cmocka.h first, and this file in one source file of a program. */
#ifndef HEED_TESTS_FILE_CALLS_H
#define HEED_TESTS_FILE_CALLS_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_FILES = 4096 };
static struct {
    const char *under; /* NULL: nothing is watched */
    long calls, fail_at;
    int error;
    const char *const *streams; /* ended by NULL */
    char failed[512];           /* the call that was made to fail */
    char unsynced[512];         /* "": every rename was sound */
    long renames;
    struct changed { /* files and folders with changes that no sync has followed */
        ino_t number;
        bool folder;
        char path[256];
    } changed[MOST_FILES];
    int changes;
} watched;

static bool is_watched(const char *path)
{
    return watched.under && path && strncmp(path, watched.under, strlen(watched.under)) == 0;
}

static bool path_of(int fd, char path[256])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, 255);
    path[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Whether this call is the one that fails. */
static bool fails(const char *name, const char *path)
{
    if (++watched.calls != watched.fail_at)
        return false;
    snprintf(watched.failed, sizeof watched.failed, "%s %s", name, path);
    if (!watched.error)
        kill(getpid(), SIGKILL);
    errno = watched.error;
    return true;
}

static bool fd_fails(const char *name, int fd)
{
    char path[256];
    return watched.under && path_of(fd, path) && is_watched(path) && fails(name, path);
}

/* ---- what is not on the disk yet ---- */

static int find_change(ino_t number)
{
    int i = 0;
    while (i < watched.changes && watched.changed[i].number != number)
        i++;
    return i;
}

static void note_change(const struct stat *st, const char *path)
{
    for (int i = 0; watched.streams && watched.streams[i]; i++)
        if (strstr(path, watched.streams[i]))
            return;
    const int i = find_change(st->st_ino);
    if (i == MOST_FILES)
        return;
    watched.changes += i == watched.changes;
    watched.changed[i] = (struct changed){.number = st->st_ino, .folder = S_ISDIR(st->st_mode)};
    snprintf(watched.changed[i].path, sizeof watched.changed[i].path, "%s", path);
}

static void note_sync(ino_t number)
{
    const int i = find_change(number);
    if (i < watched.changes)
        watched.changed[i] = watched.changed[--watched.changes];
}

/* An entry of its folder has come, gone, or changed. */
static void note_entry(const char *path)
{
    char parent[256];
    struct stat st;
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash)
        *slash = '\0';
    if (slash && stat(parent, &st) == 0)
        note_change(&st, parent);
}

/* Before a rename: what it moves must be on the disk, in a folder all that is in it. */
static void check_rename(const char *from, const char *to)
{
    struct stat st;
    watched.renames++;
    if (lstat(from, &st) != 0)
        return;
    const size_t n = strlen(from);
    for (int i = 0; i < watched.changes && !*watched.unsynced; i++) {
        const struct changed *c = &watched.changed[i];
        const bool inside = S_ISDIR(st.st_mode) && strncmp(c->path, from, n) == 0 &&
                            (c->path[n] == '/' || c->path[n] == '\0');
        if (c->number == st.st_ino || inside)
            snprintf(watched.unsynced, sizeof watched.unsynced, "%.150s became %.150s", c->path,
                     to);
    }
}

/* ---- the calls ---- */

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    const bool here = is_watched(path);
    if (here && fails("open", path))
        return -1;
    const bool new = here && (flags & O_CREAT) && access(path, F_OK) != 0;
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (new &&fd >= 0)
        note_entry(path);
    return fd;
}

int close(int fd)
{
    /* What was only read has nothing to lose. */
    const bool bad = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY && fd_fails("close", fd);
    const int result = (int)syscall(SYS_close, fd);
    if (bad)
        errno = watched.error;
    return bad ? -1 : result;
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    struct stat st;
    char path[256];
    if (fd_fails("write", fd))
        return -1;
    if (watched.under && path_of(fd, path) && is_watched(path) && fstat(fd, &st) == 0)
        note_change(&st, path);
    return (ssize_t)syscall(SYS_write, fd, bytes, size);
}

int fsync(int fd)
{
    struct stat st;
    if (fd_fails("fsync", fd))
        return -1;
    if (watched.under && fstat(fd, &st) == 0)
        note_sync(st.st_ino);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return fsync(fd);
}

int ftruncate(int fd, off_t size)
{
    return fd_fails("ftruncate", fd) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int flock(int fd, int how)
{
    return fd_fails("flock", fd) ? -1 : (int)syscall(SYS_flock, fd, how);
}

int rename(const char *from, const char *to)
{
    const bool here = is_watched(to);
    if (here && fails("rename", to))
        return -1;
    if (here)
        check_rename(from, to);
    const int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (here && result == 0) {
        note_entry(from);
        note_entry(to);
    }
    return result;
}

int mkdir(const char *path, mode_t mode)
{
    const bool here = is_watched(path);
    if (here && fails("mkdir", path))
        return -1;
    const int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (here && result == 0)
        note_entry(path);
    return result;
}

int symlink(const char *target, const char *path)
{
    if (is_watched(path) && fails("symlink", path))
        return -1;
    return (int)syscall(SYS_symlinkat, target, AT_FDCWD, path);
}

/* What is gone needs no sync. */
static int remove_entry(const char *name, const char *path, int flags)
{
    struct stat st;
    const bool here = is_watched(path);
    if (here && fails(name, path))
        return -1;
    const bool known = here && lstat(path, &st) == 0;
    const int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, flags);
    if (known && result == 0)
        note_sync(st.st_ino);
    return result;
}

int unlink(const char *path)
{
    return remove_entry("unlink", path, 0);
}

int rmdir(const char *path)
{
    return remove_entry("rmdir", path, AT_REMOVEDIR);
}

DIR *opendir(const char *path)
{
    if (is_watched(path) && fails("opendir", path))
        return NULL;
    DIR *(*next)(const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "opendir");
    return next(path);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && fd_fails("mmap", fd))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

#endif
