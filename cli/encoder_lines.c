/* encoder_lines.c: lines through an encoder. */
#include "encoder_lines.h"
#include "cmd_models.h"

#include <stdio.h>
#include <string.h>

bool encoder_open(struct encoder_run *r, const char *model, heed_encoder_task task, int64_t threads)
{
    heed_error err = {0};
    *r = (struct encoder_run){.input = "standard input"};
    r->arena = heed_arena_new(NULL, &err);
    const char *folder = r->arena && model ? find_model(model, NULL, r->arena) : NULL;
    if (!model) {
        complain("missing option '--model': the directory of an encoder");
        return false;
    }
    if (!folder)
        return false;
    heed_machine m;
    heed_machine_describe(&m);
    r->encoder = heed_encoder_open(folder, threads ? (int)threads : m.threads, NULL, &err);
    if (!r->encoder)
        complain("%s", err.text);
    else if (heed_encoder_can(r->encoder, task, &err))
        complain("'%.255s': %s", folder, err.text);
    return !err.status;
}

void encoder_close(struct encoder_run *r)
{
    heed_encoder_free(r->encoder);
    heed_arena_free(r->arena);
}

static bool are_text(const struct encoder_run *r, const char *const *line, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        size_t bad;
        if (heed_utf8_valid(line[i], strlen(line[i]), &bad))
            continue;
        complain("%s line %lld: byte %zu is not UTF-8", r->input, (long long)(r->before + i + 1),
                 bad + 1);
        return false;
    }
    return true;
}

int encoder_lines(struct encoder_run *r, const char *file, int64_t most, encoder_some *some,
                  void *context)
{
    line_reader in;
    bool good = lines_open(&in, file ? file : "-");
    r->input = in.name;
    while (good && !in.ended) {
        const int64_t n = lines_take(&in, most, LINES_ONE);
        if (n < 0)
            good = false;
        if (n <= 0)
            continue;
        heed_arena_reset(r->arena);
        good = are_text(r, in.line, n) && some(context, r, in.line, n) && results_written();
        r->before += n;
    }
    lines_close(&in);
    return good || reader_left() ? EXIT_DONE : EXIT_FAILED;
}

int64_t encoder_read_all(const char *file, heed_arena *arena, const char *const **line)
{
    line_reader in;
    struct encoder_run r = {.before = 0};
    int64_t n = lines_open(&in, file) ? lines_take(&in, INT64_MAX, LINES_ALL) : -1;
    const char **copy = n >= 0 ? heed_arena_allocate(arena, (size_t)(n + 1) * sizeof *copy) : NULL;
    r.input = in.name;
    if (n >= 0 && !are_text(&r, in.line, n))
        n = -1;
    for (int64_t i = 0; copy && i < n; i++) {
        const size_t size = strlen(in.line[i]) + 1;
        char *text = heed_arena_allocate(arena, size);
        copy[i] = text ? memcpy(text, in.line[i], size) : NULL;
        if (!text)
            copy = NULL;
    }
    if (n >= 0 && !copy) {
        complain("out of memory for the lines of %s", in.name);
        n = -1;
    }
    lines_close(&in);
    *line = copy;
    return n;
}

const char *encoder_file(const invocation *in)
{
    return in->words.count ? in->words.items[0] : NULL;
}
