/* classify_pictures.c: `heed classify` of a model that sees: a label for each picture. */
#include "cmd_classify.h"

#include <heed/vit.h>
#include <stdio.h>

#define AT_ONCE 32

struct pictures {
    const struct classify_settings *s;
    heed_vit *model;
    struct classified names;
    heed_arena *arena; /* of a batch */
    bool failed;
};

/* A picture that cannot be read leaves an empty line: the others keep their places. */
static void say(struct pictures *y, const char *const *file, const heed_error *read, int64_t n,
                const heed_real *p)
{
    for (int64_t i = 0; i < n; i++) {
        if (read[i].status) {
            complain("%s", read[i].text);
            if (!y->s->json)
                putchar('\n');
            y->failed = true;
            continue;
        }
        y->names.file = file[i];
        classify_print(y->s, &y->names, p);
        p += y->names.labels;
    }
}

static void classify_some(struct pictures *y, const char *const *file, int64_t n)
{
    heed_image image[AT_ONCE] = {0};
    heed_error read[AT_ONCE] = {0}, err = {0};
    const heed_real *p = NULL;
    int64_t good = 0;
    heed_arena_reset(y->arena);
    for (int64_t i = 0; i < n; i++)
        good += !heed_image_read(file[i], NULL, &image[good], &read[i]);
    if (good && heed_vit_classify(y->model, image, good, y->arena, &p, &err)) {
        complain("%s", err.text);
        y->failed = true;
    } else
        say(y, file, read, n, p);
    for (int64_t i = 0; i < good; i++)
        heed_image_free(&image[i], NULL);
}

static void classify_path(struct pictures *y, const char *path, heed_arena *arena)
{
    heed_error err = {0};
    const char *const *file;
    int64_t count;
    if (heed_pictures_in(path, arena, &file, &count, &err)) {
        complain("%s", err.text);
        y->failed = true;
        return;
    }
    for (int64_t at = 0; at < count && results_written(); at += AT_ONCE)
        classify_some(y, file + at, count - at < AT_ONCE ? count - at : AT_ONCE);
}

int classify_pictures(const struct classify_settings *s, const heed_option_list *paths)
{
    struct pictures y = {.s = s};
    heed_error err = {0};
    heed_machine m;
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_machine_describe(&m);
    if (arena && (y.arena = heed_arena_new(NULL, &err)))
        y.model = heed_vit_open(s->model, s->threads ? (int)s->threads : m.threads, NULL, &err);
    if (!y.model) {
        complain("%s", err.text);
        y.failed = true;
    } else {
        y.names.label = heed_vit_labels(y.model, &y.names.labels);
        for (int i = 0; i < paths->count; i++)
            classify_path(&y, paths->items[i], arena);
    }
    heed_vit_free(y.model);
    heed_arena_free(y.arena);
    heed_arena_free(arena);
    return y.failed ? EXIT_FAILED : EXIT_DONE;
}
