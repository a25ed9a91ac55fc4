/* stage.c: where a new model directory is prepared: beside its own place, as FOLDER.heed-PID.tmp,
 * until it is complete.  A process that is killed meanwhile leaves that; the next one that makes
 * the same FOLDER removes it, since nobody holds its lock any more. */
#include "base/error.h"
#include "train/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- paths ---- */

/* More than any path in a folder, or beside it, is longer than its name. */
#define ROOM 256

heed_status heed__folder_leaves_room(const char *folder, heed_error *err)
{
    return strlen(folder) <= PATH_MAX - ROOM
               ? HEED_OK
               : heed__fail(err, HEED_ARGUMENT,
                            "the path '%.100s...' has %zu bytes, expected at most %d", folder,
                            strlen(folder), PATH_MAX - ROOM);
}

void heed__trainer_path(const heed_trainer *t, heed__pathname path, const char *format, ...)
{
    va_list args;
    const size_t n = strlen(t->place);
    memcpy(path, t->place, n);
    path[n] = '/';
    va_start(args, format);
    vsnprintf(path + n + 1, PATH_MAX - n - 1, format, args);
    va_end(args);
}

static void stage_name(const char *folder, heed__pathname path)
{
    heed__pathname parent, name;
    heed__pathname_split(folder, parent, name, NULL);
    heed__pathname_format(path, NULL, "%s/%s.heed-%ld.tmp", parent, name, (long)getpid());
}

/* ---- the lock ---- */

/* The lock file holds the number of the process that has the lock: for messages, so that what
 * cannot be written or read does no harm. */
static void write_owner(int fd)
{
    if (ftruncate(fd, 0) == 0)
        dprintf(fd, "%ld\n", (long)getpid());
}

static heed_status held_by_another(const heed_trainer *t, heed_error *err)
{
    char text[32] = "";
    long process = 0;
    const ssize_t n = pread(t->lock, text, sizeof text - 1, 0);
    if (n > 0)
        process = strtol(text, NULL, 10);
    return process > 0 ? heed__fail(err, HEED_STATE, "'%.400s' is being trained by process %ld",
                                    t->folder, process)
                       : heed__fail(err, HEED_STATE, "'%.400s' is being trained by another process",
                                    t->folder);
}

/* One process trains a directory at a time; the lock goes when the process does. */
heed_status heed__trainer_lock(heed_trainer *t, heed_error *err)
{
    heed__pathname path;
    heed__trainer_path(t, path, "training/lock");
    t->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (t->lock < 0)
        return heed__fail(err, HEED_IO, "cannot write '%.400s': %s", path, strerror(errno));
    if (flock(t->lock, LOCK_EX | LOCK_NB) == 0) {
        write_owner(t->lock);
        return HEED_OK;
    }
    if (errno != EWOULDBLOCK)
        return heed__fail(err, HEED_IO, "cannot lock '%.400s': %s", path, strerror(errno));
    return held_by_another(t, err);
}

/* ---- what others left ---- */

struct leftover {
    const heed_trainer *t;
    const char *parent, *prefix, *suffix;
};

/* One without a lock was killed before it had one, and is empty, or is just being made. */
static void remove_if_dead(void *context, int64_t process)
{
    const struct leftover *l = context;
    heed__pathname path, training, lock;
    heed__pathname_format(path, NULL, "%s/%s%lld%s", l->parent, l->prefix, (long long)process,
                          l->suffix);
    heed__pathname_format(training, NULL, "%s/training", path);
    heed__pathname_format(lock, NULL, "%s/lock", training);
    int fd = open(lock, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        rmdir(training);
        rmdir(path);
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && !heed__folder_remove(path, NULL))
        heed__trainer_say(l->t, HEED_LOG_INFO, "removed '%.400s', which a killed training left",
                          path);
    close(fd);
}

/* A parent that cannot be read is no reason to fail: it may still be written. */
static void remove_leftovers(const heed_trainer *t)
{
    static const char *const suffixes[] = {".tmp", ".tmp.gone"};
    heed__pathname parent, name, prefix;
    heed__pathname_split(t->folder, parent, name, NULL);
    heed__pathname_format(prefix, NULL, "%s.heed-", name);
    for (int i = 0; i < 2; i++) {
        struct leftover l = {t, parent, prefix, suffixes[i]};
        heed__folder_numbered(parent, prefix, suffixes[i], remove_if_dead, &l, NULL);
    }
}

/* ---- making it ---- */

heed_status heed__trainer_stage(heed_trainer *t, heed_error *err)
{
    heed__pathname path;
    remove_leftovers(t);
    stage_name(t->folder, path);
    if (!(t->place = heed__trainer_keep_text(t, path, err)))
        return err->status;
    if (mkdir(path, 0777) != 0) {
        t->place = NULL;
        return heed__fail(err, HEED_IO, "cannot make the directory '%.400s': %s", t->folder,
                          strerror(errno));
    }
    heed__trainer_path(t, path, "training");
    heed_status status = heed__folder_make(path, err);
    if (!status)
        status = heed__trainer_lock(t, err);
    heed__trainer_path(t, path, "training/weights");
    return status ? status : heed__folder_make(path, err);
}

heed_status heed_trainer_discard(const char *folder, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder");
    heed__pathname path, aside;
    heed_status status = heed__folder_leaves_room(folder, err);
    if (status)
        return status;
    stage_name(folder, path);
    heed__pathname_format(aside, NULL, "%s.gone", path);
    /* Out of the way first: a thread that still prepares finds nothing to write into. */
    if (heed__folder_exists(path))
        status = heed__folder_rename(path, aside, err);
    return status ? status : heed__folder_remove(aside, err);
}
