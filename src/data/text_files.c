/* text_files.c: text files as one text.  What is held out is PASSAGES stretches of it, evenly
 * spread and cut at lines: a part of every kind of text that there is, and yet connected. */
#include "data/text_files.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/min_max.h"

#include <string.h>

#define PASSAGES 20

heed_status heed__text_files_open(heed__text_files *f, const char *const *paths, int count,
                                  const heed_allocator *allocator, heed_error *err)
{
    *f = (heed__text_files){
        .allocator = heed__allocator_or_default(allocator), .path = paths, .count = count};
    f->file = heed__allocate_zeroed(&f->allocator, (size_t)count, sizeof *f->file);
    if (!f->file) {
        f->count = 0;
        return heed__fail(err, HEED_MEMORY, "out of memory for %d text files", count);
    }
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < count; i++) {
        status = heed__text_file_open(&f->file[i], paths[i], allocator, err);
        f->bytes += f->file[i].end - f->file[i].text;
        f->lines += f->file[i].lines;
    }
    if (!status && !f->lines)
        status = heed__fail(err, HEED_FORMAT, "'%.300s' is empty, expected text", paths[0]);
    if (status)
        heed__text_files_close(f);
    return status;
}

void heed__text_files_close(heed__text_files *f)
{
    for (int i = 0; i < f->count; i++)
        heed__text_file_close(&f->file[i]);
    heed__release(&f->allocator, f->file, (size_t)f->count, sizeof *f->file);
    f->file = NULL;
    f->count = 0;
}

/* A hundredth, but 100 kB at least and 2 MB at most, and never more than a twentieth. */
int64_t heed__text_hold_out(int64_t bytes)
{
    const int64_t n = heed__min(heed__max(bytes / 100, 100000), 2000000);
    return heed__max(heed__min(n, bytes / 20), 1);
}

/* Whether a line that begins at this offset is held out: passage k begins in the middle of the k-th
 * of as many equal parts. */
static bool is_held(const heed__text_files *f, int64_t offset)
{
    if (!f->held_out)
        return false;
    const double part = (double)f->bytes / PASSAGES, at = (double)offset;
    const double begin = ((double)(int64_t)(at / part) + 0.5) * part;
    return at >= begin && at < begin + (double)f->held_out / PASSAGES;
}

heed__text_walk heed__text_walk_new(const heed__text_files *f, int which)
{
    return (heed__text_walk){.files = f, .which = which, .file = -1};
}

bool heed__text_walk_next(heed__text_walk *w, const char **line, size_t *length, bool *joined)
{
    const heed__text_files *f = w->files;
    *joined = true;
    for (;;) {
        while (w->file < 0 || !heed__text_file_line(&w->at, line, length)) {
            if (w->file >= 0)
                w->offset += f->file[w->file].end - f->file[w->file].text;
            if (++w->file >= f->count) {
                w->file = f->count;
                *line = NULL;
                return false;
            }
            w->at = f->file[w->file];
            w->line = 0;
            *joined = false;
        }
        w->line++;
        const bool held = is_held(f, w->offset + (*line - f->file[w->file].text));
        if (w->which == HEED__ALL_LINES || held == (w->which == HEED__HELD_LINES))
            return true;
        *joined = false;
    }
}

static heed_status next_line(void *context, const char **text, size_t *length, heed_error *err)
{
    bool joined;
    (void)err;
    heed__text_walk_next(context, text, length, &joined);
    return HEED_OK;
}

heed_line_source heed__text_walk_source(heed__text_walk *w)
{
    return (heed_line_source){next_line, w};
}
