/* rows.h (internal): hypotheses of a Transformer, many sentences at once, each at its own place:
 * what a session of a packed model is. */
#ifndef HEED_DECODE_ROWS_H
#define HEED_DECODE_ROWS_H

#include "decode/cells.h"
#include "decode/pass.h"
#include "decode/shortlist.h"
#include "decode/stepper.h"

/* A source under way. */
typedef struct heed__row_source {
    int32_t *cell; /* (room) of its tokens, the first `length` */
    int64_t length, room;
    int64_t rows;        /* hypotheses that look at it; 0: the place is free */
    heed__choice choice; /* with a shortlist */
} heed__row_source;

typedef struct heed__row {
    int32_t source;
    int32_t length; /* tokens so far */
} heed__row;

/* The sentence of a token that is being encoded. */
typedef struct heed__row_span {
    int32_t begin, length;
} heed__row_span;

typedef struct heed__rows {
    const heed__weights *w;
    heed_allocator allocator;
    heed__pass pass;
    heed__cells cells;
    heed__row_source *source; /* (sources) places, free ones among them */
    int64_t sources;
    heed__row *row, *other; /* (room), and room for the next order */
    int32_t *cell, *others; /* (room,list): the cells of each row's tokens */
    int64_t rows, room, list;
    heed__row_span *span; /* (spans) */
    int64_t spans;
    heed_real *positions; /* (known,D) sinusoids so far */
    int64_t known;
    const heed__shortlist *shortlist; /* or NULL */
    uint64_t *marks;                  /* (V) bits, for choosing */
    heed_real *logit;                 /* (logits,columns) */
    heed_real *log_z;                 /* (logits) */
    heed_real *peak;                  /* (logits,chunks of columns) the largest, */
    heed_real *sum;                   /* and the sum of exponentials */
    heed_tokens *choice;              /* (logits) with a shortlist or a screen */
    int64_t logits, columns;
    bool best_only;           /* nobody wants more than the best token of each row, */
    heed_tokens never;        /* these left out */
    const heed__rough *rough; /* the weights' own, once it pays to have it */
    int32_t *candidate;       /* (candidates, as many tokens as may be left of a row) */
    int64_t candidates;
    bool broken; /* after an error in a step: only `clear` helps */
} heed__rows;

/* shortlist may be NULL. */
heed__rows *heed__rows_new(const heed__weights *w, const heed__shortlist *shortlist, int threads,
                           const heed_allocator *allocator, heed_error *err);
void heed__rows_free(heed__rows *r);
heed__stepper heed__rows_stepper(heed__rows *r);
/* Instead of steps: all tokens of a translation at once, of the only source that was added.  Row i
 * has BOS and the first i of them; no scores are made. */
heed_status heed__rows_force(heed__rows *r, const heed_tokens *target, heed_error *err);

/* rows_embed.c.  Sinusoids for places below count. */
heed_status heed__rows_positions(heed__rows *r, int64_t count, heed_error *err);
/* Row i of the pass becomes scale E[token] + P[place]. */
void heed__rows_embed(heed__rows *r, const heed__embedding_weights *e, int64_t i, int32_t token,
                      int64_t place);

/* rows_output.c.  Logits of the pass's rows, and their normalisers. */
heed_status heed__rows_output(heed__rows *r, heed_scores *out, heed_error *err);
void heed__rows_release_output(heed__rows *r);

/* rows_best.c.  Whether only the best tokens of the pass's rows are to be found, and their logits
 * then. */
void heed__rows_best_only(void *self, const heed_tokens *never);
bool heed__rows_screened(heed__rows *r);
void heed__rows_output_best(heed__rows *r);
void heed__rows_release_best(heed__rows *r);

#endif
