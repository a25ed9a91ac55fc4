/* encoder_lines.h: what the commands of encoders share: the model, and lines of a file or of
 * standard input that go through it some at a time. */
#ifndef HEED_CLI_ENCODER_LINES_H
#define HEED_CLI_ENCODER_LINES_H

#include "command.h"
#include "input_lines.h"

#include <heed/encoder.h>

#define ENCODER_MODEL_OPTION(owner, at)                                                            \
    HEED_OPTION_TEXT(owner, at, "model", NULL, "DIR",                                              \
                     "the model's directory: one that heed trained, or BERT or MiniLM as they "    \
                     "are published")
#define ENCODER_THREADS_OPTION(owner, at)                                                          \
    HEED_OPTION_INT(owner, at, "threads", NULL, 1, 64, "N",                                        \
                    "threads to use; all processors if not given")

/* Lines read at a time. */
#define ENCODER_LINES 256

struct encoder_run {
    heed_encoder *encoder;
    heed_arena *arena; /* of the lines in hand: reset before each call of `some` */
    const char *input; /* for messages */
    int64_t before;    /* lines before those in hand */
};
/* Opens the model, which must be able to do the task.  False after saying why not; close in any
 * case. */
bool encoder_open(struct encoder_run *r, const char *model, heed_encoder_task task,
                  int64_t threads);
void encoder_close(struct encoder_run *r);
/* Gives the lines of a file (NULL: standard input) to `some`, at most `most` at a time, as they
 * arrive; it returns false after saying what went wrong.  Lines are UTF-8 then.  Returns an exit
 * code. */
typedef bool encoder_some(void *context, struct encoder_run *r, const char *const *line,
                          int64_t count);
int encoder_lines(struct encoder_run *r, const char *file, int64_t most, encoder_some *some,
                  void *context);
/* All lines of a file, which live in the arena; -1 after saying what went wrong. */
int64_t encoder_read_all(const char *file, heed_arena *arena, const char *const **line);
/* The file among the words of a command line; NULL: none. */
const char *encoder_file(const invocation *in);

#endif
