/* model.h (internal): what stands behind heed_model and heed_decoder.
 *
 * An architecture is a table of functions, heed__model_class.  What every architecture has in
 * common is done once, in model.c and decoder.c: the projection on the vocabulary, loss, scores,
 * attention maps, and the bookkeeping of a decoder's rows. */
#ifndef HEED_MODEL_MODEL_H
#define HEED_MODEL_MODEL_H

#include <heed/model.h>

/* The weights of one attention of one layer, all heads, all sentences (ops.h says how they lie). */
typedef struct heed__seen {
    heed_attention_kind kind;
    int layer, heads;
    const heed_segments *queries, *keys;
    heed_tensor *weights;
} heed__seen;

/* How many numbers a model would have, in double: absurd sizes overflow integers before they are
 * refused. */
typedef struct heed__model_size {
    double trained,
        fixed;          /* parameters without the vocabulary's tables; others, without gradients */
    double table_d;     /* columns of those tables */
    const char *widths; /* options that would make it smaller: "--ff, " */
} heed__model_size;

typedef struct heed__model_class {
    /* Refuses what does not fit, and names what would; then nothing is built.  Every field is
     * within its range. */
    heed_status (*check)(const heed_model_config *config, heed_error *err);
    size_t config_at, config_size; /* its own part of heed_model_config: nobody else's concern */
    heed__model_size (*size)(const heed_model_config *config);
    void (*summary)(const heed_model_config *config, char text[HEED_MODEL_SUMMARY]);
    /* Declares parameters and sets m->output and m->parts, which live in m->arena.  Errors stay in
     * the parameter set; NULL parts mean that memory is short. */
    void (*build)(heed_model *m, heed_scope s);
    heed_model_cost (*cost)(const heed_model *m); /* without the output projection */
    /* The state before the output projection at each target token, (N,D).  seen: NULL, or
     * `attentions` places to fill.  choices, if not NULL, receives the log-probabilities of what
     * hard attention drew, (N,H), or NULL where nothing is drawn. */
    heed_tensor *(*states)(const heed_model *m, heed_tape *t, const heed_batch *batch,
                           heed__seen *seen, heed_tensor **choices);
    int (*attentions)(const heed_model *m);
    /* d->parts; close takes what open left, also after a failure. */
    heed_status (*open)(heed_decoder *d, heed_error *err);
    void (*close)(heed_decoder *d);
    /* Encodes.  Errors of these two stay on d->tape. */
    void (*start)(heed_decoder *d, const heed_batch *batch);
    /* The state after token[r], (rows,D): row r goes on from what was row d->row[r].parent in the
     * step before. */
    heed_tensor *(*step)(heed_decoder *d, const int32_t *token);
} heed__model_class;

extern const heed__model_class heed__transformer_class, heed__rnn_class;

/* NULL if there is none. */
const heed__model_class *heed__model_class_of(int arch);

/* check.c: what heed_model_new would refuse. */
heed_status heed__model_check(const heed_model_config *config, heed_error *err);
/* The only architecture that listens to the field at this offset of heed_model_config; -1: all. */
int heed__model_owner(size_t offset);

/* heed_model_new for weights that are loaded next: all are zero, and none is drawn in vain. */
heed_model *heed__model_new_zero(const heed_model_config *config, const heed_allocator *allocator,
                                 heed_error *err);

/* Whether the batch has what is asked for and no sentence is too long; if not, the tape fails. */
bool heed__model_takes(const heed_model *m, heed_tape *t, const heed_batch *batch, bool targets);

struct heed_model {
    const heed__model_class *class;
    heed_allocator allocator;
    heed_model_config config;
    heed_params *params;
    heed_arena *arena;
    heed_tensor *output;         /* (V,D): logits are h W^T */
    heed_reinforce_layer choice; /* of hard attention */
    void *parts;
};

typedef struct heed__hypothesis {
    int32_t sentence; /* never falls from row to row */
    int32_t parent;   /* the row of the step before that it goes on from */
} heed__hypothesis;

struct heed_decoder {
    const heed_model *model;
    heed_allocator allocator;
    heed_tape *tape; /* reset in each call; neither records nor trains */
    int64_t sentences, rows;
    int64_t rows_before; /* in the last step: what `parent` counts */
    int64_t length;      /* tokens in each row so far */
    int64_t capacity;
    heed__hypothesis *memory;      /* (2,capacity): the two below, either way round */
    heed__hypothesis *row, *other; /* (rows), and room for the next order */
    bool started;
    void *parts;
};

#endif
