/* session_rows.h (internal): hypotheses of a packed model, many sentences at once, each with its
 * own length: what a session of a packed model is. */
#ifndef HEED_ENGINE_SESSION_ROWS_H
#define HEED_ENGINE_SESSION_ROWS_H

#include "engine/cells.h"
#include "engine/pass.h"
#include "engine/shortlist.h"
#include "engine/stepper.h"

/* Rows that go through a pass at once: enough for fast products, few enough for memory. */
#define HEED__PASS_ROWS 512
/* Rows whose logits are made at once where only those of given tokens are wanted. */
#define HEED__LOG_P_ROWS 64

/* A source that rows look at. */
typedef struct heed__row_source {
    int32_t *cell; /* (capacity) of its tokens, the first `length` */
    int64_t length, capacity;
    int64_t rows;        /* hypotheses that look at it; 0: the slot is free */
    heed__choice choice; /* with a shortlist */
} heed__row_source;

typedef struct heed__session_row {
    int32_t source; /* -1: the model has no sources */
    int32_t length; /* tokens so far */
    int32_t gone;   /* of them, those without a cell: they were out of every window */
    int32_t state;  /* its state cell; -1: no tokens, or nothing keeps a state */
} heed__session_row;

/* Rows that are encoded at once: enough for fast products, few enough for memory. */
#define HEED__ENCODED_ROWS 160

/* What goes through the encoder as one: `count` tokens, or rows of features, and maybe EOS. */
typedef struct heed__sequence {
    const int32_t *id;
    const int32_t *type;      /* NULL: all 0 */
    const heed_real *feature; /* (count,width) instead of id; NULL: none */
    int64_t count;
    bool ended; /* EOS comes behind id */
} heed__sequence;
/* The sequence of a row of the encoder's pass. */
typedef struct heed__row_span {
    int32_t begin, length;
} heed__row_span;

/* A row of a pass through the decoder: one token of one hypothesis. */
typedef struct heed__row_query {
    int32_t row, position;
    const heed_extension *of; /* what asks for it, */
    int64_t token;            /* and which of its tokens it is */
} heed__row_query;

/* Logits of some rows, and what normalises them. */
typedef struct heed__row_logits {
    heed_real *logit;      /* (rows,columns) */
    heed_real *log_z;      /* (rows) */
    heed_real *peak;       /* (rows,chunks of columns) the largest, */
    heed_real *sum;        /* and the sum of exponentials */
    heed_tokens *choice;   /* (rows) with a shortlist or a screening matrix */
    int64_t rows, columns; /* that there is memory for */
} heed__row_logits;

typedef struct heed__rows {
    const heed__weights *w;
    heed_allocator allocator;
    heed__pass pass;
    heed__cells own, memory;  /* of tokens of hypotheses and of sources */
    heed__cells states;       /* of rows: what attention without weights keeps of their tokens */
    heed__row_source *source; /* (sources) slots, free ones among them */
    int64_t sources;
    heed__session_row *row, *other; /* (capacity), and those of the next order */
    int32_t *cell, *others;         /* (capacity,list): the cells of each row's tokens, those
                                       that are gone left out */
    int64_t rows, capacity, list;
    heed__row_query *query; /* (queries) of the pass at hand */
    int64_t queries;
    heed__row_span *span; /* (spans) */
    int64_t spans;
    heed_real *encoded; /* (encoded_size) the last result of heed_session_encode */
    int64_t encoded_size;
    heed__known_positions positions[2]; /* sinusoids of the encoder, of the decoder */
    const heed__shortlist *shortlist;   /* or NULL */
    uint64_t *marks;                    /* (V) bits, for choosing */
    heed__row_logits last;              /* of rows whose next token is looked for */
    heed__row_logits given;             /* of rows whose next token is given */
    bool best_only;                     /* nobody wants more than the best token of each row, */
    heed_tokens never;                  /* these left out */
    const heed__screening *screening;   /* the weights' own, once it pays to have it */
    int32_t *candidate;                 /* (candidates, as many tokens as may be left of a row) */
    int64_t candidates;
    bool screened; /* the extension at hand makes the logits of candidates alone */
    bool broken;   /* after an error in an extension: only `clear` helps */
} heed__rows;

