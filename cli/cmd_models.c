/* cmd_models.c: models are installed under share/heed/models of the place where the program is,
 * or lie in models/ of the tree it was built in. A directory's name says the languages: en-de. */
#include "cmd_models.h"
#include "command.h"

#include <dirent.h>
#include <heed/translate.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_MODELS = 256 };

/* From the directory of the program. */
static const char *const places[] = {"../share/heed/models", "../../models", NULL};

typedef struct model_list {
    char *path[MOST_MODELS];
    int count;
} model_list;

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_model(const char *path)
{
    char config[PATH_MAX];
    int n = snprintf(config, sizeof config, "%s/config.json", path);
    return n > 0 && (size_t)n < sizeof config && access(config, R_OK) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(name_of(*(char *const *)a), name_of(*(char *const *)b));
}

/* The models in a directory, which need not be there. */
static void look_into(const char *folder, model_list *l)
{
    DIR *d = opendir(folder);
    const int before = l->count;
    for (struct dirent *e; d && (e = readdir(d)) && l->count < MOST_MODELS;) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof path || !is_model(path))
            continue;
        l->path[l->count] = strdup(path);
        l->count += l->path[l->count] != NULL;
    }
    if (d)
        closedir(d);
    qsort(l->path + before, (size_t)(l->count - before), sizeof *l->path, by_name);
}

static void find_all(model_list *l)
{
    char program[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    *l = (model_list){.count = 0};
    program[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return;
    *slash = '\0';
    for (int i = 0; places[i]; i++) {
        int length = snprintf(folder, sizeof folder, "%s/%s", program, places[i]);
        if (length > 0 && (size_t)length < sizeof folder && realpath(folder, real))
            look_into(real, l);
    }
}

static void release(model_list *l)
{
    for (int i = 0; i < l->count; i++)
        free(l->path[i]);
    l->count = 0;
}

static bool fits(const char *path, const char *asked, const char *to)
{
    const char *name = name_of(path), *dash = strrchr(name, '-');
    if (asked)
        return strcmp(name, asked) == 0;
    return !to || (dash && strcmp(dash + 1, to) == 0);
}

/* The first that fits, in the arena. */
static const char *choose(const char *asked, const char *to, heed_arena *arena)
{
    model_list l;
    char *found = NULL;
    find_all(&l);
    for (int i = 0; i < l.count && !found; i++)
        if (fits(l.path[i], asked, to)) {
            found = heed_arena_allocate(arena, strlen(l.path[i]) + 1);
            if (found)
                strcpy(found, l.path[i]);
        }
    release(&l);
    return found;
}

const char *find_model(const char *asked, const char *to, heed_arena *arena)
{
    const char *set = getenv("HEED_MODEL");
    if (!asked && !to && set && *set)
        asked = set;
    /* What looks like a path is one, there or not: its own message says what is wrong with it. */
    if (asked && (strchr(asked, '/') || is_model(asked)))
        return asked;
    const char *found = choose(asked, to, arena);
    if (found || asked)
        return found ? found : asked;
    if (to)
        complain("no model that translates into '%s' is installed; see 'heed list models'", to);
    else
        complain("option '--model' is missing, expected the directory of a model: none is "
                 "installed, and HEED_MODEL names none");
    return NULL;
}

void list_models(void)
{
    model_list l;
    find_all(&l);
    for (int i = 0; i < l.count; i++) {
        heed_error err = {0};
        heed_arena *arena = heed_arena_new(NULL, &err);
        heed_model_config config;
        heed_text_config text;
        char summary[HEED_MODEL_SUMMARY];
        heed_model *m = NULL;
        if (arena && !heed_model_read_config(l.path[i], arena, &config, &text, &err))
            m = heed_model_outline(&config, NULL, &err);
        printf("%s  %s  %s\n", name_of(l.path[i]), l.path[i],
               m ? heed_model_summary(m, summary) : err.text);
        heed_model_free(m);
        heed_arena_free(arena);
    }
    if (l.count == 0)
        complain("no model is installed: 'make install' puts them under share/heed/models beside "
                 "the program's bin");
    release(&l);
}
