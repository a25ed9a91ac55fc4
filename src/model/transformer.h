/* transformer.h: the parts of a Transformer, for transformer.c, which builds and applies them, and
 * transformer_decoder.c, which applies the same layers to one token at a time. */
#ifndef HEED_MODEL_TRANSFORMER_H
#define HEED_MODEL_TRANSFORMER_H

#include "model/model.h"

/* What stands around a sublayer: where the norm is, and whether there is a residual. */
typedef struct heed__around {
    heed_norm_layer norm;
    double dropout;
    heed_tensor *(*before)(heed_tape *t, const struct heed__around *a, heed_tensor *x);
    heed_tensor *(*after)(heed_tape *t, const struct heed__around *a, heed_tensor *x,
                          heed_tensor *y);
} heed__around;

typedef struct heed__encoder_layer {
    heed_mha_layer self;
    heed_ffn_layer ffn;
    heed__around around_self, around_ffn;
} heed__encoder_layer;

typedef struct heed__decoder_layer {
    heed_mha_layer self, cross;
    heed_ffn_layer ffn;
    heed__around around_self, around_cross, around_ffn;
} heed__decoder_layer;

typedef struct heed__transformer {
    heed_embedding_layer source, target;
    int encoder_layers, decoder_layers;
    heed__encoder_layer *encoder;
    heed__decoder_layer *decoder;
    bool final_norms; /* pre-norm only */
    heed_norm_layer encoder_norm, decoder_norm;
} heed__transformer;

/* (M,D): what the decoder attends to. */
heed_tensor *heed__transformer_encode(const heed__transformer *m, heed_tape *t,
                                      const heed_batch *batch, heed__seen *seen);

/* How a decoder layer's two attentions find their keys and values: over whole sentences, or from
 * caches.  x (N,D) -> (N,D). */
typedef struct heed__attend {
    heed_tensor *(*self)(void *context, heed_tape *t, int layer, heed_tensor *x);
    heed_tensor *(*cross)(void *context, heed_tape *t, int layer, heed_tensor *x);
    void *context;
} heed__attend;
heed_tensor *heed__transformer_decode(const heed__transformer *m, heed_tape *t, heed_tensor *x,
                                      const heed__attend *attend);

/* transformer_check.c */
heed_status heed__transformer_check(const heed_model_config *config, heed_error *err);
heed__model_size heed__transformer_size(const heed_model_config *config);
void heed__transformer_summary(const heed_model_config *config, char text[HEED_MODEL_SUMMARY]);

/* transformer_decoder.c */
heed_status heed__transformer_open(heed_decoder *d, heed_error *err);
void heed__transformer_close(heed_decoder *d);
void heed__transformer_start(heed_decoder *d, const heed_batch *batch);
heed_tensor *heed__transformer_step(heed_decoder *d, const int32_t *token);

#endif
