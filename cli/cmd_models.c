/* cmd_models.c: which of the installed models is meant, and the list of them. */
#include "cmd_models.h"
#include "command.h"

#include <heed/translate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first that translates into this language, or the first of all: a name ends in it. */
static const char *choose(const heed_installed_model *m, int64_t count, const char *to)
{
    for (int64_t i = 0; i < count; i++) {
        const char *dash = strrchr(m[i].name, '-');
        if (!to || (dash && strcmp(dash + 1, to) == 0))
            return m[i].folder;
    }
    return NULL;
}

const char *find_model(const char *asked, const char *to, heed_arena *arena)
{
    const char *set = getenv("HEED_MODEL");
    if (!asked && !to && set && *set)
        asked = set;
    heed_error err = {0};
    const heed_installed_model *models;
    int64_t count;
    const char *found = NULL;
    if (asked)
        found = heed_model_find(asked, arena, &err);
    else if (!heed_models_installed(arena, &models, &count, &err))
        found = choose(models, count, to);
    if (found || asked)
        return found ? found : asked;
    if (err.status)
        complain("%s", err.text);
    else if (to)
        complain("no model that translates into '%s' is installed; see 'heed list models'", to);
    else
        complain("option '--model' is missing, expected the directory of a model: none is "
                 "installed, and HEED_MODEL names none");
    return NULL;
}

void list_models(void)
{
    heed_error err = {0};
    heed_arena *list = heed_arena_new(NULL, &err);
    const heed_installed_model *models = NULL;
    int64_t count = 0;
    if (!list || heed_models_installed(list, &models, &count, &err))
        complain("%s", err.text);
    for (int64_t i = 0; i < count; i++) {
        heed_error wrong = {0};
        heed_arena *arena = heed_arena_new(NULL, &wrong);
        heed_model_config config;
        heed_text_config text;
        char summary[HEED_MODEL_SUMMARY];
        heed_model *m = NULL;
        if (arena && !heed_model_read_config(models[i].folder, arena, &config, &text, &wrong))
            m = heed_model_outline(&config, NULL, &wrong);
        printf("%s  %s  %s\n", models[i].name, models[i].folder,
               m ? heed_model_summary(m, summary) : wrong.text);
        heed_model_free(m);
        heed_arena_free(arena);
    }
    if (count == 0 && !err.status)
        complain("no model is installed: 'make install' puts them under share/heed/models beside "
                 "the program's bin");
    heed_arena_free(list);
}
