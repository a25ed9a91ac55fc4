/* cmd_translate.h: what the files of `heed translate` share. */
#ifndef HEED_CLI_CMD_TRANSLATE_H
#define HEED_CLI_CMD_TRANSLATE_H

#include "input_lines.h"

#include <heed/translate.h>
#include <time.h>

struct translate_settings {
    const char *model, *to, *prefix;
    heed_search_options search;
    bool scores, json;
    bool alignments, shortlist, protect, capitals;
    const char *alignment_head;
    int64_t threads, workers, batch;
};

/* ---- in ---- */

/* A line between its coming and its going; they leave in the order they came. */
struct translate_line {
    struct translate_line *next;
    int64_t number;  /* from 0, over all files */
    int64_t taken;   /* bytes of all files up to its end */
    int64_t size;    /* of its file; 0 where it is none, or gzip */
    char *object;    /* --json: the object that it was; NULL: text */
    char wrong[160]; /* why it is no line to translate; "": it is one */
};

struct translate_input {
    const struct translate_settings *s;
    const heed_option_list *files;
    int opened; /* files so far */
    line_reader reader;
    bool reading;
    int64_t lines, at, count; /* lines returned; of those in the reader */
    int64_t taken;            /* bytes of the lines returned */
    struct translate_line *first, *last;
    char *text, *prefix; /* of the object returned last */
};
/* Bytes of all the files; 0 if they are not known of each: a pipe, gzip. */
int64_t translate_size(const struct translate_input *in);
/* For heed_line_stream: NUMERIC or IO after saying what went wrong. */
heed_status translate_next(void *context, bool wait, heed_source_line *line, heed_error *err);
/* Done with the first of the lines. */
void translate_forget(struct translate_input *in);
void translate_close(struct translate_input *in);

/* ---- out ---- */

/* Prints what a line has become: t (n_best). */
void translate_print(const struct translate_settings *s, const heed_vocab *target,
                     const struct translate_line *line, const heed_translation *t);

#endif
