/* engine.h (internal): what stands behind heed_engine and heed_session.
 *
 * A Transformer whose attention is the paper's is packed, and its sessions are rows of it
 * (rows.h).  Any other model keeps its own layers, and a session is a heed_decoder.  The search
 * sees a stepper in either case. */
#ifndef HEED_DECODE_ENGINE_H
#define HEED_DECODE_ENGINE_H

#include "decode/rows.h"

struct heed_engine {
    heed_allocator allocator;
    heed__weights *weights;    /* packed, or NULL: */
    const heed_model *model;   /* a model with its own decoder */
    heed_model *own_model;     /* the same, where the engine loaded it */
    heed__shortlist shortlist; /* open, or zeros */
};

struct heed_session {
    heed_allocator allocator;
    heed__stepper stepper;
    heed__rows *rows;      /* of a packed model, or NULL: */
    heed_decoder *decoder; /* of any other */
    heed_arena *arena;     /* the batch that the decoder works on */
    heed_real *zeros;      /* (zeros_room): its log-probabilities are normalised */
    int64_t decoder_rows, zeros_room;
};

/* The engine of config and weights that lie in a folder. */
heed_engine *heed__engine_open(const heed_model_config *config, const char *weights,
                               const heed_allocator *allocator, heed_error *err);

#endif
