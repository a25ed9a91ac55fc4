/* transformer.h (internal): what stacks are made of, from a configuration: for the Transformer and
 * for models of one stack. */
#ifndef HEED_MODEL_TRANSFORMER_H
#define HEED_MODEL_TRANSFORMER_H

#include "model/model_class.h"

/* transformer.c */
/* Self-attention and, unless its width is 0, feed-forward network, under scope. */
void heed__add_layer(heed_stack *s, heed_scope scope, const heed_model_config *c, int layer,
                     bool causal);
/* What stands in the slot: an adaptive span, or what the slot's own option says. */
heed_slot_spec heed__position_bias(const heed_model_config *c);
/* The norm of a stack's output, which pre-norm has. */
void heed__add_final_norm(heed_stack *s, heed_scope scope, const heed_model_config *c);
/* Declares "embedding.*"; without a vocabulary it reads c->features columns. */
void heed__build_input(heed_input_layer *l, heed_scope s, const heed_model_config *c,
                       int64_t vocabulary, heed_positions positions);
/* Declares "output.*"; tied: the table that it shares, or NULL. */
void heed__build_head(heed_head_layer *l, heed_scope s, const heed_model_config *c, int64_t classes,
                      heed_tensor *tied);

/* transformer_check.c */
heed_status heed__transformer_check(const heed_model_config *config, heed_error *err);
heed__model_size heed__transformer_size(const heed_model_config *config);
void heed__transformer_summary(const heed_model_config *config, char text[HEED_MODEL_SUMMARY]);

#endif
