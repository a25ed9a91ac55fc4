/* fold_score.h (internal): the general score's matrix, folded into the queries'. */
#ifndef HEED_ENGINE_FOLD_SCORE_H
#define HEED_ENGINE_FOLD_SCORE_H

#include "engine/weight_source.h"
#include <heed/model.h>

/* What makes the queries of an attention, and of a self-attention its keys and values too, packed:
 * with the score's matrix in it where there is one. */
heed__panel_weights heed__pack_queries(heed__weight_source *s, const heed_mha_layer *l);
/* The same in a model, whose scores become the identity: what it computes stays.  False when memory
 * is short. */
bool heed__fold_scores(heed_model *m, heed_arena *arena);

#endif
