/* engine.h (internal): what stands behind heed_engine and heed_session.
 *
 * A model whose sublayers can all be packed is packed, and its sessions are rows of it
 * (session_rows.h).  Any other model keeps its own layers, and a session is a heed_decoder.  The
 * search sees a stepper in either case. */
#ifndef HEED_ENGINE_ENGINE_H
#define HEED_ENGINE_ENGINE_H

#include "engine/session_rows.h"
#include "engine/weight_source.h"

struct heed_engine {
    heed_allocator allocator;
    /* Sets s->stepper, and s->end if there is something to take apart. */
    heed_status (*begin)(const heed_engine *e, const heed_session_options *o, heed_session *s,
                         heed_error *err);
    heed__weights *weights;    /* packed, or NULL: */
    const heed_model *model;   /* a model with its own decoder */
    heed_model *own_model;     /* the same, where the engine loaded it */
    heed__shortlist shortlist; /* open, or zeros */
};

struct heed_session {
    heed_allocator allocator;
    heed__stepper stepper;
    heed_extension *extension; /* (extensions) of a step */
    int64_t extensions;
    void (*end)(heed_session *s);
    /* heed_session_encode */
    heed_status (*encode)(heed_session *s, const heed_batch_side *side,
                          const heed_encode_options *o, heed_encoding *out, heed_error *err);
    const heed_model *model; /* one that is not packed, */
    heed_tape *tape;         /* and the tape it encodes on, made when it is needed */
    int threads;
};

/* heed_engine_new, some matrices given as int8; given may be NULL. */
heed_engine *heed__engine_given(const heed_model *m, const heed__given_int8 *given,
                                const heed_allocator *allocator, heed_error *err);
/* The engine of a folder, whose configuration is this; the folder may be of another program. */
heed_engine *heed__engine_open(const heed_model_config *config, const char *folder,
                               const heed_allocator *allocator, heed_error *err);

/* attention.c: where the tokens of a target, then EOS, looked in the source and its EOS: (target+1,
 * source+1), *ld apart, of one head of a decoder layer, or of all, added up (head -1).  Lives in
 * the arena. */
heed_status heed__cross_weights(const heed_engine *e, const heed_tokens *source,
                                const heed_tokens *target, int layer, int head, heed_arena *arena,
                                const heed_real **weight, int64_t *ld, heed_error *err);

/* session_encode.c: the two kinds of `encode`. */
heed_status heed__session_encode_packed(heed_session *s, const heed_batch_side *side,
                                        const heed_encode_options *o, heed_encoding *out,
                                        heed_error *err);
heed_status heed__session_encode_model(heed_session *s, const heed_batch_side *side,
                                       const heed_encode_options *o, heed_encoding *out,
                                       heed_error *err);

/* The two kinds of `begin`: session.c, session_decoder.c. */
heed_status heed__session_rows(const heed_engine *e, const heed_session_options *o, heed_session *s,
                               heed_error *err);
heed_status heed__session_decoder(const heed_engine *e, const heed_session_options *o,
                                  heed_session *s, heed_error *err);

#endif
