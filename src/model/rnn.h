/* rnn.h: the parts of a recurrent translator, for rnn.c, which builds and applies them, and
 * rnn_decoder.c, which applies the same step to one token at a time. */
#ifndef HEED_MODEL_RNN_H
#define HEED_MODEL_RNN_H

#include "model/model_class.h"

typedef struct heed__rnn heed__rnn;

/* What a decoder knows of B sentences before a step: its states, and h~ of the step before where
 * that is fed back.  They may have more rows; the first B go on. */
typedef struct heed__rnn_state {
    heed_rnn_state layers;
    heed_tensor *fed; /* (B,D) */
} heed__rnn_state;

typedef struct heed__rnn_input {
    heed_tensor *y;               /* (B,E): the words before, embedded */
    heed_tensor *gates;           /* (B,4D or 3D): their share of the first layer's gates */
    heed_memory memory;           /* of these sentences */
    const heed_segments *queries; /* which row looks at which of them */
    const int32_t *place;         /* (B): the number of the step */
} heed__rnn_input;

typedef struct heed__rnn_output {
    heed_tensor *s;                      /* (B,D): the last layer's state */
    heed_tensor *c;                      /* (B,2D or D): what attention saw */
    heed_tensor *attended;               /* (B,D): h~ */
    heed_tensor *weights, *chosen_log_p; /* of attention, where there is one */
} heed__rnn_output;

struct heed__rnn {
    heed_embedding_layer source, target;
    heed_rnn_layer encoder, decoder;
    heed_linear_layer *bridge; /* (decoder layers) encoder's end -> decoder's start; NULL: copied */
    bool both_ends;            /* the bridge begins at the ends of both directions */
    heed_attend_layer attend;
    heed_linear_layer more;    /* c_t or h~_{t-1} into the first layer's gates */
    heed_linear_layer readout; /* maxout's, or W_c of h~ */
    bool reverse, feeds, attends;
    double dropout;
    heed_reinforce_layer choice; /* of hard attention */
    void (*step)(const heed__rnn *m, heed_tape *t, const heed__rnn_input *in,
                 heed__rnn_state *state, heed__rnn_output *out);
    /* What the output projection sees, of any number of rows. */
    heed_tensor *(*read)(const heed__rnn *m, heed_tape *t, heed_tensor *y,
                         const heed__rnn_output *out);
    bool by_steps; /* what attention saw goes back into the stack: no step before the one before */
};

/* The encoder's states (M,2D or D), in the order of the words, whichever way they were read; and
 * the decoder's first state, in the order of the sentences. */
heed_tensor *heed__rnn_encode(const heed__rnn *m, heed_tape *t, const heed_batch *batch,
                              heed__rnn_state *start);
/* Attention from states s (B,D), and h~ of what it saw: of any number of rows. */
heed_tensor *heed__rnn_look(const heed__rnn *m, heed_tape *t, heed_tensor *s,
                            const heed__rnn_input *in, heed__rnn_output *out);
heed_tensor *heed__rnn_attentional(const heed__rnn *m, heed_tape *t, heed_tensor *c,
                                   heed_tensor *h);
/* The embedded words' share of the first layer's gates. */
heed_tensor *heed__rnn_gates(const heed__rnn *m, heed_tape *t, heed_tensor *y);

/* rnn_sentences.c */
heed_tensor *heed__rnn_hidden(const heed_model *model, heed_tape *t, const heed_batch *batch,
                              heed__forward *f);
heed_tensor *heed__rnn_loss(const heed_model *model, heed_tape *t, const heed_batch *batch,
                            double weight, double *nll);

/* rnn_check.c */
heed_status heed__rnn_check(const heed_model_config *config, heed_error *err);
heed__model_size heed__rnn_size(const heed_model_config *config);
void heed__rnn_summary(const heed_model_config *config, char text[HEED_MODEL_SUMMARY]);
/* What its attention is made of. */
heed_attend_options heed__rnn_attention(const heed_model_config *config);
/* Columns of an embedding, and of what the output projection sees. */
int64_t heed__rnn_embedding_d(const heed_model_config *config);
int64_t heed__rnn_output_d(const heed_model_config *config);

extern const heed__decoder_class heed__rnn_decoder;

#endif
