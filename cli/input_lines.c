/* input_lines.c: reading lines without waiting for more than the first: who types a line gets
 * an answer, and a file is read in large portions. */
#include "input_lines.h"
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <heed/data.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* What one line may measure; a file without line ends is no text. */
#define LINE_LIMIT ((size_t)1 << 26)
#define PORTION ((size_t)1 << 16)

int64_t lines_size(int fd, bool *gzip)
{
    struct stat st;
    unsigned char first[2];
    bool file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    *gzip = file && pread(fd, first, 2, 0) == 2 && first[0] == 0x1f && first[1] == 0x8b;
    return file && !*gzip ? (int64_t)st.st_size : -1;
}

bool lines_open(line_reader *r, const char *path)
{
    bool gzip, standard = strcmp(path, "-") == 0;
    *r = (line_reader){.fd = STDIN_FILENO};
    snprintf(r->shown, sizeof r->shown, standard ? "standard input" : "'%.250s'", path);
    r->name = r->shown;
    if (!standard && (r->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
        complain("cannot read %s: %s", r->name, strerror(errno));
        return false;
    }
    const int64_t size = lines_size(r->fd, &gzip);
    r->size = size > 0 ? size : 0;
    if (gzip && !(r->zip = gzdopen(r->fd, "rb"))) {
        complain("out of memory for reading %s", r->name);
        return false;
    }
    return true;
}

void lines_close(line_reader *r)
{
    if (r->zip)
        gzclose(r->zip);
    else if (r->fd > STDIN_FILENO)
        close(r->fd);
    free(r->buffer);
    free(r->line);
}

/* Doubles the memory at *p until it has capacity for `want` items. */
static bool grow(void **p, size_t *capacity, size_t want, size_t item)
{
    size_t n = *capacity ? *capacity : 64;
    while (n < want)
        n *= 2;
    void *grown = n == *capacity ? *p : realloc(*p, n * item);
    if (!grown) {
        complain("out of memory for lines");
        return false;
    }
    *p = grown;
    *capacity = n;
    return true;
}

/* Bytes of a plain file, or decompressed; 0 at the end, -1 after saying what went wrong. */
static ssize_t read_some(const line_reader *r, char *to, size_t capacity)
{
    ssize_t n;
    int number = Z_OK;
    do
        n = r->zip ? gzread(r->zip, to, (unsigned)capacity) : read(r->fd, to, capacity);
    while (n < 0 && !r->zip && errno == EINTR);
    if (r->zip && n <= 0) { /* a file that ends too early shows only here */
        gzerror(r->zip, &number);
        n = number == Z_OK || number == Z_STREAM_END ? 0 : -1;
    }
    if (n < 0)
        complain("cannot read %s: %s", r->name,
                 r->zip && number != Z_ERRNO ? "its gzip is damaged or ends too early"
                                             : strerror(errno));
    return n;
}

/* Reads what is there, at least a byte; false after saying what went wrong. */
static bool read_more(line_reader *r)
{
    void *buffer = r->buffer;
    bool grown = grow(&buffer, &r->capacity, r->end + PORTION, 1);
    r->buffer = buffer;
    if (!grown)
        return false;
    ssize_t n = read_some(r, r->buffer + r->end, PORTION - 1);
    if (n > 0)
        r->end += (size_t)n;
    if (!r->zip && r->taken == 0 && r->end >= 2 && memcmp(r->buffer, "\x1f\x8b", 2) == 0) {
        complain("cannot read %s: it is gzip; put zcat before it, or name the file", r->name);
        return false;
    }
    r->ended = n == 0;
    return n >= 0;
}

static bool more_is_there(const line_reader *r)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Ends the line at `text` in the buffer and makes it a C string; false if it held a NUL. */
static bool make_string(char *text, size_t length)
{
    if (length > 0 && text[length - 1] == '\r')
        length--;
    text[length] = '\0';
    char *nul = memchr(text, '\0', length);
    bool clean = !nul;
    for (; nul; nul = memchr(nul, '\0', (size_t)(text + length - nul)))
        *nul = (char)0xFF;
    return clean;
}

/* Cuts the first `count` lines off the buffer. */
static bool hand_out(line_reader *r, int64_t count)
{
    void *line = r->line;
    size_t capacity = (size_t)r->line_capacity;
    bool grown = grow(&line, &capacity, (size_t)count, sizeof *r->line);
    r->line = line;
    r->line_capacity = (int64_t)capacity;
    for (int64_t i = 0; grown && i < count; i++) {
        char *text = r->buffer + r->begin;
        char *end = memchr(text, '\n', r->end - r->begin);
        size_t length = end ? (size_t)(end - text) : r->end - r->begin;
        r->given++;
        if (!make_string(text, length) && !r->nul_line)
            r->nul_line = r->given;
        r->line[i] = text;
        r->begin += length + (end != NULL);
        r->taken += (int64_t)length + (end != NULL);
    }
    return grown;
}

int64_t lines_take(line_reader *r, int64_t most, lines_wait wait)
{
    if (r->begin > 0)
        memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    int64_t count = 0;
    size_t seen = 0; /* what lies before is whole lines */
    while (count < most) {
        const char *end = r->buffer ? memchr(r->buffer + seen, '\n', r->end - seen) : NULL;
        if (end) {
            seen = (size_t)(end - r->buffer) + 1;
            count++;
        } else if (r->ended) {
            count += seen < r->end;
            break;
        } else if (r->end - seen > LINE_LIMIT) {
            complain("cannot read %s: a line is longer than %zu MB; is it a text?", r->name,
                     LINE_LIMIT >> 20);
            return -1;
        } else if (wait < (count ? LINES_ALL : LINES_ONE) && !more_is_there(r)) {
            break;
        } else if (!read_more(r)) {
            return -1;
        }
    }
    return hand_out(r, count) ? count : -1;
}

void lines_complain_of_bytes(const line_reader *r, int64_t count)
{
    int64_t broken = 0, first = 0;
    for (int64_t i = count - 1; i >= 0; i--)
        if (!heed_utf8_valid(r->line[i], strlen(r->line[i]), NULL)) {
            broken++;
            first = i + 1;
        }
    if (broken)
        complain("%s: lines that are not UTF-8: %lld, the first is line %lld; U+FFFD takes the "
                 "place of each wrong byte",
                 r->name, (long long)broken, (long long)first);
}
