/* corpus_file.c: mapping a corpus file, or a decompressed copy of it. */
#include "data/corpus_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/line_reader.h"
#include "data/spool.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The file's lines, decompressed if need be, in a mapped temporary file. */
static heed_status map_copy(heed__text_file *f, const char *path, const heed_allocator *allocator,
                            heed_error *err)
{
    heed__lines *lines = heed__lines_open(path, HEED_LINE_LIMIT, allocator, err);
    if (!lines)
        return err->status;
    heed__spool s;
    heed__spool_open(&s);
    const char *line = "";
    size_t length;
    heed_status status = HEED_OK;
    while (!s.failed && !(status = heed__lines_next(lines, &line, &length, err)) && line) {
        heed__spool_add(&s, line, length);
        heed__spool_add(&s, "\n", 1);
    }
    if (!status)
        f->map = heed__spool_map(&s, &f->map_size);
    heed__spool_close(&s);
    heed__lines_close(lines);
    if (s.failed && !status)
        status = heed__fail(err, HEED_IO,
                            "cannot write a temporary copy of '%s' in '%s': %s; TMPDIR may name "
                            "another folder",
                            path, heed__spool_folder(), strerror(s.failed));
    return status;
}

static bool starts_with(const heed__text_file *f, const char *bytes, size_t n)
{
    return f->map_size >= n && memcmp(f->map, bytes, n) == 0;
}

static heed_status map_text(heed__text_file *f, const char *path, const heed_allocator *allocator,
                            heed_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))
        return map_copy(f, path, allocator, err);
    heed_status status = heed__file_map(path, &f->map, &f->map_size, err);
    if (!status && starts_with(f, "\x1f\x8b", 2)) { /* gzip */
        heed__text_file_close(f);
        status = map_copy(f, path, allocator, err);
    }
    return status;
}

/* Counts the lines and checks every byte once.  The line reader refuses the same in a gzip, with
 * the same messages. */
static heed_status check_lines(heed__text_file *f, const char *path, heed_error *err)
{
    const char *line;
    size_t length;
    while (heed__text_file_line(f, &line, &length)) {
        f->lines++;
        if (length > HEED_LINE_LIMIT)
            return heed__fail(err, HEED_FORMAT, "'%s' line %lld is longer than %zu bytes", path,
                              (long long)f->lines, HEED_LINE_LIMIT);
        const char *nul = memchr(line, '\0', length);
        if (nul)
            return heed__fail(err, HEED_FORMAT, "'%s' line %lld: byte %zu is NUL, expected text",
                              path, (long long)f->lines, (size_t)(nul - line) + 1);
    }
    f->at = f->text;
    return HEED_OK;
}

heed_status heed__text_file_open(heed__text_file *f, const char *path,
                                 const heed_allocator *allocator, heed_error *err)
{
    *f = (heed__text_file){0};
    heed_error local = {0};
    heed_status status = map_text(f, path, allocator, &local);
    if (!status) {
        f->text = f->map;
        f->end = f->text + f->map_size;
        if (starts_with(f, "\xef\xbb\xbf", 3))
            f->text += 3;
        f->at = f->text;
        if (starts_with(f, "\xff\xfe", 2) || starts_with(f, "\xfe\xff", 2))
            status =
                heed__fail(&local, HEED_FORMAT,
                           "cannot read '%s': it is UTF-16, expected UTF-8 (iconv converts)", path);
        else
            status = check_lines(f, path, &local);
    }
    if (status) {
        heed__text_file_close(f);
        heed__fail(err, status, "%s", local.text);
    }
    return status;
}

void heed__text_file_close(heed__text_file *f)
{
    heed__file_unmap(f->map, f->map_size);
    *f = (heed__text_file){0};
}

bool heed__text_file_line(heed__text_file *f, const char **line, size_t *length)
{
    if (f->at == f->end)
        return false;
    const char *lf = memchr(f->at, '\n', (size_t)(f->end - f->at));
    const char *stop = lf ? lf : f->end;
    *line = f->at;
    f->at = lf ? lf + 1 : f->end;
    while (stop > *line && stop[-1] == '\r')
        stop--;
    *length = (size_t)(stop - *line);
    return true;
}

void heed__text_file_scattered(const heed__text_file *f)
{
    if (f->map_size)
        posix_madvise((void *)f->map, f->map_size, POSIX_MADV_RANDOM);
}
