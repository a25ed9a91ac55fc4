/* sublayers.h (internal): the classes of sublayers that src/model/sublayers.c lists. */
#ifndef HEED_MODEL_SUBLAYERS_H
#define HEED_MODEL_SUBLAYERS_H

#include <heed/stack.h>

extern const heed_sublayer_class heed__self_sublayer, heed__cross_sublayer, heed__ffn_sublayer,
    heed__ssru_sublayer;

#endif
