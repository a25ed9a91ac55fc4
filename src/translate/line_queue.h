/* line_queue.h (internal): lines between the caller and the search.
 *
 * Lines are read in windows, each sorted by length.  Workers take parts of lines out of the windows
 * in turn and deliver their translations; lines leave in the order in which they came.  A window
 * whose lines have all left is read into again.  None of this locks anything: translate.c does. */
#ifndef HEED_TRANSLATE_LINE_QUEUE_H
#define HEED_TRANSLATE_LINE_QUEUE_H

#include "translate/translator.h"

typedef struct heed__line_window {
    heed_arena *arena; /* the translator's; all that is here */
    struct heed__queued_line *entry;
    int64_t entries, written; /* lines; how many have left */
    heed__part **part;        /* of all of them, the longest first */
    int64_t parts, taken;
} heed__line_window;

/* A line that is read and not yet delivered. */
typedef struct heed__queued_line {
    heed_source_line given; /* number and tag */
    heed__line line;
    heed_translation *out; /* (n_best) */
    int64_t open;          /* parts that are not translated yet */
    heed__line_window *window;
} heed__queued_line;

typedef struct heed__line_queue {
    heed_translator *tr;
    heed_search_options o; /* with what is banned by name */
    const heed_line_stream *stream;
    heed__limits limits;
    heed__line_window window[HEED__WINDOWS];
    /* Windows that were read, taken from to the end, written to the end; window n is
     * window[n % WINDOWS]. */
    int64_t opened, emptied, written;
    int portions;     /* that a window is taken in, at least: every worker is to get one */
    heed_error ended; /* why no more lines come, where reading failed */
} heed__line_queue;

heed_status heed__line_queue_init(heed__line_queue *b, heed_translator *tr,
                                  const heed_search_options *o, const heed_line_stream *stream,
                                  heed_error *err);
/* Reads lines into the next window; there must be one.  *lines: how many, 0 if none came.  They are
 * there for line_queue_take when the caller has counted b->opened.  When the stream fails, that is
 * kept in b->ended and is the end of the lines. */
heed_status heed__line_queue_read(heed__line_queue *b, bool wait, int64_t *lines, heed_error *err);
/* What heed__request_source.next gives; a batch is of one window, so that it depends on the lines
 * alone. */
int64_t heed__line_queue_take(heed__line_queue *b, bool wait, heed__capacity capacity,
                              heed__request *out);
/* The translations of a part and the alignment of the best, which are copied. */
heed_status heed__line_queue_deliver(const heed__line_queue *b, heed__part *part,
                                     const heed_translation *t, const heed__alignment *alignment,
                                     heed_error *err);
/* The line that leaves next, if it is translated; NULL otherwise.  When it has left, say so. */
heed__queued_line *heed__line_queue_ready(heed__line_queue *b);
void heed__line_queue_left(heed__line_queue *b);

/* Moves what a translation points to into the arena, its text without line ends. */
heed_status heed__translation_keep(heed_translation *t, heed_arena *arena, heed_error *err);

#endif
