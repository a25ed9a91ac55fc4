/* labels.c: labels.txt of a model directory: the answers of a classifier or tagger by number. */
#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/string.h"
#include "encoder/encoder.h"

#include <string.h>

heed_status heed__labels_write(const char *folder, const char *const *labels, int64_t count,
                               heed_error *err)
{
    heed__pathname path;
    heed__string text;
    heed_status status = heed__pathname_in(path, folder, HEED__LABELS_FILE, err);
    if (status)
        return status;
    heed__string_init(&text, NULL);
    for (int64_t i = 0; i < count; i++)
        heed__string_format(&text, "%s\n", labels[i]);
    status = heed__string_status(&text, err);
    if (!status)
        status = heed_text_save(path, heed__string_text(&text), err);
    heed__string_deinit(&text);
    return status;
}

static heed_status add(const char ***list, int64_t *count, int64_t *capacity, const char *text,
                       size_t length, heed_arena *arena, heed_error *err)
{
    char *copy = heed_arena_allocate(arena, length + 1);
    const char **grown = *list;
    if (*count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 64;
        grown = heed_arena_allocate(arena, (size_t)*capacity * sizeof *grown);
        if (grown && *count)
            memcpy(grown, *list, (size_t)*count * sizeof *grown);
    }
    if (!copy || !grown)
        return heed__fail(err, HEED_MEMORY, "out of memory for labels");
    memcpy(copy, text, length);
    copy[length] = '\0';
    grown[(*count)++] = copy;
    *list = grown;
    return HEED_OK;
}

heed_status heed__labels_read(const char *folder, heed_arena *arena, const char *const **labels,
                              int64_t *count, heed_error *err)
{
    heed__pathname path;
    const char **list = NULL, *line = "";
    int64_t capacity = 0;
    size_t length;
    *labels = NULL;
    *count = 0;
    heed_status status = heed__pathname_in(path, folder, HEED__LABELS_FILE, err);
    if (status || !heed__folder_exists(path))
        return status;
    const char *const paths[] = {path};
    heed_lines *lines = heed_lines_open(paths, 1, NULL, err);
    if (!lines)
        return HEED_MEMORY;
    while (!status && !(status = heed_lines_next(lines, &line, &length, err)) && line)
        status = add(&list, count, &capacity, line, length, arena, err);
    heed_lines_free(lines);
    *labels = list;
    return status;
}