/* shortlist may be NULL. */
heed__rows *heed__rows_new(const heed__weights *w, const heed__shortlist *shortlist, int threads,
                           const heed_allocator *allocator, heed_error *err);
void heed__rows_free(heed__rows *r);
heed__stepper heed__rows_stepper(heed__rows *r);
/* Cells that a row has. */
int64_t heed__rows_cells(const heed__rows *r, const heed__session_row *row);
/* Memory for `rows` rows of `tokens` cells; what is there stays. */
heed_status heed__rows_reserve(heed__rows *r, int64_t rows, int64_t tokens, heed_error *err);
heed_status heed__rows_short_of_memory(int64_t rows, heed_error *err);

/* rows_encode.c, rows_extend.c: as in heed__stepper. */
heed_status heed__rows_add(void *self, const heed_tokens *source, const heed_tokens *wanted,
                           int64_t count, heed_error *err);
heed_status heed__rows_extend(void *self, const heed_extension *x, int64_t count, heed_scores *last,
                              heed_error *err);

/* Sequences through a stack without cross-attention: their hidden states are the first rows of
 * r->pass.x, one sequence behind the other.  Ids are those of the vocabulary, and lengths at most
 * `longest`. */
heed_status heed__rows_encode(heed__rows *r, const heed__packed_stack *s, const heed__sequence *q,
                              int64_t count, heed_error *err);

/* session_encode.c: as heed_session_encode. */
heed_status heed__rows_hidden(heed__rows *r, const heed_batch_side *side,
                              const heed_encode_options *o, heed_encoding *out, heed_error *err);

/* rows_embed.c.  Sinusoids of a stack's input, and angles, for positions below count. */
heed_status heed__rows_positions(heed__rows *r, const heed__packed_stack *s, int64_t count,
                                 heed_error *err);
/* Row i of the pass becomes scale E[token] + P[position] + E_types[type]. */
void heed__rows_embed(heed__rows *r, const heed__packed_stack *s, int64_t i, int32_t token,
                      int32_t type, int64_t position);
/* The same of rows of features (count,width), positions from 0 on, to rows of the pass from i on.
 */
void heed__rows_embed_features(heed__rows *r, const heed__packed_stack *s, int64_t i,
                               const heed__sequence *q);
/* The norm of that sum, if the input has one, of the first rows of the pass. */
void heed__rows_embed_norm(heed__rows *r, const heed__packed_stack *s, int64_t rows);

/* rows_output.c.  Memory for the logits of `rows` rows; what is there is lost when it grows. */
heed_status heed__rows_reserve_logits(heed__rows *r, heed__row_logits *l, int64_t rows,
                                      heed_error *err);
void heed__rows_release_logits(heed__rows *r, heed__row_logits *l);
/* What the output matrix reads of hidden states x (count,D): x, or what the head's transform
 * makes of it. */
const heed_real *heed__rows_head(heed__rows *r, const heed_real *x, int64_t count);
/* Logits of hidden states x (count,D), made by these queries, to rows of l from `at` on. */
void heed__rows_project(heed__rows *r, heed__row_logits *l, int64_t at, const heed_real *x,
                        const heed__row_query *query, int64_t count);
/* Of a token, -infinity if a shortlist leaves it out. */
heed_real heed__rows_log_p(const heed__rows *r, const heed__row_logits *l, int64_t row,
                           int32_t token);
/* What r->last says. */
heed_scores heed__rows_scores(const heed__rows *r);

/* rows_best.c.  Whether only the best tokens of `rows` rows are to be found, and their logits then,
 * of the first `count` rows of the pass, to rows of r->last from `at` on. */
void heed__rows_best_only(void *self, const heed_tokens *never);
bool heed__rows_screened(heed__rows *r, int64_t rows);
void heed__rows_project_best(heed__rows *r, int64_t at, int64_t count);
void heed__rows_release_best(heed__rows *r);

#endif
