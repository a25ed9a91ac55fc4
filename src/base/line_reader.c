/* line_reader.c: a line reader over zlib, which passes plain files through.  A line is returned as
 * a pointer into the buffer, which doubles only when a line does not fit.  Cost: one memchr over
 * the text, one move of an unfinished line per block. */
#include "base/line_reader.h"
#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define FIRST_BUFFER ((size_t)1 << 16)

struct heed__lines {
    heed_allocator allocator;
    gzFile file;
    char *buffer;
    size_t capacity;   /* one byte is reserved for the last line's NUL */
    size_t begin, end; /* read and not yet returned */
    size_t scanned;    /* bytes after begin known to hold no line end */
    size_t limit;
    int64_t number;
    bool finished;
    heed_error failed;
    size_t path_bytes;
    char path[];
};

/* Standard input may be a socket, which cannot be opened by name, or a file of which some has been
 * read. */
static gzFile open_file(const char *path)
{
    if (strcmp(path, "-") != 0)
        return gzopen(path, "rbe");
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    gzFile file = fd < 0 ? NULL : gzdopen(fd, "rb");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

heed__lines *heed__lines_open(const char *path, size_t limit, const heed_allocator *allocator,
                              heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    size_t path_bytes = strlen(name) + 1;
    heed__lines *r = heed__allocate_zeroed(&a, 1, sizeof *r + path_bytes);
    char *buffer = heed__allocate(&a, 1, FIRST_BUFFER);
    if (!r || !buffer) {
        heed__fail(err, HEED_MEMORY, "out of memory for reading '%s'", name);
        goto failed;
    }
    r->allocator = a;
    r->buffer = buffer;
    r->capacity = FIRST_BUFFER;
    r->limit = limit < INT64_MAX / 4 ? limit : INT64_MAX / 4;
    r->path_bytes = path_bytes;
    memcpy(r->path, name, path_bytes);
    errno = 0;
    r->file = open_file(path);
    if (!r->file) {
        int number = errno; /* 0 when zlib itself had no memory */
        heed__fail(err, number ? HEED_IO : HEED_MEMORY, "cannot read '%s': %s", name,
                   number ? strerror(number) : "out of memory");
        goto failed;
    }
    return r;
failed:
    heed__release(&a, buffer, 1, FIRST_BUFFER);
    heed__release(&a, r, 1, sizeof *r + path_bytes);
    return NULL;
}

void heed__lines_close(heed__lines *r)
{
    if (!r)
        return;
    gzclose_r(r->file);
    heed_allocator a = r->allocator;
    heed__release(&a, r->buffer, 1, r->capacity);
    heed__release(&a, r, 1, sizeof *r + r->path_bytes);
}

/* Makes space after the unfinished line: moves it to the front, or doubles the buffer. */
static heed_status make_space(heed__lines *r)
{
    size_t held = r->end - r->begin;
    if (held + 1 < r->capacity) {
        memmove(r->buffer, r->buffer + r->begin, held);
    } else {
        char *larger = heed__allocate(&r->allocator, 2, r->capacity);
        if (!larger)
            return heed__fail(&r->failed, HEED_MEMORY, "out of memory for line %lld of '%s'",
                              (long long)r->number + 1, r->path);
        memcpy(larger, r->buffer + r->begin, held);
        heed__release(&r->allocator, r->buffer, 1, r->capacity);
        r->buffer = larger;
        r->capacity *= 2;
    }
    r->begin = 0;
    r->end = held;
    return HEED_OK;
}

static heed_status fill(heed__lines *r)
{
    if (make_space(r))
        return r->failed.status;
    size_t space = r->capacity - 1 - r->end;
    if (space > (size_t)1 << 30)
        space = (size_t)1 << 30;
    errno = 0;
    int n = gzread(r->file, r->buffer + r->end, (unsigned)space);
    if (n < (int)space) {
        /* Fewer bytes: the end, or an error.  A truncated gzip is found only here. */
        int number, system = errno;
        const char *text = gzerror(r->file, &number);
        if (number == Z_ERRNO)
            return heed__fail(&r->failed, HEED_IO, "cannot read '%s': %s", r->path,
                              strerror(system));
        if (number == Z_BUF_ERROR)
            return heed__fail(&r->failed, HEED_FORMAT, "cannot read '%s': the gzip is truncated",
                              r->path);
        if (number != Z_OK && number != Z_STREAM_END)
            return heed__fail(&r->failed, HEED_FORMAT, "cannot read '%s': damaged gzip (%s)",
                              r->path, text);
        r->finished = true;
    }
    r->end += (size_t)n;
    return HEED_OK;
}

/* Returns [begin, begin+length) and continues after its line end. */
static heed_status take_line(heed__lines *r, size_t length, size_t taken, const char **line,
                             size_t *line_length)
{
    char *text = r->buffer + r->begin;
    if (taken > length && length && text[length - 1] == '\r')
        length--;
    if (length > r->limit)
        return heed__fail(&r->failed, HEED_FORMAT, "'%s' line %lld is longer than %zu bytes",
                          r->path, (long long)r->number + 1, r->limit);
    const char *nul = memchr(text, '\0', length);
    if (nul)
        return heed__fail(&r->failed, HEED_FORMAT, "'%s' line %lld: byte %zu is NUL, expected text",
                          r->path, (long long)r->number + 1, (size_t)(nul - text) + 1);
    text[length] = '\0';
    r->begin += taken;
    r->scanned = 0;
    r->number++;
    *line = text;
    *line_length = length;
    return HEED_OK;
}

heed_status heed__lines_next(heed__lines *r, const char **line, size_t *length, heed_error *err)
{
    *line = NULL;
    *length = 0;
    while (!r->failed.status) {
        size_t held = r->end - r->begin;
        char *from = r->buffer + r->begin;
        char *lf = memchr(from + r->scanned, '\n', held - r->scanned);
        if (lf) {
            size_t n = (size_t)(lf - from);
            take_line(r, n, n + 1, line, length);
        } else if (r->finished || held > r->limit + 1) {
            if (held)
                take_line(r, held, held, line, length);
        } else {
            r->scanned = held;
            fill(r);
            continue;
        }
        break;
    }
    return r->failed.status ? heed__fail(err, r->failed.status, "%s", r->failed.text) : HEED_OK;
}

int64_t heed__lines_number(const heed__lines *r)
{
    return r->number;
}
