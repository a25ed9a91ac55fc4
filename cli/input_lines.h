/* input_lines.h: lines of a file, plain or gzip, or of standard input: those that have arrived.
 *
 * A line may hold anything: a NUL becomes the byte 0xFF, which is in no UTF-8 text either, so that
 * the library finds and mends it like every other wrong byte. */
#ifndef HEED_CLI_INPUT_LINES_H
#define HEED_CLI_INPUT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct line_reader {
    const char *name; /* for messages: "'a.txt'" */
    const char **line;
    int64_t size;     /* of the file in bytes; 0 where it is none, or gzip */
    int64_t taken;    /* bytes of the lines returned */
    int64_t given;    /* lines returned */
    int64_t nul_line; /* the first of them with a NUL in it, from 1; 0: none */
    int fd;
    struct gzFile_s *zip; /* NULL: plain */
    bool ended;
    char *buffer;
    size_t begin, end, capacity; /* of what is in the buffer and not returned yet */
    int64_t line_capacity;
    char shown[256];
} line_reader;

/* Bytes of a plain file; -1: it is a pipe or the like, or, as *gzip says, compressed. */
int64_t lines_size(int fd, bool *gzip);
/* "-" is standard input.  False after saying why not; close in any case. */
bool lines_open(line_reader *r, const char *path);
void lines_close(line_reader *r);
/* The next lines, at most `most`: of those that have arrived, waiting for none, for one if there
 * is none, or for all to the end.  They stand in r->line until the next call.  0: no line, and
 * r->ended says whether one may still come; -1 after saying what went wrong. */
typedef enum lines_wait { LINES_NOW, LINES_ONE, LINES_ALL } lines_wait;
int64_t lines_take(line_reader *r, int64_t most, lines_wait wait);
/* Says how many of the lines in r->line are not UTF-8, if any, and which is the first. */
void lines_complain_of_bytes(const line_reader *r, int64_t count);

#endif
