/* cmd_retrieve.c: `heed retrieve`: the pictures that a text means, best first. */
#include "command.h"

#include <heed/see.h>
#include <stdio.h>
#include <stdlib.h>

struct settings {
    const char *model, *images;
    int64_t best, threads;
    bool json;
};
static const heed_option fields[] = {
    HEED_OPTION_TEXT(struct settings, model, "model", NULL, "DIR",
                     "the directory of a model of `heed train --arch retrieve`"),
    HEED_OPTION_TEXT(struct settings, images, "images", NULL, "DIR",
                     "the folder of the pictures to look among"),
    HEED_OPTION_INT(struct settings, best, "best", "10", 0, INT64_MAX, "N",
                    "how many to print; 0: all"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL, "one JSON object a line: file, score"),
    HEED_OPTION_INT(struct settings, threads, "threads", NULL, 1, 64, "N",
                    "threads to use; all processors if not given"),
};
static const char *const examples[] = {
    "heed retrieve --model m --images photos 'two dogs on a beach'",
    NULL,
};
const heed_option_set retrieve_options = {
    .command = "heed retrieve",
    .summary = "Find the pictures that a text means, best first",
    .arguments = "TEXT",
    .least = 1,
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

struct found {
    const char *file;
    double score;
    int64_t number;
};

/* The better first; of equal ones the first in the folder. */
static int by_score(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->number < y->number ? -1 : 1;
}

/* Those that can be read; the others are named, and *failed. */
static int64_t look(heed_retriever *r, const char *const *file, int64_t count, struct found *found,
                    bool *failed)
{
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        heed_error err = {0};
        heed_image image = {0};
        if (!heed_image_read(file[i], NULL, &image, &err) && !heed_retriever_add(r, &image, &err)) {
            found[n] = (struct found){file[i], 0, n};
            n++;
        } else {
            complain("%s", err.text);
            *failed = true;
        }
        heed_image_free(&image, NULL);
    }
    return n;
}

static void print(const struct settings *s, const struct found *f)
{
    if (!s->json) {
        printf("%s\t%.4f\n", f->file, f->score);
        return;
    }
    printf("{\"file\": ");
    print_json_text(f->file);
    printf(", \"score\": %.6f}\n", f->score);
}

static bool run(const struct settings *s, const char *text, heed_arena *arena, bool *failed,
                heed_error *err)
{
    const char *const *file;
    const heed_real *score;
    int64_t count;
    heed_machine m;
    heed_machine_describe(&m);
    heed_retriever *r =
        heed_retriever_open(s->model, s->threads ? (int)s->threads : m.threads, NULL, err);
    bool good = r && !heed_pictures_in(s->images, arena, &file, &count, err);
    struct found *found = good ? heed_arena_allocate(arena, (size_t)count * sizeof *found) : NULL;
    if (found) {
        count = look(r, file, count, found, failed);
        good = !heed_retriever_find(r, text, arena, &score, err);
        for (int64_t i = 0; good && i < count; i++)
            found[i].score = (double)score[i];
        if (good)
            qsort(found, (size_t)count, sizeof *found, by_score);
        for (int64_t i = 0; good && i < count && (!s->best || i < s->best); i++)
            print(s, &found[i]);
    }
    heed_retriever_free(r);
    return good && found;
}

int retrieve_run(int argc, const char *const *argv)
{
    struct settings s;
    invocation in;
    heed_error err = {0};
    bool failed = false;
    int code = EXIT_USAGE;
    if (!invocation_begin(&in, &retrieve_options, argc, argv, &s))
        code = in.exit_code;
    else if (!s.model || !s.images) {
        complain("missing option '--%s': %s", s.model ? "images" : "model",
                 s.model ? "the folder of the pictures to look among"
                         : "the directory of a model of 'heed train --arch retrieve'");
        fprintf(stderr, "try 'heed retrieve --help'\n");
    } else if (run(&s, in.words.items[0], in.arena, &failed, &err))
        code = failed ? EXIT_FAILED : EXIT_DONE;
    else {
        complain("%s", err.status ? err.text : "out of memory for the pictures");
        code = EXIT_FAILED;
    }
    invocation_end(&in);
    return code;
}
