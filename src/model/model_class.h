/* model_class.h (internal): what stands behind heed_model and heed_decoder.
 *
 * An architecture is a table of functions, heed__model_class.  What every architecture has in
 * common is done once, in model.c and decoder.c: the projection on the vocabulary, loss, scores,
 * attention maps, and the bookkeeping of a decoder's rows. */
#ifndef HEED_MODEL_MODEL_CLASS_H
#define HEED_MODEL_MODEL_CLASS_H

#include <heed/model.h>

/* What a forward pass returns beside the hidden states. */
typedef struct heed__forward {
    heed_attention_recorder *recorder; /* given, or NULL */
    heed_tensor *penalty;              /* (1), a sum over rows; NULL: none */
} heed__forward;

/* How many numbers a model would have, in double: absurd sizes overflow integers before they are
 * refused. */
typedef struct heed__model_size {
    double trained, fixed;      /* parameters, without those tables; others, without gradients */
    double table_rows, table_d; /* of the vocabularies' tables, all together; their columns */
    const char *widths;         /* options that would make it smaller: "--ff, " */
} heed__model_size;

/* How a model decodes token by token. */
typedef struct heed__decoder_class {
    /* d->parts; close takes what open left, also after a failure. */
    heed_status (*open)(heed_decoder *d, heed_error *err);
    void (*close)(heed_decoder *d);
    /* Encodes.  Errors of these two stay on d->tape. */
    void (*start)(heed_decoder *d, const heed_batch *batch);
    /* The hidden state after token[r], (rows,D): row r continues what was row d->row[r].parent in
     * the step before. */
    heed_tensor *(*step)(heed_decoder *d, const int32_t *token);
} heed__decoder_class;

typedef struct heed__model_class {
    heed_side sides; /* that it reads; answers stand at the target's rows, or at the only ones */
    /* Refuses what does not fit, and names what would; then nothing is built.  Every field is
     * within its range. */
    heed_status (*check)(const heed_model_config *config, heed_error *err);
    heed__model_size (*size)(const heed_model_config *config);
    void (*summary)(const heed_model_config *config, char text[HEED_MODEL_SUMMARY]);
    /* Declares parameters and sets m->head and m->parts, which live in m->arena.  Errors stay in
     * the parameter set; NULL parts mean that memory is short. */
    void (*build)(heed_model *m, heed_scope s);
    heed_model_cost (*cost)(const heed_model *m); /* without the head */
    /* The hidden states that the head reads, one for each row, (N,D). */
    heed_tensor *(*hidden)(const heed_model *m, heed_tape *t, const heed_batch *batch,
                           heed__forward *f);
    /* heed_model_loss; NULL: cross-entropy of the wanted answers. */
    heed_tensor *(*loss)(const heed_model *m, heed_tape *t, const heed_batch *batch, double weight,
                         double *nll);
    /* The stack of one of its sides; NULL: it is not made of stacks. */
    const heed_stack *(*stack)(const heed_model *m, heed_side side);
    const heed__decoder_class *decoder; /* NULL: heed__full_decoder */
} heed__model_class;

extern const heed__model_class heed__transformer_class, heed__rnn_class, heed__decoder_only_class,
    heed__encoder_only_class;
/* full_decoder.c: feeds every token again at each step; any model's. */
extern const heed__decoder_class heed__full_decoder;

/* NULL if there is none. */
const heed__model_class *heed__model_class_of(int arch);

/* Rows of all tables of a translator: embeddings and output, as far as they are not one. */
double heed__two_sided_rows(const heed_model_config *config);
/* check.c: what heed_model_new would refuse. */
heed_status heed__model_check(const heed_model_config *config, heed_error *err);
/* Whether an option of HEED_MODEL_OPTIONS has an effect in this architecture. */
bool heed__model_listens(int arch, const char *option);

/* Sets what the data decide, for text on both sides. */
void heed__model_reads_text(heed_model_config *config, int64_t source_vocabulary,
                            int64_t target_vocabulary);

/* heed_model_loss where the answers HEED_FROM_TEACHER are a teacher's: a model of the same sizes
 * whose parameters are frozen; NULL: there are none.  Not for models with a loss of their own. */
bool heed__model_can_distil(const heed_model *m);
heed_tensor *heed__model_distil(const heed_model *m, heed_tape *t, const heed_batch *batch,
                                const heed_model *teacher, double weight, double *nll);

/* heed_model_new for weights that are loaded next: all are zero, and none is drawn. */
heed_model *heed__model_new_zero(const heed_model_config *config, const heed_allocator *allocator,
                                 heed_error *err);

/* Whether the batch has these sides and no sequence is too long; if not, the tape fails. */
bool heed__model_takes(const heed_model *m, heed_tape *t, const heed_batch *batch, heed_side sides);
/* The stack of a side; NULL if the model has none there. */
const heed_stack *heed__model_stack(const heed_model *m, heed_side side);
/* For losses: cross-entropy of the wanted answers, and their log-probabilities, (wanted_count,1),
 * from hidden states of all rows. */
heed_tensor *heed__model_answer_loss(const heed_model *m, heed_tape *t, heed_tensor *h,
                                     const heed_batch *batch, double weight, double *nll);
heed_tensor *heed__model_answer_log_p(const heed_model *m, heed_tape *t, heed_tensor *h,
                                      const heed_batch *batch);

struct heed_model {
    const heed__model_class *class;
    heed_allocator allocator;
    heed_model_config config;
    heed_params *params;
    heed_arena *arena;
    heed_head_layer head;
    void *parts;
};

typedef struct heed__hypothesis {
    int32_t sentence; /* never falls from row to row */
    int32_t parent;   /* the row of the step before that it goes on from */
} heed__hypothesis;

struct heed_decoder {
    const heed_model *model;
    const heed__decoder_class *class;
    heed_allocator allocator;
    heed_tape *tape; /* reset in each call; neither records nor trains */
    int64_t sentences, rows;
    int64_t rows_before; /* in the last step: what `parent` counts */
    int64_t length;      /* tokens in each row so far */
    int64_t capacity;
    heed__hypothesis *memory;      /* (2,capacity): the two below, either way round */
    heed__hypothesis *row, *other; /* (rows), and a second array for the next order */
    bool started;
    void *parts;
};

#endif
