/* file_zip.c: files inside of zip archives: a path may go on behind an archive as it does behind a
 * folder, "package.argosmodel/en_de/metadata.json".  What is mapped is a copy in memory of its own,
 * which is unmapped like a file. */
#include "base/error.h"
#include "base/file.h"
#include "base/zip.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct archive {
    heed__pathname path;
    const char *inside; /* the rest of what was asked for */
    const void *bytes;
    size_t size;
    heed_arena *arena;
    heed__zip zip;
};

/* The first file on the way of a path, and what of it follows; false: there is none. */
static bool split(struct archive *a, const char *path)
{
    struct stat st;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        const size_t n = (size_t)(slash - path);
        if (n == 0 || n >= sizeof a->path)
            continue;
        memcpy(a->path, path, n);
        a->path[n] = '\0';
        a->inside = slash + 1;
        if (stat(a->path, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

/* To be closed, also after an error. */
static heed_status open_archive(struct archive *a, heed_error *err)
{
    heed_status status = heed__file_map(a->path, &a->bytes, &a->size, err);
    if (status)
        return status;
    a->arena = heed_arena_new(NULL, err);
    return a->arena ? heed__zip_open(&a->zip, a->path, a->bytes, a->size, a->arena, err)
                    : HEED_MEMORY;
}

static void close_archive(struct archive *a)
{
    heed__file_unmap(a->bytes, a->size);
    heed_arena_free(a->arena);
}

static heed_status copy_out(const struct archive *a, const void **bytes, size_t *size,
                            heed_error *err)
{
    const heed__zip_entry *e = heed__zip_find(&a->zip, a->inside);
    if (!e)
        return heed__fail(err, HEED_IO, "cannot read '%s': it has no '%s' inside", a->path,
                          a->inside);
    *bytes = "";
    *size = e->size;
    if (e->size == 0)
        return HEED_OK;
    void *to = mmap(NULL, e->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED)
        return heed__fail(err, HEED_MEMORY, "out of memory for '%s' in '%s'", a->inside, a->path);
    heed_status status = heed__zip_copy(&a->zip, e, to, err);
    if (status)
        munmap(to, e->size);
    *bytes = to;
    return status;
}

heed_status heed__file_map_inside(const char *path, const void **bytes, size_t *size,
                                  heed_error *err)
{
    struct archive a = {0};
    if (!split(&a, path))
        return heed__fail(err, HEED_IO, "cannot read '%s': there is no such file", path);
    heed_status status = open_archive(&a, err);
    if (!status)
        status = copy_out(&a, bytes, size, err);
    close_archive(&a);
    return status;
}

bool heed__file_is_there(const char *path)
{
    struct stat st;
    struct archive a = {0};
    if (stat(path, &st) == 0)
        return true;
    const bool is =
        split(&a, path) && !open_archive(&a, NULL) && heed__zip_find(&a.zip, a.inside) != NULL;
    close_archive(&a);
    return is;
}

/* Whether a name is `wanted`, or wanted in a folder. */
static bool is_called(const char *name, const char *wanted)
{
    const size_t n = strlen(name), k = strlen(wanted);
    return n >= k && strcmp(name + n - k, wanted) == 0 && (n == k || name[n - k - 1] == '/');
}

heed_status heed__archive_find(const char *path, const char *wanted, heed__pathname folder,
                               heed_error *err)
{
    struct archive a = {0};
    const char *best = NULL;
    heed_status status = heed__pathname_format(a.path, err, "%s", path);
    if (!status)
        status = heed__pathname_format(folder, err, "%s", path);
    if (!status)
        status = open_archive(&a, err);
    for (size_t i = 0; !status && i < a.zip.count; i++) {
        const char *name = a.zip.entry[i].name;
        if (is_called(name, wanted) && (!best || strlen(name) < strlen(best)))
            best = name;
    }
    const size_t n = best ? strlen(best) - strlen(wanted) : 0;
    if (n)
        status = heed__pathname_format(folder, err, "%s/%.*s", path, (int)n - 1, best);
    close_archive(&a);
    return status;
}
