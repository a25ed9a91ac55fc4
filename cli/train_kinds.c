/* train_kinds.c: which kind of training a command line asks for. */
#include "train_kinds.h"
#include "cmd_models.h"

#include <heed/engine.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const train_kind *const kinds[] = {
#define KIND_ROW(name) &train_kind_##name,
    TRAIN_KIND_LIST(KIND_ROW)
#undef KIND_ROW
};
enum { KINDS = sizeof kinds / sizeof *kinds, MOST_WORDS = 32 };

static bool is_one_of(const char *word, const char *const *words)
{
    for (; words && *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

/* ---- from words ---- */

/* The value of an option, the last one given; NULL if it is not there. */
static const char *value_of(const char *name, int argc, const char *const *argv)
{
    const size_t n = strlen(name);
    const char *value = NULL;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0 || strncmp(argv[i] + 2, name, n) != 0)
            continue;
        if (argv[i][2 + n] == '=')
            value = argv[i] + 3 + n;
        else if (argv[i][2 + n] == '\0' && i + 1 < argc)
            value = argv[++i];
    }
    return value;
}

/* Of all kinds, or those of one architecture, each once. */
static int words_of_all(const char *arch, const char *words[MOST_WORDS + 1])
{
    int n = 0;
    for (int k = 0; k < KINDS; k++) {
        const bool asked = !arch || is_one_of(arch, kinds[k]->archs);
        const char *const *w = asked ? (arch ? kinds[k]->tasks : kinds[k]->archs) : NULL;
        for (words[n] = NULL; w && *w && n < MOST_WORDS; w++)
            if (!is_one_of(*w, words)) {
                words[n++] = *w;
                words[n] = NULL;
            }
    }
    return n;
}

static void complain_of(const char *name, const char *found, const char *const *words, int n)
{
    char expected[512] = "";
    size_t at = 0;
    for (int i = 0; i < n && at < sizeof expected; i++)
        at += (size_t)snprintf(expected + at, sizeof expected - at, "%s%s",
                               !i          ? ""
                               : i + 1 < n ? ", "
                                           : " or ",
                               words[i]);
    const char *near = found ? heed_option_nearest(found, words, n) : NULL;
    if (found)
        complain("option '--%s' is '%s', expected %s%s%s%s", name, found, expected,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    else
        complain("missing option '--%s': %s", name, expected);
    fputs("try 'heed train --help'\n", stderr);
}

/* The kind of an architecture and a task; explain: the words of --task are needed to tell. */
static const train_kind *find(const char *arch, const char *task, bool explain)
{
    const char *words[MOST_WORDS + 1];
    const train_kind *first = NULL;
    int fit = 0;
    for (int k = 0; k < KINDS; k++) {
        if (!is_one_of(arch, kinds[k]->archs))
            continue;
        first = first ? first : kinds[k];
        fit++;
        if (task && is_one_of(task, kinds[k]->tasks))
            return kinds[k];
    }
    if (!first) {
        complain_of("arch", arch, words, words_of_all(NULL, words));
        return NULL;
    }
    /* A kind without tasks says itself that it has no such option; a wrong word of one with tasks
     * is refused by its choices. */
    if (fit == 1 || !explain)
        return first;
    complain_of("task", task, words, words_of_all(arch, words));
    return NULL;
}

/* ---- from files ---- */

/* The text of a field of a JSON file, in the arena; NULL: there is none. */
static const char *stored_text(const char *path, const char *name, heed_arena *arena)
{
    json_t *root = json_load_file(path, 0, NULL);
    const char *text = json_string_value(json_object_get(root, name));
    const size_t n = text ? strlen(text) + 1 : 0;
    char *copy = text ? heed_arena_allocate(arena, n) : NULL;
    if (copy)
        memcpy(copy, text, n);
    json_decref(root);
    return copy;
}

/* The file with the options that a line begins from: a stored run's or --config's. */
static const char *options_file(int argc, const char *const *argv, heed_arena *arena)
{
    const char *folder = value_of("resume", argc, argv);
    const size_t room = folder ? strlen(folder) + sizeof "/training/options.json" : 1;
    char *path = heed_arena_allocate(arena, room);
    if (!folder || !path)
        return value_of("config", argc, argv);
    snprintf(path, room, "%s/training/options.json", folder);
    return path;
}

/* The only kind that has this preset, or NULL. */
static const train_kind *kind_of_preset(const char *name)
{
    const train_kind *found = NULL;
    int n = 0;
    for (int k = 0; k < KINDS; k++) {
        const heed_option_set *set = kinds[k]->options;
        for (const heed_option_bundle *b = set->bundles ? set->bundles() : NULL; b && b->name; b++)
            if (strcmp(b->name, name) == 0) {
                found = kinds[k];
                n++;
            }
    }
    return n == 1 ? found : NULL;
}

/* The architecture of the model to start from; NULL if that cannot be said: the kind that is taken
 * then says what is wrong with it. */
static const char *arch_of_model(const char *folder, heed_arena *arena)
{
    static const char *const names[] = {HEED_ARCH_WORDS};
    heed_model_config model;
    heed_text_config text;
    const char *found = find_model(folder, NULL, arena);
    if (!found || heed_model_read_config(found, arena, &model, &text, NULL))
        return NULL;
    return names[model.arch];
}

static const train_kind *find_by(int argc, const char *const *argv, heed_arena *arena)
{
    bool helps = false;
    for (int i = 0; i < argc; i++)
        helps |= is_one_of(argv[i], HEED_WORDS("-h", "--help", "--help-all", "--print-config"));
    const char *arch = value_of("arch", argc, argv), *task = value_of("task", argc, argv);
    const char *file = options_file(argc, argv, arena);
    if (!task && file)
        task = stored_text(file, "task", arena);
    if (!arch && file)
        arch = stored_text(file, "arch", arena);
    if (arch)
        return find(arch, task, !helps);
    const char *preset = value_of("preset", argc, argv), *from = value_of("from", argc, argv);
    const train_kind *kind = preset ? kind_of_preset(preset) : NULL;
    if (!kind && from && (arch = arch_of_model(from, arena)))
        kind = find(arch, task, !helps);
    else if (!kind)
        kind = kinds[0];
    return kind;
}

const train_kind *train_kind_find(int argc, const char *const *argv)
{
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const train_kind *kind = NULL;
    if (arena)
        kind = find_by(argc, argv, arena);
    else
        complain("out of memory");
    heed_arena_free(arena);
    return kind;
}
