/* rank_files.c: files of rank 0 on the other ranks, which may be on machines that do not have
 * them. */
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "dist/ranks.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

heed_status heed__ranks_copy(heed_ranks *r, const char *path, const char *copy, heed_error *err)
{
    const void *bytes = NULL;
    void *got = NULL;
    size_t size = 0;
    heed_error own = {0};
    const heed_allocator a = heed__allocator_or_default(NULL);
    if (heed__ranks_lead(r))
        heed__file_map(path, &bytes, &size, &own);
    uint64_t all = size;
    heed_status status = heed__ranks_agree(r, own.status, &own);
    if (!status)
        status = heed__ranks_broadcast(r, &all, sizeof all, &own);
    if (!status && !heed__ranks_lead(r) && !(got = heed__allocate(&a, all + 1, 1)))
        status = heed__fail(&own, HEED_MEMORY, "out of memory for a file of rank 0");
    if (!status)
        status = heed__ranks_broadcast(r, heed__ranks_lead(r) ? (void *)bytes : got, all, &own);
    if (!status && got)
        status = heed__file_save(copy, got, all, &a, &own);
    if (bytes)
        heed__file_unmap(bytes, size);
    heed__release(&a, got, all + 1, 1);
    return status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

const char *heed_ranks_file(heed_ranks *r, const char *path, heed_error *err)
{
    if (!path)
        return heed__missing(err, "path"), NULL;
    if (heed_ranks_size(r) == 1)
        return path;
    if (!heed__ranks_lead(r) && !(path = heed__ranks_private(r, "file", err)))
        return NULL;
    return heed__ranks_copy(r, path, path, err) ? NULL : path;
}

/* ---- a folder ---- */

static bool ends_with_one_of(const char *name, const char *const *ends)
{
    const size_t n = strlen(name);
    for (; *ends; ends++)
        if (n >= strlen(*ends) && strcmp(name + n - strlen(*ends), *ends) == 0)
            return true;
    return false;
}

/* The model's weights come by themselves; the rest is what a run leaves to look at. */
static bool is_given(const char *path, const char *name)
{
    static const char *const kept[] = {".jsonl", ".svg",   ".png",         ".html", ".tmp",
                                       "lock",   "latest", "options.json", NULL};
    static const char *const weights[] = {".safetensors", NULL};
    struct stat st;
    if (!strchr(name, '/') && ends_with_one_of(name, weights))
        return false;
    return !ends_with_one_of(name, kept) && !strstr(name, "tfevents") && lstat(path, &st) == 0 &&
           S_ISREG(st.st_mode);
}

/* The files of folder/inner: each name, then its file; then an empty name. */
static heed_status give_files(heed_ranks *r, const char *folder, const char *inner, heed_error *err)
{
    heed__pathname path, name = "";
    heed_status status = heed__pathname_format(path, err, "%s/%s", folder, inner);
    DIR *d = status ? NULL : opendir(path);
    for (struct dirent *e; d && !status && (e = readdir(d));) {
        if (heed__pathname_format(name, err, "%s%s", inner, e->d_name) ||
            heed__pathname_format(path, err, "%s/%s", folder, name))
            status = err->status;
        else if (is_given(path, name) &&
                 !(status = heed__ranks_broadcast(r, name, sizeof name, err)))
            status = heed__ranks_copy(r, path, path, err);
    }
    if (d)
        closedir(d);
    memset(name, 0, sizeof name);
    return status ? status : heed__ranks_broadcast(r, name, sizeof name, err);
}

static heed_status take_files(heed_ranks *r, const char *folder, heed_error *err)
{
    heed__pathname path, name;
    heed_status status;
    while (!(status = heed__ranks_broadcast(r, name, sizeof name, err)) && *name)
        if ((status = heed__pathname_format(path, err, "%s/%s", folder, name)) ||
            (status = heed__ranks_copy(r, path, path, err)))
            break;
    return status;
}

heed_status heed__ranks_give_folder(heed_ranks *r, const char *folder, const char *options,
                                    heed_error *err)
{
    if (heed_ranks_size(r) == 1)
        return HEED_OK;
    heed_status status = heed__ranks_text(r, &options, NULL, err);
    if (!status)
        status = give_files(r, folder, "", err);
    return status ? status : give_files(r, folder, "training/", err);
}

static heed_status take_folder(heed_ranks *r, const char *folder, heed_arena *arena,
                               heed_error *err)
{
    heed__pathname path;
    const char *options = NULL;
    heed_status status = heed__folder_make(folder, err);
    if (!status)
        status = heed__pathname_format(path, err, "%s/training", folder);
    if (!status)
        status = heed__folder_make(path, err);
    if (!status)
        status = heed__ranks_text(r, &options, arena, err);
    if (!status)
        status = heed__pathname_format(path, err, "%s/training/options.json", folder);
    if (!status && options)
        status = heed_text_save(path, options, err);
    if (!status)
        status = take_files(r, folder, err);
    return status ? status : take_files(r, folder, err);
}

const char *heed_ranks_folder(heed_ranks *r, heed_error *err)
{
    heed_error own = {0};
    if (heed__ranks_lead(r))
        return NULL;
    heed_arena *arena = heed_arena_new(NULL, &own);
    const char *folder = arena ? heed__ranks_private(r, "model", &own) : NULL;
    heed_status status = folder ? take_folder(r, folder, arena, &own) : own.status;
    heed_arena_free(arena);
    if (!status)
        return folder;
    heed__fail(err, status, "%s", own.text);
    return NULL;
}
