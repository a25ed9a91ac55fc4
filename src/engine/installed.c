/* installed.c: models that are installed: directories under share/heed/models of the place where
 * the library or the program is, or in models/ of the tree they were built in; and in HEED_MODELS.
 * A directory's name says the languages: en-de. */
#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/string.h"
#include <heed/engine.h>

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From the directory of the library or the program; the third is for /usr/lib/MACHINE. */
static const char *const places[] = {"../share/heed/models", "../../models",
                                     "../../share/heed/models"};

struct list {
    heed_arena *arena;
    heed_installed_model *item;
    int64_t count, capacity;
    heed_error *err;
};

static bool is_model(const char *folder)
{
    heed__pathname config;
    return !heed__pathname_in(config, folder, "config.json", NULL) && access(config, R_OK) == 0;
}

static char *copy_of(const char *text, heed_arena *arena)
{
    const size_t size = strlen(text) + 1;
    char *copy = heed_arena_allocate(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

static heed_status add(struct list *l, const char *folder)
{
    if (l->count == l->capacity) {
        const int64_t more = l->capacity ? 2 * l->capacity : 16;
        heed_installed_model *item = heed_arena_allocate(l->arena, (size_t)more * sizeof *item);
        if (item && l->count)
            memcpy(item, l->item, (size_t)l->count * sizeof *item);
        l->item = item;
        l->capacity = more;
    }
    char *own = l->item ? copy_of(folder, l->arena) : NULL;
    if (!own)
        return heed__fail(l->err, HEED_MEMORY, "out of memory for the names of models");
    l->item[l->count++] = (heed_installed_model){strrchr(own, '/') + 1, own};
    return HEED_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const heed_installed_model *)a)->name, ((const heed_installed_model *)b)->name);
}

/* One that has been looked into, as by the library and by the program, has its models in the list
 * already: paths are real. */
static bool is_known(const struct list *l, const char *folder)
{
    for (int64_t i = 0; i < l->count; i++)
        if (strcmp(l->item[i].folder, folder) == 0)
            return true;
    return false;
}

/* The models in a directory, which need not be there. */
static heed_status look_into(struct list *l, const char *folder)
{
    heed__pathname real, path;
    DIR *d = realpath(folder, real) ? opendir(real) : NULL;
    const int64_t before = l->count;
    heed_status status = HEED_OK;
    for (struct dirent *e; d && !status && (e = readdir(d));)
        if (e->d_name[0] != '.' && !heed__pathname_in(path, real, e->d_name, NULL) &&
            is_model(path) && !is_known(l, path))
            status = add(l, path);
    if (d)
        closedir(d);
    if (l->count > before)
        qsort(l->item + before, (size_t)(l->count - before), sizeof *l->item, by_name);
    return status;
}

/* The places around a file that is installed. */
static heed_status look_around(struct list *l, const char *file)
{
    heed__pathname real, folder;
    char *slash = realpath(file, real) ? strrchr(real, '/') : NULL;
    heed_status status = HEED_OK;
    if (!slash)
        return HEED_OK;
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places && !status; i++)
        if (!heed__pathname_format(folder, NULL, "%s/%s", real, places[i]))
            status = look_into(l, folder);
    return status;
}

heed_status heed_models_installed(heed_arena *arena, const heed_installed_model **models,
                                  int64_t *count, heed_error *err)
{
    Dl_info library;
    heed_error local = {0};
    if (!arena || !models || !count)
        return heed__missing(err, "arena, models or count");
    struct list l = {.arena = arena, .err = &local};
    const char *own = getenv("HEED_MODELS");
    if (own && *own)
        look_into(&l, own);
    /* Of a program with the library in it, the loader may know no more than how it was called. */
    if (!local.status && dladdr((const void *)places, &library) && strchr(library.dli_fname, '/'))
        look_around(&l, library.dli_fname);
    if (!local.status)
        look_around(&l, "/proc/self/exe");
    *models = l.item;
    *count = local.status ? 0 : l.count;
    return local.status ? heed__fail(err, local.status, "%s", local.text) : HEED_OK;
}

const char *heed_model_find(const char *name, heed_arena *arena, heed_error *err)
{
    const heed_installed_model *models;
    int64_t count;
    if (!name)
        return heed__missing(err, "name"), NULL;
    /* What looks like a path is one, there or not: its own message says what is wrong with it. */
    if (strchr(name, '/') || is_model(name))
        return name;
    if (heed_models_installed(arena, &models, &count, err))
        return NULL;
    for (int64_t i = 0; i < count; i++)
        if (strcmp(models[i].name, name) == 0)
            return models[i].folder;
    return name;
}
