/* status_line.h: one line on stderr about long work: rewritten on a terminal, otherwise a plain
 * line every few seconds. */
#ifndef HEED_CLI_STATUS_LINE_H
#define HEED_CLI_STATUS_LINE_H

#include <stdbool.h>

struct status_line {
    bool terminal;
    bool open;    /* the line on the terminal is not ended */
    double shown; /* when the last line was shown */
};
void status_begin(struct status_line *s);
/* Whether it is time for another; then it must be shown. */
bool status_due(struct status_line *s);
void status_show(struct status_line *s, const char *line);
/* Ends the line on the terminal, before anything else is written. */
void status_end(struct status_line *s);

/* A time as 1:02:03 or 2:03. */
const char *status_duration(double seconds, char text[32]);

#endif
