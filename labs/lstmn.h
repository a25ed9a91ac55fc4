/* lstmn.h: the Long Short-Term Memory-Network (Cheng, Dong, Lapata 2016): the recurrence of
 * lstmn.c, the readers of lstmn_reader.c made of it and the tasks of lstmn_tasks.c, which
 * lstmn_lab.c brings together. */
#ifndef HEED_LABS_LSTMN_H
#define HEED_LABS_LSTMN_H

#include "word_list.h"

/* ---- the recurrence ---- */

/* How a recurrence reads another sequence, as a hypothesis reads its premise. */
typedef enum lstmn_fusion { LSTMN_ALONE, LSTMN_SHALLOW, LSTMN_DEEP } lstmn_fusion;
typedef struct lstmn_sizes {
    int64_t in, d;  /* columns of x, and of h and c */
    bool attention; /* false: an LSTM, which is what attention to the last step alone would give */
    int64_t window; /* steps that are looked back at; 0: all */
    bool summary;   /* the query has W_h~ h~; the authors' code for encoders leaves it out */
    lstmn_fusion fusion;
} lstmn_sizes;
/* Scores v . tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1}): of the own past, or of another's. */
typedef struct lstmn_look {
    heed_linear_layer key, x, summary;
    heed_tensor *v;
} lstmn_look;
typedef struct lstmn_layer {
    lstmn_sizes sizes;
    heed_rnn_layer lstm; /* its gates, of [x_t, h~_t] */
    lstmn_look intra, inter;
    heed_linear_layer gate;   /* deep: r_t of [gamma~_t, x_t] */
    heed_linear_layer joined; /* shallow: h_t and gamma~_t together */
} lstmn_layer;
/* What a sequence leaves for another one to look at: h and c of every step, and whose they are. */
typedef struct lstmn_tape {
    heed_tensor *h, *c; /* (N,D) */
    const heed_segments *segments;
} lstmn_tape;
void lstmn_build(lstmn_layer *l, heed_scope s, const lstmn_sizes *sizes);
/* x (N,in) -> h (N,D), sequence by sequence.  source: what is read besides, one sequence for each;
 * NULL if the layer has no fusion.  made, unless it is NULL, receives the tape; looked, unless it
 * is NULL, for each of the longest sequence's steps the weights (rows still active, steps looked
 * at) in the time-major order of the segments, or NULL for a step without any. */
heed_tensor *lstmn_apply(heed_tape *t, const lstmn_layer *l, heed_tensor *x,
                         const heed_segments *segments, const lstmn_tape *source, lstmn_tape *made,
                         heed_tensor ***looked);

/* ---- tasks ---- */

typedef enum lstmn_task { LSTMN_RECALL, LSTMN_TEXT, LSTMN_SENTIMENT, LSTMN_ENTAIL } lstmn_task;
enum { LSTMN_KEYS = 32 };
typedef enum lstmn_part { LSTMN_TRAIN, LSTMN_VALID, LSTMN_TEST } lstmn_part;
/* Of every task: tokens, and what is to be said: of text behind every token, else once. */
typedef struct lstmn_text {
    const int32_t *ids; /* all sequences, one behind the other */
    int64_t *offset;    /* (count + 1) */
    int32_t *label;     /* (count), or NULL: text */
    int64_t count;      /* of sequences; entailment: two for each label */
} lstmn_text;
typedef struct lstmn_data {
    lstmn_task task;
    int64_t keys;  /* recall: kinds of them, at most LSTMN_KEYS */
    int64_t pairs; /* at most; in tests that many */
    int64_t vocabulary, classes;
    word_list *words;   /* NULL: recall */
    lstmn_text part[3]; /* of files */
} lstmn_data;
/* folder: of the files; NULL for recall.  words: how many kinds are known at most; longest: longer
 * sequences of text are cut. */
heed_status lstmn_data_open(lstmn_data *d, lstmn_task task, const char *folder, int64_t keys,
                            int64_t pairs, int64_t words, int64_t longest, heed_arena *arena,
                            heed_error *err);
/* A batch: two sides if the task has two sequences an example. */
typedef struct lstmn_batch {
    int64_t count; /* examples */
    int sides;
    const int32_t *ids[2];
    const heed_segments *rows[2];
    const int32_t *wanted; /* (terms): answers */
    const int32_t *row;    /* (terms), recall: behind which rows; else of text behind every row, of
                              sentences once each */
    int64_t terms;
} lstmn_batch;
/* Examples first, first + 1 ... of a part or, with rng, any. */
bool lstmn_draw(const lstmn_data *d, lstmn_part part, int64_t first, int64_t count,
                const heed_rng *rng, heed_arena *arena, lstmn_batch *b);
/* The name of a token of recall: "k7", "v3", "?"; in the arena. */
const char *lstmn_recall_word(int32_t id, heed_arena *arena);
/* How many examples a part has that can be tested. */
int64_t lstmn_count(const lstmn_data *d, lstmn_part part);

/* ---- readers ---- */

enum { LSTMN_LAYERS = 4 };
typedef struct lstmn_reader {
    lstmn_task task;
    int layers, sides;
    double dropout;
    heed_tensor *embedding; /* (V,D) */
    lstmn_layer layer[2][LSTMN_LAYERS];
    heed_linear_layer hidden; /* of what is classified */
    heed_tensor *out, *bias;  /* (classes, D), (classes): a row for each answer */
} lstmn_reader;
/* everywhere: all layers look back; else the last one, and those below it are LSTMs. */
void lstmn_reader_build(lstmn_reader *r, heed_scope s, const lstmn_data *d,
                        const lstmn_sizes *sizes, int layers, bool everywhere, double dropout);
/* (terms,D): what answers are made of.  looked: of the last layer of the last side, as above. */
heed_tensor *lstmn_read(heed_tape *t, const lstmn_reader *r, const lstmn_batch *b,
                        heed_tensor ***looked);

#endif
