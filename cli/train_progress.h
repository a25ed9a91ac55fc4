/* train_progress.h: what `heed train` shows: one line that is rewritten on a terminal, plain lines
 * otherwise, both on stderr; the forecast and the summary on stdout. */
#ifndef HEED_CLI_TRAIN_PROGRESS_H
#define HEED_CLI_TRAIN_PROGRESS_H

#include "status_line.h"

#include <heed/train.h>

struct progress {
    struct status_line line;
    bool json;
    double begun; /* when the training of this run began, and how far it was then */
    double fraction;
    int64_t from; /* the update then */
    bool advised;
};
void progress_begin(struct progress *p, bool json);
/* Ends the line on the terminal, before anything else is written. */
void progress_end(struct progress *p);
/* A log sink and a heed_train_hooks.progress; context is the struct. */
void progress_line(void *context, heed_log_level level, const char *line);
void progress_show(void *context, const heed_train_progress *t);
/* The end of a forecast, behind what is said of the data; speed: what it counts. */
void progress_forecast(const struct progress *p, const heed_train_forecast *f, const char *speed);
/* Says what in these options makes no sense at that pace: a learning rate that peaks behind the
 * end, an epoch that is never over, a decay that is cut off. */
void progress_advise(struct progress *p, const heed_loop_options *o,
                     const heed_train_forecast *pace);
/* then: a command to try, but for the folder. */
void progress_summary(const struct progress *p, const char *folder, const heed_train_result *r,
                      const char *then);

#endif
