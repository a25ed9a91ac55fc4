/* sublayers.h (internal): the classes of sublayers that src/model/sublayers.c lists. */
#ifndef HEED_MODEL_SUBLAYERS_H
#define HEED_MODEL_SUBLAYERS_H

#include <heed/stack.h>

extern const heed_sublayer_class heed__self_sublayer, heed__cross_sublayer, heed__ffn_sublayer,
    heed__ssru_sublayer, heed__isab_sublayer, heed__luna_sublayer, heed__longformer_sublayer,
    heed__poolingformer_sublayer, heed__pma_sublayer;

/* sublayer_isab.c.  Softmax over all of another sequence, whatever stands in the slots. */
heed_mha_options heed__plain_cross(const heed_mha_options *mha);
/* x once for each sequence of `rows`, one below the other; *each: their segments. */
heed_tensor *heed__repeat_rows(heed_tape *t, heed_tensor *x, const heed_segments *rows,
                               const heed_segments **each);

/* sublayer_longformer.c.  What a layer asks heed_attention with; its answer to q (N,H*Dk) and kv
 * (M,KvHeads*(Dk+Dv)), both turned by their rows where positions are rotary. */
heed_attention_options heed__mha_attention(const heed_mha_options *o);
heed_tensor *heed__mha_of(heed_tape *t, const heed_mha_options *o, heed_tensor *q, heed_tensor *kv,
                          const heed_segments *queries, const heed_segments *keys,
                          const heed_attention_options *one);

#endif
