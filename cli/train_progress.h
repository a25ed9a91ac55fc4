/* train_progress.h: what `heed train` shows: one line that is rewritten on a terminal, plain lines
 * otherwise, both on stderr; the forecast and the summary on stdout. */
#ifndef HEED_CLI_TRAIN_PROGRESS_H
#define HEED_CLI_TRAIN_PROGRESS_H

#include "status_line.h"

#include <heed/task.h>

struct progress {
    struct status_line line;
    bool json;
    double begun; /* when the training of this run began, and how far it was then */
    double fraction;
};
void progress_begin(struct progress *p, bool json);
/* Ends the line on the terminal, before anything else is written. */
void progress_end(struct progress *p);
/* A log sink and a heed_train_hooks.progress; context is the struct. */
void progress_line(void *context, heed_log_level level, const char *line);
void progress_show(void *context, const heed_train_progress *t);
void progress_forecast(struct progress *p, const heed_train_forecast *f,
                       const heed_text_report *text);
void progress_summary(struct progress *p, const char *folder, const heed_train_result *r);

#endif
