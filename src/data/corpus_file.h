/* corpus_file.h: a text file mapped into memory, checked and counted, read by lines.  gzip and
 * pipes are decompressed into an unnamed temporary file (in TMPDIR, else /tmp), which is mapped
 * instead: either may be larger than memory. */
#ifndef HEED_DATA_CORPUS_FILE_H
#define HEED_DATA_CORPUS_FILE_H

#include <heed/base.h>

typedef struct heed__text_file {
    const char *text, *end; /* without the byte order mark */
    const char *at;         /* where the next line begins */
    int64_t lines;
    const void *map;
    size_t map_size;
} heed__text_file;

/* Refuses what is not text (a NUL byte, UTF-16) and lines above HEED_LINE_LIMIT.  allocator is used
 * for copying only. */
heed_status heed__text_file_open(heed__text_file *f, const char *path,
                                 const heed_allocator *allocator, heed_error *err);
/* f may be zeroed memory. */
void heed__text_file_close(heed__text_file *f);
/* The next line without LF or CRLF, not NUL-terminated; false at the end.  Lives until close. */
bool heed__text_file_line(heed__text_file *f, const char **line, size_t *length);
/* Tells the system that pages are read in random order: no read-ahead. */
void heed__text_file_scattered(const heed__text_file *f);

#endif
