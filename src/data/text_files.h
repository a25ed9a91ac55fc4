/* text_files.h: the lines of several text files, mapped, one file after the other; some of them may
 * be held out: passages that are spread evenly over the text. */
#ifndef HEED_DATA_TEXT_FILES_H
#define HEED_DATA_TEXT_FILES_H

#include "data/corpus_file.h"
#include <heed/text.h>

typedef struct heed__text_files {
    heed_allocator allocator;
    const char *const *path; /* (count) borrowed */
    heed__text_file *file;   /* (count) */
    int count;
    int64_t bytes, lines;
    int64_t held_out; /* bytes, about; 0: none */
} heed__text_files;

/* Refuses what heed__text_file_open refuses, and a text without a line. */
heed_status heed__text_files_open(heed__text_files *f, const char *const *paths, int count,
                                  const heed_allocator *allocator, heed_error *err);
void heed__text_files_close(heed__text_files *f);
/* How much of a text of these bytes is held out where nothing else is said. */
int64_t heed__text_hold_out(int64_t bytes);

/* A walk through the lines; several may be on their way at once. */
typedef struct heed__text_walk {
    const heed__text_files *files;
    heed__text_file at; /* a view of the file that is read */
    int file;           /* its number; the first line begins file 0 */
    int64_t line;       /* the number of the last line in its file, from 1 */
    int64_t offset;     /* bytes of the files before it */
    int which;          /* 0: all lines, 1: those that are not held out, 2: those that are */
} heed__text_walk;
enum { HEED__ALL_LINES, HEED__KEPT_LINES, HEED__HELD_LINES };
heed__text_walk heed__text_walk_new(const heed__text_files *f, int which);
/* The next line, without its end; false behind the last.  *joined: it follows the line before in
 * the same file, with nothing left out between them. */
bool heed__text_walk_next(heed__text_walk *w, const char **line, size_t *length, bool *joined);
/* The walk as a source of lines. */
heed_line_source heed__text_walk_source(heed__text_walk *w);

#endif
