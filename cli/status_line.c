/* status_line.c: the line that shows where long work is. */
#include "status_line.h"

#include <heed/base.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Seconds between two states of the line, and between two plain lines. */
#define TERMINAL_PACE 0.2
#define PLAIN_PACE 5.0

const char *status_duration(double seconds, char text[32])
{
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, 32, "%ld:%02ld", s / 60, s % 60);
    return text;
}

void status_begin(struct status_line *s)
{
    *s = (struct status_line){.terminal = isatty(STDERR_FILENO)};
}

bool status_due(struct status_line *s)
{
    double at = heed_clock_seconds();
    if (at - s->shown < (s->terminal ? TERMINAL_PACE : PLAIN_PACE))
        return false;
    s->shown = at;
    return true;
}

/* The columns that the line may have: what does not fit would go on in a second line, which the
 * next state does not overwrite.  Fields, which have two blanks between them, are shown whole. */
static int columns(const struct status_line *s, const char *line)
{
    struct winsize w;
    int n = (int)strlen(line), field;
    if (!s->terminal || ioctl(STDERR_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col <= 1 || n < w.ws_col)
        return n;
    n = w.ws_col - 1;
    for (field = n; field > 0 && strncmp(line + field, "  ", 2) != 0;)
        field--;
    return field ? field : n;
}

void status_show(struct status_line *s, const char *line)
{
    fprintf(stderr, s->terminal ? "\r%.*s\033[K" : "%.*s\n", columns(s, line), line);
    fflush(stderr);
    s->open = s->terminal;
}

void status_end(struct status_line *s)
{
    if (s->open)
        fputc('\n', stderr);
    s->open = false;
}
