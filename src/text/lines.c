/* lines.c: the lines of several files, one file after the other. */
#include "base/error.h"
#include "base/line_reader.h"
#include "base/memory.h"

#include <heed/text.h>

struct heed_lines {
    heed_allocator allocator;
    const char *const *path;
    int count, next; /* files; the next one to open */
    heed__lines *file;
};

heed_lines *heed_lines_open(const char *const *paths, int count, const heed_allocator *allocator,
                            heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_lines *l = heed__allocate(&a, 1, sizeof *l);
    if (!l) {
        heed__fail(err, HEED_MEMORY, "out of memory for reading lines");
        return NULL;
    }
    *l = (heed_lines){.allocator = a, .path = paths, .count = count};
    return l;
}

void heed_lines_free(heed_lines *l)
{
    if (!l)
        return;
    heed_allocator a = l->allocator;
    heed__lines_close(l->file);
    heed__release(&a, l, 1, sizeof *l);
}

heed_status heed_lines_next(heed_lines *l, const char **text, size_t *length, heed_error *err)
{
    if (!l)
        return heed__missing(err, "lines");
    *text = NULL;
    for (;;) {
        if (!l->file) {
            if (l->next == l->count)
                return HEED_OK;
            const char *path = l->path[l->next];
            heed_error why = {0};
            l->file = heed__lines_open(path, HEED_LINE_LIMIT, &l->allocator, &why);
            if (!l->file)
                return heed__fail(err, why.status, "%s", why.text);
            l->next++;
        }
        heed_status status = heed__lines_next(l->file, text, length, err);
        if (status || *text)
            return status;
        heed__lines_close(l->file);
        l->file = NULL;
    }
}

int64_t heed_lines_where(const heed_lines *l, const char **path)
{
    if (!l)
        return 0;
    *path = l->next > 0 ? l->path[l->next - 1] : "";
    return l->file ? heed__lines_number(l->file) : 0;
}
