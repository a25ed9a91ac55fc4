/* cmd_classify.h: the settings of `heed classify`, and its half for pictures. */
#ifndef HEED_CLI_CMD_CLASSIFY_H
#define HEED_CLI_CMD_CLASSIFY_H

#include "command.h"

struct classify_settings {
    const char *model;
    bool json;
    int64_t threads;
};

/* The labels of the pictures of folders and files; an exit code. */
int classify_pictures(const struct classify_settings *s, const heed_option_list *paths);

/* What a file or a line is called, and how the probabilities of the labels are printed: as JSON, or
 * a line: label, probability, and the name, unless it is a text. */
struct classified {
    const char *text, *file; /* one of them */
    const char *const *label;
    int64_t labels;
};
void classify_print(const struct classify_settings *s, const struct classified *c,
                    const heed_real *p);

#endif
