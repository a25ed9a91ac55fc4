/* line_reader.h: text files line by line, plain or gzip (recognised by the first bytes, not by the
 * name). */
#ifndef HEED_BASE_LINE_READER_H
#define HEED_BASE_LINE_READER_H

#include <heed/base.h>

/* The longest line, in bytes, where the caller has no better limit: 16 MB. */
#define HEED_LINE_LIMIT ((size_t)1 << 24)

typedef struct heed__lines heed__lines;
/* "-" is standard input, from its current position. */
heed__lines *heed__lines_open(const char *path, size_t limit, const heed_allocator *allocator,
                              heed_error *err);
void heed__lines_close(heed__lines *r);
/* The next line without its LF or CRLF, NUL-terminated, valid until the next call; *line is NULL at
 * the end.  A last line without line end counts.  FORMAT for a line above the limit or with a NUL
 * byte in it, and for a truncated or damaged gzip; after a failure every call fails. */
heed_status heed__lines_next(heed__lines *r, const char **line, size_t *length, heed_error *err);
/* Number of the last line returned, from 1. */
int64_t heed__lines_number(const heed__lines *r);

#endif
