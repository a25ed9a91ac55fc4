/* picture_folder.c: a set out of a folder that has a folder for each class.  Files are decoded
 * when they are asked for; opening reads the first one alone. */
#include "image/picture_set.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* Names of a folder's entries, sorted, in an arena. */
typedef struct listing {
    const char **name;
    int64_t count;
    int64_t capacity;
} listing;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static char *copy_text(heed_arena *arena, const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copy = heed_arena_allocate(arena, n);
    return copy ? memcpy(copy, text, n) : NULL;
}

static bool add_name(listing *l, const char *name, heed_arena *arena)
{
    if (l->count == l->capacity) {
        const int64_t more = l->capacity ? 2 * l->capacity : 64;
        const char **names = heed_arena_allocate(arena, (size_t)more * sizeof *names);
        if (names && l->count)
            memcpy(names, l->name, (size_t)l->count * sizeof *names);
        l->name = names;
        l->capacity = more;
    }
    return l->name && (l->name[l->count++] = copy_text(arena, name));
}

/* Folders, or else files whose names end as pictures' do. */
static heed_status list(const char *path, bool folders, heed_arena *arena, listing *l,
                        heed_error *err)
{
    *l = (listing){0};
    DIR *d = opendir(path);
    if (!d)
        return heed__fail(err, HEED_IO, "cannot list %s: %s", path, strerror(errno));
    heed_status status = HEED_OK;
    for (struct dirent *e; !status && (e = readdir(d));) {
        heed__pathname full;
        if (e->d_name[0] == '.' || (!folders && !heed__picture_name(e->d_name)))
            continue;
        if ((status = heed__pathname_in(full, path, e->d_name, err)) || is_folder(full) != folders)
            continue;
        if (!add_name(l, e->d_name, arena))
            status = heed__fail(err, HEED_MEMORY, "out of memory for the names in %s", path);
    }
    closedir(d);
    if (!status && l->count)
        qsort(l->name, (size_t)l->count, sizeof *l->name, by_name);
    return status;
}

heed_status heed_pictures_in(const char *path, heed_arena *arena, const char *const **files,
                             int64_t *count, heed_error *err)
{
    listing l = {0};
    if (!path || !files || !count)
        return heed__missing(err, "path");
    *files = NULL;
    *count = 0;
    heed_status status = HEED_OK;
    if (!is_folder(path)) {
        if (!add_name(&l, path, arena))
            return heed__fail(err, HEED_MEMORY, "out of memory for a name");
    } else if ((status = list(path, false, arena, &l, err)))
        return status;
    else if (!l.count)
        return heed__fail(err, HEED_FORMAT, "%s has no pictures (PNG, JPEG or PPM)", path);
    else
        for (int64_t i = 0; i < l.count; i++) {
            heed__pathname full;
            if (heed__pathname_in(full, path, l.name[i], err))
                return HEED_ARGUMENT;
            if (!(l.name[i] = copy_text(arena, full)))
                return heed__fail(err, HEED_MEMORY, "out of memory for the names in %s", path);
        }
    *files = l.name;
    *count = l.count;
    return HEED_OK;
}

/* Names with their ends, so that "ab" "c" and "a" "bc" differ. */
static void sum(heed_pictures *p, const char *text)
{
    p->report.checksum =
        (uint32_t)crc32_z(p->report.checksum, (const Bytef *)text, strlen(text) + 1);
}

static heed_status add_class(heed_pictures *p, const char *folder, int64_t label,
                             const listing *files, heed_error *err)
{
    heed_pictures_report *r = &p->report;
    sum(p, p->class_name[label]);
    for (int64_t i = 0; i < files->count; i++, r->count++) {
        heed__pathname full;
        heed_status status = heed__pathname_in(full, folder, files->name[i], err);
        if (status)
            return status;
        p->path[r->count] = copy_text(p->arena, full);
        p->name[r->count] = files->name[i];
        p->label[r->count] = (int32_t)label;
        if (!p->path[r->count])
            return heed__fail(err, HEED_MEMORY, "out of memory for the names in %s", folder);
        sum(p, files->name[i]);
    }
    return HEED_OK;
}

static heed_status allocate(heed_pictures *p, int64_t count, const char *folder, heed_error *err)
{
    p->path = heed_arena_allocate(p->arena, (size_t)count * sizeof *p->path);
    p->name = heed_arena_allocate(p->arena, (size_t)count * sizeof *p->name);
    p->label = heed_arena_allocate(p->arena, (size_t)count * sizeof *p->label);
    return p->path && p->name && p->label
               ? HEED_OK
               : heed__fail(err, HEED_MEMORY, "out of memory for the %lld pictures in %s",
                            (long long)count, folder);
}

static heed_status read_classes(heed_pictures *p, const char *folder, heed_error *err)
{
    listing classes;
    heed_status status = list(folder, true, p->arena, &classes, err);
    if (status)
        return status;
    if (classes.count == 0)
        return heed__fail(err, HEED_FORMAT, "%s has no folders, expected one for each class",
                          folder);
    listing *files = heed_arena_allocate(p->arena, (size_t)classes.count * sizeof *files);
    if (!files)
        return heed__fail(err, HEED_MEMORY, "out of memory for the classes in %s", folder);
    int64_t count = 0;
    for (int64_t i = 0; i < classes.count; i++) {
        heed__pathname path;
        status = heed__pathname_in(path, folder, classes.name[i], err);
        if (!status)
            status = list(path, false, p->arena, &files[i], err);
        if (status)
            return status;
        if (files[i].count < 2)
            return heed__fail(err, HEED_FORMAT,
                              "%s has %s, expected at least 2 (PNG, JPEG or PPM): one to train "
                              "on, one to validate on",
                              path, files[i].count ? "1 picture" : "no pictures");
        count += files[i].count;
    }
    p->class_name = classes.name;
    p->report.classes = classes.count;
    status = allocate(p, count, folder, err);
    for (int64_t i = 0; !status && i < classes.count; i++) {
        heed__pathname path;
        status = heed__pathname_in(path, folder, classes.name[i], err);
        if (!status)
            status = add_class(p, path, i, &files[i], err);
    }
    return status;
}

heed_pictures *heed_pictures_folder(const char *folder, const heed_pictures_options *options,
                                    const heed_allocator *allocator, heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    heed_pictures *p = heed__pictures_new(options, allocator, err);
    if (!p)
        return NULL;
    heed_image first = {0};
    heed_status status = read_classes(p, folder, err);
    if (!status)
        status = heed_image_read(p->path[0], &p->allocator, &first, err);
    if (!status)
        heed__pictures_like(p, &first);
    heed_image_free(&first, &p->allocator);
    if (status) {
        heed_pictures_free(p);
        return NULL;
    }
    return p;
}
